"""Rarely used readers and importers, and REST APIs of other systems."""
