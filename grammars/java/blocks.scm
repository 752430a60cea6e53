[(block) (class_body) (interface_body) (enum_body) (constructor_body) (switch_block)] @block
(method_invocation name: (_) @callee arguments: (argument_list) @arguments)
(object_creation_expression type: (_) @callee arguments: (argument_list) @arguments)
(argument_list) @arguments
(formal_parameters) @parameters
[(identifier) (type_identifier)] @identifier
