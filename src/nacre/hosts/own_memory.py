"""The record of hosts whose own memory is turned off: ``hosts/own-memory.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.base import files as private_files
from nacre.base.frozen import frozen
from nacre.base.lazy import Module

if TYPE_CHECKING:
    import tomlkit
else:
    tomlkit = Module("tomlkit")

# -- The record ------------------------------------------------------------------------------------


@frozen
class Isolated:
    """The hosts whose own memory is turned off.

    ``read``: hashes of the notes that were last imported from each memory location.
    """

    hosts: tuple[str, ...]
    read: Mapping[str, str]


def load(home: Path) -> Isolated:
    """Read the record in a home. If it is missing or cannot be read, return an empty one."""
    try:
        record = json.loads(_path(home).read_bytes())
        hosts = tuple(host for host in record["hosts"] if isinstance(host, str))
        return Isolated(
            hosts, {key: value for key, value in record["read"].items() if isinstance(value, str)}
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Isolated((), {})


def save(home: Path, state: Isolated) -> None:
    """Write the record."""
    private_files.make_folder(_path(home).parent)
    private_files.write_file(
        _path(home), json.dumps({"hosts": state.hosts, "read": dict(state.read)}, indent=1)
    )


def isolate(home: Path, hosts: Sequence[str]) -> None:
    """Set the hosts whose own memory is turned off. If there are none, delete the record."""
    before = load(home)
    if not hosts:
        _path(home).unlink(missing_ok=True)
    elif tuple(hosts) != before.hosts:
        save(home, Isolated(tuple(hosts), before.read))


def _path(home: Path) -> Path:
    return home / "hosts" / "own-memory.json"
