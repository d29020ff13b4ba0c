(function_declaration) @function
(generator_function_declaration) @function
(class_declaration) @class
(method_definition) @function
(variable_declarator value: [(arrow_function) (function_expression)]) @function
(assignment_expression left: (member_expression) right: [(arrow_function) (function_expression)]) @function
(call_expression function: (_) @call)
(new_expression constructor: (_) @new)
(import_statement) @import
(export_statement) @import
(variable_declarator) @variable
(assignment_expression left: (member_expression)) @variable
