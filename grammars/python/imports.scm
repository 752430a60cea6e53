(import_statement name: (dotted_name . (identifier) @bind) ) @import
(import_statement name: (dotted_name) @module) @import
(import_statement name: (aliased_import name: (dotted_name) @module alias: (identifier) @bind)) @import
(import_from_statement module_name: (_) @module) @import
(import_from_statement name: (dotted_name (identifier) @bind)) @import
(import_from_statement name: (aliased_import alias: (identifier) @bind)) @import
(future_import_statement) @import
