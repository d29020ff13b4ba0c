"""Claude Code's own command, ``claude -p``: without settings, servers, or a session that is kept, and without tools
where the prompt allows none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from nacre.llm import failures
from nacre.llm.failures import CallTarget
from nacre.llm.wires.command_line import INSTRUCTIONS, CommandModel, Invocation, Output, events_in, instructions
from nacre.llm.wires.schemas import strict
from nacre.platform import json_values
from nacre.text.passages import shorten
from nacre.values.model_calls import Capabilities, Completion, Prompt, Tokens

_FLAGS = ("-p", "--setting-sources", "", "--strict-mcp-config", "--no-session-persistence")
_SETTINGS = {"enabledPlugins": {"agents-md@builtin": False}}  # it would leave a file in the owner's home
_READS_NOTHING = {"permissions": {"deny": ["Read(//**)"]}}
_TOOL = re.compile(r"([A-Z]\w*)(\(.+\))?")
_WRITE = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_IN_FOLDER = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead"}) | _WRITE
"""Tools that it allows by itself in its folder, and nowhere else."""
_ENVIRON = {
    "CLAUDE_CODE_MAX_RETRIES": "0",  # it would go on in silence for minutes where a limit is reached
    "MAX_THINKING_TOKENS": "0",  # as by the API: nothing else bounds them; models from 5.5 on think all the same
    "ENABLE_TOOL_SEARCH": "false",  # it would offer a tool for that
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # it would read each @/file that a text names, also without any tool
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # it would leave a folder in the owner's home for each call
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Result(msgspec.Struct):
    """What the command prints. The answer of a schema lies in ``structured_output``, or as text in ``result``."""

    is_error: bool = False
    api_error_status: int | None = None
    subtype: str = ""
    result: str | None = None
    structured_output: Any = None
    usage: _Usage = msgspec.field(default_factory=_Usage)
    total_cost_usd: float | None = None
    modelUsage: dict[str, Any] | None = None  # noqa: N815 - as it is printed
    session_id: str = ""


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Streamed(msgspec.Struct):
    delta: _Delta | None = None


class _Block(msgspec.Struct):
    type: str = ""
    name: str = ""
    input: dict[str, Any] = msgspec.field(default_factory=dict)


class _Message(msgspec.Struct):
    content: list[_Block] = msgspec.field(default_factory=list)


class _Line(msgspec.Struct):
    """A line of a stream, as far as it is looked at."""

    type: str = ""
    event: _Streamed | None = None
    message: _Message | None = None


_LINE = msgspec.json.Decoder(_Line)
_STEP_CHARACTERS = 160


def claude_model(asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]) -> CommandModel:
    """A model by ``claude``. Raises ModelRefused where that is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        model = ["--model", asked.model] if asked.model not in ("", "default") else []
        form = _structured(prompt) if prompt.answer else _plain(prompt, folder)
        return Invocation(
            [*_FLAGS, *form, *_tools(prompt, asked), *model], _ENVIRON, prompt.folder if prompt.tools else None
        )

    return CommandModel(asked, capabilities, environ, program="claude", invoke=invoke, read=_read, piece=_piece)


def _structured(prompt: Prompt) -> list[str]:
    schema = json.dumps(strict(prompt.answer))
    return ["--output-format", "json", "--system-prompt", INSTRUCTIONS, "--json-schema", schema]


def _plain(prompt: Prompt, folder: Path) -> list[str]:
    """Plain text, whose system prompt no list of processes shows. With tools, words before the answer are no part of
    it, so that it is not heard in pieces."""
    told = folder / "instructions.md"
    told.write_text(instructions(prompt), encoding="utf-8")
    pieces = ["--include-partial-messages"] if prompt.hear and not prompt.tools else []
    return ["--output-format", "stream-json", "--verbose", *pieces, "--system-prompt-file", str(told)]


def _tools(prompt: Prompt, asked: CallTarget) -> list[str]:
    """Tools that are allowed, and nothing that would have to be asked for. Those of files stay in the folder, unless a
    rule is given: ``Read(//srv/docs/**)``. Raises ModelRefused for what is no tool of its own."""
    if not prompt.tools:
        return ["--tools", "", "--settings", json.dumps({**_SETTINGS, **_READS_NOTHING})]
    found = [_TOOL.fullmatch(tool) for tool in prompt.tools]
    names = [tool[1] for tool in found if tool]
    if len(names) < len(found):
        raise failures.no_such_tool(asked, prompt.tools, "Read, Grep, Glob, Edit, Write, Bash, or Bash(git log:*)")
    free = [tool[0] for tool in found if tool and (tool[2] or tool[1] not in _IN_FOLDER)]
    return [
        "--tools", ",".join(names), "--permission-mode", "acceptEdits" if _WRITE & set(names) else "default",
        *(["--allowedTools", *free] if free else []), "--settings", json.dumps(_SETTINGS),
    ]  # fmt: skip


def _piece(line: str) -> str:
    """The piece of an answer that a line of the output is; empty where it is none."""
    if "text_delta" not in line:
        return ""
    event = next(events_in(line, _LINE), None)
    delta = event.event.delta if event and event.event else None
    return delta.text if delta and delta.type == "text_delta" else ""


def _steps(text: str) -> tuple[str, ...]:
    """What it did with its tools, a line each."""
    messages = [event.message for event in events_in(text, _LINE) if event.type == "assistant" and event.message]
    used = [block for message in messages for block in message.content if block.type == "tool_use"]
    return tuple(shorten(f"{block.name}: {next(iter(block.input.values()), '')}", _STEP_CHARACTERS) for block in used)


def _read(output: Output, asked: CallTarget) -> Completion:
    try:
        said = json_values.parse((output.text.strip().splitlines() or [""])[-1], _Result)
    except (msgspec.DecodeError, RecursionError) as error:
        if output.failed:
            raise failures.program_failed(asked, output.failed) from error
        raise failures.no_answer(asked, output.text) from error
    if said.is_error or output.failed:
        told = said.result or said.subtype or output.failed
        raise failures.program_failed(asked, told, said.api_error_status or 0)
    usage = said.usage
    tokens = Tokens(
        usage.input_tokens, usage.output_tokens,
        usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0,
    )  # fmt: skip
    text = json.dumps(said.structured_output) if said.structured_output is not None else said.result or ""
    cost = {} if said.total_cost_usd is None else {"cost_usd": said.total_cost_usd}
    return Completion(
        text, tokens, next(iter(said.modelUsage or {}), asked.model),
        more={"id": said.session_id, "steps": _steps(output.text), **cost},
    )  # fmt: skip
