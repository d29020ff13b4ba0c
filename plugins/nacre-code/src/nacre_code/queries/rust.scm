(function_item) @function
(function_signature_item) @function
(struct_item) @class
(enum_item) @class
(union_item) @class
(trait_item) @interface
(type_item) @type
(mod_item body: (_)) @namespace
(impl_item) @impl
(mod_item !body) @import
(use_declaration) @import
(call_expression function: (_) @call)
(parameter) @variable
(let_declaration) @variable
(field_declaration) @variable
