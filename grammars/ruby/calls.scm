(call method: (identifier) @call)
(call receiver: (constant) @call method: (identifier))
