"""Settings, models, keys and the writer: requests, status and changes."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

import msgspec

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import utc_now
from nacre.base.times import shown_minute
from nacre.errors import (
    InvalidInputError,
    InvalidSettingsError,
    ModelRefusedError,
    NacreError,
    NotFoundError,
    UnavailableError,
    UnusableCredentialsError,
)
from nacre.home.home import Home
from nacre.home.spending import (
    DAILY,
    NONE,
    TOKENS,
    daily_budget,
    fold_notes,
    has_writer,
    is_by_subscription,
    model_for,
    name_for,
    resets_at,
    unpriced,
)
from nacre.known_settings import CHOICES, KEYS, check, setting_of
from nacre.learn import estimate, extract
from nacre.llm import credentials
from nacre.llm import providers as llm_providers
from nacre.llm.credentials import (
    BEARER,
    COMMANDS,
    Place,
    fits,
    look,
    mask,
    method_of,
    methods,
    provider_of,
    providers,
    variables_for,
)
from nacre.llm.failures import absence, key_of_billing, read, schema_of
from nacre.operations import operation
from nacre.readers import registry
from nacre.redact.redactor import Redactor
from nacre.settings import Settings, load_settings, unwrite_setting, write_setting
from nacre.values.models import DOLLAR, Capabilities, Prompt, Tokens
from nacre.values.session import Task

Provider = Annotated[str, bounds("The provider's name.", min_length=1)]


Key = Annotated[str, bounds("The setting's key, such as recall.limit.")]


# -- Sign-in: where credentials are, and storing or removing keys ----------------------------------


@frozen
class Way:
    """A way to sign in to a provider, and the state of its credential.

    ``method``: a value of ``models.auth``, or empty if the provider only has API keys. ``state``:
    ``found``, ``expired``, ``unreadable`` or ``missing``. The secret is left out because interfaces
    show this object.
    """

    method: str
    provider: str
    label: str
    is_used: bool
    """True if a configured model signs in this way."""

    state: str
    masked: str = ""
    origin: str = ""
    expires: datetime | None = None
    problem: str = ""
    warning: str = ""
    hints: tuple[str, ...] = ()
    looked: tuple[str, ...] = ()
    """Places that were searched for the credential."""


@frozen
class SigningIn:
    """The configured model, the ways to sign in, and the file in which nacre stores keys.

    ``programs`` maps providers to the paths of their agents' installed commands.
    """

    model: str
    ways: tuple[Way, ...]
    programs: dict[str, str]
    key_file: str


@operation("auth", daemon=False)
def status(settings: Settings) -> SigningIn:
    """Search all places for credentials. Raises ModelRefusedError if ``models.providers`` is invalid."""
    return SigningIn(
        settings.text("models.default"),
        tuple(_ways(settings)),
        programs(settings),
        str(credentials.path_of(settings)),
    )


def programs(settings: Settings) -> dict[str, str]:
    """Return the path of each provider's installed agent command."""
    path = settings.environ.get("PATH")
    paths = {provider: shutil.which(name, path=path) for provider, name in COMMANDS.items() if path}
    return {provider: found for provider, found in paths.items() if found}


def in_use(settings: Settings) -> set[str]:
    """Return the providers of the configured models."""
    tasks = ("default", *(task for task in Task if task is not Task.TEST))
    return {settings[f"models.{task}"].partition(":")[0] for task in tasks} - {"", NONE}


@operation("auth-set", writes=True, owners=True, daemon=False, http=False, command="writer keys")
def replace_key(
    settings: Settings,
    provider: Provider,
    secret: Annotated[str, bounds("The key.", min_length=1)],
) -> str:
    """Store a new key for a provider, and return where the key is stored.

    The provider's key in the config file is removed. Raises ModelRefusedError if the provider is
    unknown or needs no key, UnusableCredentialsError if the key does not fit the configured sign-in
    method, UnavailableError.
    """
    if not provider_of(settings, provider).needs_key:
        raise ModelRefusedError(
            f"{provider_of(settings, provider).label} needs no key",
            hint="nacre writer models --test",
        )
    own, selected = method_of(provider, secret), methods().get(settings.text("models.auth"))
    if own and selected and selected.provider == provider and own != selected:
        raise UnusableCredentialsError(
            f"this credential is not for the selected method {selected.name}",
            hint=f"to select another method: nacre config set models.auth {own.name}",
        )
    credentials.keep(settings, provider, secret)
    _drop_from_config(settings, provider)
    return str(credentials.path_of(settings))


