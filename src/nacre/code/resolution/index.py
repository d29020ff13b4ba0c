"""An index of all definitions of a repository by name."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nacre.code.facts import CLASS_KINDS, INNER_KINDS, MODULE, Definition, Facts
from nacre.code.languages.table import LANGUAGES

Node = tuple[int, int]
"""A definition: the number of its file and its number in that file."""


@dataclass(frozen=True, slots=True)
class Module:
    """What an import leads to: files, and the folder in which further modules lie. Without either it is not of this
    repository."""

    files: tuple[int, ...] = ()
    place: str | None = None

    @property
    def is_outside(self) -> bool:
        """Whether it lies outside the repository."""
        return not self.files and self.place is None


OUTSIDE = Module()
Target = Node | Module


class Index:
    """The files and definitions of a repository. ``texts`` are manifests by path."""

    def __init__(self, files: Sequence[tuple[str, Facts]], texts: Mapping[str, str]) -> None:
        self.paths = [path for path, _ in files]
        self.facts = [facts for _, facts in files]
        self.texts = texts
        self.families = [LANGUAGES[facts.language].family for facts in self.facts]
        self.by_path = {path: number for number, path in enumerate(self.paths)}
        self.folders: dict[str, list[int]] = defaultdict(list)
        self.top: list[dict[str, int]] = []
        self.qualified: list[dict[str, int]] = []
        self.members: dict[tuple[str, str], dict[str, list[Node]]] = defaultdict(lambda: defaultdict(list))
        self.methods: dict[tuple[str, str], list[Node]] = defaultdict(list)
        self.functions: dict[tuple[str, str], list[Node]] = defaultdict(list)
        for number, path in enumerate(self.paths):
            self.folders[posixpath.dirname(path)].append(number)
            self._add(number)
        self.known_folders = {above for folder in self.folders for above in _above(folder)}

    def definition(self, node: Node) -> Definition:
        """The definition of a node."""
        return self.facts[node[0]].definitions[node[1]]

    def is_class(self, node: Node) -> bool:
        """Whether it has members."""
        return self.definition(node).kind in CLASS_KINDS

    def only(self, nodes: Sequence[Node], near: int) -> Node | None:
        """The only one of some nodes, else the first in the file ``near``; ``None`` if they are ambiguous."""
        return nodes[0] if len(nodes) == 1 else next((node for node in nodes if node[0] == near), None)

    def _add(self, number: int) -> None:
        family, definitions = self.families[number], self.facts[number].definitions
        top: dict[str, int] = {}
        qualified: dict[str, int] = {}
        for place, one in enumerate(definitions):
            if one.kind in INNER_KINDS or qualified.setdefault(one.qualified, place) != place:
                continue
            if one.owner:
                self.members[family, one.owner][one.name].append((number, place))
                if one.kind == "method":
                    self.methods[family, one.name].append((number, place))
            elif self._is_top(definitions, one):
                top.setdefault(one.name, place)
                if not one.hidden:
                    self.functions[family, one.name].append((number, place))
        self.top.append(top)
        self.qualified.append(qualified)

    @staticmethod
    def _is_top(definitions: Sequence[Definition], one: Definition) -> bool:
        parent = one.parent
        while parent != MODULE and definitions[parent].kind == "namespace":
            parent = definitions[parent].parent
        return parent == MODULE


def _above(folder: str) -> list[str]:
    found = [folder]
    while found[-1]:
        found.append(posixpath.dirname(found[-1]))
    return found
