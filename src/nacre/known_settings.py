"""All settings: keys, types, defaults, bounds, descriptions and possible values."""

from __future__ import annotations

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
    """A setting's key in the config file, its type, default and description."""

    key: str
    default: Any
    summary: str
    table: Any = None
    """The type of a table."""

    is_hidden: bool = False
    """True if ``nacre config show`` omits the setting unless it has a value."""

    @property
    def type(self) -> Any:
        return self.table or (list[str] if self.default == [] else type(self.default))

    @property
    def variable(self) -> str:
        """The environment variable that overrides the setting."""
        return "NACRE_" + self.key.replace(".", "_").upper()


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "embedding.model",
        "minilm",
        "model for vector search: minilm (bundled, offline), none, or provider:model[@dimensions]",
    ),
    Setting(
        "embedding.sends_to",
        [],
        "hosts that may receive texts to embed; nacre writer embedding asks first",
        is_hidden=True,
    ),
    Setting(
        "storage.url",
        "",
        "PostgreSQL server that holds the memory, without a password; empty: a file",
    ),
    Setting("storage.tenant", "main", "your space on a PostgreSQL server"),
    Setting(
        "storage.account",
        "",
        "your account on a PostgreSQL server; empty: the name of the space",
        is_hidden=True,
    ),
    Setting(
        "storage.spaces",
        [],
        "other spaces on the server that recall also reads: teams, organisations",
    ),
    Setting("recall.limit", 10, "memories in an answer"),
    Setting("recall.turns", 5, "session turns shown with the memories", is_hidden=True),
    Setting("context.budget_tokens", 2000, "maximum tokens for an agent at session start"),
    Setting(
        "context.signals",
        True,
        "tell running sessions about important new memories of other sessions",
    ),
    Setting("context.prompt_tokens", 600, "maximum tokens for an agent at a prompt; 0 gives none"),
    Setting("mcp.tools", "core", "tools offered to agents: core (four) or all (ten)"),
    Setting(
        "scoring.profile",
        "nacre",
        "weights of age and use: nacre (bounded) or agenr (its formula, unbounded)",
        is_hidden=True,
    ),
    Setting("dream.at_night", False, "run nacre dream once a day while the daemon is idle"),
    Setting(
        "forgetting.enabled", True, "let a dream retire old, unimportant memories that nobody used"
    ),
    Setting("forgetting.max_age_days", 60, "days without use after which a memory can be retired"),
    Setting(
        "forgetting.protect",
        [],
        "subjects that are never retired; * stands for any text",
    ),
    Setting(
        "owner.identities",
        [],
        "your ids in chats with agents (telegram:4711, +4915…), not names",
    ),
    Setting("ingest.roots", [], "additional folders with transcripts"),
    Setting("ingest.exclude", [], "glob patterns of transcripts to skip"),
    Setting(
        "ingest.exclude_tools",
        [],
        "agent tools whose sessions are not read, for example codex",
    ),
    Setting(
        "ingest.exclude_projects",
        [],
        "projects whose sessions are not read; * stands for any text",
    ),
    Setting("ingest.exclude_paths", [], "folders (glob patterns) whose sessions are not read"),
    Setting(
        "ingest.workers",
        0,
        "number of processes that read transcripts; 0: automatic, 1: only nacre's own",
        is_hidden=True,
    ),
    Setting("archive.enabled", True, "keep compressed transcripts without secrets"),
    Setting(
        "archive.budget_mb",
        0,
        "maximum size of the archive; the oldest transcripts are removed; 0 sets no limit",
    ),
    Setting(
        "archive.keep_days",
        0,
        "days to keep an unchanged transcript; 0 keeps it forever",
        is_hidden=True,
    ),
    Setting("extraction.enabled", True, "write memories when sessions are ingested"),
    Setting(
        "dedup.model_seconds",
        5.0,
        "maximum time that storing waits for a language model, in seconds",
        is_hidden=True,
    ),
    Setting("models.default", "none", "language model (provider:model) for all tasks, or none"),
    Setting(
        "models.<task>", "", "language model for a task; empty: models.default", is_hidden=True
    ),
    Setting(
        "writer.since",
        "",
        "sessions that ended before this time are not shown to the writer",
        is_hidden=True,
    ),
    Setting(
        "writer.tokens_per_day",
        0,
        "maximum tokens per day for a writer paid by subscription; 0 stops it",
    ),
    Setting("writer.paused", False, "show no session to the writer for now"),
    Setting(
        "writer.exclude_tools",
        [],
        "tools whose sessions are not shown to a writer, for example codex",
    ),
    Setting(
        "writer.exclude_projects",
        [],
        "projects whose sessions are not shown to a writer; * is any text",
    ),
    Setting(
        "models.background", False, "let models run in the background, for example during ingest"
    ),
    Setting(
        "models.daily_budget_usd",
        1.0,
        "maximum cost of background model calls per day in US dollars; 0 stops them",
    ),
    Setting(
        "models.timeout_seconds",
        120.0,
        "maximum time for a model's answer, in seconds",
        is_hidden=True,
    ),
    Setting(
        "models.providers",
        {},
        "additional providers: name = {base_url = …, key = …}",
        dict[str, dict[str, str]],
    ),
    Setting(
        "models.capabilities",
        {},
        "overrides for the capabilities and prices of models",
        dict[str, dict[str, Any]],
        is_hidden=True,
    ),
    Setting(
        "models.auth",
        "",
        "how nacre signs in to Anthropic or OpenAI (nacre writer keys); empty: automatic",
        is_hidden=True,
    ),
    Setting("traces.keep_days", 30, "days to keep traces of models and questions; 0 keeps none"),
    Setting("git.enabled", True, "keep the vault's history in git"),
    Setting(
        "git.commit_after_seconds",
        60,
        "age at which operations are committed in the background",
        is_hidden=True,
    ),
    Setting("git.background", True, "commit in the background after commands", is_hidden=True),
    Setting(
        "remote.url", "", "server that this home is synchronised with (nacre server remote add)"
    ),
    Setting(
        "remote.private",
        True,
        "also send private memories and sessions to that server",
        is_hidden=True,
    ),
    Setting(
        "remote.every_seconds",
        60,
        "minimum pause between two background exchanges with it",
        is_hidden=True,
    ),
    Setting("sync.auto", False, "sync with the git remote in the background after commands"),
    Setting("redaction.patterns", [], "your own regular expressions for secrets"),
    Setting("redaction.allow", [], "strings that look like secrets but are not"),
    Setting("redaction.emails", False, "also redact e-mail addresses"),
    Setting(
        "redaction.home_paths", False, "write users' home folders (/home/NAME and similar) as ~"
    ),
    Setting("redaction.payment_cards", False, "also redact payment card numbers"),
    Setting(
        "projects.labels",
        {},
        "the project of each conversation label: label = project",
        dict[str, str],
    ),
    Setting("daemon.enabled", True, "let hooks and nacre mcp start the daemon"),
    Setting(
        "daemon.idle_minutes",
        30.0,
        "idle time after which a daemon started by a hook ends",
        is_hidden=True,
    ),
    Setting("daemon.watch", True, "let the daemon follow your agents' sessions"),
    Setting(
        "daemon.http", "", "[host:]port of the daemon's HTTP server; empty: none until nacre open"
    ),
    Setting("web.port", 7077, "port for nacre open on this machine, or another if in use"),
    Setting("web.tls_cert", "", "certificate file for HTTPS", is_hidden=True),
    Setting(
        "web.tls_key", "", "key file for HTTPS; empty: in the certificate's file", is_hidden=True
    ),
    Setting(
        "web.insecure", False, "allow HTTP without encryption for other machines", is_hidden=True
    ),
    Setting(
        "gateway.enabled",
        False,
        "let the daemon answer in the channels, instead of nacre gateway run",
    ),
    Setting(
        "gateway.channels",
        {},
        'channels in which the agent answers: name = {kind = "telegram", …}',
        dict[str, dict[str, Any]],
    ),
    Setting(
        "gateway.instructions", "", "instructions to the agent before each answer", is_hidden=True
    ),
    Setting(
        "gateway.debounce_seconds",
        1.5,
        "seconds to wait for further messages before an answer",
        is_hidden=True,
    ),
    Setting(
        "gateway.tokens_per_day",
        1000000,
        "maximum tokens per day for answers by subscription; 0 stops them",
    ),
    Setting(
        "watch.changed_since",
        "",
        "transcripts unchanged since this time wait for nacre ingest",
        is_hidden=True,
    ),
)
"""All settings. ``models.<task>`` stands for one key per task, see :data:`KEYS`."""

