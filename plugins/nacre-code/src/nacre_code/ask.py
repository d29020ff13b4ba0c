"""Questions about code: languages, names in memories, callers, importers, impact and outdated memories."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from nacre.base import files as base_files
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.lazy import load
from nacre.base.text import identifiers
from nacre.errors import NacreError, NotFoundError, UnavailableError
from nacre.home import location
from nacre.home.home import Home
from nacre.memories import edit, store
from nacre.memories.graph import CODE, Limit
from nacre.operations import operation
from nacre.values import review
from nacre.values.fields import OnlyProject
from nacre.values.memory import Memory
from nacre.vault import git
from nacre_code.store import FILE, CodeGraph, CodeMentions, Mention, Symbol

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

HINT = "pip install 'nacre-memory[code]'"


@frozen
class Language:
    """A language, with the module and function of its grammar, and queries for its syntax trees.

    Languages of the same ``family`` can call each other.
    """

    name: str
    family: str
    grammar: str
    function: str
    queries: Sequence[str]
    suffixes: Sequence[str]


LANGUAGES = {
    language.name: language
    for language in (
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
"""Languages by name. Headers are parsed as C++, which covers nearly all of C."""

_LANGUAGE_BY_SUFFIX = {
    suffix: language.name for language in LANGUAGES.values() for suffix in language.suffixes
}


def language_of(path: str) -> str | None:
    """Return the language of a file, determined from its name, or ``None`` if it is not supported."""
    name = path.rsplit("/", 1)[-1]
    return _LANGUAGE_BY_SUFFIX.get("." + name.rsplit(".", 1)[-1].lower()) if "." in name else None


def require_parsers() -> None:
    """Raise UnavailableError with an installation hint if the parsers are missing."""
    try:
        import_module("tree_sitter")
        for language in LANGUAGES.values():
            import_module(f"tree_sitter_{language.grammar}")
    except ImportError as error:
        raise UnavailableError(
            f"reading code needs {error.name}, which is not installed", hint=HINT
        ) from error


@cache
def parser_of(name: str) -> tuple[Parser, Query]:
    """Return a language's parser and query. Raises ImportError."""
    language = LANGUAGES[name]
    grammar = load("tree_sitter:Language")(
        load(f"tree_sitter_{language.grammar}:{language.function}")()
    )
    text = "\n".join(
        (files(__package__) / "queries" / f"{query}.scm").read_text(encoding="utf-8")
        for query in language.queries
    )
    return load("tree_sitter:Parser")(grammar), load("tree_sitter:Query")(grammar, text)


# ----------------------------------------------------------------------------
# Names of files and symbols in memories: paths, names in backticks and code blocks, and names in
# plain text that only occur in code (``camelCase``, ``a.b``, ``snake_case``).


_MEMORIES_PER_BATCH = 500
_MAX_NAMES = 200
_NAME_CHARACTERS = 200
_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_MARKED = re.compile(r"`([^`\n]{1,200})`")
_NAME = re.compile(r"^[A-Za-z_$][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$~][\w$]*)*(?:\(.*\))?$")
_WORD = re.compile(r"[A-Za-z_$][\w$]{3,}")
_SEPARATOR = re.compile(r"::|#|->|\.")
_LINE = re.compile(r":\d+(?:[:-]\d+)?$")
_PLAIN = re.compile(r"^[A-Za-z_$][\w$]*(?:(?:\.|::)[A-Za-z_$][\w$]*)*$")
_KEYWORDS = frozenset(
    """and async await bool break case catch char class const continue default define delete double elif else enum error
    except export extends false final finally float from func function global impl implements import include inline
    instanceof interface lambda long match module namespace none null number object operator override package pass
    print private protected public raise range readonly return self short signed static string struct super switch
    template this throw throws trait true type typedef typename typeof undefined union unsigned using virtual void
    volatile where while with yield""".split()
)


def catch_up_mentions(home: Home) -> None:
    """Find names of code in new and changed memories. If there are none, this costs one query.

    If the database is not writable now, the next call finds them.
    """
    if home.database.unwritable:
        return
    with suppress(UnavailableError):  # another process is writing, or the disk is full
        while memories := CodeMentions(home.database).unread(_MEMORIES_PER_BATCH):
            CodeMentions(home.database).put(
                (memory, list(mentions(f"{subject}\n{content}")))
                for memory, subject, content in memories
            )
            if len(memories) < _MEMORIES_PER_BATCH:
                return


