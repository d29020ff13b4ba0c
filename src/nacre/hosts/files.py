"""Hosts' files: their locations, safe reading and writing, and edits that keep their layout."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from nacre.base.frozen import frozen

_BOM = "\ufeff"
_MAX_BYTES = 20_000_000
_IS_POSIX = os.name == "posix"


class UneditableFileError(Exception):
    """Raised for a file that cannot be changed. The message gives the reason."""


@frozen
class Text:
    """The content of a text file, or ``None`` if the file does not exist."""

    content: bytes | None

    @property
    def words(self) -> str:
        """The decoded text, without a byte order mark. Raises UneditableFileError if it is not UTF-8."""
        try:
            return (self.content or b"").decode("utf-8").removeprefix(_BOM)
        except UnicodeDecodeError as error:
            raise UneditableFileError("it is not written in UTF-8") from error

    def encoded(self, words: str) -> bytes:
        """Encode new text, with a byte order mark if the file has one."""
        mark = _BOM.encode() if (self.content or b"").startswith(_BOM.encode()) else b""
        return mark + words.encode("utf-8")


def real_place(path: Path, roots: Sequence[Path]) -> Path:
    """Resolve the links in a path. Raises UneditableFileError if it is not in one of ``roots``.

    Links are allowed because some people keep their settings in a repository.
    """
    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(os.path.realpath(root)) for root in roots):
        raise UneditableFileError(f"it is behind a link to {real}")
    if path.is_symlink() and not real.exists():
        raise UneditableFileError(f"it is a link to {real}, which does not exist")
    return real


def read(path: Path) -> Text:
    """Read a text file, which need not exist. Raises UneditableFileError."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UneditableFileError("it is not a regular file")
        if status.st_size > _MAX_BYTES:
            raise UneditableFileError("it is too large")
        return Text(path.read_bytes())
    except FileNotFoundError:
        return Text(None)
    except OSError as error:
        raise UneditableFileError(f"it cannot be read: {error.strerror}") from error


def write(path: Path, content: bytes, *, mode: int) -> list[Path]:
    """Write a file atomically and return the folders created for it. Raises UneditableFileError.

    An existing file keeps its mode. A new file gets ``mode``.
    """
    try:
        folders = _make_folders(path.parent, mode | (mode & 0o444) >> 2)
        final_mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else mode
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600
        )
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if _IS_POSIX:
                    os.fchmod(file.fileno(), final_mode)
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UneditableFileError(f"it cannot be written: {error.strerror}") from error
    return folders


def remove(path: Path) -> None:
    """Remove a file. Raises UneditableFileError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UneditableFileError(f"it cannot be removed: {error.strerror}") from error


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove the folders that are empty."""
    for folder in sorted(folders, key=lambda folder_path: len(folder_path.parts), reverse=True):
        with suppress(OSError):
            folder.rmdir()


def back_up(path: Path, stamp: str, folder: Path | None) -> Path:
    """Copy a file with its permissions into ``folder`` or, if it is ``None``, next to the file.

    Return the path of the copy. Raises UneditableFileError.
    """
    above, start = folder or path.parent, f"{path.name}.nacre-{stamp}"
    copy = above / f"{start}.bak"
    number = 1
    while os.path.lexists(copy):
        number += 1
        copy = above / f"{start}-{number}.bak"
    write(copy, path.read_bytes(), mode=stat.S_IMODE(path.stat().st_mode))
    return copy


def _make_folders(folder: Path, mode: int) -> list[Path]:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for new_folder in reversed(missing):
        new_folder.mkdir(mode | 0o100)
    return missing


# -- Edits of JSON ---------------------------------------------------------------------------------
# Edits change single values and keep comments, trailing commas, order and layout. Like the hosts,
# the parser accepts comments, trailing commas, unquoted names and single quotes.


_SPACE = re.compile(r"(?:[ \t\r\n\f\v\u00a0\u2028\u2029\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_BARE = re.compile(r"[^\s,:\[\]{}\"'/]+")
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|\'(?:[^\'\\\r\n]|\\.)*\'', re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)?")
_OPENED = re.compile(
    r"^([ \t]*)[^\r\n]*[{\[][ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*)?\r?\n([ \t]+)(?=[^\s])",
    re.MULTILINE,
)
_CLOSING = {"{": "}", "[": "]"}
_MAX_INDENT_CHARACTERS = 8
_MAX_DEPTH = 200

Keys: TypeAlias = Sequence[str]


class UnparsableFileError(ValueError):
    """Raised for text that is not JSON. Comments and other JSON extensions are allowed."""


@frozen
class _Node:
    start: int
    end: int
    value: Any
    items: tuple[_Item, ...] = ()
    ends_with_comma: bool = False


