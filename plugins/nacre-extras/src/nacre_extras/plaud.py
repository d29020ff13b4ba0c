"""Plaud: transcripts of recorded conversations, as Markdown or text.

The owner's name is unknown, so all speakers count as the owner, and ``Turn.author`` has the
speaker's name. Times count from the start of the recording, whose date is in the file name.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

from nacre.base.frozen import frozen
from nacre.base.ids import turn_hash
from nacre.readers.adapter import Adapter, Head, Items, Source
from nacre.readers.conversation import clean
from nacre.readers.generic import TURN_CHARACTERS, date_in_name, is_text, role_of
from nacre.readers.trust import hashed_id
from nacre.values.session import Session, Speaker, Turn

TOOL = "plaud"

_CLOCK = r"(?P<clock>\d{1,2}:\d{2}(?::\d{2})?)(?:[.,]\d{1,3})?"
_UNTIL = r"(?:\s*(?:-|–|—|-->)\s*\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?)?"
_NAME = r"(?P<name>[^\W\d_][^:：\[\]*\n]{0,50}?)"
_HEADERS = (
    re.compile(rf"\[{_CLOCK}{_UNTIL}\]\s*{_NAME}\s*[:：]\s*(?P<text>.*)"),
    re.compile(rf"\[?{_CLOCK}{_UNTIL}\]?\s+{_NAME}\s*"),
    re.compile(
        rf"(?:\*\*)?{_NAME}(?:\*\*)?\s+[\[(]?{_CLOCK}{_UNTIL}[\])]?(?:\*\*)?\s*[:：]?\s*(?P<text>)"
    ),
    re.compile(
        r"\*\*(?P<name>(?:Speaker|说话人|发言人|讲者)\s*\d+)\s*[:：]?\*\*\s*[:：]?\s*(?P<text>.*)"
    ),
)
_PLAUD_NAME = re.compile(
    r"^\d{4}-\d{2}-\d{2} \d{2}[_:]?\d{2}.*\.md$|-transcript\.(?:txt|md)$", re.IGNORECASE
)
_MIN_PARTS = 3
_MAX_NAME_WORDS = 5


@frozen
class _Part:
    name: str
    seconds: int
    text: str


def parse(source: Source) -> Items:
    """Parse a transcript exported by Plaud."""
    start = date_in_name(source.path.name)
    turns: list[Turn] = []
    ids: dict[str, object] = {}
    for part in _join(_parts(source.text())):
        text, time = clean(part.text).text, start
        if text:
            with contextlib.suppress(OverflowError):
                time = start and start + timedelta(seconds=part.seconds)
            identity = hashed_id(ids, Speaker.OWNER, None, f"{part.name}\n{text}")
            turns.append(Turn(identity, Speaker.OWNER, text, time, author=part.name))
    if turns:
        first = f"{source.path.stem if start is None else start.isoformat()}\n{turns[0].text}"
        yield Session(TOOL, turn_hash("session", first, 0), title=source.path.stem, started=start)
        yield from turns


def _parts(text: str) -> Iterator[_Part]:
    parts: list[tuple[_Part, list[str]]] = []
    for line in text.splitlines():
        if header := _read_header(line.strip()):
            parts.append((header, [header.text]))
        elif parts:
            parts[-1][1].append(line)
    return (replace(part, text="\n".join(lines)) for part, lines in parts)


def _join(parts: Iterable[_Part]) -> list[_Part]:
    joined: list[_Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last and last.name == part.name and len(last.text) + len(part.text) < TURN_CHARACTERS:
            joined[-1] = replace(last, text=f"{last.text.rstrip()}\n{part.text}")
        else:
            joined.append(part)
    return joined


def _read_header(line: str) -> _Part | None:
    for pattern in _HEADERS:
        match = pattern.fullmatch(line)
        if match and len(match["name"].split()) <= _MAX_NAME_WORDS:
            groups = match.groupdict("")
            seconds = 0
            for part in groups.get("clock", "0").split(":"):
                seconds = seconds * 60 + int(part)
            return _Part(match["name"].strip(), seconds, groups.get("text", ""))
    return None


def _sniff(head: Head) -> bool:
    if not is_text(head):
        return False
    parts = [part for line in head.text.splitlines() if (part := _read_header(line.strip()))]
    if any(role_of(part.name.lower()) for part in parts):
        return False  # an exported chat
    if _PLAUD_NAME.search(head.path.name):
        return bool(parts)
    # In a conversation, names recur, unlike in a diary with times.
    return len(parts) >= _MIN_PARTS and len({part.name for part in parts}) * 2 <= len(parts) + 1


ADAPTER = Adapter(
    tool=TOOL,
    label="Plaud",
    sniff=_sniff,
    parse=parse,
    whole=True,
    guesses=True,
    versions="any*",
    reads="speakers",
    leaves_out="recordings; summaries; tokens",
)