def mentions(text: str) -> Iterator[Mention]:
    """Yield the code names that a text mentions, each of them once."""
    seen: dict[str, Mention] = {}
    for mention in _mentions_in(text):
        seen.setdefault(mention.written, mention)
    yield from list(seen.values())[:_MAX_NAMES]


def symbol_parts(written: str) -> list[str]:
    """Return the parts of a dotted name."""
    return [part for part in _SEPARATOR.split(written) if part]


def key_of(written: str) -> str:
    """Return the lookup key of a name, which is its last part in lower case."""
    if is_path(written):
        return written.rsplit("/", 1)[-1].lower()
    parts = symbol_parts(written)
    return parts[-1].lower() if parts else written.lower()


def is_path(written: str) -> bool:
    """Return True if a name is the path of a source file."""
    return language_of(written) is not None or (
        "/" in written and "." in written.rsplit("/", 1)[-1]
    )


def _mentions_in(text: str) -> Iterator[Mention]:
    outside = _FENCE.sub("\n", text)
    for written in _MARKED.findall(outside):
        yield from _mentions_in_backticks(_plain_name(written.strip()))
    for written in map(_plain_name, identifiers(_MARKED.sub(" ", outside))):
        if is_path(written):
            yield _mention(written, "path")
        elif _PLAIN.match(written):
            yield _mention(written, "text")
    for _, block in _FENCE.findall(text):
        for word in dict.fromkeys(_WORD.findall(block)):
            if word.lower() not in _KEYWORDS:
                yield _mention(word, "fence")


def _mentions_in_backticks(bare: str) -> Iterator[Mention]:
    path, hash_sign, name = bare.partition("#")
    if is_path(path) and " " not in path:
        yield _mention(path, "path")
        if hash_sign and name:
            yield _mention(name, "marked")
    elif _NAME.match(bare) and len(bare) > 2:
        yield _mention(bare.split("(")[0], "marked")


def _plain_name(written: str) -> str:
    return _LINE.sub("", written.replace("\\", "/").removeprefix("./"))


def _mention(written: str, manner: str) -> Mention:
    written = written[:_NAME_CHARACTERS]
    return Mention(key_of(written), written, manner)


# ----------------------------------------------------------------------------
# Answers to questions about code.


@frozen
class CodeReport:
    """The result of reading a repository.

    ``unchanged`` files were read before. ``skipped`` files are too long, binary or minified.
    ``failed`` files crashed the parser. ``left_out`` files exceeded the limit for files or time.
    """

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


@frozen
class CodeNode:
    """A symbol, or a file, which has no ``name``. ``line`` is the line of the definition."""

    id: str
    project: str
    path: str
    name: str
    kind: str
    line: int


@frozen
class CodeLink:
    """A node linked with the requested symbol.

    ``line`` is in the node's own file. ``via`` is an intermediate node, if any, and ``depth`` is
    the number of steps.
    """

    rel: str
    node: CodeNode
    line: int
    depth: int = 1
    via: str | None = None
    note: str = ""


@frozen
class CodeMemory:
    """A memory that names code. ``names`` are spelt as in the memory, and ``nodes`` are the ids of their nodes."""

    memory: Memory
    names: tuple[str, ...]
    nodes: tuple[str, ...]


@frozen
class CodeAnswer:
    """The answer to a question about code. If the name is ambiguous, only ``choices`` is set."""

    asked: str
    nodes: tuple[CodeNode, ...] = ()
    choices: tuple[CodeNode, ...] = ()
    links: tuple[CodeLink, ...] = ()
    memories: tuple[CodeMemory, ...] = ()
    more: bool = False


@frozen
class ForgottenCode:
    """The result of forgetting a project's code. ``was_there`` is True if any code was stored."""

    project: str
    was_there: bool


@frozen
class StaleFile:
    """A file that a memory mentions and that changed later.

    ``is_gone``: True if the working tree does not contain the file.
    """

    path: str
    edits: int
    sessions: int
    last: datetime
    is_gone: bool = False

    def __str__(self) -> str:
        times = "once" if self.edits == 1 else f"{self.edits:,} times"
        return f"{self.path} is gone" if self.is_gone else f"{self.path} changed {times} since"


