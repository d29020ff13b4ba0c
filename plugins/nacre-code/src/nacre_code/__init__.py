"""Symbols, calls, imports and inheritance in the code of repositories, and memories that name them."""
