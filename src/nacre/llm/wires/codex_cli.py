"""Codex's own command, ``codex exec``: in a sandbox that only reads, and without a session that is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nacre.llm import failures
from nacre.llm.failures import CallTarget
from nacre.llm.wires.command_line import CommandModel, Output
from nacre.llm.wires.schemas import strict
from nacre.values.model_calls import Capabilities, Completion, Prompt, Tokens

_FLAGS = (
    "exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only", "--ephemeral", "--ignore-user-config",
    "--config", "features.shell_tool=false", "--config", 'web_search="disabled"',
)  # fmt: skip
"""Without the user's configuration there are no servers with tools; the sign-in is kept elsewhere."""


class _Item(msgspec.Struct):
    type: str = ""
    text: str = ""


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


_EVENT = msgspec.json.Decoder(_Event)


def codex_model(asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]) -> CommandModel:
    """A model by ``codex``. Raises ModelRefused where that is not installed."""

    def arguments(prompt: Prompt, folder: Path) -> Sequence[str]:
        schema = folder / "answer.json"
        schema.write_text(json.dumps(strict(prompt.answer)), encoding="utf-8")
        model = ["--model", asked.model] if asked.model not in ("", "default") else []
        return [*_FLAGS, "--output-schema", str(schema), *model, "-"]

    return CommandModel(asked, capabilities, environ, program="codex", arguments=arguments, read=_read)


def _read(output: Output, asked: CallTarget) -> Completion:
    events = list(_events(output.text))
    problems = [event for event in events if event.type in ("turn.failed", "error")]
    said = [event.item.text for event in events if event.item and event.item.type == "agent_message"]
    if output.failed or (problems and not said):
        last = problems[-1] if problems else _Event()
        raise failures.program_failed(asked, str((last.error or {}).get("message") or last.message or output.failed))
    if not said:
        raise failures.strange(asked, "", output.text.encode())
    usage = next((event.usage for event in reversed(events) if event.usage), _Usage())
    tokens = Tokens(
        max(0, usage.input_tokens - usage.cached_input_tokens), usage.output_tokens, usage.cached_input_tokens
    )
    thread = next((event.thread_id for event in events if event.thread_id), "")
    return Completion(said[-1], tokens, asked.model, more={"id": thread})


def _events(text: str) -> Iterator[_Event]:
    """Lines that are none (what a program of its own prints in between) are left out."""
    for line in text.splitlines():
        try:
            yield _EVENT.decode(line)
        except (msgspec.DecodeError, RecursionError):
            continue
