"""Fixtures that write small transcripts and read them as nacre does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from nacre.home.parsing import open_transcript
from nacre.readers.adapter import Adapter, FileSource
from nacre.values.session import Cursor, Session, Turn

Reading = tuple[list[Session], list[Turn], FileSource]
Read = Callable[..., Reading]
Write = Callable[..., Path]

NOON = 1_795_003_200


@pytest.fixture
def read() -> Iterator[Read]:
    """``read(adapter, path, cursor=None, identities=()) -> (sessions, turns, source)``.

    To continue a reading, pass ``source.cursor()``.
    """
    sources: list[FileSource] = []

    def read_file(
        adapter: Adapter, path: Path, cursor: Cursor | None = None, identities: tuple[str, ...] = ()
    ) -> Reading:
        source = FileSource(path, cursor)
        source.identities = identities
        sources.append(source)
        items = list(adapter.parse(source))
        sessions = [item for item in items if isinstance(item, Session)]
        return sessions, [item for item in items if isinstance(item, Turn)], source

    yield read_file
    for source in sources:
        source.__exit__()


@dataclass
class TranscriptReading:
    """The result of reading a database once: the last version of each session, and its turns."""

    tool: str
    sessions: dict[str, Session]
    turns: dict[str, list[Turn]]
    unknown: dict[str, int]
    corrupt: int
    cursor: Cursor

    def messages(self, session: str) -> list[tuple[str, str]]:
        """Return the speaker and the text of each turn of a session."""
        return [(turn.speaker.value, turn.text) for turn in self.turns[session]]


@pytest.fixture
def look() -> Callable[..., TranscriptReading]:
    """``look(path, cursor=None)`` reads a transcript as ingest does, databases included."""

    def look_into(
        path: Path, cursor: Cursor | None = None, tool: str | None = None
    ) -> TranscriptReading:
        with open_transcript(path, tool, cursor) as (adapter, source):
            assert adapter
            result = TranscriptReading(adapter.tool, {}, {}, {}, 0, Cursor())
            for item in adapter.parse(source):
                if isinstance(item, Session):
                    session = item
                    result.sessions[item.native_id] = item
                    result.turns.setdefault(item.native_id, [])
                else:
                    result.turns[session.native_id].append(item)
            carried = json.loads(json.dumps(source.carry))
            result.cursor = replace(source.cursor(), carry=carried)
            result.unknown, result.corrupt = dict(source.tally.unknown), source.tally.corrupt
            return result

    return look_into


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write(name, *records) -> path`` writes one record per line. Text and bytes are written as
    is."""

    def write_file(name: str, *records: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(_line(record) for record in records))
        return path

    return write_file


def _line(record: Any) -> bytes:
    if isinstance(record, bytes):
        return record
    if isinstance(record, str):
        return record.encode() + b"\n"
    return json.dumps(record).encode() + b"\n"


@pytest.fixture
def in_two_goes(tmp_path: Path) -> Callable[[Adapter, Path], None]:
    """Check that a growing file, read in two steps, gives the same result as a single reading."""

    def check(adapter: Adapter, path: Path) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        growing = tmp_path / "growing" / path.parent.name / path.name
        growing.parent.mkdir(parents=True, exist_ok=True)

        def grow(count: int) -> None:
            growing.write_bytes(b"".join(lines[:count]))
            os.utime(growing, (NOON, NOON))

        grow(len(lines))
        whole, _ = _latest_versions(adapter, growing, None)
        for cut in range(1, len(lines)):
            grow(cut)
            early, cursor = _latest_versions(adapter, growing, None)
            grow(len(lines))
            late, _ = _latest_versions(adapter, growing, cursor)
            combined = {**early, **late}
            assert combined == whole, f"cut after line {cut}"
            assert sorted(combined, key=_session) == sorted(whole, key=_session), (
                f"order, cut after line {cut}"
            )

    return check


def _session(key: tuple[str, str]) -> str:
    """Return the sort key: turns are ordered only within their session."""
    return key[0]


def _latest_versions(
    adapter: Adapter, path: Path, cursor: Cursor | None
) -> tuple[dict[tuple[str, str], Session | Turn], Cursor]:
    """Return the last version of each session and turn of a reading."""
    items: dict[tuple[str, str], Session | Turn] = {}
    session = ""
    with FileSource(path, cursor) as source:
        for item in adapter.parse(source):
            session = item.native_id if isinstance(item, Session) else session
            items[session, "" if isinstance(item, Session) else item.id] = item
        return items, source.cursor()
