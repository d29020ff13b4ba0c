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
from nacre.base.link import session_file

_HOOK_CONTEXT = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
_APART = re.compile(r":(?:subagent|cron|heartbeat)\b|[/\\]subagents[/\\]")
_OCCASIONS = ("resume", "clear", "compact")
_MAX_PROMPT_CHARACTERS = 20_000
_MAX_ARGUMENT_CHARACTERS = 4_000

TELLING = frozenset({"session-start", "prompt"})
"""Events at which nacre can give context to a host, with or without the daemon."""

TOOL = "tool"
"""Event before a tool runs. Only the daemon handles it, because it is frequent."""

ASKS = ("claude-code", "turn-end")
"""The host and the event at which the daemon can ask the agent a question."""

_MAX_CONTEXT_CHARACTERS = 9_900
"""Maximum length of the context. Hosts cut text longer than 10,000 characters."""

Given = Mapping[str, Any]
Asked = dict[str, Any]


class Shape(NamedTuple):
    """The input and output formats of a host.

    ``events``: values of :class:`nacre.values.context.HookEvent`, keyed by the host's event names.
    ``read``: the function that converts input to a call. ``tell``: the function that converts the
    host's event name, nacre's event name, and the context to output.
    """

    events: Mapping[str, str]
    read: Callable[[Given], Asked]
    tell: Callable[[str, str, str], str]
    silent: str = ""
    """Output of a hook that adds no context."""

    def name_of(self, event: str) -> str:
        """Return nacre's name for a host's event, or an empty string if nacre ignores the event."""
        return self.events.get(event, "") if self.events else event

    def call(self, host: str, name: str, data: Given) -> Asked:
        """Return the fields of a :class:`nacre.values.context.HookCall` for an event."""
        call = {"host": host, "event": name, **self.read(data)}
        call["session"] = f"{host}:{call['session']}" if call["session"] else ""
        return call

    def output(self, event: str, name: str, context: str) -> bytes:
        """Return the output for the host."""
        text = self.tell(event, name, context) if context else self.silent
        return text.encode("utf-8", "replace")


def context_of(host: str, name: str, answer: Given) -> str:
    """Return the context from an answer. The context is empty if the host cannot take it."""
    may_tell = name in TELLING or name == TOOL or (host, name) == ASKS
    context = answer.get("context", "") if may_tell else ""
    return context if len(context) <= _MAX_CONTEXT_CHARACTERS else ""


def parsed(data: bytes) -> dict[str, Any] | None:
    """Parse a host's input. Return ``None`` if the JSON is incomplete, or ``{}`` if it is not an object."""
    with suppress(ValueError, RecursionError):
        value = json.loads(data.decode("utf-8-sig", "replace"))
        return value if isinstance(value, dict) else {}
    return None


def _text(data: Given, *names: str) -> str:
    for name in names:
        value = data.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _read_claude(data: Given) -> Asked:
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
        "goes_on": data.get("stop_hook_active") is True,
        "budget_tokens": budget if type(budget) is int else None,
        "signals": _signals(data.get("signals")),
    }


def _read_gemini(data: Given) -> Asked:
    """Convert Gemini's input. Remove context that other hooks added to the prompt."""
    call = _read_claude(data)
    call["prompt"] = _HOOK_CONTEXT.sub("", call["prompt"]).strip()
    return call


def _read_cursor(data: Given) -> Asked:
    call = _read_claude(data)
    return {
        **call,
        "session": _text(data, "conversation_id", "session_id"),
        "folder": _root(data, "workspace_roots") or call["folder"],
    }


def _read_cline(data: Given) -> Asked:
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


def _root(data: Given, name: str) -> str | None:
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


def _is_apart(data: Given) -> bool:
    """Return True for a session without a user, such as a sub-agent, a scheduled run or a heartbeat."""
    names = (_text(data, "session_id"), _text(data, "transcript_path"))
    return bool(data.get("agent_id") or data.get("isSidechain") or any(map(_APART.search, names)))


def _tell_additional(event: str, _: str, context: str) -> str:
    """Format context with only the keys that Codex accepts."""
    output = {"hookEventName": event, "additionalContext": context}
    return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False)


def _tell_cursor(_: str, name: str, context: str) -> str:
    """Format context for Cursor, which accepts context only when a session starts."""
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


def keep(home: str, call: Given, answer: Given) -> None:
    """Store the session state and the chores that an answer to a hook contains."""
    session, state = call.get("session", ""), answer.get("state")
    if session and isinstance(state, dict):
        link.write_session(home, session, state)
    for kind in answer.get("chores") or ():
        if kind != call.get("event"):
            leave_chore(home, str(kind), call)


def owe_start(home: str, session: str, occasion: str) -> None:
    """Record that a session started without its context, so that the next prompt gets the context.

    A resumed session that already received context is not recorded.
    """
    if session and (occasion != "resume" or not os.path.exists(session_file(home, session))):
        link.write_session(home, session, {"owed": occasion})


def leave_chore(home: str, kind: str, call: Given) -> None:
    """Record work for later, unless the home is missing.

    ``kind``: one of :data:`nacre.base.link.EVENTS`.
    """
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
    """Append a line about a hook's run to the log. The line contains no text of the session.

    ``ms``: run time in milliseconds. ``characters``: length of the context.
    """
    line = {"host": host, "event": event, "how": how, "ms": ms, "characters": characters}
    data = json.dumps({"at": round(time.time(), 3), **line}).encode() + b"\n"
    with suppress(OSError):
        path = os.path.join(home, "logs", "hooks.jsonl")
        if link.append(home, path, data) > _MAX_LOG_BYTES:
            os.replace(path, path + ".1")
