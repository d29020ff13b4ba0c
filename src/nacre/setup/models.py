"""Requests about settings, models and keys."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fnmatch import fnmatch
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nacre.base.ids import Clock, to_ms, utc_now
from nacre.base.request import Request
from nacre.base.times import shown_minute
from nacre.context.hooks import note_share
from nacre.errors import (
    AnswerUnusable,
    CredentialsUnusable,
    EmbedderUnavailable,
    InvalidInput,
    ModelRefused,
    NacreError,
    NotFound,
    SettingsInvalid,
    Unavailable,
    UnexpectedService,
)
from nacre.home.consent import told_of
from nacre.home.home import Home
from nacre.home.spending import (
    CALLS,
    DAILY,
    NONE,
    TOKENS,
    fold_notes,
    has_writer,
    is_by_subscription,
    is_set,
    left_today,
    model_for,
    name_for,
    resets_at,
    rests,
    set_for,
    tracing,
    unpriced,
)
from nacre.known_settings import CHOICES, SETTINGS, check, known
from nacre.learn import extract
from nacre.learn.estimate import least_day
from nacre.learn.extract import SINCE, awaiting, beginning, begins, begun, kept_here, since_of
from nacre.llm import credentials
from nacre.llm.credentials import (
    BEARER,
    COMMANDS,
    Method,
    Place,
    credential_for,
    fits,
    is_built_in,
    look,
    mask,
    method_of,
    methods,
    own_variable,
    provider_of,
    providers,
    variables_for,
)
from nacre.llm.failures import absence, key_of_billing, read, schema_of
from nacre.llm.providers import describe, obstacle
from nacre.llm.providers import full_name as providers_full_name
from nacre.memories import projects
from nacre.readers import registry
from nacre.redact.redactor import Redactor
from nacre.settings import Settings, Value, load_settings, unwrite_setting, write_setting
from nacre.values.models import DOLLAR, Capabilities, Prompt, Tokens, TraceKind
from nacre.values.session import Task

Provider = Annotated[str, Meta(description="The provider's name.", min_length=1)]


class SettingRequest(Request, frozen=True, kw_only=True):
    """One setting."""

    key: Annotated[str, Meta(description="The setting's key, as recall.limit.")]


class SetRequest(SettingRequest, frozen=True, kw_only=True):
    """Write one setting to the config file."""

    value: Annotated[
        Any,
        Meta(description="Text, a number, true or false; lists and tables are written as in TOML."),
    ]


class TryModelRequest(Request, frozen=True, kw_only=True):
    """Ask a model one short question."""

    name: Annotated[str, Meta(description="provider:model; by default that of models.default.")] = (
        ""
    )


class ProviderRequest(Request, frozen=True, kw_only=True):
    """The key of a provider."""

    provider: Provider


class SetKeyRequest(ProviderRequest, frozen=True, kw_only=True):
    """Keep another key of a provider."""

    secret: Annotated[str, Meta(description="The key.", min_length=1)]


class WriterRequest(Request, frozen=True, kw_only=True):
    """Who writes from the sessions that end from now on, and what it may take."""

    writer: Annotated[str, Meta(description="provider:model, as claude-cli:haiku.", min_length=1)]
    tokens_per_day: (
        Annotated[
            int, Meta(description="Tokens a day, for a writer that a subscription pays.", ge=1)
        ]
        | None
    ) = None
    dollars_per_day: (
        Annotated[
            float,
            Meta(description="US dollars a day that all models may take in the background.", ge=0),
        ]
        | None
    ) = None


# ----------------------------------------------------------------------------
# What nacre can sign in with: what is found where, what it was given, and taking that back.


@dataclass(frozen=True, slots=True)
class Way:
    """A way to sign in to a provider, and every place where its credential may be.

    ``method`` is one of ``models.auth``, empty for a provider that has a key and nothing else.
    """

    method: str
    provider: str
    label: str
    places: tuple[Place, ...]
    is_used: bool
    """Whether a model that is set signs in so."""

    @property
    def best(self) -> Place | None:
        """Where the credential is that nacre takes; else one that it cannot use; ``None`` where there is none."""
        usable = [place for place in self.places if place.is_usable]
        return next(iter([*usable, *(place for place in self.places if place.problem)]), None)

    @property
    def state(self) -> str:
        """``found``, ``expired``, ``unreadable`` or ``missing``."""
        best = self.best
        if best is None:
            return "missing"
        return "found" if best.is_usable else "expired" if best.credential else "unreadable"


@dataclass(frozen=True, slots=True)
class Program:
    """A command of an agent tool that can be a model, and where it is installed; ``path`` is empty where it is not."""

    provider: str
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class SigningIn:
    """The model that is set, every way, the commands of agent tools, and where nacre keeps what it is given."""

    model: str
    ways: tuple[Way, ...]
    programs: tuple[Program, ...]
    keyring: str
    """Its name; empty where none works."""
    why_no_keyring: str
    key_file: str


def status(settings: Settings, *, clock: Clock = utc_now) -> SigningIn:
    """Look everywhere. Raises ModelRefused where ``models.providers`` is written wrongly."""
    why = credentials.why_not()
    return SigningIn(
        settings.text("models.default"),
        tuple(_ways(settings, clock)),
        programs(settings),
        "" if why else credentials.name(),
        why,
        str(credentials.path_of(settings)),
    )


def programs(settings: Settings) -> tuple[Program, ...]:
    """The agent tools' commands."""
    path = settings.environ.get("PATH")
    return tuple(
        Program(provider, name, (shutil.which(name, path=path) or "") if path else "")
        for provider, name in COMMANDS.items()
    )


