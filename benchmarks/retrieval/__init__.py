"""Benchmarks of recall on public data sets."""
