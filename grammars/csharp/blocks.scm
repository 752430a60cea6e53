[(block) (declaration_list) (enum_member_declaration_list) (accessor_list) (switch_body)] @block
(invocation_expression function: (_) @callee arguments: (argument_list) @arguments)
(object_creation_expression type: (_) @callee arguments: (argument_list) @arguments)
(argument_list) @arguments
(parameter_list) @parameters
(identifier) @identifier
