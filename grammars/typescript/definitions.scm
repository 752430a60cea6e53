(function_declaration name: (identifier) @name body: (statement_block) @body) @function
(generator_function_declaration name: (identifier) @name body: (statement_block) @body) @function
(method_definition name: (_) @name body: (statement_block) @body) @function.method
(variable_declarator name: (identifier) @name value: [
  (arrow_function body: (_) @body)
  (function_expression body: (statement_block) @body)
  (generator_function body: (statement_block) @body)]) @function
(variable_declarator name: (identifier) @name value: (class body: (class_body) @body)) @class.class
(assignment_expression left: [(identifier) @name (member_expression property: (property_identifier) @name)] right: [
  (arrow_function body: (_) @body)
  (function_expression body: (statement_block) @body)
  (generator_function body: (statement_block) @body)]) @function
(assignment_expression left: (member_expression property: (property_identifier) @name) right: (class body: (class_body) @body)) @class.class
(pair key: (property_identifier) @name value: [
  (arrow_function body: (statement_block) @body)
  (function_expression body: (statement_block) @body)]) @function.method
(variable_declarator name: (identifier) @name) @constant

(class_declaration name: (type_identifier) @name body: (class_body) @body) @class.class
(abstract_class_declaration name: (type_identifier) @name body: (class_body) @body) @class.class
(interface_declaration name: (type_identifier) @name body: (interface_body) @body) @class.interface
(enum_declaration name: (identifier) @name body: (enum_body) @body) @class.enum
(internal_module name: (_) @name body: (statement_block) @body) @class.namespace
(module name: (_) @name body: (statement_block) @body) @class.namespace
(type_alias_declaration name: (type_identifier) @name) @constant.type
(function_signature name: (identifier) @name) @function
(method_signature name: (_) @name) @function.method
(abstract_method_signature name: (_) @name) @function.method
(public_field_definition name: (_) @name value: [
  (arrow_function body: (_) @body)
  (function_expression body: (statement_block) @body)]) @function.method
(public_field_definition name: (_) @name) @constant.field
(property_signature name: (_) @name) @constant.field
(enum_body name: (property_identifier) @name @constant.variant)
(enum_assignment name: (property_identifier) @name) @constant.variant
