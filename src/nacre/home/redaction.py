"""Takes secrets out of what is stored: memories, texts, JSON values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nacre.errors import MemoryInvalid
from nacre.redact.redactor import Redactor
from nacre.values.codec import with_texts
from nacre.values.memory import NAMES, Memory


def without_secrets(redactor: Redactor, text: str | None) -> str | None:
    """A text, unless it holds what looks like a secret: what a person wrote does not pass through the database then."""
    return text if text is None or redactor.clean(text) == text else None


def redacted(redactor: Redactor, memory: Memory) -> Memory:
    """A memory without secrets in any of its texts. Raises MemoryInvalid when nothing is left."""
    clean = redactor.clean
    subject, content = clean(memory.subject).strip(), clean(memory.content).strip()
    if not content:
        raise MemoryInvalid("a memory needs content", hint="say what is to be remembered")
    if not subject:
        raise MemoryInvalid("a memory needs a subject", hint="a few words that say what it is about")
    cleaned: Memory = with_texts(memory, clean, NAMES)
    return replace(cleaned, subject=subject, content=content)


def clean_values(redactor: Redactor, value: Any) -> Any:
    """JSON values without secrets in any of their texts."""
    return with_texts(value, redactor.clean, ())
