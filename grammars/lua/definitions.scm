(function_declaration name: (identifier) @name body: (block)? @body) @function
(function_declaration name: (dot_index_expression table: (_) @container field: (identifier) @name) body: (block)? @body) @function
(function_declaration name: (method_index_expression table: (_) @container method: (identifier) @name) body: (block)? @body) @function.method
(assignment_statement (variable_list name: (identifier) @name) (expression_list value: (function_definition body: (block)? @body))) @function
(assignment_statement (variable_list name: (dot_index_expression table: (_) @container field: (identifier) @name))
  (expression_list value: (function_definition body: (block)? @body))) @function
(field name: (identifier) @name value: (function_definition body: (block)? @body)) @function
(assignment_statement (variable_list name: (identifier) @name)) @constant.variable
