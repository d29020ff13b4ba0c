"""Benchmark of the context that agents receive with a prompt."""
