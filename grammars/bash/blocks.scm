[(compound_statement) (do_group) (if_statement) (case_item)] @block
[(variable_name) (command_name)] @identifier
