"""Consolidation: a plan that can be read, checked by code, and done as one operation that can be undone."""
