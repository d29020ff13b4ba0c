"""Crush: ``.crush/crush.db`` in each project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from nacre.base.plain import Values, mapping, objects, objects_in, string
from nacre.base.sql import statements
from nacre.base.text import answered_by
from nacre.readers.adapter import (
    Adapter,
    Items,
    Part,
    Places,
    Root,
    Source,
    as_bytes,
    beside,
    changed,
    parse_time,
    plain,
    rows_of,
    with_columns,
)
from nacre.readers.messages import Message, turns_of
from nacre.readers.trust import INTERRUPTION, Conversation
from nacre.values.session import Flag, Session, SessionKind, Speaker

TOOL = "crush"
SQL = statements("nacre_extras", "sql")

_FOLDER = ".crush"
_REQUIRED_COLUMNS = {
    "sessions": {"id", "parent_session_id", "title", "message_count", "updated_at"},
    "messages": {"id", "session_id", "role", "parts", "created_at"},
}
_QUIET = frozenset({"reasoning", "binary", "image_url", "finish"})
_TITLE_RUN = "title-"
"""Prefix of the ids of sessions in which a model writes another session's title."""


def _parse(source: Source) -> Items:
    for name, facts in changed(source, "sessions", SQL["crush_sessions"], SQL["crush_session"]):
        if not name.startswith(_TITLE_RUN):
            rows = rows_of(source, "messages", SQL["crush_messages"], name=name)
            yield from _read(Part(source), name, facts, rows)


def _read(source: Source, name: str, facts: Values, rows: Sequence[Values]) -> Items:
    folder, title = source.path.parent, string(facts, "title")
    parent = string(facts, "parent_session_id")
    session = Session(
        TOOL,
        name,
        title=title if title != "Untitled Session" else None,
        cwd=str(folder.parent) if folder.name == _FOLDER else None,
        kind=SessionKind.SUBAGENT if parent else SessionKind.MAIN,
        parent=parent,
        started=parse_time(facts.get("created_at")),
    )
    talk = Conversation(source, session)
    yield from turns_of(talk, (message for row in rows for message in _messages(talk, row)))


def _messages(talk: Conversation, row: Values) -> Iterator[Message]:
    time, own = parse_time(row.get("created_at")), str(row.get("id"))
    talk.learn(model=answered_by(string(row, "model"), string(row, "provider")))
    message = Message.of(talk.source, row.get("role"), time, own)
    if row.get("is_summary_message"):
        message.speaker, message.flags = Speaker.SYSTEM, Flag.SUMMARY
    ending = list[Message]()
    for part in objects_in(plain(as_bytes(row.get("parts")))):
        kind, data = str(part.get("type")), mapping(part, "data")
        if kind == "text":
            message.texts.append(string(data, "text"))
            message.claims += [part, data]
        elif kind == "tool_call":
            message.call(data.get("id"), data.get("name"), data.get("input"))
        elif kind == "tool_result":
            message.answer(data, data.get("content"))
        elif kind == "shell_command":
            talk.exchange.record(string(data, "output") or "")
            message.flags, message.texts = Flag.COMMAND, [f"!{data.get('command')}"]
        elif kind == "finish" and data.get("reason") == "canceled":
            flags = Flag.META | Flag.INTERRUPTED
            ending = [
                Message(Speaker.SYSTEM, time, f"{own}-end", flags=flags, texts=[INTERRUPTION])
            ]
        elif kind not in _QUIET:
            talk.source.unknown(f"part {kind}")
    yield from [message, *ending]


def _roots(places: Places) -> Sequence[Root]:
    folders = [project / _FOLDER for project in places.projects]
    listed = objects(beside(places.data() / "crush" / "projects.json"), "projects")
    folders += [Path(folder) for item in listed if (folder := string(item, "data_dir"))]
    return [
        Root(folder, ("crush.db",)) for folder in dict.fromkeys([places.home / _FOLDER, *folders])
    ]


ADAPTER = Adapter(
    tool=TOOL,
    label="Crush",
    roots=_roots,
    sniff=with_columns(_REQUIRED_COLUMNS),
    parse=_parse,
    versions="2025-04 to 2026-01*",
    reads="sub-agents; summaries; commands; interruptions",
    leaves_out="tokens; versions of files",
)
