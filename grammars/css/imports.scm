(import_statement (_) @module) @import
