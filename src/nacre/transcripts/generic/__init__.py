"""Formats of no tool in particular: JSON lines, Markdown, plain text."""
