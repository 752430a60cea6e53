[(block_mapping) (block_sequence) (flow_mapping) (flow_sequence)] @block
(block_mapping_pair key: (flow_node) @identifier)
