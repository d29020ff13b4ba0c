(function_definition) @function
(class_definition) @class
(call function: (_) @call)
(import_statement) @import
(import_from_statement) @import
(typed_parameter) @variable
(typed_default_parameter) @variable
(assignment) @variable
(with_item (as_pattern)) @variable
