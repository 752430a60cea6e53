(namespace_use_declaration) @import
(namespace_use_clause (qualified_name (name) @bind) !alias)
(namespace_use_clause alias: (name) @bind)
(namespace_definition name: (namespace_name) @module !body) @import.namespace
(expression_statement [(require_once_expression) (require_expression) (include_expression) (include_once_expression)] @module) @import
