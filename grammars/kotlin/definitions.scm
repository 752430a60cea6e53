(class_declaration name: (identifier) @name (class_body)? @body) @class.class
(class_declaration name: (identifier) @name (enum_class_body) @body) @class.enum
(object_declaration name: (identifier) @name (class_body)? @body) @class.object
(companion_object (class_body) @body) @class.object
(function_declaration name: (identifier) @name (function_body)? @body) @function
(secondary_constructor (block)? @body) @function.constructor
(property_declaration (variable_declaration (identifier) @name)) @constant.variable
(type_alias type: (identifier) @name) @constant.type
(enum_entry (identifier) @name) @constant.variant
