"""OpenCode's command, ``opencode run``: an agent without tools, in a home of its own, with which its session goes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from nacre.llm import failures
from nacre.llm.failures import CallTarget
from nacre.llm.wires.command_line import CommandModel, Invocation, Output, events_in, instructions, link
from nacre.platform.environment import user_home
from nacre.values.model_calls import Capabilities, Completion, Prompt, Tokens

_FLAGS = (
    "run", "--pure", "--format", "json", "--print-logs", "--log-level", "ERROR", "--agent", "nacre", "--title", "nacre",
)  # fmt: skip
_AGENT = {"mode": "primary", "tools": {"*": False}, "permission": {"*": "deny"}}
_REFERENCE = re.compile(r"\{(?=(?:file|env):)")
_ENVIRON = {
    **{
        f"OPENCODE_DISABLE_{name}": "1"
        for name in (
            "PROJECT_CONFIG", "AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "CLAUDE_CODE",
            "EXTERNAL_SKILLS",
        )
    },
    "OPENCODE_CONFIG": "", "OPENCODE_CONFIG_DIR": "",
    "npm_config_fetch_retries": "0",  # it installs what plugins need, and waits for it
}  # fmt: skip
_ERROR = re.compile(r'\berror="((?:[^"\\]|\\.)*)"')
"""In its log, as it tries again: for minutes, and nothing keeps it from that."""

_FOLDERS = ("CONFIG", "DATA", "STATE", "CACHE")


class _Cache(msgspec.Struct):
    read: int = 0
    write: int = 0


class _Tokens(msgspec.Struct):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _Cache = msgspec.field(default_factory=_Cache)


class _Part(msgspec.Struct):
    text: str = ""
    tokens: _Tokens | None = None


class _Event(msgspec.Struct):
    type: str = ""
    part: _Part | None = None
    error: dict[str, Any] | None = None
    sessionID: str = ""  # noqa: N815 - as it is printed


_EVENT = msgspec.json.Decoder(_Event)


def opencode_model(asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]) -> CommandModel:
    """A model by ``opencode``. Raises ModelRefused where that is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        data = Path(environ.get("XDG_DATA_HOME") or Path(user_home(environ)) / ".local" / "share") / "opencode"
        link(data, ("auth.json",), folder / "data" / "opencode")
        folders = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in _FOLDERS}
        model = ["--model", asked.model] if asked.model not in ("", "default") else []
        home = str(folder / "home")
        own = {**folders, "HOME": home, "USERPROFILE": home, "OPENCODE_CONFIG_CONTENT": _config(prompt)}
        return Invocation([*_FLAGS, *model], {**_ENVIRON, **own})

    return CommandModel(
        asked, capabilities, environ, program="opencode", invoke=invoke, read=_read,
        complaint=lambda said: "".join(_ERROR.findall(said)[-1:]),
    )  # fmt: skip


def _config(prompt: Prompt) -> str:
    """Its configuration, in which ``{file:…}`` and ``{env:…}`` would be replaced by what they name."""
    told = _REFERENCE.sub("{ ", instructions(prompt))
    agents = {"nacre": {**_AGENT, "prompt": told}, "title": {"disable": True}}
    return json.dumps({"autoupdate": False, "share": "disabled", "agent": agents})


def _read(output: Output, asked: CallTarget) -> Completion:
    events = list(events_in(output.text, _EVENT))
    problem = next((event.error for event in reversed(events) if event.error), None)
    if problem or output.failed:
        told = (problem or {}).get("data") or {}
        status = told.get("statusCode") if isinstance(told, dict) else None
        words = told.get("message") if isinstance(told, dict) else None
        raise failures.program_failed(
            asked, str(words or (problem or {}).get("name") or output.failed), status if isinstance(status, int) else 0
        )
    said = "".join(event.part.text for event in events if event.type == "text" and event.part)
    if not said:
        raise failures.no_answer(asked, output.text)
    used = [event.part.tokens for event in events if event.part and event.part.tokens]
    tokens = Tokens(
        sum(one.input for one in used), sum(one.output + one.reasoning for one in used),
        sum(one.cache.read for one in used), sum(one.cache.write for one in used),
    )  # fmt: skip
    return Completion(said, tokens, asked.model, more={"id": events[0].sessionID})
