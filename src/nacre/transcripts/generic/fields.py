"""What messages and sessions are called in JSON of no tool in particular."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nacre.values.session import Speaker

CALLS = ("tool_call", "function_call", "tool_use")
"""Types of records that are one call of the agent's."""

ROLES: dict[str, Speaker] = {
    **dict.fromkeys(("user", "human", "owner"), Speaker.OWNER),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "agent", "gpt", *CALLS), Speaker.AGENT),
    **dict.fromkeys(("tool", "function", "tool_result", "function_result", "function_call_output"), Speaker.TOOL),
    **dict.fromkeys(("system", "developer"), Speaker.SYSTEM),
}

_MESSAGE_IDS = ("id", "uuid", "message_id", "messageId", "turn_id", "dia_id")
_SESSION_IDS = ("session_id", "sessionId", "conversation_id", "conversationId", "chat_id", "chatId")
_TIMES = ("timestamp", "ts", "created_at", "createdAt", "time", "date")
_TEXTS = ("content", "text", "message", "body", "value", "parts")
_RESULTS = (*_TEXTS, "result", "output")
_ROLE_KEYS = ("role", "type", "from", "sender", "speaker", "author", "name")
_NAME_KEYS = ("from", "sender", "speaker", "author", "name")
_MESSAGE_LISTS = ("messages", "turns", "conversation", "conversations")
_FACTS = {
    "title": ("title", "conversation_title"),
    "cwd": ("cwd", "workspace", "workspaceDirectory", "working_directory"),
    "label": ("label", "project", "conversation_label"),
    "branch": ("branch", "gitBranch", "git_branch"),
    "model": ("model", "model_slug"),
}
_DEEPEST = 5
_UNSAID = frozenset({"thinking", "reasoning", "tool_use", "tool_call", "tool_result", "image", "image_url"})


@dataclass(frozen=True, slots=True)
class Line:
    """One message. ``author`` is a person's name, or for a tool's result the tool's."""

    speaker: Speaker
    text: str
    author: str | None
    stamp: str | None
    calls: tuple[Mapping[str, Any], ...] = ()
    call_id: str | None = None


def read_line(record: Mapping[str, Any]) -> Line | None:
    """The message in a record; ``None`` when it holds none."""
    record = unwrapped(record)
    speaker, author = _who(record)
    if speaker is None:
        return None
    is_tools = speaker is Speaker.TOOL
    content = next((record[key] for key in (_RESULTS if is_tools else _TEXTS) if record.get(key)), None)
    calls = tuple(_calls(record))
    if content is None and not calls:
        return None
    text = said(content) or (str(content) if is_tools else "")
    return Line(speaker, text, author, _stamp(record), calls, _first(record, ("tool_call_id", "call_id")))


def is_message(record: Mapping[str, Any]) -> bool:
    """Whether a record holds one message."""
    return read_line(record) is not None


def messages_of(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages of a record that is a whole session; empty when it is none."""
    for key in _MESSAGE_LISTS:
        value = record.get(key)
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            return [item for item in value if is_message(item)]
    return []


def message_id(record: Mapping[str, Any]) -> str | None:
    """The id that the message was given."""
    return _first(record, _MESSAGE_IDS) or _first(unwrapped(record), _MESSAGE_IDS)


def session_id(record: Mapping[str, Any]) -> str | None:
    """The id of the session that a line belongs to."""
    return _first(record, _SESSION_IDS) or _first(unwrapped(record), _SESSION_IDS)


def whole_session_id(record: Mapping[str, Any]) -> str | None:
    """The id of a record that is a whole session."""
    return session_id(record) or _first(record, ("id", "uuid"))


def session_facts(record: Mapping[str, Any]) -> dict[str, str]:
    """What a line says about its session."""
    found = {fact: _first(record, keys) for fact, keys in _FACTS.items()}
    return {fact: value for fact, value in found.items() if value}


def said(content: Any, depth: int = 0) -> str:
    """The words of a message: a string, a block, or a list of either."""
    if isinstance(content, str):
        return content
    if depth > _DEEPEST:
        return ""
    if isinstance(content, Mapping):
        if str(content.get("type")) in _UNSAID:
            return ""
        return said(next((content[key] for key in _TEXTS if content.get(key)), None), depth + 1)
    if isinstance(content, Sequence):
        return "\n\n".join(filter(None, (said(item, depth + 1) for item in content)))
    return ""


def unwrapped(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Messages lie under ``message``, or under ``payload`` where that says it is one."""
    inner = record.get("message")
    payload = record.get("payload")
    if isinstance(payload, Mapping) and payload.get("type") == "message":
        inner = payload
    if not isinstance(inner, Mapping):
        return record
    return {**{key: value for key, value in record.items() if key != "message"}, **inner}


def _who(record: Mapping[str, Any]) -> tuple[Speaker | None, str | None]:
    speaker: Speaker | None = None
    author: str | None = None
    for key in _ROLE_KEYS:
        value = record.get(key)
        if isinstance(value, Mapping):
            value = value.get("role") or value.get("name")
        if not isinstance(value, str) or not value.strip():
            continue
        role = ROLES.get(value.strip().lower())
        if role:
            speaker = speaker or role
        elif key in _NAME_KEYS:
            author = author or value.strip()
    if record.get("type") in CALLS:
        author = None  # what is named is the tool
    return (speaker or (Speaker.OWNER if author else None)), author


def _calls(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = record.get("content")
    blocks = content if isinstance(content, list) else ()
    listed = record.get("tool_calls")
    alone = (record,) if record.get("type") in CALLS else ()
    for call in (*blocks, *(listed if isinstance(listed, list) else ()), *alone):
        if not isinstance(call, Mapping):
            continue
        function = call.get("function")
        inner = function if isinstance(function, Mapping) else call
        arguments = next((at[key] for at in (inner, call) for key in ("arguments", "input") if key in at), None)
        if isinstance(inner.get("name"), str) and arguments is not None:
            yield {"id": call.get("call_id") or call.get("id"), "name": inner["name"], "arguments": arguments}


def _stamp(record: Mapping[str, Any]) -> str | None:
    return _first(record, _TIMES)


def _first(record: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """The first of the fields that has a value, as text."""
    for key in keys:
        value = record.get(key)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    return None