VECTORS = "embedding"
"""Name of embedding by a provider in the ledger of model calls."""

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
"""Settings whose values error messages omit, because they can contain passwords or API keys."""

_LEAST = {
    "recall.limit": 1,
    "models.timeout_seconds": 1,
}
"""Minimum values of number settings, 0 by default."""


def setting_of(key: str) -> Setting:
    """Return the setting with this key. Raises InvalidSettingsError that suggests similar keys."""
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
    """Convert a value, such as typed text, to a setting's type. Raises InvalidSettingsError."""
    setting = setting_of(key)
    try:
        converted = value if type(value) is setting.type else _converted(setting, value)
    except (ValueError, RecursionError) as error:
        if key in _MAY_HOLD_KEYS:
            raise InvalidSettingsError(
                f"{key} has an invalid value", hint=setting.summary
            ) from None
        form = '; write several values as ["one", "two"]' if setting.type == list[str] else ""
        raise InvalidSettingsError(
            f"{key} cannot be {value!r}: {error}", hint=f"{setting.summary}{form}"
        ) from error
    if setting.type in (int, float):
        least = _LEAST.get(key, 0)
        if not converted >= least:
            raise InvalidSettingsError(f"{key} must be at least {least}", hint=setting.summary)
    if converted and key in _CHECKS:
        _CHECKS[key](converted)
    hint = None
    if key in CHOICES and converted not in CHOICES[key]:
        hint = f"one of: {', '.join(filter(None, CHOICES[key]))}"
    elif key in _MODELS and not _MODEL.fullmatch(converted):
        hint = "provider:model, such as ollama:qwen3 or anthropic:sonnet; or none"
    elif key == "embedding.model" and not _EMBEDDING.fullmatch(converted):
        hint = f"{setting.summary}; see docs/embeddings.md"
    if hint:
        raise InvalidSettingsError(f"{key} cannot be {value!r}", hint=hint)
    return converted


def _converted(setting: Setting, value: Any) -> Any:
    import msgspec  # noqa: PLC0415 - 7 ms that a hook pays only for a setting that needs msgspec

    if (
        isinstance(value, str)
        and setting.type == list[str]
        and value.lstrip()[:1] not in ("[", '"', "'")
    ):
        if "," in value:
            raise ValueError("write several values as a list")
        return [value.strip()] if value.strip() else []
    if isinstance(value, str) and setting.type not in (str, int, float, bool):
        value = msgspec.toml.decode(f"value = {value.strip()}".encode())["value"]
        value = [value] if isinstance(value, str) and setting.type == list[str] else value
    return json.convert(value, setting.type, strict=False)


def _check_server(address: str) -> None:
    if not _SERVER.fullmatch(address):
        message = "storage.url is not the address of a PostgreSQL server"
        raise InvalidSettingsError(message, hint="write postgresql://login@server:5432/database")
    # Other programs also read the config file.
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