@frozen
class StaleMemory:
    """A memory that might be out of date, with a confidence from 0 to 1.

    ``symbols`` are the names of code in the memory. ``missing`` are those that no file contains
    now.
    """

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
        files = "; ".join(map(str, self.files[:3]))
        return f"{files}; missing now: {', '.join(self.missing[:5])}" if self.missing else files


@frozen
class Staleness:
    """The result of a search for outdated memories.

    ``memories``: possibly outdated memories, the most likely first. ``looked_at``: number checked.
    """

    memories: tuple[StaleMemory, ...]
    looked_at: int
    total: int


# ----------------------------------------------------------------------------
# Resolve a name to symbols and files.


def find_nodes(home: Home, name: str, project: str | None, near: str | None) -> list[Symbol]:
    """Return the symbols or files to which a name can refer. Raises NotFoundError.

    ``src/a.py#A.f`` is a symbol in a file. A dotted name can be a symbol's full name or the end of
    it, with or without modules.
    """
    target = name.strip()
    if target.startswith(CODE):
        project, _, target = target.removeprefix(CODE).partition("/")
    path, hash_sign, symbol = target.partition("#")
    if hash_sign and (is_path(path) or "/" in path):
        symbols = [
            item for item in _symbols(home, symbol, project) if have_same_ending(item.path, path)
        ]
    else:
        symbols = _files(home, target, project) if is_path(target) else []
        symbols = symbols or _symbols(home, target, project)
    if not symbols:
        projects = [project for project, *_ in CodeGraph(home.database).projects()]
        raise NotFoundError(
            f"there is no code named {name!r}",
            hint="run nacre graph ingest-code to read this folder's repository"
            if not projects
            else f"projects with code: {', '.join(projects[:5])}; run nacre graph ingest-code for new code",
        )
    own = [item for item in symbols if item.project == near]
    return own or symbols


def find_files(home: Home, name: str, project: str | None, near: str | None) -> list[Symbol]:
    """Return the files to which a path or a module's dotted name can refer."""
    target = name.strip().removeprefix(CODE)
    symbols = _files(home, target, project)
    if not symbols and not is_path(target):
        place = "/".join(symbol_parts(target.replace("/", ".")))
        for ending in ".py /__init__.py .rs /mod.rs .ts .js .java".split():
            symbols = symbols or _files(home, place + ending, project)
    own = [item for item in symbols if item.project == near]
    return own or symbols


def node_of(symbol: Symbol) -> CodeNode:
    """Convert a stored symbol to a node for an answer."""
    name = f"#{symbol.qualified}" if symbol.qualified else ""
    return CodeNode(
        f"{CODE}{symbol.project}/{symbol.path}{name}",
        symbol.project,
        symbol.path,
        symbol.qualified,
        symbol.kind,
        symbol.line,
    )


def have_same_ending(path: str, named: str) -> bool:
    """Return True if one of two paths ends with the other, ignoring case."""
    parts = path.lower().split("/")
    named_parts = [part for part in named.lower().split("/") if part]
    shorter = min(len(parts), len(named_parts))
    return (
        shorter > 0
        and parts[-shorter:] == named_parts[-shorter:]
        and (len(named_parts) <= len(parts) or named.startswith("/"))
    )


def matching_symbols(symbols: Sequence[Symbol], written: str) -> list[Symbol]:
    """Return the symbols to which a dotted name can refer.

    Only ``symbols``, which have the last part of the name, are considered. Names in the same case
    are preferred.
    """
    parts = symbol_parts(written)
    matches = [symbol for symbol in symbols if _name_parts(symbol)[-len(parts) :] == parts]
    if not matches:
        lower = [part.lower() for part in parts]
        matches = [
            symbol
            for symbol in symbols
            if [part.lower() for part in _name_parts(symbol)][-len(parts) :] == lower
        ]
    exact = [symbol for symbol in matches if symbol.qualified.split(".") == parts]
    return exact if len(exact) == 1 and len(parts) > 1 else matches


