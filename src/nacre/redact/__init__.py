"""Redaction: secrets leave a text before anything stores, embeds, logs or commits it."""

from nacre.redact.redactor import Redacted, Redactor

__all__ = ["Redacted", "Redactor"]
