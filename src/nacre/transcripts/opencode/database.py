"""OpenCode since 1.1: ``opencode.db``, with the tables session, message and part. Times are epoch milliseconds.

Columns came and went with versions, so that only those are asked for that are there. The tables of accounts and
credentials, and the log of events, which repeats everything, are never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.databases import Marks, Part, as_bytes, log_of, statement, tables_of
from nacre.transcripts.objects import decode
from nacre.transcripts.opencode.session import ENVIRONMENT, TOOL, Talk, data_folders, session_of
from nacre.values.session import Session, Turn

Said = Iterator[Session | Turn]

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_NEEDED = {
    "session": {"id", "time_created", "time_updated"},
    "message": {"id", "session_id", "time_created", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}
_COLUMNS = {"parent_id": "parentID", "directory": "directory", "title": "title", "version": "version"}


def parse(source: Source) -> Said:
    """Parse one database; see :class:`~nacre.transcripts.adapter.Adapter`."""
    return _Reader(source).read()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tables = tables_of(source)
        self.columns = self.tables.columns("session")
        self.open: list[str] = []

    def read(self) -> Said:
        marks = Marks(self.source)
        written = self.written()
        last = self.tables.all(statement("opencode_last_part"))[0][0]
        for session, updated in self.tables.all(statement("opencode_sessions")):
            is_new = marks.is_new(session, updated)
            if is_new or session in written:
                yield from self.session(session)
        marks.save()
        self.source.carry |= {"part": last, "open": self.open}

    def written(self) -> set[str]:
        """Sessions that got parts since the last reading, and those whose last answer was not complete then."""
        last = self.source.carry.get("part")
        found = self.tables.all(statement("opencode_written"), part=last) if last else []
        return {session for (session,) in found} | set(self.source.carry.get("open", ()))

    def session(self, name: str) -> Said:
        facts = self.facts(name)
        if facts is None:
            return
        talk = Talk(Part(self.source), session_of(facts))
        for message, created, data in self.tables.all(statement("opencode_messages"), session=name):
            values = self.values(data)
            if values is not None:
                known = {**values, "id": message}
                if not isinstance(known.get("time"), Mapping):
                    known["time"] = {"created": created}
                yield from talk.take(known, self.parts(message))
        yield from talk.end()
        if not talk.is_done:
            self.open.append(name)

    def facts(self, name: str) -> dict[str, Any] | None:
        """What is known of a session, in the words of the older files; ``None`` where it is gone since then."""
        rows = self.tables.all(statement("opencode_session"), session=name)
        if not rows:
            return None
        known = dict(zip(self.columns, rows[0], strict=True))
        found = {key: known.get(column) for column, key in _COLUMNS.items()}
        return {**found, "id": name, "time": {"created": known["time_created"]}}

    def parts(self, message: str) -> Iterator[dict[str, Any]]:
        for _, data in self.tables.all(statement("opencode_parts"), message=message):
            values = self.values(data)
            if values is not None:
                yield values

    def values(self, data: object) -> dict[str, Any] | None:
        values = decode(_ANY, as_bytes(data))
        if isinstance(values, dict):
            return values
        self.source.corrupt()
        return None


def _sniff(head: Head) -> bool:
    tables = head.database
    return tables is not None and all(columns <= set(tables.columns(name)) for name, columns in _NEEDED.items())


def _roots(places: Places) -> Sequence[Root]:
    roots = [Root(folder, ("opencode.db", "opencode-*.db")) for folder in data_folders(places)]
    named = places.environ.get("OPENCODE_DB")
    if named and named != ":memory:":
        path = data_folders(places)[0] / Path(named).expanduser()
        roots.append(Root(path.parent, (path.name,)))
    return roots


ADAPTER = Adapter(
    tool=TOOL, label="OpenCode", roots=_roots, sniff=_sniff, parse=parse, beside=log_of,
    resume=("opencode", "--session", "{id}"),
    versions="database of 1.16 to 1.18 (from its description)",
    reads=(
        "what was said", "tool calls with outcome", "titles", "folder", "model", "version", "tokens", "summaries",
        "sub-agents", "interruptions", "errors of the model",
    ),
    leaves_out=("thinking", "snapshots and patches", "files", "todos", "events", "accounts and credentials"),
    environment=(*ENVIRONMENT, "OPENCODE_DB"),
)  # fmt: skip