def _symbols(home: Home, name: str, project: str | None) -> list[Symbol]:
    parts = symbol_parts(name.split("(")[0])
    return (
        matching_symbols(CodeGraph(home.database).named(parts[-1], project), ".".join(parts))
        if parts
        else []
    )


def _files(home: Home, path: str, project: str | None) -> list[Symbol]:
    plain = path.replace("\\", "/").removeprefix("./")
    matches = [
        file
        for file in CodeGraph(home.database).files_named(plain.rsplit("/", 1)[-1], project)
        if have_same_ending(file.path, plain)
    ]
    exact = [file for file in matches if file.path == plain]
    return exact or matches


def _name_parts(symbol: Symbol) -> list[str]:
    """Return the parts of a symbol's full name: folders, file, enclosing definitions, and its own name."""
    path = symbol.path.rsplit(".", 1)[0].removesuffix("/__init__").split("/")
    return [*path, *(symbol.qualified.split(".") if symbol.kind != FILE else ())]


# ----------------------------------------------------------------------------
# Requests about code.


Depth = Annotated[int, bounds("Steps from caller to caller.", ge=1, le=10)]
Near = Annotated[str | None, bounds("Preferred project if several have this name.")]
Name = Annotated[
    str,
    bounds(
        "A symbol (pay, Order.pay, src/orders.py#Order.pay) or a file.",
        min_length=1,
        max_length=500,
    ),
]


# ----------------------------------------------------------------------------
# Callers, importers, the memories that name a symbol, and the impact of a change.


_MAX_NODES = 2_000
_MAX_CHOICES = 50
_MAX_MENTIONS = 2_000
_MAX_KEYS = 500
_RELATIONS = ("calls", "imports", "inherits")


@operation("graph-callers", by_key=True)
def callers(
    home: Home,
    name: Name,
    project: OnlyProject = None,
    near: Near = None,
    limit: Limit = 50,
    depth: Depth = 1,
) -> CodeAnswer:
    """Return the callers of a symbol, and their callers. For a class, include its subclasses and
    the callers of its methods.

    Raises NotFoundError for an unknown symbol.
    """
    symbols = find_nodes(home, name, project, near)
    if len(symbols) > 1:
        return _ambiguous(name, symbols)
    start = _with_members(home, symbols[0])
    links, _ = _walk(home, start, ("calls", "inherits"), depth)
    return _answer(name, symbols, links, limit)


@operation("graph-importers", by_key=True)
def importers(
    home: Home,
    name: Name,
    project: OnlyProject = None,
    near: Near = None,
    limit: Limit = 50,
) -> CodeAnswer:
    """Return the files that import a file, a module or a library. Raises NotFoundError."""
    wanted = name.strip()
    outside = CodeGraph(home.database).importers(wanted, project, limit + 1)
    outside = [item for item in outside if item[0].project == near] or outside
    symbols = find_files(home, wanted, project, near)
    if outside and not is_path(wanted):  # a library is not a file whose path ends with its name
        symbols = [
            item
            for item in symbols
            if item.path.removesuffix("/__init__.py").split(".")[0] == wanted
        ]
    if len(symbols) > 1:
        return _ambiguous(wanted, symbols)
    links, _ = _walk(home, symbols, ("imports",), 1)
    links += [
        CodeLink("imports", node_of(item), item.line, note=module * (module != wanted))
        for item, module in outside
    ]
    if not links and not symbols:
        raise NotFoundError(f"no known file imports {wanted!r}", hint="give a file or a module")
    return _answer(name, symbols, links, limit)


@operation("graph-about", by_key=True)
def about(
    home: Home,
    name: Name,
    project: OnlyProject = None,
    near: Near = None,
    limit: Limit = 50,
) -> CodeAnswer:
    """Return the memories that name a symbol or a file. Raises NotFoundError."""
    symbols = find_nodes(home, name, project, near)
    if len(symbols) > 1:
        return _ambiguous(name, symbols)
    memories = _memories_of(home, _with_members(home, symbols[0]))
    return _answer(name, symbols, (), limit, memories)


