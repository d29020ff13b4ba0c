"""Which known projects a text names: by a name that can mean nothing else, a path below a root, a remote."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from nacre.embed import minilm
from nacre.home.home import Home
from nacre.retrieval.question.prompts import is_common_name
from nacre.text.passages import words
from nacre.vault.layout import normalise_remote

_LEAST_CHARACTERS = 3
_LEAST_PARTS = 2
_PATH = re.compile(r"(?<![\w.:/\\~-])(?:~[/\\]|/|[A-Za-z]:[/\\])[^\s\"'`<>()\[\],;:*?]+")
_ADDRESS = re.compile(r"[^\s\"'`<>()\[\],;]+")
_SORTS = "project|repo|repository|codebase|Projekt|projet|proyecto|progetto|projeto"
_BESIDE = "项目|仓库|代码库|プロジェクト|リポジトリ"

Named = tuple[str, str]
"""A project's slug, and what in the text names it; empty where that may mean something else."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A name of a project: where a text holds it, and where it can mean nothing else."""

    held: re.Pattern[str]
    sure: re.Pattern[str]
    name: str
    slug: str


@dataclass(frozen=True)
class ProjectNames:
    """Whatever resolves to the known projects, as a text may spell it."""

    home: Home

    def named(self, text: str) -> dict[str, str]:
        """The projects that a text names, each with what names it; that is empty where it may mean something else."""
        found: dict[str, str] = {}
        for slug, said in (*self._by_remote(text), *self._by_path(text), *self._by_name(text)):
            found[slug] = found.get(slug) or said
        return found

    def _by_name(self, text: str) -> Iterator[Named]:
        for one in self._names:
            if one.held.search(text):
                is_sure = one.sure.search(text) and not self._is_spoken_of_elsewhere(one)
                yield one.slug, f"names {one.name}" if is_sure else ""

    def _is_spoken_of_elsewhere(self, name: _Name) -> bool:
        """Whether memories of another project hold a name: that of a library, of a service that others call."""
        if name not in self._spoken_of:
            others = (text for project, text in self._filed if project != name.slug)
            self._spoken_of[name] = any(map(name.held.search, others))
        return self._spoken_of[name]

    def _by_path(self, text: str) -> Iterator[Named]:
        user_home = _plain_path(str(self.home.settings.user_home))
        for said in _PATH.findall(text):
            path = _plain_path(user_home + said[1:] if said.startswith("~") else said)
            above = [one for one in self._roots if f"{path}/".startswith(f"{one[0]}/") and one[0] != user_home]
            nearest = max((root for root, _ in above), key=len, default=None)
            yield from ((slug, f"names a path of it, below {root}") for root, slug in above if root == nearest)

    def _by_remote(self, text: str) -> Iterator[Named]:
        for said in _ADDRESS.findall(text):
            if "/" in said and "." in said:
                remote = normalise_remote(said.rstrip("."))
                known = [one for one in self._remotes if f"{remote}/".startswith(f"{one[0]}/")]
                yield from ((slug, f"names its repository, {url}") for url, slug in known)

    @cached_property
    def _keys(self) -> dict[str, list[tuple[str, str]]]:
        keys: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for key, value, slug in self.home.files.project_keys():
            keys[key].append((value, slug))
        return keys

    @cached_property
    def _names(self) -> list[_Name]:
        found = self._keys.get("alias", [])
        return [_name(name, slug) for name, slug in found if len(name) >= _LEAST_CHARACTERS and _tells(name)]

    @cached_property
    def _roots(self) -> list[tuple[str, str]]:
        found = [(_plain_path(root), slug) for root, slug in self._keys.get("root", [])]
        return [one for one in found if one[0].count("/") >= _LEAST_PARTS]

    @cached_property
    def _remotes(self) -> list[tuple[str, str]]:
        return [(normalise_remote(remote), slug) for remote, slug in self._keys.get("remote", [])]

    @cached_property
    def _spoken_of(self) -> dict[_Name, bool]:
        return {}

    @cached_property
    def _filed(self) -> list[tuple[str, str]]:
        return [
            (one.project, f"{one.subject}\n{one.content}")
            for one in self.home.memories.everything()
            if one.project and not one.inbox
        ]


def _tells(name: str) -> bool:
    """Whether a name is more than words of everyday work."""
    return bool(words(name)) and not is_common_name(name)


def _name(name: str, slug: str) -> _Name:
    """A name as whole words, no part of a longer name or of a path.

    One that is a word of English, too ("honey", "phoenix"), is sure only where it is marked as a name.
    """
    whole = rf"(?<![\w/\\.@~-]){re.escape(name)}(?![\w-]|[./\\]\w)"
    held = re.compile(whole, re.IGNORECASE)
    if name.lower() not in minilm.vocabulary():
        return _Name(held, held, name, slug)
    beside = rf"{whole}(?:\s+(?:{_SORTS})\b|\s*(?:{_BESIDE}))|\b(?:{_SORTS})\s+{whole}|(?:{_BESIDE})\s*{whole}"
    return _Name(held, re.compile(rf"`{re.escape(name)}`|{beside}", re.IGNORECASE), name, slug)


def _plain_path(path: str) -> str:
    return path.replace("\\", "/").rstrip("/.")
