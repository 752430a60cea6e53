(command name: (command_name (word) @call))
