[(comment) (multiline_comment)] @comment
