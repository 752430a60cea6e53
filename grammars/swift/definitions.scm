(class_declaration name: (type_identifier) @name body: [(class_body) (enum_class_body)] @body) @class.class
(class_declaration name: (user_type) @name body: [(class_body) (enum_class_body)] @body) @class.extension
(protocol_declaration name: (type_identifier) @name body: (protocol_body) @body) @class.protocol
(function_declaration name: (_) @name body: (function_body) @body) @function
(protocol_function_declaration name: (_) @name) @function.method
(init_declaration body: (function_body)? @body) @function.constructor
(deinit_declaration body: (function_body) @body) @function.destructor
(subscript_declaration (computed_property) @body) @function.method
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @constant.variable
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @constant.field
(typealias_declaration name: (type_identifier) @name) @constant.type
(enum_entry name: (simple_identifier) @name) @constant.variant
