(rule_set (selectors) @name (block) @body) @function.rule
(media_statement (block) @body) @class.media
(supports_statement (block) @body) @class.supports
(keyframes_statement (keyframes_name) @name (keyframe_block_list) @body) @function.keyframes
(at_rule (block) @body) @class.rule
