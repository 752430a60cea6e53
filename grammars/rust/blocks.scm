[(block) (declaration_list) (field_declaration_list) (match_block) (enum_variant_list)] @block
(call_expression function: (_) @callee arguments: (arguments) @arguments)
(parameters) @parameters
[(identifier) (field_identifier) (type_identifier) (shorthand_field_identifier)] @identifier