@operation("graph-impact", by_key=True)
def impact(
    home: Home,
    name: Name,
    project: OnlyProject = None,
    near: Near = None,
    limit: Limit = 50,
    symbol: Annotated[str, bounds("A symbol of the file.", max_length=500)] | None = None,
    depth: Depth = 3,
) -> CodeAnswer:
    """Return the effects of a change to a file or to one of its symbols. Raises NotFoundError.

    These are the callers, subclasses and importers, step by step, and the memories about any of
    them. Memories about the file come first.
    """
    name = f"{name}#{symbol}" if symbol else name
    symbols = find_nodes(home, name, project, near)
    if len(symbols) > 1:
        return _ambiguous(name, symbols)
    start = (
        CodeGraph(home.database).siblings(symbols[0])
        if symbols[0].kind == FILE
        else _with_members(home, symbols[0])
    )
    links, reached = _walk(home, start, _RELATIONS, depth)
    return _answer(name, symbols, links, limit, _memories_of(home, reached))


def _answer(
    name: str,
    symbols: Sequence[Symbol],
    links: Sequence[CodeLink],
    limit: int,
    memories: Sequence[CodeMemory] = (),
) -> CodeAnswer:
    return CodeAnswer(
        name,
        tuple(map(node_of, symbols)),
        links=tuple(links[:limit]),
        memories=tuple(memories[:limit]),
        more=max(len(links), len(memories)) > limit,
    )


def _ambiguous(name: str, symbols: Sequence[Symbol]) -> CodeAnswer:
    return CodeAnswer(
        name, choices=tuple(map(node_of, symbols[:_MAX_CHOICES])), more=len(symbols) > _MAX_CHOICES
    )


def _with_members(home: Home, symbol: Symbol) -> list[Symbol]:
    return (
        [symbol, *CodeGraph(home.database).siblings(symbol)]
        if symbol.kind != FILE
        else CodeGraph(home.database).siblings(symbol)
    )


def _walk(
    home: Home, start: Sequence[Symbol], rels: Sequence[str], depth: int
) -> tuple[list[CodeLink], list[Symbol]]:
    """Return the links that lead to symbols, nearest first, and all symbols found.

    Links between the symbols in ``start`` are omitted.
    """
    reached = {symbol.row: symbol for symbol in start}
    ring = list(reached)
    steps: list[tuple[int, str, int, int, int]] = []
    for distance in range(1, depth + 1):
        edges = CodeGraph(home.database).edges(ring, rels)
        fresh = [
            (target, rel, source, line, distance)
            for target, rel, source, line in edges
            if source not in reached
        ]
        ring = list(dict.fromkeys(source for _, _, source, _, _ in fresh))[:_MAX_NODES]
        reached |= CodeGraph(home.database).of_rows(ring)
        steps += [step for step in fresh if step[2] in reached]
        if not ring or len(reached) >= _MAX_NODES:
            break
    links = [
        CodeLink(rel, node_of(reached[source]), line, distance, node_of(reached[target]).id)
        for target, rel, source, line, distance in sorted(
            steps,
            key=lambda step: (
                step[4],
                reached[step[2]].project,
                reached[step[2]].path,
                step[3],
                reached[step[2]].qualified,
            ),
        )
    ]
    return links, list(reached.values())


def _memories_of(home: Home, symbols: Sequence[Symbol]) -> list[CodeMemory]:
    """Return the project's memories that name any of these symbols, in the order of the symbols."""
    edit.catch_up(home)
    catch_up_mentions(home)
    by_key: dict[str, list[Symbol]] = defaultdict(list)
    for symbol in symbols:
        by_key[key_of(symbol.path if symbol.kind == FILE else symbol.qualified)].append(symbol)
    named: dict[str, dict[str, Symbol]] = defaultdict(dict)
    project = symbols[0].project if symbols else ""
    for mention, memory in CodeMentions(home.database).ending(
        list(by_key)[:_MAX_KEYS], project, _MAX_MENTIONS
    ):
        for symbol in by_key[mention.key]:
            if _refers_to(home, mention.written, symbol):
                named[memory].setdefault(mention.written, symbol)
    order = {symbol.row: place for place, symbol in enumerate(symbols)}
    memories = {row.id: row for row in home.memories.rows_of(list(named)).values()}
    ranked = sorted(
        (min(order[symbol.row] for symbol in names.values()), memory, names)
        for memory, names in named.items()
        if memory in memories
    )
    return [
        CodeMemory(
            memories[memory],
            tuple(names),
            tuple(dict.fromkeys(node_of(symbol).id for symbol in names.values())),
        )
        for _, memory, names in sorted(ranked, key=lambda item: item[:2])
    ]


