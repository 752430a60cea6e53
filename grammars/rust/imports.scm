(use_declaration argument: (_) @module) @import
(use_declaration argument: (identifier) @bind) @import
(use_declaration argument: (scoped_identifier name: (identifier) @bind)) @import
(use_declaration argument: (use_as_clause alias: (identifier) @bind)) @import
(use_list [(identifier) @bind (scoped_identifier name: (identifier) @bind) (use_as_clause alias: (identifier) @bind)])
(extern_crate_declaration name: (identifier) @module) @import
