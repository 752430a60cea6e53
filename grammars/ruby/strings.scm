[(string) (heredoc_body) (regex) (string_array) (symbol_array) (delimited_symbol) (subshell)] @string
(interpolation) @code
