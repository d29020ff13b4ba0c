(class_specifier name: (_) body: (_)) @class
(namespace_definition) @namespace
(new_expression type: (_) @new)
