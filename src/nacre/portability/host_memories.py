"""Hosts' own memories that are turned off: what is written there all the same, by a tool or a shell, is imported.

It is an agent's word, and untrusted. A file or folder is read again only when its notes changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nacre.errors import InvalidInput, NotFound
from nacre.home.home import Home
from nacre.hosts import isolation
from nacre.hosts.host import MemoryPlace
from nacre.hosts.places import Places
from nacre.hosts.registry import HOSTS
from nacre.portability.importing import carry_out, plan_import
from nacre.portability.requests import ImportOptions
from nacre.portability.sources.tree import MOST_BYTES

_MOST_NOTES = 5_000


@dataclass(frozen=True, slots=True)
class Captured:
    """What was imported from one file or folder of a host's own memory; ``problem`` where it cannot be read."""

    host: str
    path: Path
    added: int = 0
    updated: int = 0
    problem: str = ""


def capture(home: Home, hosts: Sequence[str] = ()) -> list[Captured]:
    """Import what is new in the own memories of these hosts, or of all that are turned off.

    A crash leaves the rest to the next call.
    """
    folder = home.settings.home
    state = isolation.load(folder)
    done: list[Captured] = []
    for host in hosts or state.hosts:
        for place in _places(home, host):
            notes = _digest(place.path)
            if state.read.get(str(place.path), "") == notes:
                continue
            done.append(_imported(home, host, place) if notes else Captured(host, place.path))
            state = replace(state, read={**state.read, str(place.path): notes})
            isolation.save(folder, state)
    return done


def _places(home: Home, host: str) -> Sequence[MemoryPlace]:
    settings = home.settings
    places = Places(settings.user_home, settings.home.absolute(), settings.environ, settings.platform)
    own = HOSTS[host].own_memory if host in HOSTS else None
    return own(places) if own else ()


def _imported(home: Home, host: str, place: MemoryPlace) -> Captured:
    try:
        plan = plan_import(home, ImportOptions(path=place.path, source=place.source, vectors=False))
    except (InvalidInput, NotFound) as error:
        return Captured(host, place.path, problem=error.message)
    if plan.is_empty:
        return Captured(host, place.path)
    report = carry_out(home, plan)
    return Captured(host, place.path, len(report.added), report.updated)


def _digest(path: Path) -> str:
    """The hash of all notes of a file or folder; empty where there is none."""
    found = hashlib.sha256()
    is_empty = True
    for note in _notes(path):
        try:
            content = note.read_bytes() if note.stat().st_size <= MOST_BYTES else b""
        except OSError:
            continue
        is_empty = False
        found.update(f"{note.relative_to(path)}\0{hashlib.sha256(content).hexdigest()}\0".encode("utf-8", "replace"))
    return "" if is_empty else found.hexdigest()


def _notes(path: Path) -> Iterator[Path]:
    if path.is_symlink():
        return
    if path.is_file():
        yield path
    elif path.is_dir():
        found = (one for one in path.rglob("*.md") if one.is_file() and not one.is_symlink())
        yield from sorted(one for _, one in zip(range(_MOST_NOTES), found, strict=False))
