"""Redaction of secrets in text."""
