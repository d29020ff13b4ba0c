(function_definition) @function
(struct_specifier name: (_) body: (_)) @class
(union_specifier name: (_) body: (_)) @class
(enum_specifier name: (_) body: (_)) @type
(type_definition) @type
(call_expression function: (_) @call)
(preproc_include) @import
(parameter_declaration) @variable
(declaration) @variable
(field_declaration) @variable
