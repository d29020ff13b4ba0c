"""Readers of transcripts, one module per tool, and their shared code."""
