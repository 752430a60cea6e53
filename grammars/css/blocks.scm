[(block) (keyframe_block_list)] @block
(call_expression (function_name) @callee (arguments) @arguments)
[(property_name) (class_name) (id_name) (tag_name) (identifier)] @identifier