def in_use(settings: Settings) -> set[str]:
    """The providers of the models that are set."""
    names = [
        settings.text("models.default"),
        *(settings[f"models.{task}"] for task in Task if task is not Task.TEST),
    ]
    return {name.partition(":")[0] for name in names} - {"", "none"}


def keep(settings: Settings, provider: str, secret: str) -> str:
    """Keep a provider's key: in the keyring, or where none works in ``credentials.toml``. Returns where.

    Raises Unavailable, CredentialsUnusable where neither can be written.
    """
    try:
        credentials.keep_keyrings(provider, secret)
    except Unavailable:
        credentials.keep(settings, provider, secret)
        return str(credentials.path_of(settings))
    credentials.drop(settings, provider)
    return "keyring"


def replace_key(settings: Settings, provider: str, secret: str) -> str:
    """Keep another key of a provider; one in the config goes. Returns where it is kept.

    Raises ModelRefused for a provider that is unknown or has no keys, CredentialsUnusable for a key of another method
    than the one that is set, and what :func:`keep` raises.
    """
    if not provider_of(settings, provider).needs_key:
        raise ModelRefused(
            f"{provider_of(settings, provider).label} needs no key", hint="nacre models test"
        )
    own, wanted = method_of(provider, secret), methods().get(settings.text("models.auth"))
    if own and wanted and wanted.provider == provider and own != wanted:
        raise CredentialsUnusable(
            f"that is no credential for {wanted.name}, which is set",
            hint=f"for another way to sign in: nacre setup --auth {own.name}",
        )
    kept = keep(settings, provider, secret)
    _drop_from_config(settings, provider)
    return kept


def _drop_from_config(settings: Settings, provider: str) -> bool:
    own = settings["models.providers"].get(provider, {})
    if "api_key" not in own:
        return False
    rest = {name: value for name, value in own.items() if name != "api_key"}
    others = {name: one for name, one in settings["models.providers"].items() if name != provider}
    write_setting(
        settings.config, "models.providers", {**others, provider: rest} if rest else others
    )
    return True


def remove(settings: Settings, provider: str) -> list[str]:
    """Delete a provider's key wherever nacre keeps it; returns from where.

    Raises NotFound where there is none, ModelRefused for an unknown provider, Unavailable, CredentialsUnusable.
    """
    variables = variables_for(settings, provider)
    removed = []
    try:
        removed += ["keyring"] if credentials.drop_keyrings(provider) else []
    except Unavailable as error:
        if not credentials.why_not():
            raise Unavailable(
                f"{error.message}: the key was not removed", hint=error.hint
            ) from error
    if credentials.drop(settings, provider):
        removed.append(str(credentials.path_of(settings)))
    if _drop_from_config(settings, provider):
        removed.append(str(settings.config))
    if not removed:
        raise NotFound(
            f"nacre keeps no key of {provider}",
            hint=f"what lies in {', '.join(f'${name}' for name in variables)} or in other tools' files is not nacre's",
        )
    return removed


def left(settings: Settings, provider: str) -> list[str]:
    """Where a credential of a provider still is after :func:`remove`: places that are not nacre's."""
    after = load_settings(settings.home, settings.environ)
    if provider not in providers(after):
        return []
    return [place.origin for place in look(after, provider) if place.credential]


def _ways(settings: Settings, clock: Clock) -> Iterator[Way]:
    used = in_use(settings)
    of_methods: dict[str, list[Place]] = {}
    for name, method in methods().items():
        if method.provider not in of_methods:
            of_methods[method.provider] = list(look(settings, method.provider, clock=clock))
        names = (name,) if method.kind == BEARER and method.login else (name, "")
        places = tuple(place for place in of_methods[method.provider] if place.method in names)
        taken = next(
            (
                one
                for one in of_methods[method.provider]
                if _is_taken(settings, one, method.provider)
            ),
            None,
        )
        by_program = method.through in used and settings.text("models.auth") == name
        is_used = by_program or (method.provider in used and taken is not None and taken in places)
        yield Way(name, method.provider, method.label, places, is_used)
    for name, provider in providers(settings).items():
        if name in of_methods or not (provider.needs_key or provider.api_key):
            continue
        places = tuple(look(settings, name, clock=clock))
        yield Way(
            "",
            name,
            provider.label,
            places,
            name in used and any(place.is_usable for place in places),
        )


