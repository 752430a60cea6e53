[(block) (class_body) (enum_class_body) (function_body) (lambda_literal)] @block
(call_expression . (_) @callee (value_arguments) @arguments)
(value_arguments) @arguments
[(function_value_parameters) (class_parameters)] @parameters
(identifier) @identifier
