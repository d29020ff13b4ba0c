"""What the owner configured for a channel, beside what its platform needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nacre.errors import NacreError, SettingsInvalid
from nacre.gateway.admission import Rules, identities
from nacre.gateway.channels.channel import Channel
from nacre.gateway.channels.registry import options_of
from nacre.settings import Settings, load_settings
from nacre.values.gateway.message import Chat, ChatType

_CHOICES = {
    "groups": ("mention", "all", "off"),
    "hears": ("paired", "all"),
    "memories": ("owner", "all", "none"),
}


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """``hours`` of silence end a conversation; the other fields are as the options of the same names."""

    rules: Rules
    memories: str = "owner"
    model: str = ""
    tools: tuple[str, ...] = ()
    folder: Path | None = None
    instructions: str = ""
    hours: float = 4.0

    @classmethod
    def of(cls, settings: Settings, name: str) -> ChannelOptions:
        """Those of a channel. Raises SettingsInvalid, NotFound, Unavailable."""
        _, values = options_of(settings, name)
        for key, choices in _CHOICES.items():
            if values[key] not in choices:
                hint = f"one of: {', '.join(choices)}"
                raise SettingsInvalid(f"gateway.channels.{name}.{key} cannot be {values[key]!r}", hint=hint)
        folder = Path(values["folder"]).expanduser() if values["folder"] else None
        if values["tools"] and (folder is None or not folder.is_dir()):
            hint = f'[gateway.channels.{name}] folder = "…", where the agent may use them'
            raise SettingsInvalid(f"gateway.channels.{name}: tools need a folder that is there", hint=hint)
        rules = Rules(
            name, owner_in(settings), frozenset(map(str, values["allow"])),
            values["groups"], values["hears"],
        )  # fmt: skip
        return cls(
            rules, values["memories"], values["model"], tuple(values["tools"]), folder,
            values["instructions"] or settings.text("gateway.instructions"),
            values["session_hours"] or settings.number("gateway.session_hours"),
        )  # fmt: skip

    def sees_memories(self, chat: Chat, speakers: Iterable[bool]) -> bool:
        """Whether an answer may draw on the owner's memories: everybody in the chat reads it. ``speakers`` says of each
        message that is answered whether it is the owner's."""
        if self.memories == "owner":
            return chat.kind is ChatType.DIRECT and all(speakers)
        return self.memories == "all"


@dataclass(frozen=True, slots=True)
class Open:
    """A channel that is open, and what the owner configured for it."""

    channel: Channel
    options: ChannelOptions


class LiveRules:
    """The rules of a channel with the owner's identities as the config file has them now: who was paired as the owner
    need not wait until the gateway is started anew."""

    def __init__(self, settings: Settings, rules: Rules) -> None:
        self._settings = settings
        self._rules = rules
        self._stamp = _stamp(settings.config)

    def __call__(self) -> Rules:
        """As they are now; those from before where the file cannot be read."""
        stamp = _stamp(self._settings.config)
        if stamp != self._stamp:
            with suppress(NacreError):
                known = owner_in(load_settings(self._settings.home, self._settings.environ))
                self._rules, self._stamp = replace(self._rules, identities=known), stamp
        return self._rules


def _stamp(path: Path) -> tuple[int, int]:
    with suppress(OSError):
        seen = path.stat()
        return seen.st_mtime_ns, seen.st_size
    return 0, 0


def owner_in(settings: Settings) -> frozenset[str]:
    """The owner's identities, spelt with the names of the channels that are configured."""
    channels: Mapping[str, Mapping[str, Any]] = settings["gateway.channels"]
    kinds = [(name, str(own.get("kind", name))) for name, own in channels.items()]
    return identities(kinds, settings.texts("owner.identities"))
