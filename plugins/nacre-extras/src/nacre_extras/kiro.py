"""Kiro: sessions of the editor, and conversations of Kiro CLI and Amazon Q in ``data.sqlite3``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from nacre.base.plain import Values, mapping, objects, string
from nacre.base.sql import statements
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
    has_columns,
    parse_time,
    plain,
)
from nacre.readers.messages import Message, turns_of
from nacre.readers.trust import Conversation, configuration
from nacre.values.session import Session, Speaker
from nacre_extras import continue_dev

TOOL = "kiro"
SQL = statements("nacre_extras", "sql")

_COLUMNS = {"conversations_v2": {"conversation_id", "value", "updated_at"}}
_OLD_COLUMNS = {"conversations": {"key", "value"}}


# -- Editor --------------------------------------------------------------------
# Sessions have Continue's format. The agent's text and actions are in one file per answer, in a
# folder named after a hash of the project's folder.


def _parse_editor(source: Source) -> Items:
    values = mapping(plain(source.text()))
    folder = string(values, "workspaceDirectory") or ""
    name = hashlib.sha256(folder.encode("utf-8", "replace")).hexdigest()[:32]
    files = (source.path.parent.parent.parent / name).glob("*/*") if folder else ()
    answers = {
        str(answer.get("executionId")): answer for answer in map(mapping, map(beside, files))
    }
    yield from continue_dev.parse(source, TOOL, partial(_add_answer, answers))


def _add_answer(answers: Mapping[str, Values], item: Values, message: Message) -> None:
    answer = answers.get(str(item.get("executionId")), {})
    if message.speaker is not Speaker.AGENT or not objects(answer, "actions"):
        return
    message.texts.clear()
    for action in objects(answer, "actions"):
        kind, call, output = action.get("actionType"), action.get("actionId"), action.get("output")
        if kind == "say":
            message.texts.append(string(output, "message"))
        elif isinstance(action.get("input"), Mapping):
            message.call(call, kind, action["input"])
            if output is not None:
                message.result(call, output, is_error=action.get("actionState") == "Error")


def _editors(places: Places) -> Sequence[Root]:
    storage = configuration(places) / "Kiro" / "User" / "globalStorage" / "kiro.kiroagent"
    return [Root(storage / "workspace-sessions", ("*/*.json",))]


ADAPTER = Adapter(
    tool=TOOL,
    label="Kiro",
    roots=_editors,
    sniff=partial(continue_dev.is_session, of_kiro=True),
    parse=_parse_editor,
    whole=True,
    versions="2026*",
    leaves_out="model; tokens; times; `.chat` files",
)


# -- Command line --------------------------------------------------------------


# Since 2.0, the table conversations_v2 has all conversations. In Amazon Q and before 2.0, the table
# conversations has only the last conversation in each folder.


def _parse(source: Source) -> Items:
    is_new = has_columns(source.database, _COLUMNS)
    table, name = ("conversations_v2", "kiro") if is_new else ("conversations", "amazon_q")
    all_rows, one_row = SQL[f"{name}_conversations"], SQL[f"{name}_conversation"]
    for key, row in changed(source, table, all_rows, one_row):
        values = plain(as_bytes(row["value"]))
        if isinstance(values, dict):
            yield from _read(Part(source), key, row, values)
        else:
            source.corrupt()


def _read(source: Source, key: str, row: Values, values: Values) -> Items:
    session = Session(
        TOOL,
        string(values, "conversation_id") or key,
        cwd=string(row, "key"),
        started=parse_time(row.get("created_at")),
        model=string(mapping(values, "model_info"), "model_id") or string(values, "model"),
    )
    history = values.get("history")
    pairs = history if isinstance(history, list) else []
    talk = Conversation(source, session)
    yield from turns_of(talk, (each for pair in pairs for each in _messages(talk, pair)))


def _messages(talk: Conversation, pair: object) -> Iterator[Message]:
    """Yield the prompt or tool results, then the answer; old versions of Kiro store them as a list."""
    turn = dict(zip(("user", "assistant"), pair, strict=False)) if isinstance(pair, list) else pair
    user = mapping(turn, "user")
    message = Message(Speaker.OWNER, parse_time(user.get("timestamp")) or talk.session.started)
    talk.exchange.record(string(user, "additional_context") or "")
    kind, value = next(iter(mapping(user, "content").items()), ("", None))
    message.texts.append(string(value, "prompt"))
    message.claims = [mapping(turn), user, mapping(value)]
    for result in objects(value, "tool_use_results"):
        failed = result.get("status") == "Error"
        message.result(result.get("tool_use_id"), result.get("content"), is_error=failed)
    kind, value = next(iter(mapping(turn, "assistant").items()), ("", None))
    ended = parse_time(mapping(turn, "request_metadata").get("stream_end_timestamp_ms"))
    answer = Message(Speaker.AGENT, ended or message.time, string(value, "message_id"))
    answer.texts.append(string(value, "content"))
    for call in objects(value, "tool_uses"):
        answer.call(call.get("id"), call.get("name"), call.get("args"))
    if kind not in ("Response", "ToolUse"):
        talk.source.unknown(f"answer {kind}")
    yield from (message, answer)


def _data(places: Places) -> Sequence[Root]:
    folder = places.data(is_native=True)
    return [Root(folder / name, ("data.sqlite3",)) for name in ("kiro-cli", "amazon-q")]


ADAPTER_CLI = Adapter(
    tool=TOOL,
    label="Kiro CLI and Amazon Q",
    roots=_data,
    sniff=lambda head: (
        has_columns(head.database, _COLUMNS) or has_columns(head.database, _OLD_COLUMNS)
    ),
    parse=_parse,
    versions="Amazon Q 1, Kiro CLI*",
    leaves_out="title; tokens; summaries; `.jsonl` files",
)
