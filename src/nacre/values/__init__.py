"""Immutable value types without I/O. Standard library only."""
