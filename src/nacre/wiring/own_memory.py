"""Hosts' own memories: turned off by the hosts' own settings, and given back as they were; what others set stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from nacre.hosts.host import Target
from nacre.hosts.pieces import Piece, SettingPiece
from nacre.values.wiring import HostSetting, OwnMemory, WiringWish
from nacre.wiring.record import Wired

ISOLATED, RESTORED, CONFLICT = "isolated", "restored", "conflict"

_ISOLATED = "the host neither loads nor writes it, and nacre imports what is written there all the same"
_RESTORED = "the host loads and writes it as before"
_UNWRITTEN = "its settings could not be changed: the host loads and writes it as before"
_AGAIN = "nacre init --host {host} --own-memory keep leaves it so; --own-memory isolate after that turns it off again"


class OwnMemories:
    """The settings of a plan. ``set`` are those that change, ``given_back`` those that become what they were."""

    def __init__(self, wired: Wired) -> None:
        self._wired = wired
        self._before = {wish.place: wish for wish in wired.wishes}
        self._conflicts: dict[str, str] = {}
        self._unwritten: set[str] = set()
        self._of_target: tuple[list[HostSetting], list[HostSetting]] = [], []
        self.set: list[HostSetting] = []
        self.given_back: list[HostSetting] = []

    def spared(self, path: Path, words: str, wish: WiringWish, target: Target, *, is_put: bool) -> Target:
        """What may be done in a file that holds ``words``: all but what would change what somebody set since."""
        pieces: list[Piece] = []
        self._of_target = [], []
        for piece in target.pieces:
            if isinstance(piece, SettingPiece):
                pieces += (self._put if is_put else self._dropped)(path, words, wish, piece)
            else:
                pieces.append(piece)
        return replace(target, pieces=tuple(pieces))

    def settle(self) -> None:
        """The target that was spared last is changed as it says."""
        self.set += self._of_target[0]
        self.given_back += self._of_target[1]

    def fail(self, wish: WiringWish, target: Target) -> None:
        """A target cannot be changed."""
        if any(isinstance(piece, SettingPiece) for piece in target.pieces):
            self._unwritten.add(wish.host)

    def states(self, wishes: tuple[WiringWish, ...], *, is_removal: bool) -> Iterator[OwnMemory]:
        """How it will stand with the hosts' own memories."""
        for wish in wishes:
            before = self._before.get(wish.place)
            if wish.isolates and not is_removal and wish.host in self._conflicts:
                told = f"it was turned on again in {self._conflicts[wish.host]}, and stays so"
                yield OwnMemory(wish.host, CONFLICT, told, _AGAIN.format(host=wish.host))
            elif wish.isolates and not is_removal and wish.host in self._unwritten:
                yield unwritten(wish.host)
            elif wish.isolates and not is_removal:
                yield OwnMemory(wish.host, ISOLATED, _ISOLATED)
            elif before and before.isolates:
                yield OwnMemory(wish.host, RESTORED, _RESTORED)

    def _put(self, path: Path, words: str, wish: WiringWish, piece: SettingPiece) -> Iterator[Piece]:
        found, recorded = piece.found(words), self._recorded(path, piece)
        before = self._before.get(wish.place)
        if found == piece.value:
            if recorded is not None:  # where nothing is, the owner had turned it off before
                yield replace(piece, before=_decoded(recorded))
        elif recorded is not None and before and before.isolates:
            self._conflicts[wish.host] = f"{path} ({_name(piece)})"
        else:
            self._of_target[0].append(HostSetting(wish.host, path, _name(piece), _encoded(found)))
            yield replace(piece, before=found)

    def _dropped(self, path: Path, words: str, wish: WiringWish, piece: SettingPiece) -> Iterator[Piece]:
        recorded = self._recorded(path, piece)
        if recorded is None:
            return
        self._of_target[1].append(HostSetting(wish.host, path, _name(piece)))
        if piece.found(words) == piece.value:
            yield replace(piece, before=_decoded(recorded))

    def _recorded(self, path: Path, piece: SettingPiece) -> str | None:
        """What a setting was before nacre, as JSON; ``None`` where nacre did not change it."""
        return self._wired.settings.get(str(path), {}).get(_name(piece))


def unwritten(host: str) -> OwnMemory:
    """What is told of a host whose settings could not be changed."""
    return OwnMemory(host, CONFLICT, _UNWRITTEN, f"nacre init --host {host} --own-memory isolate, once they can be")


def recorded(wired: Wired, put: tuple[HostSetting, ...], dropped: tuple[HostSetting, ...] = ()) -> Wired:
    """The record with settings that change, and without those that are given back."""
    settings = {path: dict(found) for path, found in wired.settings.items()}
    for one in dropped:
        settings.get(str(one.path), {}).pop(one.name, None)
    for one in put:
        settings.setdefault(str(one.path), {})[one.name] = one.before
    return replace(wired, settings={path: found for path, found in settings.items() if found})


def _name(piece: SettingPiece) -> str:
    return ".".join(piece.path)


def _encoded(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()


def _decoded(value: str) -> Any:
    return msgspec.json.decode(value) if value else None
