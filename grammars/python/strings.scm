(string) @string
(interpolation) @code