def _drop_from_config(settings: Settings, provider: str) -> bool:
    tables = {name: dict(table) for name, table in settings["models.providers"].items()}
    if "api_key" not in tables.get(provider, {}):
        return False
    del tables[provider]["api_key"]
    tables = {name: table for name, table in tables.items() if table or name != provider}
    write_setting(settings.config, "models.providers", tables)
    return True


@operation(
    "auth-remove",
    writes=True,
    owners=True,
    daemon=False,
    http=False,
    command="writer keys --remove",
)
def remove(settings: Settings, provider: Provider) -> list[str]:
    """Delete all stored keys of a provider, and return where the keys were stored.

    Raises NotFoundError if no key is stored, ModelRefusedError for an unknown provider,
    UnavailableError, UnusableCredentialsError.
    """
    variables = variables_for(settings, provider)
    places = []
    if credentials.drop(settings, provider):
        places.append(str(credentials.path_of(settings)))
    if _drop_from_config(settings, provider):
        places.append(str(settings.config))
    if not places:
        raise NotFoundError(
            f"nacre has no stored key for {provider}",
            hint=(
                f"nacre does not remove keys from {', '.join(f'${name}' for name in variables)} or from other "
                "tools' files"
            ),
        )
    return places


def other_places(settings: Settings, provider: str) -> list[str]:
    """Return the places outside nacre that still have a provider's credential after :func:`remove`."""
    after = load_settings(settings.home, settings.environ)
    if provider not in providers(after):
        return []
    return [place.origin for place in look(after, provider) if place.credential]


def _ways(settings: Settings) -> Iterator[Way]:
    used = in_use(settings)
    for name, method in methods().items():
        found = list(look(settings, method.provider))
        names = (name,) if method.kind == BEARER and method.login else (name, "")
        places = tuple(place for place in found if place.method in names)
        usable = (
            place for place in found if place.is_usable and fits(settings, place, method.provider)
        )
        is_used = (method.through in used and settings.text("models.auth") == name) or (
            method.provider in used and next(usable, None) in places
        )
        yield _way(name, method.provider, method.label, places, is_used=is_used)
    with_methods = {method.provider for method in methods().values()}
    for name, provider in providers(settings).items():
        if name in with_methods or not (provider.needs_key or provider.api_key):
            continue
        places = tuple(look(settings, name))
        is_used = name in used and any(place.is_usable for place in places)
        yield _way("", name, provider.label, places, is_used=is_used)


def _way(method: str, provider: str, label: str, places: Sequence[Place], *, is_used: bool) -> Way:
    looked = tuple(place.origin for place in places)
    usable = (place for place in places if place.is_usable)
    best = next(usable, None) or next((place for place in places if place.problem), None)
    if best is None:
        hints = tuple(dict.fromkeys(place.hint for place in places if place.hint))
        return Way(method, provider, label, is_used, "missing", hints=hints, looked=looked)
    return Way(
        method,
        provider,
        label,
        is_used,
        "found" if best.is_usable else "expired" if best.credential else "unreadable",
        best.credential.masked if best.credential else "",
        best.origin,
        best.expires,
        best.problem,
        best.warning,
        (best.hint,) if best.hint else (),
        looked,
    )


# -- The writer: its model, state and use today ----------------------------------------------------


TOKENS_A_DAY = 100_000
"""Suggested daily token limit for a writer covered by a subscription."""

MODEL = f"models.{Task.EXTRACTION}"

STATES: Mapping[str, str] = {
    "ready": "writes after each session",
    "paused": "paused",
    "spent": "daily limit reached",
    "short": "daily limit too low to write",
    "failing": "failed at the last call",
    "unavailable": "not reachable",
    "off": "off",
}
"""Descriptions of the writer's possible states."""


