[(string) (encapsed_string) (heredoc) (nowdoc) (shell_command_expression)] @string
