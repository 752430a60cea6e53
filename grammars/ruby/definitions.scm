(method name: (_) @name body: (_)? @body) @function
(singleton_method object: (constant)? @container name: (_) @name body: (_)? @body) @function.method
(class name: (_) @name body: (body_statement)? @body) @class.class
(module name: (_) @name body: (body_statement)? @body) @class.module
(singleton_class value: (_) @name body: (body_statement)? @body) @class.class
(assignment left: (constant) @name) @constant
(alias name: (_) @name) @constant.alias
