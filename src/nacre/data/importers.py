"""Import sources, and helpers that read files, notes and values from other systems.

Zips are not unpacked, links are not followed, and large files are not read as a whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from nacre.base import json
from nacre.base.environment import install_hint
from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, content_hash, from_ms, to_millisecond, uuid7
from nacre.base.lazy import load
from nacre.base.plain import string
from nacre.base.plugins import IMPORTERS, find_plugins, load_plugin
from nacre.base.text import normalise, one_line, title_of, to_bytes
from nacre.base.times import parsed
from nacre.base.zips import BROKEN
from nacre.errors import (
    InvalidInputError,
    InvalidMemoryError,
    NotFoundError,
    UnavailableError,
)
from nacre.hosts.files import drop_blocks
from nacre.store.foreign import open_foreign
from nacre.values import reports
from nacre.values.memory import Confidence, Kind, Memory, Retirement, Source
from nacre.values.review import NEUTRAL_QUALITY, Usage
from nacre.values.session import Session, Speaker, Turn
from nacre.vault.documents import MANAGED, Values, as_text, assemble, parse, split
from nacre.vault.documents import load as documents_load
from nacre.vault.files import LEDGER, is_memory_file, slugify

Clean = Callable[[str], str]

MOST_FILES = 100_000
MOST_BYTES = 8_000_000
"""Maximum size of a note or page in bytes. Larger files are reported and skipped."""

MOST_EXPORT_BYTES = 256_000_000
"""Maximum size of an export in one file, in bytes."""

_HEAD_BYTES = 65_536
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv", ".obsidian"})
_DATABASE = b"SQLite format 3\x00"


@frozen
class Leaf:
    """A file to import.

    ``read`` returns up to the given number of bytes. ``name`` can contain secrets.
    """

    size: int
    modified: datetime
    read: Callable[[int], bytes]
    name: str


@dataclass(frozen=True)
class Tree:
    """The files to import, with secrets removed from their names.

    ``root`` is a file if ``single`` is set, and otherwise a folder or zip. Call ``clean`` before
    splitting a string, because it cannot recognise half a secret.
    """

    root: Path
    leaves: Mapping[str, Leaf]
    single: bool = False
    clean: Clean = str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All file names in alphabetical order."""
        return tuple(sorted(self.leaves))

    def matching(self, suffix: str) -> Iterator[str]:
        """Return the names of files with the given suffix, ignoring case."""
        return (name for name in self.names if name.lower().endswith(suffix))

    def text(self, name: str, most: int = MOST_BYTES) -> str | None:
        """Return a file's text, or ``None`` if the file is too large, unreadable or not text."""
        leaf = self.leaves[name]
        if leaf.size > most:
            return None
        try:
            data = leaf.read(most)
        except BROKEN:
            return None
        return (
            None
            if b"\x00" in data
            else data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
        )

    def head(self, name: str) -> bytes:
        """Return the first 64 KiB of a file, or nothing if it is unreadable."""
        try:
            return self.leaves[name].read(_HEAD_BYTES)
        except BROKEN:
            return b""

    def is_database(self, name: str) -> bool:
        """Return True if a file is a SQLite database."""
        return self.head(name).startswith(_DATABASE)

    def path_of(self, name: str) -> Path:
        """Return a file's path on disk. For a file in a zip, it begins with the path of the zip."""
        return self.root if self.single else self.root / self.leaves[name].name

    def grown(self, leaves: Mapping[str, str]) -> Tree:
        """Return a tree with the same root and other files: ``leaves`` maps names to text."""
        modified = next(iter(self.leaves.values())).modified
        written = {
            name: _written(name, text, modified) for name, text in leaves.items() if safe_name(name)
        }
        return Tree(self.root, _by_name(written.items(), self.clean), clean=self.clean)


