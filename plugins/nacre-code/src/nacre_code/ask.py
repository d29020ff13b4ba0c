"""Questions about code: callers, importers, impact, and the memories that mention it."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from posixpath import basename
from typing import Annotated

from nacre.base import files as base_files
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.text import identifiers
from nacre.errors import NacreError, NotFoundError, UnavailableError
from nacre.home import location
from nacre.home.home import Home
from nacre.memories import edit
from nacre.memories.graph import CODE, Limit
from nacre.operations import operation
from nacre.values import review
from nacre.values.fields import OnlyProject
from nacre.values.memory import Memory
from nacre.vault import git
from nacre_code.languages import language_of
from nacre_code.store import FILE, CodeGraph, CodeMentions, Mention, Symbol

# ----------------------------------------------------------------------------
# Code names in memories: paths, names in backticks and code blocks, and words that look like code
# (``camelCase``, ``a.b``, ``snake_case``).


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
    """Index the names of code in new and changed memories, unless the database is not writable."""
    if home.database.unwritable:
        return
    with suppress(UnavailableError):  # another process is writing, or the disk is full
        store = CodeMentions(home.database)
        while memories := store.unread(_MEMORIES_PER_BATCH):
            store.put(
                (memory, mentions(f"{subject}\n{content}")) for memory, subject, content in memories
            )


def mentions(text: str) -> list[Mention]:
    """Return up to ``_MAX_NAMES`` different names of code in a memory's text."""
    by_name: dict[str, Mention] = {}
    for mention in _mentions_in(text):
        by_name.setdefault(mention.written, mention)
    return list(by_name.values())[:_MAX_NAMES]


def symbol_parts(written: str) -> list[str]:
    """Split a qualified name at its separators."""
    return [part for part in _SEPARATOR.split(written) if part]


def key_of(written: str) -> str:
    """Return a name's lookup key: its last component or file name, in lower case."""
    if is_path(written):
        return basename(written).lower()
    parts = symbol_parts(written)
    return parts[-1].lower() if parts else written.lower()


def is_path(written: str) -> bool:
    """Return True if a name is the path of a source file."""
    return language_of(written) is not None or ("/" in written and "." in basename(written))


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
# Results.


@frozen
class CodeReport:
    """The result of reading a repository."""

    project: str
    root: str
    files: int
    read: int
    unchanged: int
    """Number of files that were already indexed."""

    removed: int
    skipped: int
    """Number of files that are too long, binary or minified."""

    failed: tuple[str, ...]
    """Paths of files that crashed the parser."""

    left_out: int
    """Number of files beyond the limit."""

    symbols: int
    edges: int
    languages: dict[str, int]
    seconds: float


@frozen
class CodeNode:
    """A symbol and the line of its definition, or a file if ``name`` is empty."""

    id: str
    project: str
    path: str
    name: str
    kind: str
    line: int


@frozen
class CodeLink:
    """A node linked to the requested symbol by a path of length ``depth``.

    ``via`` is the next node on that path, and ``line`` is in the node's own file.
    """

    rel: str
    node: CodeNode
    line: int
    depth: int = 1
    via: str | None = None
    note: str = ""


@frozen
class CodeMemory:
    """A memory that mentions code. ``nodes`` are the ids of the symbols that its ``names`` match."""

    memory: Memory
    names: tuple[str, ...]
    nodes: tuple[str, ...]


@frozen
class CodeAnswer:
    """The answer to a question about code, or only ``choices`` if the name is ambiguous."""

    asked: str
    nodes: tuple[CodeNode, ...] = ()
    choices: tuple[CodeNode, ...] = ()
    links: tuple[CodeLink, ...] = ()
    memories: tuple[CodeMemory, ...] = ()
    more: bool = False


@frozen
class ForgottenCode:
    """The result of deleting a project's code index. ``was_there`` is False if there was none."""

    project: str
    was_there: bool


@frozen
class StaleFile:
    """A file that was changed, or deleted (``is_gone``), after a memory mentioned it."""

    path: str
    edits: int
    sessions: int
    last: datetime
    is_gone: bool

    def __str__(self) -> str:
        times = "once" if self.edits == 1 else f"{self.edits:,} times"
        return f"{self.path} is gone" if self.is_gone else f"{self.path} changed {times} since"


