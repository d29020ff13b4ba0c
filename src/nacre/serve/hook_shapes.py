"""Input and output formats of each host's hooks, and files that hooks write.

This module imports only the standard library.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from nacre.base import link

_HOOK_CONTEXT = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
_APART = re.compile(r":(?:subagent|cron|heartbeat)\b|[/\\]subagents[/\\]")
_OCCASIONS = ("resume", "clear", "compact")
_MAX_PROMPT_CHARACTERS = 20_000
_MAX_ARGUMENT_CHARACTERS = 4_000

TELLING = frozenset({"session-start", "prompt"})
"""Events at which nacre can give context to a host, with or without the daemon."""

TOOL = "tool"
"""Event before a tool runs. It is frequent, so only the daemon handles it."""

_MAX_CONTEXT_CHARACTERS = 9_900
"""Maximum length of the context. Hosts cut text longer than 10,000 characters."""

Fields = Mapping[str, Any]
CallFields = dict[str, Any]


class Shape(NamedTuple):
    """The formats of a host's hooks.

    ``events``: nacre's names for the host's events. ``read``: converts the host's input to a call.
    ``tell``: converts the host's event name, nacre's event name and the context to output.
    """

    events: Mapping[str, str]
    read: Callable[[Fields], CallFields]
    tell: Callable[[str, str, str], str]
    silent: str = ""
    """Output of a hook that adds no context."""

    def name_of(self, event: str) -> str:
        """Return nacre's name for one of the host's events, or "" if nacre ignores the event."""
        return self.events.get(event, "") if self.events else event

    def call(self, host: str, name: str, data: Fields) -> CallFields:
        """Convert the host's input to the fields of a :class:`nacre.values.context.HookCall`."""
        call = {"host": host, "event": name, **self.read(data)}
        call["session"] = f"{host}:{call['session']}" if call["session"] else ""
        return call

    def output(self, event: str, name: str, context: str) -> bytes:
        """Return what a hook prints for the host."""
        text = self.tell(event, name, context) if context else self.silent
        return text.encode("utf-8", "replace")


def context_of(name: str, answer: Fields) -> str:
    """Return the context in an answer, or "" if it is too long or not allowed at this event."""
    may_tell = name in TELLING or name == TOOL
    context = answer.get("context", "") if may_tell else ""
    return context if len(context) <= _MAX_CONTEXT_CHARACTERS else ""


def parse_input(data: bytes) -> dict[str, Any] | None:
    """Parse a host's input. Return ``None`` if it is incomplete, ``{}`` if it is not an object."""
    with suppress(ValueError, RecursionError):
        value = json.loads(data.decode("utf-8-sig", "replace"))
        return value if isinstance(value, dict) else {}
    return None


def _text(data: Fields, *names: str) -> str:
    for name in names:
        value = data.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _read_claude(data: Fields) -> CallFields:
    budget, source = data.get("budget_tokens"), data.get("source")
    return {
        "session": _text(data, "session_id"),
        "folder": _text(data, "cwd") or None,
        "prompt": _text(data, "prompt")[:_MAX_PROMPT_CHARACTERS],
        "occasion": source if source in _OCCASIONS else "startup",
        "transcript": _text(data, "transcript_path") or None,
        "is_apart": _is_apart(data),
        "tool": _text(data, "tool_name"),
        "arguments": _arguments(data.get("tool_input")),
        "budget_tokens": budget if type(budget) is int else None,
        "signals": _signals(data.get("signals")),
    }


def _read_gemini(data: Fields) -> CallFields:
    call = _read_claude(data)
    call["prompt"] = _HOOK_CONTEXT.sub("", call["prompt"]).strip()
    return call


def _read_cursor(data: Fields) -> CallFields:
    call = _read_claude(data)
    return {
        **call,
        "session": _text(data, "conversation_id", "session_id"),
        "folder": _root(data, "workspace_roots") or call["folder"],
    }


def _read_cline(data: Fields) -> CallFields:
    submission = data.get("userPromptSubmit")
    return {
        **_read_claude(data),
        "session": _text(data, "taskId"),
        "folder": _root(data, "workspaceRoots"),
        "prompt": _text(submission, "prompt")[:_MAX_PROMPT_CHARACTERS]
        if isinstance(submission, dict)
        else "",
        "occasion": "resume" if data.get("hookName") == "TaskResume" else "startup",
    }


def _root(data: Fields, name: str) -> str | None:
    match data.get(name):
        case [str(root), *_]:
            return root or None
    return None


def _signals(data: object) -> dict[str, int] | None:
    if not isinstance(data, dict):
        return None
    return {name: value for name, value in data.items() if type(value) is int}


