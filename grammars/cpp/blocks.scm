[(compound_statement) (field_declaration_list) (enumerator_list) (declaration_list)] @block
(call_expression function: (_) @callee arguments: (argument_list) @arguments)
(argument_list) @arguments
(parameter_list) @parameters
[(identifier) (field_identifier) (type_identifier) (namespace_identifier)] @identifier