def _is_taken(settings: Settings, place: Place, provider: str) -> bool:
    return place.is_usable and fits(settings, place, provider)


def expects_key(settings: Settings, provider: str) -> bool:
    """Whether a provider answers nobody without a key. Raises ModelRefused for an unknown one."""
    return provider_of(settings, provider).needs_key


def elsewhere(settings: Settings, method: str) -> str:
    """Where else a login may be, in which nacre does not look; empty where nowhere."""
    tool = methods()[method].login if method in methods() else ""
    return credentials.elsewhere(settings, tool) if tool else ""


# ----------------------------------------------------------------------------
# The writer: who puts what sessions taught into words, who said so, and what it has taken today.


TOKENS_A_DAY = 100_000
"""What is proposed for a writer that a subscription pays."""

MODEL = f"models.{Task.EXTRACTION}"
_MOST_A_CALL = 31_000
"""Tokens of the largest session that is read as a whole, twice, and of what goes with it: with fewer left, one that was
refused goes on waiting."""

STATES: Mapping[str, str] = {
    "ready": "writes when a session is over",
    "paused": "paused",
    "resting": "waits for the mains",
    "spent": "has taken what it may today",
    "short": "may take too little to write",
    "failing": "failed when it was asked last",
    "unavailable": "cannot be reached",
    "off": "off",
}
"""How a writer fares, in words."""

_SPENT = frozenset({"tokens", "calls", "budget", "task budget"})
"""Why a call was refused that waits for another day."""


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """Who writes (``none``), how it fares, and what it took today.

    ``state`` is ``ready``, ``paused``, ``resting`` (on battery), ``spent`` (has taken what it may today), ``short``
    (may take too little a day to write), ``off``, ``failing`` (when it was asked last) or ``unavailable``; ``problem``
    and ``hint`` say why and what changes it; of a ready one that was not asked today, that nobody seems to be signed
    in.
    ``limit`` is tokens a day where a subscription pays, and ``most_calls`` calls, if they are bounded, else ``None``:
    then dollars bound it. ``waiting`` sessions are to be shown to it.
    ``kept_here``: the models of the last week's sessions that it is not shown, as they may run on the owner's machine,
    one a session; only :func:`status` tells.
    """

    writer: str = NONE
    state: str = "off"
    tokens_today: int = 0
    calls_today: int = 0
    limit: int | None = None
    since: str = ""
    waiting: int = 0
    problem: str | None = None
    hint: str | None = None
    most_calls: int | None = None
    kept_here: tuple[str, ...] = ()


def status_writer(home: Home) -> WriterStatus:
    """Who writes, and how it fares. Raises StoreBusy."""
    home = begun(home)
    if is_set(home):
        fold_notes(home)
    found = status_as_it_is(home)
    return replace(
        found, kept_here=tuple(kept_here(home, found.writer)) if found.state != "off" else ()
    )


def status_as_it_is(home: Home) -> WriterStatus:
    """The same, as the database has it: nothing is written, and no lock is waited for."""
    settings = home.settings
    name = name_for(home, Task.EXTRACTION)
    if not is_set(home):
        return WriterStatus(name, "off")
    tokens, calls = home.spending.tokens_in_background(home.today(), name)
    limit = settings.whole(TOKENS) if is_by_subscription(settings, name) else None
    waiting = awaiting(home)
    state, problem, hint = _faring(home, name, (tokens, calls), limit)
    if state == "ready" and not calls:  # else it answers, however it is signed in
        problem = absence(settings, provider_of(settings, name.partition(":")[0])) or None
    most_calls = settings.whole(CALLS) or None if limit is not None else None
    return WriterStatus(
        name, state, tokens, calls, limit, settings.text(SINCE), waiting, problem, hint, most_calls
    )


def _faring(
    home: Home, name: str, taken: tuple[int, int], limit: int | None
) -> tuple[str, str | None, str | None]:
    """How a writer fares that took so many tokens and calls today: in a word, what keeps it from writing, and what
    changes that.
    """
    if home.settings.flag("writer.paused"):
        return "paused", None, "nacre writer resume"
    problem = obstacle_to(home.settings, name)
    if problem:
        return "unavailable", problem.message, problem.hint
    too_little = too_few(home.settings, name, limit)
    if too_little:
        return "short", too_little, f"nacre writer set {name} --tokens-per-day {TOKENS_A_DAY}"
    failing = home.spending.health(name)
    if failing:
        return (
            "failing",
            failing.told,
            f"it is asked again by itself; at once by nacre models test {name}",
        )
    most = home.settings.whole(CALLS)
    has_called = limit is not None and 0 < most <= taken[1]
    if has_called or _is_spent(home, name, taken[0], limit):
        key = CALLS if has_called else DAILY if limit is None else TOKENS
        return (
            "spent",
            None,
            f"it goes on at {shown_minute(resets_at(home))}; for more: nacre config set {key} …",
        )
    if rests(home.settings):
        return (
            "resting",
            None,
            "it goes on with the mains; nacre config set writer.on_battery true lets it go on now",
        )
    return "ready", None, None


