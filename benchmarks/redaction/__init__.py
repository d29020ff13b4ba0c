"""Benchmark of redaction."""
