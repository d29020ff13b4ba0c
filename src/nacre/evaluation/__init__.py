"""Saved queries, asked again."""
