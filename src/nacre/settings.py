"""Settings: defaults that need no file, ``config.toml``, environment. The only reader of the environment.

Each value knows where it came from. ``NACRE_<SECTION>_<KEY>`` overrides ``section.key`` of the file.
"""

from __future__ import annotations

import math
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nacre.errors import SettingsInvalid
from nacre.platform import private_files
from nacre.platform.environment import agent_in, environment, home_folder, session_in, user_home
from nacre.platform.lazy import Module
from nacre.values.tasks import Task

if TYPE_CHECKING:
    import tomlkit

    from nacre.platform import ancestry
    from nacre.values import actor as actors
    from nacre.values.actor import Actor
else:
    actors = Module("nacre.values.actor")
    ancestry = Module("nacre.platform.ancestry")
    tomlkit = Module("tomlkit")

T = TypeVar("T")


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
    Setting("embedding.query_seconds", float, 2.0, "maximum wait for the query embedding, in seconds"),
    Setting("embedding.threads", int, 0, "threads for embedding; 0 takes all cores"),
    Setting(
        "embedding.turns_newer_than", int, 0, "days: older turns get no vectors, words alone find them; 0 embeds all"
    ),
    Setting("index.fresh_turns", int, 5_000, "turns whose full text stays in the database; beyond, it moves to files"),
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
    Setting("recall.expand", bool, False, "a language model also asks each question in other words"),
    Setting("recall.deep_seconds", int, 60, "seconds that recall --deep may ask a model; then rules go on"),
    Setting("recall.budget_tokens", int, 0, "tokens in an answer at most; 0 does not cut"),
    Setting("context.budget_tokens", int, 2_000, "tokens that an agent is given at most as its session starts"),
    Setting("context.signals", bool, True, "what is stored in one session and matters is told to others that run"),
    Setting("context.nudges", bool, True, "agents that stored nothing for long are reminded that they can"),
    Setting("context.proposals_after", int, 0, "prompts until Claude Code is asked once for five memories; 0: never"),
    Setting("context.prompt_tokens", int, 600, "tokens that it is given at most with a prompt; 0 gives none"),
    Setting("context.tool_tokens", int, 80, "tokens of a rule that it is given at most before a tool; 0 gives none"),
    Setting("context.most_memories", int, 12, "memories that a session starts with, at most; 0 sets no bound"),
    Setting("mcp.tools", str, "core", "tools that agents are offered: core (four) or all (ten)"),
    Setting(
        "scoring.profile", str, "nacre", "how age and use weigh: nacre (bounded) or agenr (its formula, unbounded)"
    ),
    Setting("usage.raise_importance", bool, True, "memories that are recalled often gain importance, up to 9"),
    Setting("usefulness.hold_out", float, 0.0, "share of sessions told nothing, to see what telling does (to 0.5)"),
    Setting("dream.at_night", bool, False, "a dream a day (nacre dream), when nobody asks the daemon for anything"),
    Setting("forgetting.protect", list[str], [], "subjects that are never to be forgotten; * stands for any text"),
    Setting(
        "owner.identities", list[str], [], "who you are in chats with agents: ids (telegram:4711, +4915…), not names"
    ),
    Setting("ingest.roots", list[str], [], "more folders to look for transcripts in"),
    Setting("ingest.exclude", list[str], [], "glob patterns of transcripts to leave out"),
    Setting("ingest.exclude_tools", list[str], [], "agent tools whose sessions are not read, e.g. codex"),
    Setting("ingest.exclude_projects", list[str], [], "projects whose sessions are not read; * stands for any text"),
    Setting("ingest.exclude_paths", list[str], [], "folders (glob patterns) in which sessions are not read"),
    Setting("ingest.workers", int, 0, "processes that read transcripts; 0 takes what pays, 1 reads in nacre itself"),
    Setting("archive.enabled", bool, True, "keep transcripts, without secrets and compressed"),
    Setting("archive.budget_mb", int, 0, "size of the archive; beyond it what changed longest ago goes; 0 sets none"),
    Setting("archive.keep_days", int, 0, "days for which a transcript that changes no more is kept; 0 is for ever"),
    Setting("extraction.enabled", bool, True, "write memories when sessions are ingested"),
    Setting("extraction.substance_words", int, 6, "a model is asked about sessions in which you typed so many in a go"),
    Setting("dedup.aggressive", bool, False, "a language model judges memories that are less alike, and sees more"),
    Setting("dedup.model_seconds", float, 5.0, "so long storing waits for a language model; then the rules decide"),
    Setting("models.default", str, "none", "language model (provider:model) for every task without its own; or none"),
    *(
        Setting(f"models.{task.value}", str, "", f"language model for {task.value}; empty takes models.default")
        for task in Task
        if task is not Task.TEST
    ),
    Setting("writer.since", str, "", "sessions that ended before are not shown to a writer; set by nacre writer"),
    Setting("writer.tokens_per_day", int, 0, "tokens that a writer paid by subscription may take a day; 0 sets none"),
    Setting("writer.paused", bool, False, "no session is shown to a writer for now"),
    Setting("writer.on_battery", bool, False, "a writer works on battery, too"),
    Setting("writer.exclude_tools", list[str], [], "tools whose sessions no writer is shown, as codex"),
    Setting("writer.exclude_projects", list[str], [], "projects whose sessions no writer is shown; * is any text"),
    Setting("models.background", bool, False, "models also do what nobody asked for in so many words, as in ingest"),
    Setting("models.daily_budget_usd", float, 1.0, "what models may cost a day in the background; 0 stops it all"),
    Setting("models.task_budgets", dict[str, float], {}, "the same for single tasks: extraction = 0.5"),
    Setting("models.timeout_seconds", float, 120.0, "so long a model may take to answer"),
    Setting("models.providers", dict[str, dict[str, str]], {}, "more providers: name = {base_url = …, key = …}"),
    Setting("models.capabilities", dict[str, dict[str, Any]], {}, "what a model can do, where nacre has it wrong"),
    Setting("models.auth", str, "", "how nacre signs in to Anthropic or OpenAI (nacre setup); empty: what it finds"),
    Setting("contradiction.auto_supersede", float, 0.85, "surer than this, a model's judgement ends a fact by itself"),
    Setting("contradiction.after_commands", bool, True, "judge new memories after commands; else by nacre conflicts"),
    Setting("models.keep_prompts", bool, False, "traces hold the whole prompts and answers"),
    Setting("models.cache_days", int, 7, "days for which what a model answered is kept; 0 asks each time"),
    Setting("traces.cases", bool, True, "keep a trace of every question that is answered"),
    Setting("traces.keep_days", int, 30, "days for which traces are kept; 0 keeps none"),
    Setting("vault.listing", bool, True, "keep MEMORY.md in the vault, a listing of memories for people"),
    Setting("git.enabled", bool, True, "keep the history of the vault in git"),
    Setting("git.author_name", str, "", "author of commits; empty takes git's own user.name, else nacre"),
    Setting("git.author_email", str, "", "its address; empty takes git's own user.email"),
    Setting("git.background", bool, True, "commit in the background, after commands; off leaves it to nacre commit"),
    Setting("git.commit_after_seconds", int, 60, "age at which operations are committed in the background"),
    Setting("git.commit_after_operations", int, 100, "so many operations are committed without waiting for their age"),
    Setting("git.remote", str, "origin", "name of the git remote that nacre sync keeps in step with"),
    Setting("sync.auto", bool, False, "sync in the background, after commands"),
    Setting("sync.every_seconds", int, 300, "so long between two syncs in the background, at least"),
    Setting("redaction.patterns", list[str], [], "your own regular expressions for secrets"),
    Setting("redaction.allow", list[str], [], "texts that look like secrets and are not"),
    Setting("redaction.emails", bool, False, "take e-mail addresses out, too"),
    Setting("redaction.home_paths", bool, False, "write the folders of users (/home/NAME and the like) as ~"),
    Setting("projects.labels", dict[str, str], {}, "conversation label = project"),
    Setting("daemon.enabled", bool, True, "hooks and nacre mcp start nacre serve where it does not run"),
    Setting("daemon.idle_minutes", float, 30.0, "a daemon that a hook started ends when nobody asked for so long"),
    Setting("daemon.watch", bool, True, "the daemon follows your agents' sessions, unless nacre watch does"),
    Setting("daemon.http", str, "", "[host:]port at which the daemon serves agents over HTTP; empty: nowhere"),
    Setting("watch.interval_seconds", int, 120, "so often the watcher looks at all transcripts, whatever it was told"),
    Setting("watch.changed_since", str, "", "a time: transcripts that did not change since wait for nacre ingest"),
    Setting("watch.polling", bool, False, "watch by looking again and again: for network drives, which tell nothing"),
)

