"""What each host hands its hooks, and how it wants to be told: one entry a host. Standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_HOOK_CONTEXT = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
_PROMPT_CHARACTERS = 20_000

Given = Mapping[str, Any]
Asked = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """``events`` are the host's names of what :class:`nacre.model.hooking.HookEvent` lists; ``read`` makes a call of
    what it hands over; ``tell`` makes its output of a context, empty where there is none.

    ``tool`` is the name of the adapter that reads the host's transcripts: it makes the session's name.
    """

    tool: str
    events: Mapping[str, str]
    read: Callable[[Given], Asked]
    tell: Callable[[str, str], str]
    silent: str = ""
    """What is written where there is nothing to tell."""


def _text(given: Given, *names: str) -> str:
    for name in names:
        value = given.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _like_claude(given: Given) -> Asked:
    return {
        "session": _text(given, "session_id"),
        "folder": _text(given, "cwd") or None,
        "prompt": _text(given, "prompt")[:_PROMPT_CHARACTERS],
        "occasion": _occasion(_text(given, "source")),
        "transcript": _text(given, "transcript_path") or None,
        "reason": _text(given, "reason", "trigger"),
        "is_apart": bool(given.get("agent_id") or given.get("agent_type")),
        "tool": _text(given, "tool_name"),
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


def _occasion(source: str) -> str:
    return source if source in ("startup", "resume", "clear", "compact") else "startup"


def _additional(event: str, context: str) -> str:
    """No key but those that Codex' closed schema knows."""
    told = {"hookEventName": event, "additionalContext": context}
    return json.dumps({"hookSpecificOutput": told}, ensure_ascii=False) if context else ""


def _additional_or_empty(event: str, context: str) -> str:
    return _additional(event, context) or "{}"


def _cursor(event: str, context: str) -> str:
    if event == "sessionStart":
        return json.dumps({"additional_context": context} if context else {}, ensure_ascii=False)
    return "{}"


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
        _like_gemini, _additional_or_empty, silent="{}",
    ),
    "cursor": Shape(
        "cursor",
        {"sessionStart": "session-start", "beforeSubmitPrompt": "prompt", "stop": "turn-end",
         "preCompact": "pre-compact", "sessionEnd": "session-end"},
        _like_cursor, _cursor, silent="{}",
    ),
    "openclaw": Shape("openclaw", {}, _like_claude, _additional),
    "opencode": Shape("opencode", {}, _like_claude, _additional),
    "generic": Shape("generic", {}, _like_claude, lambda _, context: context),
}  # fmt: skip
"""By the host's name. Those without events of their own speak nacre's."""


def event_of(shape: Shape, name: str) -> str:
    """nacre's name of a host's event; nacre's own are known to all."""
    return shape.events.get(name, name)
