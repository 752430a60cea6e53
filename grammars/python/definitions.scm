(function_definition name: (identifier) @name body: (block) @body) @function
(class_definition name: (identifier) @name body: (block) @body) @class.class
(expression_statement (assignment left: (identifier) @name)) @constant
(expression_statement (string)) @comment
(type_alias_statement left: (type) @name) @constant.type
