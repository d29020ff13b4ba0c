"""Agents that keep their sessions in a SQLite database: Crush, Goose, Hermes and Zed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from nacre.base.plain import Values, mapping, objects, objects_in, string, total
from nacre.base.sql import statements
from nacre.base.text import answered_by
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Part,
    Places,
    Root,
    Source,
    as_bytes,
    beside,
    changed,
    documents,
    keys_of,
    local_time,
    parse_time,
    plain,
    rows_of,
    under,
    with_columns,
)
from nacre.readers.conversation import tokens_of
from nacre.readers.generic import text_in
from nacre.readers.messages import HOST, Chat, Message, message_of, say, turns_of, words_of
from nacre.readers.openclaw import unpack
from nacre.readers.trust import INTERRUPTION, Conversation
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens

SQL = statements("nacre_extras", "sql")


def _changed(source: Source, tool: str) -> Iterator[tuple[str, Values, Sequence[Values]]]:
    """Yield the id, row and messages of each session that has changed since the last read."""
    for name, facts in changed(source, "sessions", SQL[f"{tool}_sessions"], SQL["session"]):
        yield name, facts, rows_of(source, "messages", SQL[f"{tool}_messages"], name=name)


# -- Crush: ``.crush/crush.db`` in each project -----------------------------------------------


_FOLDER = ".crush"
_REQUIRED_COLUMNS_CRUSH = {
    "sessions": {"id", "parent_session_id", "title", "message_count", "updated_at"},
    "messages": {"id", "session_id", "role", "parts", "created_at"},
}
_QUIET_CRUSH = frozenset({"reasoning", "binary", "image_url", "finish"})
_TITLE_RUN = "title-"
"""Prefix of the ids of sessions in which a model writes another session's title."""


def _parse_crush(source: Source) -> Items:
    for name, facts, rows in _changed(source, "crush"):
        if not name.startswith(_TITLE_RUN):
            yield from _read_crush(Part(source), name, facts, rows)


def _read_crush(source: Source, name: str, facts: Values, rows: Sequence[Values]) -> Items:
    folder, title = source.path.parent, string(facts, "title")
    parent = string(facts, "parent_session_id")
    session = Session(
        "crush",
        name,
        title=title if title != "Untitled Session" else None,
        cwd=str(folder.parent) if folder.name == _FOLDER else None,
        kind=SessionKind.SUBAGENT if parent else SessionKind.MAIN,
        parent=parent,
        started=parse_time(facts.get("created_at")),
    )
    talk = Conversation(source, session)
    yield from turns_of(talk, (message for row in rows for message in _messages_crush(talk, row)))


def _messages_crush(talk: Conversation, row: Values) -> Iterator[Message]:
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
        elif kind not in _QUIET_CRUSH:
            talk.source.unknown(f"part {kind}")
    yield from [message, *ending]


def _roots_crush(places: Places) -> Sequence[Root]:
    folders = [project / _FOLDER for project in places.projects]
    listed = objects(beside(places.data() / "crush" / "projects.json"), "projects")
    folders += [Path(folder) for item in listed if (folder := string(item, "data_dir"))]
    return [
        Root(folder, ("crush.db",)) for folder in dict.fromkeys([places.home / _FOLDER, *folders])
    ]


ADAPTER_CRUSH = Adapter(
    tool="crush",
    label="Crush",
    roots=_roots_crush,
    sniff=with_columns(_REQUIRED_COLUMNS_CRUSH),
    parse=_parse_crush,
    versions="2025-04 to 2026-01*",
    reads="sub-agents; summaries; commands; interruptions",
    leaves_out="tokens; versions of files",
)


# -- Goose: sessions in ``sessions.db``. Before 1.10, each session was a JSON Lines file ------


_REQUIRED_COLUMNS_GOOSE = {
    "sessions": {"id", "working_dir", "updated_at"},
    "messages": {"id", "session_id", "role", "content_json", "created_timestamp"},
}
_KINDS = {
    "sub_agent": SessionKind.SUBAGENT,
    "hidden": SessionKind.SUBAGENT,
    "scheduled": SessionKind.SCHEDULED,
}
_QUIET_GOOSE = frozenset(
    "thinking redactedThinking reasoning image toolConfirmationRequest actionRequired systemNotification "
    "conversationCompacted contextLengthExceeded summarizationRequested".split()
)


def _session(name: str, facts: Values) -> Session:
    model = mapping(plain(as_bytes(facts.get("model_config_json"))))
    return Session(
        "goose",
        name,
        title=string(facts, "name", "description"),
        cwd=string(facts, "working_dir"),
        kind=_KINDS.get(str(facts.get("session_type")), SessionKind.MAIN),
        parent=string(facts, "parent_session_id"),
        started=parse_time(facts.get("created_at")),
        model=answered_by(string(model, "model_name"), string(facts, "provider_name")),
    )


def _read_goose(source: Source, name: str, facts: Values, records: Iterable[Values]) -> Items:
    talk = Conversation(source, _session(name, facts))
    talk.spend(
        Tokens.with_cached(
            total(facts, "accumulated_input_tokens"),
            total(facts, "accumulated_cache_read_tokens"),
            total(facts, "accumulated_output_tokens"),
        )
    )
    origin = string(facts, "session_type")
    claims = {"origin": None if origin == "acp" else origin}  # an editor's session
    yield from turns_of(talk, (_message(talk, record, claims) for record in records))


