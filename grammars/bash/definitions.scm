(function_definition name: (word) @name body: (_) @body) @function
(variable_assignment name: (variable_name) @name) @constant
(declaration_command (variable_assignment name: (variable_name) @name)) @constant
