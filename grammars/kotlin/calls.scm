(call_expression . (identifier) @call)
(call_expression . (navigation_expression (identifier) @call .))