_MAX_BYTES = 256_000
"""Of ``config.toml``; more is not read."""

VECTORS = "embedding"
"""What making vectors by a provider's model is called in the ledger and in ``models.task_budgets``."""

_MODEL = re.compile(r"(none|[\w.-]+:\S*)?")
_MODELS = frozenset({"models.default", *(f"models.{task.value}" for task in Task)})
_EMBEDDING = re.compile(r"minilm|none|[^:\s]+:\S.*")

_BY_KEY = {setting.key: setting for setting in SETTINGS}
_CHOICES = {
    "recall.mode": ("hybrid", "lexical", "vector"),
    "scoring.profile": ("nacre", "agenr"),
    "mcp.tools": ("core", "all"),
    "models.auth": (
        "", "anthropic-api-key", "anthropic-token", "anthropic-oauth", "openai-api-key", "openai-subscription",
    ),
}  # fmt: skip
_MAY_HOLD_KEYS = frozenset({"models.providers"})
"""What is wrong with them is told without what they hold."""

_LEAST = {
    "git.commit_after_operations": 1,
    "sync.every_seconds": 10,
    "index.fresh_turns": 1,
    "recall.limit": 1,
    "recall.deep_seconds": 1,
    "extraction.substance_words": 1,
    "embedding.query_seconds": 0.1,
    "watch.interval_seconds": 1,
    "models.timeout_seconds": 1,
}
"""Of numbers, where that is more than 0."""

