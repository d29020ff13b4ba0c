"""Read small transcripts that the tests write, the way nacre reads real ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nacre.model.cursor import Cursor
from nacre.model.session import Session, Turn
from nacre.transcripts.adapter import Adapter
from nacre.transcripts.reading import FileSource

Reading = tuple[list[Session], list[Turn], FileSource]
Read = Callable[..., Reading]
Write = Callable[..., Path]

NOON = 1_795_003_200


@pytest.fixture
def read() -> Iterator[Read]:
    """``read(adapter, path, cursor=None) -> (sessions, turns, source)``; go on with ``source.cursor()``."""
    opened: list[FileSource] = []

    def read_file(adapter: Adapter, path: Path, cursor: Cursor | None = None) -> Reading:
        source = FileSource(path, cursor)
        opened.append(source)
        found = list(adapter.parse(source))
        sessions = [item for item in found if isinstance(item, Session)]
        return sessions, [item for item in found if isinstance(item, Turn)], source

    yield read_file
    for source in opened:
        source.__exit__()


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
            assert list(found) == list(whole), f"cut after line {cut}"

    return check


def _said(adapter: Adapter, path: Path, cursor: Cursor | None) -> tuple[dict[tuple[str, str], Session | Turn], Cursor]:
    """What a reading says last of each session and each turn."""
    found: dict[tuple[str, str], Session | Turn] = {}
    session = ""
    with FileSource(path, cursor) as source:
        for item in adapter.parse(source):
            session = item.native_id if isinstance(item, Session) else session
            found[session, "" if isinstance(item, Session) else item.id] = item
        return found, source.cursor()