def _arguments(data: object) -> str:
    if not isinstance(data, dict):
        return ""
    return json.dumps(
        {
            key: value[:_MAX_ARGUMENT_CHARACTERS]
            for key, value in data.items()
            if isinstance(value, str)
        }
    )


def _is_apart(data: Fields) -> bool:
    """Return True for a session without a user: a sub-agent, a scheduled run or a heartbeat."""
    names = (_text(data, "session_id"), _text(data, "transcript_path"))
    return bool(data.get("agent_id") or data.get("isSidechain") or any(map(_APART.search, names)))


def _tell_additional(event: str, _: str, context: str) -> str:
    output = {"hookEventName": event, "additionalContext": context}
    return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False)


def _tell_cursor(_: str, name: str, context: str) -> str:
    return (
        json.dumps({"additional_context": context}, ensure_ascii=False)
        if name == "session-start"
        else "{}"
    )


def _tell_cline(_: str, __: str, context: str) -> str:
    return json.dumps({"cancel": False, "contextModification": context}, ensure_ascii=False)


_CLAUDE = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "tool",
    "PreCompact": "pre-compact",
    "Stop": "turn-end",
    "SessionEnd": "session-end",
}

_PLAIN = Shape({}, _read_claude, lambda _, __, context: context)

SHAPES: Mapping[str, Shape] = {
    "claude-code": Shape(_CLAUDE, _read_claude, _tell_additional),
    "codex": Shape(_CLAUDE, _read_claude, _tell_additional),
    "gemini-cli": Shape(
        {
            "SessionStart": "session-start",
            "BeforeAgent": "prompt",
            "AfterAgent": "turn-end",
            "BeforeTool": "tool",
            "PreCompress": "pre-compact",
            "SessionEnd": "session-end",
        },
        _read_gemini,
        _tell_additional,
        silent="{}",
    ),
    "cursor": Shape(
        {
            "sessionStart": "session-start",
            "beforeSubmitPrompt": "prompt",
            "stop": "turn-end",
            "preCompact": "pre-compact",
            "sessionEnd": "session-end",
        },
        _read_cursor,
        _tell_cursor,
        silent="{}",
    ),
    "cline": Shape(
        {
            "TaskStart": "session-start",
            "TaskResume": "session-start",
            "UserPromptSubmit": "prompt",
            "PreToolUse": "tool",
            "PreCompact": "pre-compact",
            "TaskComplete": "session-end",
            "TaskCancel": "turn-end",
        },
        _read_cline,
        _tell_cline,
        silent='{"cancel": false}',
    ),
    "openclaw": _PLAIN,
    "opencode": _PLAIN,
    "generic": _PLAIN,
}
"""The formats of each host. Hosts without an event map use nacre's event names."""


# -- Files written by hooks ------------------------------------------------------------------------
# Writing never blocks or raises an error. Data that the disk rejects is lost. A missing home is
# not created.


_MAX_LOG_BYTES = 1_000_000


def keep(home: str, call: Fields, answer: Fields) -> None:
    """Store the session's state and the chores from a hook's answer."""
    session, state = call.get("session", ""), answer.get("state")
    if session and isinstance(state, dict):
        link.write_session(home, session, state)
    for kind in answer.get("chores") or ():
        if kind != call.get("event"):
            leave_chore(home, str(kind), call)


def owe_start(home: str, session: str, occasion: str) -> None:
    """Record that a session started without context, so that its next prompt gets it."""
    if session and (occasion != "resume" or not os.path.exists(link.session_file(home, session))):
        link.write_session(home, session, {"owed": occasion})


def leave_chore(home: str, kind: str, call: Fields) -> None:
    """Leave work of a kind in :data:`nacre.base.link.EVENTS` for the daemon."""
    chore = {
        "kind": kind,
        "session": call.get("session") or "",
        "transcript": call.get("transcript"),
        "folder": call.get("folder"),
        "occasion": call.get("occasion") or "",
        "at": round(time.time(), 3),
    }
    with suppress(OSError):
        link.write_json(home, link.chore_file(home), chore)


def log(home: str, host: str, event: str, how: str, ms: float, characters: int) -> None:
    """Log a hook's run, without any content of the session. ``ms``: its duration. ``characters``:
    the length of its context.
    """
    line = {"host": host, "event": event, "how": how, "ms": ms, "characters": characters}
    data = json.dumps({"at": round(time.time(), 3), **line}).encode() + b"\n"
    with suppress(OSError):
        path = os.path.join(home, "logs", "hooks.jsonl")
        if link.append(home, path, data) > _MAX_LOG_BYTES:
            os.replace(path, path + ".1")
