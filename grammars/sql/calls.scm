(invocation (object_reference name: (identifier) @call))
(relation (object_reference name: (identifier) @call))