def _message(talk: Conversation, record: Values, claims: Values) -> Message:
    """Convert a message, without the ids that Goose 1.10 gave to messages of older versions."""
    own = string(record, "id") or ""
    message = Message.of(talk.source, record.get("role"), parse_time(record.get("created")))
    message.id = None if own.startswith(f"msg_{talk.session.native_id}_") else own
    message.claims = [claims, record]
    for block in objects(record, "content"):
        kind, call, result = str(block.get("type")), block.get("id"), mapping(block, "toolResult")
        if kind == "text":
            message.texts.append(string(block, "text"))
            message.claims.append(block)
        elif request := mapping(block, "toolCall"):
            value = mapping(request, "value")
            message.call(call, value.get("name"), value.get("arguments"))
            result = request if "error" in request else {}
        elif not result and kind not in _QUIET_GOOSE:
            talk.source.unknown(f"block {kind}")
        if result:
            failed = "error" in result or mapping(result, "value").get("isError") is True
            message.result(call, result.get("value") or result.get("error"), is_error=failed)
    if mapping(record, "metadata").get("userVisible") is False:  # for the model only
        message.speaker, message.flags = Speaker.SYSTEM, Flag.SUMMARY
        if (text := words_of(message.texts)).startswith("<"):  # a hint
            talk.exchange.record(text)
            message.texts = []
    return message


def _parse_goose(source: Source) -> Items:
    for name, facts, rows in _changed(source, "goose"):
        yield from _read_goose(Part(source), name, facts, map(_record, rows))


def _record(row: Values) -> Values:
    return {
        "id": row.get("message_id"),
        "role": row.get("role"),
        "created": row.get("created_timestamp"),
        "content": objects_in(plain(as_bytes(row.get("content_json")))),
        "metadata": plain(as_bytes(row.get("metadata_json"))),
    }


def _parse_file(source: Source) -> Items:
    records = documents(source)
    yield from _read_goose(source, source.path.stem, next(records, {}), records)


def _sniff_file_goose(head: Head) -> bool:
    first = head.first
    return "working_dir" in first and bool({"description", "message_count"} & first.keys())


def _roots_goose(pattern: str, places: Places) -> Sequence[Root]:
    if places.environ.get("GOOSE_PATH_ROOT"):
        folder = places.folder("GOOSE_PATH_ROOT") / "data"
    elif places.platform == "win32":
        folder = places.folder("APPDATA", "AppData", "Roaming") / "Block" / "goose" / "data"
    else:
        folder = places.folder("XDG_DATA_HOME", ".local", "share") / "goose"
    return [Root(folder / "sessions", (pattern,))]


ADAPTER_GOOSE = Adapter(
    tool="goose",
    label="Goose",
    roots=partial(_roots_goose, "sessions.db"),
    sniff=with_columns(_REQUIRED_COLUMNS_GOOSE),
    parse=_parse_goose,
    resume=("goose", "session", "--resume", "--session-id", "{id}"),
    versions="1.10 to schema 17*",
    reads="sub-agents; summaries",
    leaves_out="hints for the model; recipes",
)
ADAPTER_GOOSE_FILES = replace(
    ADAPTER_GOOSE,
    roots=partial(_roots_goose, "*.jsonl"),
    sniff=_sniff_file_goose,
    parse=_parse_file,
    whole=True,
    versions="before 1.10*",
)


# -- Hermes agent: ``~/.hermes/state.db``, and older files in ``~/.hermes/sessions`` ----------
# Ids of sessions and turns are the same in both.


_COLUMNS = {
    "sessions": {"id"},
    "messages": {"id", "session_id", "role", "content", "tool_calls", "timestamp"},
}
_BLOCKS = "\0json:"
"""Prefix of content that is JSON."""


class _HermesReader(Chat):
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
    for name, facts, rows in _changed(source, "hermes"):
        yield from _HermesReader(source, name, facts, rows)


def _files(source: Source) -> Items:
    records = list(documents(source)) or [{}]
    name = string(records[0], "session_id") or source.path.stem.removeprefix("session_")
    messages = objects(records[0], "messages") or records
    yield from _HermesReader(source, name, records[0], messages)


def _sniff_file_hermes(head: Head) -> bool:
    first = head.first
    return first.get("role") == "session_meta" or {"session_start", "messages"} <= keys_of(head)


ADAPTER_HERMES = Adapter(
    tool="hermes",
    label="Hermes agent",
    roots=under("HERMES_HOME", ".hermes", "", "state.db", "profiles/*/state.db"),
    sniff=with_columns(_COLUMNS),
    parse=_database,
    versions="25*",
    reads="branch; sub-agents; scheduled runs",
    leaves_out="undone messages",
)
ADAPTER_HERMES_FILES = replace(
    ADAPTER_HERMES,
    roots=under("HERMES_HOME", ".hermes", "sessions", "*.jsonl", "session_*.json"),
    sniff=_sniff_file_hermes,
    parse=_files,
    whole=True,
    versions="2026-04*",
    reads="",
    leaves_out="title; folder; tokens",
)


