[(string_literal) (raw_string_literal) (char_literal)] @string