@frozen
class WriterStatus:
    """The writer (or ``none``), its state and its use today.

    ``state``: ``ready``, ``paused``, ``spent`` (today's limit is reached), ``short`` (the daily
    limit is too low for a session), ``off``, ``failing`` (the last call failed) or ``unavailable``.
    ``problem``, ``hint``: the reason and a remedy. ``limit``: tokens per day under a subscription,
    or ``None`` if the limit is in dollars. ``waiting``: number of sessions to read. ``kept_here``,
    set only by :func:`status_writer`: models whose sessions of last week are not sent to the
    writer, because the models might run on this machine.
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
    kept_here: tuple[str, ...] = ()


@operation("writer")
def status_writer(home: Home) -> WriterStatus:
    """Return the writer and its state. Raises StoreBusyError."""
    home = extract.record_start(home)
    if has_writer(home.settings):
        fold_notes(home)
    state = read_writer_status(home)
    if state.state == "off":
        return state
    return replace(state, kept_here=tuple(extract.list_local_models(home, state.writer)))


def read_writer_status(home: Home) -> WriterStatus:
    """Return the writer's state from the database, without writing or waiting for a lock."""
    settings = home.settings
    name = name_for(home, Task.EXTRACTION)
    if not has_writer(settings):
        return WriterStatus(name)
    tokens, calls = home.spending.tokens_in_background(home.today(), name)
    limit = settings.whole(TOKENS) if is_by_subscription(settings, name) else None
    pending = extract.count_awaiting(home)
    state, problem, hint = _describe_state(home, name, tokens, limit)
    if state == "ready" and not calls:  # after a call, the writer is evidently signed in
        problem = absence(settings, provider_of(settings, name.partition(":")[0])) or None
    return WriterStatus(
        name, state, tokens, calls, limit, settings.text(extract.SINCE), pending, problem, hint
    )


def _describe_state(
    home: Home, name: str, tokens: int, limit: int | None
) -> tuple[str, str | None, str | None]:
    if home.settings.flag("writer.paused"):
        return "paused", None, "nacre writer resume"
    if problem := obstacle_to(home.settings, name):
        return "unavailable", problem.message, problem.hint
    if too_little := too_few(home.settings, name, limit):
        return "short", too_little, f"nacre writer set {name} --tokens-per-day {TOKENS_A_DAY}"
    if failing := home.spending.health(name):
        hint = f"it is retried automatically; to retry now: nacre writer models --test {name}"
        return "failing", failing.told, hint
    if limit is None:
        is_spent = daily_budget(home).remaining < DOLLAR // 100
    else:
        is_spent = limit - tokens < estimate.least_call(home.settings, name)
    if is_spent:
        key = DAILY if limit is None else TOKENS
        until = shown_minute(resets_at(home))
        hint = f"it continues at {until}; to raise the limit: nacre config set {key} …"
        return "spent", None, hint
    return "ready", None, None


def obstacle_to(settings: Settings, name: str) -> NacreError | None:
    """Return an error if a model obviously cannot be the writer. The model is not called."""
    try:
        target, able = llm_providers.describe(settings, name)
    except ModelRefusedError as error:
        return error
    problem = llm_providers.obstacle(settings, target)
    if problem or able.price is not None or is_by_subscription(settings, name):
        return problem
    key = key_of_billing(settings, target.provider)
    if not key:
        return unpriced(name)
    label = target.provider.label
    return ModelRefusedError(
        f"{label} would bill the key in {key}, but the price of {name} is unknown",
        hint=f"sign in to {label}, or choose another writer: nacre writer set",
    )


@operation("writer-set", writes=True, owners=True, daemon=False)
def set_writer(
    home: Home,
    writer: Annotated[str, bounds("provider:model, such as claude-cli:haiku.", min_length=1)],
    tokens_per_day: Annotated[
        int, bounds("Tokens per day, for a writer paid by subscription.", ge=1)
    ]
    | None = None,
    dollars_per_day: Annotated[
        float, bounds("US dollars per day for all models in the background.", ge=0)
    ]
    | None = None,
) -> WriterStatus:
    """Set the model that writes memories from sessions that end from now on.

    The model also reads the sessions that wait for the previous writer. Raises ModelRefusedError if
    the model cannot be opened, InvalidInputError if no usable limit is set, UnavailableError.
    """
    settings, name = home.settings, writer
    check_obstacle(settings, name)
    is_subscription = is_by_subscription(settings, name)
    if is_subscription and not tokens_per_day:
        message = f"{name} is paid by subscription and needs a daily limit"
        raise InvalidInputError(message, hint="--tokens-per-day 100000")
    dollars = settings.number(DAILY) if dollars_per_day is None else dollars_per_day
    if not dollars and not is_subscription:
        raise InvalidInputError(
            f"{DAILY} is 0, which stops {name}", hint=f"nacre config set {DAILY} 1"
        )
    if problem := too_few(settings, name, tokens_per_day):
        raise InvalidInputError(
            problem,
            hint=f"--tokens-per-day {TOKENS_A_DAY}; nacre ingest --estimate shows how many tokens are needed",
        )
    if not name.partition(":")[2]:
        name = f"{name.rstrip(':')}:default"
    new_values: dict[str, Any] = {
        MODEL: name,
        "models.background": True,
        "writer.paused": False,
        extract.SINCE: extract.since_of(home)
        if has_writer(settings)
        else extract.start_time(home.now()),
    }
    if tokens_per_day is not None:
        new_values[TOKENS] = tokens_per_day
    if dollars_per_day is not None:
        new_values[DAILY] = dollars_per_day
    return _apply(home, new_values)


