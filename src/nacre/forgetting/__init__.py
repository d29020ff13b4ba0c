"""Forget for good, and scrub secrets."""
