(command name: (command_name (word) @called) argument: (_) @module) @import.call
