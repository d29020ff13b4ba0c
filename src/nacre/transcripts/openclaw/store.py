"""OpenClaw since 2026: ``agents/<agent>/agent/openclaw-agent.sqlite``, whose events are the entries of the older files.

Large events, and sessions that were reset or deleted, are compressed with zstd; what cannot be unpacked is counted.
What else lies there, accounts and memories of its own, is never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.databases import Marks, Part, as_bytes, log_of, statement, tables_of
from nacre.transcripts.openclaw.prompts import TOOL
from nacre.transcripts.openclaw.session_file import ENVIRONMENT, Reader, state_folders
from nacre.values.session import Session, SessionKind, Trust, Turn

Said = Iterator[Session | Turn]

_EVENTS = {"session_id", "seq", "event_json"}
_WINDOWS = {"session_id", "session_key"}
_ARCHIVES = {"session_id", "generation", "encoding", "archive_blob", "created_at"}
_KINDS = (
    (re.compile(r":subagent:|:acp:"), SessionKind.SUBAGENT),
    (re.compile(r":cron:|:hook:"), SessionKind.SCHEDULED),
    (re.compile(r":heartbeat(?::|\Z)"), SessionKind.HEARTBEAT),
)
_ZSTD = ("compression.zstd", "backports.zstd")
_MOST_BYTES = 256 * 1024 * 1024


def parse(source: Source) -> Said:
    """Parse one store; see :class:`~nacre.transcripts.adapter.Adapter`."""
    return _Store(source).read()


class _Store:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tables = tables_of(source)
        self.packs = "event_zstd" in self.tables.columns("transcript_events")
        self.windows = self.tables.columns("session_windows")

    def read(self) -> Said:
        marks = Marks(self.source)
        if set(self.tables.columns("session_transcript_archives")) >= _ARCHIVES:
            for session, generation, encoding, size in self.tables.all(statement("openclaw_archives")):
                if marks.is_new(session, generation, size):
                    yield from self.session(session, self.archived(session, generation, encoding))
        if self.tables.columns("session_transcript_cold_archives"):
            for session, generation in self.tables.all(statement("openclaw_cold_archives")):
                if marks.is_new(session, "cold", generation):
                    self.source.unknown("cold archive")
        for session, last, row in self.tables.all(statement("openclaw_sessions")):
            if marks.is_new(session, last, row):
                yield from self.session(session, self.events(session))
        marks.save()

    def session(self, name: str, events: Iterator[bytes]) -> Said:
        known = self.facts(name)
        key = str(known.get("session_key") or "")
        kind = next((kind for pattern, kind in _KINDS if pattern.search(key)), SessionKind.MAIN)
        label = known.get("display_name")
        session = Session(
            TOOL, name, kind=kind, label=label if isinstance(label, str) and label else None,
            parent=self.parent(known) if kind is SessionKind.SUBAGENT else None,
        )  # fmt: skip
        trust = Trust.UNTRUSTED if known.get("hook_external_content_source") else Trust.TRUSTED
        yield from Reader(Part(self.source, events), session, trust).read()

    def facts(self, name: str) -> dict[str, Any]:
        """What the store says of a session besides its events."""
        if not set(self.windows) >= _WINDOWS:
            return {}
        found = self.tables.all(statement("openclaw_window"), session=name)
        return dict(zip(self.windows, found[0], strict=True)) if found else {}

    def parent(self, known: dict[str, Any]) -> str | None:
        """The session that another session's key stood for last."""
        key = known.get("spawned_by") or known.get("parent_session_key")
        found = self.tables.all(statement("openclaw_session_of_key"), key=key) if key else []
        return str(found[0][0]) if found else None

    def events(self, name: str) -> Iterator[bytes]:
        wanted = statement("openclaw_packed_events" if self.packs else "openclaw_events")
        last = -1
        while rows := self.tables.all(wanted, session=name, seq=last):
            last = rows[-1][0]
            for _, plain, *packed in rows:
                event = as_bytes(plain) or unpack(packed[0] if packed else None)
                if event is None:
                    self.source.unknown("compressed event")
                else:
                    yield event

    def archived(self, name: str, generation: str, encoding: str) -> Iterator[bytes]:
        found = self.tables.all(statement("openclaw_archive"), session=name, generation=generation)
        blob = found[0][0] if found else None
        data = blob if encoding == "identity" else unpack(blob)
        if data is None:
            self.source.unknown("compressed session")
        else:
            yield from (line for line in bytes(data).split(b"\n") if line.strip())


def unpack(data: object) -> bytes | None:
    """What zstd packed, in one frame or several; ``None`` where it is not there, is damaged or is too much."""
    name = next((name for name in _ZSTD if find_spec(name.partition(".")[0])), None)
    if name is None or not isinstance(data, bytes) or not data:
        return None
    zstd = import_module(name)
    unpacked = bytearray()
    while data:
        frame = zstd.ZstdDecompressor()
        try:
            unpacked += frame.decompress(data, max_length=_MOST_BYTES - len(unpacked))
        except zstd.ZstdError:
            return None
        if not frame.eof:
            return None
        data = frame.unused_data
    return bytes(unpacked)


def _sniff(head: Head) -> bool:
    return head.database is not None and set(head.database.columns("transcript_events")) >= _EVENTS


def _roots(places: Places) -> Sequence[Root]:
    return [Root(folder / "agents", ("*/agent/openclaw-agent.sqlite",)) for folder in state_folders(places)]


ADAPTER = Adapter(
    tool=TOOL, label="OpenClaw and pi", roots=_roots, sniff=_sniff, parse=parse, beside=log_of,
    versions="store of 2026.9, events of version 4",
    reads=(
        "what was said", "tool calls with outcome", "folder", "model", "tokens", "names", "summaries",
        "kinds of sessions", "sessions that were reset or deleted", "compressed events",
    ),
    leaves_out=("thinking", "cold archives", "pending input", "memories and accounts of its own"),
    environment=ENVIRONMENT,
)  # fmt: skip
