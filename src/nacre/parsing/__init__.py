"""Transcripts, parsed and redacted, also in worker processes."""