@frozen
class _Item:
    start: int
    key: str
    node: _Node


def read_json_text(text: str) -> Any:
    """Parse JSON text; blank text is an empty object. Raises UnparsableFileError."""
    return _root(text).value if text.strip() else {}


def find(text: str, path: Keys) -> Any:
    """Return the value at a path of keys in JSON text, or ``None``. Raises UnparsableFileError."""
    return at(read_json_text(text), path)


def put(text: str, path: Keys, value: Any) -> str:
    """Set the value at a path of keys in JSON text, creating missing objects.

    Raises UnparsableFileError.
    """
    text = text if text.strip() else "{}" + newline(text)
    return _check_change(text, _put(text, path, value), lambda old: with_value(old, path, value))


def drop(text: str, path: Keys) -> str:
    """Remove the value at a path and any parent objects left empty. Raises UnparsableFileError."""
    above = list(path[:-1])
    holder = find(text, above)
    if not isinstance(holder, dict) or path[-1] not in holder:
        return text
    text = _check_change(
        text,
        _drop_item(text, above, lambda item: item.key == path[-1]),
        lambda old: _without(old, path),
    )
    return drop(text, above) if above and find(text, above) == {} else text


def add(text: str, path: Keys, value: Any) -> str:
    """Add a value to the list at a path, unless it is already there. Create a missing list.

    Raises UnparsableFileError.
    """
    present = find(text, path)
    if present is None:
        return put(text, path, [value])
    if not isinstance(present, list):
        raise UnparsableFileError(f"{'.'.join(path)} is not a list")
    if any(_equal(item, value) for item in present):
        return text
    node = _node_at(_root(text), path)
    return _check_change(
        text,
        _insert(text, node, lambda indent: _render(value, text, indent)),
        lambda old: with_value(old, path, [*present, value]),
    )


def filter_out(text: str, path: Keys, is_own: Callable[[Any], bool]) -> str:
    """Remove list values for which ``is_own`` is True, and the list if it becomes empty.

    Raises UnparsableFileError.
    """
    present = find(text, path)
    if not isinstance(present, list):
        return text
    kept = [value for value in present if not is_own(value)]
    after = text
    for _ in present[len(kept) :]:
        after = _drop_item(after, path, lambda item: is_own(item.node.value))
    after = _check_change(text, after, lambda old: with_value(old, path, kept))
    return after if kept or after == text else drop(after, path)


def _check_change(before: str, after: str, change: Callable[[Any], Any]) -> str:
    if not _equal(read_json_text(after), change(read_json_text(before))):
        raise UnparsableFileError("it cannot be changed safely")
    return after


