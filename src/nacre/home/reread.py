"""Read sessions from the archive, as if from the transcripts that it keeps."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from nacre.errors import NacreError
from nacre.home import archive_packs
from nacre.home.home import Home
from nacre.home.parsing import Batch, FileFailed, batches, parsed
from nacre.readers.adapter import HEAD_BYTES, Adapter, Head, Source, Tables
from nacre.readers.registry import adapters
from nacre.store.packs import LINES, Payload, Segment
from nacre.store.sessions import Archived
from nacre.values.reports import Problem
from nacre.values.session import Session, Tally, Turn

_TURNS_A_BATCH = 400
_NOWHERE = "nowhere"
"""A folder in the archive that never is."""


class KeptSession(msgspec.Struct):
    """A line before the turns of a session, where a pack holds those: the session, and its project's slug."""

    session: Session
    project: str | None = None


_SESSION = msgspec.json.Decoder(KeptSession)
_TURN = msgspec.json.Decoder(Turn)


class ArchivedSource:
    """A :class:`~nacre.readers.adapter.Source` of what is archived of one file, from its beginning."""

    def __init__(
        self, path: Path, parts: Iterable[tuple[int, Payload]], identities: tuple[str, ...] = ()
    ) -> None:
        """``path`` is what an adapter takes names from; no file need be there."""
        self.path = path
        self.identities = identities
        self.tally = Tally()
        self.carry: dict[str, Any] = {}
        self.database: Tables | None = None
        self.start = 0
        self._parts = parts

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Complete lines with the offsets that they had."""
        for start, payload in self._parts:
            for at, line in payload.lines(start):
                if line and not line.isspace():
                    yield at, line

    def text(self) -> str:
        """All of it."""
        return b"".join(payload.text for _, payload in self._parts).decode(
            "utf-8-sig", errors="replace"
        )

    def hold(self, offset: int) -> None:
        """Nothing follows that could make a message grow."""

    def unknown(self, record: str) -> None:
        """It was counted when the transcript was read."""

    def corrupt(self) -> None:
        """It was counted when the transcript was read."""

    def look(self, path: Path) -> Tables | None:  # noqa: ARG002 - databases are not archived as they are
        """There is none."""
        return None


def missing(home: Home) -> list[Archived]:
    """What the archive has and no transcript tells any more, the oldest first."""
    return [
        state for state in reversed(home.archive.all()) if state.pack and _is_missing(home, state)
    ]


def read_archived(home: Home, states: Iterable[Archived]) -> Iterator[Batch | FileFailed]:
    """The sessions in some packs. What cannot be read is an event, never the end."""
    for state in states:
        try:
            yield from _batches_of(home, state)
        except NacreError as error:
            yield FileFailed(
                Path(state.path), state.size, Problem(state.path, error.message, error.hint)
            )
        except Exception as error:  # noqa: BLE001 - a damaged pack or anybody's adapter costs its own file only
            told = f"cannot be read from the archive: {type(error).__name__}: {error}"
            yield FileFailed(
                Path(state.path), state.size, Problem(state.path, told, "nacre archive verify")
            )


Outline = dict[str, tuple[tuple[object, ...], list[tuple[str, datetime | None]]]]
"""What tells sessions: by their id, what they belong to, and the ids and times of their turns."""


def outline(adapter: Adapter, source: Source) -> Outline:
    """What an adapter finds in a source, without the words."""
    found: Outline = {}
    turns: list[tuple[str, datetime | None]] = []
    for item in parsed(adapter, source):
        if isinstance(item, Session):
            facts = (
                item.cwd,
                item.parent,
                item.kind,
                item.label,
                item.repository,
                item.started,
                item.model,
            )
            turns = found.setdefault(item.native_id, (facts, []))[1]
            found[item.native_id] = (facts, turns)
        else:
            turns.append((item.id, item.time))
    return found


def outline_of(
    home: Home, adapter: Adapter, path: str, parts: Iterable[tuple[int, Payload]]
) -> Outline:
    """What an adapter finds in what is archived of a file, when the file itself is gone."""
    with _standing_in(home, path) as place:
        return outline(adapter, ArchivedSource(place, parts))


def generations(pairs: Iterable[tuple[Segment, Payload]]) -> list[list[tuple[int, Payload]]]:
    """The files that were, one after another, under the name: each begins at 0."""
    found: list[list[tuple[int, Payload]]] = []
    for segment, payload in pairs:
        if segment.start == 0 or not found:
            found.append([])
        found[-1].append((segment.start, payload))
    return found


def _is_missing(home: Home, state: Archived) -> bool:
    try:
        size = Path(state.path).stat().st_size
    except OSError:
        return True
    if state.kind != LINES:
        return False
    return size < state.until or sum(part.start == 0 for part in home.archive.parts(state.path)) > 1


def _batches_of(home: Home, state: Archived) -> Iterator[Batch]:
    pairs = archive_packs.payloads(home, state)
    if state.kind != LINES:
        yield from _kept(Path(state.path), (payload for _, payload in pairs))
        return
    identities = tuple(home.settings.texts("owner.identities"))
    with _standing_in(home, state.path) as path:
        for parts in generations(pairs):
            adapter = _adapter_for(state.tool, Head(path, parts[0][1].text[:HEAD_BYTES]))
            yield from batches(
                Path(state.path), adapter, ArchivedSource(path, parts, identities), home.redactor
            )


def _adapter_for(tool: str, head: Head) -> Adapter:
    """The adapter of a tool; of several, the one that recognises the file. Raises ValueError."""
    known = [adapter for adapter in adapters() if adapter.tool == tool]
    found = (
        known[0]
        if len(known) == 1
        else next((adapter for adapter in known if adapter.sniff(head)), None)
    )
    if found is None:
        raise ValueError(f"no adapter for {tool!r} knows it")
    return found


def _kept(path: Path, parts: Iterable[Payload]) -> Iterator[Batch]:
    known: KeptSession | None = None
    turns: list[Turn] = []
    for payload in parts:
        for line in payload.text.split(b"\n"):
            if line.startswith(b'{"session"'):
                if known:
                    yield Batch(path, known.session, tuple(turns), known.project)
                known, turns = _SESSION.decode(line), []
            elif line and known:
                turns.append(_TURN.decode(line))
                if len(turns) == _TURNS_A_BATCH:
                    yield Batch(path, known.session, tuple(turns), known.project)
                    turns = []
    if known:
        yield Batch(path, known.session, tuple(turns), known.project)


@contextlib.contextmanager
def _standing_in(home: Home, path: str) -> Iterator[Path]:
    """A path of the same names where no file is: adapters take names from it, and look beside it."""
    given = Path(path)
    names = given.parts[1:] if given.is_absolute() else given.parts
    if not _has_subagents(home, given):
        yield archive_packs.folder_of(home).joinpath(_NOWHERE, *names)
        return
    with tempfile.TemporaryDirectory(prefix="nacre-") as folder:
        place = Path(folder, *names)
        (place.with_suffix("") / "subagents").mkdir(parents=True)
        yield place


def _has_subagents(home: Home, path: Path) -> bool:
    beside = path.with_suffix("") / "subagents"
    return beside.is_dir() or home.archive.has_below(str(beside))
