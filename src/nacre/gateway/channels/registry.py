"""Find kinds of channels by name, and open those that the owner configured. Third parties use the same door."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from nacre.errors import NotFound, SettingsInvalid, Unavailable
from nacre.gateway.channels.channel import Channel, ChannelKind, ChannelSetup, Option
from nacre.platform.distribution import install_hint
from nacre.platform.installed import is_installed
from nacre.platform.lazy import load
from nacre.settings import Settings

GROUP = "nacre.channels"
"""The entry-point group in which a third party registers ``<kind> = "<module>:<kind record>"``."""

BUILTINS: dict[str, str] = {
    "telegram": "nacre.gateway.channels.telegram:KIND",
    "discord": "nacre.gateway.channels.discord:KIND",
    "slack": "nacre.gateway.channels.slack:KIND",
    "whatsapp": "nacre.gateway.channels.whatsapp:KIND",
    "webhook": "nacre.gateway.channels.webhook:KIND",
}

COMMON = (
    Option("kind", "what the channel is: telegram, discord, …; by default its name"),
    Option("enabled", "false: it is not opened", default=True),
    Option("allow", "senders who need no pairing: their ids; * admits everybody", default=[]),
    Option("groups", "in groups: mention (answer where it is mentioned), all, or off", default="mention"),
    Option("hears", "what it sees of a group between answers: paired (of those let in), or all", default="paired"),
    Option(
        "memories", "whose answers draw on your memories: owner (you, in direct chats), all, or none", default="owner"
    ),
    Option("model", "who answers here (provider:model); empty takes models.chat", default=""),
    Option("tools", "tools that the agent may use here, by its own names", default=[]),
    Option("folder", "where it works while it may use tools", default=""),
    Option("instructions", "what it is told of itself here; empty takes gateway.instructions", default=""),
    Option(
        "session_hours", "hours of silence after which a conversation begins anew; 0 takes the setting", default=0.0
    ),
)
"""What every kind takes."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
_TAKEN = ("agent", "terminal")
"""Keys of conversations begin with these where no channel of that name is meant."""

_MOST_SECRET = 10_000


def kinds() -> dict[str, str | ChannelKind]:
    """All kinds by name; those of third parties are loaded only with :func:`kind_of`."""
    return {**BUILTINS, **_outside()}


def kind_of(name: str) -> ChannelKind:
    """A kind of channel. Raises NotFound, and Unavailable where it cannot be loaded or a library is missing."""
    found = kinds().get(name)
    if found is None:
        raise NotFound(f"there is no channel of the kind {name!r}", hint=f"kinds: {', '.join(kinds())}")
    kind: ChannelKind = load(found) if isinstance(found, str) else found
    for library in kind.libraries:
        if not is_installed(library):
            hint = install_hint(kind.extra) if kind.extra else f"pip install {library}"
            raise Unavailable(f"{kind.label} needs a library: {library}", hint=hint)
    return kind


def options_of(settings: Settings, name: str) -> tuple[ChannelKind, dict[str, Any]]:
    """The kind of a channel that is configured, and the values of all its options. Raises SettingsInvalid, NotFound."""
    channels: Mapping[str, Mapping[str, Any]] = settings["gateway.channels"]
    own = channels.get(name)
    if own is None:
        hint = (
            f"configured: {', '.join(channels)}" if channels else f"add [gateway.channels.{name}] to {settings.config}"
        )
        raise NotFound(f"no channel is called {name!r}", hint=hint)
    if not _NAME.fullmatch(name):
        raise SettingsInvalid(f"a channel cannot be called {name!r}", hint="lower-case letters, digits, - and _")
    if name in _TAKEN or str(own.get("kind", name)) != name in kinds():
        hint = "it would be taken for another one: identities and conversations are spelt with the channel's name"
        raise SettingsInvalid(f"a channel of this kind cannot be called {name!r}", hint=hint)
    kind = kind_of(str(own.get("kind", name)))
    known = {option.name: option for option in (*COMMON, *kind.options)}
    if unknown := next((key for key in own if key not in known), None):
        raise SettingsInvalid(f"gateway.channels.{name} has no option {unknown!r}", hint=f"options: {', '.join(known)}")
    values = {key: own.get(key, option.default) for key, option in known.items()}
    for key, option in known.items():
        if option.is_required and values[key] in (None, ""):
            raise SettingsInvalid(f"gateway.channels.{name} needs {key}: {option.summary}", hint=_example(name, option))
        if option.default is not None and not isinstance(values[key], _types(option.default)):
            raise SettingsInvalid(f"gateway.channels.{name}.{key} cannot be {values[key]!r}", hint=option.summary)
    return kind, values


def open_channel(settings: Settings, name: str, tell: Callable[[str], None]) -> Channel:
    """The channel of that name. Nothing is connected yet. Raises what :func:`options_of` raises, and Unavailable."""
    kind, values = options_of(settings, name)
    secrets = {
        option.name: resolve(settings, f"gateway.channels.{name}.{option.name}", str(values[option.name]))
        for option in kind.options
        if option.is_secret and values[option.name]
    }
    return kind.make(ChannelSetup(name, values, secrets, settings.home / "gateway" / "channels" / name, tell))


def resolve(settings: Settings, key: str, value: str) -> str:
    """What a secret is: ``env:NAME`` and ``file:PATH`` say where it is kept; anything else is the secret itself.

    Raises SettingsInvalid.
    """
    if value.startswith("env:"):
        found = settings.environ.get(value.removeprefix("env:"), "")
        hint = f"set {value.removeprefix('env:')} in the environment in which the gateway runs"
    elif value.startswith("file:"):
        path = Path(value.removeprefix("file:")).expanduser()
        hint = f"write it into {path}"
        try:
            with open(path, encoding="utf-8") as file:
                found = file.read(_MOST_SECRET).strip()
        except OSError as error:
            raise SettingsInvalid(f"{key}: cannot read {path}: {error.strerror}", hint=hint) from error
    else:
        return value
    if not found:
        raise SettingsInvalid(f"{key} is empty", hint=hint)
    return found


def _types(default: object) -> tuple[type, ...]:
    return (int, float) if isinstance(default, float) else (type(default),)


def _example(name: str, option: Option) -> str:
    value = f"env:{name.upper()}_{option.name.upper()}" if option.is_secret else "…"
    return f'[gateway.channels.{name}] {option.name} = "{value}"'


@cache
def _outside() -> dict[str, str | ChannelKind]:
    found: dict[str, str | ChannelKind] = {}
    for point in entry_points(group=GROUP):
        try:
            kind = point.load()
        except (ImportError, AttributeError, SyntaxError) as error:
            hint = "mend or uninstall the package it comes with"
            raise Unavailable(
                f"the channel {point.name!r} ({point.value}) cannot be loaded: {error}", hint=hint
            ) from error
        if not isinstance(kind, ChannelKind):
            raise Unavailable(
                f"{point.value} is not a kind of channel", hint="mend or uninstall the package it comes with"
            )
        found[point.name] = kind
    return found
