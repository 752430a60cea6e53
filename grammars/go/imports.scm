(import_declaration (import_spec name: (package_identifier)? @bind path: (_) @module)) @import
(import_declaration (import_spec_list (import_spec name: (package_identifier)? @bind path: (_) @module))) @import
(package_clause (package_identifier) @module) @import.package
