"""Read sessions from the archive, as if from the transcripts that it keeps."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from nacre.app import packing
from nacre.app.context import Context
from nacre.app.reading import Batch, FileFailed, batches
from nacre.archive.packs import LINES, Segment
from nacre.archive.payload import Payload
from nacre.errors import NacreError
from nacre.model.cursor import Tally
from nacre.model.reports import Problem
from nacre.model.session import Session, Turn
from nacre.storage.archive import Archived
from nacre.transcripts.adapter import Adapter
from nacre.transcripts.registry import find_adapter_of

_TURNS_A_BATCH = 400


class KeptSession(msgspec.Struct):
    """A line before the turns of a session, where a pack holds those: the session, and its project's slug."""

    session: Session
    project: str | None = None


_SESSION = msgspec.json.Decoder(KeptSession)
_TURN = msgspec.json.Decoder(Turn)


class ArchivedSource:
    """A :class:`~nacre.transcripts.adapter.Source` of what is archived of one file, from its beginning."""

    def __init__(self, path: Path, parts: Iterable[tuple[int, Payload]]) -> None:
        """``path`` is what an adapter takes names from; no file need be there."""
        self.path = path
        self.tally = Tally()
        self.carry: dict[str, Any] = {}
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
        return b"".join(payload.text for _, payload in self._parts).decode("utf-8-sig", errors="replace")

    def hold(self, offset: int) -> None:
        """Nothing follows that could make a message grow."""

    def unknown(self, record: str) -> None:
        """It was counted when the transcript was read."""

    def corrupt(self) -> None:
        """It was counted when the transcript was read."""


def missing(context: Context) -> list[Archived]:
    """What the archive has and no transcript tells any more, the oldest first."""
    return [state for state in reversed(context.archive.all()) if state.pack and _is_missing(context, state)]


def read_archived(context: Context, states: Iterable[Archived]) -> Iterator[Batch | FileFailed]:
    """The sessions in some packs. What cannot be read is an event, never the end."""
    for state in states:
        try:
            yield from _batches_of(context, state)
        except NacreError as error:
            yield FileFailed(Path(state.path), state.size, Problem(state.path, error.message, error.hint))
        except Exception as error:  # noqa: BLE001 - a damaged pack or anybody's adapter costs its own file only
            told = f"cannot be read from the archive: {type(error).__name__}: {error}"
            yield FileFailed(Path(state.path), state.size, Problem(state.path, told, "nacre archive verify"))


def read_back(context: Context, adapter: Adapter, path: str, parts: Iterable[Payload]) -> dict[str, list[str]]:
    """The ids of the turns, by session, that an adapter finds in what is to be archived of a file."""
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="nacre-") as folder:
        source = ArchivedSource(_standing_in(Path(folder), path), ((0, payload) for payload in parts))
        for batch in batches(Path(path), adapter, source, context.redactor):
            turns = found.setdefault(batch.session.native_id, [])
            turns.extend(turn.id for turn in batch.turns)
    return found


def generations(pairs: Iterable[tuple[Segment, Payload]]) -> list[list[tuple[int, Payload]]]:
    """The files that were, one after another, under the name: each begins at 0."""
    found: list[list[tuple[int, Payload]]] = []
    for segment, payload in pairs:
        if segment.start == 0 or not found:
            found.append([])
        found[-1].append((segment.start, payload))
    return found


def _is_missing(context: Context, state: Archived) -> bool:
    try:
        size = Path(state.path).stat().st_size
    except OSError:
        return True
    if state.kind != LINES:
        return False
    return size < state.until or sum(part.start == 0 for part in context.archive.parts(state.path)) > 1


def _batches_of(context: Context, state: Archived) -> Iterator[Batch]:
    pairs = packing.payloads(context, state)
    if state.kind != LINES:
        yield from _kept(Path(state.path), (payload for _, payload in pairs))
        return
    adapter = find_adapter_of(state.tool)
    if adapter is None:
        raise ValueError(f"there is no adapter for {state.tool}")
    with tempfile.TemporaryDirectory(prefix="nacre-") as folder:
        path = _standing_in(Path(folder), state.path)
        if _has_subagents(context, state.path):
            (path.with_suffix("") / "subagents").mkdir(parents=True, exist_ok=True)
        for parts in generations(pairs):
            yield from batches(Path(state.path), adapter, ArchivedSource(path, parts), context.redactor)


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


def _standing_in(folder: Path, path: str) -> Path:
    """A path of the same name where no file is: adapters take names from it, and look beside it."""
    given = Path(path)
    return folder / (given.parent.name or "files") / given.name


def _has_subagents(context: Context, path: str) -> bool:
    beside = Path(path).with_suffix("") / "subagents"
    return beside.is_dir() or any(state.path.startswith(f"{beside}/") for state in context.archive.all())
