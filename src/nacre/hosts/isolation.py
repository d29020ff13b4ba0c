"""Which hosts' own memories are turned off, and how far nacre has read them: ``hosts/own-memory.json`` in the home."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nacre.platform import private_files


@dataclass(frozen=True, slots=True)
class Isolated:
    """The hosts whose own memory is turned off. ``read`` has the hash of all notes of a place when they were read."""

    hosts: tuple[str, ...]
    read: Mapping[str, str]


def load(home: Path) -> Isolated:
    """What is turned off in a home; nothing where no record can be read."""
    try:
        found = json.loads(_path(home).read_bytes())
        hosts = tuple(one for one in found["hosts"] if isinstance(one, str))
        return Isolated(hosts, {key: value for key, value in found["read"].items() if isinstance(value, str)})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Isolated((), {})


def save(home: Path, state: Isolated) -> None:
    """Write the record."""
    private_files.make_folder(_path(home).parent)
    private_files.write_file(_path(home), json.dumps({"hosts": state.hosts, "read": dict(state.read)}, indent=1))


def isolate(home: Path, hosts: Sequence[str]) -> None:
    """From now on the own memories of these hosts are turned off, and of no others; without one there is no record."""
    before = load(home)
    if not hosts:
        _path(home).unlink(missing_ok=True)
    elif tuple(hosts) != before.hosts:
        save(home, Isolated(tuple(hosts), before.read))


def _path(home: Path) -> Path:
    return home / "hosts" / "own-memory.json"
