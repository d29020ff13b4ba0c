"""The languages that are read, and the one door to tree-sitter, which is an extra."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from nacre.base import files as base_files
from nacre.base.ids import to_ms
from nacre.base.lazy import load
from nacre.base.request import Request
from nacre.base.text import identifiers
from nacre.errors import NacreError, NotFound, Unavailable
from nacre.home import home, location
from nacre.memories import edit, store
from nacre.memories.graph import CODE, Limit
from nacre.store import code
from nacre.values import review
from nacre.values.memory import Memory
from nacre.vault import git

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

HINT = "pip install 'nacre-memory[code]'"


@dataclass(frozen=True, slots=True)
class Language:
    """A language: the module of its grammar and the function in it, the queries that find things in its trees, and
    the module that reads what they find. Languages of one ``family`` call each other."""

    name: str
    family: str
    grammar: str
    function: str
    queries: Sequence[str]
    suffixes: Sequence[str]


LANGUAGES = {
    one.name: one
    for one in (
        Language("python", "python", "python", "language", ("python",), (".py", ".pyi")),
        Language(
            "javascript",
            "ecma",
            "javascript",
            "language",
            ("ecma", "jsx", "javascript"),
            (".js", ".mjs", ".cjs", ".jsx"),
        ),
        Language(
            "typescript",
            "ecma",
            "typescript",
            "language_typescript",
            ("ecma", "typescript"),
            (".ts", ".mts", ".cts"),
        ),
        Language(
            "tsx", "ecma", "typescript", "language_tsx", ("ecma", "jsx", "typescript"), (".tsx",)
        ),
        Language("go", "go", "go", "language", ("go",), (".go",)),
        Language("rust", "rust", "rust", "language", ("rust",), (".rs",)),
        Language("java", "java", "java", "language", ("java",), (".java",)),
        Language("c", "cfamily", "c", "language", ("c",), (".c",)),
        Language(
            "cpp",
            "cfamily",
            "cpp",
            "language",
            ("c", "cpp"),
            (".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp"),
        ),
    )
}
"""By name. Headers are read as C++, which nearly all of C is."""

_BY_SUFFIX = {suffix: one.name for one in LANGUAGES.values() for suffix in one.suffixes}


def language_of(path: str) -> str | None:
    """The language that a file's name says it is in, if it is one of these."""
    name = path.rsplit("/", 1)[-1]
    return _BY_SUFFIX.get("." + name.rsplit(".", 1)[-1].lower()) if "." in name else None


def require() -> None:
    """Raise Unavailable, with what to install, where the parsers are not there."""
    try:
        import_module("tree_sitter")
        for one in LANGUAGES.values():
            import_module(f"tree_sitter_{one.grammar}")
    except ImportError as error:
        raise Unavailable(
            f"{error.name} is not installed: nacre reads code with it", hint=HINT
        ) from error


@cache
def parser_of(name: str) -> tuple[Parser, Query]:
    """The parser of a language, and what is looked for in its trees. Raises ImportError."""
    one = LANGUAGES[name]
    grammar = load("tree_sitter:Language")(load(f"tree_sitter_{one.grammar}:{one.function}")())
    text = "\n".join(
        (files(__package__) / "queries" / f"{query}.scm").read_text(encoding="utf-8")
        for query in one.queries
    )
    return load("tree_sitter:Parser")(grammar), load("tree_sitter:Query")(grammar, text)


# ----------------------------------------------------------------------------
# Files and symbols that memories name, as they write them: paths, names in backticks and in blocks of
# code, and in
# plain words what only code is called (``camelCase``, ``a.b``, ``snake_case``).


_PORTION = 500
_MOST_NAMES = 200
_NAME_CHARACTERS = 200
_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_MARKED = re.compile(r"`([^`\n]{1,200})`")
_NAME = re.compile(r"^[A-Za-z_$][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$~][\w$]*)*(?:\(.*\))?$")
_WORD = re.compile(r"[A-Za-z_$][\w$]{3,}")
_SEPARATOR = re.compile(r"::|#|->|\.")
_LINE = re.compile(r":\d+(?:[:-]\d+)?$")
_PLAIN = re.compile(r"^[A-Za-z_$][\w$]*(?:(?:\.|::)[A-Za-z_$][\w$]*)*$")
_WORDS_OF_CODE = frozenset(
    """and async await bool break case catch char class const continue default define delete double elif else enum error
    except export extends false final finally float from func function global impl implements import include inline
    instanceof interface lambda long match module namespace none null number object operator override package pass
    print private protected public raise range readonly return self short signed static string struct super switch
    template this throw throws trait true type typedef typename typeof undefined union unsigned using virtual void
    volatile where while with yield""".split()
)


