"""Set up a language model: what is to change, whether the model answers, and writing it down.

Nothing is written before the model was tried: it is tried with settings as they would be.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nacre.errors import (
    AnswerUnusable,
    CredentialsUnusable,
    EmbedderUnavailable,
    InvalidInput,
    ModelRefused,
    NacreError,
    Unavailable,
    UnexpectedService,
)
from nacre.extraction.beginning import begins
from nacre.extraction.coverage import SINCE
from nacre.home.home import Home
from nacre.known_settings import check
from nacre.llm.credentials import logins
from nacre.llm.credentials.keys import credential_for, mask, own_variable
from nacre.llm.credentials.methods import BEARER, Method, method_of, methods
from nacre.llm.providers import is_built_in, provider_of, providers
from nacre.llm.registry import describe
from nacre.platform.ids import utc_now
from nacre.settings import Settings, Value, load_settings, write_setting
from nacre.setup import offers
from nacre.setup.credentials import keep
from nacre.setup.writer import TOKENS_A_DAY, named, too_few
from nacre.spending.budget import DAILY, TOKENS, is_by_subscription, unpriced
from nacre.spending.embedding_consent import told_of
from nacre.spending.models import NONE
from nacre.values.model_calls import Task

ANSWERED, UNUSABLE, UNREACHABLE, REFUSED, SKIPPED = "answered", "unusable", "unreachable", "refused", "skipped"
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
        "models.default": wish.model, "models.auth": wish.auth, "embedding.model": wish.embedding,
        "models.background": wish.background, DAILY: wish.daily_budget, TOKENS: wish.tokens_per_day,
        "models.providers": _providers(settings, wish),
    }  # fmt: skip
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
    return {key: value for key, value in checked.items() if value != settings[key] or _is_overridden(settings, key)}


def check_bound(settings: Settings, wish: Wish) -> None:
    """Raises InvalidInput where a model would work in the background that a subscription pays, and it is not said what
    it may take, or what is said holds no call of the writer.
    """
    after = wished(settings, wish)
    name = after.text("models.default")
    is_asked = wish.background or (wish.model and after.flag("models.background"))
    if is_asked and not after.whole(TOKENS) and is_by_subscription(after, name):
        raise InvalidInput(f"{name} is paid by subscription: say what it may take", hint="--tokens-per-day 100000")
    if is_asked or wish.tokens_per_day is not None:
        holds_none = too_few(after, named(after), after.whole(TOKENS))
        if holds_none:
            raise InvalidInput(holds_none, hint=f"--tokens-per-day {TOKENS_A_DAY}")


def wished(settings: Settings, wish: Wish) -> Settings:
    """The settings as they would be. Raises SettingsInvalid, ModelRefused."""
    values = {key: Value(value, str(settings.config)) for key, value in changes(settings, wish).items()}
    after = replace(settings, values={**settings.values, **values})
    if not wish.secret:
        return after
    return replace(after, environ={**settings.environ, _variable_of(wish): wish.secret})


def try_model(home: Home, wish: Wish) -> Tried:
    """Ask the model that is wished for one short question.

    Where something answers that is no such model, it is refused. Raises SettingsInvalid.
    """
    began = time.perf_counter()
    try:
        trial = offers.try_model(replace(home, settings=_soon(wished(home.settings, wish))))
    except NacreError as error:
        kinds = {AnswerUnusable: UNUSABLE, UnexpectedService: REFUSED, Unavailable: UNREACHABLE}
        outcome = next((kinds[kind] for kind in type(error).__mro__ if kind in kinds), REFUSED)
        seconds = time.perf_counter() - began
        return Tried(outcome, seconds, _as_given(wish, error.message), _as_given(wish, error.hint or ""))
    return Tried(ANSWERED, trial.seconds)


def _soon(settings: Settings) -> Settings:
    """Settings with which a model has half a minute to answer: somebody waits."""
    seconds = min(_TEST_SECONDS, settings.number("models.timeout_seconds"))
    return replace(settings, values={**settings.values, "models.timeout_seconds": Value(seconds, "setup")})


def _as_given(wish: Wish, text: str) -> str:
    """What is told of an address that is not set yet, and of a key that is not kept yet: it is tried from a variable of
    nacre's own."""
    if wish.base_url:
        text = text.replace(f"models.providers.{wish.provider}.base_url", "--base-url")
    if not wish.secret:
        return text
    variable = _variable_of(wish)
    another = "run it again with another key"
    return text.replace(f"export {variable}=NEW_KEY", another).replace(f"in ${variable}", "that was given")


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
    notes = [f"${_variable(key)} is set and goes before the file" for key in changed if _is_overridden(settings, key)]
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
            own.setdefault("key", re.sub(r"\W", "_", name).upper() + "_API_KEY")  # which says that it needs one
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
    if wish.secret or not provider_of(after, wish.provider).needs_key or credential_for(after, wish.provider):
        return False
    method = methods().get(wish.auth or "")
    if method and method.login and method.kind == BEARER:
        found = logins.path_of(settings, method.login)
        more = logins.elsewhere(settings, method.login)
        hint = f"run {method.login} and sign in{f' ({more})' if more else ''}, or choose another --auth"
        raise ModelRefused(f"there is no login in {found}", hint=hint)
    return True


def _is_overridden(settings: Settings, key: str) -> bool:
    return settings.values[key].origin.startswith("$")


def _variable(key: str) -> str:
    return "NACRE_" + key.replace(".", "_").upper()
