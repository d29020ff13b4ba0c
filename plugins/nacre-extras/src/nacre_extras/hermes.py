"""Hermes agent: ``~/.hermes/state.db``, and older files in ``~/.hermes/sessions``.

Ids of sessions and turns are the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from nacre.base.plain import Values, mapping, objects, string
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Part,
    Source,
    changed,
    documents,
    keys_of,
    local_time,
    plain,
    rows_of,
    under,
    with_columns,
)
from nacre.readers.conversation import tokens_of
from nacre.readers.generic import text_in
from nacre.readers.messages import HOST, Chat, Message, message_of, say
from nacre.values.session import Flag, Session, SessionKind, Speaker

_SESSIONS = "SELECT session_id, max(id), count(*) FROM messages GROUP BY session_id"
_SESSION = "SELECT * FROM sessions WHERE id = :name"
_MESSAGES = "SELECT * FROM messages WHERE session_id = :name ORDER BY id"
_COLUMNS = {
    "sessions": {"id"},
    "messages": {"id", "session_id", "role", "content", "tool_calls", "timestamp"},
}
_BLOCKS = "\0json:"
"""Prefix of content that is JSON."""


class _Reader(Chat):
    def __init__(
        self, source: Source, session: str, facts: Values, messages: Iterable[Values]
    ) -> None:
        config = mapping(plain(string(facts, "model_config") or "{}"))
        origin, user = string(facts, "source", "platform"), string(facts, "user_id")
        kind = SessionKind.SCHEDULED if origin == "cron" else SessionKind.MAIN
        super().__init__(
            Part(source, map(msgspec.json.encode, messages)),
            Session(
                "hermes",
                session,
                title=string(facts, "title"),
                cwd=string(facts, "cwd"),
                branch=string(facts, "git_branch"),
                model=string(facts, "model"),
                parent=string(facts, "parent_session_id"),
                kind=SessionKind.SUBAGENT if "_delegate_from" in config else kind,
            ),
        )
        self.talk.spend(tokens_of(facts))
        is_known = {user, f"{origin}:{user}"} & set(source.identities)
        is_chat = not is_known and (user or "platform" in facts)
        self.claims: list[Values] = [{"origin": origin}] if is_chat else []

    def take(self, offset: int, record: Values) -> Items:
        content, calls = record.get("content"), record.get("tool_calls")
        if isinstance(content, str) and content.startswith(_BLOCKS):
            content = plain(content.removeprefix(_BLOCKS))
        calls = plain(calls) if isinstance(calls, str) else calls
        role, stamp = record.get("role"), record.get("timestamp")
        if role == "session_meta" or (record.get("active") == 0 and not record.get("compacted")):
            return
        identity = self.talk.new_id(Speaker.SYSTEM, None, f"{role}\n{content}\n{calls}")
        text = text_in(content)
        if text.startswith("[CONTEXT COMPACTION"):
            message = Message(Speaker.SYSTEM, local_time(stamp), flags=Flag.SUMMARY)
            message.texts = [text.partition("]")[2]]
        else:
            result = mapping(plain(text) if role == "tool" else None)
            is_host = record.get("display_kind") or record.get("observed")
            values = {
                **record,
                "content": content,
                "tool_calls": calls,
                "exit_code": result.get("exit_code"),
                "is_error": bool(result.get("error")),
            }
            message = message_of(self.source, values, stamp)
            message.claims += [HOST] if is_host else self.claims
        message.id = identity
        yield from say(self.talk, message, offset)


def _database(source: Source) -> Items:
    for session, facts in changed(source, "sessions", _SESSIONS, _SESSION):
        messages = rows_of(source, "messages", _MESSAGES, name=session)
        yield from _Reader(source, session, facts, messages)


def _files(source: Source) -> Items:
    records = list(documents(source)) or [{}]
    name = string(records[0], "session_id") or source.path.stem.removeprefix("session_")
    messages = objects(records[0], "messages") or records
    yield from _Reader(source, name, records[0], messages)


def _sniff_file(head: Head) -> bool:
    first = head.first
    return first.get("role") == "session_meta" or {"session_start", "messages"} <= keys_of(head)


ADAPTER = Adapter(
    tool="hermes",
    label="Hermes agent",
    roots=under("HERMES_HOME", ".hermes", "", "state.db", "profiles/*/state.db"),
    sniff=with_columns(_COLUMNS),
    parse=_database,
    versions="25*",
    reads="branch; sub-agents; scheduled runs",
    leaves_out="undone messages",
)
ADAPTER_FILES = replace(
    ADAPTER,
    roots=under("HERMES_HOME", ".hermes", "sessions", "*.jsonl", "session_*.json"),
    sniff=_sniff_file,
    parse=_files,
    whole=True,
    versions="2026-04*",
    reads="",
    leaves_out="title; folder; tokens",
)
