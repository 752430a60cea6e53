(import_statement source: (string) @module) @import
(import_statement (import_clause (identifier) @bind)) @import
(import_statement (import_clause (namespace_import (identifier) @bind))) @import
(import_statement (import_clause (named_imports (import_specifier name: (identifier) @bind !alias)))) @import
(import_statement (import_clause (named_imports (import_specifier alias: (identifier) @bind)))) @import
(export_statement source: (string) @module) @import
