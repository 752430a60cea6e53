(pair key: (string (string_content) @name) value: [(object) (array)] @body) @class.key
(pair key: (string (string_content) @name) value: [(string) (number) (true) (false) (null)]) @constant.key
