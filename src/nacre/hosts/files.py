"""Files of others: read as they are, written whole, with the mode they had, never through a link that leads away."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path as Path_2
from typing import Any, TypeAlias

_BOM = "\ufeff"
_MOST_BYTES = 20_000_000
_IS_POSIX = os.name == "posix"


class Untouchable(Exception):  # noqa: N818 - what is the case
    """The file is left alone; the message says why."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file without its byte order mark; ``content`` is ``None`` where there is no file."""

    content: bytes | None

    @property
    def words(self) -> str:
        """What is in it. Raises Untouchable for what is no UTF-8."""
        try:
            return (self.content or b"").decode("utf-8").removeprefix(_BOM)
        except UnicodeDecodeError as error:
            raise Untouchable("it is not written in UTF-8") from error

    def encoded(self, words: str) -> bytes:
        """Other words, with the mark that this text has."""
        mark = _BOM.encode() if (self.content or b"").startswith(_BOM.encode()) else b""
        return mark + words.encode("utf-8")


def real_place(path: Path_2, roots: Sequence[Path_2]) -> Path_2:
    """Where a path leads, which must be under one of ``roots``. Raises Untouchable.

    Links within them are followed, as those of people who keep their settings in a repository: the file is written
    where it really is, and the link stays.
    """
    real = Path_2(os.path.realpath(path))
    if not any(real.is_relative_to(os.path.realpath(root)) for root in roots):
        raise Untouchable(f"it is a link, or lies behind one, that leads to {real}")
    if path.is_symlink() and not real.exists():
        raise Untouchable(f"it is a link to {real}, where nothing is")
    return real


def read(path: Path_2) -> Text:
    """A regular file, or that there is none. Raises Untouchable."""
    try:
        seen = path.stat()
    except FileNotFoundError:
        return Text(None)
    except OSError as error:
        raise Untouchable(f"it cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(seen.st_mode):
        raise Untouchable("it is not a regular file")
    if seen.st_size > _MOST_BYTES:
        raise Untouchable("it is too large")
    try:
        return Text(path.read_bytes())
    except OSError as error:
        raise Untouchable(f"it cannot be read: {error.strerror}") from error


def write(path: Path_2, content: bytes, *, mode: int) -> list[Path_2]:
    """Write a file whole or not at all; returns the folders that were made for it. Raises Untouchable.

    One that is there keeps its mode; a new one gets ``mode``.
    """
    try:
        made = _make_folders(path.parent, mode | (mode & 0o444) >> 2)
        kept = stat.S_IMODE(path.stat().st_mode) if path.exists() else mode
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600
        )
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if _IS_POSIX:
                    os.fchmod(file.fileno(), kept)
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise Untouchable(f"it cannot be written: {error.strerror}") from error
    return made


def remove(path: Path_2) -> None:
    """Remove a file. Raises Untouchable."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise Untouchable(f"it cannot be removed: {error.strerror}") from error


def remove_empty(folders: Iterable[Path_2]) -> None:
    """Remove those folders in which nothing is left."""
    for folder in sorted(folders, key=lambda one: len(one.parts), reverse=True):
        with suppress(OSError):
            folder.rmdir()


def back_up(path: Path_2, stamp: str, folder: Path_2 | None = None) -> Path_2:
    """Put a copy of a file beside it, or into a folder, readable by no more people; returns where.

    Raises Untouchable.
    """
    above = folder or path.parent
    copy = above / f"{path.name}.nacre-{stamp}.bak"
    number = 1
    while os.path.lexists(copy):
        number += 1
        copy = above / f"{path.name}.nacre-{stamp}-{number}.bak"
    write(copy, path.read_bytes(), mode=stat.S_IMODE(path.stat().st_mode))
    return copy


def _make_folders(folder: Path_2, mode: int) -> list[Path_2]:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode | 0o100)
    return missing


# ----------------------------------------------------------------------------
# JSON as people keep it, changed in single places: comments, trailing commas, order and layout stay
# to the byte.
#
# Besides JSON it reads what hosts read, too: comments, trailing commas, names without quotes, quotes
# of one kind.


_SPACE = re.compile(r"(?:[ \t\r\n\f\v\u00a0\u2028\u2029\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_BARE = re.compile(r"[^\s,:\[\]{}\"'/]+")
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|\'(?:[^\'\\\r\n]|\\.)*\'', re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)?")
_OPENED = re.compile(
    r"^([ \t]*)[^\r\n]*[{\[][ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*)?\r?\n([ \t]+)(?=[^\s])",
    re.MULTILINE,
)
_WIDEST_UNIT = 8
_DEEPEST = 200

Path: TypeAlias = Sequence[str]


class Unparsable(ValueError):  # noqa: N818 - what is the case
    """The text is no JSON, not even in the forms that hosts put up with; the message says where."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A value with its place in the text. ``items`` are the members of an object or a list."""

    start: int
    end: int
    value: Any
    kind: str = "scalar"
    items: tuple[_Item, ...] = ()
    ends_with_comma: bool = False


