"""Aider's histories."""
