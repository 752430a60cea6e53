(call_expression function: (identifier) @call)
(call_expression function: (member_expression property: (property_identifier) @call))
(new_expression constructor: (identifier) @call)
(new_expression constructor: (member_expression property: (property_identifier) @call))

(jsx_opening_element name: (identifier) @call)
(jsx_self_closing_element name: (identifier) @call)
