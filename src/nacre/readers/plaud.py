"""Plaud: transcripts of recorded talk, as Markdown, text or subtitles.

The speakers are people. Which of them is the owner cannot be known, so everybody speaks as the owner, under
the name that the recorder gave: ``Turn.author``. Times count from the start of the recording, which the
file's name dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from nacre.base.ids import turn_hash
from nacre.readers.adapter import Adapter, Head, Items, Places, Root, Source
from nacre.readers.conversation import clean
from nacre.readers.generic import TURN_CHARACTERS, date_in_name, is_text
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
_SUBTITLE = re.compile(
    r"(?P<clock>\d{2}:\d{2}:\d{2})[.,]\d{3}\s*-->\s*\d{2}:\d{2}:\d{2}[.,]\d{3}.*"
)
_SUBTITLE_NAME = re.compile(rf"{_NAME}\s*[:：]\s+(?P<text>.+)")
_PLAUD_NAME = re.compile(
    r"^\d{4}-\d{2}-\d{2} \d{2}[_:]?\d{2}.*\.md$|-transcript\.(?:txt|md|srt)$", re.IGNORECASE
)
_FEWEST = 3
_MOST_WORDS = 5


@dataclass(frozen=True, slots=True)
class _Part:
    """What one person said in one go."""

    name: str | None
    seconds: int | None
    text: str


def parse(source: Source) -> Items:
    """Parse one transcript; see :class:`~nacre.readers.adapter.Adapter`."""
    start = date_in_name(source.path.name)
    turns = list(_turns(_joined(_parts(source.text())), start))
    if turns:
        first = f"{source.path.stem if start is None else start.isoformat()}\n{turns[0].text}"
        yield Session(TOOL, turn_hash("session", first, 0), title=source.path.stem, started=start)
        yield from turns


def _turns(parts: Iterator[_Part], start: datetime | None) -> Iterator[Turn]:
    seen: dict[str, object] = {}
    for part in parts:
        text = clean(part.text).text
        if text:
            time = _moment(start, part.seconds or 0) if start else None
            identity = hashed_id(seen, Speaker.OWNER, None, f"{part.name or ''}\n{text}")
            yield Turn(identity, Speaker.OWNER, text, time, author=part.name)


def _moment(start: datetime, seconds: int) -> datetime:
    try:
        return start + timedelta(seconds=seconds)
    except OverflowError:
        return start


def _parts(text: str) -> Iterator[_Part]:
    """What was said, from each line that names a speaker to the next."""
    part: _Part | None = None
    lines: list[str] = []
    for line in text.splitlines():
        header = _read_header(line.strip())
        if header is None:
            lines.append(line)
            continue
        if part:
            yield _complete(part, lines)
        part, lines = header, [header.text]
    if part:
        yield _complete(part, lines)


def _complete(part: _Part, lines: Sequence[str]) -> _Part:
    """A subtitle ends with the number of the next one, and may name its speaker in its text."""
    if part.name is not None:
        return replace(part, text="\n".join(lines))
    kept = [line for line in lines if line.strip() and not line.strip().isdigit()]
    named = _SUBTITLE_NAME.fullmatch(kept[0].strip()) if kept else None
    if named is None:
        return replace(part, text="\n".join(kept))
    return replace(part, name=named["name"].strip(), text="\n".join([named["text"], *kept[1:]]))


def _joined(parts: Iterator[_Part]) -> Iterator[_Part]:
    """Subtitles cut a speech into seconds; a speaker who goes on has one turn, within limits."""
    last: _Part | None = None
    for part in parts:
        if last and last.name == part.name and len(last.text) + len(part.text) < TURN_CHARACTERS:
            last = replace(last, text=f"{last.text.rstrip()}\n{part.text}")
            continue
        if last:
            yield last
        last = part
    if last:
        yield last


def _read_header(line: str) -> _Part | None:
    subtitle = _SUBTITLE.fullmatch(line)
    if subtitle:
        return _Part(None, _seconds(subtitle["clock"]), "")
    for pattern in _HEADERS:
        match = pattern.fullmatch(line)
        if match and len(match["name"].split()) <= _MOST_WORDS:
            found = match.groupdict()
            clock = found.get("clock")
            return _Part(
                match["name"].strip(), _seconds(clock) if clock else None, found.get("text") or ""
            )
    return None


def _seconds(clock: str) -> int:
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds


def _sniff(head: Head) -> bool:
    if not is_text(head):
        return False
    parts = [part for line in head.text.splitlines() if (part := _read_header(line.strip()))]
    if _PLAUD_NAME.search(head.path.name):
        return bool(parts)
    # A diary has times too, but in a talk the same people speak again and again.
    return len(parts) >= _FEWEST and len({part.name for part in parts}) * 2 <= len(parts) + 1


def _roots(_: Places) -> Sequence[Root]:
    return ()


ADAPTER = Adapter(
    tool=TOOL,
    label="Plaud",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    whole=True,
    versions="transcripts as Markdown, text and subtitles (from their description)",
    reads=("messages with speakers", "times"),
    leaves_out=("recordings", "summaries"),
)
