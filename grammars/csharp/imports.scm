(using_directive (_) @module) @import
(using_directive name: (identifier) @bind) @import
(file_scoped_namespace_declaration name: (_) @module) @import.namespace