def open_tree(path: Path, clean: Clean = str) -> Tree:
    """Return the files in a folder or zip, or a single file, for import.

    Raises NotFoundError, or InvalidInputError for a damaged zip or too many files.
    """
    path = path.expanduser().absolute()
    if path.is_dir():
        return Tree(path, _by_name(_bounded(_folder(path)), clean), clean=clean)
    if not path.exists():
        raise NotFoundError(f"{path} does not exist", hint="check the path")
    if not path.is_file():
        raise InvalidInputError(
            f"{path} is neither a file nor a folder", hint="give the other memory system's data"
        )
    leaf = _leaf(path, path.name)
    if zipfile.is_zipfile(path) and leaf.read(len(_DATABASE)) != _DATABASE:
        try:
            return Tree(path, _by_name(_bounded(_archive(path)), clean), clean=clean)
        except BROKEN as error:
            raise InvalidInputError(
                f"{path} is a broken zip: {error}", hint="create it again"
            ) from error
    return Tree(path, _by_name([(path.name, leaf)], clean), single=True, clean=clean)


def safe_name(name: str) -> bool:
    """Return True if a relative path cannot lead outside its folder."""
    pure = PurePosixPath(name)
    return (
        bool(name)
        and not pure.is_absolute()
        and ".." not in pure.parts
        and "\\" not in name
        and "\x00" not in name
    )


def _folder(root: Path) -> Iterator[tuple[str, Leaf]]:
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            path = Path(parent, name)
            try:
                if stat.S_ISREG(path.lstat().st_mode):
                    name = path.relative_to(root).as_posix()
                    yield name, _leaf(path, name)
            except OSError:
                continue


def _archive(path: Path) -> Iterator[tuple[str, Leaf]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.is_dir() or not safe_name(info.filename) or info.flag_bits & 1:
                continue
            try:
                modified = datetime(*info.date_time, tzinfo=UTC)
            except ValueError:
                modified = datetime(1980, 1, 1, tzinfo=UTC)
            read = _from_zip(path, info.filename)
            yield info.filename, Leaf(info.file_size, modified, read, info.filename)


def _by_name(leaves: Iterable[tuple[str, Leaf]], clean: Clean) -> dict[str, Leaf]:
    by_name: dict[str, Leaf] = {}
    for name, leaf in leaves:
        original = own = PurePosixPath(clean(name))
        while str(own) in by_name:
            own = original.with_name(f"{original.stem}-{len(by_name)}{original.suffix}")
        by_name[str(own)] = leaf
    return by_name


def _bounded(leaves: Iterator[tuple[str, Leaf]]) -> Iterator[tuple[str, Leaf]]:
    for number, item in enumerate(leaves):
        if number == MOST_FILES:
            raise InvalidInputError(
                f"there are more than {MOST_FILES:,} files to import",
                hint="give the folder that contains only the memories",
            )
        yield item


def _leaf(path: Path, name: str) -> Leaf:
    def read(limit: int) -> bytes:
        with path.open("rb") as file:
            return file.read(limit)

    return Leaf(path.stat().st_size, modified_of(path), read, name)


def _from_zip(path: Path, name: str) -> Callable[[int], bytes]:
    def read(limit: int) -> bytes:
        with zipfile.ZipFile(path) as archive, archive.open(name) as file:
            return file.read(limit)

    return read


def _written(name: str, text: str, modified: datetime) -> Leaf:
    data = to_bytes(text)
    return Leaf(len(data), modified, lambda limit: data[:limit], name)


# -- Sources and their items -----------------------------------------------------------------------


@frozen
class ImportedMemory:
    """A memory from another system, in nacre's format.

    ``cwd`` is the folder where the memory was learned, if the source does not name projects.
    """

    memory: Memory
    usage: Usage | None = None
    cwd: str | None = None


@frozen
class Skipped:
    """One or more (``count``) similar items that were not imported, with the reason.

    ``where`` is a file, an id or a description.
    """

    where: str
    reason: str
    count: int = 1


@frozen
class Page:
    """A project page or the user profile. ``path`` is relative to the vault."""

    path: str
    document: str


@frozen
class Operation:
    """A ledger entry of another vault."""

    values: Values


@frozen
class Talk:
    """A session with all its turns."""

    session: Session
    project: str | None
    file: str | None
    turns: list[Turn]


@frozen
class Transcript:
    """A transcript file from which nacre reads sessions."""

    path: Path


Item = ImportedMemory | Skipped | Page | Operation | Talk | Transcript


@frozen
class ImportSource:
    """Functions that recognise and read the files of another memory system.

    ``read`` yields damaged files as :class:`Skipped`.
    """

    name: str
    label: str
    recognise: Callable[[Tree], bool]
    read: Callable[[Tree], Iterator[Item]]


# -- Databases among the files ---------------------------------------------------------------------


Tables = Mapping[str, frozenset[str]]
"""Required columns, keyed by table."""


def database_with(tree: Tree, tables: Tables) -> Path | None:
    """Return the path of the first SQLite database with the given tables, if any.

    Databases in zips are ignored.
    """
    if tree.root.is_file() and not tree.single:
        return None
    for name in tree.names:
        if not tree.is_database(name):
            continue
        try:
            with open_foreign(tree.path_of(name)) as database:
                if all(
                    columns <= set(database.columns(table)) for table, columns in tables.items()
                ):
                    return tree.path_of(name)
        except InvalidInputError:
            continue
    return None


def refused(tree: Tree, reason: str) -> Iterator[Skipped]:
    """Yield every database as a skipped item. Raises InvalidInputError if one is unreadable."""
    for name in tree.names:
        with open_foreign(tree.path_of(name)):
            yield Skipped(str(tree.path_of(name)), reason)


# -- Notes as statements ---------------------------------------------------------------------------
# Each list item or paragraph is a statement, which belongs to the headings above it.


_MIN_CHARACTERS = 12
"""Minimum length of a statement that consists of a single ASCII word."""

_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_ITEM = re.compile(r"^(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)")
_LEAD = re.compile(r"^\*\*(.{2,80}?)[:：]?\*\*\s*[:：–—-]?\s*")
_BOLD = re.compile(r"\*\*([^*\n]{2,80}?)[:：]?\*\*[:：]?")
_BOLD_LEVEL = 7
_RULE = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,})\s*$")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@frozen
class Note:
    """A statement in a Markdown file, with the headings above it, outermost first."""

    headings: tuple[str, ...]
    text: str

    @property
    def subject(self) -> str:
        """The bold beginning of the statement, or else its first sentence."""
        lead = _LEAD.match(self.text)
        return one_line(lead.group(1)) if lead else title_of(self.text)

    @property
    def is_long_enough(self) -> bool:
        """True if the statement has at least two words, or one long word."""
        words = normalise(self.text)
        return " " in words or len(words) >= _MIN_CHARACTERS // (1 if words.isascii() else 3)


