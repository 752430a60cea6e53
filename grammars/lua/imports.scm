(assignment_statement (variable_list name: (identifier) @bind)
  (expression_list value: (function_call name: (identifier) @called arguments: (arguments (string content: (string_content) @module))))) @import.call
(function_call name: (identifier) @called arguments: (arguments (string content: (string_content) @module))) @import.call
