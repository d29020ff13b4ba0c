"""What nacre can sign in with: what is found where, what it was given, and taking that back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from nacre.errors import CredentialsUnusable, ModelRefused, NotFound, Unavailable
from nacre.llm.credentials import key_file, keyrings, logins
from nacre.llm.credentials.keys import Place, fits, look, variables_for
from nacre.llm.credentials.methods import BEARER, method_of, methods
from nacre.llm.providers import COMMANDS, provider_of, providers
from nacre.platform.ids import Clock, utc_now
from nacre.settings import Settings, load_settings, write_setting
from nacre.values.model_calls import Task


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
    why = keyrings.why_not()
    return SigningIn(
        settings.text("models.default"), tuple(_ways(settings, clock)), programs(settings),
        "" if why else keyrings.name(), why, str(key_file.path_of(settings)),
    )  # fmt: skip


def programs(settings: Settings) -> tuple[Program, ...]:
    """The agent tools' commands."""
    path = settings.environ.get("PATH")
    return tuple(
        Program(provider, name, (shutil.which(name, path=path) or "") if path else "")
        for provider, name in COMMANDS.items()
    )


def in_use(settings: Settings) -> set[str]:
    """The providers of the models that are set."""
    names = [settings.text("models.default"), *(settings[f"models.{task}"] for task in Task if task is not Task.TEST)]
    return {name.partition(":")[0] for name in names} - {"", "none"}


def keep(settings: Settings, provider: str, secret: str) -> str:
    """Keep a provider's key: in the keyring, or where none works in ``credentials.toml``. Returns where.

    Raises Unavailable, CredentialsUnusable where neither can be written.
    """
    try:
        keyrings.keep(provider, secret)
    except Unavailable:
        key_file.keep(settings, provider, secret)
        return str(key_file.path_of(settings))
    key_file.drop(settings, provider)
    return "keyring"


def replace_key(settings: Settings, provider: str, secret: str) -> str:
    """Keep another key of a provider; one in the config goes. Returns where it is kept.

    Raises ModelRefused for a provider that is unknown or has no keys, CredentialsUnusable for a key of another method
    than the one that is set, and what :func:`keep` raises.
    """
    if not provider_of(settings, provider).needs_key:
        raise ModelRefused(f"{provider_of(settings, provider).label} needs no key", hint="nacre models test")
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
    write_setting(settings.config, "models.providers", {**others, provider: rest} if rest else others)
    return True


def remove(settings: Settings, provider: str) -> list[str]:
    """Delete a provider's key wherever nacre keeps it; returns from where.

    Raises NotFound where there is none, ModelRefused for an unknown provider, Unavailable, CredentialsUnusable.
    """
    variables = variables_for(settings, provider)
    removed = []
    try:
        removed += ["keyring"] if keyrings.drop(provider) else []
    except Unavailable as error:
        if not keyrings.why_not():
            raise Unavailable(f"{error.message}: the key was not removed", hint=error.hint) from error
    if key_file.drop(settings, provider):
        removed.append(str(key_file.path_of(settings)))
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
        taken = next((one for one in of_methods[method.provider] if _is_taken(settings, one, method.provider)), None)
        by_program = method.through in used and settings.text("models.auth") == name
        is_used = by_program or (method.provider in used and taken is not None and taken in places)
        yield Way(name, method.provider, method.label, places, is_used)
    for name, provider in providers(settings).items():
        if name in of_methods or not (provider.needs_key or provider.api_key):
            continue
        places = tuple(look(settings, name, clock=clock))
        yield Way("", name, provider.label, places, name in used and any(place.is_usable for place in places))


def _is_taken(settings: Settings, place: Place, provider: str) -> bool:
    return place.is_usable and fits(settings, place, provider)


def expects_key(settings: Settings, provider: str) -> bool:
    """Whether a provider answers nobody without a key. Raises ModelRefused for an unknown one."""
    return provider_of(settings, provider).needs_key


def elsewhere(settings: Settings, method: str) -> str:
    """Where else a login may be, in which nacre does not look; empty where nowhere."""
    tool = methods()[method].login if method in methods() else ""
    return logins.elsewhere(settings, tool) if tool else ""
