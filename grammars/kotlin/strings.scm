[(string_literal) (multiline_string_literal) (character_literal)] @string
(interpolation) @code
