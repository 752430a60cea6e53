[(string) (character_literal) (interpolated_string)] @string
(interpolation) @code
