"""Code of repositories: symbols, calls, imports, inheritance, and the memories that name them."""
