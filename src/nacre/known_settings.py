"""All settings: keys, types, defaults, bounds, descriptions and possible values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from nacre.base import json
from nacre.base.frozen import frozen
from nacre.errors import InvalidSettingsError
from nacre.values.session import Task


@frozen
class Setting:
    """One setting: its key in the file, type, default and description."""

    key: str
    type: Any
    default: Any
    summary: str
    is_hidden: bool = False
    """True if ``nacre config show`` omits the setting unless it has a value."""

    @property
    def variable(self) -> str:
        """The environment variable that overrides the setting."""
        return "NACRE_" + self.key.replace(".", "_").upper()


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "embedding.model",
        str,
        "minilm",
        "model for vector search: minilm (bundled, offline), none, onnx:<folder>, or provider:model[@dimensions]",
    ),
    Setting(
        "embedding.sends_to",
        list[str],
        [],
        "hosts that may receive texts to embed; nacre writer embedding asks first",
        is_hidden=True,
    ),
    Setting(
        "storage.url",
        str,
        "",
        "PostgreSQL server that holds the memory, without a password; empty: a file",
    ),
    Setting("storage.tenant", str, "main", "your space on a PostgreSQL server"),
    Setting(
        "storage.account",
        str,
        "",
        "your account on a PostgreSQL server; empty: the name of the space",
        is_hidden=True,
    ),
    Setting(
        "storage.spaces",
        list[str],
        [],
        "other spaces on the server that recall also reads: teams, organisations",
    ),
    Setting("recall.limit", int, 10, "memories in an answer"),
    Setting("recall.turns", int, 5, "session turns shown with the memories", is_hidden=True),
    Setting(
        "recall.reranker",
        str,
        "none",
        "reranker for the best hits: none, model (the language model), or a cross-encoder (onnx:<folder>)",
    ),
    Setting("context.budget_tokens", int, 2000, "maximum tokens for an agent at session start"),
    Setting(
        "context.signals",
        bool,
        True,
        "tell running sessions about important new memories of other sessions",
    ),
    Setting(
        "context.proposals_after",
        int,
        0,
        "prompts after which Claude Code is asked once for five memories; 0: never",
        is_hidden=True,
    ),
    Setting(
        "context.prompt_tokens", int, 600, "maximum tokens for an agent at a prompt; 0 gives none"
    ),
    Setting("mcp.tools", str, "core", "tools offered to agents: core (four) or all (ten)"),
    Setting(
        "scoring.profile",
        str,
        "nacre",
        "weights of age and use: nacre (bounded) or agenr (its formula, unbounded)",
        is_hidden=True,
    ),
    Setting(
        "usefulness.hold_out",
        float,
        0.0,
        "share of sessions that get no context, to measure its effect (at most 0.5)",
        is_hidden=True,
    ),
    Setting("dream.at_night", bool, False, "run nacre dream once a day while the daemon is idle"),
    Setting(
        "forgetting.enabled",
        bool,
        True,
        "let a dream retire old, unimportant memories that nobody used",
    ),
    Setting(
        "forgetting.max_age_days",
        int,
        60,
        "days without use after which a memory can be retired",
    ),
    Setting(
        "forgetting.protect",
        list[str],
        [],
        "subjects that are never retired; * stands for any text",
    ),
    Setting(
        "owner.identities",
        list[str],
        [],
        "your ids in chats with agents (telegram:4711, +4915…), not names",
    ),
    Setting("ingest.roots", list[str], [], "additional folders with transcripts"),
    Setting("ingest.exclude", list[str], [], "glob patterns of transcripts to skip"),
    Setting(
        "ingest.exclude_tools",
        list[str],
        [],
        "agent tools whose sessions are not read, for example codex",
    ),
    Setting(
        "ingest.exclude_projects",
        list[str],
        [],
        "projects whose sessions are not read; * stands for any text",
    ),
    Setting(
        "ingest.exclude_paths", list[str], [], "folders (glob patterns) whose sessions are not read"
    ),
    Setting(
        "ingest.workers",
        int,
        0,
        "number of processes that read transcripts; 0: automatic, 1: only nacre's own",
        is_hidden=True,
    ),
    Setting("archive.enabled", bool, True, "keep compressed transcripts without secrets"),
    Setting(
        "archive.budget_mb",
        int,
        0,
        "maximum size of the archive; the oldest transcripts are removed; 0 sets no limit",
    ),
    Setting(
        "archive.keep_days",
        int,
        0,
        "days to keep an unchanged transcript; 0 keeps it forever",
        is_hidden=True,
    ),
    Setting("extraction.enabled", bool, True, "write memories when sessions are ingested"),
    Setting(
        "dedup.model_seconds",
        float,
        5.0,
        "maximum time that storing waits for a language model, in seconds",
        is_hidden=True,
    ),
    Setting(
        "models.default", str, "none", "language model (provider:model) for all tasks, or none"
    ),
    Setting(
        "models.<task>",
        str,
        "",
        "language model for a task; empty: models.default",
        is_hidden=True,
    ),
    Setting(
        "writer.since",
        str,
        "",
        "sessions that ended before this time are not shown to the writer",
        is_hidden=True,
    ),
    Setting(
        "writer.tokens_per_day",
        int,
        0,
        "maximum tokens per day for a writer paid by subscription; 0 stops it",
    ),
    Setting("writer.paused", bool, False, "show no session to the writer for now"),
    Setting(
        "writer.exclude_tools",
        list[str],
        [],
        "tools whose sessions are not shown to a writer, for example codex",
    ),
    Setting(
        "writer.exclude_projects",
        list[str],
        [],
        "projects whose sessions are not shown to a writer; * is any text",
    ),
    Setting(
        "models.background",
        bool,
        False,
        "let models run in the background, for example during ingest",
    ),
    Setting(
        "models.daily_budget_usd",
        float,
        1.0,
        "maximum cost of background model calls per day in US dollars; 0 stops them",
    ),
    Setting(
        "models.monthly_budget_usd",
        float,
        30.0,
        "maximum cost of background model calls per calendar month in US dollars; 0 stops them",
    ),
    Setting(
        "models.timeout_seconds",
        float,
        120.0,
        "maximum time for a model's answer, in seconds",
        is_hidden=True,
    ),
    Setting(
        "models.providers",
        dict[str, dict[str, str]],
        {},
        "additional providers: name = {base_url = …, key = …}",
    ),
    Setting(
        "models.capabilities",
        dict[str, dict[str, Any]],
        {},
        "overrides for the capabilities and prices of models",
        is_hidden=True,
    ),
    Setting(
        "models.auth",
        str,
        "",
        "how nacre signs in to Anthropic or OpenAI (nacre writer keys); empty: automatic",
        is_hidden=True,
    ),
    Setting(
        "traces.keep_days",
        int,
        30,
        "days to keep traces of models and questions; 0 keeps none",
    ),
    Setting("git.enabled", bool, True, "keep the vault's history in git"),
    Setting(
        "git.commit_after_seconds",
        int,
        60,
        "age at which operations are committed in the background",
        is_hidden=True,
    ),
    Setting(
        "git.background",
        bool,
        True,
        "commit in the background after commands",
        is_hidden=True,
    ),
    Setting(
        "remote.url",
        str,
        "",
        "server that this home is synchronised with (nacre server remote add)",
    ),
    Setting(
        "remote.private",
        bool,
        True,
        "also send private memories and sessions to that server",
        is_hidden=True,
    ),
    Setting(
        "remote.every_seconds",
        int,
        60,
        "minimum pause between two background exchanges with it",
        is_hidden=True,
    ),
    Setting("sync.auto", bool, False, "sync with the git remote in the background after commands"),
    Setting("redaction.patterns", list[str], [], "your own regular expressions for secrets"),
    Setting("redaction.allow", list[str], [], "texts that look like secrets but are not"),
    Setting("redaction.emails", bool, False, "also redact e-mail addresses"),
    Setting(
        "redaction.home_paths",
        bool,
        False,
        "write users' home folders (/home/NAME and similar) as ~",
    ),
    Setting("redaction.payment_cards", bool, False, "also redact payment card numbers"),
    Setting(
        "projects.labels",
        dict[str, str],
        {},
        "the project of each conversation label: label = project",
    ),
    Setting(
        "daemon.enabled",
        bool,
        True,
        "let hooks and nacre mcp start the daemon if it is not running",
    ),
    Setting(
        "daemon.idle_minutes",
        float,
        30.0,
        "idle time after which a daemon started by a hook ends",
        is_hidden=True,
    ),
    Setting("daemon.watch", bool, True, "let the daemon follow your agents' sessions"),
    Setting(
        "daemon.http",
        str,
        "",
        "[host:]port of the daemon's HTTP server; empty: none until nacre open",
    ),
    Setting(
        "web.port",
        int,
        7077,
        "port for nacre open on this machine, or another if in use",
    ),
    Setting(
        "web.origins",
        list[str],
        [],
        "origins (https://app.example) whose pages may call the API with the token",
        is_hidden=True,
    ),
    Setting("web.tls_cert", str, "", "certificate file for HTTPS", is_hidden=True),
    Setting(
        "web.tls_key",
        str,
        "",
        "key file for HTTPS; empty: in the certificate's file",
        is_hidden=True,
    ),
    Setting(
        "web.insecure",
        bool,
        False,
        "allow HTTP without encryption for other machines",
        is_hidden=True,
    ),
    Setting(
        "gateway.enabled",
        bool,
        False,
        "let the daemon answer in the channels, instead of nacre gateway run",
    ),
    Setting(
        "gateway.channels",
        dict[str, dict[str, Any]],
        {},
        'channels in which the agent answers: name = {kind = "telegram", …}',
    ),
    Setting(
        "gateway.listen",
        str,
        "127.0.0.1:7078",
        "[host:]port that receives webhooks",
        is_hidden=True,
    ),
    Setting(
        "gateway.instructions",
        str,
        "",
        "instructions to the agent before each answer",
        is_hidden=True,
    ),
    Setting(
        "gateway.debounce_seconds",
        float,
        1.5,
        "seconds to wait after a message; messages in this time are answered together",
        is_hidden=True,
    ),
    Setting(
        "gateway.answers_a_minute",
        int,
        10,
        "maximum answers per minute in one conversation; further messages wait",
        is_hidden=True,
    ),
    Setting(
        "gateway.files_mb",
        int,
        500,
        "megabytes of attached files to keep, newest first; 0 keeps none",
        is_hidden=True,
    ),
    Setting(
        "gateway.tokens_per_day",
        int,
        1000000,
        "maximum tokens per day for answers by subscription; 0 stops them",
    ),
    Setting(
        "watch.changed_since",
        str,
        "",
        "transcripts unchanged since this time wait for nacre ingest",
        is_hidden=True,
    ),
)
"""All settings. ``models.<task>`` stands for one key per task, see :data:`KEYS`."""

VECTORS = "embedding"
"""Name under which embedding by a provider appears in the ledger of model calls."""

_MODEL = re.compile(r"(none|[\w.-]+:\S*)?")
_MODELS = frozenset({"models.default", *(f"models.{task.value}" for task in Task)})
_EMBEDDING = re.compile(r"minilm|none|[^:\s]+:\S.*")


def _with_tasks(setting: Setting) -> tuple[Setting, ...]:
    if setting.key != "models.<task>":
        return (setting,)
    return tuple(
        replace(
            setting,
            key=f"models.{task.value}",
            summary=f"language model for {task.value}; empty: models.default",
        )
        for task in Task
        if task is not Task.TEST
    )


KEYS = tuple(key for setting in SETTINGS for key in _with_tasks(setting))
"""All settings, with ``models.<task>`` expanded to one setting per task."""

_BY_KEY = {setting.key: setting for setting in KEYS}
CHOICES = {
    "scoring.profile": ("nacre", "agenr"),
    "mcp.tools": ("core", "all"),
    "models.auth": (
        "",
        "anthropic-api-key",
        "anthropic-token",
        "anthropic-oauth",
        "openai-api-key",
        "openai-subscription",
    ),
}
"""Allowed values of some text settings."""

_SERVER = re.compile(r"postgres(?:ql)?://[^/?#\s]*/[^/?#\s]+(?:\?[^#\s]*)?")
_PASSWORD = re.compile(r"://[^/@:]*:[^/]*@|[?&]password=")

_MAY_HOLD_KEYS = frozenset({"models.providers", "gateway.channels", "storage.url"})
"""Settings that can contain passwords or API keys. Error messages omit their values."""

_LEAST = {
    "gateway.answers_a_minute": 1,
    "recall.limit": 1,
    "models.timeout_seconds": 1,
}
"""Minimum values of number settings. For other settings, the minimum is 0."""

_MOST = {
    "usefulness.hold_out": 0.5,
}


def known(key: str) -> Setting:
    """Return the setting with that key.

    Raises InvalidSettingsError, whose hint lists similar keys.
    """
    if key in _BY_KEY:
        return _BY_KEY[key]
    near = [
        name
        for name in _BY_KEY
        if key.split(".")[-1] in name or name.split(".")[0] == key.split(".")[0]
    ]
    raise InvalidSettingsError(
        f"no setting is called {key!r}", hint=", ".join(near) or "nacre config lists them"
    )


def check(key: str, value: Any) -> Any:
    """Convert a value, such as command line text, to a setting's type. Raises InvalidSettingsError."""
    setting = known(key)
    try:
        converted = (
            value
            if type(value) is setting.type and not _is_compound(setting)
            else _converted(setting, value)
        )
    except (ValueError, RecursionError) as error:
        if key in _MAY_HOLD_KEYS:
            raise InvalidSettingsError(f"{key} has the wrong form", hint=setting.summary) from None
        form = '; write several values as ["one", "two"]' if setting.type == list[str] else ""
        raise InvalidSettingsError(
            f"{key} cannot be {value!r}: {error}", hint=f"{setting.summary}{form}"
        ) from error
    if key in CHOICES and converted not in CHOICES[key]:
        raise InvalidSettingsError(
            f"{key} cannot be {value!r}", hint=f"one of: {', '.join(filter(None, CHOICES[key]))}"
        )
    if setting.type in (int, float):
        least, most = _LEAST.get(key, 0), _MOST.get(key, math.inf)
        if not least <= converted <= most:
            bound = f"at most {most}" if converted > most else f"at least {least}"
            raise InvalidSettingsError(f"{key} must be {bound}", hint=setting.summary)
    if converted and key in _CHECKS:
        _CHECKS[key](converted)
    if key in _MODELS and not _MODEL.fullmatch(converted):
        hint = "provider:model, such as ollama:qwen3 or anthropic:sonnet; or none"
        raise InvalidSettingsError(f"{key} cannot be {value!r}", hint=hint)
    if key == "embedding.model" and not _EMBEDDING.fullmatch(converted):
        raise InvalidSettingsError(
            f"{key} cannot be {value!r}", hint=f"{setting.summary}; see docs/embeddings.md"
        )
    return converted


