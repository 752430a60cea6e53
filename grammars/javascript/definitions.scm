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

(class_declaration name: (identifier) @name body: (class_body) @body) @class.class
(field_definition property: (_) @name value: [
  (arrow_function body: (_) @body)
  (function_expression body: (statement_block) @body)]) @function.method
(field_definition property: (_) @name) @constant.field
