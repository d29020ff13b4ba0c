"""The edges of a repository: calls, imports and inheritance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nacre.code.facts import INNER_KINDS, MODULE, Call, Facts
from nacre.code.resolution.calls import Calls
from nacre.code.resolution.index import Index, Module, Node
from nacre.code.resolution.names import Names


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge, with the line of its first occurrence. A file is the node with the definition ``MODULE``."""

    rel: str
    source: Node
    target: Node
    line: int


@dataclass(frozen=True, slots=True)
class Foreign:
    """An import from outside the repository, as written."""

    file: int
    module: str
    line: int


class Resolution:
    """The edges between the files of one repository. ``texts`` are manifests by path."""

    def __init__(self, files: Sequence[tuple[str, Facts]], texts: Mapping[str, str]) -> None:
        self.index = Index(files, texts)
        self._names = Names(self.index)
        self._calls = Calls(self.index, self._names)

    def of(self, file: int, calls: Iterable[Call]) -> Iterator[Edge | Foreign]:
        """The edges that begin in a file, each once. The caller passes the calls: nothing else needs them in memory."""
        self._names.trim()
        self._calls.trim()
        seen: set[tuple[str, Node, Node]] = set()
        for one in (*self._imports(file), *self._bases(file), *self._called(file, calls)):
            if isinstance(one, Foreign):
                yield one
            elif (key := (one.rel, one.source, one.target)) not in seen and one.source != one.target:
                seen.add(key)
                yield one

    def _imports(self, file: int) -> Iterator[Edge | Foreign]:
        outside: dict[str, int] = {}
        for one in self.index.facts[file].imports:
            if not one.module:
                continue
            module, taken = self._names.import_target(file, one)
            if module.is_outside:
                outside.setdefault(one.module, one.line)
            reached = dict.fromkeys(taken.files if isinstance(taken, Module) else ())
            if isinstance(taken, tuple) and self._names.modules(file).sees_members:
                reached = {taken[0]: None}  # a class of a package, not all of it
            else:
                reached |= dict.fromkeys(module.files)
            for target in reached:
                yield Edge("imports", (file, MODULE), (target, MODULE), one.line)
        yield from (Foreign(file, module, line) for module, line in outside.items())

    def _bases(self, file: int) -> Iterator[Edge]:
        facts = self.index.facts[file]
        for base in facts.bases:
            owner = facts.definitions[base.owner]
            place = self.index.qualified[file].get(owner.qualified)
            source = (file, place) if place is not None else self._names.type_named(file, owner.parent, owner.qualified)
            target = self._names.type_named(file, owner.parent, base.name)
            if source and target:
                yield Edge("inherits", source, target, owner.line)

    def _called(self, file: int, calls: Iterable[Call]) -> Iterator[Edge]:
        for call in calls:
            found = self._calls.resolve(file, call)
            if found:
                yield Edge("calls", self._source(file, call.scope), found, call.line)

    def _source(self, file: int, scope: int) -> Node:
        """The symbol that contains a call; of several with one name the first."""
        definitions = self.index.facts[file].definitions
        while scope != MODULE and definitions[scope].kind in INNER_KINDS:
            scope = definitions[scope].parent
        return (file, self.index.qualified[file][definitions[scope].qualified] if scope != MODULE else MODULE)
