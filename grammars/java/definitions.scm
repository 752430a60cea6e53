(class_declaration name: (identifier) @name body: (class_body) @body) @class.class
(interface_declaration name: (identifier) @name body: (interface_body) @body) @class.interface
(enum_declaration name: (identifier) @name body: (enum_body) @body) @class.enum
(record_declaration name: (identifier) @name body: (class_body) @body) @class.record
(annotation_type_declaration name: (identifier) @name body: (annotation_type_body) @body) @class.annotation
(method_declaration name: (identifier) @name body: (block)? @body) @function
(constructor_declaration name: (identifier) @name body: (constructor_body) @body) @function.constructor
(compact_constructor_declaration name: (identifier) @name body: (block) @body) @function.constructor
(annotation_type_element_declaration name: (identifier) @name) @function
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @constant.field
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @constant
(enum_constant name: (identifier) @name) @constant.variant
