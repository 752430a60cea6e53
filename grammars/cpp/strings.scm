[(string_literal) (raw_string_literal) (char_literal) (system_lib_string)] @string
