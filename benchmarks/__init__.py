"""Benchmarks for developers of nacre: ``python -m benchmarks NAME``. See README.md in this folder."""