_MOST = {"usefulness.hold_out": 0.5}


@dataclass(frozen=True, slots=True)
class Value:
    """A setting's value and its origin: ``default``, the config file's path, or ``$VARIABLE``."""

    value: Any
    origin: str


@dataclass(frozen=True)
class Settings:
    """All settings of one home."""

    home: Path
    config: Path
    database: Path
    values: Mapping[str, Value]
    environ: Mapping[str, str] = field(default_factory=dict)
    user_home: Path = field(default_factory=Path)
    platform: str = sys.platform
    face: str = "python"
    """Through which :class:`~nacre.values.actor.Face` whoever runs this process reaches nacre."""

    def __getitem__(self, key: str) -> Any:
        """The value of a setting named at run time. Raises SettingsInvalid for a key that does not exist."""
        return self.values[known(key).key].value

    def flag(self, key: str) -> bool:
        """A setting that is true or false. This and the next ones raise SettingsInvalid as ``[]`` does."""
        return self._of(bool, key)

    def whole(self, key: str) -> int:
        """A setting that is a whole number."""
        return self._of(int, key)

    def number(self, key: str) -> float:
        """A setting that is a number, whole or not."""
        return self._of(float, key)

    def text(self, key: str) -> str:
        """A setting that is a text."""
        return self._of(str, key)

    def texts(self, key: str) -> list[str]:
        """A setting that is a list of texts."""
        return self._of(list[str], key)

    @property
    def redaction(self) -> tuple[list[str], list[str], tuple[str, ...]]:
        """What the owner says of redaction: patterns, what is no secret, and what else is to go."""
        kinds = tuple(kind for kind in ("emails", "home_paths") if self.flag(f"redaction.{kind}"))
        return self.texts("redaction.patterns"), self.texts("redaction.allow"), kinds

    def _of(self, kind: type[T], key: str) -> T:
        assert known(key).type == kind, f"{key} is another type"  # noqa: S101 - the caller's mistake, not the owner's
        value: T = self[key]
        return value

    def having(self, key: str, value: Any) -> Settings:
        """The same with another value of a setting. Raises SettingsInvalid."""
        return replace(self, values={**self.values, key: Value(check(key, value), "nacre")})

    @property
    def actor(self) -> Actor:
        """Who asks: as it was said for this thread; else an agent, where its variables or its program among the parents
        of this process tell so; else the owner. What the daemon does by itself is the owner's."""
        is_own = self.face == actors.Face.DAEMON
        agent = None if is_own else agent_in(self.environ) or ancestry.own_agent()
        return actors.acting_now() or actors.Actor(actors.Face(self.face), agent)

    @property
    def session(self) -> str | None:
        """The session of the agent whose shell it is, as ``<tool>:<id>``, where its host names it there."""
        return session_in(self.environ)

    @property
    def mark(self) -> str:
        """The same for whoever would answer alike: a hash of the values, and of where the database is."""
        values = sorted((key, repr(value.value)) for key, value in self.values.items())
        told = repr((values, os.path.realpath(self.database)))
        from hashlib import sha256  # noqa: PLC0415 - 3 ms that a hook need not pay

        return sha256(told.encode("utf-8", "replace")).hexdigest()

    @property
    def index(self) -> Path:
        """The folder of the index's files."""
        return self.home / "index"

    @property
    def vault(self) -> Path:
        """The folder of memories."""
        return self.home / "vault"