def _refers_to(home: Home, written: str, symbol: Symbol) -> bool:
    """Return True if a name refers to this symbol and to no other symbol of the project."""
    if symbol.kind == FILE:
        if not have_same_ending(symbol.path, written):
            return False
        candidates = CodeGraph(home.database).files_named(
            written.rsplit("/", 1)[-1], symbol.project
        )
        return sum(have_same_ending(candidate.path, written) for candidate in candidates) == 1
    candidates = matching_symbols(
        CodeGraph(home.database).named(symbol.qualified.rsplit(".", 1)[-1], symbol.project),
        written,
    )
    return [candidate.row for candidate in candidates] == [symbol.row]


# ----------------------------------------------------------------------------
# The facts of a source file: definitions, calls, imports, base classes and types of variables, but
# no contents.


MODULE = -1
"""Number that stands for code outside all definitions."""

INNER_KINDS = frozenset({"namespace", "impl"})
"""Kinds of definitions that are only prefixes of names, not symbols themselves."""

CLASS_KINDS = frozenset({"class", "interface", "type", "impl"})
"""Kinds of definitions that have members."""


class Definition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A symbol, or a scope that qualifies symbols.

    ``parent`` is the number of the enclosing definition. ``owner`` is the qualified name of the
    class, or empty. ``returns`` is the return type as written. Other files cannot refer to a
    ``hidden`` definition.
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
    """The first call of a name in a scope: ``receiver.name(…)``.

    The receiver is a dotted name, empty, or ``?`` for any other expression.
    """

    scope: int
    receiver: str
    name: str
    line: int


