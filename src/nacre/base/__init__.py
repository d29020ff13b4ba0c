"""Shared low-level modules."""
