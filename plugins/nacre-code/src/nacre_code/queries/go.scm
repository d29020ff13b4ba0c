(package_clause (package_identifier) @package)
(function_declaration) @function
(method_declaration) @function
(type_spec) @class
(call_expression function: (_) @call)
(import_spec) @import
(parameter_declaration) @variable
(short_var_declaration) @variable
(var_spec) @variable
(field_declaration) @variable