def _is_spent(home: Home, name: str, tokens: int, limit: int | None) -> bool:
    """Whether a writer has taken what it may today, or was refused a session that what is left does not hold."""
    is_refused = any(
        one.model == name for one in home.spending.refusals(home.today()) if one.reason in _SPENT
    )
    if limit is not None:
        return tokens >= limit or (is_refused and limit - tokens < _MOST_A_CALL)
    return is_refused and left_today(home, Task.EXTRACTION) < DOLLAR // 100


def obstacle_to(settings: Settings, name: str) -> NacreError | None:
    """What keeps a model from writing, as far as that is seen without asking it."""
    try:
        asked, able = describe(settings, name)
    except ModelRefused as error:
        return error
    problem = obstacle(settings, asked)
    if problem or able.price is not None or is_by_subscription(settings, name):
        return problem
    key = key_of_billing(settings, asked.provider)
    if not key:
        return unpriced(name)
    told = f"{asked.provider.label} would be billed to the key in {key}, and nobody knows what {name} costs"
    return ModelRefused(
        told, hint=f"sign in to {asked.provider.label}, or take another writer: nacre writer set"
    )


def is_without_bound(settings: Settings, request: WriterRequest) -> bool:
    """Whether it is left open what a writer may take a day that a subscription pays."""
    return is_by_subscription(settings, request.writer) and not request.tokens_per_day


def set_writer(home: Home, request: WriterRequest) -> WriterStatus:
    """Let a model write from the sessions that end from now on, within what it may take a day. What waits for the
    writer before it waits for this one.

    Raises ModelRefused for one that cannot be opened, InvalidInput where no bound is given, Unavailable.
    """
    settings, name = home.settings, request.writer
    refuse(settings, request)
    if not name.partition(":")[2]:
        name = f"{name.rstrip(':')}:default"
    wanted: dict[str, Any] = {
        MODEL: name,
        "models.background": True,
        "writer.paused": False,
        SINCE: since_of(home) if has_writer(settings) else beginning(home.now()),
    }
    if request.tokens_per_day is not None:
        wanted[TOKENS] = request.tokens_per_day
    if request.dollars_per_day is not None:
        wanted[DAILY] = request.dollars_per_day
    return _written(home, wanted)


def refuse(settings: Settings, request: WriterRequest) -> None:
    """Raises ModelRefused for a model that cannot be opened, InvalidInput where nothing is left for it to take, or it
    is not said what it may, Unavailable.
    """
    check_obstacle(settings, request.writer)
    if is_without_bound(settings, request):
        told = f"{request.writer} is paid by subscription: say what it may take"
        raise InvalidInput(told, hint="--tokens-per-day 100000")
    dollars = settings.number(DAILY) if request.dollars_per_day is None else request.dollars_per_day
    if not dollars and not is_by_subscription(settings, request.writer):
        raise InvalidInput(
            f"{DAILY} is 0, which stops {request.writer}", hint=f"nacre config set {DAILY} 1"
        )
    holds_none = too_few(settings, request.writer, request.tokens_per_day)
    if holds_none:
        raise InvalidInput(
            holds_none,
            hint=f"--tokens-per-day {TOKENS_A_DAY}; nacre ingest --estimate tells what waits",
        )


def too_few(settings: Settings, name: str, tokens: int | None) -> str | None:
    """What is wrong with tokens a day with which a writer writes nothing; ``None`` where a small session fits."""
    if tokens is None or name == NONE or not is_by_subscription(settings, name):
        return None
    least = least_day(settings, name, describe(settings, name)[1])
    told = f"{tokens:,} tokens a day hold not one small session for {name}: that takes {least:,} at least"
    return told if tokens < least else None


def check_obstacle(settings: Settings, name: str) -> None:
    """Raises what keeps a model from writing, if anything does."""
    problem = obstacle_to(settings, name)
    if problem:
        raise problem


def named(settings: Settings) -> str:
    """The writer, as the settings name it; empty where none is to work."""
    name = settings.text(MODEL) or settings.text("models.default")
    return name if name != NONE and settings.flag("models.background") else ""


def pause(home: Home) -> WriterStatus:
    """Show no session to the writer for now, where there is one. Raises Unavailable."""
    return _written(home, {"writer.paused": True}) if is_set(home) else status_writer(home)


def resume(home: Home) -> WriterStatus:
    """Show it sessions again: those that ended meanwhile, too. Raises Unavailable."""
    return _written(home, {"writer.paused": False}) if is_set(home) else status_writer(home)


def end(home: Home) -> WriterStatus:
    """Have no writer any more. Raises Unavailable."""
    return _written(home, {MODEL: NONE, "writer.paused": False, SINCE: ""})


