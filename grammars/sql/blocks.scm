[(column_definitions) (subquery) (function_body)] @block
(invocation (object_reference) @callee) @arguments
(identifier) @identifier