class Import(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An imported name.

    ``name`` is empty for the module itself and ``*`` for all its names. ``alias`` is the name in
    the importing file, if different.
    """

    module: str
    name: str
    alias: str
    line: int
    exported: bool = False


class Base(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A base class, as written."""

    owner: int
    name: str


class Variable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The type of a variable in a scope, as written.

    A type that ends in ``()`` is the result of this call, or the class that it constructs.
    """

    scope: int
    name: str
    type: str


class Facts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All facts of a file. ``package`` is the declared package, and ``default`` is the default export."""

    language: str
    package: str = ""
    default: str = ""
    definitions: tuple[Definition, ...] = ()
    calls: tuple[Call, ...] = ()
    imports: tuple[Import, ...] = ()
    bases: tuple[Base, ...] = ()
    variables: tuple[Variable, ...] = ()


# ----------------------------------------------------------------------------
# The source files of a repository: tracked files, and untracked files that git does not ignore.
# Without git, all files of the folder. Nothing outside the folder is read, symbolic links are not
# followed, and no code of the repository is run.


MAX_BYTES = 1_000_000
"""Maximum size of a source file. Larger files are data or generated code."""

_MANIFEST = re.compile(r"(?:^|/)(?:go\.mod|Cargo\.toml|[jt]sconfig[^/]*\.json)$")
"""Files that name packages and modules."""

_SKIPPED_FOLDERS = frozenset(
    "node_modules __pycache__ venv env dist build target vendor site-packages".split()
)
_LINE_BYTES = 400
_SMALL = 50_000
_HEAD = 8_192


@frozen
class Listing:
    """Sorted paths of source files and manifests, relative to the folder.

    ``left_out`` is the number of files beyond the limit.
    """

    code: tuple[str, ...]
    manifests: tuple[str, ...]
    left_out: int
    by_git: bool


def toplevel(path: Path, environ: Mapping[str, str]) -> Path:
    """Return the working tree that contains a folder, or the folder itself if there is none or git
    ignores the folder."""
    folder = Path(os.path.abspath(path))
    root = next(
        (
            candidate
            for candidate in (folder, *folder.parents)
            if os.path.lexists(candidate / ".git")
        ),
        folder,
    )
    try:
        is_ignored = (
            root != folder
            and not git.GitProgram(root, environ)
            .attempt("check-ignore", "-q", str(folder))
            .returncode
        )
    except NacreError:
        return root
    return folder if is_ignored else root


def list_code(root: Path, environ: Mapping[str, str], most: int) -> Listing:
    """Return the source files of a working tree, at most ``most``."""
    by_git = os.path.lexists(root / ".git")
    try:
        paths = _git_files(root, environ) if by_git else list(_files_below(root))
    except NacreError:  # git is missing or refuses the repository
        by_git, paths = False, list(_files_below(root))
    code = sorted(path for path in paths if language_of(path) and path.isprintable())
    manifests = sorted(filter(_MANIFEST.search, paths))
    return Listing(tuple(code[:most]), tuple(manifests[:most]), max(0, len(code) - most), by_git)


def read_file(root: Path, path: str) -> bytes | None:
    """Return a file's bytes, or ``None`` if it is missing, too long, binary, minified, or outside the folder."""
    place = root / path
    inside = os.path.join(os.path.realpath(root), os.path.dirname(path)).rstrip(os.sep)
    if ".." in path.split("/") or os.path.realpath(place.parent) != os.path.normpath(inside):
        return None
    try:
        with open(base_files.open_file(place, os.O_RDONLY), "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        return None
    is_minified = len(data) > _SMALL and data.count(b"\n") * _LINE_BYTES < len(data)
    return None if len(data) > MAX_BYTES or is_minified or b"\0" in data[:_HEAD] else data


def _git_files(root: Path, environ: Mapping[str, str]) -> list[str]:
    output = git.GitProgram(root, environ).run(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"
    )
    return [path for path in os.fsdecode(output).split("\0") if path]


def _files_below(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS
        )
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


# ----------------------------------------------------------------------------
# Memories that might be out of date because sessions changed the files that they name.


MAX_MEMORIES = 500
"""Maximum number of memories to check per run, latest first."""

MIN_MARKED = 0.2
"""Minimum confidence to mark a memory as possibly outdated."""

_SESSIONS = 5
"""Changes by at least this many sessions count fully."""

_LAG_DAYS = 60
"""A change at least this many days after the memory counts fully."""

_UNCHANGED_FACTOR = 0.3
"""Confidence factor for memories whose symbols all still exist."""

_MIN_CHARACTERS = {"marked": 3, "fence": 4}


@operation("graph-stale")
def stale(
    home: Home,
    project: OnlyProject = None,
    limit: Limit = 20,
    days: Annotated[int, bounds("Number of days whose changes count.", ge=1, le=3650)] = 30,
    folder: Annotated[
        str | None, bounds("Working tree for memories whose project's code was not read.")
    ] = None,
    memory: Annotated[str | None, bounds("One memory, by its id or subject.")] = None,
) -> Staleness:
    """Return memories whose files have changed since, most confident first. Raises NotFoundError.

    The confidence is ``min(1, sessions / 5) · min(1, days / 60)`` times a factor for symbols. The
    factor is 0.3 if the files still contain all symbols, 0.3 + 0.7 · the missing share if some are
    missing, and 1 if all are missing or nothing can be checked.
    """
    edit.catch_up(home)
    catch_up_mentions(home)
    if memory:
        memories = [store.get(home, memory)]
    else:
        ids = CodeMentions(home.database).with_paths(project, MAX_MEMORIES)
        memories = list(home.memories.rows_of(ids).values())
    mentions_by_memory = CodeMentions(home.database).within([item.id for item in memories])
    confirmed = home.reviews.stale_kept()
    assessed = (
        _assess(
            home,
            item,
            mentions_by_memory[item.id],
            confirmed.get(item.id),
            days,
            folder,
        )
        for item in memories
    )
    outdated = [item for item in assessed if item is not None]
    outdated.sort(key=lambda item: (-item.confidence, item.memory.id))
    return Staleness(tuple(outdated[:limit]), len(memories), len(outdated))


def note_stale(home: Home) -> None:
    """Mark memories that might be out of date, so that contexts and reviews can show this.

    Does nothing if the database is not writable.
    """
    if home.database.unwritable:
        return
    memories = stale(home, limit=MAX_MEMORIES).memories
    marked = [
        (item.memory.id, item.confidence, item.why)
        for item in memories
        if item.confidence >= MIN_MARKED
    ]
    home.memories.set_stale(marked)
    at = home.now_ms()
    with home.transaction():
        for memory, confidence, why in marked:
            if confidence >= review.LEAST_REVIEWED:
                home.reviews.add(memory, review.Reason.STALE, why, at, once=True)


def confidence_of(sessions: int, lag_days: float, symbols: int, missing: int) -> float:
    """Return the confidence that a memory is out of date, 0 to 1."""
    changed = min(1.0, sessions / _SESSIONS) * min(1.0, max(0.0, lag_days) / _LAG_DAYS)
    share = missing / symbols if symbols else 1.0
    return changed * (_UNCHANGED_FACTOR + (1 - _UNCHANGED_FACTOR) * share)


def _assess(
    home: Home,
    memory: Memory,
    mentions: Sequence[Mention],
    confirmed: datetime | None,
    days: int,
    folder: str | None,
) -> StaleMemory | None:
    stated = max(memory.last_said, confirmed or memory.last_said)
    since = max(stated, home.now() - timedelta(days=days))
    paths = [item.written for item in mentions if item.manner == "path"]
    if memory.evergreen or not memory.is_active or not paths:
        return None
    changes = _changes_since(home, memory, paths, since, stated)
    sessions = {session for edits in changes.values() for session, _, _ in edits}
    if not sessions:
        return None
    root = _working_tree(home, memory, folder)
    files = tuple(_stale_file(path, edits, root) for path, edits in sorted(changes.items()))
    lag = (max(item.last for item in files) - stated) / timedelta(days=1)
    names = dict.fromkeys(
        symbol_parts(mention.written)[-1]
        for mention in mentions
        if len(mention.written) >= _MIN_CHARACTERS.get(mention.manner, 10_000)
        and symbol_parts(mention.written)
    )
    symbols = list(names)
    missing = (
        _missing_symbols(root, [item.path for item in files if not item.is_gone], symbols)
        if root
        else None
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


def _changes_since(
    home: Home, memory: Memory, paths: Iterable[str], since: datetime, stated: datetime
) -> dict[str, list[tuple[int, datetime, int]]]:
    """Return later edits of the named files, as tuples of session, time and count.

    Only sessions that began after the memory was last stated are included.
    """
    rows: dict[int, str] = {}
    for path in paths:
        for row, touched in home.deeds.files_named(path.rsplit("/", 1)[-1]):
            if have_same_ending(touched, path):
                rows[row] = path
    changes: dict[str, list[tuple[int, datetime, int]]] = defaultdict(list)
    for row, session, began, last, count in CodeGraph(home.database).edits(
        list(rows), since, memory.project
    ):
        if began is None or began > stated:
            changes[rows[row]].append((session, last, count))
    return changes


def _stale_file(
    path: str, edits: Sequence[tuple[int, datetime, int]], root: Path | None
) -> StaleFile:
    is_gone = (
        root is not None
        and not path.startswith("/")
        and "/" in path
        and not os.path.lexists(root / path)
    )
    return StaleFile(
        path,
        sum(count for *_, count in edits),
        len({session for session, *_ in edits}),
        max(last for _, last, _ in edits),
        is_gone,
    )


def _missing_symbols(root: Path, paths: Sequence[str], symbols: Sequence[str]) -> list[str] | None:
    """Return the symbols that occur in no file as whole words, or ``None`` if no file can be read."""
    contents = [data for path in paths if (data := read_file(root, path.lstrip("/"))) is not None]
    texts = [data.decode("utf-8", "replace") for data in contents]
    if paths and not texts:
        return None
    return [
        symbol
        for symbol in symbols
        if not any(re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", text) for text in texts)
    ]


def _working_tree(home: Home, memory: Memory, folder: str | None) -> Path | None:
    """Return the working tree with a memory's files.

    This is where the project's code was read, or else ``folder`` if it belongs to the project.
    """
    if memory.project is None:
        return None
    project = CodeGraph(home.database).find(memory.project)
    if project and os.path.isdir(project.root):
        return Path(project.root)
    if (
        not folder
        or not os.path.isdir(folder)
        or location.project_of_folder(home, Path(folder)) != memory.project
    ):
        return None
    return toplevel(Path(folder), home.settings.environ)
