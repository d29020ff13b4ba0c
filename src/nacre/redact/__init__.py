"""Redaction: secrets leave a text before anything stores, embeds, logs or commits it."""

from nacre.redact.redactor import Redacted, Redactor, rule_names

__all__ = ["Redacted", "Redactor", "rule_names"]
