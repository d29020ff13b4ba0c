"""Plain text of any origin: notes, logs of a chat, minutes. The owner's, as far as anybody can tell.

A text has no id of its own: the session is named after the file's name and path, so that a text stays one
session while it is edited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from nacre.platform.days import in_utc
from nacre.platform.ids import turn_hash
from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.conversation import hashed_id
from nacre.transcripts.injected import clean
from nacre.values.session import Flag, Session, Speaker, Turn

TOOL = "text"
TURN_CHARACTERS = 2_000

_DATE_IN_NAME = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?:[ T_-]?(\d{2})[:_-]?(\d{2})(?:[:_-]?(\d{2}))?(?!\d))?")
_UNDECODABLE_SHARE = 0.05
_NOT_TEXT = frozenset({".json", ".jsonl", ".lock", ".zst", ".svg", ".xml", ".html", ".htm", ".csv", ".tsv"})


def is_text(head: Head) -> bool:
    """Whether a file is text that somebody may have written: not empty, not binary, not data."""
    if b"\x00" in head.data or not head.data.strip():
        return False
    name = head.path.name.lower()
    if head.path.suffix.lower() in _NOT_TEXT or ".jsonl." in name or head.objects:
        return False  # a transcript that was renamed may begin with a line that is torn as yet
    # The head may end in the middle of a character.
    undecodable = head.text[:-1].count("\ufffd")
    return undecodable <= len(head.text) * _UNDECODABLE_SHARE


def name_session(path: Path) -> str:
    """The id of the session in a file that has none of its own."""
    return f"{path.stem}-{turn_hash('file', path.absolute().as_posix(), 0)[:8]}"


def date_in_name(name: str) -> datetime | None:
    """Return the local day, and perhaps the time, in a file's name or a title."""
    match = _DATE_IN_NAME.search(name)
    if match is None:
        return None
    try:
        day, clock = match.groups()[:3], match.groups("00")[3:]
        return in_utc(datetime.fromisoformat(f"{'-'.join(day)} {':'.join(clock)}"))
    except (OverflowError, ValueError):
        return None


def make_turns(texts: Iterable[str], time: datetime | None) -> Iterator[Turn]:
    """One turn of the owner for each text that says something."""
    seen: dict[str, object] = {}
    for text in texts:
        cleaned = clean(text)
        if cleaned.text:
            flags = Flag.INJECTED if cleaned.injected else Flag.NONE
            identity = hashed_id(seen, Speaker.OWNER, None, cleaned.text)
            yield Turn(identity, Speaker.OWNER, cleaned.text, time, flags=flags)


def group_paragraphs(text: str, limit: int = TURN_CHARACTERS) -> Iterator[str]:
    """Paragraphs together as long as they fit; one that is longer alone is cut between words."""
    group = ""
    for paragraph in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        for piece in _pieces(paragraph.strip("\n"), limit):
            if group and len(group) + len(piece) + 2 > limit:
                yield group
                group = ""
            group = f"{group}\n\n{piece}" if group else piece
    if group.strip():
        yield group


def _pieces(paragraph: str, limit: int) -> Iterator[str]:
    while len(paragraph) > limit:
        cut = max(paragraph.rfind(mark, limit // 2, limit) for mark in ("\n", ". ", "。", " "))
        cut = cut + 1 if cut > 0 else limit
        yield paragraph[:cut].rstrip()
        paragraph = paragraph[cut:].lstrip()
    if paragraph:
        yield paragraph


def parse(source: Source) -> Iterator[Session | Turn]:
    """Parse one text; see :class:`~nacre.transcripts.adapter.Adapter`."""
    time = date_in_name(source.path.name)
    turns = list(make_turns(group_paragraphs(source.text()), time))
    if turns:
        yield Session(TOOL, name_session(source.path), title=source.path.stem, started=time)
        yield from turns


def _roots(_: Places) -> Sequence[Root]:
    return ()


ADAPTER = Adapter(
    tool=TOOL,
    label="Plain text",
    roots=_roots,
    sniff=is_text,
    parse=parse,
    whole=True,
    guesses=True,
    versions="any",
    reads=("paragraphs", "a date in the file's name"),
    leaves_out=(),
)
