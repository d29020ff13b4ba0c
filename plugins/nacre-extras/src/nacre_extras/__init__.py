"""Readers and importers for less common tools, and REST APIs of other systems."""
