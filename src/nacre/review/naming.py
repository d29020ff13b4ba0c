"""Find project names in a text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from nacre.base.frozen import frozen
from nacre.base.text import words
from nacre.home.home import Home
from nacre.llm import minilm
from nacre.recall.question import is_common_name
from nacre.vault.files import normalise_remote

# -- Project names in a text --------------------------------------------------


_MIN_NAME_CHARACTERS = 3
_MIN_ROOT_DEPTH = 2
_PATH = re.compile(r"(?<![\w.:/\\~-])(?:~[/\\]|/|[A-Za-z]:[/\\])[^\s\"'`<>()\[\],;:*?]+")
_ADDRESS = re.compile(r"[^\s\"'`<>()\[\],;]+")
_KIND_WORDS = "project|repo|repository|codebase|Projekt|projet|proyecto|progetto|projeto"
_KIND_WORDS_CJK = "项目|仓库|代码库|プロジェクト|リポジトリ"

Named = tuple[str, str]
"""A project's slug, and the evidence for its mention, which is empty if ambiguous."""


@frozen
class _Name:
    """A project's name and its regexes. ``certain`` does not match ambiguous mentions."""

    anywhere: re.Pattern[str]
    certain: re.Pattern[str]
    name: str
    slug: str


@dataclass(frozen=True)
class ProjectNames:
    """Finder of known projects that a text mentions. A mention is a name, path or remote."""

    home: Home

    def find_in(self, text: str) -> dict[str, str]:
        """Return the slugs of the projects that a text mentions, with the evidence.

        The evidence is an empty string if the mention is ambiguous.
        """
        reasons: dict[str, str] = {}
        for slug, reason in (*self._by_remote(text), *self._by_path(text), *self._by_name(text)):
            reasons[slug] = reasons.get(slug) or reason
        return reasons

    def _by_name(self, text: str) -> Iterator[Named]:
        for name in self._names:
            if name.anywhere.search(text):
                is_sure = name.certain.search(text) and not self._is_spoken_of_elsewhere(name)
                yield name.slug, f"names {name.name}" if is_sure else ""

    def _is_spoken_of_elsewhere(self, name: _Name) -> bool:
        if name not in self._spoken_of:
            texts = (text for project, text in self._filed if project != name.slug)
            self._spoken_of[name] = any(map(name.anywhere.search, texts))
        return self._spoken_of[name]

    def _by_path(self, text: str) -> Iterator[Named]:
        user_home = _plain_path(str(self.home.settings.user_home))
        for match in _PATH.findall(text):
            path = _plain_path(user_home + match[1:] if match.startswith("~") else match)
            above = [
                root
                for root in self._roots
                if f"{path}/".startswith(f"{root[0]}/") and root[0] != user_home
            ]
            nearest = max((root for root, _ in above), key=len, default=None)
            yield from (
                (slug, f"names one of its paths, below {root}")
                for root, slug in above
                if root == nearest
            )

    def _by_remote(self, text: str) -> Iterator[Named]:
        for address in _ADDRESS.findall(text):
            if "/" in address and "." in address:
                remote = normalise_remote(address.rstrip("."))
                matches = [pair for pair in self._remotes if f"{remote}/".startswith(f"{pair[0]}/")]
                yield from ((slug, f"names its repository, {url}") for url, slug in matches)

    @cached_property
    def _keys(self) -> dict[str, list[tuple[str, str]]]:
        keys: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for key, value, slug in self.home.files.project_keys():
            keys[key].append((value, slug))
        return keys

    @cached_property
    def _names(self) -> list[_Name]:
        aliases = self._keys.get("alias", [])
        return [
            _name(name, slug)
            for name, slug in aliases
            if len(name) >= _MIN_NAME_CHARACTERS and _is_distinctive(name)
        ]

    @cached_property
    def _roots(self) -> list[tuple[str, str]]:
        roots = [(_plain_path(root), slug) for root, slug in self._keys.get("root", [])]
        return [root for root in roots if root[0].count("/") >= _MIN_ROOT_DEPTH]

    @cached_property
    def _remotes(self) -> list[tuple[str, str]]:
        return [(normalise_remote(remote), slug) for remote, slug in self._keys.get("remote", [])]

    @cached_property
    def _spoken_of(self) -> dict[_Name, bool]:
        return {}

    @cached_property
    def _filed(self) -> list[tuple[str, str]]:
        return [
            (memory.project, f"{memory.subject}\n{memory.content}")
            for memory in self.home.memories.everything()
            if memory.project and not memory.inbox
        ]


def _is_distinctive(name: str) -> bool:
    return bool(words(name)) and not is_common_name(name)


def _name(name: str, slug: str) -> _Name:
    """Return patterns that match a name as whole words, outside longer names and paths.

    An English word ("honey", "phoenix") counts as unambiguous only if marked as a name.
    """
    whole = rf"(?<![\w/\\.@~-]){re.escape(name)}(?![\w-]|[./\\]\w)"
    anywhere = re.compile(whole, re.IGNORECASE)
    if name.lower() not in minilm.vocabulary():
        return _Name(anywhere, anywhere, name, slug)
    after = rf"{whole}(?:\s+(?:{_KIND_WORDS})\b|\s*(?:{_KIND_WORDS_CJK}))"
    before = rf"\b(?:{_KIND_WORDS})\s+{whole}|(?:{_KIND_WORDS_CJK})\s*{whole}"
    return _Name(
        anywhere, re.compile(rf"`{re.escape(name)}`|{after}|{before}", re.IGNORECASE), name, slug
    )


def _plain_path(path: str) -> str:
    return path.replace("\\", "/").rstrip("/.")
