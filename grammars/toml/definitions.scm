(table . [(bare_key) (dotted_key) (quoted_key)] @name) @class.table
(table_array_element . [(bare_key) (dotted_key) (quoted_key)] @name) @class.table
(pair . [(bare_key) (dotted_key) (quoted_key)] @name) @constant.key
