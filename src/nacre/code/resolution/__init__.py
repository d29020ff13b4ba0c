"""Name resolution within a repository: first in the same file, then in its imports, then by a name that is unique.

An ambiguous name is not linked.
"""
