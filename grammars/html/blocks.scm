[(element) (script_element) (style_element)] @block
[(tag_name) (attribute_name)] @identifier
