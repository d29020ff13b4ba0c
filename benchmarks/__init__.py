"""Benchmarks for whoever develops nacre: ``python -m benchmarks NAME``. README.md beside this file lists them."""
