"""Benchmarks for recall on public data sets."""
