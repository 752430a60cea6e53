[(array) (inline_table) (table)] @block
[(bare_key) (dotted_key)] @identifier