def catch_up_mentions(home: home.Home) -> None:
    """Look for names of code in memories that are new, or were written anew. Costs a query where there are none.

    Where nothing can be written now, the next one does it.
    """
    if home.database.unwritable:
        return
    with suppress(Unavailable):  # another process writes, or the disk is full
        while found := home.code_mentions.unread(_PORTION):
            home.code_mentions.put(
                (one, list(mentions(f"{subject}\n{content}"))) for one, subject, content in found
            )
            if len(found) < _PORTION:
                return


def mentions(text: str) -> Iterator[code.Mention]:
    """The names of code in a text, each once."""
    seen: dict[str, code.Mention] = {}
    for one in _found(text):
        seen.setdefault(one.written, one)
    yield from list(seen.values())[:_MOST_NAMES]


def symbol_parts(written: str) -> list[str]:
    """The parts of a dotted name."""
    return [part for part in _SEPARATOR.split(written) if part]


def key_of(written: str) -> str:
    """The lookup key of a name: its last part, in lower case."""
    if is_path(written):
        return written.rsplit("/", 1)[-1].lower()
    parts = symbol_parts(written)
    return parts[-1].lower() if parts else written.lower()


def is_path(written: str) -> bool:
    """Whether a name is the path of a source file."""
    return language_of(written) is not None or (
        "/" in written and "." in written.rsplit("/", 1)[-1]
    )


def _found(text: str) -> Iterator[code.Mention]:
    outside = _FENCE.sub("\n", text)
    for written in _MARKED.findall(outside):
        yield from _marked(_bare(written.strip()))
    for written in map(_bare, identifiers(_MARKED.sub(" ", outside))):
        if is_path(written):
            yield _mention(written, "path")
        elif _PLAIN.match(written):
            yield _mention(written, "text")
    for _, block in _FENCE.findall(text):
        for word in dict.fromkeys(_WORD.findall(block)):
            if word.lower() not in _WORDS_OF_CODE:
                yield _mention(word, "fence")


def _marked(bare: str) -> Iterator[code.Mention]:
    path, hash_sign, name = bare.partition("#")
    if is_path(path) and " " not in path:
        yield _mention(path, "path")
        if hash_sign and name:
            yield _mention(name, "marked")
    elif _NAME.match(bare) and len(bare) > 2:
        yield _mention(bare.split("(")[0], "marked")


def _bare(written: str) -> str:
    return _LINE.sub("", written.replace("\\", "/").removeprefix("./"))


def _mention(written: str, manner: str) -> code.Mention:
    written = written[:_NAME_CHARACTERS]
    return code.Mention(key_of(written), written, manner)


# ----------------------------------------------------------------------------
# Answers to questions about code.


@dataclass(frozen=True, slots=True)
class CodeReport:
    """What reading a repository did. ``unchanged`` files were read before; ``skipped`` hold no code that can be read:
    too long, binary, minified; ``failed`` broke the parser; ``left_out`` were too many, or time was up."""

    project: str
    root: str
    files: int
    read: int
    unchanged: int
    removed: int
    skipped: int
    failed: tuple[str, ...]
    left_out: int
    symbols: int
    edges: int
    languages: dict[str, int]
    by_git: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class CodeNode:
    """A symbol, or a file, whose ``name`` is empty. ``line`` is where it is defined."""

    id: str
    project: str
    path: str
    name: str
    kind: str
    line: int


@dataclass(frozen=True, slots=True)
class CodeLink:
    """What is connected with the symbol that was asked about: ``line`` is where it says so, in its own file; ``via``
    is the node between them, where there is one, and ``depth`` the steps."""

    rel: str
    node: CodeNode
    line: int
    depth: int = 1
    via: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class CodeMemory:
    """A memory that names code: ``names`` are the names as it writes them, ``nodes`` the ids that these mean."""

    memory: Memory
    names: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CodeAnswer:
    """What was found. Where the name means several things, nothing was looked for: they are the ``choices``."""

    asked: str
    nodes: tuple[CodeNode, ...] = ()
    choices: tuple[CodeNode, ...] = ()
    links: tuple[CodeLink, ...] = ()
    memories: tuple[CodeMemory, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True)
class ForgottenCode:
    """The result of forgetting the code of a project; ``was_there`` says whether any was stored."""

    project: str
    was_there: bool