@frozen
class StaleMemory:
    """A memory that is probably out of date, with a confidence from 0 to 1."""

    memory: Memory
    confidence: float
    files: tuple[StaleFile, ...]
    sessions: int
    lag_days: float
    symbols: tuple[str, ...]
    """Names of code in the memory."""

    missing: tuple[str, ...]
    """Names of code that the memory's files no longer contain."""

    @property
    def why(self) -> str:
        files = "; ".join(map(str, self.files[:3]))
        return f"{files}; missing now: {', '.join(self.missing[:5])}" if self.missing else files


@frozen
class Staleness:
    """Memories that might be out of date, most likely first. ``looked_at`` counts the memories
    checked.
    """

    memories: tuple[StaleMemory, ...]
    looked_at: int
    total: int


# ----------------------------------------------------------------------------
# Resolution of a name to symbols and files.


def find_nodes(home: Home, name: str, project: str | None, near: str | None) -> list[Symbol]:
    """Return the symbols or files that a name, a path, or both (``src/a.py#A.f``) can refer to.

    A dotted name can begin with modules. Raises NotFoundError if nothing matches.
    """
    target, graph = name.strip(), CodeGraph(home.database)
    if target.startswith(CODE):
        project, _, target = target.removeprefix(CODE).partition("/")
    path, hash_sign, symbol = target.partition("#")
    if hash_sign and (is_path(path) or "/" in path):
        symbols = [
            item for item in _symbols(graph, symbol, project) if have_same_ending(item.path, path)
        ]
    else:
        symbols = _files(graph, target, project) if is_path(target) else []
        symbols = symbols or _symbols(graph, target, project)
    if not symbols:
        projects = graph.projects()
        raise NotFoundError(
            f"there is no code named {name!r}",
            hint="run nacre graph ingest-code to read this folder's repository"
            if not projects
            else f"projects with code: {', '.join(projects[:5])}; run nacre graph ingest-code for new code",
        )
    return [item for item in symbols if item.project == near] or symbols


def find_files(home: Home, name: str, project: str | None, near: str | None) -> list[Symbol]:
    """Return the files that match a path or a dotted module name."""
    target, graph = name.strip().removeprefix(CODE), CodeGraph(home.database)
    symbols = _files(graph, target, project)
    if not symbols and not is_path(target):
        place = "/".join(symbol_parts(target.replace("/", ".")))
        for ending in ".py /__init__.py .rs /mod.rs .ts .js .java".split():
            symbols = symbols or _files(graph, place + ending, project)
    return [item for item in symbols if item.project == near] or symbols


