"""Continue: ``~/.continue/sessions/<id>.json``. Only the index file in this folder has times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime

from nacre.base.plain import Values, mapping, objects, objects_in, string, total
from nacre.base.text import answered_by
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Source,
    beside,
    content_blocks,
    document,
    keys_of,
    modified,
    parse_time,
    under,
)
from nacre.readers.messages import Message, turns_of, words_of
from nacre.readers.trust import Conversation, folder_of
from nacre.values.session import Flag, Session, Speaker, Tokens

TOOL = "continue"

_EXIT = re.compile(r"exit code (\d{1,9})")

Add = Callable[[Values, Message], None]
"""Function that adds content from other files to a message."""


def parse(source: Source, tool: str = TOOL, add: Add = lambda *_: None) -> Items:
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
    yield from turns_of(talk, _messages(talk, history, time, add))


def _messages(
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
            _add_result(message, state)
        add(item, message)
        yield message
        summary = string(item, "conversationSummary")
        yield Message(Speaker.SYSTEM, time, flags=Flag.SUMMARY, texts=[summary])


def _add_result(message: Message, state: Values) -> None:
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


def is_session(head: Head, *, of_kiro: bool = False) -> bool:
    """Return True if a file is a session of Continue or, with ``of_kiro``, of Kiro."""
    keys = keys_of(head)
    has_keys = {"sessionId", "workspaceDirectory"} <= keys and bool({"history", "title"} & keys)
    is_kiros = '"executionId"' in head.text or "workspace-sessions" in head.path.parts
    return has_keys and is_kiros == of_kiro


ADAPTER = Adapter(
    tool=TOOL,
    label="Continue",
    roots=under("CONTINUE_GLOBAL_DIR", ".continue", "sessions", "*.json"),
    sniff=is_session,
    parse=parse,
    whole=True,
    versions="2026",
    leaves_out="times; prompt logs",
)