def _written(home: Home, wanted: dict[str, Any]) -> WriterStatus:
    try:
        for key, value in wanted.items():
            write_setting(home.settings.config, key, check(key, value))
    except OSError as error:
        raise Unavailable(
            f"cannot write {home.settings.config}: {error.strerror}", hint="make it writable"
        ) from error
    settings = home.settings
    for key, value in wanted.items():
        settings = settings.having(key, value)
    return status_writer(replace(home, settings=settings))


# ----------------------------------------------------------------------------
# Which models are set, what they can do, and whether they answer.


_OUTPUT_TOKENS = 200


class _Metal(msgspec.Struct, forbid_unknown_fields=True):
    metal: str


_PROMPT = Prompt(
    Task.TEST,
    "You answer short questions, each with one word.",
    "Which metal is liquid at room temperature?",
    schema_of(_Metal),
    name="metal",
    version="test/1",
    output_tokens=_OUTPUT_TOKENS,
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that is set, for some tasks.

    ``aliases`` are the short names by which the settings name it. ``credential`` says where its key comes from, empty
    where there is none; ``problem`` what keeps it from answering.
    """

    name: str
    label: str
    tasks: tuple[Task, ...]
    capabilities: Capabilities
    credential: str = ""
    needs_key: bool = False
    problem: NacreError | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """One short call: what answered and in which time, in seconds. ``cost`` is US dollars, if that is known; none where
    it ``is_by_subscription``.
    """

    name: str
    model: str
    answer: str
    seconds: float
    tokens: Tokens
    cost: Decimal | None
    is_by_subscription: bool = False


def uses(home: Home) -> dict[Task, str]:
    """The model of each task, as ``provider:model`` or ``none``."""
    return {task: name_for(home, task) for task in Task if task is not Task.TEST}


def offers(home: Home) -> Sequence[Offer]:
    """The models that are set, each once, in the order of their tasks."""
    tasks: dict[str, list[Task]] = {}
    for task, name in uses(home).items():
        if name != NONE:
            tasks.setdefault(name, []).append(task)
    default = home.settings.text("models.default")
    if default not in ("", NONE):
        tasks.setdefault(providers_full_name(default), [])
    written = dict.fromkeys((default, *(set_for(home, task) for task in Task)))
    return [
        replace(
            _offer(home.settings, name, tuple(found)),
            aliases=tuple(
                one for one in written if one != name and providers_full_name(one) == name
            ),
        )
        for name, found in tasks.items()
    ]


def try_model(home: Home, name: str = "") -> Trial:
    """Ask a model one short question: that of ``models.default``, or the one that is named.

    Raises InvalidInput where none is set, ModelUnavailable, ModelRefused, and AnswerUnusable where it does not keep to
    a schema.
    """
    model = model_for(_naming(home, name), Task.TEST, background=False)
    if model is None:
        raise InvalidInput(
            "no model is set", hint="nacre setup, or nacre models test provider:model"
        )
    try:
        with tracing(home, TraceKind.TEST, model.name) as run:
            began = time.perf_counter()
            completion = model.complete(_PROMPT)
            seconds = time.perf_counter() - began
            answer = read(completion, _Metal, model.name)
            run.outcome = "answered"
    finally:
        model.close()
    if is_set(home) and model.name == name_for(home, Task.EXTRACTION):
        with suppress(NacreError):  # the answer is paid for
            home.sessions.ask_again()
    price, is_by = model.capabilities.price, is_by_subscription(home.settings, model.name)
    cost = Decimal(0) if is_by else completion.tokens.cost(price) if price else None
    return Trial(
        model.name, completion.model, answer.metal, seconds, completion.tokens, cost, is_by
    )


def _naming(home: Home, name: str) -> Home:
    """The same home, where the default model is the one named."""
    if not name:
        return home
    values = {**home.settings.values, "models.default": Value(name, "command line")}
    return replace(home, settings=replace(home.settings, values=values))


def _offer(settings: Settings, name: str, tasks: tuple[Task, ...]) -> Offer:
    try:
        asked, able = describe(settings, name)
    except ModelRefused as error:
        return Offer(name, name.partition(":")[0], tasks, Capabilities(), problem=error)
    credential = asked.credential
    return Offer(
        name,
        asked.provider.label,
        tasks,
        able,
        f"{credential.origin} ({credential.masked})" if credential else "",
        asked.provider.needs_key,
        obstacle(settings, asked),
    )


# ----------------------------------------------------------------------------
# Set up a language model: what is to change, whether the model answers, and writing it down.
#
# Nothing is written before the model was tried: it is tried with settings as they would be.


ANSWERED, UNUSABLE, UNREACHABLE, REFUSED, SKIPPED = (
    "answered",
    "unusable",
    "unreachable",
    "refused",
    "skipped",
)
_TEST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to change; ``None`` stays as it is.

    ``model`` is ``provider:model`` or ``none``, ``auth`` one of the methods, ``secret`` a key to be kept for the
    model's provider, ``base_url`` where a provider answers that nacre does not know. ``tokens_per_day`` bounds what a
    subscription pays in the background, ``daily_budget`` what has a price.
    """

    model: str | None = None
    auth: str | None = None
    secret: str | None = field(default=None, repr=False)
    base_url: str | None = None
    embedding: str | None = None
    background: bool | None = None
    daily_budget: float | None = None
    tokens_per_day: int | None = None

    @property
    def provider(self) -> str:
        """The model's provider; empty without a model."""
        return "" if self.model in (None, NONE) else str(self.model).partition(":")[0]


@dataclass(frozen=True, slots=True)
class Tried:
    """How a test call went: ``answered``, ``unusable`` (not in the shape that was asked for), ``unreachable``,
    ``refused`` or ``skipped``; with the reason and the way out."""

    outcome: str
    seconds: float = 0.0
    message: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """What a setup changed, and what holds now. ``kept`` is where the key went, empty where none was given."""

    settings: Settings
    changed: Mapping[str, Any]
    kept: str
    masked: str
    notes: tuple[str, ...] = ()


def full_name(settings: Settings, model: str, provider: str) -> str:
    """A model's name with its provider; one that is there already stays. Names may hold colons: ``qwen3:8b``."""
    head, colon, _ = model.partition(":")
    if model == NONE or (colon and head in providers(settings)):
        return model
    return f"{provider}:{model}"


def method_for(provider: str, auth: str | None, secret: str | None) -> Method | None:
    """The method by which a key that is given signs in; ``None`` where the provider has one way only.

    Raises CredentialsUnusable where the key is not of the method that is asked for.
    """
    by_form = method_of(provider, secret) if secret else None
    wanted = methods().get(auth or "")
    if wanted is None or by_form is None or wanted == by_form:
        return wanted or by_form
    if not (wanted.begins or by_form.begins):
        return wanted
    hint = f"it looks like one for --auth {by_form.name}"
    raise CredentialsUnusable(f"that is no credential for {wanted.name}", hint=hint)


def changes(settings: Settings, wish: Wish) -> dict[str, Any]:
    """The settings that a wish changes, with their new values; where that sets a writer, it is shown what ends from now
    on. Raises SettingsInvalid.
    """
    wanted: dict[str, Any] = {
        "models.default": wish.model,
        "models.auth": wish.auth,
        "embedding.model": wish.embedding,
        "models.background": wish.background,
        DAILY: wish.daily_budget,
        TOKENS: wish.tokens_per_day,
        "models.providers": _providers(settings, wish),
    }
    if wish.model == NONE:
        wanted |= {f"models.{task}": "" for task in Task if task is not Task.TEST} | {
            "models.background": False,
            SINCE: "",
        }
    elif wish.model and wish.background and settings[f"models.{Task.EXTRACTION}"] == NONE:
        wanted[f"models.{Task.EXTRACTION}"] = ""  # it was sent away as a writer
    checked = {key: check(key, value) for key, value in wanted.items() if value is not None}
    after = settings
    for key, value in checked.items():
        after = after.having(key, value)
    checked |= begins(settings, after, utc_now())
    return {
        key: value
        for key, value in checked.items()
        if value != settings[key] or _is_overridden(settings, key)
    }


def check_bound(settings: Settings, wish: Wish) -> None:
    """Raises InvalidInput where a model would work in the background that a subscription pays, and it is not said what
    it may take, or what is said holds no call of the writer.
    """
    after = wished(settings, wish)
    name = after.text("models.default")
    is_asked = wish.background or (wish.model and after.flag("models.background"))
    if is_asked and not after.whole(TOKENS) and is_by_subscription(after, name):
        raise InvalidInput(
            f"{name} is paid by subscription: say what it may take", hint="--tokens-per-day 100000"
        )
    if is_asked or wish.tokens_per_day is not None:
        holds_none = too_few(after, named(after), after.whole(TOKENS))
        if holds_none:
            raise InvalidInput(holds_none, hint=f"--tokens-per-day {TOKENS_A_DAY}")


def wished(settings: Settings, wish: Wish) -> Settings:
    """The settings as they would be. Raises SettingsInvalid, ModelRefused."""
    values = {
        key: Value(value, str(settings.config)) for key, value in changes(settings, wish).items()
    }
    after = replace(settings, values={**settings.values, **values})
    if not wish.secret:
        return after
    return replace(after, environ={**settings.environ, _variable_of(wish): wish.secret})


def try_model_models(home: Home, wish: Wish) -> Tried:
    """Ask the model that is wished for one short question.

    Where something answers that is no such model, it is refused. Raises SettingsInvalid.
    """
    began = time.perf_counter()
    try:
        trial = try_model(replace(home, settings=_soon(wished(home.settings, wish))))
    except NacreError as error:
        kinds = {AnswerUnusable: UNUSABLE, UnexpectedService: REFUSED, Unavailable: UNREACHABLE}
        outcome = next((kinds[kind] for kind in type(error).__mro__ if kind in kinds), REFUSED)
        seconds = time.perf_counter() - began
        return Tried(
            outcome, seconds, _as_given(wish, error.message), _as_given(wish, error.hint or "")
        )
    return Tried(ANSWERED, trial.seconds)


def _soon(settings: Settings) -> Settings:
    """Settings with which a model has half a minute to answer: somebody waits."""
    seconds = min(_TEST_SECONDS, settings.number("models.timeout_seconds"))
    return replace(
        settings, values={**settings.values, "models.timeout_seconds": Value(seconds, "setup")}
    )


def _as_given(wish: Wish, text: str) -> str:
    """What is told of an address that is not set yet, and of a key that is not kept yet: it is tried from a variable of
    nacre's own."""
    if wish.base_url:
        text = text.replace(f"models.providers.{wish.provider}.base_url", "--base-url")
    if not wish.secret:
        return text
    variable = _variable_of(wish)
    another = "run it again with another key"
    return text.replace(f"export {variable}=NEW_KEY", another).replace(
        f"in ${variable}", "that was given"
    )


def _variable_of(wish: Wish) -> str:
    """The variable in which a key is tried that is not kept yet: one that goes before all others."""
    method = methods().get(wish.auth or "")
    return method.variables[0] if method and method.variables else own_variable(wish.provider)


def apply(settings: Settings, wish: Wish) -> Done:
    """Keep the key, and write the settings that change. Raises SettingsInvalid, Unavailable, CredentialsUnusable."""
    changed = changes(settings, wish)
    kept = keep(settings, wish.provider, wish.secret) if wish.secret else ""
    try:
        for key, value in changed.items():
            write_setting(settings.config, key, value)
    except OSError as error:
        hint = "make it writable, or set NACRE_HOME; in the environment, NACRE_MODELS_DEFAULT sets the model"
        raise Unavailable(f"cannot write {settings.config}: {error.strerror}", hint=hint) from error
    after = load_settings(settings.home, settings.environ)
    notes = [
        f"${_variable(key)} is set and goes before the file"
        for key in changed
        if _is_overridden(settings, key)
    ]
    notes += [*_outdone(after, wish), *_idle(after), *_sent(after, changed)]
    return Done(after, changed, kept, mask(wish.secret) if wish.secret else "", tuple(notes))


def _outdone(after: Settings, wish: Wish) -> list[str]:
    """Whether something else goes before the key that was given."""
    if not wish.secret:
        return []
    taken = credential_for(after, wish.provider)
    if taken is None or taken.secret == wish.secret:
        return []
    return [f"{taken.origin} holds another key, and goes before the one that was kept"]


def _idle(after: Settings) -> list[str]:
    """Whether the model may work in the background, and cannot, since nobody knows what it costs."""
    name = after["models.default"]
    if not after["models.background"] or name == NONE:
        return []
    try:
        if describe(after, name)[1].price is not None or is_by_subscription(after, name):
            return []
    except ModelRefused:  # the trial tells
        return []
    why = unpriced(name)
    return [f"not in the background yet: {why.message}; {why.hint}"]


def _sent(after: Settings, changed: Mapping[str, Any]) -> list[str]:
    """What becomes of texts with the embedding model that was set."""
    if "embedding.model" not in changed:
        return []
    try:
        told = told_of(after, after["embedding.model"])
    except EmbedderUnavailable as error:
        return [f"{error.message}; {error.hint}"]
    return [told] if told else []


def _providers(settings: Settings, wish: Wish) -> dict[str, dict[str, str]] | None:
    """``models.providers`` with the address that is wished for, and without a key that is now kept elsewhere."""
    name = wish.provider
    own = dict(settings["models.providers"].get(name, {}))
    before = dict(own)
    if wish.base_url:
        own["base_url"] = wish.base_url
        own.setdefault("api", "chat")
        if wish.secret and not is_built_in(name):
            own.setdefault(
                "key", re.sub(r"\W", "_", name).upper() + "_API_KEY"
            )  # which says that it needs one
    if wish.secret:
        own.pop("api_key", None)
    if own == before:
        return None
    others = {key: table for key, table in settings["models.providers"].items() if key != name}
    return {**others, name: own} if own else others


def needs_key(settings: Settings, wish: Wish) -> bool:
    """Whether the wished model's provider needs a key that is neither given nor found.

    Raises ModelRefused for an unknown provider, and where it is a login that is missing or has expired.
    """
    after = wished(settings, wish)
    if (
        wish.secret
        or not provider_of(after, wish.provider).needs_key
        or credential_for(after, wish.provider)
    ):
        return False
    method = methods().get(wish.auth or "")
    if method and method.login and method.kind == BEARER:
        found = credentials.path_of_logins(settings, method.login)
        more = credentials.elsewhere(settings, method.login)
        hint = f"run {method.login} and sign in{f' ({more})' if more else ''}, or choose another --auth"
        raise ModelRefused(f"there is no login in {found}", hint=hint)
    return True


def _is_overridden(settings: Settings, key: str) -> bool:
    return settings.values[key].origin.startswith("$")


def _variable(key: str) -> str:
    return "NACRE_" + key.replace(".", "_").upper()


# ----------------------------------------------------------------------------
# Settings as they may be shown: without what is a credential, or looks like one.


_NAMES = re.compile(
    r"(?i)(?:^|[_-])(?:api[_-]?key|secret|token|password|credentials?|authorization)$"
)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_FORMS = {str: "text", int: "whole", float: "number", bool: "switch"}
_OF_TOOLS = ("ingest.exclude_tools", "writer.exclude_tools")
_MARKER = re.compile(r"\[REDACTED:[a-z0-9-]+\]")


def hidden(settings: Settings, value: Any) -> Any:
    """A setting's value with every credential in it as ``sk-…abcd``."""
    redactor = Redactor(*settings.redaction)
    return _hidden(redactor, "", value)


def _hidden(redactor: Redactor, name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _hidden(redactor, str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(redactor, name, item) for item in value]
    if not isinstance(value, str) or not value:
        return value
    if _NAMES.search(name) or (name == "key" and not _VARIABLE.fullmatch(value)):
        return mask(value)
    clean = redactor.clean(value)
    return mask(value) if _MARKER.fullmatch(clean) else clean


@dataclass(frozen=True, slots=True)
class SettingView:
    """A setting's value, as ``sk-…abcd`` where it is a key, where the value comes from, and what can be set.

    ``origin``: ``default``, the config file, or the variable of the environment that goes before it. ``form``:
    ``text``, ``number``, ``whole`` (a whole number), ``switch``, ``list`` or ``table``; ``choices`` are all values of a
    text that has no others.
    """

    key: str
    value: Any
    origin: str
    variable: str
    default: Any
    summary: str
    form: str
    choices: tuple[str, ...] = ()


def list_settings(settings: Settings) -> list[SettingView]:
    """Every setting, its value, and where the value comes from."""
    return [_view(settings, setting.key) for setting in SETTINGS]


def get_setting(settings: Settings, request: SettingRequest) -> SettingView:
    """One setting. Raises SettingsInvalid."""
    return _view(settings, request.key)


def set_setting(settings: Settings, request: SetRequest) -> SettingView:
    """Write one setting to the config file. Raises SettingsInvalid, StoreUnusable."""
    write(settings, request.key, request.value)
    return _view(load_settings(settings.home, settings.environ), request.key)


def unset_setting(settings: Settings, request: SettingRequest) -> SettingView:
    """Remove one setting from the config file, so that its default holds. Raises SettingsInvalid, StoreUnusable."""
    before = _before(settings, request.key)
    unwrite_setting(settings.config, request.key)
    return _view(_written_visible_settings(before), request.key)


def write(settings: Settings, key: str, value: Any) -> Any:
    """Write a setting, and note what follows from it; returns what holds now. Raises SettingsInvalid, StoreUnusable."""
    if key in _OF_TOOLS:
        _refuse_unknown(check(key, value))
    before = _before(settings, key)
    written = write_setting(settings.config, key, value)
    _written_visible_settings(before)
    return written


def _before(settings: Settings, key: str) -> Settings:
    """The settings as the file has them; without a key of which it says what cannot be."""
    try:
        return load_settings(settings.home, settings.environ)
    except SettingsInvalid:
        return load_settings(settings.home, settings.environ, mending=key)


def unmatched(home: Home, patterns: Sequence[str]) -> list[str]:
    """Those of some patterns that no project of a home matches."""
    names = projects.known_slugs(home)
    return [one for one in patterns if not any(fnmatch(name, one) for name in names)]


def _refuse_unknown(names: Sequence[str]) -> None:
    """Raises SettingsInvalid for a tool that nobody knows: what it was to keep away would be shown."""
    tools = list(registry.tools())
    for name in names:
        if name not in tools:
            raise SettingsInvalid(
                f"no tool is called {name!r}", hint=f"known tools: {', '.join(tools)}"
            )


def _written_visible_settings(before: Settings) -> Settings:
    """The settings as the file has them now, with what follows from them noted."""
    now = load_settings(before.home, before.environ)
    note_share(now, to_ms(utc_now()) or 0)
    for key, value in extract.begins(before, now, utc_now()).items():
        write_setting(now.config, key, value)
    return now


def _view(settings: Settings, key: str) -> SettingView:
    setting = known(key)
    form = _FORMS.get(setting.type) or ("list" if setting.type == list[str] else "table")
    return SettingView(
        key,
        hidden(settings, settings[key]),
        settings.values[key].origin,
        setting.variable,
        setting.default,
        setting.summary,
        form,
        CHOICES.get(key, ()),
    )
