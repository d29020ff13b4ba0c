"""Codex's own command, ``codex exec``: in a sandbox that only reads, unless the prompt allows it to write, in a home
of its own, and without a session that is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nacre.llm import failures
from nacre.llm.failures import CallTarget
from nacre.llm.wires.command_line import CommandModel, Invocation, Output, events_in, instructions, link
from nacre.llm.wires.schemas import strict
from nacre.platform.environment import OWN_CALL_VARIABLE, user_home
from nacre.text.passages import shorten
from nacre.values.model_calls import Capabilities, Completion, Prompt, Tokens

_FLAGS = (
    "exec", "--json", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config", "--ignore-rules",
)  # fmt: skip
_CONFIG = (
    'web_search="disabled"', "agents.enabled=false", "project_doc_max_bytes=0", "skills.include_instructions=false",
    "include_collaboration_mode_instructions=false", "analytics.enabled=false",
    *(f"features.{name}=false" for name in (
        "view_image", "multi_agent", "goals", "sleep_tool", "image_generation", "tool_suggest", "apps",
        "plugins", "hooks", "unbounded_connection_retries",
    )),
)  # fmt: skip
"""What it would tell its model of this machine, and the tools and servers that it would offer besides. A version that
does not know one of these passes over it."""

_WITHOUT_TOOLS = (
    "features.shell_tool=false", "include_permissions_instructions=false", "include_environment_context=false",
)  # fmt: skip
_WITH_TOOLS = (
    'shell_environment_policy.inherit="core"', f'shell_environment_policy.set={{{OWN_CALL_VARIABLE}="1"}}',
    "sandbox_workspace_write.exclude_tmpdir_env_var=true", "sandbox_workspace_write.exclude_slash_tmp=true",
)  # fmt: skip
"""Its shell sees no keys of the environment, and is told that it is within nacre's own call."""
_SHELL, _MAY_WRITE = "shell", "write"

_SIGN_IN, _INSTALLATION = "auth.json", "installation_id"
_KEYS = ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN")


class _Change(msgspec.Struct):
    path: str = ""


class _Item(msgspec.Struct):
    type: str = ""
    text: str = ""
    command: str = ""
    changes: list[_Change] = msgspec.field(default_factory=list)


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0


class _Event(msgspec.Struct):
    type: str = ""
    item: _Item | None = None
    usage: _Usage | None = None
    message: str = ""
    error: dict[str, Any] | None = None
    thread_id: str = ""


_STEP_CHARACTERS = 160
_EVENT = msgspec.json.Decoder(_Event)


def codex_model(asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]) -> CommandModel:
    """A model by ``codex``. Raises ModelRefused where that is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        told = folder / "instructions.md"
        told.write_text(instructions(prompt), encoding="utf-8")
        config = (*_CONFIG, f"model_instructions_file={json.dumps(str(told))}", *_tools(prompt, asked))
        options = [part for one in config for part in ("--config", one)]
        sandbox = "workspace-write" if _MAY_WRITE in prompt.tools else "read-only"
        model = ["--model", asked.model] if asked.model not in ("", "default") else []
        return Invocation(
            [*_FLAGS, "--sandbox", sandbox, *options, *_form(prompt, folder), *model, "-"],
            _home_of_its_own(folder, environ), prompt.folder if prompt.tools else None,
        )  # fmt: skip

    return CommandModel(
        asked, capabilities, environ, program="codex", invoke=invoke, read=_read,
        complaint=lambda said: _problem(list(events_in(said, _EVENT))),
    )  # fmt: skip


def _form(prompt: Prompt, folder: Path) -> list[str]:
    if not prompt.answer:
        return []
    schema = folder / "answer.json"
    schema.write_text(json.dumps(strict(prompt.answer)), encoding="utf-8")
    return ["--output-schema", str(schema)]


def _tools(prompt: Prompt, asked: CallTarget) -> Sequence[str]:
    """``shell`` runs commands in a sandbox that only reads, ``write`` in one that writes in the folder as well; neither
    has a network. Raises ModelRefused for anything else."""
    if not set(prompt.tools) <= {_SHELL, _MAY_WRITE}:
        raise failures.no_such_tool(asked, prompt.tools, f"{_SHELL}, {_MAY_WRITE}")
    return _WITH_TOOLS if prompt.tools else _WITHOUT_TOOLS


def _home_of_its_own(folder: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """A home for one call, in which nothing is the owner's but the sign-in: no option keeps the AGENTS.md of the
    owner's home from being told, and each call would write there.

    The sign-in is linked, so that one that is renewed meanwhile is renewed where it lies. Where it is no file (a
    keyring may hold it, by the name of its home), and where nothing can be linked, the home is the owner's.
    """
    theirs = Path(environ.get("CODEX_HOME") or Path(user_home(environ)) / ".codex")
    if not ((theirs / _SIGN_IN).is_file() or any(environ.get(key) for key in _KEYS)):
        return {}
    ours = folder / "home"
    link(theirs, (_SIGN_IN, _INSTALLATION), ours)
    is_whole = (ours / _SIGN_IN).exists() or not (theirs / _SIGN_IN).is_file()
    return {"CODEX_HOME": str(ours)} if is_whole else {}


def _read(output: Output, asked: CallTarget) -> Completion:
    events = list(events_in(output.text, _EVENT))
    problem = _problem(events)
    said = [event.item.text for event in events if event.item and event.item.type == "agent_message"]
    if output.failed or (problem and not said):
        raise failures.program_failed(asked, problem or output.failed)
    if not said:
        raise failures.no_answer(asked, output.text)
    usage = next((event.usage for event in reversed(events) if event.usage), _Usage())
    tokens = Tokens(
        max(0, usage.input_tokens - usage.cached_input_tokens), usage.output_tokens, usage.cached_input_tokens
    )
    thread = next((event.thread_id for event in events if event.thread_id), "")
    ended = (event.item for event in events if event.item and event.type == "item.completed")
    steps = tuple(filter(None, map(_step, ended)))
    return Completion(said[-1], tokens, asked.model, more={"id": thread, "steps": steps})


def _step(item: _Item) -> str:
    """What it did with its tools, in a line; empty where it did nothing."""
    changed = ", ".join(change.path for change in item.changes)
    return shorten(item.command or (f"changed {changed}" if changed else ""), _STEP_CHARACTERS)


def _problem(events: Sequence[_Event]) -> str:
    """The last that went wrong, in its words; empty where nothing did."""
    told = [event for event in events if event.type in ("turn.failed", "error")]
    return str((told[-1].error or {}).get("message") or told[-1].message) if told else ""
