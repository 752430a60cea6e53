(comment) @comment
(hash_bang_line) @comment
