(package_declaration (_) @package)
(class_declaration) @class
(interface_declaration) @interface
(enum_declaration) @class
(record_declaration) @class
(annotation_type_declaration) @interface
(method_declaration) @function
(constructor_declaration) @function
(method_invocation) @call
(object_creation_expression type: (_) @new)
(import_declaration) @import
(formal_parameter) @variable
(local_variable_declaration) @variable
(field_declaration) @variable
