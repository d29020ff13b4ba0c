"""What each host hands its hooks, what it can be told with which event, and how: one entry a host.

Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from nacre.base import link
from nacre.base.link import session_file

_HOOK_CONTEXT = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
_APART = re.compile(r":(?:subagent|cron|heartbeat)\b|[/\\]subagents[/\\]")
_PROMPT_CHARACTERS = 20_000
_ARGUMENT_CHARACTERS = 4_000

_LIMITS = (
    "min_importance",
    "most_at_once",
    "cooldown_seconds",
    "most_per_session",
    "max_age_seconds",
)
"""Of :class:`nacre.values.context.SignalLimits`, which costs this process too much."""

TELLING = frozenset({"session-start", "prompt"})
"""The events with which a host can be told something, by the daemon or without it."""

TOOL = "tool"
"""With a tool that is about to run only the daemon tells something: it happens too often to look alone."""

ASKS = ("claude-code", "turn-end")
"""The host and event with which the daemon, and nobody else, may have something to ask the agent."""

_MOST_CHARACTERS = 9_900
"""Hosts cut what is longer than 10,000."""

Given = Mapping[str, Any]
Asked = dict[str, Any]


class Shape(NamedTuple):
    """``events`` are the host's names of what :class:`nacre.values.context.HookEvent` lists; ``read`` makes a call of
    what it hands over; ``tell`` makes its output of the event, as the host and as nacre calls it, and a context.

    ``tool`` is the name of the adapter that reads the host's transcripts: it makes the session's name.
    """

    tool: str
    events: Mapping[str, str]
    read: Callable[[Given], Asked]
    tell: Callable[[str, str, str], str]
    silent: str = ""
    """What is written where there is nothing to tell."""

    def name_of(self, event: str) -> str:
        """An event of the host's, as nacre calls it; empty where nacre has no use for it."""
        return self.events.get(event, "") if self.events else event

    def call(self, host: str, name: str, given: Given) -> Asked:
        """What the daemon is asked for an event, or the process itself: a :class:`nacre.values.context.HookCall`."""
        call = {"host": host, "event": name, **self.read(given)}
        call["session"] = f"{self.tool}:{call['session']}" if call["session"] else ""
        return call

    def output(self, event: str, name: str, context: str) -> bytes:
        """What is written to the host."""
        text = self.tell(event, name, context) if context else self.silent
        return text.encode("utf-8", "replace")


def context_of(host: str, name: str, answer: Mapping[str, Any]) -> str:
    """What of an answer a host is told with an event of nacre's name; nothing where that is too long for it."""
    may_tell = name in TELLING or name == TOOL or (host, name) == ASKS
    context = answer.get("context", "") if may_tell else ""
    return context if len(context) <= _MOST_CHARACTERS else ""


def parsed(data: bytes) -> dict[str, Any] | None:
    """What a host hands over: empty where that is no object; ``None`` where it is not JSON, or not all of it."""
    with suppress(ValueError, RecursionError):
        given = json.loads(data.decode("utf-8-sig", "replace"))
        return given if isinstance(given, dict) else {}
    return None


def _text(given: Given, *names: str) -> str:
    for name in names:
        value = given.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _like_claude(given: Given) -> Asked:
    budget = given.get("budget_tokens")
    return {
        "session": _text(given, "session_id"),
        "folder": _text(given, "cwd") or None,
        "prompt": _text(given, "prompt")[:_PROMPT_CHARACTERS],
        "occasion": _occasion(_text(given, "source")),
        "transcript": _text(given, "transcript_path") or None,
        "reason": _text(given, "reason", "trigger"),
        "is_apart": _is_apart(given),
        "tool": _text(given, "tool_name"),
        "arguments": _arguments(given.get("tool_input")),
        "goes_on": given.get("stop_hook_active") is True,
        "budget_tokens": budget
        if isinstance(budget, int) and not isinstance(budget, bool)
        else None,
        "signals": _signals(given.get("signals")),
    }


def _like_gemini(given: Given) -> Asked:
    """Its prompt holds what other hooks injected."""
    asked = _like_claude(given)
    asked["prompt"] = _HOOK_CONTEXT.sub("", asked["prompt"]).strip()
    return asked


def _like_cursor(given: Given) -> Asked:
    roots = given.get("workspace_roots")
    folder = (
        roots[0]
        if isinstance(roots, list) and roots and isinstance(roots[0], str)
        else _text(given, "cwd")
    )
    return {
        **_like_claude(given),
        "session": _text(given, "conversation_id", "session_id"),
        "folder": folder or None,
    }


def _like_cline(given: Given) -> Asked:
    roots, said = given.get("workspaceRoots"), given.get("userPromptSubmit")
    folder = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else None
    return {
        **_like_claude(given),
        "session": _text(given, "taskId"),
        "folder": folder,
        "prompt": _text(said, "prompt")[:_PROMPT_CHARACTERS] if isinstance(said, dict) else "",
        "occasion": "resume" if given.get("hookName") == "TaskResume" else "startup",
    }


def _signals(given: object) -> dict[str, int] | None:
    """The limits of signals that a plugin of ours passes on from its host's settings."""
    if not isinstance(given, dict):
        return None
    return {name: given[name] for name in _LIMITS if isinstance(given.get(name), int)} or None


def _arguments(given: object) -> str:
    """What a tool is called with: its texts, each cut. A file's path and a command are short."""
    if not isinstance(given, dict):
        return ""
    return json.dumps(
        {
            key: value[:_ARGUMENT_CHARACTERS]
            for key, value in given.items()
            if isinstance(value, str)
        }
    )


