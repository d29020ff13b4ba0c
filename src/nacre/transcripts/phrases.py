"""What tools themselves write where the owner's words stand: ``phrases.toml`` lists it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_EVERY_TOOL = "any"
_CLOSED = re.compile(r"\][^\S\n]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Phrases:
    """What one tool writes; ``phrases.toml`` says what each of them means."""

    begins: tuple[str, ...]
    whole: tuple[str, ...]
    holds: tuple[str, ...]
    lines: tuple[str, ...]
    ends: tuple[str, ...]


def is_tools(tool: str, text: str) -> bool:
    """Whether the tool itself wrote a message."""
    text = text.strip()
    return any(
        text.startswith(phrases.begins) or text in phrases.whole or any(_at_lines(text, phrases.holds))
        for phrases in _phrases_of(tool)
    )


def without_tools_lines(tool: str, text: str) -> tuple[str, tuple[str, ...]]:
    """A message without the lines that its tool wrote, and those."""
    cut: list[str] = []
    for phrases in _phrases_of(tool):
        end = next(_at_lines(text, phrases.ends), len(text))
        cut += [text[end:]] if end < len(text) else []
        text = text[:end]
        for at in reversed(list(_at_lines(text, phrases.lines))):
            end = _end_of_line(text, at)
            cut.append(text[at:end])
            text = text[:at] + text[end:].lstrip("\n")
    return (text.strip(), tuple(reversed(cut))) if cut else (text, ())


def channels() -> list[str]:
    """What bridges to chats call their channels."""
    return _tables()["channels"]["names"]


def _end_of_line(text: str, at: int) -> int:
    """Where a tool's line ends: one in brackets may be several."""
    closed = _CLOSED.search(text, at) if text[at] == "[" else None
    end = text.find("\n", at)
    return closed.end() if closed else (end if end >= 0 else len(text))


def _at_lines(text: str, phrases: tuple[str, ...]) -> Iterator[int]:
    """The places of the lines that begin with one of some phrases."""
    at = 0 if any(phrase in text for phrase in phrases) else len(text)
    while at < len(text):
        if text.startswith(phrases, at):
            yield at
        at = text.find("\n", at) + 1 or len(text)


@cache
def _phrases_of(tool: str) -> tuple[Phrases, ...]:
    """The phrases of every tool, and those of one."""
    found = [_tables().get(name, {}) for name in (_EVERY_TOOL, tool)]
    return tuple(
        Phrases(*(tuple(told.get(kind, ())) for kind in ("begins", "whole", "holds", "lines", "ends")))
        for told in found
    )  # fmt: skip


@cache
def _tables() -> dict[str, dict[str, list[str]]]:
    file = Path(__file__).with_name("phrases.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
