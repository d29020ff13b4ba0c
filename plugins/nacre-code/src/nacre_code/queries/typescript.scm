(abstract_class_declaration) @class
(interface_declaration) @interface
(type_alias_declaration) @type
(enum_declaration) @type
(internal_module) @namespace
(public_field_definition value: [(arrow_function) (function_expression)]) @function
(public_field_definition) @variable
(required_parameter) @variable
(optional_parameter) @variable
