"""Recall of memories and session turns."""
