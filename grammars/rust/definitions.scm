(function_item name: (identifier) @name body: (block) @body) @function
(function_signature_item name: (identifier) @name) @function
(struct_item name: (type_identifier) @name body: (field_declaration_list)? @body) @class.struct
(union_item name: (type_identifier) @name body: (field_declaration_list) @body) @class.union
(enum_item name: (type_identifier) @name body: (enum_variant_list) @body) @class.enum
(trait_item name: (type_identifier) @name body: (declaration_list) @body) @class.trait
(impl_item type: [
  (type_identifier) @name
  (generic_type type: (type_identifier) @name)
  (scoped_type_identifier name: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
  (reference_type type: (type_identifier) @name)
  (primitive_type) @name
  (array_type) @name
  (tuple_type) @name] body: (declaration_list) @body) @class.impl
(mod_item name: (identifier) @name body: (declaration_list) @body) @class.module
(mod_item name: (identifier) @name !body) @import
(macro_definition name: (identifier) @name) @constant.macro
(const_item name: (identifier) @name) @constant
(static_item name: (identifier) @name) @constant
(type_item name: (type_identifier) @name) @constant.type
(associated_type name: (type_identifier) @name) @constant.type
(field_declaration name: (field_identifier) @name) @constant.field
(enum_variant name: (identifier) @name) @constant.variant
