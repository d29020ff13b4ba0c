"""Every setting once: its key, type, default and bounds, what it does, and the values that it can have."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nacre.base import json
from nacre.errors import SettingsInvalid
from nacre.values.session import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its key in the file, its type, its default, and what it does."""

    key: str
    type: Any
    default: Any
    summary: str

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return "NACRE_" + self.key.replace(".", "_").upper()


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "embedding.model",
        str,
        "minilm",
        "model for the vector lane: minilm (bundled, offline), none, onnx:<folder>, or provider:model[@dimensions]",
    ),
    Setting(
        "embedding.sends_to",
        list[str],
        [],
        "hosts to which texts may go for their vectors; nacre embed switch asks first",
    ),
    Setting(
        "embedding.query_seconds", float, 2.0, "maximum wait for the query embedding, in seconds"
    ),
    Setting("embedding.threads", int, 0, "threads for embedding; 0 takes all cores"),
    Setting(
        "embedding.turns_newer_than",
        int,
        0,
        "days: older turns get no vectors, words alone find them; 0 embeds all",
    ),
    Setting(
        "storage.url",
        str,
        "",
        "PostgreSQL server that holds the memory, without a password; empty: a file",
    ),
    Setting(
        "storage.tenant", str, "main", "the space on a PostgreSQL server that is read and written"
    ),
    Setting(
        "storage.most_turns",
        int,
        0,
        "turns that the memory may hold; further ones are refused; 0 sets no bound",
    ),
    Setting(
        "storage.account",
        str,
        "",
        "who you are on a PostgreSQL server; empty: who the space is called after",
    ),
    Setting(
        "storage.spaces",
        list[str],
        [],
        "further spaces on the server that recall reads, too: teams, organisations",
    ),
    Setting("recall.limit", int, 10, "memories in an answer"),
    Setting("recall.turns", int, 3, "turns of sessions shown beside memories"),
    Setting("recall.trusted", bool, False, "leave out of answers what draws on text from outside"),
    Setting("recall.mode", str, "hybrid", "lanes a recall uses: hybrid, lexical or vector"),
    Setting(
        "recall.reranker",
        str,
        "none",
        "who looks at the best hits again: none, model (the language model), or a cross-encoder's folder",
    ),
    Setting(
        "recall.expand", bool, False, "a language model also asks each question in other words"
    ),
    Setting(
        "recall.deep_seconds",
        int,
        60,
        "seconds that recall --deep may ask a model; then rules go on",
    ),
    Setting("recall.budget_tokens", int, 0, "tokens in an answer at most; 0 does not cut"),
    Setting(
        "context.budget_tokens",
        int,
        2_000,
        "tokens that an agent is given at most as its session starts",
    ),
    Setting(
        "context.signals",
        bool,
        True,
        "what is stored in one session and matters is told to others that run",
    ),
    Setting(
        "signals.min_importance",
        int,
        8,
        "importance from which a new memory is told to other sessions",
    ),
    Setting(
        "signals.most_at_once",
        int,
        3,
        "memories that a session is told so with one prompt, at most",
    ),
    Setting(
        "signals.cooldown_seconds", int, 30, "pause after that, in seconds, until it is told more"
    ),
    Setting("signals.most_per_session", int, 10, "memories that one session is told so, at most"),
    Setting(
        "signals.max_age_seconds", int, 300, "seconds after which a new memory is no news any more"
    ),
    Setting(
        "context.nudges",
        bool,
        True,
        "agents that stored nothing for long are reminded that they can",
    ),
    Setting(
        "context.proposals_after",
        int,
        0,
        "prompts until Claude Code is asked once for five memories; 0: never",
    ),
    Setting(
        "context.prompt_tokens",
        int,
        600,
        "tokens that it is given at most with a prompt; 0 gives none",
    ),
    Setting(
        "context.tool_tokens",
        int,
        80,
        "tokens of a rule that it is given at most before a tool; 0 gives none",
    ),
    Setting(
        "context.most_memories",
        int,
        12,
        "memories that a session starts with, at most; 0 sets no bound",
    ),
    Setting("mcp.tools", str, "core", "tools that agents are offered: core (four) or all (ten)"),
    Setting(
        "scoring.profile",
        str,
        "nacre",
        "how age and use weigh: nacre (bounded) or agenr (its formula, unbounded)",
    ),
    Setting(
        "usage.raise_importance",
        bool,
        True,
        "memories that are recalled often gain importance, up to 9",
    ),
    Setting(
        "usefulness.hold_out",
        float,
        0.0,
        "share of sessions told nothing, to see what telling does (to 0.5)",
    ),
    Setting(
        "dream.at_night",
        bool,
        False,
        "a dream a day (nacre dream), when nobody asks the daemon for anything",
    ),
    Setting(
        "forgetting.enabled",
        bool,
        True,
        "a dream retires what is old, matters little and nobody asked for",
    ),
    Setting(
        "forgetting.score_threshold",
        float,
        0.05,
        "score below which a dream forgets a memory; 0 forgets none",
    ),
    Setting(
        "forgetting.max_age_days",
        int,
        60,
        "days since its last use within which no memory is forgotten",
    ),
    Setting(
        "forgetting.protect",
        list[str],
        [],
        "subjects that are never to be forgotten; * stands for any text",
    ),
    Setting(
        "owner.identities",
        list[str],
        [],
        "who you are in chats with agents: ids (telegram:4711, +4915…), not names",
    ),
    Setting("ingest.roots", list[str], [], "more folders to look for transcripts in"),
    Setting("ingest.exclude", list[str], [], "glob patterns of transcripts to leave out"),
    Setting(
        "ingest.exclude_tools", list[str], [], "agent tools whose sessions are not read, e.g. codex"
    ),
    Setting(
        "ingest.exclude_projects",
        list[str],
        [],
        "projects whose sessions are not read; * stands for any text",
    ),
    Setting(
        "ingest.exclude_paths",
        list[str],
        [],
        "folders (glob patterns) in which sessions are not read",
    ),
    Setting(
        "ingest.workers",
        int,
        0,
        "processes that read transcripts; 0 takes what pays, 1 reads in nacre itself",
    ),
    Setting("archive.enabled", bool, True, "keep transcripts, without secrets and compressed"),
    Setting(
        "archive.budget_mb",
        int,
        0,
        "size of the archive; beyond it what changed longest ago goes; 0 sets none",
    ),
    Setting(
        "archive.keep_days",
        int,
        0,
        "days for which a transcript that changes no more is kept; 0 is for ever",
    ),
    Setting("extraction.enabled", bool, True, "write memories when sessions are ingested"),
    Setting(
        "extraction.substance_words",
        int,
        6,
        "a model is asked about sessions in which you typed so many in a go",
    ),
    Setting(
        "dedup.aggressive",
        bool,
        False,
        "a language model judges memories that are less alike, and sees more",
    ),
    Setting(
        "dedup.threshold",
        float,
        0.0,
        "cosine from which a language model judges; 0 takes the vectors' own",
    ),
    Setting(
        "dedup.model_seconds",
        float,
        5.0,
        "so long storing waits for a language model; then the rules decide",
    ),
    Setting(
        "models.default",
        str,
        "none",
        "language model (provider:model) for every task without its own; or none",
    ),
    *(
        Setting(
            f"models.{task.value}",
            str,
            "",
            f"language model for {task.value}; empty takes models.default",
        )
        for task in Task
        if task is not Task.TEST
    ),
    Setting(
        "writer.since",
        str,
        "",
        "sessions that ended before are not shown to a writer; set when one is",
    ),
    Setting(
        "writer.tokens_per_day",
        int,
        0,
        "tokens that a writer paid by subscription may take a day; 0 sets none",
    ),
    Setting("writer.calls_per_day", int, 100, "calls that it may make a day; 0 sets no bound"),
    Setting("writer.paused", bool, False, "no session is shown to a writer for now"),
    Setting("writer.on_battery", bool, False, "a writer works on battery, too"),
    Setting(
        "writer.exclude_tools", list[str], [], "tools whose sessions no writer is shown, as codex"
    ),
    Setting(
        "writer.exclude_projects",
        list[str],
        [],
        "projects whose sessions no writer is shown; * is any text",
    ),
    Setting(
        "models.background",
        bool,
        False,
        "models also do what nobody asked for in so many words, as in ingest",
    ),
    Setting(
        "models.daily_budget_usd",
        float,
        1.0,
        "what models may cost a day in the background; 0 stops it all",
    ),
    Setting(
        "models.task_budgets", dict[str, float], {}, "the same for single tasks: extraction = 0.5"
    ),
    Setting("models.timeout_seconds", float, 120.0, "so long a model may take to answer"),
    Setting(
        "models.providers",
        dict[str, dict[str, str]],
        {},
        "more providers: name = {base_url = …, key = …}",
    ),
    Setting(
        "models.capabilities",
        dict[str, dict[str, Any]],
        {},
        "what a model can do, where nacre has it wrong",
    ),
    Setting(
        "models.auth",
        str,
        "",
        "how nacre signs in to Anthropic or OpenAI (nacre setup); empty: what it finds",
    ),
    Setting(
        "contradiction.auto_supersede",
        float,
        0.85,
        "surer than this, a model's judgement ends a fact by itself",
    ),
    Setting(
        "contradiction.after_commands",
        bool,
        True,
        "judge new memories after commands, not by nacre review judge",
    ),
    Setting(
        "models.cache_days",
        int,
        7,
        "days for which what a model answered is kept; 0 asks each time",
    ),
    Setting("traces.cases", bool, True, "keep a trace of every question that is answered"),
    Setting("traces.keep_days", int, 30, "days for which traces are kept; 0 keeps none"),
    Setting(
        "vault.listing", bool, True, "keep MEMORY.md in the vault, a listing of memories for people"
    ),
    Setting("git.enabled", bool, True, "keep the history of the vault in git"),
    Setting(
        "git.author_name", str, "", "author of commits; empty takes git's own user.name, else nacre"
    ),
    Setting("git.author_email", str, "", "its address; empty takes git's own user.email"),
    Setting(
        "git.background",
        bool,
        True,
        "commit in the background, after commands; off leaves it to nacre commit",
    ),
    Setting(
        "git.commit_after_seconds",
        int,
        60,
        "age at which operations are committed in the background",
    ),
    Setting(
        "git.commit_after_operations",
        int,
        100,
        "so many operations are committed without waiting for their age",
    ),
    Setting(
        "git.remote", str, "origin", "name of the git remote that nacre sync keeps in step with"
    ),
    Setting(
        "remote.url",
        str,
        "",
        "the server that this home is kept in step with; nacre remote add asks for its key",
    ),
    Setting("remote.private", bool, True, "private memories, and sessions, go to that server, too"),
    Setting(
        "remote.every_seconds",
        int,
        60,
        "so long between two exchanges with it in the background, at least",
    ),
    Setting("sync.auto", bool, False, "sync in the background, after commands"),
    Setting(
        "sync.every_seconds", int, 300, "so long between two syncs in the background, at least"
    ),
    Setting("redaction.patterns", list[str], [], "your own regular expressions for secrets"),
    Setting("redaction.allow", list[str], [], "texts that look like secrets and are not"),
    Setting("redaction.emails", bool, False, "take e-mail addresses out, too"),
    Setting(
        "redaction.home_paths",
        bool,
        False,
        "write the folders of users (/home/NAME and the like) as ~",
    ),
    Setting("redaction.payment_cards", bool, False, "take numbers of payment cards out, too"),
    Setting("projects.labels", dict[str, str], {}, "conversation label = project"),
    Setting(
        "daemon.enabled", bool, True, "hooks and nacre mcp start nacre serve where it does not run"
    ),
    Setting(
        "daemon.idle_minutes",
        float,
        30.0,
        "a daemon that a hook started ends when nobody asked for so long",
    ),
    Setting(
        "daemon.watch",
        bool,
        True,
        "the daemon follows your agents' sessions, unless nacre watch does",
    ),
    Setting(
        "daemon.http",
        str,
        "",
        "[host:]port at which the daemon serves HTTP; empty: nowhere, until nacre open",
    ),
    Setting(
        "web.port",
        int,
        7077,
        "port at which nacre open has this machine's browsers served; if taken, any other",
    ),
    Setting(
        "web.origins",
        list[str],
        [],
        "pages of these origins (https://app.example) may ask, with the token",
    ),
    Setting("web.tls_cert", str, "", "file of the certificate by which HTTP is served encrypted"),
    Setting("web.tls_key", str, "", "file of its key; empty: it is in the certificate's"),
    Setting("web.insecure", bool, False, "HTTP may be served to other machines without encryption"),
    Setting(
        "gateway.enabled",
        bool,
        False,
        "the daemon answers in the channels; else nacre gateway run does",
    ),
    Setting(
        "gateway.channels",
        dict[str, dict[str, Any]],
        {},
        'where the agent answers: name = {kind = "telegram", …}',
    ),
    Setting(
        "gateway.listen",
        str,
        "127.0.0.1:7078",
        "[host:]port at which platforms deliver to webhooks",
    ),
    Setting("gateway.instructions", str, "", "what the agent is told of itself before each answer"),
    Setting(
        "gateway.debounce_seconds",
        float,
        1.5,
        "pause after a message, in seconds; those within it are one turn",
    ),
    Setting("gateway.at_once", int, 3, "answers that are made at a time"),
    Setting("gateway.answer_seconds", float, 300.0, "longest time an answer may take, in seconds"),
    Setting(
        "gateway.tokens_per_day",
        int,
        1_000_000,
        "tokens that answers by a subscription may take a day; 0 stops them",
    ),
    Setting(
        "gateway.files_mb",
        int,
        500,
        "megabytes of files from messages that are kept, the newest; 0 keeps none",
    ),
    Setting("gateway.history", int, 20, "messages of the conversation that an answer sees"),
    Setting(
        "gateway.group_history",
        int,
        50,
        "messages of a group since the last answer that an answer sees",
    ),
    Setting(
        "gateway.session_hours",
        float,
        4.0,
        "hours of silence after which a conversation begins anew",
    ),
    Setting(
        "gateway.index_every", int, 5, "messages after which a conversation is made searchable"
    ),
    Setting(
        "gateway.search_results",
        int,
        5,
        "passages of earlier conversations that an answer sees, at most",
    ),
    Setting(
        "gateway.context_tokens",
        int,
        2_000,
        "tokens of memories and passages that an answer sees, at most",
    ),
    Setting(
        "gateway.answers_a_minute",
        int,
        10,
        "answers in one conversation a minute; more messages wait for them",
    ),
    Setting(
        "gateway.most_waiting",
        int,
        10_000,
        "messages that may wait; then channels receive more slowly",
    ),
    Setting(
        "watch.interval_seconds",
        int,
        120,
        "so often the watcher looks at all transcripts, whatever it was told",
    ),
    Setting(
        "watch.changed_since",
        str,
        "",
        "a time: transcripts that did not change since wait for nacre ingest",
    ),
    Setting(
        "watch.context",
        str,
        "",
        "a file that the watcher keeps as nacre context --output does; none: no file",
    ),
    Setting(
        "watch.polling",
        bool,
        False,
        "watch by looking again and again: for network drives, which tell nothing",
    ),
)