@dataclass(frozen=True, slots=True)
class StaleFile:
    """A file that a memory names and that was changed since. ``is_gone``: it is not in the working tree any more."""

    path: str
    edits: int
    sessions: int
    last: datetime
    is_gone: bool = False

    def __str__(self) -> str:
        """Edits, sessions and last change in words."""
        times = "once" if self.edits == 1 else f"{self.edits:,} times"
        return f"{self.path} is gone" if self.is_gone else f"{self.path} changed {times} since"


@dataclass(frozen=True, slots=True)
class StaleMemory:
    """A memory that may be out of date, and how sure that is (0 to 1). ``symbols`` are the names of code in it, and
    ``missing`` those that the files do not hold any more."""

    memory: Memory
    confidence: float
    files: tuple[StaleFile, ...]
    sessions: int
    lag_days: float
    symbols: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    is_checked: bool = False

    @property
    def why(self) -> str:
        """The reason in words, with at most three files and five names."""
        files = "; ".join(map(str, self.files[:3]))
        return (
            f"{files}; not there any more: {', '.join(self.missing[:5])}" if self.missing else files
        )


@dataclass(frozen=True, slots=True)
class Staleness:
    """Memories that may be out of date, the surest first, of how many that name files."""

    memories: tuple[StaleMemory, ...]
    looked_at: int
    total: int


# ----------------------------------------------------------------------------
# Resolve a name that a person gave to symbols and files.


def find_nodes(
    home: home.Home, name: str, project: str | None, near: str | None
) -> list[code.Symbol]:
    """The symbols or files that a name may refer to: one if it is unambiguous, else the choices. Raises NotFound.

    ``src/a.py#A.f`` is the symbol of a file; a dotted name is that of a symbol or its end, modules before it or not.
    """
    asked = name.strip()
    if asked.startswith(CODE):
        project, _, asked = asked.removeprefix(CODE).partition("/")
    path, hash_sign, symbol = asked.partition("#")
    if hash_sign and (is_path(path) or "/" in path):
        found = [one for one in _symbols(home, symbol, project) if ends_alike(one.path, path)]
    else:
        found = _files(home, asked, project) if is_path(asked) else []
        found = found or _symbols(home, asked, project)
    if not found:
        raise NotFound(f"no code is known by the name {name!r}", hint=_hint(home))
    own = [one for one in found if one.project == near]
    return own or found


def find_files(
    home: home.Home, name: str, project: str | None, near: str | None
) -> list[code.Symbol]:
    """The files that a path, or the dotted name of a module, may refer to."""
    asked = name.strip().removeprefix(CODE)
    found = _files(home, asked, project)
    if not found and not is_path(asked):
        place = "/".join(symbol_parts(asked.replace("/", ".")))
        for ending in (".py", "/__init__.py", ".rs", "/mod.rs", ".ts", ".js", ".java"):
            found = found or _files(home, place + ending, project)
    own = [one for one in found if one.project == near]
    return own or found


def node_of(symbol: code.Symbol) -> CodeNode:
    """A stored symbol as a node of an answer."""
    name = f"#{symbol.qualified}" if symbol.qualified else ""
    return CodeNode(
        f"{CODE}{symbol.project}/{symbol.path}{name}",
        symbol.project,
        symbol.path,
        symbol.qualified,
        symbol.kind,
        symbol.line,
    )


def ends_alike(path: str, asked: str) -> bool:
    """Whether one of two paths ends with the other, compared without case."""
    one, other = path.lower().split("/"), [part for part in asked.lower().split("/") if part]
    shorter = min(len(one), len(other))
    return (
        shorter > 0
        and one[-shorter:] == other[-shorter:]
        and (len(other) <= len(one) or asked.startswith("/"))
    )


def meant(symbols: Sequence[code.Symbol], written: str) -> list[code.Symbol]:
    """Those of some symbols with the same last part that a dotted name may mean: the nearest in spelling, then those
    that it names whole."""
    parts = symbol_parts(written)
    fit = [one for one in symbols if _places(one)[-len(parts) :] == parts]
    if not fit:
        lower = [part.lower() for part in parts]
        fit = [
            one
            for one in symbols
            if [part.lower() for part in _places(one)][-len(parts) :] == lower
        ]
    whole = [one for one in fit if one.qualified.split(".") == parts]
    return whole if len(whole) == 1 and len(parts) > 1 else fit


def _symbols(home: home.Home, name: str, project: str | None) -> list[code.Symbol]:
    parts = symbol_parts(name.split("(")[0])
    return meant(home.code.named(parts[-1], project), ".".join(parts)) if parts else []


