[(body_statement) (block_body) (then) (do)] @block
(call method: (_) @callee arguments: (argument_list) @arguments)
(method_parameters) @parameters
[(identifier) (constant) (instance_variable) (class_variable) (global_variable)] @identifier
