(function_definition name: (name) @name body: (compound_statement) @body) @function
(method_declaration name: (name) @name body: (compound_statement)? @body) @function.method
(class_declaration name: (name) @name body: (declaration_list) @body) @class.class
(interface_declaration name: (name) @name body: (declaration_list) @body) @class.interface
(trait_declaration name: (name) @name body: (declaration_list) @body) @class.trait
(enum_declaration name: (name) @name body: (enum_declaration_list) @body) @class.enum
(namespace_definition name: (namespace_name) @name body: (compound_statement) @body) @class.namespace
(const_declaration (const_element . (name) @name)) @constant
(property_declaration (property_element name: (variable_name (name) @name))) @constant.field
(enum_case name: (name) @name) @constant.variant
