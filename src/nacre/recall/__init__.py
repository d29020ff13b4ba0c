"""Recall."""
