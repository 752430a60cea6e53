(block) @block
(field_declaration_list) @block
(call_expression function: (_) @callee arguments: (argument_list) @arguments)
(parameter_list) @parameters
[(identifier) (field_identifier) (type_identifier) (package_identifier)] @identifier
