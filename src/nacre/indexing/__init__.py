"""Vectors and full text follow what is stored."""