@dataclass(frozen=True, slots=True)
class _Item:
    start: int
    key: str
    node: _Node


def read_json_text(text: str) -> Any:
    """What a text holds; an empty object where it is blank. Raises Unparsable."""
    return _root(text).value if text.strip() else {}


def find(text: str, path: Path) -> Any:
    """What stands at a path of keys; ``None`` where nothing does. Raises Unparsable."""
    found = read_json_text(text)
    for key in path:
        if not isinstance(found, dict) or key not in found:
            return None
        found = found[key]
    return found


def put(text: str, path: Path, value: Any) -> str:
    """Set what stands at a path, and make the objects above it. Raises Unparsable, also where one is no object."""
    text = text if text.strip() else "{}" + _newline(text)
    return _checked(text, _put(text, path, value), lambda old: _with(old, path, value))


def drop(text: str, path: Path) -> str:
    """Take out what stands at a path, and the objects above it that hold nothing else. Raises Unparsable."""
    if find(text, path) is None and not _is_there(text, path):
        return text
    above = list(path[:-1])
    text = _checked(
        text,
        _drop_item(text, above, lambda item: item.key == path[-1]),
        lambda old: _without(old, path),
    )
    return drop(text, above) if above and find(text, above) == {} else text


def add(text: str, path: Path, value: Any) -> str:
    """Put a value at the end of the list at a path, which is made where it is missing. Raises Unparsable."""
    present = find(text, path)
    if present is None:
        return put(text, path, [value])
    if not isinstance(present, list):
        raise Unparsable(f"{'.'.join(path)} is no list")
    if any(_equal(one, value) for one in present):
        return text
    node = _at(_root(text), path)
    return _checked(
        text,
        _insert(text, node, lambda indent: _rendered(value, text, indent)),
        lambda old: _with(old, path, [*_walk(old, path), value]),
    )


def filter_out(text: str, path: Path, is_own: Callable[[Any], bool]) -> str:
    """Take the values out of the list at a path that ``is_own`` says; one that held no more goes. Raises Unparsable."""
    present = find(text, path)
    if not isinstance(present, list) or not any(map(is_own, present)):
        return text
    while any(map(is_own, present)):
        text = _drop_item(text, path, lambda item: is_own(item.node.value))
        left = find(text, path)
        if not isinstance(left, list) or len(left) >= len(present):
            raise Unparsable(f"{'.'.join(path)} cannot be changed")
        present = left
    return drop(text, path) if present == [] else text


def _checked(before: str, after: str, change: Callable[[Any], Any]) -> str:
    """A change that did what it should and nothing else. Raises Unparsable, and the text stays as it was."""
    if not _equal(read_json_text(after), change(read_json_text(before))):
        raise Unparsable("it cannot be changed without a risk to the rest")
    return after


