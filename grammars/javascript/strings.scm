[(string) (template_string) (regex)] @string
(template_substitution) @code
