"""Transcripts into sessions in the index."""
