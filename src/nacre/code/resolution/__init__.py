"""What names of code mean within a repository: the same file, then what it imports, then the only one of that name.

What may mean several things is not linked.
"""