def known(key: str) -> Setting:
    """The setting of that key. Raises SettingsInvalid with the nearest names."""
    if key in _BY_KEY:
        return _BY_KEY[key]
    near = [name for name in _BY_KEY if key.split(".")[-1] in name or name.split(".")[0] == key.split(".")[0]]
    raise SettingsInvalid(f"no setting is called {key!r}", hint=", ".join(near) or "nacre config lists them")


def load_settings(
    home: Path | str | None = None, environ: Mapping[str, str] | None = None, *, mending: str | None = None
) -> Settings:
    """Read settings. ``home`` goes before ``NACRE_HOME``, which goes before ``~/.nacre``. Raises SettingsInvalid.

    What the file says of the key ``mending`` is about to be replaced, and may be wrong.
    """
    environ = environment() if environ is None else dict(environ)
    owner = Path(user_home(environ))
    folder = Path(home_folder(environ, str(home) if home else None))
    config = Path(environ.get("NACRE_CONFIG") or folder / "config.toml").expanduser()
    database = Path(environ.get("NACRE_DB") or folder / "nacre.db").expanduser()
    written = _read_file(config)
    written.pop(mending or "", None)
    values = {setting.key: _resolve(setting, written, config, environ) for setting in SETTINGS}
    for key in written:
        known(key)
    return Settings(folder, config, database, values, environ, owner)


def check(key: str, value: Any) -> Any:
    """Convert a value (text from a command line counts) to its setting's type. Raises SettingsInvalid."""
    setting = known(key)
    try:
        converted = value if type(value) is setting.type and not _is_compound(setting) else _converted(setting, value)
    except (ValueError, RecursionError) as error:
        if key in _MAY_HOLD_KEYS:
            raise SettingsInvalid(f"{key} has another shape", hint=setting.summary) from None
        raise SettingsInvalid(f"{key} cannot be {value!r}: {error}", hint=setting.summary) from error
    if key in _CHOICES and converted not in _CHOICES[key]:
        raise SettingsInvalid(f"{key} cannot be {value!r}", hint=f"one of: {', '.join(filter(None, _CHOICES[key]))}")
    if setting.type in (int, float):
        least, most = _LEAST.get(key, 0), _MOST.get(key, math.inf)
        if not least <= converted <= most:
            bound = f"at most {most}" if converted > most else f"at least {least}"
            raise SettingsInvalid(f"{key} must be {bound}", hint=setting.summary)
    if key == "models.task_budgets":
        _check_tasks(key, converted)
    if key in _MODELS and not _MODEL.fullmatch(converted):
        raise SettingsInvalid(f"{key} cannot be {value!r}", hint="provider:model, as ollama:qwen3, or none")
    if key == "redaction.patterns":
        _check_patterns(key, converted)
    if key == "embedding.model" and not _EMBEDDING.fullmatch(converted):
        raise SettingsInvalid(f"{key} cannot be {value!r}", hint=f"{setting.summary}; docs/embeddings.md tells more")
    return converted


