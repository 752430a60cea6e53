(block) @block
(argument_list) @arguments
(call function: (_) @callee arguments: (argument_list) @arguments)
(parameters) @parameters
(identifier) @identifier
