(field_definition value: [(arrow_function) (function_expression)]) @function