def node_of(symbol: Symbol) -> CodeNode:
    """Convert a symbol from the database."""
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
    """Return those ``symbols``, all with the same last component, to which a dotted name can refer.

    Case is ignored only if no name matches exactly.
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


def _symbols(graph: CodeGraph, name: str, project: str | None) -> list[Symbol]:
    parts = symbol_parts(name.split("(")[0])
    return matching_symbols(graph.named(parts[-1], project), ".".join(parts)) if parts else []


def _files(graph: CodeGraph, path: str, project: str | None) -> list[Symbol]:
    plain = path.replace("\\", "/").removeprefix("./")
    matches = [
        file
        for file in graph.files_named(basename(plain), project)
        if have_same_ending(file.path, plain)
    ]
    return [file for file in matches if file.path == plain] or matches


def _name_parts(symbol: Symbol) -> list[str]:
    path = symbol.path.rsplit(".", 1)[0].removesuffix("/__init__").split("/")
    return [*path, *(symbol.qualified.split(".") if symbol.kind != FILE else ())]


# ----------------------------------------------------------------------------
# Parameters.


Depth = Annotated[int, bounds("Number of steps from caller to caller.", ge=1, le=10)]
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
# Callers, importers, memories about code, and the impact of a change.


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
    links, _ = _walk(home, _with_members(home, symbols), ("calls", "inherits"), depth)
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
    module_name = name.strip()
    outside = CodeGraph(home.database).importers(module_name, project, limit + 1)
    outside = [item for item in outside if item[0].project == near] or outside
    symbols = find_files(home, module_name, project, near)
    if outside and not is_path(
        module_name
    ):  # a library is not a file whose path ends with its name
        symbols = [
            item
            for item in symbols
            if item.path.removesuffix("/__init__.py").split(".")[0] == module_name
        ]
    links, _ = _walk(home, symbols, ("imports",), 1)
    links += [
        CodeLink("imports", node_of(item), item.line, note=module * (module != module_name))
        for item, module in outside
    ]
    if not links and not symbols:
        raise NotFoundError(
            f"no known file imports {module_name!r}",
            hint="give the path of a file or the name of a module",
        )
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
    return _answer(name, symbols, (), limit, _memories_of(home, _with_members(home, symbols)))


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
    links, reached = _walk(home, _with_members(home, symbols), _RELATIONS, depth)
    return _answer(name, symbols, links, limit, _memories_of(home, reached))


def _answer(
    name: str,
    symbols: Sequence[Symbol],
    links: Sequence[CodeLink],
    limit: int,
    memories: Sequence[CodeMemory] = (),
) -> CodeAnswer:
    nodes = tuple(map(node_of, symbols))
    if len(nodes) > 1:
        return CodeAnswer(name, choices=nodes[:_MAX_CHOICES], more=len(nodes) > _MAX_CHOICES)
    return CodeAnswer(
        name,
        nodes,
        links=tuple(links[:limit]),
        memories=tuple(memories[:limit]),
        more=max(len(links), len(memories)) > limit,
    )


def _with_members(home: Home, symbols: Sequence[Symbol]) -> list[Symbol]:
    """Return a symbol and its members, or nothing for an ambiguous name."""
    if len(symbols) > 1:
        return []
    below = CodeGraph(home.database).siblings(symbols[0])
    return below if symbols[0].kind == FILE else [symbols[0], *below]


def _walk(
    home: Home, start: Sequence[Symbol], rels: Sequence[str], depth: int
) -> tuple[list[CodeLink], list[Symbol]]:
    graph = CodeGraph(home.database)
    reached = {symbol.row: symbol for symbol in start}
    ring = list(reached)
    steps: list[tuple[int, str, int, int, int]] = []
    for distance in range(1, depth + 1):
        edges = graph.edges(ring, rels)
        fresh = [
            (target, rel, source, line, distance)
            for target, rel, source, line in edges
            if source not in reached
        ]
        ring = list(dict.fromkeys(source for _, _, source, _, _ in fresh))[:_MAX_NODES]
        reached |= graph.of_rows(ring)
        steps += [step for step in fresh if step[2] in reached]
        if not ring or len(reached) >= _MAX_NODES:
            break
    links = [
        CodeLink(rel, node_of(reached[source]), line, distance, node_of(reached[target]).id)
        for target, rel, source, line, distance in steps
    ]
    links.sort(
        key=lambda link: (link.depth, link.node.project, link.node.path, link.line, link.node.name)
    )
    return links, list(reached.values())


def _memories_of(home: Home, symbols: Sequence[Symbol]) -> list[CodeMemory]:
    edit.catch_up(home)
    catch_up_mentions(home)
    by_key: dict[str, list[Symbol]] = defaultdict(list)
    for symbol in symbols:
        by_key[key_of(symbol.path if symbol.kind == FILE else symbol.qualified)].append(symbol)
    named: dict[str, dict[str, Symbol]] = defaultdict(dict)
    project = symbols[0].project if symbols else ""
    keys, graph = list(by_key)[:_MAX_KEYS], CodeGraph(home.database)
    for mention, memory in CodeMentions(home.database).ending(keys, project, _MAX_MENTIONS):
        for symbol in by_key[mention.key]:
            if _refers_to(graph, mention.written, symbol):
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


def _refers_to(graph: CodeGraph, written: str, symbol: Symbol) -> bool:
    if symbol.kind == FILE:
        files = graph.files_named(basename(written), symbol.project)
        candidates = [file for file in files if have_same_ending(file.path, written)]
    else:
        named = graph.named(symbol.qualified.rsplit(".", 1)[-1], symbol.project)
        candidates = matching_symbols(named, written)
    return [candidate.row for candidate in candidates] == [symbol.row]


# ----------------------------------------------------------------------------
# The source files of a repository: all files except those that git ignores. Symbolic links are not
# followed, and no code is run.


MAX_BYTES = 1_000_000
"""Maximum size of a source file. Larger files are probably data or generated code."""

_MANIFEST = re.compile(r"(?:^|/)(?:go\.mod|Cargo\.toml|[jt]sconfig[^/]*\.json)$")
"""Paths of manifests, which name packages and modules."""

_SKIPPED_FOLDERS = frozenset(
    "node_modules __pycache__ venv env dist build target vendor site-packages".split()
)
_LINE_BYTES = 400
_SMALL = 50_000
_HEAD = 8_192


@frozen
class Listing:
    """The source files and manifests in a folder. ``left_out`` counts files beyond the limit."""

    code: tuple[str, ...]
    manifests: tuple[str, ...]
    left_out: int


def toplevel(path: Path, environ: Mapping[str, str]) -> Path:
    """Return the git working tree that contains a folder.

    Return the folder itself if there is none or if git ignores the folder.
    """
    folder = Path(os.path.abspath(path))
    root = next(
        (
            candidate
            for candidate in (folder, *folder.parents)
            if os.path.lexists(candidate / ".git")
        ),
        folder,
    )
    if root != folder:
        with suppress(NacreError):
            git_program = git.GitProgram(root, environ)
            if not git_program.attempt("check-ignore", "-q", str(folder)).returncode:
                return folder
    return root


def list_code(root: Path, environ: Mapping[str, str], most: int) -> Listing:
    """List up to ``most`` source files of a working tree."""
    command = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    try:
        is_repository = os.path.lexists(root / ".git")
        output = git.GitProgram(root, environ).run(*command) if is_repository else None
    except NacreError:  # git is missing or refuses the repository
        output = None
    paths = list(_files_below(root)) if output is None else os.fsdecode(output).split("\0")
    code = sorted(path for path in paths if language_of(path) and path.isprintable())
    manifests = sorted(filter(_MANIFEST.search, paths))
    return Listing(tuple(code[:most]), tuple(manifests[:most]), max(0, len(code) - most))


def read_file(root: Path, path: str) -> bytes | None:
    """Return a source file's bytes, or ``None`` if it is missing, outside the folder, too long,
    binary or minified.
    """
    place = root / path
    inside = os.path.join(os.path.realpath(root), os.path.dirname(path)).rstrip(os.sep)
    if ".." in path.split("/") or os.path.realpath(place.parent) != os.path.normpath(inside):
        return None
    try:
        with base_files.open_to_read(place) as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        return None
    is_minified = len(data) > _SMALL and data.count(b"\n") * _LINE_BYTES < len(data)
    return None if len(data) > MAX_BYTES or is_minified or b"\0" in data[:_HEAD] else data


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
"""Maximum number of memories to check per run, starting with the latest."""

MIN_MARKED = 0.2
"""Minimum confidence to mark a memory as possibly outdated."""

_SESSIONS = 5
"""Number of sessions with changes above which confidence does not grow."""

_LAG_DAYS = 60
"""Number of days from memory to change above which confidence does not grow."""

_DAYS = 30

_UNCHANGED_FACTOR = 0.3
"""Confidence factor for memories whose symbols all still exist."""

_MIN_CHARACTERS = {"marked": 3, "fence": 4}


@operation("graph-stale")
def stale(
    home: Home,
    project: OnlyProject = None,
    limit: Limit = 20,
    days: Annotated[int, bounds("Number of days whose changes count.", ge=1, le=3650)] = _DAYS,
    folder: Annotated[
        str | None, bounds("Working tree to search if the project's code was not read.")
    ] = None,
) -> Staleness:
    """Return memories whose files have changed since, most confident first.

    The confidence is ``min(1, sessions / 5) · min(1, days / 60)`` times a factor for symbols. The
    factor is 0.3 if the files still contain all symbols, 0.3 + 0.7 · the missing share if some are
    missing, and 1 if all are missing or nothing can be checked.
    """
    edit.catch_up(home)
    catch_up_mentions(home)
    outdated, looked_at = _outdated(home, project, days, folder)
    return Staleness(tuple(outdated[:limit]), looked_at, len(outdated))


def _outdated(
    home: Home, project: str | None = None, days: int = _DAYS, folder: str | None = None
) -> tuple[list[StaleMemory], int]:
    store = CodeMentions(home.database)
    memories = home.memories.rows_of(store.with_paths(project, MAX_MEMORIES)).values()
    mentions_by_memory = store.within([item.id for item in memories])
    confirmed = home.reviews.stale_kept()
    assessed = (
        _assess(home, item, mentions_by_memory[item.id], confirmed.get(item.id), days, folder)
        for item in memories
    )
    outdated = [item for item in assessed if item]
    outdated.sort(key=lambda item: (-item.confidence, item.memory.id))
    return outdated, len(memories)


def note_stale(home: Home) -> None:
    """Mark memories that might be out of date, and queue the likeliest for review.

    Do nothing if the database is not writable.
    """
    if home.database.unwritable:
        return
    catch_up_mentions(home)
    outdated, _ = _outdated(home)
    marked = [
        (item.memory.id, item.confidence, item.why)
        for item in outdated
        if item.confidence >= MIN_MARKED
    ]
    home.memories.set_stale(marked)
    at = home.now_ms()
    with home.transaction():
        for memory, confidence, why in marked:
            if confidence >= review.LEAST_REVIEWED:
                home.reviews.add(memory, review.Reason.STALE, why, at, once=True)


def confidence_of(sessions: int, lag_days: float, symbols: int, missing: int) -> float:
    """Return the probability that a memory is out of date."""
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
    last_stated = max(memory.last_said, confirmed or memory.last_said)
    since = max(last_stated, home.now() - timedelta(days=days))
    paths = [item.written for item in mentions if item.manner == "path"]
    if memory.evergreen or not memory.is_active or not paths:
        return None
    changes = _changes_since(home, memory, paths, since, last_stated)
    sessions = {session for edits in changes.values() for session, _, _ in edits}
    if not sessions:
        return None
    root = _working_tree(home, memory, folder)
    files = tuple(_stale_file(path, edits, root) for path, edits in sorted(changes.items()))
    lag = (max(item.last for item in files) - last_stated) / timedelta(days=1)
    names = dict.fromkeys(
        parts[-1]
        for mention in mentions
        if len(mention.written) >= _MIN_CHARACTERS.get(mention.manner, 10_000)
        and (parts := symbol_parts(mention.written))
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
    )


def _changes_since(
    home: Home, memory: Memory, paths: Iterable[str], since: datetime, last_stated: datetime
) -> dict[str, list[tuple[int, datetime, int]]]:
    rows: dict[int, str] = {}
    for path in paths:
        for row, touched in home.deeds.files_named(basename(path)):
            if have_same_ending(touched, path):
                rows[row] = path
    changes: dict[str, list[tuple[int, datetime, int]]] = defaultdict(list)
    for row, session, began, last, count in CodeGraph(home.database).edits(
        list(rows), since, memory.project
    ):
        if began is None or began > last_stated:
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
    contents = [data for path in paths if (data := read_file(root, path.lstrip("/"))) is not None]
    if paths and not contents:
        return None
    text = b"\n".join(contents).decode("utf-8", "replace")
    return [
        symbol for symbol in symbols if not re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", text)
    ]


def _working_tree(home: Home, memory: Memory, folder: str | None) -> Path | None:
    if memory.project is None:
        return None
    project = CodeGraph(home.database).find(memory.project)
    if project and os.path.isdir(project.root):
        return Path(project.root)
    if (
        not folder
        or not os.path.isdir(folder)
        or location.project_of_folder(home, folder) != memory.project
    ):
        return None
    return toplevel(Path(folder), home.settings.environ)
