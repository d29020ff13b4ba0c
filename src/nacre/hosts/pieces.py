"""The pieces that a wiring is made of: each knows how to put itself into a text of the owner's, and out of it again."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import tomlkit

from nacre.hosts import json_text, marked
from nacre.hosts.json_text import Unparsable
from nacre.hosts.servers import Server, server_in_yaml, server_of

OWN_COMMANDS = ("nacre-hook", "nacre.hooks.process")
"""What a hook's command holds that is nacre's, wherever the program lay when it was written."""


class Piece(Protocol):
    """One thing of nacre's within a text. Both raise Unparsable where the text is not what it should be."""

    def put(self, text: str) -> str:
        """The text with it, once; the same text where it is there as it should be."""

    def drop(self, text: str) -> str:
        """The text without it."""


@dataclass(frozen=True)
class JsonKey:
    """A key of nacre's own, with its value."""

    path: tuple[str, ...]
    value: Any

    def put(self, text: str) -> str:
        """See Piece."""
        return json_text.put(text, self.path, self.value)

    def drop(self, text: str) -> str:
        """See Piece."""
        return json_text.drop(text, self.path)


@dataclass(frozen=True)
class JsonServer(JsonKey):
    """An MCP server under nacre's name."""

    def server(self, text: str) -> Server | None:
        """The server that is there."""
        return server_of(json_text.find(text, self.path))


@dataclass(frozen=True)
class JsonDefault:
    """A key that is set where it is missing, and left as people change it. It stays when nacre goes, unless it
    ``is_own`` and nobody has changed it."""

    path: tuple[str, ...]
    value: Any
    is_own: bool = False

    def put(self, text: str) -> str:
        """See Piece."""
        return text if json_text.find(text, self.path) is not None else json_text.put(text, self.path, self.value)

    def drop(self, text: str) -> str:
        """See Piece."""
        is_as_put = self.is_own and json_text.find(text, self.path) == self.value
        return json_text.drop(text, self.path) if is_as_put else text


@dataclass(frozen=True)
class JsonItem:
    """A text of nacre's own in a list. Others that begin with ``family`` are older forms of it, and go."""

    path: tuple[str, ...]
    value: str
    family: str = ""

    def put(self, text: str) -> str:
        """See Piece."""
        return json_text.add(text, self.path, self.value)

    def drop(self, text: str) -> str:
        """See Piece."""
        return json_text.filter_out(text, self.path, self._is_own)

    def _is_own(self, value: Any) -> bool:
        return value == self.value or bool(self.family and isinstance(value, str) and value.startswith(self.family))


@dataclass(frozen=True)
class JsonHook:
    """A hook in the list of an event: an entry with a command, or a group that holds such entries."""

    path: tuple[str, ...]
    value: Mapping[str, Any]

    def put(self, text: str) -> str:
        """See Piece."""
        present = json_text.find(text, self.path)
        if isinstance(present, list) and [one for one in present if _runs_own(one)] == [self.value]:
            return text
        return json_text.add(self.drop(text), self.path, self.value)

    def drop(self, text: str) -> str:
        """See Piece. In a group of others' hooks, nacre's alone goes."""
        present = json_text.find(text, self.path)
        if not isinstance(present, list):
            return text
        for at, group in enumerate(present):
            if isinstance(group, dict) and _is_mixed(group):
                others = [one for one in group["hooks"] if not _runs_own(one)]
                present = [*present[:at], {**group, "hooks": others}, *present[at + 1 :]]
                text = json_text.put(text, self.path, present)
        return json_text.filter_out(text, self.path, _runs_own)


@dataclass(frozen=True)
class JsonSetting:
    """A setting of the host's own that nacre changes. ``before`` is what it goes back to; ``None``: to not being there.

    What somebody else made of it since stays.
    """

    path: tuple[str, ...]
    value: Any
    before: Any = None

    def found(self, text: str) -> Any:
        """What it is set to; ``None`` where it is not there."""
        return json_text.find(text, self.path)

    def put(self, text: str) -> str:
        """See Piece."""
        return json_text.put(text, self.path, self.value)

    def drop(self, text: str) -> str:
        """See Piece."""
        if self.found(text) != self.value:
            return text
        if self.before is None:
            return json_text.drop(text, self.path)
        return json_text.put(text, self.path, self.before)


