"""Take secrets out of lines of JSON, whoever reads them or not, so that they stay JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from nacre.archive.payload import Payload

CleanAll = Callable[[Sequence[str]], Sequence[str]]
"""Texts without secrets, in the same order."""

_DECODER = msgspec.json.Decoder()
_PAIR_CHARACTERS = 400
"""A longer value says itself what it is; a shorter one may be a secret by its name alone."""

_ENCODED_CHARACTERS = 1000
_ENCODED = re.compile(r"(?:data:[\w.+/;=-]+,)?[A-Za-z0-9+/_-]+={0,2}")
_SEALED = frozenset({"signature", "thinkingSignature", "thoughtSignature", "encrypted_content"})
"""What a model's maker sealed: no one can read it, and its own tool wants it back."""

_TELLING = re.compile(r"(?i)pass|pwd|pin|secret|token|key|cred|auth|code")


def clean_lines(raw: bytes, clean_all: CleanAll) -> Payload:
    """Lines of a transcript as the archive keeps them.

    Every text in them is looked at by itself and, where it is short, together with its name. Images and other bytes
    that were written as text are left out.
    """
    lines = raw.split(b"\n")
    values = [_decoded(line) for line in lines]
    cleaned = _Cleaned(values, lines, clean_all)
    kept = [cleaned.line(line, value) for line, value in zip(lines, values, strict=True)]
    lengths = tuple((number, len(line)) for number, line in enumerate(lines) if len(line) != len(kept[number]))
    return Payload(b"\n".join(kept), lengths)


def texts_of(line: bytes) -> Iterator[str]:
    """Every text and name in a line; the line itself where it is no JSON."""
    value = _decoded(line)
    yield from (line.decode("utf-8", "replace"),) if value is None else _texts(value, "")


class _Cleaned:
    """What the texts of some lines are to be; those that stay as they are are not in it."""

    def __init__(self, values: Sequence[Any], lines: Sequence[bytes], clean_all: CleanAll) -> None:
        self._clean_all = clean_all
        texts: dict[str, None] = {}
        for line, value in zip(lines, values, strict=True):
            if value is not None:
                texts.update(dict.fromkeys(_texts(value, "")))
            elif line and not line.isspace():
                texts[line.decode("utf-8", "replace")] = None
        wanted = list(texts)
        self._changed = {
            old: new for old, new in zip(wanted, clean_all(wanted), strict=True) if old != new
        }  # fmt: skip

    def line(self, line: bytes, value: Any) -> bytes:
        """A line as it is kept: untouched, where nothing in it changes."""
        if value is None:
            new = self._changed.get(line.decode("utf-8", "replace"))
            return line if new is None else new.replace("\n", " ").encode("utf-8", "replace")
        kept = self._value(value, "")
        return line if kept is value else msgspec.json.encode(kept)

    def _value(self, value: Any, name: str) -> Any:
        """A value without secrets; the same object where there are none."""
        if isinstance(value, str):
            return self._text(value, name)
        if isinstance(value, dict):
            pairs = [(self._changed.get(key, key), self._value(item, key)) for key, item in value.items()]
            is_same = all(old[0] is new[0] and old[1] is new[1] for old, new in zip(value.items(), pairs, strict=True))
            return value if is_same else dict(pairs)
        if isinstance(value, list):
            items = [self._value(item, name) for item in value]
            return value if all(old is new for old, new in zip(value, items, strict=True)) else items
        if _is_telling(value, name):
            new = self._changed.get(_pair(name, str(value)))
            return value if new is None else _value_of(new, name)
        return value

    def _text(self, text: str, name: str) -> str:
        if _is_encoded(text, name):
            return f"[{len(text):,} characters of encoded bytes were left out]"
        paired = self._changed.get(_pair(name, text)) if len(text) <= _PAIR_CHARACTERS else None
        if paired is not None:
            return self._clean_all([_value_of(paired, name)])[0]
        return self._changed.get(text, text)


def _decoded(line: bytes) -> Any:
    if line[:1] not in (b"{", b"["):
        return None
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _texts(value: Any, name: str) -> Iterator[str]:
    """What is looked at for secrets: every text and name, and short ones with the name before them."""
    if isinstance(value, str):
        if not _is_encoded(value, name):
            yield value
            if len(value) <= _PAIR_CHARACTERS:
                yield _pair(name, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, name)
    elif _is_telling(value, name):
        yield _pair(name, str(value))


def _is_telling(value: Any, name: str) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and _TELLING.search(name) is not None


def _pair(name: str, text: str) -> str:
    return f'"{name}": "{text}"'


def _value_of(pair: str, name: str) -> str:
    """The value in a pair that was cleaned; where that cannot be told, nothing of it."""
    before = f'"{name}": "'
    return pair[len(before) : -1] if pair.startswith(before) and pair.endswith('"') else "[REDACTED:value]"


def _is_encoded(text: str, name: str) -> bool:
    return len(text) >= _ENCODED_CHARACTERS and name not in _SEALED and _ENCODED.fullmatch(text) is not None


def clean_whole(raw: bytes, clean_all: CleanAll) -> Payload | None:
    """A transcript that is one text, or one value of JSON over many lines; ``None`` where it is no text."""
    bare = raw.strip()
    value = _decoded(bare)
    if value is None:
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return Payload(raw) if (clean := clean_all([text])[0]) == text else Payload(clean.encode("utf-8", "replace"))
    kept = _Cleaned([value], [bare], clean_all).line(bare, value)
    return Payload(raw if kept is bare else kept)