def _converted(setting: Setting, value: Any) -> Any:
    """Raises ValueError, RecursionError."""
    import msgspec  # noqa: PLC0415 - 7 ms that a hook pays only for a setting that needs it

    if isinstance(value, str) and _is_compound(setting):
        value = msgspec.toml.decode(f"value = {value}".encode())["value"]
    return msgspec.convert(value, setting.type, strict=False)


def write_setting(config: Path, key: str, value: Any) -> Any:
    """Set a value in the config file, keeping its comments and order; returns what holds now. Raises SettingsInvalid.

    A table is added to: what it does not name stays as it is in the file. An empty one empties it.
    """

    converted = check(key, value)
    before = _read_file(config).get(key)  # it refuses what cannot be read
    if converted and isinstance(converted, dict) and isinstance(before, dict):
        converted = check(key, {**before, **converted})
    document = tomlkit.parse(config.read_text(encoding="utf-8")) if config.exists() else tomlkit.document()
    section, _, name = key.partition(".")
    if section not in document:
        document[section] = tomlkit.table()
    document[section][name] = converted
    private_files.make_folder(config.parent)
    private_files.write_file(config, tomlkit.dumps(document))
    return converted


def _check_tasks(key: str, budgets: Mapping[str, float]) -> None:
    tasks = [*(task.value for task in Task), VECTORS]
    for task, dollars in budgets.items():
        if task not in tasks:
            raise SettingsInvalid(f"{key}: there is no task {task!r}", hint=f"one of: {', '.join(tasks)}")
        if not 0 <= dollars < math.inf:
            raise SettingsInvalid(f"{key}: {task} cannot be {dollars}", hint="US dollars a day, at least 0")


def _check_patterns(key: str, patterns: list[str]) -> None:
    hint = "patterns are Python regular expressions; correct or remove this one"
    for pattern in patterns:
        try:
            matches_all = bool(re.compile(pattern).fullmatch(""))
        except (re.error, OverflowError, RecursionError) as error:
            raise SettingsInvalid(f"{key}: {pattern!r} is not a regular expression: {error}", hint=hint) from error
        if matches_all:
            raise SettingsInvalid(f"{key}: {pattern!r} matches the empty text", hint=hint)


def _is_compound(setting: Setting) -> bool:
    return setting.type not in (str, int, bool, float)


def _resolve(setting: Setting, written: Mapping[str, Any], config: Path, environ: Mapping[str, str]) -> Value:
    if environ.get(setting.variable):
        return Value(check(setting.key, environ[setting.variable]), f"${setting.variable}")
    if setting.key in written:
        try:
            return Value(check(setting.key, written[setting.key]), str(config))
        except SettingsInvalid as error:
            raise SettingsInvalid(f"{error.message}, as {config} says", hint=error.hint) from error
    return Value(setting.default, "default")


def _read_file(config: Path) -> dict[str, Any]:
    """The file's values by dotted key."""
    try:
        with os.fdopen(private_files.open_file(os.path.realpath(config), os.O_RDONLY), "rb") as file:
            data = file.read(_MAX_BYTES + 1)
        text = data.decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsInvalid(f"cannot read {config}: {reason}", hint="check its permissions") from error
    if len(data) > _MAX_BYTES:
        raise SettingsInvalid(f"{config} is larger than {_MAX_BYTES // 1000:,} KB", hint="is it the right file?")
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise SettingsInvalid(f"{config} is nested too deeply", hint="mend or remove that line") from error
    except ValueError as error:  # not only TOMLDecodeError: a number may be longer than Python reads
        raise SettingsInvalid(f"{config} is not valid TOML: {error}", hint="mend or remove that line") from error
    found: dict[str, Any] = {}
    for section, values in document.items():
        if not isinstance(values, dict):
            known(section)
        for name, value in values.items():
            found[f"{section}.{name}"] = value
    return found
