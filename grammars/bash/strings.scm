[(string) (raw_string) (ansi_c_string) (heredoc_body)] @string
[(command_substitution) (expansion) (simple_expansion)] @code
