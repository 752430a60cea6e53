(class_definition name: (identifier) @name body: (template_body)? @body) @class.class
(trait_definition name: (identifier) @name body: (template_body)? @body) @class.trait
(object_definition name: (identifier) @name body: (template_body)? @body) @class.object
(enum_definition name: (identifier) @name body: (enum_body) @body) @class.enum
(function_definition name: (_) @name body: (_) @body) @function
(function_declaration name: (_) @name) @function
(given_definition name: (identifier) @name) @constant
(val_definition pattern: (identifier) @name) @constant.variable
(var_definition pattern: (identifier) @name) @constant.variable
(val_declaration name: (identifier) @name) @constant.variable
(type_definition name: (type_identifier) @name) @constant.type
(simple_enum_case name: (identifier) @name) @constant.variant
