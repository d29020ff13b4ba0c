"""Quickstart, models, credentials, the writer, examples, and chores."""
