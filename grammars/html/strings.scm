(quoted_attribute_value) @string
