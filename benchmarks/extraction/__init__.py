"""Benchmark of extraction on labelled sessions."""
