(script_element (start_tag (tag_name) @name) (raw_text) @body) @function.script
(style_element (start_tag (tag_name) @name) (raw_text) @body) @function.style
