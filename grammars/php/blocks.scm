[(compound_statement) (declaration_list) (enum_declaration_list) (match_block) (switch_block)] @block
(function_call_expression function: (_) @callee arguments: (arguments) @arguments)
(member_call_expression name: (_) @callee arguments: (arguments) @arguments)
(scoped_call_expression name: (_) @callee arguments: (arguments) @arguments)
(arguments) @arguments
(formal_parameters) @parameters
(name) @identifier
