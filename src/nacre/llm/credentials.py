"""Providers of models, from ``providers.toml`` and the settings, and their credentials."""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nacre.base import files as private_files
from nacre.base.frozen import frozen
from nacre.base.ids import Clock, utc_now
from nacre.base.plain import mapping, objects_in, string
from nacre.errors import ModelRefusedError, UnavailableError, UnusableCredentialsError
from nacre.settings import Settings

COMMANDS = {
    "claude-cli": "claude",
    "codex-cli": "codex",
    "gemini-cli": "gemini",
    "opencode-cli": "opencode",
}
"""Names of agents' own commands, keyed by API format."""

APIS = ("anthropic", "openai", "chat", *COMMANDS, "embeddings")
_ANSWERS = ("schema", "json", "text")
_OWN_KEYS = ("api", "base_url", "key", "api_key", "label", "answers", "free", "plain_http")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_YES = ("yes", "true", "1", "on")


@frozen
class Provider:
    """A provider of models.

    ``api``: the protocol of its calls. ``variables``: environment variables that can contain the
    key. ``api_key``: the key from the settings. ``subscription``: True if calls are not billed one
    by one. ``beside``: the number of tokens that an agent's command adds to each prompt. ``keys``:
    environment variables that would bypass the subscription. ``answers``: the answer format that
    all models support, if known.
    """

    name: str
    label: str
    api: str
    base_url: str = ""
    variables: Sequence[str] = ()
    needs_key: bool = True
    answers: str = ""
    free: bool = False
    subscription: bool = False
    beside: int = 0
    keys: Sequence[str] = ()
    api_key: str = field(default="", repr=False)

    @property
    def is_here(self) -> bool:
        """True if the provider runs on this machine."""
        return is_local(self.base_url)


def providers(settings: Settings) -> dict[str, Provider]:
    """Return all providers by name, ending with those from the settings."""
    return {
        name: provider_of(settings, name) for name in (*_built_in(), *settings["models.providers"])
    }


def provider_of(settings: Settings, name: str) -> Provider:
    """Return a provider by name, with the user's changes in ``models.providers``.

    Raises ModelRefusedError if the provider is unknown, or if prompts would be sent unencrypted to
    another machine.
    """
    own: Mapping[str, str] | None = settings["models.providers"].get(name)
    provider = _built_in().get(name)
    if own is not None:
        return _with_own(provider or Provider(name, name, "chat", needs_key="key" in own), own)
    if provider is None:
        names = ", ".join((*_built_in(), *settings["models.providers"]))
        raise ModelRefusedError(
            f"there is no model provider {name!r}", hint=f"providers: {names}, or none"
        )
    return provider


def read_table(name: str) -> dict[str, Any]:
    """Read a TOML file of this package, with decimal numbers."""
    return tomllib.loads((files(__package__) / name).read_text("utf-8"), parse_float=Decimal)


@cache
def _built_in() -> Mapping[str, Provider]:
    return {name: Provider(name, **table) for name, table in read_table("providers.toml").items()}


def _with_own(provider: Provider, own: Mapping[str, str]) -> Provider:
    where = f"models.providers.{provider.name}"
    if unknown := next((key for key in own if key not in _OWN_KEYS), None):
        raise ModelRefusedError(
            f"{where}: unknown key {unknown!r}", hint=f"keys: {', '.join(_OWN_KEYS)}"
        )
    for key, choices in (("api", APIS), ("answers", _ANSWERS)):
        if own.get(key, choices[0]) not in choices:
            raise ModelRefusedError(
                f"{where}.{key} cannot be {own[key]!r}", hint=f"one of: {', '.join(choices)}"
            )
    if "key" in own and not _VARIABLE.fullmatch(
        own["key"]
    ):  # the value is not shown, because it might be a key
        raise ModelRefusedError(
            f"{where}.key must be the name of an environment variable",
            hint="set key to the variable's name",
        )
    plain: dict[str, Any] = {
        name: own[name]
        for name in ("api", "base_url", "label", "answers", "api_key")
        if name in own
    }
    if "key" in own:
        plain |= {"variables": (own["key"],), "needs_key": True}
    changed = replace(provider, **plain)
    is_free = changed.free or (changed.is_here and not (changed.needs_key or changed.api_key))
    changed = replace(changed, free=own["free"].lower() in _YES if "free" in own else is_free)
    if changed.api not in COMMANDS:
        _check_address(where, changed, own.get("plain_http", "").lower() in _YES)
    return changed


def _check_address(where: str, provider: Provider, may_be_plain: bool) -> None:
    try:
        address = urlsplit(provider.base_url)
        host = address.hostname
    except ValueError:
        host = None
    if not host or address.scheme not in ("http", "https"):
        raise ModelRefusedError(
            f"{where}.base_url is not an address", hint='base_url = "https://host/v1"'
        )
    if address.scheme == "http" and not (may_be_plain or provider.is_here):
        raise ModelRefusedError(
            f"{where} would send prompts and keys unencrypted to {host}",
            hint='use https; on your own network, add plain_http = "yes"',
        )