def notes(text: str, *, allow_short: bool = False) -> Iterator[Note]:
    """Yield the distinct statements in Markdown, each with the code block that follows it.

    Blocks that nacre wrote are skipped, and so are very short statements unless ``allow_short`` is
    set.
    """
    reader, texts = _Reader(), set[str]()
    for line in _COMMENT.sub("", drop_blocks(text)).splitlines():
        reader.take(line)
    reader.flush()
    for note in reader.found:
        is_statement = normalise(note.text) if allow_short else note.is_long_enough
        if is_statement and note.text not in texts:
            texts.add(note.text)
            yield note


def kind_of(headings: Sequence[str], default: Kind) -> Kind:
    """Guess a memory's kind from the headings above it, starting with the innermost."""
    for heading in reversed(headings):
        lowered = heading.lower()
        for kind, words in _table():
            if any(word in lowered for word in words):
                return kind
    return default


class _Reader:
    def __init__(self) -> None:
        self.found: list[Note] = []
        self.headings: list[tuple[int, str]] = []
        self.lines: list[str] = []
        self.lead = ""
        self.fence = ""
        self.is_item = self.was_item = self.can_continue = False

    def take(self, line: str) -> None:
        mark = _FENCE.match(line)
        heading = _HEADING.match(line)
        if self.fence or mark:
            if mark and not self.lines and self.can_continue:
                # The code block belongs to the last statement.
                self.lines, self.is_item = [self.found.pop().text, ""], self.was_item
            if mark and (not self.fence or mark.group(1).startswith(self.fence)):
                self.fence = "" if self.fence else mark.group(1)
            self.lines.append(line)
        elif heading or _RULE.match(line):
            self.flush()
            self.lead, self.can_continue = "", False
            if heading:
                self.enter(len(heading.group(1)), one_line(heading.group(2)))
        elif _ITEM.match(line):
            self.flush()
            self.lines, self.is_item = [_ITEM.sub("", line)], True
        elif not line.strip() and self.is_item:
            self.lines.append("")  # an indented item can continue after a blank line
        elif not line.strip():
            self.flush()
        elif self.is_item and not line[0].isspace() and self.lines and not self.lines[-1]:
            self.flush()
            self.lead, self.lines = "", [line]
        else:
            self.lines.append(line)

    def enter(self, level: int, heading: str) -> None:
        self.headings = [(above, text) for above, text in self.headings if above < level] + [
            (level, heading)
        ]

    def flush(self) -> None:
        text = "\n".join(self.lines).strip()
        is_item, self.is_item, self.lines = self.is_item, False, []
        if not text:
            return
        if not is_item and text.endswith((":", "：")) and "\n" not in text:
            self.lead = text.rstrip(":： ")  # it introduces the following list
            return
        bold = None if is_item else _BOLD.fullmatch(text)
        if bold:
            self.enter(_BOLD_LEVEL, one_line(bold.group(1)))
            return
        above = tuple(heading for _, heading in self.headings)
        self.found.append(Note((*above, self.lead) if is_item and self.lead else above, text))
        self.was_item, self.can_continue = is_item, True


