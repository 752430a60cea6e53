[(block) (template_body) (case_block) (indented_block) (indented_cases) (enum_body)] @block
(call_expression function: (_) @callee arguments: (arguments) @arguments)
(arguments) @arguments
[(parameters) (class_parameters)] @parameters
[(identifier) (type_identifier)] @identifier