def _files(home: home.Home, path: str, project: str | None) -> list[code.Symbol]:
    plain = path.replace("\\", "/").removeprefix("./")
    found = [
        one
        for one in home.code.files_named(plain.rsplit("/", 1)[-1], project)
        if ends_alike(one.path, plain)
    ]
    whole = [one for one in found if one.path == plain]
    return whole or found


def _places(symbol: code.Symbol) -> list[str]:
    """The parts of a symbol's full name: folders, file, enclosing definitions, its own name."""
    path = symbol.path.rsplit(".", 1)[0].removesuffix("/__init__").split("/")
    return [*path, *(symbol.qualified.split(".") if symbol.kind != code.FILE else ())]


def _hint(home: home.Home) -> str:
    known = [project for project, *_ in home.code.projects()]
    if not known:
        return "nacre graph ingest-code reads the repository of this folder"
    return f"code is known of {', '.join(known[:5])}; nacre graph ingest-code reads what is new"


# ----------------------------------------------------------------------------
# Requests about code.


Project = Annotated[str | None, Meta(description="Of one project only.")]


class IngestCodeRequest(Request, frozen=True, kw_only=True):
    """Read the code of a repository."""

    folder: Annotated[
        str, Meta(description="A folder of the repository; all of it is read.", min_length=1)
    ]
    project: Annotated[
        str | None, Meta(description="The project that it belongs to; else that of the folder.")
    ] = None
    force: Annotated[bool, Meta(description="Read files again that did not change.")] = False
    max_files: Annotated[int, Meta(description="Files at most.", ge=1, le=200_000)] = 20_000
    seconds: Annotated[
        float, Meta(description="Longest time, in seconds; the next call goes on.", gt=0)
    ] = 600.0


class ForgetCodeRequest(Request, frozen=True, kw_only=True):
    """Forget the code of a project."""

    project: Annotated[str, Meta(description="The project.", min_length=1)]


class CodeRequest(Request, frozen=True, kw_only=True):
    """What a symbol or a file is connected with."""

    name: Annotated[
        str,
        Meta(
            description="A symbol as it is written (pay, Order.pay, src/orders.py#Order.pay), or a file.",
            min_length=1,
            max_length=500,
        ),
    ]
    project: Project = None
    near: Annotated[
        str | None, Meta(description="Of several projects with such a name, this one.")
    ] = None
    limit: Limit = 50


class CallersRequest(CodeRequest, frozen=True, kw_only=True):
    """Who calls a symbol."""

    depth: Annotated[int, Meta(description="Callers of callers, so many steps.", ge=1, le=10)] = 1


class ImpactRequest(CodeRequest, frozen=True, kw_only=True):
    """What a change to a file, or to a symbol of it, touches."""

    symbol: Annotated[str, Meta(description="A symbol of the file.", max_length=500)] | None = None
    depth: Annotated[int, Meta(description="Steps from caller to caller.", ge=1, le=10)] = 3


class StaleRequest(Request, frozen=True, kw_only=True):
    """Memories that may be out of date, as files they name were changed since."""

    project: Project = None
    limit: Limit = 20
    days: Annotated[int, Meta(description="Changes of the last days count.", ge=1, le=3650)] = 30
    least_sessions: Annotated[
        int, Meta(description="Sessions that changed the files, at least.", ge=1)
    ] = 1
    folder: Annotated[
        str | None,
        Meta(
            description="The working tree to compare with, of memories whose project's code was not read."
        ),
    ] = None
    memory: Annotated[str | None, Meta(description="One memory, by its id or subject.")] = None


# ----------------------------------------------------------------------------
# Callers, importers, the memories that name a symbol, and the impact of a change.


_MOST_NODES = 2_000
_MOST_CHOICES = 50
_MOST_MENTIONS = 2_000
_MOST_KEYS = 500
_ALL = ("calls", "imports", "inherits")


def callers(home: home.Home, asked: CallersRequest) -> CodeAnswer:
    """The callers of a symbol and their callers; for a class also callers of its methods, and its subclasses.

    Raises NotFound where no symbol has such a name.
    """
    found = find_nodes(home, asked.name, asked.project, asked.near)
    if len(found) > 1:
        return _choices(asked.name, found)
    start = _with_members(home, found[0])
    links = _reached(home, start, ("calls", "inherits"), asked.depth)
    return _answer(asked, found, links)


