"""Claude Code's own command, ``claude -p``: without tools, settings, servers, or a session that is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from nacre.llm import failures
from nacre.llm.failures import CallTarget
from nacre.llm.wires.command_line import INSTRUCTIONS, CommandModel, Invocation, Output
from nacre.llm.wires.schemas import strict
from nacre.values.model_calls import Capabilities, Completion, Prompt, Tokens

_FLAGS = (
    "-p", "--output-format", "json", "--tools", "", "--setting-sources", "", "--strict-mcp-config",
    "--no-session-persistence", "--system-prompt", INSTRUCTIONS,
    "--settings", '{"enabledPlugins": {"agents-md@builtin": false}}',  # it would leave a file in the owner's home
)  # fmt: skip
_ENVIRON = {
    "CLAUDE_CODE_MAX_RETRIES": "0",  # it would go on in silence for minutes where a limit is reached
    "MAX_THINKING_TOKENS": "0",  # as by the API: nothing else bounds them; models from 5.5 on think all the same
    "ENABLE_TOOL_SEARCH": "false",  # it would offer a tool for that
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


def claude_model(asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]) -> CommandModel:
    """A model by ``claude``. Raises ModelRefused where that is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:  # noqa: ARG001 - it needs no files
        model = ["--model", asked.model] if asked.model not in ("", "default") else []
        return Invocation([*_FLAGS, "--json-schema", json.dumps(strict(prompt.answer)), *model], _ENVIRON)

    return CommandModel(asked, capabilities, environ, program="claude", invoke=invoke, read=_read)


def _read(output: Output, asked: CallTarget) -> Completion:
    try:
        said = msgspec.json.decode(output.text.strip(), type=_Result)
    except (msgspec.DecodeError, RecursionError) as error:
        if output.failed:
            raise failures.program_failed(asked, output.failed) from error
        raise failures.strange(asked, "", output.text.encode()) from error
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
        text, tokens, next(iter(said.modelUsage or {}), asked.model), more={"id": said.session_id, **cost}
    )