def _equal(left: Any, right: Any) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def at(value: Any, path: Keys) -> Any:
    """Return the value at a path of keys in nested mappings, or ``None``."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def with_value(old: Any, path: Keys, value: Any) -> Any:
    """Return a copy of nested mappings with a new value at a path."""
    if not path:
        return value
    old = old if isinstance(old, dict) else {}
    return {**old, path[0]: with_value(old.get(path[0]), path[1:], value)}


def _without(old: Any, path: Keys) -> Any:
    if len(path) == 1:
        return {key: value for key, value in old.items() if key != path[0]}
    return {**old, path[0]: _without(old[path[0]], path[1:])}


def _node_at(node: _Node, path: Keys) -> _Node:
    for key in path:
        node = next(item.node for item in reversed(node.items) if item.key == key)
    return node


def _put(text: str, path: Keys, value: Any) -> str:
    node, remaining = _root(text), list(path)
    while remaining:
        if not isinstance(node.value, dict):
            raise UnparsableFileError(f"there is no object for {'.'.join(path)}")
        below = next((item.node for item in reversed(node.items) if item.key == remaining[0]), None)
        if below is None:
            return _insert_member(text, node, remaining, value)
        node, remaining = below, remaining[1:]
    if _equal(node.value, value):
        return text
    return (
        text[: node.start] + _render(value, text, _indent_at(text, node.start)) + text[node.end :]
    )


def _insert_member(text: str, node: _Node, path: Keys, value: Any) -> str:
    for key in reversed(path[1:]):
        value = {key: value}
    name = json.dumps(path[0], ensure_ascii=False)
    return _insert(text, node, lambda indent: f"{name}: {_render(value, text, indent)}")


def _insert(text: str, node: _Node, render: Callable[[str], str]) -> str:
    line = newline(text)
    if not node.items:
        outer = _indent_at(text, node.start)
        inner = outer + _unit(text)
        inside = text[node.start + 1 : node.end - 1]
        content = inside.rstrip() if inside.strip() else ""
        new = f"{content}{line}{inner}{render(inner)}{line}{outer}"
        return text[: node.start + 1] + new + text[node.end - 1 :]
    last = node.items[-1]
    lead = _line_before(text, last.start)
    own_line = len(lead) < last.start and not lead.strip()
    indent, gap = (lead, line + lead) if own_line else ("", " ")
    at = last.node.end
    if node.ends_with_comma:
        at = text.index(",", _skip(text, at)) + 1
    tail = _tail(text, at)
    new = f"{tail}{gap}{render(indent)}"
    new = f"{new}," if node.ends_with_comma else f",{new}"
    return text[:at] + new + text[at + len(tail) :]


def _tail(text: str, at: int) -> str:
    match = _REST_OF_LINE.match(text, at)
    tail = match[0] if match else ""
    follows = text[at + len(tail) : at + len(tail) + 1]
    return tail if follows in ("\r", "\n") and tail.strip() else ""


def _drop_item(text: str, path: Keys, is_own: Callable[[_Item], bool]) -> str:
    node = _node_at(_root(text), path)
    at = next(number for number, item in enumerate(node.items) if is_own(item))
    item = node.items[at]
    end = item.node.end
    is_last = at == len(node.items) - 1
    if not is_last or node.ends_with_comma:
        end = text.index(",", _skip(text, end)) + 1
    start = len(text[: item.start].rstrip(" \t\r\n"))
    head = text[:start]
    if is_last and at and not node.ends_with_comma:
        before = node.items[at - 1].node.end
        comma = text.index(",", _skip(text, before))
        head = text[:comma] + text[comma + 1 : start]
    if (
        len(node.items) == 1
        and not text[node.start + 1 : item.start].strip()
        and not text[end : node.end - 1].strip()
    ):
        return text[: node.start + 1] + text[node.end - 1 :]
    ends_in_comment = "//" in head[head.rfind("\n") + 1 :] and not text[end:].startswith(
        ("\r", "\n")
    )
    return head + (newline(text) if ends_in_comment else "") + text[end:]


def _render(value: Any, text: str, indent: str) -> str:
    unit = _unit(text)
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (newline(text) + indent).join(lines)


def _unit(text: str) -> str:
    for match in _OPENED.finditer(text):
        if (
            match[2].startswith(match[1])
            and 0 < len(match[2]) - len(match[1]) <= _MAX_INDENT_CHARACTERS
        ):
            return match[2][len(match[1]) :]
    return "  "


def _line_before(text: str, at: int) -> str:
    return text[max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1 : at]


def _indent_at(text: str, at: int) -> str:
    line = _line_before(text, at)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _root(text: str) -> _Node:
    node, at = _value(text, _skip(text, 0), 0)
    at = _skip(text, at)
    if at < len(text):
        raise _syntax_error(text, at, "there is text after the end")
    return node


def _value(text: str, at: int, depth: int) -> tuple[_Node, int]:
    if depth > _MAX_DEPTH:
        raise _syntax_error(text, at, "it is nested too deeply")
    if close := _CLOSING.get(text[at : at + 1]):
        return _container(text, at, depth, close)
    value, end = _scalar(text, at)
    return _Node(at, end, value), end


def _container(text: str, begin: int, depth: int, close: str) -> tuple[_Node, int]:
    items: list[_Item] = []
    at, has_comma = _skip(text, begin + 1), False
    while text[at : at + 1] != close:
        if items and not has_comma:
            raise _syntax_error(text, at, f"a comma or {close} is missing")
        start, key = at, ""
        if close == "}":
            key, at = _scalar(text, at, is_key=True)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                raise _syntax_error(text, at, "a colon is missing")
            at = _skip(text, at + 1)
        node, end = _value(text, at, depth + 1)
        items.append(_Item(start, key, node))
        at = _skip(text, end)
        has_comma = text[at : at + 1] == ","
        at = _skip(text, at + 1) if has_comma else at
    value = (
        {item.key: item.node.value for item in items}
        if close == "}"
        else [item.node.value for item in items]
    )
    return _Node(begin, at + 1, value, tuple(items), has_comma), at + 1


def _scalar(text: str, at: int, *, is_key: bool = False) -> tuple[Any, int]:
    if match := _STRING.match(text, at):
        return _unquote(text, match), match.end()
    bare = _BARE.match(text, at)
    if not bare:
        raise _syntax_error(text, at, "a value is missing")
    if is_key:
        return bare[0], bare.end()
    try:
        return json.loads(bare[0]), bare.end()
    except ValueError:
        return _number(text, bare), bare.end()


def _unquote(text: str, match: re.Match[str]) -> Any:
    quoted = match[0]
    if quoted[0] == "'":
        inner = quoted[1:-1].replace("\\'", "'")
        quoted = '"' + re.sub(r'(?<!\\)"', r"\"", inner) + '"'
    try:
        return json.loads(quoted, strict=False)
    except ValueError as error:
        raise _syntax_error(text, match.start(), "a string is malformed") from error


def _number(text: str, bare: re.Match[str]) -> Any:
    if re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+)", bare[0]):
        return int(bare[0], 16)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", bare[0]):
        return float(bare[0])
    raise _syntax_error(text, bare.start(), f"{bare[0][:20]!r} is not a valid value")


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _syntax_error(text: str, at: int, problem: str) -> UnparsableFileError:
    line = text.count("\n", 0, at) + 1
    return UnparsableFileError(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: {problem}")


# -- Marked blocks ---------------------------------------------------------------------------------
# nacre's additions to users' files are between two marks, which are comments in the file's format.


MARKDOWN = ("<!-- nacre:start -->", "<!-- nacre:end -->")
TOML = ("# nacre:start", "# nacre:end")


def put_block(text: str, block: str, marks: tuple[str, str] = MARKDOWN) -> str:
    """Replace nacre's marked blocks in a text with ``block``, or else append it."""
    line = newline(text)
    marked = line.join((marks[0], *block.strip("\n").split("\n"), marks[1]))
    spans = _spans(text, marks)
    if not spans:  # append after an empty line, and add a line ending only if there was one
        if text and not text.endswith("\n"):
            return text + line * 2 + marked
        return text + (line if text else "") + marked + line
    first, *duplicates = spans
    for start, end in reversed(duplicates):
        text = _cut(text, start, end)
    return text[: first[0]] + marked + text[first[1] :]


