(jsx_self_closing_element name: (_) @component)
(jsx_opening_element name: (_) @component)