# -- Zed: threads of its own agent in ``threads.db``, as JSON that is usually compressed ------


_REQUIRED_COLUMNS_ZED = {"threads": {"id", "summary", "updated_at", "data_type", "data"}}
_QUIET_ZED = frozenset({"Thinking", "RedactedThinking", "Image"})


def _parse_zed(source: Source) -> Items:
    for name, row in changed(source, "threads", SQL["zed_threads"], SQL["zed_thread"]):
        thread = plain(unpack(row["data"]) or as_bytes(row["data"]))
        if isinstance(thread, dict):
            yield from _read_zed(Part(source), name, row, thread)
        else:
            source.unknown(f"thread in {row['data_type']}")


def _read_zed(source: Source, name: str, row: Values, thread: Values) -> Items:
    snapshots = objects(mapping(thread, "initial_project_snapshot"), "worktree_snapshots")
    project = snapshots[0] if snapshots else {}
    git = mapping(project, "git_state")
    model = mapping(thread, "model")
    parent = string(row, "parent_id")
    started = parse_time(row.get("created_at")) or parse_time(row.get("updated_at"))
    session = Session(
        "zed",
        name,
        title=string(row, "summary"),
        cwd=_folder(row) or string(project, "worktree_path"),
        branch=string(git, "current_branch"),
        repository=string(git, "remote_url"),
        kind=SessionKind.SUBAGENT if parent else SessionKind.MAIN,
        parent=parent,
        started=started,
        model=answered_by(string(model, "model"), string(model, "provider")),
    )
    talk = Conversation(source, session)
    talk.spend(tokens_of(mapping(thread, "cumulative_token_usage")))
    yield from turns_of(talk, _messages_zed(talk, thread, started))


def _folder(row: Values) -> str | None:
    """Return a thread's first folder. Zed stores the order of folders separately."""
    paths = (string(row, "folder_paths") or "").splitlines()
    order = (string(row, "folder_paths_order") or "").split(",")
    return min(zip(order, paths, strict=False), default=("", None))[1]


def _messages_zed(talk: Conversation, thread: Values, time: datetime | None) -> Iterator[Message]:
    """Yield the messages. Only the owner's have ids. Fields had other names before 0.3.0."""
    claims = {"origin": "shared" if thread.get("imported") else None}
    prompt, answers = "", 0
    for record in objects(thread, "messages"):
        role = string(record, "role")
        kind, body = next(iter(record.items()), ("", None))
        if role:
            talk.exchange.record(string(record, "context") or "")
            kind, body = role.capitalize(), _modern(record)
        answers += 1
        if kind == "User":
            prompt, answers = string(body, "id") or f"{prompt}+", 0
        name = f"{prompt}-{answers}"
        message = Message.of(talk.source, kind, time, name, [claims, record, mapping(body)])
        if message.speaker is Speaker.SYSTEM:
            continue
        for block in objects(body, "content"):
            _add(talk, message, block)
        if message.speaker is Speaker.OWNER:
            message.texts = ["".join(filter(None, message.texts))]  # around mentions
        for call, result in mapping(body, "tool_results").items():
            failed = mapping(result).get("is_error") is True
            message.result(call, mapping(result).get("content"), is_error=failed)
        yield message


def _add(talk: Conversation, message: Message, block: Values) -> None:
    kind, content = next(iter(block.items()), ("", None))
    if kind == "Text":
        message.texts.append(words_of(content))
        message.claims.append(block)
    elif kind == "Mention":  # an attachment, whose content is not the owner's
        place, uri = next(iter(mapping(content, "uri").items()), ("", None))
        talk.exchange.record(words_of(mapping(content).get("content")), outside=place == "Fetch")
        message.texts.append(string(uri, "name", "abs_path", "url"))
    elif kind == "ToolUse":
        call = mapping(content)
        message.call(call.get("id"), call.get("name"), call.get("input"))
    elif kind not in _QUIET_ZED:
        talk.source.unknown(f"block {kind}")


def _modern(record: Values) -> Values:
    parts = [part for part in objects(record, "segments") if part.get("type") == "text"]
    texts = [{"Text": part.get("text")} for part in parts]
    calls = [{"ToolUse": call} for call in objects(record, "tool_uses")]
    results = {str(result.get("tool_use_id")): result for result in objects(record, "tool_results")}
    return {"id": f"{record.get('id')}", "content": texts + calls, "tool_results": results}


def _roots_zed(places: Places) -> Sequence[Root]:
    name = "zed" if places.platform == "linux" else "Zed"
    return [Root(places.data(is_native=True) / name / "threads", ("threads.db",))]


ADAPTER_ZED = Adapter(
    tool="zed",
    label="Zed",
    roots=_roots_zed,
    sniff=with_columns(_REQUIRED_COLUMNS_ZED),
    parse=_parse_zed,
    versions="0.1.0 to 0.3.0*",
    reads="branch; sub-agents",
    leaves_out="times; external agents",
)
