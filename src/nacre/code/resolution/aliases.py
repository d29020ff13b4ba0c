"""Aliases of TypeScript and JavaScript: ``paths`` and ``baseUrl`` of ``tsconfig.json`` and ``jsconfig.json``.

Resolved as TypeScript documents it (handbook, "Modules: reference"): the nearest configuration counts, ``extends`` is
followed, and of several patterns the one with the longest text before its ``*``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nacre.hosts import json_text

_DEPTH = 8
_NAMES = ("tsconfig.json", "jsconfig.json")


@dataclass(frozen=True, slots=True)
class Aliases:
    """What a configuration says of names of modules. ``place`` is the folder that the targets of ``paths`` are relative
    to; ``base`` is that of ``baseUrl``, if it is set."""

    place: str = ""
    paths: Mapping[str, tuple[str, ...]] | None = None
    base: str | None = None

    def places(self, module: str) -> Iterator[str]:
        """Where a module may lie, the likeliest first; paths without an extension."""
        for pattern in sorted(self.paths or {}, key=_rank):
            before, star, after = pattern.partition("*")
            fits = module.startswith(before) and module.endswith(after) and len(module) >= len(before + after)
            if fits if star else module == pattern:
                matched = module[len(before) : len(module) - len(after)]
                for target in (self.paths or {})[pattern]:
                    yield posixpath.normpath(posixpath.join(self.place, target.replace("*", matched, 1)))
                break
        if self.base is not None:
            yield posixpath.normpath(posixpath.join(self.base, module))


def _rank(pattern: str) -> tuple[bool, int, str]:
    before, star, _ = pattern.partition("*")
    return bool(star), -len(before), pattern


class AliasTable:
    """The aliases of each folder. ``texts`` are configurations by path."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._known: dict[str, Aliases] = {}

    def of(self, folder: str) -> Aliases:
        """The aliases that hold in a folder."""
        if folder not in self._known:
            path = next((one for name in _NAMES if (one := posixpath.join(folder, name)) in self._texts), None)
            if path:
                self._known[folder] = self._read(path, _DEPTH)
            else:
                self._known[folder] = self.of(posixpath.dirname(folder)) if folder else Aliases()
        return self._known[folder]

    def _read(self, path: str, depth: int) -> Aliases:
        """A configuration with those that it extends; if it sets no paths, those of the projects that it refers to."""
        config = _object(self._texts.get(path, ""))
        if not depth:
            return Aliases()
        place = posixpath.dirname(path)
        extended = config.get("extends")
        found = Aliases()
        for one in extended if isinstance(extended, list) else [extended]:
            found = _over(self._read(self._named(place, one), depth - 1), found)
        found = _over(_own(config, place, found.base), found)
        if found.paths is None and isinstance(config.get("references"), list):
            named = [one.get("path") for one in config["references"] if isinstance(one, dict)]
            referred = (self._read(self._named(place, one), depth - 1) for one in named)
            return next((one for one in referred if one.paths is not None), found)
        return found

    def _named(self, place: str, name: object) -> str:
        """The path of a configuration that another one names; what lies in a package is not of the repository."""
        if not isinstance(name, str) or not name.startswith("."):
            return ""
        path = posixpath.normpath(posixpath.join(place, name))
        tried = (path, f"{path}.json", posixpath.join(path, _NAMES[0]))
        return next((one for one in tried if one in self._texts), "")


def _over(one: Aliases, other: Aliases) -> Aliases:
    """What one configuration sets, and else another."""
    base = other.base if one.base is None else one.base
    return Aliases(other.place, other.paths, base) if one.paths is None else Aliases(one.place, one.paths, base)


def _own(config: Mapping[str, Any], place: str, base: str | None) -> Aliases:
    """What a configuration sets itself; ``base`` is the one that it extends."""
    options = config.get("compilerOptions")
    options = options if isinstance(options, dict) else {}
    if isinstance(options.get("baseUrl"), str):
        base = posixpath.normpath(posixpath.join(place, options["baseUrl"]))
    paths = options.get("paths")
    if not isinstance(paths, dict):
        return Aliases(base=base)
    listed = {str(name): tuple(map(str, to)) for name, to in paths.items() if isinstance(to, list)}
    return Aliases(place if base is None else base, listed, base)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json_text.read(text)
    except json_text.Unparsable:
        return {}
    return found if isinstance(found, dict) else {}
