"""What each host hands its hooks, what it can be told with which event, and how: one entry a host.

Standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

_HOOK_CONTEXT = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
_APART = re.compile(r":(?:subagent|cron|heartbeat)\b|[/\\]subagents[/\\]")
_PROMPT_CHARACTERS = 20_000
_ARGUMENT_CHARACTERS = 4_000

_LIMITS = ("min_importance", "most_at_once", "cooldown_seconds", "most_per_session", "max_age_seconds")
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
    """``events`` are the host's names of what :class:`nacre.values.hooks.HookEvent` lists; ``read`` makes a call of
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
        """What the daemon is asked for an event, or the process itself: a :class:`nacre.values.hooks.HookCall`."""
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
        "budget_tokens": budget if isinstance(budget, int) and not isinstance(budget, bool) else None,
        "signals": _signals(given.get("signals")),
    }


def _like_gemini(given: Given) -> Asked:
    """Its prompt holds what other hooks injected."""
    asked = _like_claude(given)
    asked["prompt"] = _HOOK_CONTEXT.sub("", asked["prompt"]).strip()
    return asked


def _like_cursor(given: Given) -> Asked:
    roots = given.get("workspace_roots")
    folder = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else _text(given, "cwd")
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
    return json.dumps({key: value[:_ARGUMENT_CHARACTERS] for key, value in given.items() if isinstance(value, str)})


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
    return json.dumps({"additional_context": context}, ensure_ascii=False) if name == "session-start" else "{}"


def _cline(_: str, __: str, context: str) -> str:
    return json.dumps({"cancel": False, "contextModification": context}, ensure_ascii=False)


def _plain(_: str, __: str, context: str) -> str:
    return context


_CLAUDE = {
    "SessionStart": "session-start", "UserPromptSubmit": "prompt", "PreToolUse": "tool", "PreCompact": "pre-compact",
    "Stop": "turn-end", "SessionEnd": "session-end",
}  # fmt: skip

SHAPES: Mapping[str, Shape] = {
    "claude-code": Shape("claude-code", _CLAUDE, _like_claude, _additional),
    "codex": Shape("codex", _CLAUDE, _like_claude, _additional),
    "gemini-cli": Shape(
        "gemini-cli",
        {"SessionStart": "session-start", "BeforeAgent": "prompt", "AfterAgent": "turn-end", "BeforeTool": "tool",
         "PreCompress": "pre-compact", "SessionEnd": "session-end"},
        _like_gemini, _additional, silent="{}",
    ),
    "cursor": Shape(
        "cursor",
        {"sessionStart": "session-start", "beforeSubmitPrompt": "prompt", "stop": "turn-end",
         "preCompact": "pre-compact", "sessionEnd": "session-end"},
        _like_cursor, _cursor, silent="{}",
    ),
    "cline": Shape(
        "cline",
        {"TaskStart": "session-start", "TaskResume": "session-start", "UserPromptSubmit": "prompt",
         "PreToolUse": "tool", "PreCompact": "pre-compact", "TaskComplete": "session-end", "TaskCancel": "turn-end"},
        _like_cline, _cline, silent='{"cancel": false}',
    ),
    "openclaw": Shape("openclaw", {}, _like_claude, _plain),
    "opencode": Shape("opencode", {}, _like_claude, _plain),
    "generic": Shape("generic", {}, _like_claude, _plain),
}  # fmt: skip
"""By the host's name. Those without events of their own speak nacre's."""
