"""Benchmarks of contradictions: by rules and by models."""
