"""Goose: sessions in ``sessions.db``. Before 1.10, each session was a JSON Lines file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

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
    changed,
    documents,
    parse_time,
    plain,
    rows_of,
    with_columns,
)
from nacre.readers.messages import Message, turns_of, words_of
from nacre.readers.trust import Conversation
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens

TOOL = "goose"
SQL = statements("nacre_extras", "sql")

_REQUIRED_COLUMNS = {
    "sessions": {"id", "working_dir", "updated_at"},
    "messages": {"id", "session_id", "role", "content_json", "created_timestamp"},
}
_KINDS = {
    "sub_agent": SessionKind.SUBAGENT,
    "hidden": SessionKind.SUBAGENT,
    "scheduled": SessionKind.SCHEDULED,
}
_QUIET = frozenset(
    "thinking redactedThinking reasoning image toolConfirmationRequest actionRequired systemNotification "
    "conversationCompacted contextLengthExceeded summarizationRequested".split()
)


def _session(name: str, facts: Values) -> Session:
    model = mapping(plain(as_bytes(facts.get("model_config_json"))))
    return Session(
        TOOL,
        name,
        title=string(facts, "name", "description"),
        cwd=string(facts, "working_dir"),
        kind=_KINDS.get(str(facts.get("session_type")), SessionKind.MAIN),
        parent=string(facts, "parent_session_id"),
        started=parse_time(facts.get("created_at")),
        model=answered_by(string(model, "model_name"), string(facts, "provider_name")),
    )


def _read(source: Source, name: str, facts: Values, records: Iterable[Values]) -> Items:
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
        elif not result and kind not in _QUIET:
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


def _parse(source: Source) -> Items:
    for name, facts in changed(source, "sessions", SQL["goose_sessions"], SQL["goose_session"]):
        rows = rows_of(source, "messages", SQL["goose_messages"], name=name)
        yield from _read(Part(source), name, facts, map(_record, rows))


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
    yield from _read(source, source.path.stem, next(records, {}), records)


def _sniff_file(head: Head) -> bool:
    first = head.first
    return "working_dir" in first and bool({"description", "message_count"} & first.keys())


def _roots(pattern: str, places: Places) -> Sequence[Root]:
    if places.environ.get("GOOSE_PATH_ROOT"):
        folder = places.folder("GOOSE_PATH_ROOT") / "data"
    elif places.platform == "win32":
        folder = places.folder("APPDATA", "AppData", "Roaming") / "Block" / "goose" / "data"
    else:
        folder = places.folder("XDG_DATA_HOME", ".local", "share") / "goose"
    return [Root(folder / "sessions", (pattern,))]


ADAPTER = Adapter(
    tool=TOOL,
    label="Goose",
    roots=partial(_roots, "sessions.db"),
    sniff=with_columns(_REQUIRED_COLUMNS),
    parse=_parse,
    resume=("goose", "session", "--resume", "--session-id", "{id}"),
    versions="1.10 to schema 17*",
    reads="sub-agents; summaries",
    leaves_out="hints for the model; recipes",
)
ADAPTER_FILES = replace(
    ADAPTER,
    roots=partial(_roots, "*.jsonl"),
    sniff=_sniff_file,
    parse=_parse_file,
    whole=True,
    versions="before 1.10*",
)