def _equal(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _with(old: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    below = old.get(path[0], {}) if isinstance(old, dict) else {}
    return {**old, path[0]: _with(below, path[1:], value)}


def _without(old: Any, path: Path) -> Any:
    if len(path) == 1:
        return {key: value for key, value in old.items() if key != path[0]}
    return {**old, path[0]: _without(old[path[0]], path[1:])}


def _walk(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _is_there(text: str, path: Path) -> bool:
    above = find(text, path[:-1])
    return isinstance(above, dict) and path[-1] in above


def _at(node: _Node, path: Path) -> _Node:
    for key in path:
        node = next(item.node for item in reversed(node.items) if item.key == key)
    return node


def _put(text: str, path: Path, value: Any) -> str:
    node, rest = _root(text), list(path)
    while rest:
        if node.kind != "object":
            raise Unparsable(f"there is no object to hold {'.'.join(path)}")
        below = next((item.node for item in reversed(node.items) if item.key == rest[0]), None)
        if below is None:
            return _insert_member(text, node, rest, value)
        node, rest = below, rest[1:]
    if _equal(node.value, value):
        return text
    return (
        text[: node.start] + _rendered(value, text, _indent_at(text, node.start)) + text[node.end :]
    )


def _insert_member(text: str, node: _Node, path: Path, value: Any) -> str:
    for key in reversed(path[1:]):
        value = {key: value}
    name = json.dumps(path[0], ensure_ascii=False)
    return _insert(text, node, lambda indent: f"{name}: {_rendered(value, text, indent)}")


def _insert(text: str, node: _Node, render: Callable[[str], str]) -> str:
    """A member more, in the way the others are laid out."""
    line = _newline(text)
    if not node.items:
        outer = _indent_at(text, node.start)
        inner = outer + _unit(text)
        inside = text[node.start + 1 : node.end - 1]
        kept = inside.rstrip() if inside.strip() else ""
        return (
            text[: node.start + 1]
            + kept
            + line
            + inner
            + render(inner)
            + line
            + outer
            + text[node.end - 1 :]
        )
    last = node.items[-1]
    own_line = _stands_alone(text, last.start)
    indent = _indent_at(text, last.start) if own_line else ""
    gap = line + indent if own_line else " "
    at = last.node.end
    if node.ends_with_comma:
        at = text.index(",", _SPACE.match(text, at).end()) + 1  # type: ignore[union-attr] # it matches anything
        return (
            text[:at]
            + _tail(text, at)
            + gap
            + render(indent)
            + ","
            + text[at + len(_tail(text, at)) :]
        )
    tail = _tail(text, at)
    return text[:at] + "," + tail + gap + render(indent) + text[at + len(tail) :]


def _tail(text: str, at: int) -> str:
    """A comment behind a value on its line: it stays there. Only where the line ends with it."""
    found = _REST_OF_LINE.match(text, at)
    tail = found[0] if found else ""
    follows = text[at + len(tail) : at + len(tail) + 1]
    return tail if follows in ("\r", "\n") and tail.strip() else ""


def _drop_item(text: str, path: Path, is_own: Callable[[_Item], bool]) -> str:
    """The text without the first member that is meant, its comma, and the space before it."""
    node = _at(_root(text), path)
    at = next(number for number, item in enumerate(node.items) if is_own(item))
    item = node.items[at]
    end = item.node.end
    is_last = at == len(node.items) - 1
    if not is_last or node.ends_with_comma:
        end = text.index(",", _SPACE.match(text, end).end()) + 1  # type: ignore[union-attr] # it matches anything
    start = len(text[: item.start].rstrip(" \t\r\n"))
    head = text[:start]
    if is_last and at and not node.ends_with_comma:
        before = node.items[at - 1].node.end
        comma = text.index(",", _SPACE.match(text, before).end())  # type: ignore[union-attr] # the same
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
    return head + (_newline(text) if ends_in_comment else "") + text[end:]


def _rendered(value: Any, text: str, indent: str) -> str:
    unit = _unit(text)
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (_newline(text) + indent).join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """How much deeper the first line within an object or a list is; two spaces where none tells."""
    for found in _OPENED.finditer(text):
        if found[2].startswith(found[1]) and 0 < len(found[2]) - len(found[1]) <= _WIDEST_UNIT:
            return found[2][len(found[1]) :]
    return "  "


def _indent_at(text: str, at: int) -> str:
    begin = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    found = re.match(r"[ \t]*", text[begin:at])
    return found[0] if found else ""


def _stands_alone(text: str, at: int) -> bool:
    begin = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    return begin > 0 and not text[begin:at].strip()


def _root(text: str) -> _Node:
    node, at = _value(text, _skip(text, 0), 0)
    at = _skip(text, at)
    if at < len(text):
        raise _wrong(text, at, "something follows the end")
    return node


def _value(text: str, at: int, depth: int) -> tuple[_Node, int]:
    if depth > _DEEPEST:
        raise _wrong(text, at, "it is nested too deeply")
    sign = text[at : at + 1]
    if sign == "{":
        return _container(text, at, depth, "}")
    if sign == "[":
        return _container(text, at, depth, "]")
    value, end = _scalar(text, at)
    return _Node(at, end, value), end


def _container(text: str, begin: int, depth: int, close: str) -> tuple[_Node, int]:
    items: list[_Item] = []
    at, has_comma = _skip(text, begin + 1), False
    while text[at : at + 1] != close:
        if items and not has_comma:
            raise _wrong(text, at, f"a comma or {close} is missing")
        start, key = at, ""
        if close == "}":
            key, at = _key(text, at)
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
    kind = "object" if close == "}" else "list"
    return _Node(begin, at + 1, value, kind, tuple(items), has_comma), at + 1


def _key(text: str, at: int) -> tuple[str, int]:
    key, end = _scalar(text, at, is_key=True)
    end = _skip(text, end)
    if text[end : end + 1] != ":":
        raise _wrong(text, end, "a colon is missing")
    return str(key), _skip(text, end + 1)


def _scalar(text: str, at: int, *, is_key: bool = False) -> tuple[Any, int]:
    if found := _STRING.match(text, at):
        return _unquoted(text, found), found.end()
    bare = _BARE.match(text, at)
    if not bare:
        raise _wrong(text, at, "a value is missing")
    if is_key:
        return bare[0], bare.end()
    try:
        return json.loads(bare[0]), bare.end()
    except ValueError:
        return _number(text, bare), bare.end()


def _unquoted(text: str, found: re.Match[str]) -> Any:
    quoted = found[0]
    if quoted[0] == "'":
        inner = quoted[1:-1].replace("\\'", "'")
        quoted = '"' + re.sub(r'(?<!\\)"', r"\"", inner) + '"'
    try:
        return json.loads(quoted, strict=False)
    except ValueError as error:
        raise _wrong(text, found.start(), "a text is not well formed") from error


def _number(text: str, bare: re.Match[str]) -> Any:
    """A number as JSON5 has it."""
    if re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+)", bare[0]):
        return int(bare[0], 16)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", bare[0]):
        return float(bare[0])
    raise _wrong(text, bare.start(), f"{bare[0][:20]!r} is no value")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int, what: str) -> Unparsable:
    line = text.count("\n", 0, at) + 1
    return Unparsable(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: {what}")


# ----------------------------------------------------------------------------
# What nacre adds to texts of people: a block between two marks, which are comments of the text's own
# kind.


MARKDOWN = ("<!-- nacre:start -->", "<!-- nacre:end -->")
TOML = ("# nacre:start", "# nacre:end")

_HEADER = re.compile(r"[ \t]*\[{1,2}[ \t]*([^\]\r\n]+?)[ \t]*\]")


def put_block(text: str, block: str, marks: tuple[str, str] = MARKDOWN) -> str:
    """A text with one block of nacre's, at the place of the first that is there, else at the end."""
    line = newline(text)
    whole = line.join((marks[0], *block.strip("\n").split("\n"), marks[1]))
    spans = _spans(text, marks)
    if not spans:
        return _appended(text, whole, line)
    first, *others = spans
    for start, end in reversed(others):
        text = _cut(text, start, end)
    return text[: first[0]] + whole + text[first[1] :]


def drop_blocks(text: str, marks: tuple[str, str] = MARKDOWN) -> str:
    """A text without nacre's blocks."""
    for start, end in reversed(_spans(text, marks)):
        text = _cut(text, start, end)
    return text


def blocks_of(text: str, marks: tuple[str, str] = MARKDOWN) -> list[str]:
    """What stands between the marks, each block by itself."""
    return [
        text[start:end].strip().removeprefix(marks[0]).removesuffix(marks[1]).strip()
        for start, end in _spans(text, marks)
    ]


def has_block(text: str, marks: tuple[str, str] = MARKDOWN) -> bool:
    """Whether a block of nacre's is there."""
    return bool(_spans(text, marks))


def drop_tables(text: str, names: tuple[str, ...]) -> str:
    """A TOML text without the marks of nacre, and without the tables of these names and those below them.

    By lines, not by marks: hosts that rewrite their own file put tables of theirs between the marks.
    """
    kept: list[str] = []
    is_own = False
    for line in text.splitlines(keepends=True):
        if line.strip() in TOML:
            is_own = is_own and line.strip() != TOML[1]
            if line.strip() == TOML[0] and kept and not kept[-1].strip():
                kept.pop()  # the empty line that was put before the block
            continue
        if found := _HEADER.match(line):
            is_own = (
                _plain(found[1]).startswith(tuple(f"{name}." for name in names))
                or _plain(found[1]) in names
            )
        if not is_own:
            kept.append(line)
    return "".join(kept)


def newline(text: str) -> str:
    """The end of lines that a text has."""
    return "\r\n" if "\r\n" in text else "\n"


def _plain(name: str) -> str:
    return re.sub(r"[ \t\"']", "", name)


def _spans(text: str, marks: tuple[str, str]) -> list[tuple[int, int]]:
    """Where the blocks are. A start without an end is none: nobody knows where it should end.

    Something may stand behind the end, where a line was added to a text whose last one had no end.
    """
    start, end = map(re.escape, marks)
    pattern = rf"^[ \t]*{start}[ \t]*(?=\r?$)(?:(?!{start}).)*?^[ \t]*{end}"
    return [found.span() for found in re.finditer(pattern, text, re.MULTILINE | re.DOTALL)]


def _cut(text: str, start: int, end: int) -> str:
    """The text without a span, its line end, and the empty line that was put before it."""
    after, line = text[end:], newline(text)
    if not after:
        return text[:start].removesuffix(line).removesuffix(line)
    after = after[len(newline(after)) :] if after.startswith(("\r\n", "\n")) else after
    before = text[:start]
    if before.endswith(line * 2):
        before = before[: -len(line)]
    return before + after


def _appended(text: str, whole: str, line: str) -> str:
    """A text with a block at its end, after an empty line. Where its last line has no end, the block's has none."""
    if text and not text.endswith("\n"):
        return text + line * 2 + whole
    return text + (line if text else "") + whole + line


# ----------------------------------------------------------------------------
# Where hosts keep their files, on each system.


@dataclass(frozen=True, slots=True)
class Places:
    """Whose machine it is. ``home`` is nacre's own; ``project`` the folder that is wired, ``None`` for the user."""

    user: Path_2
    home: Path_2
    environ: Mapping[str, str]
    platform: str
    project: Path_2 | None = None

    def folder(self, variable: str, usual: str) -> Path_2:
        """The folder that a variable names, else the usual one under the user's."""
        return Path_2(self.environ.get(variable) or self.user / usual)

    @property
    def config(self) -> Path_2:
        """Where programs keep their settings."""
        if self.platform == "win32":
            return self.folder("APPDATA", "AppData/Roaming")
        if self.platform == "darwin":
            return self.user / "Library" / "Application Support"
        return self.xdg_config

    @property
    def xdg_config(self) -> Path_2:
        """The same for programs that keep to one rule on all systems."""
        return self.folder("XDG_CONFIG_HOME", ".config")

    @property
    def editor(self) -> Path_2:
        """Where VS Code keeps what is the user's: the one that is there, else the usual one."""
        names = ("Code", "Code - Insiders", "VSCodium")
        found = (self.config / name / "User" for name in names)
        return next((path for path in found if path.is_dir()), self.config / "Code" / "User")

    def extension(self, name: str) -> Path_2:
        """Where an extension of VS Code, or of an editor made from it, keeps its files."""
        editors = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
        found = (self.config / editor / "User" / "globalStorage" / name for editor in editors)
        return next((path for path in found if path.is_dir()), self.editor / "globalStorage" / name)
