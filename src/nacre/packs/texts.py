"""What in a value of JSON is looked at for secrets: texts, names, and short texts and numbers with their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

CleanAll = Callable[[Sequence[str]], Sequence[str]]
"""Texts without secrets, in the same order."""

PAIR_CHARACTERS = 400
"""A longer value says itself what it is; a shorter one may be a secret by its name alone."""

FindSuspects = Callable[[Sequence[bytes]], Collection[int]]
"""The numbers of those pieces of text in which a secret may be."""

_DECODER = msgspec.json.Decoder()
ENCODED_CHARACTERS = 1000
_ENCODED = re.compile(r"(?:data:[\w.+/;=-]+,)?[A-Za-z0-9+/_-]+={0,2}")
_SEALED = frozenset({"signature", "thinkingSignature", "thoughtSignature", "encrypted_content"})
"""What a model's maker sealed: no one can read it, and its own tool wants it back."""

_TELLING = re.compile(r"(?i)pass|pwd|pin|secret|token|key|cred|auth|code")


def decoded(line: bytes) -> Any:
    """The object or list in a line; ``None`` where it is none."""
    if line[:1] not in (b"{", b"["):
        return None
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def texts_in(value: Any) -> list[str]:
    """What is looked at: every text and name but encoded bytes, and short ones with the name before them."""
    texts: list[str] = []
    _collect(value, "", texts)
    return texts


def holds_encoded(value: Any, name: str = "") -> bool:
    """Whether any text is bytes that were written as one."""
    if isinstance(value, str):
        return is_encoded(value, name)
    if isinstance(value, dict):
        return any(holds_encoded(item, key) for key, item in value.items())
    return isinstance(value, list) and any(holds_encoded(item, name) for item in value)


def is_telling(value: Any, name: str) -> bool:
    """Whether a number may be a secret by its name."""
    return isinstance(value, int | float) and not isinstance(value, bool) and is_telling_name(name)


def is_telling_name(name: str) -> bool:
    """Whether a number of that name may be a secret."""
    return _TELLING.search(name) is not None


def is_encoded(text: str, name: str) -> bool:
    """Whether a text is bytes that were written as one, and nobody needs back."""
    return len(text) >= ENCODED_CHARACTERS and name not in _SEALED and _ENCODED.fullmatch(text) is not None


def pair(name: str, text: str) -> str:
    """A text with its name, as rules know it."""
    return f'"{name}": "{text}"'


def changes(texts: dict[str, None], clean_all: CleanAll) -> dict[str, str]:
    """The texts that become others, and which."""
    wanted = list(texts)
    return {old: new for old, new in zip(wanted, clean_all(wanted), strict=True) if old != new}


def _collect(value: Any, name: str, texts: list[str]) -> None:
    if isinstance(value, str):
        if not is_encoded(value, name):
            texts.append(value)
            if len(value) <= PAIR_CHARACTERS:
                texts.append(pair(name, value))
    elif isinstance(value, dict):
        for key, item in value.items():
            texts.append(key)
            _collect(item, key, texts)
    elif isinstance(value, list):
        for item in value:
            _collect(item, name, texts)
    elif is_telling(value, name):
        texts.append(pair(name, str(value)))
