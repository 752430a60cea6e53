(function_declaration name: (identifier) @name body: (block)? @body) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @container
    (pointer_type (type_identifier) @container)
    (generic_type type: (type_identifier) @container)
    (pointer_type (generic_type type: (type_identifier) @container))]))
  name: (field_identifier) @name body: (block)? @body) @function.method
(type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body)) @class.struct
(type_spec name: (type_identifier) @name type: (interface_type "{" @open)) @class.interface
(type_spec name: (type_identifier) @name type: [
  (type_identifier) (qualified_type) (pointer_type) (map_type) (slice_type) (array_type) (function_type) (channel_type) (generic_type)
]) @constant.type
(type_alias name: (type_identifier) @name) @constant.type
(method_elem name: (field_identifier) @name) @function.method
(const_spec name: (identifier) @name) @constant
(var_spec name: (identifier) @name) @constant.variable
(field_declaration name: (field_identifier) @name) @constant.field
(const_declaration "(" @open) @class.group
(var_declaration (var_spec_list "(" @open)) @class.group
(type_declaration "(" @open) @class.group
