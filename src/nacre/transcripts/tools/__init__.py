"""Tools whose adapter is one module."""
