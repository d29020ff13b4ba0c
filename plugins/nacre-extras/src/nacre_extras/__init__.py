"""Extras: readers and importers that few people need, and the REST APIs of two other systems."""