def _is_apart(given: Given) -> bool:
    """Whether nobody talks in this session: a sub-agent's, a scheduled one, a heartbeat."""
    names = (_text(given, "session_id"), _text(given, "transcript_path"))
    return bool(given.get("agent_id") or given.get("isSidechain") or any(map(_APART.search, names)))


def _occasion(source: str) -> str:
    return source if source in ("startup", "resume", "clear", "compact") else "startup"


def _additional(event: str, _: str, context: str) -> str:
    """No key but those that Codex' closed schema knows."""
    told = {"hookEventName": event, "additionalContext": context}
    return json.dumps({"hookSpecificOutput": told}, ensure_ascii=False)


def _cursor(_: str, name: str, context: str) -> str:
    """With a prompt it takes nothing but whether to go on."""
    return (
        json.dumps({"additional_context": context}, ensure_ascii=False)
        if name == "session-start"
        else "{}"
    )


def _cline(_: str, __: str, context: str) -> str:
    return json.dumps({"cancel": False, "contextModification": context}, ensure_ascii=False)


def _plain(_: str, __: str, context: str) -> str:
    return context


_CLAUDE = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "tool",
    "PreCompact": "pre-compact",
    "Stop": "turn-end",
    "SessionEnd": "session-end",
}

SHAPES: Mapping[str, Shape] = {
    "claude-code": Shape("claude-code", _CLAUDE, _like_claude, _additional),
    "codex": Shape("codex", _CLAUDE, _like_claude, _additional),
    "gemini-cli": Shape(
        "gemini-cli",
        {
            "SessionStart": "session-start",
            "BeforeAgent": "prompt",
            "AfterAgent": "turn-end",
            "BeforeTool": "tool",
            "PreCompress": "pre-compact",
            "SessionEnd": "session-end",
        },
        _like_gemini,
        _additional,
        silent="{}",
    ),
    "cursor": Shape(
        "cursor",
        {
            "sessionStart": "session-start",
            "beforeSubmitPrompt": "prompt",
            "stop": "turn-end",
            "preCompact": "pre-compact",
            "sessionEnd": "session-end",
        },
        _like_cursor,
        _cursor,
        silent="{}",
    ),
    "cline": Shape(
        "cline",
        {
            "TaskStart": "session-start",
            "TaskResume": "session-start",
            "UserPromptSubmit": "prompt",
            "PreToolUse": "tool",
            "PreCompact": "pre-compact",
            "TaskComplete": "session-end",
            "TaskCancel": "turn-end",
        },
        _like_cline,
        _cline,
        silent='{"cancel": false}',
    ),
    "openclaw": Shape("openclaw", {}, _like_claude, _plain),
    "opencode": Shape("opencode", {}, _like_claude, _plain),
    "generic": Shape("generic", {}, _like_claude, _plain),
}
"""By the host's name. Those without events of their own speak nacre's."""


# ----------------------------------------------------------------------------
# What a hook leaves in the home: what a session was given, what is to be done, and a line about its
# run.
#
# Standard library only, and nothing of it is waited for: where the disk does not take it, it is lost.
# A home that is not
# there is not made.


_LOG_BYTES = 1_000_000
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def keep(home: str, call: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Keep what a session was given, once it was, and leave what is to be done because of that."""
    session, state = call.get("session", ""), answer.get("state")
    if session and isinstance(state, dict):
        _replace(home, session_file(home, session), state)
    for kind in answer.get("chores") or ():
        if kind != call.get("event"):
            leave_chore(home, str(kind), call)


def owe_start(home: str, session: str, occasion: str) -> None:
    """A session was not told what it starts with: its next prompt is.

    What was given before it began anew is out of sight. One that is gone on with has it in sight, and is owed nothing.
    """
    if session and (occasion != "resume" or not os.path.exists(session_file(home, session))):
        _replace(home, session_file(home, session), {"owed": occasion})


def leave_chore(home: str, kind: str, call: Mapping[str, Any]) -> None:
    """Leave what is to be done for whoever has the time; a home that is not there is not made."""
    if os.path.isdir(home):
        with suppress(OSError):
            link.leave_chore(
                home,
                kind,
                session=str(call.get("session") or ""),
                transcript=call.get("transcript"),
                folder=call.get("folder"),
                occasion=str(call.get("occasion") or ""),
            )


class Line(NamedTuple):
    """What is noted of a run: ``ms`` since its process started, or since the daemon heard of it where that answers the
    host itself; and how many characters were told."""

    host: str
    event: str
    how: str
    ms: float
    characters: int


def log(home: str, line: Line) -> None:
    """One line about a run, without a word of what was said."""
    data = json.dumps({"at": round(time.time(), 3), **line._asdict()}).encode() + b"\n"
    with suppress(OSError):
        path = os.path.join(_folder(home, "logs"), "hooks.jsonl")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _SAFE, 0o600)
        try:
            os.write(descriptor, data)
            is_full = os.fstat(descriptor).st_size > _LOG_BYTES
        finally:
            os.close(descriptor)
        if is_full:
            os.replace(path, path + ".1")


def _replace(home: str, path: str, value: dict[str, Any]) -> None:
    """Write a file whole or not at all."""
    with suppress(OSError):
        folder = _folder(home, "run", os.path.basename(os.path.dirname(path)))
        fresh = os.path.join(folder, f".{os.getpid()}-{threading.get_ident()}.tmp")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _SAFE, 0o600)
        try:
            os.write(descriptor, json.dumps(value).encode())
        finally:
            os.close(descriptor)
        os.replace(fresh, path)


def _folder(home: str, *names: str) -> str:
    """A folder of the home, for the owner alone. Raises OSError."""
    folder = os.path.abspath(home)
    for name in names:
        folder = os.path.join(folder, name)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    return folder