@cache
def _table() -> tuple[tuple[Kind, tuple[str, ...]], ...]:
    text = files("nacre.data").joinpath("headings.toml").read_text(encoding="utf-8")
    return tuple(
        (Kind(kind), tuple(values["words"])) for kind, values in tomllib.loads(text).items()
    )


# -- Sources by name -------------------------------------------------------------------------------


SOURCES: dict[str, str | None] = {
    "nacre": "nacre.data.importers:SOURCE",
    "agenr": None,
    "claude-mem": None,
    "mcp-memory-service": None,
    "letta": None,
    "chatgpt": "nacre.data.imports_agents:CHATGPT",
    "claude-ai": "nacre.data.imports_agents:CLAUDE_AI",
    "mem0": None,
    "clawxmemory": None,
    "codex-memories": "nacre.data.imports_agents:SOURCE_CODEX_MEMORIES",
    "claude-memory": "nacre.data.imports_agents:SOURCE_CLAUDE_MEMORY",
    "basic-memory": None,
    "agent-knowledge": None,
    "openclaw": "nacre.data.imports_agents:SOURCE_OPENCLAW",
    "instructions": "nacre.data.imports_agents:SOURCE_INSTRUCTIONS",
}
"""Import sources in the order of detection. nacre-extras provides those without a module."""


def sources() -> list[str]:
    """Return the names of all import formats in the order of detection, plugins first."""
    return [*sorted(find_plugins(IMPORTERS).keys() - SOURCES.keys()), *SOURCES]


def detect(tree: Tree) -> ImportSource:
    """Return the import format that recognises the files. Raises InvalidInputError if none does."""
    for name in sources():
        with suppress(UnavailableError):
            if (source := get_source(name)).recognise(tree):
                return source
    hint = f"give the format: --from {', '.join(sources())}; for transcripts, use nacre ingest"
    if "agenr" not in find_plugins(IMPORTERS):
        hint += f"; for other memory systems: {install_hint('extras')}"
    raise InvalidInputError(f"no known memory format in {tree.root}", hint=hint)


@cache
def get_source(name: str) -> ImportSource:
    """Return an import format by name.

    Raises NotFoundError, or UnavailableError without its plugin.
    """
    if point := find_plugins(IMPORTERS).get(name):
        return load_plugin(point, ImportSource)
    if name not in SOURCES:
        hint = f"use one of: {', '.join(sources())}"
        raise NotFoundError(f"there is no source {name!r}", hint=hint)
    if (place := SOURCES[name]) is None:
        raise UnavailableError(f"{name} needs a plugin", hint=install_hint("extras"))
    source: ImportSource = load(place)
    return source


