"""Read archived sessions again, as if the original transcripts still existed."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from nacre.errors import NacreError
from nacre.home import archive_packs
from nacre.home.home import Home
from nacre.home.parsing import Batch, FileFailed, batches, iter_parsed
from nacre.readers.adapter import HEAD_BYTES, Adapter, Head, Source
from nacre.readers.registry import adapters_of
from nacre.store.packs import LINES, Payload, Segment
from nacre.store.sessions import Archived
from nacre.values.reports import Problem
from nacre.values.session import Session, Tally, Turn

_TURNS_PER_BATCH = 400
_NOWHERE = "nowhere"
"""A folder name that never exists in the archive."""


class KeptSession(msgspec.Struct):
    """A line in a pack that describes the session to which the following turns belong."""

    session: Session
    project: str | None = None


_SESSION = msgspec.json.Decoder(KeptSession)
_TURN = msgspec.json.Decoder(Turn)


class ArchivedSource(Source):
    """A :class:`~nacre.readers.adapter.Source` that reads an archived file from the start."""

    def __init__(
        self, path: Path, parts: Iterable[tuple[int, Payload]], identities: tuple[str, ...] = ()
    ) -> None:
        """``path``: path from which adapters derive names. The file need not exist."""
        self.path = path
        self.identities = identities
        self.tally = Tally()
        self.carry = {}
        self.start = 0
        self._parts = parts

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield complete lines with their original offsets."""
        for start, payload in self._parts:
            for offset, line in payload.lines(start):
                if line and not line.isspace():
                    yield offset, line

    def text(self) -> str:
        """Return the complete text."""
        return b"".join(payload.text for _, payload in self._parts).decode(
            "utf-8-sig", errors="replace"
        )


def missing(home: Home) -> list[Archived]:
    """Return archived transcripts whose file no longer exists, oldest first."""
    return [state for state in reversed(home.archive.all()) if state.pack and _is_missing(state)]


def read_archived(home: Home, states: Iterable[Archived]) -> Iterator[Batch | FileFailed]:
    """Yield the sessions in archived transcripts, or an event for each unreadable transcript."""
    for state in states:
        try:
            yield from _batches_of(home, state)
        except NacreError as error:
            yield FileFailed(
                Path(state.path), state.size, Problem(state.path, error.message, error.hint)
            )
        except Exception as error:  # noqa: BLE001 - a damaged pack or third-party adapter must affect only one file
            message = f"cannot be read from the archive: {type(error).__name__}: {error}"
            yield FileFailed(
                Path(state.path),
                state.size,
                Problem(state.path, message, "nacre admin doctor --deep"),
            )


Outline = dict[str, tuple[tuple[object, ...], list[tuple[str, datetime | None]]]]
"""The facts of each session and the ids and times of its turns, keyed by session id."""


def outline(adapter: Adapter, source: Source) -> Outline:
    """Return the sessions and turns that an adapter finds in a source, but not their texts."""
    sessions: Outline = {}
    turns: list[tuple[str, datetime | None]] = []
    for item in iter_parsed(adapter, source):
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
            turns = sessions.setdefault(item.native_id, (facts, []))[1]
            sessions[item.native_id] = (facts, turns)
        else:
            turns.append((item.id, item.time))
    return sessions


def outline_of(
    home: Home, adapter: Adapter, path: str, parts: Iterable[tuple[int, Payload]]
) -> Outline:
    """Return the outline of an archived file without reading the original file."""
    with _substitute_path(home, path) as place:
        return outline(adapter, ArchivedSource(place, parts))


def generations(pairs: Iterable[tuple[Segment, Payload]]) -> list[list[tuple[int, Payload]]]:
    """Split the parts of an archived file by version. Each version starts at offset 0."""
    files: list[list[tuple[int, Payload]]] = []
    for segment, payload in pairs:
        if segment.start == 0 or not files:
            files.append([])
        files[-1].append((segment.start, payload))
    return files


def _is_missing(state: Archived) -> bool:
    try:
        size = Path(state.path).stat().st_size
    except OSError:
        return True
    # A replaced file begins again at 0.
    return state.kind == LINES and (size < state.until or state.raw > state.until)


def _batches_of(home: Home, state: Archived) -> Iterator[Batch]:
    pairs = archive_packs.payloads(home, state)
    if state.kind != LINES:
        yield from _kept_batches(Path(state.path), (payload for _, payload in pairs))
        return
    identities = tuple(home.settings.texts("owner.identities"))
    with _substitute_path(home, state.path) as path:
        for parts in generations(pairs):
            adapter = _adapter_for(state.tool, Head(path, parts[0][1].text[:HEAD_BYTES]))
            yield from batches(
                Path(state.path), adapter, ArchivedSource(path, parts, identities), home.redactor
            )


def _adapter_for(tool: str, head: Head) -> Adapter:
    """Return a tool's adapter or, if it has several, the one that recognises the file.

    Raises ValueError.
    """
    candidates = adapters_of(tool)
    adapter = (
        candidates[0]
        if len(candidates) == 1
        else next((adapter for adapter in candidates if adapter.sniff(head)), None)
    )
    if adapter is None:
        raise ValueError(f"no adapter for {tool!r} recognises it")
    return adapter


def _kept_batches(path: Path, parts: Iterable[Payload]) -> Iterator[Batch]:
    kept: KeptSession | None = None
    turns: list[Turn] = []
    for payload in parts:
        for line in payload.text.split(b"\n"):
            if line.startswith(b'{"session"'):
                if kept:
                    yield Batch(path, kept.session, tuple(turns), kept.project)
                kept, turns = _SESSION.decode(line), []
            elif line and kept:
                turns.append(_TURN.decode(line))
                if len(turns) == _TURNS_PER_BATCH:
                    yield Batch(path, kept.session, tuple(turns), kept.project)
                    turns = []
    if kept:
        yield Batch(path, kept.session, tuple(turns), kept.project)


@contextlib.contextmanager
def _substitute_path(home: Home, path: str) -> Iterator[Path]:
    """Yield a path that does not exist, but has the folder and file names of a transcript.

    Adapters can derive names from this path, but cannot read files next to the transcript.
    """
    original = Path(path)
    names = original.parts[1:] if original.is_absolute() else original.parts
    subagents = original.with_suffix("") / "subagents"
    if not subagents.is_dir() and not home.archive.has_below(str(subagents)):
        yield archive_packs.folder_of(home).joinpath(_NOWHERE, *names)
        return
    with tempfile.TemporaryDirectory(prefix="nacre-") as folder:
        place = Path(folder, *names)
        (place.with_suffix("") / "subagents").mkdir(parents=True)
        yield place