def _converted(setting: Setting, value: Any) -> Any:
    """Convert a value to the setting's type. Raises ValueError, RecursionError."""
    import msgspec  # noqa: PLC0415 - 7 ms that a hook pays only for a setting that needs msgspec

    if (
        isinstance(value, str)
        and setting.type == list[str]
        and value.lstrip()[:1] not in ("[", '"', "'")
    ):
        if "," in value:
            raise ValueError("write several values as a list")
        return [value.strip()] if value.strip() else []
    if isinstance(value, str) and _is_compound(setting):
        value = msgspec.toml.decode(f"value = {value.strip()}".encode())["value"]
        value = [value] if isinstance(value, str) and setting.type == list[str] else value
    return json.convert(value, setting.type, strict=False)


def _check_server(address: str) -> None:
    """Require a valid address without a password, because other programs also read the file."""
    if not _SERVER.fullmatch(address):
        told = "storage.url is not the address of a PostgreSQL server"
        raise InvalidSettingsError(told, hint="write postgresql://login@server:5432/database")
    if _PASSWORD.search(address):
        raise InvalidSettingsError(
            "storage.url contains a password",
            hint="put it into ~/.pgpass instead, or set NACRE_DB to the whole address",
        )


def _check_patterns(patterns: list[str]) -> None:
    hint = "patterns are Python regular expressions; correct or remove this one"
    for pattern in patterns:
        try:
            matches_all = bool(re.compile(pattern).fullmatch(""))
        except (re.error, OverflowError, RecursionError) as error:
            raise InvalidSettingsError(
                f"redaction.patterns: {pattern!r} is not a regular expression: {error}", hint=hint
            ) from error
        if matches_all:
            raise InvalidSettingsError(
                f"redaction.patterns: {pattern!r} matches the empty text", hint=hint
            )


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "storage.url": _check_server,
    "redaction.patterns": _check_patterns,
}
"""Additional checks of values, keyed by setting."""


def _is_compound(setting: Setting) -> bool:
    return setting.type not in (str, int, bool, float)
