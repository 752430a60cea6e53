(import_declaration (scoped_identifier) @module) @import
(import_declaration (scoped_identifier name: (identifier) @bind) .) @import
(package_declaration (_) @module) @import.package
