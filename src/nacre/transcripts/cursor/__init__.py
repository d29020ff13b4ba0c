"""Cursor: agent transcripts and databases."""
