"""Take secrets out of lines of JSON, whoever reads them or not, so that they stay JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from nacre.packs.payload import Payload
from nacre.packs.prefilter import Sieve, Sifted
from nacre.packs.texts import (
    PAIR_CHARACTERS,
    CleanAll,
    FindSuspects,
    changes,
    decoded,
    is_encoded,
    is_telling,
    pair,
    texts_in,
)


class Cleaner:
    """Cleans transcripts, one part after another; what it learned of one helps with the next."""

    def __init__(self, clean_all: CleanAll, find_suspects: FindSuspects | None = None) -> None:
        """``find_suspects`` spares ``clean_all`` most of the texts."""
        self._clean_all = clean_all
        self._sieve = Sieve(clean_all, find_suspects)

    def lines(self, raw: bytes) -> Payload:
        """Lines of a transcript as the archive keeps them.

        Every text in them is looked at by itself and, where it is short, together with its name. Images and other
        bytes that were written as text are left out.
        """
        lines = raw.split(b"\n")
        sifted = self._sieve.sift(lines)
        if not sifted.suspects:
            return Payload(raw)
        suspects = [lines[number] for number in sifted.suspects]
        values = [decoded(line) for line in suspects]
        cleaned = _Cleaned(values, suspects, self._clean_all, sifted)
        lengths: list[tuple[int, int]] = []
        for number, line, value in zip(sifted.suspects, suspects, values, strict=True):
            lines[number] = cleaned.line(line, value)
            if lines[number] is line and number in sifted.sure:
                lines[number] = msgspec.json.encode(value)  # what changed stood under a name that comes twice: it goes
            if len(lines[number]) != len(line):
                lengths.append((number, len(line)))
        return Payload(b"\n".join(lines), tuple(lengths))


def clean_lines(raw: bytes, clean_all: CleanAll) -> Payload:
    """What :meth:`Cleaner.lines` says of some lines."""
    return Cleaner(clean_all).lines(raw)


def texts_of(line: bytes) -> Iterator[str]:
    """Every text and name in a line; the line itself where it is no JSON."""
    value = decoded(line)
    yield from (line.decode("utf-8", "replace"),) if value is None else texts_in(value)


class _Cleaned:
    """What the texts of some lines are to be; those that stay as they are are not in it."""

    def __init__(
        self, values: Sequence[Any], lines: Sequence[bytes], clean_all: CleanAll, sifted: Sifted | None = None
    ) -> None:
        self._clean_all = clean_all
        texts: dict[str, None] = {}
        for line, value in zip(lines, values, strict=True):
            if value is not None:
                texts.update(dict.fromkeys(texts_in(value)))
            elif line and not line.isspace():
                texts[line.decode("utf-8", "replace")] = None
        if sifted is None:
            self._changed = changes(texts, clean_all)
        else:
            rest = {text: None for text in texts if text not in sifted.asked}
            self._changed = sifted.changed | changes(rest, clean_all)

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
        if is_telling(value, name):
            new = self._changed.get(pair(name, str(value)))
            return value if new is None else _value_of(new, name)
        return value

    def _text(self, text: str, name: str) -> str:
        if is_encoded(text, name):
            return f"[{len(text):,} characters of encoded bytes were left out]"
        paired = self._changed.get(pair(name, text)) if len(text) <= PAIR_CHARACTERS else None
        if paired is not None:
            return self._clean_all([_value_of(paired, name)])[0]
        return self._changed.get(text, text)


def _value_of(paired: str, name: str) -> str:
    """The value in a pair that was cleaned; where that cannot be told, nothing of it."""
    before = f'"{name}": "'
    return paired[len(before) : -1] if paired.startswith(before) and paired.endswith('"') else "[REDACTED:value]"


def clean_whole(raw: bytes, clean_all: CleanAll) -> Payload | None:
    """A transcript that is one text, or one value of JSON over many lines; ``None`` where it is no text."""
    bare = raw.strip()
    value = decoded(bare)
    if value is None:
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return Payload(raw) if (clean := clean_all([text])[0]) == text else Payload(clean.encode("utf-8", "replace"))
    kept = _Cleaned([value], [bare], clean_all).line(bare, value)
    return Payload(raw if kept is bare else kept)
