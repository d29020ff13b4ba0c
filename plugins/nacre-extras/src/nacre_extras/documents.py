"""Agents that write whole documents: Amp, Antigravity, Continue and Kiro."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
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
    beside,
    changed,
    content_blocks,
    document,
    documents,
    has_columns,
    keys_of,
    modified,
    parse_time,
    plain,
    under,
)
from nacre.readers.conversation import tokens_of
from nacre.readers.messages import Message, turns_of, words_of
from nacre.readers.trust import Conversation, configuration, folder_of
from nacre.values.session import Flag, Session, Speaker, Tokens

SQL = statements("nacre_extras", "sql")


# -- Amp: ``~/.local/share/amp/threads/T-<id>.json`` ------------------------------------------


_QUIET_AMP = frozenset({"thinking", "redacted_thinking", "image"})
_MARK = re.compile(r'"id"\s*:\s*"T-|"messageId"\s*:\s*\d|"toolUseID"\s*:')
_REFUSED = ("cancelled", "rejected-by-user")


def _parse_amp(source: Source) -> Items:
    thread = mapping(document(source))
    initial = mapping(thread, "env", "initial")
    tree = next(iter(objects(initial, "trees")), {})
    repository = mapping(tree, "repository")
    session = Session(
        "amp",
        string(thread, "id") or source.path.stem,
        title=string(thread, "title"),
        cwd=folder_of(string(tree, "uri")),
        branch=(string(repository, "ref") or "").removeprefix("refs/heads/") or None,
        repository=string(repository, "url"),
        started=parse_time(thread.get("created")) or modified(source),
        tool_version=string(mapping(initial, "platform"), "clientVersion"),
    )
    talk = Conversation(source, session)
    yield from turns_of(talk, _messages_amp(talk, thread))


def _messages_amp(talk: Conversation, thread: Values) -> Iterator[Message]:
    time = talk.session.started
    for number, record in enumerate(objects(thread, "messages")):
        usage = mapping(record, "usage")
        sent = parse_time(mapping(record, "meta").get("sentAt"))
        time = sent or parse_time(usage.get("timestamp")) or time
        own = str(record.get("messageId", number))
        message = Message.of(talk.source, record.get("role"), time, own, [record])
        message.model, message.tokens = string(usage, "model"), tokens_of(usage)
        for block in content_blocks(record):
            kind = str(block.get("type"))
            if kind == "text":
                message.texts.append(string(block, "text"))
                message.claims.append(block)
            elif kind == "tool_use":
                message.call(block.get("id"), block.get("name"), block.get("input"))
            elif kind == "tool_result":
                _add_result_amp(message, block)
            elif kind not in _QUIET_AMP:
                talk.source.unknown(f"block {kind}")
        yield message


def _add_result_amp(message: Message, block: Values) -> None:
    run, call = mapping(block, "run"), string(block, "toolUseID", "tool_use_id")
    status, result = str(run.get("status")), run.get("result")
    if status in _REFUSED:
        message.results.append((str(call), "rejected", words_of(run.get("reason"))))
    elif status in ("done", "error"):
        code, failed = mapping(result).get("exitCode"), status == "error"
        message.result(call, result or run.get("error"), is_error=failed, exit_code=code)


ADAPTER_AMP = Adapter(
    tool="amp",
    label="Amp",
    roots=under("XDG_DATA_HOME", ".local/share", "amp/threads", "T-*.json"),
    sniff=lambda head: "messages" in keys_of(head) and _MARK.search(head.text) is not None,
    parse=_parse_amp,
    whole=True,
    resume=("amp", "threads", "continue", "{id}"),
    versions="2025, 2026*",
    reads="branch; version",
    leaves_out="sub-agents; threads on the server",
)


# -- Antigravity: ``transcript.jsonl`` in the folder of each conversation below ``brain`` -----


_SOURCES = frozenset({"USER_EXPLICIT", "MODEL", "SYSTEM"})
_REQUEST = re.compile(r"<USER_REQUEST>(.*)</USER_REQUEST>", re.DOTALL)
_ADDED = re.compile(r"<(ADDITIONAL_METADATA|USER_SETTINGS_CHANGE)>.*(?:</\1>|\Z)", re.DOTALL)
_MODEL = re.compile(r"`Model Selection` from .+? to (.+?)\.(?=\s)")
_KEYS = {
    "AbsolutePath": "path",
    "CommandLine": "command",
    "DirectoryPath": "path",
    "Query": "query",
    "TargetFile": "path",
    "Url": "url",
}
"""Antigravity's argument names, with nacre's names for them."""
_RUNNING = frozenset({"RUNNING", "PENDING", "WAITING"})


def _parse_antigravity(source: Source) -> Items:
    folder = source.path.parent.parent
    is_own = folder.name == ".system_generated"
    name = folder.parent.name if is_own else source.path.parent.name
    talk = Conversation(source, Session("antigravity", name))
    yield from turns_of(talk, _messages_antigravity(talk))


def _messages_antigravity(talk: Conversation) -> Iterator[Message]:
    """Yield a message for each step. The results of an answer's calls are in the following steps."""
    answer, pending_calls = "", list[str]()
    for number, step in enumerate(documents(talk.source)):
        kind, origin = str(step.get("type")), str(step.get("source"))
        content, time = string(step, "content") or "", parse_time(step.get("created_at"))
        own = str(step.get("step_index", number))
        talk.learn(started=talk.session.started or time)
        if origin == "MODEL":
            if kind in ("PLANNER_RESPONSE", "None"):
                answer, pending_calls = own, []
            message = Message(Speaker.AGENT, time, answer or own)
            for place, call in enumerate(objects(step, "tool_calls")):
                pending_calls.append(string(call, "id") or f"{own}-{place}")
                arguments = mapping(call, "args") or mapping(call, "arguments")
                renamed = {_KEYS.get(key, key): value for key, value in arguments.items()}
                message.call(pending_calls[-1], call.get("name"), renamed)
                talk.learn(cwd=talk.session.cwd or string(arguments, "Cwd"))
            if answer == own:
                message.texts.append(content)
            elif step.get("status") not in _RUNNING:
                if not pending_calls:
                    pending_calls.append(own)
                    message.call(own, kind.lower(), {})
                failed = step.get("status") == "ERROR"
                message.result(pending_calls.pop(0), content, is_error=failed)
            yield message
        elif origin.startswith("USER"):
            model = _MODEL.search(content)
            talk.learn(model=model and model[1])
            request = _REQUEST.search(content)
            text = _ADDED.sub("", request[1] if request else content)
            claim = {"origin": None if origin == "USER_EXPLICIT" else origin}
            yield Message(Speaker.OWNER, time, own, [claim, step], texts=[text])
        elif origin == "SYSTEM":
            summary = content if kind == "CHECKPOINT" else ""
            talk.exchange.record("" if summary else content)
            yield Message(Speaker.SYSTEM, time, own, flags=Flag.SUMMARY, texts=[summary])
        else:
            talk.source.unknown(f"source {origin}")