def is_local(url: str) -> bool:
    """Return True if the host in an address is this machine."""
    with suppress(ValueError):  # the address is invalid, or the host is a name
        host = urlsplit(url).hostname
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    return False


# -- Small secret files ----------------------------------------------------------------------------
# Only regular files of limited size are read, with a warning if other users can read them.


_MAX_BYTES = 256_000


def read_small(path: Path) -> tuple[str, str]:
    """Return a file's text, and a warning if other users can read the file.

    A missing file counts as empty. Raises UnusableCredentialsError if the file is unreadable or
    larger than 256 KB.
    """
    try:
        with private_files.open_to_read(os.path.realpath(path)) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise UnusableCredentialsError(
                f"{path} is too large to hold credentials", hint="check its contents"
            )
        is_open = os.name == "posix" and mode & 0o077
        warning = f"{path} can be read by others ({mode:o})" if is_open else ""
        return data.decode("utf-8"), warning
    except (FileNotFoundError, NotADirectoryError):
        return "", ""
    except UnicodeDecodeError:
        raise UnusableCredentialsError(f"{path} is not text", hint="check its contents") from None
    except OSError as error:
        raise UnusableCredentialsError(
            f"cannot read {path}: {error.strerror}", hint="check its permissions"
        ) from error


# -- Keys in ``credentials.toml`` ------------------------------------------------------------------
# Only this user can read this file in the home.


NAME = "credentials.toml"
_TABLE = "keys"
_HEAD = "# Keys of nacre. Never in backups, exports or git: nacre writer keys\n"


def path_of(settings: Settings) -> Path:
    """Return the path of the home's ``credentials.toml``, which might not exist."""
    return settings.home / NAME


def read(settings: Settings) -> dict[str, str]:
    """Return the keys in ``credentials.toml`` by provider."""
    text, _ = read_small(path_of(settings))
    try:
        keys = mapping(tomllib.loads(text), _TABLE)
    except (ValueError, RecursionError):  # the error message might quote the key
        raise UnusableCredentialsError(
            f"{path_of(settings)} is not valid TOML", hint="correct or remove it"
        ) from None
    return {name: value for name, value in keys.items() if isinstance(value, str) and value}


def keep(settings: Settings, provider: str, secret: str) -> None:
    """Store a provider's key in ``credentials.toml``.

    Raises UnusableCredentialsError if the file is damaged, and UnavailableError if it cannot be
    written.
    """
    _write(settings, {**read(settings), provider: secret})


def drop(settings: Settings, provider: str) -> bool:
    """Delete a provider's key from ``credentials.toml``. Return False if there was none.

    Raises UnusableCredentialsError if the file is damaged, and UnavailableError if it cannot be
    written.
    """
    keys = read(settings)
    if provider not in keys:
        return False
    del keys[provider]
    _write(settings, keys)
    return True


def _write(settings: Settings, keys: dict[str, str]) -> None:
    import tomlkit  # noqa: PLC0415 - 15 ms that only writing needs

    path = path_of(settings)
    try:
        if not keys:
            path.unlink(missing_ok=True)
            return
        private_files.make_folder(path.parent)
        private_files.write_file(path, _HEAD + tomlkit.dumps({_TABLE: keys}))
    except OSError as error:
        hint = "set the key in the environment instead; nacre writer keys shows the variable"
        raise UnavailableError(f"cannot write {path}: {error.strerror}", hint=hint) from error


# -- Sign-in methods from ``methods.toml`` ---------------------------------------------------------


API_KEY, BEARER = "api-key", "bearer"


@frozen
class Method:
    """A way to sign in. ``methods.toml`` explains the fields."""

    name: str
    provider: str
    label: str
    kind: str
    variables: Sequence[str] = ()
    login: str = ""
    begins: str = ""
    through: str = ""
    renew: str = ""


@cache
def methods() -> dict[str, Method]:
    """Return all sign-in methods by name."""
    return {name: Method(name, **table) for name, table in read_table("methods.toml").items()}


def method_of(provider: str, secret: str) -> Method | None:
    """Return the provider's sign-in method for this kind of secret, or else its API key method."""
    own = [method for method in methods().values() if method.provider == provider]
    marked = [method for method in own if method.begins and secret.startswith(method.begins)]
    return next(iter([*marked, *(method for method in own if method.kind == API_KEY)]), None)


# -- Logins of agent tools -------------------------------------------------------------------------
# nacre reads these files and never changes them.


_MILLISECONDS = 1000