def importers(home: home.Home, asked: CodeRequest) -> CodeAnswer:
    """The files that import a file, a module or a library. Raises NotFound."""
    name = asked.name.strip()
    outside = home.code.importers(name, asked.project, asked.limit + 1)
    outside = [one for one in outside if one[0].project == asked.near] or outside
    found = find_files(home, name, asked.project, asked.near)
    if outside and not is_path(name):  # a library's name is no file that only ends so
        found = [
            one for one in found if one.path.removesuffix("/__init__.py").split(".")[0] == name
        ]
    if len(found) > 1:
        return _choices(name, found)
    links = _reached(home, found, ("imports",), 1)
    links += [
        CodeLink("imports", node_of(one), one.line, note=module * (module != name))
        for one, module in outside
    ]
    if not links and not found:
        raise NotFound(
            f"no file of the code that was read imports {name!r}", hint="name a file or a module"
        )
    return _answer(asked, found, links)


def about(home: home.Home, asked: CodeRequest) -> CodeAnswer:
    """The memories that name a symbol or a file. Raises NotFound."""
    found = find_nodes(home, asked.name, asked.project, asked.near)
    if len(found) > 1:
        return _choices(asked.name, found)
    memories = _memories_of(home, _with_members(home, found[0]))
    return CodeAnswer(
        asked.name,
        (node_of(found[0]),),
        memories=tuple(memories[: asked.limit]),
        more=len(memories) > asked.limit,
    )


def impact(home: home.Home, asked: ImpactRequest) -> CodeAnswer:
    """What a change to a file, or a symbol of it, touches: who calls, inherits or imports it, step by step, and the
    memories that speak of any of it, those of the file first. Raises NotFound."""
    name = f"{asked.name}#{asked.symbol}" if asked.symbol else asked.name
    found = find_nodes(home, name, asked.project, asked.near)
    if len(found) > 1:
        return _choices(name, found)
    start = (
        home.code.beside(found[0]) if found[0].kind == code.FILE else _with_members(home, found[0])
    )
    links, reached = _walk(home, start, _ALL, asked.depth)
    memories = _memories_of(home, reached)
    shown = _answer(asked, found, links)
    return CodeAnswer(
        name,
        shown.nodes,
        links=shown.links,
        memories=tuple(memories[: asked.limit]),
        more=shown.more or len(memories) > asked.limit,
    )


def _answer(
    asked: CodeRequest, found: Sequence[code.Symbol], links: Sequence[CodeLink]
) -> CodeAnswer:
    return CodeAnswer(
        asked.name,
        tuple(map(node_of, found)),
        links=tuple(links[: asked.limit]),
        more=len(links) > asked.limit,
    )


def _choices(name: str, found: Sequence[code.Symbol]) -> CodeAnswer:
    return CodeAnswer(
        name, choices=tuple(map(node_of, found[:_MOST_CHOICES])), more=len(found) > _MOST_CHOICES
    )


def _with_members(home: home.Home, symbol: code.Symbol) -> list[code.Symbol]:
    return (
        [symbol, *home.code.beside(symbol)]
        if symbol.kind != code.FILE
        else home.code.beside(symbol)
    )


def _reached(
    home: home.Home, start: Sequence[code.Symbol], rels: Sequence[str], depth: int
) -> list[CodeLink]:
    return _walk(home, start, rels, depth)[0]


def _walk(
    home: home.Home, start: Sequence[code.Symbol], rels: Sequence[str], depth: int
) -> tuple[list[CodeLink], list[code.Symbol]]:
    """What leads to some symbols, the nearest first, and all symbols on the way; what leads from one of the first to
    another is left out."""
    known = {one.row: one for one in start}
    ring = list(known)
    steps: list[tuple[int, str, int, int, int]] = []
    for away in range(1, depth + 1):
        edges = home.code.edges(ring, rels)
        fresh = [
            (target, rel, source, line, away)
            for target, rel, source, line in edges
            if source not in known
        ]
        ring = list(dict.fromkeys(source for _, _, source, _, _ in fresh))[:_MOST_NODES]
        known |= home.code.of_rows(ring)
        steps += [one for one in fresh if one[2] in known]
        if not ring or len(known) >= _MOST_NODES:
            break
    links = [
        CodeLink(rel, node_of(known[source]), line, away, node_of(known[target]).id)
        for target, rel, source, line, away in sorted(
            steps,
            key=lambda one: (
                one[4],
                known[one[2]].project,
                known[one[2]].path,
                one[3],
                known[one[2]].qualified,
            ),
        )
    ]
    return links, list(known.values())


