"""Read small transcripts that the tests write, the way nacre reads real ones."""

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
    """``read(adapter, path, cursor=None, identities=()) -> (sessions, turns, source)``; go on with
    ``source.cursor()``."""
    opened: list[FileSource] = []

    def read_file(
        adapter: Adapter, path: Path, cursor: Cursor | None = None, identities: tuple[str, ...] = ()
    ) -> Reading:
        source = FileSource(path, cursor)
        source.identities = identities
        opened.append(source)
        found = list(adapter.parse(source))
        sessions = [item for item in found if isinstance(item, Session)]
        return sessions, [item for item in found if isinstance(item, Turn)], source

    yield read_file
    for source in opened:
        source.__exit__()


@dataclass
class Looked:
    """What one reading of a database gave: sessions as they were last told, turns by session, what was not known."""

    tool: str
    sessions: dict[str, Session]
    turns: dict[str, list[Turn]]
    unknown: dict[str, int]
    corrupt: int
    cursor: Cursor

    def said(self, session: str) -> list[tuple[str, str]]:
        """Who said what in a session."""
        return [(turn.speaker.value, turn.text) for turn in self.turns[session]]


@pytest.fixture
def look() -> Callable[..., Looked]:
    """``look(path, cursor=None)`` reads a transcript as ingest does, databases included."""

    def look_into(path: Path, cursor: Cursor | None = None, tool: str | None = None) -> Looked:
        with open_transcript(path, tool, cursor) as (adapter, source):
            assert adapter
            found = Looked(adapter.tool, {}, {}, {}, 0, Cursor())
            for item in adapter.parse(source):
                if isinstance(item, Session):
                    session = item
                    found.sessions[item.native_id] = item
                    found.turns.setdefault(item.native_id, [])
                else:
                    found.turns[session.native_id].append(item)
            carried = json.loads(json.dumps(source.carry))
            found.cursor = replace(source.cursor(), carry=carried)
            found.unknown, found.corrupt = dict(source.tally.unknown), source.tally.corrupt
            return found

    return look_into


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write(name, *records) -> path``: one line a record; text and bytes go in as they are."""

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
    """Reading a file as it grows, cut at any line, must give what reading it at once gives."""

    def check(adapter: Adapter, path: Path) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        growing = tmp_path / "growing" / path.parent.name / path.name
        growing.parent.mkdir(parents=True, exist_ok=True)

        def grow(count: int) -> None:
            growing.write_bytes(b"".join(lines[:count]))
            os.utime(growing, (NOON, NOON))

        grow(len(lines))
        whole, _ = _said(adapter, growing, None)
        for cut in range(1, len(lines)):
            grow(cut)
            early, cursor = _said(adapter, growing, None)
            grow(len(lines))
            late, _ = _said(adapter, growing, cursor)
            found = {**early, **late}
            assert found == whole, f"cut after line {cut}"
            assert sorted(found, key=_session) == sorted(whole, key=_session), (
                f"order, cut after line {cut}"
            )

    return check


def _session(said: tuple[str, str]) -> str:
    """Turns have an order within their session."""
    return said[0]


def _said(
    adapter: Adapter, path: Path, cursor: Cursor | None
) -> tuple[dict[tuple[str, str], Session | Turn], Cursor]:
    """What a reading says last of each session and each turn."""
    found: dict[tuple[str, str], Session | Turn] = {}
    session = ""
    with FileSource(path, cursor) as source:
        for item in adapter.parse(source):
            session = item.native_id if isinstance(item, Session) else session
            found[session, "" if isinstance(item, Session) else item.id] = item
        return found, source.cursor()
