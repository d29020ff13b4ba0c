"""Where the key of a provider comes from.

In this order: ``models.providers`` of the config, the environment, the keyring or ``credentials.toml`` (what the owner
gave nacre), the files in which other tools keep their own logins. ``models.auth`` narrows that to one method.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from nacre.errors import CredentialsUnusable, ModelRefused, Unavailable
from nacre.llm.credentials import key_file, keyrings, logins
from nacre.llm.credentials.methods import API_KEY, Method, method_of, methods
from nacre.llm.providers import provider_of
from nacre.platform.ids import Clock, utc_now
from nacre.settings import Settings

_SHOWN = 4
_LONG = 16


def mask(secret: str) -> str:
    """A secret as it may be shown: ``sk-…abcd``, and of a short one nothing."""
    head = "sk-" if secret.startswith("sk-") else ""
    return f"{head}…{secret[-_SHOWN:]}" if len(secret) >= _LONG else f"{head}…"


@dataclass(frozen=True, slots=True)
class Credential:
    """What nacre signs in with. ``kind`` is ``api-key``, or ``bearer`` for a token of a login.

    ``origin`` says in words where it was found: ``$OPENAI_API_KEY``. The secret is not part of what is printed.
    """

    kind: str
    secret: str = field(repr=False)
    origin: str

    @property
    def masked(self) -> str:
        """The secret as it may be shown."""
        return mask(self.secret)


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere a credential was looked for. ``credential`` is what was found, whether it can be used or not.

    ``problem`` says why it cannot, ``warning`` why it should not lie there so; ``hint`` what to do about either.
    """

    origin: str
    method: str = ""
    credential: Credential | None = None
    expires: datetime | None = None
    problem: str = ""
    warning: str = ""
    hint: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether nacre can sign in with what was found."""
        return self.credential is not None and not self.problem


def credential_for(settings: Settings, provider: str, *, clock: Clock = utc_now) -> Credential | None:
    """The credential for a provider, by its name in ``provider:model``; ``None`` where none is found.

    Raises ModelRefused where one was found that has expired, or where a keyring or file that may hold one cannot be
    read, and nothing else is found; and where no provider has that name.
    """
    place = place_for(settings, provider, clock=clock)
    return place.credential if place else None


def place_for(settings: Settings, provider: str, *, clock: Clock = utc_now) -> Place | None:
    """The place whose credential :func:`credential_for` takes. Raises what that raises."""
    broken: Place | None = None
    for place in look(settings, provider, clock=clock):
        if place.is_usable and fits(settings, place, provider):
            return place
        if place.problem and broken is None and fits(settings, place, provider):
            broken = place
    if broken:
        raise ModelRefused(f"{provider}: {broken.problem}", hint=broken.hint or "nacre auth status")
    return None


def fits(settings: Settings, place: Place, provider: str) -> bool:
    """Whether a place is of the method that is set for its provider, if one is."""
    wanted = methods().get(settings.text("models.auth"))
    return wanted is None or wanted.provider != provider or place.method in ("", wanted.name)


def look(settings: Settings, provider: str, *, clock: Clock = utc_now) -> Iterator[Place]:
    """Every place that is looked into, in order, with what is there. Lazy: what is not asked for is not opened."""
    yield from _in_config(settings, provider)
    yield from _in_environment(settings, provider)
    if not provider_of(settings, provider).needs_key:
        return
    yield _in_keyring(provider)
    yield _in_file(settings, provider)
    for method in methods().values():
        if method.provider == provider and method.login:
            yield _in_login(settings, method, clock())


def variables_for(settings: Settings, provider: str) -> list[str]:
    """The environment variables that may hold a provider's key, the first one first. Raises ModelRefused."""
    of_methods = [name for method in methods().values() if method.provider == provider for name in method.variables]
    usual = provider_of(settings, provider).variables
    chosen = usual if "key" in settings["models.providers"].get(provider, {}) else ()
    return list(dict.fromkeys((own_variable(provider), *chosen, *of_methods, *usual)))


def own_variable(provider: str) -> str:
    """The variable that holds a provider's key for nacre alone, and goes before all others."""
    return "NACRE_" + re.sub(r"\W", "_", provider).upper() + "_API_KEY"


def _in_config(settings: Settings, provider: str) -> Iterator[Place]:
    written = provider_of(settings, provider).api_key.strip()
    if not written:
        return
    origin = settings.values["models.providers"].origin
    yield _found(
        provider, written, f"models.providers.{provider}.api_key, {origin}",
        warning=f"the key of {provider} is written in {origin}",
        hint=f"nacre auth remove {provider} takes it out, nacre setup --provider {provider} keeps it better",
    )  # fmt: skip


def _in_environment(settings: Settings, provider: str) -> Iterator[Place]:
    for name in variables_for(settings, provider):
        by_name = next((one for one in methods().values() if name in one.variables), None)
        yield _found(provider, settings.environ.get(name, "").strip(), f"${name}", method=by_name)


def _in_keyring(provider: str) -> Place:
    try:
        if why := keyrings.why_not():
            return Place(f"keyring: {why}")
        return _found(provider, keyrings.read(provider) or "", "keyring")
    except Unavailable as error:
        return Place("keyring", problem=error.message, hint=error.hint or "")


def _in_file(settings: Settings, provider: str) -> Place:
    path = key_file.path_of(settings)
    try:
        return _found(provider, key_file.read(settings).get(provider, ""), str(path))
    except CredentialsUnusable as error:
        return Place(str(path), problem=error.message, hint=error.hint or "")


def _in_login(settings: Settings, method: Method, now: datetime) -> Place:
    path = logins.path_of(settings, method.login)
    try:
        found = [one for one in logins.read(settings, method.login) if one.kind == method.kind]
    except CredentialsUnusable as error:
        return Place(str(path), method.name, problem=error.message, hint=error.hint or "")
    if not found:
        return Place(str(path), method.name, hint=logins.elsewhere(settings, method.login))
    login = found[0]
    has_ended = login.expires is not None and login.expires <= now
    problem = f"the login in {path} has expired ({login.expires:%Y-%m-%d %H:%M} UTC)" if has_ended else ""
    hint = method.renew if has_ended else f"chmod 600 {path}" if login.warning else ""
    credential = Credential(login.kind, login.secret.strip(), str(path))
    return Place(str(path), method.name, credential, login.expires, problem, login.warning, hint)


def _found(
    provider: str, secret: str, origin: str, *, method: Method | None = None, warning: str = "", hint: str = ""
) -> Place:
    """A place with a secret whose kind is the one of the method that its name, else its form, stands for."""
    if not secret:
        return Place(origin, method.name if method else "")
    method = method or method_of(provider, secret)
    credential = Credential(method.kind if method else API_KEY, secret, origin)
    return Place(origin, method.name if method else "", credential, warning=warning, hint=hint)