# -- External values: stable ids, dates, kinds, tags -----------------------------------------------


ORIGIN = "imported"
"""Front matter key for the origin of an imported memory, ``{from, id, hash}``."""

RELATIONS = frozenset(
    {
        "supersedes",
        "depends_on",
        "contradicts",
        "specializes",
        "part_of",
        "alternative_to",
        "builds_on",
        "elaborates",
    }
)
"""Names of relations that nacre shares with other systems."""

_TAG_CHARACTERS = 60
_ISO = re.compile(r"^\d{4}-\d\d-\d\d")


def imported_id(source: str, key: str, date: datetime | None) -> str:
    """Return a UUIDv7 that depends only on the source, the key and the date of an imported item."""
    digest = int.from_bytes(hashlib.blake2b(to_bytes(f"{source}\0{key}"), digest_size=16).digest())
    millisecond = max(0, int(date.timestamp() * 1000)) & 0xFFFF_FFFF_FFFF if date else 0
    return uuid7(millisecond, digest)


def words_hash(content: str) -> str:
    """Return a hash of a memory's content, used to detect later edits."""
    return content_hash(content.strip()).hex()


def shape(
    source: str,
    key: str,
    content: str,
    *,
    modified: datetime,
    subject: str | None = None,
    kind: Kind = Kind.FACT,
    date: datetime | None = None,
    updated: datetime | None = None,
    ended: str | None = None,
    file: str | None = None,
    extra: Mapping[str, Any] | None = None,
    **more: Any,
) -> Memory:
    """Build a memory from imported content, by default as a statement of the agent.

    ``date`` defaults to ``modified``, and ``ended`` is the reason for retiring the memory. Reserved
    keys in ``extra`` are dropped, because a file must not make a memory trusted.
    """
    content = content.strip()
    created = to_millisecond(date or modified)
    last = to_millisecond(updated) if updated else created
    origin = {"from": source, "id": key, "hash": words_hash(content)}
    own_values = {key: value for key, value in (extra or {}).items() if key not in MANAGED}
    values: Values = {
        "updated": last,
        "retired": Retirement(last, ended) if ended else None,
        "speaker": Speaker.AGENT,
        "confidence": Confidence.EXTRACTED,
        **more,
    }
    return Memory(
        id=imported_id(source, key, date),
        kind=kind,
        subject=one_line(subject or "") or title_of(content),
        content=content,
        created=created,
        source=Source(file=file),
        extra={**own_values, ORIGIN: origin},
        **values,
    )


def front_of(tree: Tree, name: str) -> tuple[Values, str]:
    """Return the front matter and body of a file, with secrets removed.

    Raises InvalidMemoryError if the front matter is broken.
    """
    front, body = split(tree.text(name) or "")
    return cleaned(documents_load(front) if front else {}, tree.clean), tree.clean(body).strip()


def readable_front(tree: Tree, name: str) -> Values:
    """Return a file's front matter, or an empty dictionary if it is broken."""
    try:
        return front_of(tree, name)[0]
    except InvalidMemoryError:
        return {}


def json_of(tree: Tree, name: str) -> Any:
    """Parse a JSON file and remove secrets. Return ``None`` if the file is invalid or too large."""
    try:
        return cleaned(json.parse(tree.text(name, MOST_EXPORT_BYTES) or "null"), tree.clean)
    except ValueError:
        return None


def cleaned(value: Any, clean: Clean) -> Any:
    """Remove secrets and lone surrogates from all strings in a JSON value."""
    if isinstance(value, str):
        return clean(value if value.isascii() else to_bytes(value).decode("utf-8"))
    if isinstance(value, dict):
        return {cleaned(str(key), clean): cleaned(item, clean) for key, item in value.items()}
    return [cleaned(item, clean) for item in value] if isinstance(value, list) else value


