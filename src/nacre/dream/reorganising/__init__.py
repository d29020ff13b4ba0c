"""Reorganisation by evidence, without a writer: the inbox goes into projects, pages tell what was done and decided."""
