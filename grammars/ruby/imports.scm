(call !receiver method: (identifier) @called arguments: (argument_list (string (string_content) @module))) @import.call
