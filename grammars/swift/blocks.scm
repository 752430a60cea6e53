[(function_body) (class_body) (enum_class_body) (protocol_body) (statements) (computed_property) (lambda_literal)] @block
(call_expression . (_) @callee (call_suffix (value_arguments) @arguments))
(value_arguments) @arguments
[(simple_identifier) (type_identifier)] @identifier
