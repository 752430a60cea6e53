(comment) @comment
(expression_statement (string)) @comment
