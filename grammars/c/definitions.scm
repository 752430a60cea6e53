(function_definition declarator: (function_declarator declarator: (_) @name) body: (compound_statement) @body) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name))
  body: (compound_statement) @body) @function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name)))
  body: (compound_statement) @body) @function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @function.prototype
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @function.prototype
(struct_specifier name: (type_identifier) @name body: (field_declaration_list) @body) @class.struct
(union_specifier name: (type_identifier) @name body: (field_declaration_list) @body) @class.union
(enum_specifier name: (type_identifier) @name body: (enumerator_list) @body) @class.enum
(type_definition type: (struct_specifier !name body: (field_declaration_list) @body) declarator: (type_identifier) @name) @class.struct
(type_definition type: (union_specifier !name body: (field_declaration_list) @body) declarator: (type_identifier) @name) @class.union
(type_definition type: (enum_specifier !name body: (enumerator_list) @body) declarator: (type_identifier) @name) @class.enum
(type_definition type: [(primitive_type) (type_identifier) (sized_type_specifier)] declarator: (_) @name) @constant.type
(type_definition type: (struct_specifier !body) declarator: (type_identifier) @name) @constant.type
(declaration declarator: (identifier) @name) @constant.variable
(declaration declarator: (init_declarator declarator: (identifier) @name)) @constant.variable
(declaration declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @name))) @constant.variable
(declaration declarator: (init_declarator declarator: (array_declarator declarator: (identifier) @name))) @constant.variable
(preproc_def name: (identifier) @name) @constant.macro
(preproc_function_def name: (identifier) @name) @constant.macro
(field_declaration declarator: (field_identifier) @name) @constant.field
(enumerator name: (identifier) @name) @constant.variant
