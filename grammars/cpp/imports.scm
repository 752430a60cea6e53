(preproc_include path: (_) @module) @import
(using_declaration (identifier) @module) @import
(using_declaration (qualified_identifier name: (identifier) @bind) @module) @import