def _memories_of(home: home.Home, symbols: Sequence[code.Symbol]) -> list[CodeMemory]:
    """The memories that name any of these symbols, in their order; never those of other projects."""
    edit.catch_up(home)
    catch_up_mentions(home)
    by_key: dict[str, list[code.Symbol]] = defaultdict(list)
    for one in symbols:
        by_key[key_of(one.path if one.kind == code.FILE else one.qualified)].append(one)
    named: dict[str, dict[str, code.Symbol]] = defaultdict(dict)
    project = symbols[0].project if symbols else ""
    for mention, memory in home.code_mentions.ending(
        list(by_key)[:_MOST_KEYS], project, _MOST_MENTIONS
    ):
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
        CodeMemory(
            held[memory],
            tuple(names),
            tuple(dict.fromkeys(node_of(one).id for one in names.values())),
        )
        for _, memory, names in sorted(found, key=lambda one: one[:2])
    ]


def _is_meant(home: home.Home, written: str, symbol: code.Symbol) -> bool:
    """Whether a name refers to this symbol and to no other of its project."""
    if symbol.kind == code.FILE:
        if not ends_alike(symbol.path, written):
            return False
        like = home.code.files_named(written.rsplit("/", 1)[-1], symbol.project)
        return sum(ends_alike(one.path, written) for one in like) == 1
    like = meant(home.code.named(symbol.qualified.rsplit(".", 1)[-1], symbol.project), written)
    return [one.row for one in like] == [symbol.row]


# ----------------------------------------------------------------------------
# The facts of one source file: definitions, calls, imports, base classes and types of variables. No
# contents.


MODULE = -1
"""The scope of code outside every definition."""

INNER_KINDS = frozenset({"namespace", "impl"})
"""Kinds of definitions that qualify the names of others and are no symbols themselves."""

CLASS_KINDS = frozenset({"class", "interface", "type", "impl"})
"""Kinds of definitions that have members."""


class Definition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A symbol, or a scope that names symbols.

    ``parent`` is the number of the definition around it; ``owner`` the qualified name of the class it belongs to, or
    empty. ``returns`` is the type that it returns, as written. What is ``hidden`` cannot be named by other files.
    """

    name: str
    qualified: str
    kind: str
    parent: int
    owner: str
    line: int
    end_line: int
    returns: str = ""
    hidden: bool = False


class Call(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A call in a scope, the first of its words: ``receiver.name(…)``. The receiver is dotted names, empty, or ``?``
    where it is none."""

    scope: int
    receiver: str
    name: str
    line: int


