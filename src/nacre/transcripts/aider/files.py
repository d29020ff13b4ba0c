"""Where Aider keeps its histories, and what the files beside one another tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from nacre.transcripts.adapter import Head, Places, Root

TOOL = "aider"

CHAT, INPUT, LLM = ".aider.chat.history.md", ".aider.input.history", ".aider.llm.history"

_ENTRY = re.compile(r"^# (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)[ \t]*$")
_MOST_INPUT = 32 * 1024 * 1024

Typed = tuple[datetime, str]
"""When something was typed, and what."""


def local_time(text: str) -> datetime | None:
    """A time as Aider writes it: that of the machine, without its zone. In UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC)  # one without a zone is the machine's
    except (ValueError, OverflowError, OSError):
        return None


def same_words(text: str) -> str:
    """A prompt as it is compared: the histories differ in spaces at the ends of lines."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def typed_beside(chat: Path) -> list[Typed]:
    """What was typed, from the input history beside a chat history; empty when there is none."""
    name = chat.name.replace(".chat.history", ".input.history").removesuffix(".md")
    path = chat.with_name(name)
    try:
        if path == chat or path.stat().st_size > _MOST_INPUT:
            return []
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return []
    found: list[Typed] = []
    time: datetime | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), "# 0001-01-02 00:00:00"]:
        begins = _ENTRY.match(line)
        if begins:
            found += [(time, same_words("\n".join(lines)))] if time and lines else []
            time, lines = local_time(begins[1]), []
        elif line.startswith("+"):
            lines.append(line[1:])
    return found


def is_input(head: Head) -> bool:
    """Whether a file is an input history: it tells when, and is no transcript of its own."""
    lines = [line for line in head.text.splitlines() if line.strip()][:2]
    return len(lines) == 2 and bool(_ENTRY.match(lines[0])) and lines[1].startswith("+")


def roots(places: Places, name: str, variable: str) -> Sequence[Root]:
    """A history lies in its repository: in folders in which any tool worked, at home, or where Aider was told."""
    told = places.environ.get(variable)
    path = Path(told).expanduser() if told else None
    at = [Root(path.parent, (path.name,))] if path and path.is_absolute() else []
    return [*at, *(Root(folder, (name,)) for folder in (places.home, *places.projects))]