@dataclass(frozen=True)
class TomlSetting:
    """The same in a TOML text: a key of a table."""

    path: tuple[str, str]
    value: Any
    before: Any = None

    def found(self, text: str) -> Any:
        """What it is set to; ``None`` where it is not there."""
        return _at(_toml(text), self.path)

    def put(self, text: str) -> str:
        """See Piece."""
        return text if self.found(text) == self.value else self._changed(text, self.value)

    def drop(self, text: str) -> str:
        """See Piece."""
        return text if self.found(text) != self.value else self._changed(text, self.before)

    def _changed(self, text: str, value: Any) -> str:
        before = _toml(text)
        wanted = _without(before, self.path) if value is None else _with(before, self.path, value)
        for after in self._ways(text, before, value):
            if _reads_as(after, wanted):
                return after
        raise Unparsable(f"{'.'.join(self.path)} cannot be changed without a risk to the rest")

    def _ways(self, text: str, before: Mapping[str, Any], value: Any) -> Iterator[str]:
        """The text with another value, in one way after the other: the first that harms nothing is taken."""
        table, key = self.path
        line = marked.newline(text)
        own = tomlkit.dumps({table: {key: self.value}}).replace("\n", line)
        if value is None:
            yield text.replace(line + own, "") if text != own else ""
        elif table not in before:
            yield text + (line if text and not text.endswith(line) else "") + (line if text else "") + own
        document: Any = tomlkit.parse(text)
        if value is not None:
            document.setdefault(table, tomlkit.table())[key] = value
        else:
            del document[table][key]
            if not document[table]:
                del document[table]
        yield tomlkit.dumps(document)


@dataclass(frozen=True)
class Block:
    """Words between nacre's marks."""

    words: str

    def put(self, text: str) -> str:
        """See Piece."""
        return marked.put_block(text, self.words)

    def drop(self, text: str) -> str:
        """See Piece."""
        return marked.drop_blocks(text)


@dataclass(frozen=True)
class TomlServer:
    """An MCP server under nacre's name: a table in a TOML text, between marks."""

    path: tuple[str, ...]
    value: Mapping[str, Any]

    def server(self, text: str) -> Server | None:
        """The server that is there."""
        return server_of(_at(_toml(text), self.path))

    def is_marked(self, text: str) -> bool:
        """Whether the table stands between nacre's marks."""
        return _at(_toml(text), self.path) is not None and self._is_out(
            marked.drop_blocks(text, marked.TOML), _without(_toml(text), self.path)
        )

    def put(self, text: str) -> str:
        """See Piece."""
        before = _toml(text)
        if _at(before, self.path) == self.value and text.count(marked.TOML[0]) == 1:
            return text
        wanted = _with(before, self.path, self.value)
        bare = self.drop(text)
        after = marked.put_block(bare, self._rendered(), marked.TOML)
        if _reads_as(after, wanted):
            return after
        after = self._put_inline(bare)  # the table above it is written in one line: there is no room for marks
        if not _reads_as(after, wanted):
            raise Unparsable(f"{'.'.join(self.path)} cannot be set without a risk to the rest")
        return after

    def drop(self, text: str) -> str:
        """See Piece."""
        before = _toml(text)
        if _at(before, self.path) is None and not marked.has_block(text, marked.TOML):
            return text
        wanted = _without(before, self.path)
        for after in self._dropped(text):
            if self._is_out(after, wanted):
                return after
        raise Unparsable(f"{'.'.join(self.path)} cannot be taken out without a risk to the rest")

    def _is_out(self, text: str, wanted: dict[str, Any]) -> bool:
        """Whether the rest is as it should be; a table above it that holds nothing may be the owner's."""
        try:
            left = _toml(text)
        except Unparsable:
            return False
        return _at(left, self.path) is None and _without(left, self.path) == wanted

    def _dropped(self, text: str) -> Iterator[str]:
        """The text without the table, in one way after the other: the first that harms nothing is taken."""
        yield marked.drop_blocks(text, marked.TOML)
        yield marked.drop_tables(text, (".".join(self.path),))
        yield self._drop_inline(text)

    def _rendered(self) -> str:
        document = tomlkit.document()
        table = tomlkit.table()
        for key, value in self.value.items():
            table.add(key, value)
        above = document
        for key in self.path[:-1]:
            below = tomlkit.table(is_super_table=True)
            above.add(key, below)
            above = below  # type: ignore[assignment] # tables take keys as documents do
        above.add(self.path[-1], table)
        return tomlkit.dumps(document)

    def _put_inline(self, text: str) -> str:
        document = tomlkit.parse(text)
        above: Any = document
        for key in self.path[:-1]:
            above = above.setdefault(key, tomlkit.table())
        above[self.path[-1]] = dict(self.value)
        return tomlkit.dumps(document)

    def _drop_inline(self, text: str) -> str:
        document = tomlkit.parse(text)
        above: Any = document
        for key in self.path[:-1]:
            above = above[key]
        del above[self.path[-1]]
        return tomlkit.dumps(document)


