[(statement_block) (class_body) (switch_body)] @block
(call_expression function: (_) @callee arguments: (arguments) @arguments)
(new_expression constructor: (_) @callee arguments: (arguments) @arguments)
(formal_parameters) @parameters

[(interface_body) (enum_body)] @block
[(identifier) (property_identifier) (type_identifier) (shorthand_property_identifier) (shorthand_property_identifier_pattern)] @identifier