def _sniff_antigravity(head: Head) -> bool:
    first = head.first
    return "content" in first and first.get("source") in _SOURCES


ADAPTER_ANTIGRAVITY = Adapter(
    tool="antigravity",
    label="Antigravity",
    roots=lambda places: [
        Root(
            places.home / ".gemini",
            ("antigravity*/brain/*/.system_generated/logs/transcript.jsonl",),
        )
    ],
    sniff=_sniff_antigravity,
    parse=_parse_antigravity,
    whole=True,
    versions="2026*",
    reads="summaries",
    leaves_out="title; tokens; plans; encrypted conversations",
)


# -- Continue: ``~/.continue/sessions/<id>.json``. Only the index file in this folder has times ---


_EXIT = re.compile(r"exit code (\d{1,9})")

Add = Callable[[Values, Message], None]
"""Function that adds content from other files to a message."""


def _parse_continue(source: Source, tool: str = "continue", add: Add = lambda *_: None) -> Items:
    """Parse a session of Continue, or of a tool with the same file format."""
    values = mapping(document(source))
    native_id = string(values, "sessionId") or source.path.stem
    index = beside(source.path.with_name(source.path.name.replace(native_id, "sessions")))
    facts = next((each for each in objects_in(index) if each.get("sessionId") == native_id), {})
    time = parse_time(facts.get("dateCreated")) or modified(source)
    folder = string(values, "workspaceDirectory") or string(facts, "workspaceDirectory")
    session = Session(
        tool,
        native_id,
        title=string(values, "title"),
        started=time,
        model=string(values, "chatModelTitle"),
        cwd=folder_of(folder),
    )
    talk = Conversation(source, session)
    history = objects(values, "history")
    for usage in (mapping(item, "message", "usage") for item in history):
        talk.spend(_tokens(usage))
    if talk.spent is None:
        talk.spend(_tokens(mapping(values, "usage")))
    yield from turns_of(talk, _messages_continue(talk, history, time, add))


