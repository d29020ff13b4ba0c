"""Transcripts as they were, without secrets, compressed: the format of packs, and what is kept of a line."""
