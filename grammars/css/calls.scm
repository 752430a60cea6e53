(call_expression (function_name) @call)