@dataclass(frozen=True)
class TomlTables:
    """Tables that a host wrote for nacre, which only go: those whose last key begins with one of ``begins``."""

    path: tuple[str, ...]
    begins: str

    def put(self, text: str) -> str:
        """See Piece."""
        return text

    def drop(self, text: str) -> str:
        """See Piece."""
        found = _at(_toml(text), self.path)
        own = [key for key in found if key.startswith(self.begins)] if isinstance(found, dict) else []
        for key in own:
            text = _drop_quoted(text, self.path, key)
        if own and _at(_toml(text), self.path) == {}:
            name = ".".join(self.path)
            text = re.sub(rf"^\[{re.escape(name)}\][ \t]*\r?\n(?:\r?\n)?", "", text, flags=re.MULTILINE)
        return text


@dataclass(frozen=True)
class WholeFile:
    """A file that is nacre's as a whole."""

    content: str

    def put(self, text: str) -> str:
        """See Piece."""
        return text if text == self.content else self.content

    def drop(self, text: str) -> str:
        """See Piece."""
        return "" if text == self.content or "nacre" in text else text


@dataclass(frozen=True)
class ServerFile(WholeFile):
    """A file that names an MCP server, nacre's, and nothing else."""

    def server(self, text: str) -> Server | None:
        """The server that is there."""
        return server_in_yaml(text)


ServerPiece: TypeAlias = JsonServer | TomlServer | ServerFile
SettingPiece: TypeAlias = JsonSetting | TomlSetting


def _runs_own(value: Any) -> bool:
    """Whether a hook's entry, or all entries of a group, run nacre."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("hooks"), list):
        return bool(value["hooks"]) and all(map(_runs_own, value["hooks"]))
    return any(name in str(value.get("command", "")) for name in OWN_COMMANDS)


def _is_mixed(group: Mapping[str, Any]) -> bool:
    inner = group.get("hooks")
    return isinstance(inner, list) and any(map(_runs_own, inner)) and not all(map(_runs_own, inner))


def _drop_quoted(text: str, path: tuple[str, ...], key: str) -> str:
    """A TOML text without one table whose name is quoted, and byte for byte what it was else."""
    begin = f"[{'.'.join(path)}."
    kept: list[str] = []
    is_own = False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if bare.startswith("["):
            name = bare[len(begin) :].rstrip("]").strip() if bare.startswith(begin) else ""
            is_own = name in (f'"{key}"', f"'{key}'")
        if not is_own:
            kept.append(line)
    if is_own and kept and not kept[-1].strip():
        kept.pop()  # the empty line before a table at the end
    return "".join(kept)


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise Unparsable(str(error)) from error


def _reads_as(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return _toml(text) == wanted
    except Unparsable:
        return False


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _with(old: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    old = old if isinstance(old, dict) else {}
    return {**old, path[0]: _with(old.get(path[0], {}), path[1:], value)}


def _without(old: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Without what stands at a path, and without the tables above it that held nothing else."""
    if path[0] not in old:
        return old
    below = _without(old[path[0]], path[1:]) if len(path) > 1 else {}
    rest = {key: value for key, value in old.items() if key != path[0]}
    return {**rest, path[0]: below} if below else rest
