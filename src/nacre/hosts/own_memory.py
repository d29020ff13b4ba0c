"""The record of hosts whose own memory is turned off: ``hosts/own-memory.json``.

Hooks read it, so this module loads no other library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from nacre.base import files
from nacre.base.frozen import frozen


@frozen
class Isolated:
    """The hosts whose own memory is turned off.

    ``read`` contains hashes of the notes that were last imported from each location.
    """

    hosts: tuple[str, ...]
    read: Mapping[str, str]


def load(home: Path) -> Isolated:
    """Return a home's record of isolated hosts, or an empty one if it cannot be read."""
    try:
        record = json.loads(_path(home).read_bytes())
        return Isolated(tuple(record["hosts"]), dict(record["read"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Isolated((), {})


def save(home: Path, state: Isolated) -> None:
    """Save a home's record of isolated hosts."""
    files.make_folder(_path(home).parent)
    record = {"hosts": state.hosts, "read": dict(state.read)}
    files.write_file(_path(home), json.dumps(record))


def isolate(home: Path, hosts: Sequence[str]) -> None:
    """Record the hosts whose own memory is turned off. Delete the record if there are none."""
    before = load(home)
    if not hosts:
        _path(home).unlink(missing_ok=True)
    elif tuple(hosts) != before.hosts:
        save(home, Isolated(tuple(hosts), before.read))


def _path(home: Path) -> Path:
    return home / "hosts" / "own-memory.json"
