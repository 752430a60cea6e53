[(interpreted_string_literal) (raw_string_literal) (rune_literal)] @string