def too_few(settings: Settings, name: str, tokens: int | None) -> str | None:
    """Return a message if the daily limit is too low for a small session, otherwise ``None``."""
    if tokens is None or name == NONE or not is_by_subscription(settings, name):
        return None
    least = estimate.least_day(settings, name)
    message = f"{tokens:,} tokens a day are too few for one small session with {name}; it needs at least {least:,}"
    return message if tokens < least else None


def check_obstacle(settings: Settings, name: str) -> None:
    """Raise an error if a model cannot be the writer."""
    if problem := obstacle_to(settings, name):
        raise problem


@operation("writer-pause", writes=True, owners=True, daemon=False)
def pause(home: Home) -> WriterStatus:
    """Pause the writer, if there is one. Raises UnavailableError."""
    return _pause(home, is_paused=True)


@operation("writer-resume", writes=True, owners=True, daemon=False)
def resume(home: Home) -> WriterStatus:
    """Resume the writer. It also reads the sessions that ended during the pause. Raises UnavailableError."""
    return _pause(home, is_paused=False)


def _pause(home: Home, *, is_paused: bool) -> WriterStatus:
    return _apply(home, {"writer.paused": is_paused} if has_writer(home.settings) else {})


@operation("writer-off", writes=True, owners=True, daemon=False, command="writer set")
def end(home: Home) -> WriterStatus:
    """Remove the writer. Raises UnavailableError."""
    return _apply(home, {MODEL: NONE, "writer.paused": False, extract.SINCE: ""})


def _apply(home: Home, new_values: dict[str, Any]) -> WriterStatus:
    settings = home.settings
    for key, value in new_values.items():
        try:
            write_setting(settings.config, key, check(key, value))
        except OSError as error:
            raise UnavailableError(
                f"cannot write {settings.config}: {error.strerror}",
                hint="make it writable, or set NACRE_HOME; in the environment, NACRE_MODELS_DEFAULT sets the model",
            ) from error
        settings = settings.having(key, value)
    return status_writer(replace(home, settings=settings))


# -- Configured models -----------------------------------------------------------------------------


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


@frozen
class Offer:
    """A configured model and the tasks that use it.

    ``credential``: where its key comes from, or empty. ``problem``: why it cannot answer.
    """

    name: str
    label: str
    tasks: tuple[Task, ...]
    capabilities: Capabilities
    credential: str = ""
    needs_key: bool = False
    problem: NacreError | None = None


@frozen
class Trial:
    """The result of a test call, with its duration in ``seconds``.

    ``cost``: millionths of a US dollar, or ``None`` if unknown.
    """

    name: str
    model: str
    answer: str
    seconds: float
    tokens: Tokens
    cost: int | None
    is_by_subscription: bool = False


def uses(home: Home) -> dict[Task, str]:
    """Return each task's model, as ``provider:model`` or ``none``."""
    return {task: name_for(home, task) for task in Task if task is not Task.TEST}


@operation("models", daemon=False)
def offers(home: Home) -> list[Offer]:
    """Return the configured models without duplicates, in the order of their tasks."""
    tasks: dict[str, list[Task]] = {}
    for task, name in uses(home).items():
        if name != NONE:
            tasks.setdefault(name, []).append(task)
    default = home.settings.text("models.default")
    if default not in ("", NONE):
        tasks.setdefault(llm_providers.full_name(default), [])
    return [_offer(home.settings, name, tuple(own)) for name, own in tasks.items()]


@operation("models-test", takes_long=True)
def try_model(
    home: Home,
    name: Annotated[str, bounds("provider:model; default: models.default.")] = "",
) -> Trial:
    """Ask a model one short question.

    Raises InvalidInputError if no model is set, ModelUnavailableError, ModelRefusedError, and
    UnusableAnswerError if the answer does not follow the schema.
    """
    settings = home.settings.having("models.default", name) if name else home.settings
    model = model_for(replace(home, settings=settings), Task.TEST, background=False)
    if model is None:
        raise InvalidInputError(
            "no model is set",
            hint="nacre config set models.default, or nacre writer models --test provider:model",
        )
    try:
        began = time.perf_counter()
        completion = model.complete(_PROMPT)
        seconds = time.perf_counter() - began
        answer = read(completion, _Metal, model.name)
    finally:
        model.close()
    if has_writer(home.settings) and model.name == name_for(home, Task.EXTRACTION):
        with suppress(NacreError):  # the answer is already paid for
            home.sessions.ask_again()
    price, is_by = model.capabilities.price, is_by_subscription(home.settings, model.name)
    cost = (
        0 if is_by else llm_providers.as_counted(completion.tokens.cost(price)) if price else None
    )
    return Trial(
        model.name, completion.model, answer.metal, seconds, completion.tokens, cost, is_by
    )


