"""The record of what is wired: ``hosts/wiring.json`` in the home. It makes it possible to leave files as they were."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from nacre.hosts.registry import HOSTS
from nacre.platform import json_values, private_files
from nacre.settings import Settings
from nacre.values.wiring import WiringWish

_VERSION = 1


@dataclass(frozen=True)
class WrittenFile:
    """A file that nacre wrote into. ``before`` and ``after`` are hashes; ``before`` is empty where there was none.

    ``backup`` is a copy of it as it was, ``older`` are those from before others changed it. What is not in ``made`` of
    the folders around it was there before.
    """

    after: str
    before: str = ""
    backup: str = ""
    made: tuple[str, ...] = ()
    older: tuple[str, ...] = ()

    @property
    def copies(self) -> tuple[Path, ...]:
        """All copies of it."""
        return tuple(Path(one) for one in (*self.older, self.backup) if one)


@dataclass(frozen=True)
class Wired:
    """The wirings of this home, and the files, by where they really lie.

    ``servers`` are the command lines of MCP servers that nacre wrote into a file: one of another is the owner's.
    ``settings`` are those of hosts that nacre changed, by file: what each was before, as JSON, empty where there was
    none.
    ``nacre`` and ``program`` say which nacre wrote last, and where it lay.
    """

    wishes: tuple[WiringWish, ...] = ()
    files: dict[str, WrittenFile] = field(default_factory=dict)
    servers: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    nacre: str = ""
    program: str = ""
    version: int = _VERSION


def hooks_start_daemon(settings: Settings) -> bool:
    """Whether agents are wired to this home, and may start its daemon where none runs."""
    return bool(load(settings.home).wishes) and settings.flag("daemon.enabled")


def load(home: Path) -> Wired:
    """The record; an empty one where there is none that can be read: then what nacre put into files tells."""
    try:
        found: Wired = json_values.decode(_path(home).read_bytes(), Wired)
        return replace(found, wishes=tuple(wish for wish in found.wishes if wish.host in HOSTS))
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return Wired()


def save(home: Path, wired: Wired) -> None:
    """Write the record; without a wiring and a file there is none."""
    if wired.wishes or wired.files or wired.settings:
        private_files.make_folder(_path(home).parent)
        private_files.write_file(_path(home), msgspec.json.format(msgspec.json.encode(wired, enc_hook=str), indent=1))
        return
    _path(home).unlink(missing_ok=True)
    if _path(home).parent.is_dir() and not any(_path(home).parent.iterdir()):
        _path(home).parent.rmdir()


def digest(content: bytes | None) -> str:
    """The hash of a file's content; empty for no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _path(home: Path) -> Path:
    return home / "hosts" / "wiring.json"
