(string) @string