VECTORS = "embedding"
"""What making vectors by a provider's model is called in the ledger and in ``models.task_budgets``."""

_MODEL = re.compile(r"(none|[\w.-]+:\S*)?")
_MODELS = frozenset({"models.default", *(f"models.{task.value}" for task in Task)})
_EMBEDDING = re.compile(r"minilm|none|[^:\s]+:\S.*")

_BY_KEY = {setting.key: setting for setting in SETTINGS}
CHOICES = {
    "recall.mode": ("hybrid", "lexical", "vector"),
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
"""Of some texts, every value that they can have."""

_SERVER = re.compile(r"postgres(?:ql)?://[^/?#\s]*/[^/?#\s]+(?:\?[^#\s]*)?")
_PASSWORD = re.compile(r"://[^/@:]*:[^/]*@|[?&]password=")

_MAY_HOLD_KEYS = frozenset({"models.providers", "gateway.channels", "storage.url"})
"""What is wrong with them is told without what they hold."""

_LEAST = {
    "git.commit_after_operations": 1,
    "sync.every_seconds": 10,
    "signals.min_importance": 1,
    "recall.limit": 1,
    "recall.deep_seconds": 1,
    "extraction.substance_words": 1,
    "embedding.query_seconds": 0.1,
    "watch.interval_seconds": 1,
    "models.timeout_seconds": 1,
    "gateway.at_once": 1,
    "gateway.answer_seconds": 1,
    "gateway.history": 1,
    "gateway.index_every": 1,
    "gateway.answers_a_minute": 1,
    "gateway.most_waiting": 1,
}
"""Of numbers, where that is more than 0."""

_MOST = {
    "usefulness.hold_out": 0.5,
    "dedup.threshold": 1,
    "forgetting.score_threshold": 1,
    "signals.min_importance": 10,
}


def known(key: str) -> Setting:
    """The setting of that key. Raises SettingsInvalid with the nearest names."""
    if key in _BY_KEY:
        return _BY_KEY[key]
    near = [
        name
        for name in _BY_KEY
        if key.split(".")[-1] in name or name.split(".")[0] == key.split(".")[0]
    ]
    raise SettingsInvalid(
        f"no setting is called {key!r}", hint=", ".join(near) or "nacre config lists them"
    )


def check(key: str, value: Any) -> Any:
    """Convert a value (text from a command line counts) to its setting's type. Raises SettingsInvalid."""
    setting = known(key)
    try:
        converted = (
            value
            if type(value) is setting.type and not _is_compound(setting)
            else _converted(setting, value)
        )
    except (ValueError, RecursionError) as error:
        if key in _MAY_HOLD_KEYS:
            raise SettingsInvalid(f"{key} has another shape", hint=setting.summary) from None
        form = '; several are written ["one", "two"]' if setting.type == list[str] else ""
        raise SettingsInvalid(
            f"{key} cannot be {value!r}: {error}", hint=f"{setting.summary}{form}"
        ) from error
    if key in CHOICES and converted not in CHOICES[key]:
        raise SettingsInvalid(
            f"{key} cannot be {value!r}", hint=f"one of: {', '.join(filter(None, CHOICES[key]))}"
        )
    if setting.type in (int, float):
        least, most = _LEAST.get(key, 0), _MOST.get(key, math.inf)
        if not least <= converted <= most:
            bound = f"at most {most}" if converted > most else f"at least {least}"
            raise SettingsInvalid(f"{key} must be {bound}", hint=setting.summary)
    if converted and key in _CHECKS:
        _CHECKS[key](converted)
    if key in _MODELS and not _MODEL.fullmatch(converted):
        hint = "provider:model, as ollama:qwen3 or anthropic:sonnet; or none"
        raise SettingsInvalid(f"{key} cannot be {value!r}", hint=hint)
    if key == "embedding.model" and not _EMBEDDING.fullmatch(converted):
        raise SettingsInvalid(
            f"{key} cannot be {value!r}", hint=f"{setting.summary}; docs/embeddings.md tells more"
        )
    return converted


def _converted(setting: Setting, value: Any) -> Any:
    """Raises ValueError, RecursionError."""
    import msgspec  # noqa: PLC0415 - 7 ms that a hook pays only for a setting that needs it

    if (
        isinstance(value, str)
        and setting.type == list[str]
        and value.lstrip()[:1] not in ("[", '"', "'")
    ):
        if "," in value:
            raise ValueError("several are written as a list")
        return [value.strip()] if value.strip() else []
    if isinstance(value, str) and _is_compound(setting):
        value = msgspec.toml.decode(f"value = {value.strip()}".encode())["value"]
        value = [value] if isinstance(value, str) and setting.type == list[str] else value
    return json.convert(value, setting.type, strict=False)


def _check_server(address: str) -> None:
    """That it is an address, and holds no password: the file is read by more than nacre."""
    if not _SERVER.fullmatch(address):
        told = "storage.url is not the address of a PostgreSQL server"
        raise SettingsInvalid(told, hint="write postgresql://login@server:5432/database")
    if _PASSWORD.search(address):
        raise SettingsInvalid(
            "storage.url holds a password",
            hint="leave it out: the server's client reads it from ~/.pgpass; or set NACRE_DB to the whole address",
        )


def _check_tasks(budgets: Mapping[str, float]) -> None:
    tasks = [*(task.value for task in Task), VECTORS]
    for task, dollars in budgets.items():
        if task not in tasks:
            raise SettingsInvalid(
                f"models.task_budgets: there is no task {task!r}",
                hint=f"one of: {', '.join(tasks)}",
            )
        if not 0 <= dollars < math.inf:
            raise SettingsInvalid(
                f"models.task_budgets: {task} cannot be {dollars}",
                hint="US dollars a day, at least 0",
            )


def _check_patterns(patterns: list[str]) -> None:
    hint = "patterns are Python regular expressions; correct or remove this one"
    for pattern in patterns:
        try:
            matches_all = bool(re.compile(pattern).fullmatch(""))
        except (re.error, OverflowError, RecursionError) as error:
            raise SettingsInvalid(
                f"redaction.patterns: {pattern!r} is not a regular expression: {error}", hint=hint
            ) from error
        if matches_all:
            raise SettingsInvalid(
                f"redaction.patterns: {pattern!r} matches the empty text", hint=hint
            )


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "storage.url": _check_server,
    "models.task_budgets": _check_tasks,
    "redaction.patterns": _check_patterns,
}
"""What else a value has to fulfil."""


def _is_compound(setting: Setting) -> bool:
    return setting.type not in (str, int, bool, float)
