"""Benchmark of dreams over a year of memories."""
