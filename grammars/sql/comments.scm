[(comment) (marginalia)] @comment
