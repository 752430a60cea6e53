(block_mapping_pair key: (flow_node) @name value: (block_node) @body) @class.key
(block_mapping_pair key: (flow_node) @name value: (flow_node)) @constant.key
