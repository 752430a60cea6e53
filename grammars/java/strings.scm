[(string_literal) (character_literal)] @string
(string_interpolation) @code
