[(string_literal) (verbatim_string_literal) (raw_string_literal) (character_literal) (interpolated_string_expression)] @string
(interpolation) @code