def _messages_continue(
    talk: Conversation, history: list[Values], time: datetime | None, add: Add
) -> Iterator[Message]:
    for item in history:
        record = mapping(item, "message")
        role, own = str(record.get("role")), string(record, "id")
        message = Message.of(talk.source, role.replace("thinking", "system"), time, own)
        message.claims = [item, record]
        text = "\n\n".join(string(part, "text") or "" for part in content_blocks(record))
        if role == "tool":
            message.result(record.get("toolCallId"), text)
        elif message.speaker is not Speaker.SYSTEM:
            message.texts.append(text)
        for log in objects(item, "promptLogs"):  # with the owner's name for the model
            name = string(log, "modelTitle") or talk.session.model
            talk.learn(model=answered_by(name, string(log, "modelProvider")))
        for attached in objects(item, "contextItems"):
            where = [attached.get("name"), attached.get("uri"), attached.get("description")]
            content = string(attached, "content") or ""
            talk.exchange.record(content, outside="http" in words_of(where))
        for call in objects(record, "toolCalls"):
            function = mapping(call, "function")
            message.call(call.get("id") or "", function.get("name"), function.get("arguments"))
        for state in objects(item, "toolCallStates"):
            _add_result_continue(message, state)
        add(item, message)
        yield message
        summary = string(item, "conversationSummary")
        yield Message(Speaker.SYSTEM, time, flags=Flag.SUMMARY, texts=[summary])


def _add_result_continue(message: Message, state: Values) -> None:
    call, status, output = state.get("toolCallId"), state.get("status"), objects(state, "output")
    text = "\n".join(string(item, "content") or "" for item in output)
    if status in ("canceled", "cancelled"):
        message.results.append((str(call), "rejected", text))
    elif status in ("done", "errored", "error"):
        code = _EXIT.search(" ".join(string(item, "status") or "" for item in output))
        exit_code = int(code[1]) if code else None
        message.result(call, text, is_error=status != "done", exit_code=exit_code)


def _tokens(usage: Values) -> Tokens:
    cached = total(mapping(usage, "promptTokensDetails"), "cachedTokens")
    return Tokens.with_cached(
        total(usage, "promptTokens"), cached, total(usage, "completionTokens")
    )


def _is_session(head: Head, *, of_kiro: bool = False) -> bool:
    """Return True if a file is a session of Continue or, with ``of_kiro``, of Kiro."""
    keys = keys_of(head)
    has_keys = {"sessionId", "workspaceDirectory"} <= keys and bool({"history", "title"} & keys)
    is_kiros = '"executionId"' in head.text or "workspace-sessions" in head.path.parts
    return has_keys and is_kiros == of_kiro


ADAPTER_CONTINUE = Adapter(
    tool="continue",
    label="Continue",
    roots=under("CONTINUE_GLOBAL_DIR", ".continue", "sessions", "*.json"),
    sniff=_is_session,
    parse=_parse_continue,
    whole=True,
    versions="2026",
    leaves_out="times; prompt logs",
)


# -- Kiro: sessions of the editor, and conversations of Kiro CLI and Amazon Q in ``data.sqlite3`` ---


TOOL_KIRO = "kiro"

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
    yield from _parse_continue(source, TOOL_KIRO, partial(_add_answer, answers))


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


ADAPTER_KIRO = Adapter(
    tool=TOOL_KIRO,
    label="Kiro",
    roots=_editors,
    sniff=partial(_is_session, of_kiro=True),
    parse=_parse_editor,
    whole=True,
    versions="2026*",
    leaves_out="model; tokens; times; `.chat` files",
)


# -- Command line --------------------------------------------------------------


# Since 2.0, the table conversations_v2 has all conversations. In Amazon Q and before 2.0, the table
# conversations has only the last conversation in each folder.


def _parse_kiro(source: Source) -> Items:
    is_new = has_columns(source.database, _COLUMNS)
    table, name = ("conversations_v2", "kiro") if is_new else ("conversations", "amazon_q")
    all_rows, one_row = SQL[f"{name}_conversations"], SQL[f"{name}_conversation"]
    for key, row in changed(source, table, all_rows, one_row):
        values = plain(as_bytes(row["value"]))
        if isinstance(values, dict):
            yield from _read_kiro(Part(source), key, row, values)
        else:
            source.corrupt()


def _read_kiro(source: Source, key: str, row: Values, values: Values) -> Items:
    session = Session(
        TOOL_KIRO,
        string(values, "conversation_id") or key,
        cwd=string(row, "key"),
        started=parse_time(row.get("created_at")),
        model=string(mapping(values, "model_info"), "model_id") or string(values, "model"),
    )
    history = values.get("history")
    pairs = history if isinstance(history, list) else []
    talk = Conversation(source, session)
    yield from turns_of(talk, (each for pair in pairs for each in _messages_kiro(talk, pair)))


def _messages_kiro(talk: Conversation, pair: object) -> Iterator[Message]:
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


ADAPTER_KIRO_CLI = Adapter(
    tool=TOOL_KIRO,
    label="Kiro CLI and Amazon Q",
    roots=_data,
    sniff=lambda head: (
        has_columns(head.database, _COLUMNS) or has_columns(head.database, _OLD_COLUMNS)
    ),
    parse=_parse_kiro,
    versions="Amazon Q 1, Kiro CLI*",
    leaves_out="title; tokens; summaries; `.jsonl` files",
)