def moment(value: object) -> datetime | None:
    """Parse an ISO date or a Unix time, or return ``None`` if the value is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return from_ms(round(value if value > 100_000_000_000 else value * 1000))
        except (OverflowError, ValueError):
            return None
    if not isinstance(value, str) or not _ISO.match(value.strip()):
        return None
    return parsed(value.strip())


def modified_of(path: Path) -> datetime:
    """Return the time of a file's last modification."""
    return at_ms(path.stat().st_mtime_ns // 1_000_000)


def from_note(
    source: str,
    tree: Tree,
    name: str,
    note: Note,
    default: Kind,
    cwd: str | None = None,
    **more: Any,
) -> ImportedMemory:
    """Build a memory from a statement in a file. ``more`` overrides fields of the memory."""
    file = str(tree.path_of(name))
    values: Values = {
        "key": f"{file}#{words_hash(note.text)}",
        "modified": tree.leaves[name].modified,
        "subject": note.subject,
        "kind": kind_of(note.headings, default),
        "file": file,
        **more,
    }
    return ImportedMemory(shape(source, content=note.text, **values), cwd=cwd)


def read_note(tree: Tree, name: str) -> tuple[Values, str] | Skipped:
    """Return a file's front matter and body, or why the file cannot be read."""
    if tree.text(name) is None:
        return Skipped(name, "too large or not text")
    try:
        return front_of(tree, name)
    except InvalidMemoryError as error:
        return Skipped(name, error.message)


def objects_of(value: object) -> list[Values]:
    """Return the dictionaries in a list, which may be given as JSON text."""
    return [item for item in listed(value) if isinstance(item, dict)]


def listed(value: object) -> list[Any]:
    """Return a list, parsed if it is JSON text. Other values give an empty list."""
    value = _parsed_text(value)
    return value if isinstance(value, list) else []


def named(value: object) -> Values:
    """Return a dictionary, parsed if it is JSON text. Other values give an empty dictionary."""
    value = _parsed_text(value)
    return value if isinstance(value, dict) else {}


def _parsed_text(value: object) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.parse(value)
    except ValueError:
        return None


def text_of(values: Mapping[str, Any], *names: str) -> str | None:
    """Return the first non-empty string under any of the given keys."""
    text = string(values, *names)
    return text.strip() if text else None


def tags_of(value: object, *more: str) -> tuple[str, ...]:
    """Return the distinct tags in a list or a comma-separated string."""
    listed: Iterable[object] = (
        value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
    )
    tags = (one_line(str(tag)).strip("#[]'\" ")[:_TAG_CHARACTERS] for tag in (*listed, *more))
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def is_true(value: object) -> bool:
    """Return True for the values true, yes and 1, including as text."""
    return str(value).strip().lower() in ("true", "yes", "1")


def project_of(name: str | None) -> str | None:
    """Return the slug for a project name from another system."""
    return (slugify(name) or None) if name else None


def between(value: object, least: float, most: float, default: float) -> float:
    """Clamp a number to a range, or return the default if the value is not a number."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return default
    return min(most, max(least, number)) if number == number else default


# -- nacre's own exports ---------------------------------------------------------------------------
# JSON lines, a zip of Markdown files, or a vault folder.


NAME = "nacre"

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_PAGE = re.compile(r"(?:identity|IDENTITY|profile|projects/[^/]+/project)\.md")
_DAMAGED_HINT = (
    "export it again; only the zip of Markdown files (nacre data export vault.zip) can be edited"
)


def _recognise(tree: Tree) -> bool:
    if tree.single:
        first = tree.head(tree.names[0]).split(b"\n", 1)[0]
        return b'"format"' in first and reports.FORMAT.encode() in first
    return any(
        {"id", "kind"} <= readable_front(tree, name).keys()
        for name in tree.names
        if is_memory_file(name)
    )


def _files(tree: Tree) -> Iterator[Item]:
    for name in tree.names:
        if name == LEDGER:
            lines = (tree.text(name) or "").split("\n")
            yield from (Operation(values) for line in lines if (values := _object(tree, line)))
        elif _PAGE.fullmatch(name):
            yield Page(name, tree.clean(tree.text(name) or ""))
        elif is_memory_file(name):
            yield _from_file(tree, name)


def _from_file(tree: Tree, name: str) -> Item:
    text = tree.text(name)
    if text is None:
        return Skipped(name, "too large or not text")

    def make() -> Memory:
        _, body = split(text)  # the values in front matter are cleaned later
        return parse(
            text.removesuffix(body) + tree.clean(body),
            name,
            new_id=lambda: imported_id(NAME, f"{tree.root}#{name}", None),
            modified=tree.leaves[name].modified,
        )

    return _checked(tree, name, make, None)


def _lines(tree: Tree) -> Iterator[Item]:
    digest, lines, is_complete = hashlib.sha256(), 0, False
    talk = None
    with tree.path_of(tree.names[0]).open("rb") as file:
        for line in file:
            values = _object(tree, line) or {}
            kind = values.get("type")
            if kind == reports.TRAILER:
                is_complete = (values.get("lines"), values.get("sha256")) == (
                    lines,
                    digest.hexdigest(),
                )
                break
            digest.update(line)
            lines += 1
            if talk and kind != reports.TURN:
                yield talk
                talk = None
            try:
                if kind == reports.SESSION:
                    talk = json.convert({**values, "turns": []}, Talk)
                elif kind == reports.TURN and talk:
                    talk.turns.append(json.convert(values.get("turn"), Turn))
                else:
                    yield from _item(tree, lines, values)
            except ValueError as error:
                yield Skipped(f"line {lines}", str(error))
    if talk:
        yield talk
    if not is_complete:
        raise InvalidInputError(f"{tree.root} is incomplete or was changed", hint=_DAMAGED_HINT)


def _item(tree: Tree, line: int, values: Values) -> Iterator[Item]:
    kind = values.get("type")
    if kind == reports.HEADER:
        if not isinstance(values.get("version"), int) or values["version"] > reports.VERSION:
            raise InvalidInputError(
                f"{tree.root} was written by a newer nacre", hint="upgrade nacre, then import it"
            )
    elif kind == reports.MEMORY:
        yield _from_line(tree, line, values)
    elif kind == reports.PAGE and _PAGE.fullmatch(str(values.get("path"))):
        yield Page(str(values["path"]), str(values.get("document") or ""))
    elif kind == reports.LEDGER_ENTRY and isinstance(values.get("entry"), dict):
        yield Operation(values["entry"])
    else:
        yield Skipped(f"line {line}", f"unknown kind of record: {kind}")


def _from_line(tree: Tree, line: int, values: Values) -> Item:
    front, path = values.get("front"), str(values.get("path") or "")
    if not isinstance(front, dict) or (path and not safe_name(path)):
        return Skipped(f"line {line}", "not a memory")
    where = path or f"line {line}"
    modified = moment(front.get("created")) or tree.leaves[tree.names[0]].modified

    def make() -> Memory:
        return assemble(
            {str(key): as_text(value) for key, value in front.items()},
            str(values.get("content") or ""),
            path or "memory.md",
            new_id=lambda: imported_id(NAME, f"{tree.root}#{where}", None),
            modified=modified,
        )

    usage = json.convert(values["usage"], Usage) if values.get("usage") else None
    if usage:
        usage = replace(usage, quality=between(usage.quality, 0, 1, NEUTRAL_QUALITY))
    return _checked(tree, where, make, usage)


def _checked(tree: Tree, where: str, make: Callable[[], Memory], usage: Usage | None) -> Item:
    try:
        memory = make()
    except InvalidMemoryError as error:
        return Skipped(where, error.message)
    if not _ID.fullmatch(memory.id):
        memory = replace(memory, id=imported_id(NAME, memory.id, None))
    return ImportedMemory(
        replace(memory, project=project_of(tree.clean(memory.project or ""))), usage
    )


def _object(tree: Tree, line: bytes | str) -> Values | None:
    try:
        value = cleaned(json.parse(line), tree.clean)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


SOURCE = ImportSource(
    NAME,
    "nacre data export",
    _recognise,
    lambda tree: _lines(tree) if tree.single else _files(tree),
)
