"""Callers, importers, the memories that name a symbol, and the impact of a change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nacre.code.find import ends_alike, find_files, find_nodes, meant, node_of
from nacre.code.mentions import catch_up_mentions, is_path, key_of
from nacre.code.requests import CallersRequest, CodeRequest, ImpactRequest
from nacre.code.values import CodeAnswer, CodeLink, CodeMemory
from nacre.errors import NotFound
from nacre.home.home import Home
from nacre.memories.scan import catch_up
from nacre.storage.code.graph import FILE, Symbol

_MOST_NODES = 2_000
_MOST_CHOICES = 50
_MOST_MENTIONS = 2_000
_MOST_KEYS = 500
_ALL = ("calls", "imports", "inherits")


def callers(home: Home, asked: CallersRequest) -> CodeAnswer:
    """The callers of a symbol and their callers; for a class also callers of its methods, and its subclasses.

    Raises NotFound where no symbol has such a name.
    """
    found = find_nodes(home, asked.name, asked.project, asked.near)
    if len(found) > 1:
        return _choices(asked.name, found)
    start = _with_members(home, found[0])
    links = _reached(home, start, ("calls", "inherits"), asked.depth)
    return _answer(asked, found, links)


def importers(home: Home, asked: CodeRequest) -> CodeAnswer:
    """The files that import a file, a module or a library. Raises NotFound."""
    name = asked.name.strip()
    outside = home.code.importers(name, asked.project, asked.limit + 1)
    outside = [one for one in outside if one[0].project == asked.near] or outside
    found = find_files(home, name, asked.project, asked.near)
    if outside and not is_path(name):  # a library's name is no file that only ends so
        found = [one for one in found if one.path.removesuffix("/__init__.py").split(".")[0] == name]
    if len(found) > 1:
        return _choices(name, found)
    links = _reached(home, found, ("imports",), 1)
    links += [CodeLink("imports", node_of(one), one.line, note=module * (module != name)) for one, module in outside]
    if not links and not found:
        raise NotFound(f"no file of the code that was read imports {name!r}", hint="name a file or a module")
    return _answer(asked, found, links)


def about(home: Home, asked: CodeRequest) -> CodeAnswer:
    """The memories that name a symbol or a file. Raises NotFound."""
    found = find_nodes(home, asked.name, asked.project, asked.near)
    if len(found) > 1:
        return _choices(asked.name, found)
    memories = _memories_of(home, _with_members(home, found[0]))
    return CodeAnswer(
        asked.name, (node_of(found[0]),), memories=tuple(memories[: asked.limit]), more=len(memories) > asked.limit
    )


def impact(home: Home, asked: ImpactRequest) -> CodeAnswer:
    """What a change to a file, or a symbol of it, touches: who calls, inherits or imports it, step by step, and the
    memories that speak of any of it, those of the file first. Raises NotFound."""
    name = f"{asked.name}#{asked.symbol}" if asked.symbol else asked.name
    found = find_nodes(home, name, asked.project, asked.near)
    if len(found) > 1:
        return _choices(name, found)
    start = home.code.beside(found[0]) if found[0].kind == FILE else _with_members(home, found[0])
    links, reached = _walk(home, start, _ALL, asked.depth)
    memories = _memories_of(home, reached)
    shown = _answer(asked, found, links)
    return CodeAnswer(
        name, shown.nodes, links=shown.links, memories=tuple(memories[: asked.limit]),
        more=shown.more or len(memories) > asked.limit,
    )  # fmt: skip


def _answer(asked: CodeRequest, found: Sequence[Symbol], links: Sequence[CodeLink]) -> CodeAnswer:
    return CodeAnswer(
        asked.name, tuple(map(node_of, found)), links=tuple(links[: asked.limit]), more=len(links) > asked.limit
    )


def _choices(name: str, found: Sequence[Symbol]) -> CodeAnswer:
    return CodeAnswer(name, choices=tuple(map(node_of, found[:_MOST_CHOICES])), more=len(found) > _MOST_CHOICES)


def _with_members(home: Home, symbol: Symbol) -> list[Symbol]:
    return [symbol, *home.code.beside(symbol)] if symbol.kind != FILE else home.code.beside(symbol)


def _reached(home: Home, start: Sequence[Symbol], rels: Sequence[str], depth: int) -> list[CodeLink]:
    return _walk(home, start, rels, depth)[0]


def _walk(
    home: Home, start: Sequence[Symbol], rels: Sequence[str], depth: int
) -> tuple[list[CodeLink], list[Symbol]]:  # fmt: skip
    """What leads to some symbols, the nearest first, and all symbols on the way; what leads from one of the first to
    another is left out."""
    known = {one.row: one for one in start}
    ring = list(known)
    steps: list[tuple[int, str, int, int, int]] = []
    for away in range(1, depth + 1):
        edges = home.code.edges(ring, rels)
        fresh = [(target, rel, source, line, away) for target, rel, source, line in edges if source not in known]
        ring = list(dict.fromkeys(source for _, _, source, _, _ in fresh))[:_MOST_NODES]
        known |= home.code.of_rows(ring)
        steps += [one for one in fresh if one[2] in known]
        if not ring or len(known) >= _MOST_NODES:
            break
    links = [
        CodeLink(rel, node_of(known[source]), line, away, node_of(known[target]).id)
        for target, rel, source, line, away in sorted(
            steps, key=lambda one: (one[4], known[one[2]].project, known[one[2]].path, one[3], known[one[2]].qualified)
        )
    ]
    return links, list(known.values())


def _memories_of(home: Home, symbols: Sequence[Symbol]) -> list[CodeMemory]:
    """The memories that name any of these symbols, in their order; never those of other projects."""
    catch_up(home)
    catch_up_mentions(home)
    by_key: dict[str, list[Symbol]] = defaultdict(list)
    for one in symbols:
        by_key[key_of(one.path if one.kind == FILE else one.qualified)].append(one)
    named: dict[str, dict[str, Symbol]] = defaultdict(dict)
    project = symbols[0].project if symbols else ""
    for mention, memory in home.code_mentions.ending(list(by_key)[:_MOST_KEYS], project, _MOST_MENTIONS):
        for one in by_key[mention.key]:
            if _is_meant(home, mention.written, one):
                named[memory].setdefault(mention.written, one)
    order = {one.row: place for place, one in enumerate(symbols)}
    held = {one.id: one for one in home.memories.rows_of(list(named)).values()}
    found = sorted(
        (min(order[one.row] for one in names.values()), memory, names)
        for memory, names in named.items()
        if memory in held
    )
    return [
        CodeMemory(held[memory], tuple(names), tuple(dict.fromkeys(node_of(one).id for one in names.values())))
        for _, memory, names in sorted(found, key=lambda one: one[:2])
    ]


def _is_meant(home: Home, written: str, symbol: Symbol) -> bool:
    """Whether a name refers to this symbol and to no other of its project."""
    if symbol.kind == FILE:
        if not ends_alike(symbol.path, written):
            return False
        like = home.code.files_named(written.rsplit("/", 1)[-1], symbol.project)
        return sum(ends_alike(one.path, written) for one in like) == 1
    like = meant(home.code.named(symbol.qualified.rsplit(".", 1)[-1], symbol.project), written)
    return [one.row for one in like] == [symbol.row]
