"""Takes secrets out of what is stored: memories, texts, JSON values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nacre.errors import MemoryInvalid
from nacre.redact.redactor import Redactor
from nacre.values.memory import Claim, Memory


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
    return replace(
        memory,
        subject=subject,
        content=content,
        tags=tuple(clean(tag) for tag in memory.tags),
        triggers=tuple(clean(trigger) for trigger in memory.triggers),
        author=clean(memory.author) if memory.author else None,
        canonical_key=clean(memory.canonical_key) if memory.canonical_key else None,
        claim=_cleaned(memory.claim, clean) if memory.claim else None,
        suppressed_contexts=tuple(clean(text) for text in memory.suppressed_contexts),
        source=replace(memory.source, file=clean(memory.source.file)) if memory.source.file else memory.source,
        links=tuple(replace(link, reason=clean(link.reason)) if link.reason else link for link in memory.links),
        retired=replace(memory.retired, reason=clean(memory.retired.reason))
        if memory.retired and memory.retired.reason
        else memory.retired,
        extra=clean_values(redactor, memory.extra),
    )


def _cleaned(claim: Claim, clean: Callable[[str], str]) -> Claim:
    entity, attribute = clean(claim.entity), clean(claim.attribute)
    return replace(
        claim, entity=entity, attribute=attribute, predicate=clean(claim.predicate), object=clean(claim.object)
    )


def clean_values(redactor: Redactor, value: Any) -> Any:
    """JSON values without secrets in any of their texts."""
    if isinstance(value, str):
        return redactor.clean(value)
    if isinstance(value, dict):
        return {key: clean_values(redactor, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_values(redactor, item) for item in value]
    return value
