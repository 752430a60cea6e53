(class_declaration name: (identifier) @name body: (declaration_list) @body) @class.class
(interface_declaration name: (identifier) @name body: (declaration_list) @body) @class.interface
(struct_declaration name: (identifier) @name body: (declaration_list) @body) @class.struct
(record_declaration name: (identifier) @name body: (declaration_list)? @body) @class.record
(enum_declaration name: (identifier) @name body: (enum_member_declaration_list) @body) @class.enum
(namespace_declaration name: (_) @name body: (declaration_list) @body) @class.namespace
(method_declaration name: (identifier) @name body: (_)? @body) @function
(constructor_declaration name: (identifier) @name body: (_)? @body) @function.constructor
(destructor_declaration name: (identifier) @name body: (_)? @body) @function.destructor
(operator_declaration operator: _ @name body: (_)? @body) @function.operator
(local_function_statement name: (identifier) @name body: (_) @body) @function
(delegate_declaration name: (identifier) @name) @constant.type
(property_declaration name: (identifier) @name) @constant.property
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @constant.field
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @constant.field
(enum_member_declaration name: (identifier) @name) @constant.variant