@frozen
class Login:
    """A login stored by an agent's command. ``is_renewable``: True if the command can renew it
    without the user.
    """

    path: Path
    kind: str
    secret: str = field(repr=False)
    expires: datetime | None = None
    warning: str = ""
    is_renewable: bool = False


def login_file(settings: Settings, tool: str) -> Path:
    """Return the path of the file in which an agent's command stores its login."""
    variable, folder, name = _PLACES[tool]
    return Path(settings.environ.get(variable) or settings.user_home / folder) / name


def read_login(settings: Settings, tool: str) -> list[Login]:
    """Return the readable logins that an agent's command has stored."""
    if tool not in _READERS:
        return []
    path = login_file(settings, tool)
    text, warning = read_small(path)
    if not text:
        return []
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):  # the error message might quote the token
        raise UnusableCredentialsError(
            f"{path} is not valid JSON", hint=f"sign in to {tool} again"
        ) from None
    return [replace(login, warning=warning) for login in _READERS[tool](path, mapping(record))]


def is_signed_in(settings: Settings, tool: str) -> bool:
    """Return True if an agent's command seems to have a valid login other than an API key."""
    if any(settings.environ.get(name) for name in _TOKENS.get(tool, ())):
        return True
    if tool not in _READERS:
        return login_file(settings, tool).is_file()
    with suppress(UnusableCredentialsError):
        return any(
            login.is_renewable or login.expires is None or login.expires > utc_now()
            for login in read_login(settings, tool)
            if login.kind == BEARER
        )
    return False


def may_be_in_keychain(settings: Settings, tool: str) -> bool:
    """Return True if an agent's command might keep its login in the macOS keychain."""
    return (
        settings.platform == "darwin"
        and tool in _IN_KEYCHAIN
        and not login_file(settings, tool).exists()
    )


def elsewhere(settings: Settings, tool: str) -> str:
    """Return a note on where else an agent's command might keep its login, or ""."""
    if tool == "claude":
        return (
            "it is in the macOS keychain, which nacre does not read"
            if settings.platform == "darwin"
            else ""
        )
    return "it may be in the system's keyring, which nacre does not read"


def _claude(path: Path, record: Mapping[str, Any]) -> list[Login]:
    oauth = mapping(record, "claudeAiOauth")
    if not (token := string(oauth, "accessToken")):
        return []
    ends, is_renewable = oauth.get("expiresAt"), bool(string(oauth, "refreshToken"))
    expires = _moment(ends / _MILLISECONDS) if isinstance(ends, int | float) else None
    return [Login(path, BEARER, token, expires, is_renewable=is_renewable)]


def _codex(path: Path, record: Mapping[str, Any]) -> list[Login]:
    logins = []
    if key := string(record, "OPENAI_API_KEY"):
        logins.append(Login(path, API_KEY, key))
    tokens = mapping(record, "tokens")
    if token := string(tokens, "access_token"):
        is_renewable = bool(string(tokens, "refresh_token"))
        logins.append(Login(path, BEARER, token, _end_of(token), is_renewable=is_renewable))
    return logins


def _opencode(path: Path, record: Mapping[str, Any]) -> list[Login]:
    logins = []
    for entry in objects_in(list(record.values())):
        is_key = entry.get("type") == "api"
        secret = string(entry, "key" if is_key else "access") or ""
        kind = API_KEY if is_key else BEARER
        logins.append(Login(path, kind, secret, is_renewable=not is_key))
    return logins


def _end_of(token: str) -> datetime | None:
    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return _moment(float(claims["exp"]))
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


_PLACES = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
    "codex": ("CODEX_HOME", ".codex", "auth.json"),
    "gemini": ("GEMINI_CLI_HOME", "", ".gemini/oauth_creds.json"),
    "opencode": ("XDG_DATA_HOME", ".local/share", "opencode/auth.json"),
}
_TOKENS = {
    "claude": ("CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"),
    "codex": ("CODEX_ACCESS_TOKEN",),
}
"""Environment variables that can contain a login's token."""
_IN_KEYCHAIN = ("claude", "codex")

_READERS: dict[str, Callable[[Path, Mapping[str, Any]], list[Login]]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
}


# -- Lookup of credentials -------------------------------------------------------------------------
# Searched in this order: ``models.providers``, the environment, ``credentials.toml``, and other tools'
# logins. ``models.auth`` restricts the search to one method.


_SHOWN_CHARACTERS = 4
_LONG_CHARACTERS = 16


def mask(secret: str) -> str:
    """Return a secret in a form that can be shown, such as ``sk-…abcd``."""
    head = "sk-" if secret.startswith("sk-") else ""
    return (
        f"{head}…{secret[-_SHOWN_CHARACTERS:]}" if len(secret) >= _LONG_CHARACTERS else f"{head}…"
    )


