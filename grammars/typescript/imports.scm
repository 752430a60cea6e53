(import_statement source: (string) @module) @import
(import_statement (import_clause (identifier) @bind)) @import
(import_statement (import_clause (namespace_import (identifier) @bind))) @import
(import_statement (import_clause (named_imports (import_specifier name: (identifier) @bind !alias)))) @import
(import_statement (import_clause (named_imports (import_specifier alias: (identifier) @bind)))) @import
(export_statement source: (string) @module) @import

(lexical_declaration (variable_declarator name: (identifier) @bind
  value: (call_expression function: (identifier) @called arguments: (arguments (string) @module)))) @import.call
(variable_declaration (variable_declarator name: (identifier) @bind
  value: (call_expression function: (identifier) @called arguments: (arguments (string) @module)))) @import.call
(lexical_declaration (variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @bind)
  value: (call_expression function: (identifier) @called arguments: (arguments (string) @module)))) @import.call

(import_statement (import_require_clause (identifier) @bind source: (string) @module)) @import