def drop_blocks(text: str, marks: tuple[str, str] = MARKDOWN) -> str:
    """Remove nacre's marked blocks from a file's content."""
    for start, end in reversed(_spans(text, marks)):
        text = _cut(text, start, end)
    return text


def blocks_of(text: str, marks: tuple[str, str] = MARKDOWN) -> list[str]:
    """Return the contents of nacre's marked blocks."""
    return [
        text[start:end].strip().removeprefix(marks[0]).removesuffix(marks[1]).strip()
        for start, end in _spans(text, marks)
    ]


def newline(text: str) -> str:
    """Return the line ending used in ``text``."""
    return "\r\n" if "\r\n" in text else "\n"


def _spans(text: str, marks: tuple[str, str]) -> list[tuple[int, int]]:
    start, end = map(re.escape, marks)
    # Another program might have written text after the end mark on the same line.
    pattern = rf"^[ \t]*{start}[ \t]*(?=\r?$)(?:(?!{start}).)*?^[ \t]*{end}"
    return [match.span() for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL)]


def _cut(text: str, start: int, end: int) -> str:
    after, line = text[end:], newline(text)
    if not after:
        return text[:start].removesuffix(line).removesuffix(line)
    after = after[len(newline(after)) :] if after.startswith(("\r\n", "\n")) else after
    before = text[:start]
    if before.endswith(line * 2):
        before = before[: -len(line)]
    return before + after


# -- Folders ---------------------------------------------------------------------------------------


@frozen
class Places:
    """The folders and variables that determine where a host's files are.

    ``home`` is nacre's home. ``project`` is ``None`` for a user-wide connection.
    """

    user: Path
    home: Path
    environ: Mapping[str, str]
    platform: str
    project: Path | None = None

    def folder(self, variable: str, usual: str) -> Path:
        """Return the folder that a variable names, or else ``usual`` in the user's folder."""
        return Path(self.environ.get(variable) or self.user / usual)

    @property
    def config(self) -> Path:
        """The folder in which programs keep their settings."""
        if self.platform == "win32":
            return self.folder("APPDATA", "AppData/Roaming")
        if self.platform == "darwin":
            return self.user / "Library" / "Application Support"
        return self.xdg_config

    @property
    def xdg_config(self) -> Path:
        """The settings folder of programs that follow the XDG standard even on macOS and Windows."""
        return self.folder("XDG_CONFIG_HOME", ".config")

    @property
    def editor(self) -> Path:
        """The settings folder of the installed editor: VS Code or a similar one."""
        names = ("Code", "Code - Insiders", "VSCodium")
        folders = (self.config / name / "User" for name in names)
        return next((path for path in folders if path.is_dir()), self.config / "Code" / "User")

    def extension(self, name: str) -> Path:
        """Return an extension's storage folder in VS Code or a similar editor."""
        editors = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
        folders = (self.config / editor / "User" / "globalStorage" / name for editor in editors)
        return next(
            (path for path in folders if path.is_dir()), self.editor / "globalStorage" / name
        )
