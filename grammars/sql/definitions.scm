(create_table (object_reference) @name (column_definitions)? @body) @class.table
(create_view (object_reference) @name (create_query)? @body) @function.view
(create_materialized_view (object_reference) @name (create_query)? @body) @function.view
(create_function (object_reference) @name (function_body)? @body) @function
(create_index column: (identifier) @name) @constant.index
(create_type (object_reference) @name) @constant.type
(cte (identifier) @name (statement) @body) @function.cte
(column_definition name: (identifier) @name) @constant.column
