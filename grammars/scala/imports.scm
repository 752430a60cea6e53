(import_declaration) @import
(import_declaration path: (identifier) @bind .) @import
(import_declaration (namespace_selectors (identifier) @bind)) @import
(import_declaration (namespace_selectors (arrow_renamed_identifier alias: (identifier) @bind))) @import
(package_clause name: (package_identifier) @module) @import.package