@frozen
class Credential:
    """A secret for signing in.

    ``repr`` omits the secret. ``kind``: ``api-key``, or ``bearer`` for a login's token. ``origin``:
    the source, such as ``$OPENAI_API_KEY``.
    """

    kind: str
    secret: str = field(repr=False)
    origin: str

    @property
    def masked(self) -> str:
        """The secret in a form that can be shown."""
        return mask(self.secret)


@frozen
class Place:
    """A source that nacre searched for a credential. ``problem``: why the credential cannot be
    used. ``warning``: why the source is not safe. ``hint``: what the user can do.
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
        """True if there is a usable credential here."""
        return self.credential is not None and not self.problem


def credential_for(
    settings: Settings, provider: str, *, clock: Clock = utc_now
) -> Credential | None:
    """Return the credential for a provider, if any.

    Raises ModelRefusedError if the provider is unknown, or if there are only expired or unreadable
    credentials.
    """
    place = place_for(settings, provider, clock=clock)
    return place.credential if place else None


def place_for(settings: Settings, provider: str, *, clock: Clock = utc_now) -> Place | None:
    """Return the source of the credential that :func:`credential_for` returns."""
    broken: Place | None = None
    for place in look(settings, provider, clock=clock):
        if fits(settings, place, provider):
            if place.is_usable:
                return place
            broken = broken or (place if place.problem else None)
    if broken:
        raise ModelRefusedError(
            f"{provider}: {broken.problem}", hint=broken.hint or "nacre writer keys"
        )
    return None


def fits(settings: Settings, place: Place, provider: str) -> bool:
    """Return True if the setting ``models.auth`` allows a credential from this source."""
    chosen = methods().get(settings.text("models.auth"))
    return chosen is None or chosen.provider != provider or place.method in ("", chosen.name)


def look(settings: Settings, provider: str, *, clock: Clock = utc_now) -> Iterator[Place]:
    """Yield the sources that can contain a provider's credential, reading each only when needed."""
    if written := provider_of(settings, provider).api_key.strip():
        origin = settings.values["models.providers"].origin
        yield _place(
            provider,
            written,
            f"models.providers.{provider}.api_key, {origin}",
            warning=f"the key of {provider} is written in {origin}",
            hint=f"nacre writer keys {provider} --remove removes it; nacre writer keys {provider} stores it",
        )
    for name in variables_for(settings, provider):
        by_name = next((method for method in methods().values() if name in method.variables), None)
        yield _place(provider, settings.environ.get(name, "").strip(), f"${name}", method=by_name)
    if not provider_of(settings, provider).needs_key:
        return
    yield _in_file(settings, provider)
    for method in methods().values():
        if method.provider == provider and method.login:
            yield _in_login(settings, method, clock())


def variables_for(settings: Settings, provider: str) -> list[str]:
    """Return the environment variables that can contain a provider's key, by precedence."""
    of_methods = [
        name
        for method in methods().values()
        if method.provider == provider
        for name in method.variables
    ]
    usual = provider_of(settings, provider).variables
    chosen = usual if "key" in settings["models.providers"].get(provider, {}) else ()
    own = "NACRE_" + re.sub(r"\W", "_", provider).upper() + "_API_KEY"
    return list(dict.fromkeys((own, *chosen, *of_methods, *usual)))


def _in_file(settings: Settings, provider: str) -> Place:
    path = path_of(settings)
    try:
        return _place(provider, read(settings).get(provider, ""), str(path))
    except UnusableCredentialsError as error:
        return Place(str(path), problem=error.message, hint=error.hint or "")


def _in_login(settings: Settings, method: Method, now: datetime) -> Place:
    path = login_file(settings, method.login)
    try:
        logins = read_login(settings, method.login)
    except UnusableCredentialsError as error:
        return Place(str(path), method.name, problem=error.message, hint=error.hint or "")
    login = next((login for login in logins if login.kind == method.kind), None)
    if login is None:
        return Place(str(path), method.name, hint=elsewhere(settings, method.login))
    has_ended = login.expires is not None and login.expires <= now
    problem = (
        f"the login in {path} has expired ({login.expires:%Y-%m-%d %H:%M} UTC)" if has_ended else ""
    )
    hint = method.renew if has_ended else f"chmod 600 {path}" if login.warning else ""
    credential = Credential(login.kind, login.secret.strip(), str(path))
    return Place(str(path), method.name, credential, login.expires, problem, login.warning, hint)


def _place(
    provider: str,
    secret: str,
    origin: str,
    *,
    method: Method | None = None,
    warning: str = "",
    hint: str = "",
) -> Place:
    if not secret:
        return Place(origin, method.name if method else "")
    method = method or method_of(provider, secret)
    credential = Credential(method.kind if method else API_KEY, secret, origin)
    return Place(origin, method.name if method else "", credential, warning=warning, hint=hint)