class Import(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One imported name. ``name`` is empty where the module itself is, ``*`` for all its names; ``alias`` is what the
    file calls it, empty where it gets no name."""

    module: str
    name: str
    alias: str
    line: int
    exported: bool = False


class Base(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A base class, as the class names it."""

    owner: int
    name: str


class Variable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The type of a variable in a scope, as written. A type that ends in ``()`` is what that call returns, or the class
    that it makes."""

    scope: int
    name: str
    type: str


class Facts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All of a file. ``package`` is what it says that it belongs to, ``default`` what it exports without a name."""

    language: str
    package: str = ""
    default: str = ""
    definitions: tuple[Definition, ...] = ()
    calls: tuple[Call, ...] = ()
    imports: tuple[Import, ...] = ()
    bases: tuple[Base, ...] = ()
    variables: tuple[Variable, ...] = ()


# ----------------------------------------------------------------------------
# The files of a repository that hold code: those that git knows or would add, else those of the
# folder.
#
# Nothing outside the folder is read: symbolic links are not followed, and nothing of the repository
# is run.


MOST_BYTES = 1_000_000
"""A longer file is data or generated code."""

_MANIFEST = re.compile(r"(?:^|/)(?:go\.mod|Cargo\.toml|[jt]sconfig[^/]*\.json)$")
"""What defines the names of packages and modules."""

_BARREN = frozenset(
    {
        "node_modules",
        "__pycache__",
        "venv",
        "env",
        "dist",
        "build",
        "target",
        "vendor",
        "site-packages",
    }
)
_LINE_BYTES = 400
_SMALL = 50_000
_HEAD = 8_192


@dataclass(frozen=True, slots=True)
class Listing:
    """Sorted paths of source files and manifests, relative to the folder. ``left_out`` counts files over the limit."""

    code: tuple[str, ...]
    manifests: tuple[str, ...]
    left_out: int
    by_git: bool


def toplevel(path: Path, environ: Mapping[str, str]) -> Path:
    """The working tree that contains a folder; the folder itself if there is none, or if git ignores it."""
    here = Path(os.path.abspath(path))
    found = next((one for one in (here, *here.parents) if os.path.lexists(one / ".git")), here)
    try:
        is_ignored = (
            found != here
            and not git.GitProgram(found, environ)
            .attempt("check-ignore", "-q", str(here))
            .returncode
        )
    except NacreError:
        return found
    return here if is_ignored else found


def list_code(root: Path, environ: Mapping[str, str], most: int) -> Listing:
    """The source files of a working tree, at most ``most``."""
    by_git = os.path.lexists(root / ".git")
    try:
        found = _tracked(root, environ) if by_git else list(_walked(root))
    except (
        NacreError
    ):  # no git, or a repository that it refuses: what lies there is code all the same
        by_git, found = False, list(_walked(root))
    code = sorted(one for one in found if language_of(one) and one.isprintable())
    manifests = sorted(filter(_MANIFEST.search, found))
    return Listing(tuple(code[:most]), tuple(manifests[:most]), max(0, len(code) - most), by_git)


def read_file(root: Path, path: str) -> bytes | None:
    """The bytes of a file of a repository; ``None`` for what is no code to be read: gone, too long, binary, minified,
    or not within the folder."""
    place = root / path
    inside = os.path.join(os.path.realpath(root), os.path.dirname(path)).rstrip(os.sep)
    if ".." in path.split("/") or os.path.realpath(place.parent) != os.path.normpath(inside):
        return None
    try:
        with open(base_files.open_file(place, os.O_RDONLY), "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError):
        return None
    is_minified = len(data) > _SMALL and data.count(b"\n") * _LINE_BYTES < len(data)
    return None if len(data) > MOST_BYTES or is_minified or b"\0" in data[:_HEAD] else data


def _tracked(root: Path, environ: Mapping[str, str]) -> list[str]:
    """Tracked files, and untracked ones that git does not ignore."""
    told = git.GitProgram(root, environ).run(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"
    )
    return [one for one in os.fsdecode(told).split("\0") if one]


def _walked(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(
            one for one in folders if not one.startswith(".") and one not in _BARREN
        )
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


# ----------------------------------------------------------------------------
# Memories that may be out of date: files that they name were changed in sessions since (seed facts
# 2.6).


MOST_MEMORIES = 500
"""Memories checked per run, the latest first (seed facts 2.6)."""

LEAST_MARKED = 0.2
"""Least confidence at which a context shows it: two sessions that changed the files within a month."""

_SESSIONS = 5
"""Sessions from which on their number adds no more confidence."""

_LAG_DAYS = 60
"""Days between memory and last change from which on time adds no more confidence."""

_STILL_THERE = 0.3
"""Factor of the confidence if every symbol that a memory names is still in the files."""

_LEAST_CHARACTERS = {"marked": 3, "fence": 4}


def stale(home: home.Home, asked: StaleRequest) -> Staleness:
    """Memories whose files were changed since, the surest first; one memory where it is named. Raises NotFound.

    The confidence is ``min(1, sessions / 5) · min(1, days / 60)``, times what the symbols say: 0.3 where all are still
    in the files, 0.3 + 0.7 · the share that is missing, 1 where all are, or nothing can be looked at.
    """
    edit.catch_up(home)
    catch_up_mentions(home)
    if asked.memory:
        memories = [store.get(home, asked.memory)]
    else:
        held = home.code_mentions.with_paths(asked.project, MOST_MEMORIES)
        memories = list(home.memories.rows_of(held).values())
    named = home.code_mentions.within([one.id for one in memories])
    kept = home.reviews.stale_kept()
    assessed = (
        _assess(home, memory, named[memory.id], asked, kept.get(memory.id)) for memory in memories
    )
    found = [one for one in assessed if one is not None]
    found.sort(key=lambda one: (-one.confidence, one.memory.id))
    return Staleness(tuple(found[: asked.limit]), len(memories), len(found))


def note_stale(home: home.Home) -> int:
    """Look which memories may be out of date, for contexts and the review queue; returns how many.

    Nothing is noted where nothing can be written.
    """
    if home.database.unwritable:
        return 0
    found = stale(home, StaleRequest(limit=MOST_MEMORIES)).memories
    marked = [
        (one.memory.id, one.confidence, one.why) for one in found if one.confidence >= LEAST_MARKED
    ]
    home.memories.set_stale(marked)
    at = to_ms(home.now()) or 0
    with home.database.transaction():
        for memory, confidence, why in marked:
            if confidence >= review.LEAST_REVIEWED:
                home.reviews.add(memory, review.Reason.STALE, why, at, once=True)
    return len(marked)


def confidence_of(sessions: int, lag_days: float, symbols: int, missing: int) -> float:
    """The confidence that a memory is out of date, 0 to 1 (seed facts 2.6)."""
    changed = min(1.0, sessions / _SESSIONS) * min(1.0, max(0.0, lag_days) / _LAG_DAYS)
    share = missing / symbols if symbols else 1.0
    return changed * (_STILL_THERE + (1 - _STILL_THERE) * share)


def _assess(
    home: home.Home,
    memory: Memory,
    named: Sequence[code.Mention],
    asked: StaleRequest,
    kept: datetime | None,
) -> StaleMemory | None:
    """``kept``: when the owner last said in review that it holds."""
    said = max(memory.last_said, kept or memory.last_said)
    since = max(said, home.now() - timedelta(days=asked.days))
    paths = [one.written for one in named if one.manner == "path"]
    if memory.evergreen or not memory.is_active or not paths:
        return None
    changes = _changes(home, memory, paths, since, said)
    sessions = {session for held in changes.values() for session, _, _ in held}
    if len(sessions) < asked.least_sessions:
        return None
    root = _root(home, memory, asked.folder)
    files = tuple(_file(path, held, root) for path, held in sorted(changes.items()))
    lag = (max(one.last for one in files) - said) / timedelta(days=1)
    symbols = _symbols_staleness(named)
    missing = (
        _missing(root, [one.path for one in files if not one.is_gone], symbols) if root else None
    )
    confidence = confidence_of(
        len(sessions), lag, len(symbols) if missing is not None else 0, len(missing or ())
    )
    return StaleMemory(
        memory,
        round(confidence, 4),
        files,
        len(sessions),
        round(lag, 2),
        tuple(symbols),
        tuple(missing or ()),
        is_checked=missing is not None,
    )


def _changes(
    home: home.Home, memory: Memory, paths: Iterable[str], since: datetime, said: datetime
) -> dict[str, list[tuple[int, datetime, int]]]:
    """The named files that sessions changed which began after the memory was last said: path → session, time, edits."""
    rows: dict[int, str] = {}
    for path in paths:
        for row, touched in home.deeds.files_named(path.rsplit("/", 1)[-1]):
            if ends_alike(touched, path):
                rows[row] = path
    found: dict[str, list[tuple[int, datetime, int]]] = defaultdict(list)
    for row, session, began, last, count in home.code.edits(list(rows), since, memory.project):
        if began is None or began > said:
            found[rows[row]].append((session, last, count))
    return found


def _file(path: str, held: Sequence[tuple[int, datetime, int]], root: Path | None) -> StaleFile:
    is_gone = (
        root is not None
        and not path.startswith("/")
        and "/" in path
        and not os.path.lexists(root / path)
    )
    return StaleFile(
        path,
        sum(count for *_, count in held),
        len({session for session, *_ in held}),
        max(last for _, last, _ in held),
        is_gone,
    )


def _symbols_staleness(named: Sequence[code.Mention]) -> list[str]:
    """Names in backticks and in blocks of code: their last parts."""
    found = dict.fromkeys(
        symbol_parts(one.written)[-1]
        for one in named
        if len(one.written) >= _LEAST_CHARACTERS.get(one.manner, 10_000)
        and symbol_parts(one.written)
    )
    return list(found)


def _missing(root: Path, paths: Sequence[str], symbols: Sequence[str]) -> list[str] | None:
    """The symbols that no file contains as a word; ``None`` if no file can be read."""
    held = [data for path in paths if (data := read_file(root, path.lstrip("/"))) is not None]
    texts = [data.decode("utf-8", "replace") for data in held]
    if paths and not texts:
        return None
    return [
        one
        for one in symbols
        if not any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text) for text in texts)
    ]


def _root(home: home.Home, memory: Memory, folder: str | None) -> Path | None:
    """The working tree that a memory's files lie in: where its project's code was read, else the folder asked from, if
    that is the project's."""
    if memory.project is None:
        return None
    read = home.code.find(memory.project)
    if read and os.path.isdir(read.root):
        return Path(read.root)
    if (
        not folder
        or not os.path.isdir(folder)
        or location.project_of_folder(home, Path(folder)) != memory.project
    ):
        return None
    return toplevel(Path(folder), home.settings.environ)
