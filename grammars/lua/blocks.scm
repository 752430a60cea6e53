(block) @block
(function_call name: (_) @callee arguments: (arguments) @arguments)
(parameters) @parameters
(identifier) @identifier
