"""Gemini CLI's own command, ``gemini``: without tools, and in a home of its own, with which its session goes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from nacre.llm import failures
from nacre.llm.failures import CallTarget
from nacre.llm.wires.command_line import CommandModel, Invocation, Output, instructions, link
from nacre.platform import json_values
from nacre.platform.environment import user_home
from nacre.values.model_calls import Capabilities, Completion, Prompt, Tokens

_FLAGS = (
    "--output-format", "json", "--approval-mode", "default", "--extensions", "none", "--allowed-mcp-server-names",
    "none",
)  # fmt: skip
_SETTINGS = {
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 1},
    "tools": {"core": ["none"]}, "skills": {"enabled": False}, "hooksConfig": {"enabled": False},
    "experimental": {"enableAgents": False}, "context": {"fileName": "none"}, "ide": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
}  # fmt: skip
_SIGN_IN = ("oauth_creds.json", "google_accounts.json", "gemini-credentials.json", "installation_id", ".env")
_ERROR = re.compile(r'\{\s*"session_id".*"error".*\}\s*\Z', re.DOTALL)
_STATUS = re.compile(r"\bstatus: (\d{3})\b")


class _Tokens(msgspec.Struct):
    input: int = 0
    candidates: int = 0
    cached: int = 0
    thoughts: int = 0


class _Model(msgspec.Struct):
    tokens: _Tokens = msgspec.field(default_factory=_Tokens)


class _Stats(msgspec.Struct):
    models: dict[str, _Model] = msgspec.field(default_factory=dict)


class _Error(msgspec.Struct):
    message: str = ""
    code: int | str = 0


class _Result(msgspec.Struct):
    response: str | None = None
    stats: _Stats = msgspec.field(default_factory=_Stats)
    error: _Error | None = None
    session_id: str = ""


class _Auth(msgspec.Struct):
    selectedType: str = ""  # noqa: N815 - as it is written


class _Security(msgspec.Struct):
    auth: _Auth = msgspec.field(default_factory=_Auth)


class _Own(msgspec.Struct):
    security: _Security = msgspec.field(default_factory=_Security)


def gemini_model(asked: CallTarget, capabilities: Capabilities, environ: Mapping[str, str]) -> CommandModel:
    """A model by ``gemini``. Raises ModelRefused where that is not installed."""

    def invoke(prompt: Prompt, folder: Path) -> Invocation:
        theirs = Path(environ.get("GEMINI_CLI_HOME") or user_home(environ)) / ".gemini"
        ours, told = folder / "home" / ".gemini", folder / "instructions.md"
        link(theirs, _SIGN_IN, ours)
        settings = {**_SETTINGS, "security": {"folderTrust": {"enabled": False}, **_way_to_sign_in(theirs)}}
        (ours / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        told.write_text(instructions(prompt), encoding="utf-8")
        model = ["--model", asked.model] if asked.model not in ("", "default") else []
        return Invocation(
            [*_FLAGS, *model],
            {
                "GEMINI_CLI_HOME": str(ours.parent), "GEMINI_SYSTEM_MD": str(told), "GEMINI_CLI_NO_RELAUNCH": "true",
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
            },
        )  # fmt: skip

    return CommandModel(
        asked, capabilities, environ, program="gemini", invoke=invoke, read=_read,
        complaint=lambda said: "".join(f"status {status}" for status in _STATUS.findall(said)[-1:]),
    )  # fmt: skip


def _way_to_sign_in(theirs: Path) -> Mapping[str, object]:
    """How the owner signs in, by the settings in their home: nothing else is taken from those."""
    with suppress(OSError, msgspec.DecodeError, RecursionError):
        found = json_values.parse((theirs / "settings.json").read_bytes(), _Own)
        return {"auth": {"selectedType": found.security.auth.selectedType}} if found.security.auth.selectedType else {}
    return {}


def _read(output: Output, asked: CallTarget) -> Completion:
    found = _ERROR.search(output.failed)
    try:
        said = json_values.parse(found[0] if found else output.text.strip(), _Result)
    except (msgspec.DecodeError, RecursionError) as error:
        if output.failed:
            raise failures.program_failed(asked, output.failed) from error
        raise failures.no_answer(asked, output.text) from error
    if said.error or output.failed:
        problem = said.error or _Error()
        status = problem.code if isinstance(problem.code, int) and problem.code >= 400 else 0
        raise failures.program_failed(asked, problem.message or output.failed, status)
    used = [model.tokens for model in said.stats.models.values()]
    tokens = Tokens(
        sum(one.input for one in used), sum(one.candidates + one.thoughts for one in used),
        sum(one.cached for one in used),
    )  # fmt: skip
    return Completion(said.response or "", tokens, next(iter(said.stats.models), asked.model))
