(string_value) @string
