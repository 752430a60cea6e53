(function_definition declarator: (function_declarator declarator: (_) @name) body: (_) @body) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name)) body: (_) @body) @function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name)))
  body: (_) @body) @function
(function_definition declarator: (reference_declarator (function_declarator declarator: (_) @name)) body: (_) @body) @function
(function_definition declarator: (operator_cast) @name body: (_) @body) @function
(function_definition declarator: (function_declarator declarator: (_) @name) !body) @function
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @function.prototype
(field_declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))) @function.prototype
(field_declaration declarator: (reference_declarator (function_declarator declarator: (field_identifier) @name))) @function.prototype
(declaration declarator: (function_declarator declarator: [(identifier) (destructor_name) (operator_name) (qualified_identifier)] @name))
  @function.prototype
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @function.prototype
(declaration declarator: (reference_declarator (function_declarator declarator: (identifier) @name))) @function.prototype
(class_specifier name: (_) @name body: (field_declaration_list) @body) @class.class
(struct_specifier name: (_) @name body: (field_declaration_list) @body) @class.struct
(union_specifier name: (_) @name body: (field_declaration_list) @body) @class.union
(enum_specifier name: (_) @name body: (enumerator_list) @body) @class.enum
(namespace_definition name: (_) @name body: (declaration_list) @body) @class.namespace
(concept_definition name: (identifier) @name) @constant.type
(alias_declaration name: (type_identifier) @name) @constant.type
(type_definition type: (struct_specifier !name body: (field_declaration_list) @body) declarator: (type_identifier) @name) @class.struct
(type_definition type: [(primitive_type) (type_identifier) (sized_type_specifier) (qualified_identifier)] declarator: (_) @name) @constant.type
(declaration declarator: (identifier) @name) @constant.variable
(declaration declarator: (init_declarator declarator: (identifier) @name)) @constant.variable
(declaration declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @name))) @constant.variable
(declaration declarator: (init_declarator declarator: (array_declarator declarator: (identifier) @name))) @constant.variable
(preproc_def name: (identifier) @name) @constant.macro
(preproc_function_def name: (identifier) @name) @constant.macro
(field_declaration declarator: (field_identifier) @name) @constant.field
(field_declaration declarator: (pointer_declarator declarator: (field_identifier) @name)) @constant.field
(enumerator name: (identifier) @name) @constant.variant