def _offer(settings: Settings, name: str, tasks: tuple[Task, ...]) -> Offer:
    try:
        target, able = llm_providers.describe(settings, name)
    except ModelRefusedError as error:
        return Offer(name, name.partition(":")[0], tasks, Capabilities(), problem=error)
    credential = target.credential
    return Offer(
        name,
        target.provider.label,
        tasks,
        able,
        f"{credential.origin} ({credential.masked})" if credential else "",
        target.provider.needs_key,
        llm_providers.obstacle(settings, target),
    )


# -- Displayed settings, with credentials masked ---------------------------------------------------


_SECRET_NAMES = re.compile(
    r"(?i)(?:^|[_-])(?:api[_-]?key|secret|token|password|credentials?|authorization)$"
)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_FORMS = {str: "text", int: "whole", float: "number", bool: "switch"}
_TOOL_SETTINGS = ("ingest.exclude_tools", "writer.exclude_tools")
_MARKER = re.compile(r"\[REDACTED:[a-z0-9-]+\]")


def _hidden(redactor: Redactor, name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _hidden(redactor, str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(redactor, name, item) for item in value]
    if not isinstance(value, str) or not value:
        return value
    if _SECRET_NAMES.search(name) or (name == "key" and not _VARIABLE.fullmatch(value)):
        return mask(value)
    clean = redactor.clean(value)
    return mask(value) if _MARKER.fullmatch(clean) else clean


@frozen
class SettingView:
    """A setting with its value, origin and possible values.

    API keys in the value are masked as ``sk-…abcd``. ``origin``: ``default``, the config file, or
    the environment variable that overrides it. ``form``: ``text``, ``number``, ``whole`` (a whole
    number), ``switch``, ``list`` or ``table``.
    """

    key: str
    value: Any
    origin: str
    variable: str
    default: Any
    summary: str
    form: str
    choices: tuple[str, ...] = ()


@operation("config")
def list_settings(settings: Settings) -> list[SettingView]:
    """Return every setting with its value and origin."""
    return [_view(settings, setting.key) for setting in KEYS]


@operation("config-get")
def get_setting(settings: Settings, key: Key) -> SettingView:
    """Return one setting. Raises InvalidSettingsError."""
    return _view(settings, key)


@operation("config-set", writes=True, owners=True)
def set_setting(
    settings: Settings,
    key: Key,
    value: Annotated[Any, bounds("Text, a number, true or false; lists and tables as in TOML.")],
) -> SettingView:
    """Write one setting to the config file. Raises InvalidSettingsError, UnusableStoreError."""
    tools = list(registry.tools())
    for name in check(key, value) if key in _TOOL_SETTINGS else ():
        if name not in tools:
            raise InvalidSettingsError(
                f"there is no tool {name!r}", hint=f"known tools: {', '.join(tools)}"
            )
    before = _before(settings, key)
    write_setting(settings.config, key, value)
    return _view(_reload(before), key)


@operation("config-unset", writes=True, owners=True)
def unset_setting(settings: Settings, key: Key) -> SettingView | None:
    """Remove one setting from the config file, so that its default applies.

    Return None for an unknown setting. Raises InvalidSettingsError, UnusableStoreError.
    """
    before = _before(settings, key)
    unwrite_setting(settings.config, key)
    now = _reload(before)
    return _view(now, key) if key in now.values else None


def _before(settings: Settings, key: str) -> Settings:
    try:
        return load_settings(settings.home, settings.environ)
    except InvalidSettingsError:
        return load_settings(settings.home, settings.environ, mending=key)


def _reload(before: Settings) -> Settings:
    now = load_settings(before.home, before.environ)
    for key, value in extract.start_setting(before, now, utc_now()).items():
        write_setting(now.config, key, value)
    return now


def _view(settings: Settings, key: str) -> SettingView:
    setting = setting_of(key)
    form = _FORMS.get(setting.type) or ("list" if setting.type == list[str] else "table")
    return SettingView(
        key,
        _hidden(Redactor(*settings.redaction), "", settings[key]),
        settings.values[key].origin,
        setting.variable,
        setting.default,
        setting.summary,
        form,
        CHOICES.get(key, ()),
    )
