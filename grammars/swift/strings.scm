[(line_string_literal) (multi_line_string_literal) (raw_string_literal)] @string
(interpolated_expression) @code
