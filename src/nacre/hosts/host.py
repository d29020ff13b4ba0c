"""Hosts, the parts of their settings that belong to nacre, nacre's programs, and tested versions."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.base.plain import JsonObject, Values
from nacre.hosts import files as json_text
from nacre.hosts.files import Places, UnparsableFileError

if TYPE_CHECKING:
    import tomlkit
else:
    tomlkit = Module("tomlkit")

_YAML = re.compile(r"^    (command|args|env): (.+)$", re.MULTILINE)
"""Pattern for the command in Continue's file. nacre writes the values as JSON."""


@frozen
class Server:
    """An MCP server in a host's settings.

    ``words`` is the command line. ``words`` is empty if the command line is unknown or missing.
    """

    words: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


def server_of(value: Any) -> Server | None:
    """Return the server that a settings value describes, or ``None`` if there is no value."""
    if value is None:
        return None
    first = value.get("command") if isinstance(value, dict) else None
    if not first:
        return Server(())
    arguments = value.get("args")
    words = (
        first
        if isinstance(first, list)
        else [first, *(arguments if isinstance(arguments, list) else ())]
    )
    environ = value.get("env") or value.get("environment")
    named = environ if isinstance(environ, dict) else {}
    return Server(tuple(map(str, words)), {str(name): str(value) for name, value in named.items()})


def server_in_yaml(text: str) -> Server | None:
    """Return the server in a YAML file with the layout that nacre writes."""
    if not text.strip():
        return None
    try:
        return server_of({key: json.loads(value) for key, value in _YAML.findall(text)})
    except ValueError:
        return Server(())


# -- Parts of hosts' files -------------------------------------------------------------------------
# Each piece can add itself to a file's text and remove itself.


OWN_COMMANDS = ("nacre-hook", "nacre.serve.hook_process")
"""Parts of a command that show that it is nacre's hook, wherever nacre is installed."""


class Piece(Protocol):
    """A part of a file that belongs to nacre. All methods raise UnparsableFileError."""

    def put(self, text: str) -> str:
        """Return the text with this piece added. A text that already contains the piece is not changed."""

    def drop(self, text: str) -> str:
        """Return the text with this piece removed."""


@dataclass(frozen=True)
class JsonKey:
    """A key that belongs to nacre, with its value."""

    path: tuple[str, ...]
    value: Any

    def put(self, text: str) -> str:
        return json_text.put(text, self.path, self.value)

    def drop(self, text: str) -> str:
        return json_text.drop(text, self.path)


@dataclass(frozen=True)
class JsonServer(JsonKey):
    """An MCP server named nacre."""

    def server(self, text: str) -> Server | None:
        return server_of(json_text.find(text, self.path))


@dataclass(frozen=True)
class JsonDefault(JsonKey):
    """A key that is only set if it is missing.

    Disconnecting removes the key if ``is_own`` is True and the value is unchanged.
    """

    is_own: bool = False

    def put(self, text: str) -> str:
        is_set = json_text.find(text, self.path) is not None
        return text if is_set else super().put(text)

    def drop(self, text: str) -> str:
        is_as_put = self.is_own and json_text.find(text, self.path) == self.value
        return super().drop(text) if is_as_put else text


@dataclass(frozen=True)
class JsonItem:
    """A list item that belongs to nacre."""

    path: tuple[str, ...]
    value: str

    def put(self, text: str) -> str:
        return json_text.add(text, self.path, self.value)

    def drop(self, text: str) -> str:
        return json_text.filter_out(text, self.path, lambda value: value == self.value)


@dataclass(frozen=True)
class JsonHook:
    """A hook in the list for an event: an entry with a command, or a group of such entries."""

    path: tuple[str, ...]
    value: Values

    def put(self, text: str) -> str:
        present = json_text.find(text, self.path)
        if isinstance(present, list) and [hook for hook in present if _runs_own(hook)] == [
            self.value
        ]:
            return text
        return json_text.add(self.drop(text), self.path, self.value)

    def drop(self, text: str) -> str:
        """Remove the hook. Other hooks in the same group are kept."""
        present = json_text.find(text, self.path)
        if not isinstance(present, list):
            return text
        for at, group in enumerate(present):
            if isinstance(group, dict) and _is_mixed(group):
                foreign = [hook for hook in group["hooks"] if not _runs_own(hook)]
                present = [*present[:at], {**group, "hooks": foreign}, *present[at + 1 :]]
                text = json_text.put(text, self.path, present)
        return json_text.filter_out(text, self.path, _runs_own)


@dataclass(frozen=True)
class JsonSetting(JsonKey):
    """A host setting that nacre changes. ``before`` is the old value, or ``None`` if there was none.

    When nacre is removed, later changes by other programs or the user are kept.
    """

    before: Any = None

    def read(self, text: str) -> Any:
        return json_text.find(text, self.path)

    def drop(self, text: str) -> str:
        if self.read(text) != self.value:
            return text
        if self.before is None:
            return super().drop(text)
        return json_text.put(text, self.path, self.before)


@dataclass(frozen=True)
class TomlSetting:
    """A host setting in a TOML file. ``path`` consists of the names of the table and the key."""

    path: tuple[str, str]
    value: Any
    before: Any = None

    def read(self, text: str) -> Any:
        return json_text.at(_toml(text), self.path)

    def put(self, text: str) -> str:
        return text if self.read(text) == self.value else self._change(text, self.value)

    def drop(self, text: str) -> str:
        return text if self.read(text) != self.value else self._change(text, self.before)

    def _change(self, text: str, value: Any) -> str:
        before = _toml(text)
        expected = (
            _without(before, self.path)
            if value is None
            else json_text.with_value(before, self.path, value)
        )
        for after in self._ways(text, before, value):
            if _reads_as(after, expected):
                return after
        raise UnparsableFileError(f"{'.'.join(self.path)} cannot be changed safely")

    def _ways(self, text: str, before: Values, value: Any) -> Iterator[str]:
        """Yield candidate texts with the new value. The caller picks a valid one."""
        table, key = self.path
        line = json_text.newline(text)
        own = tomlkit.dumps({table: {key: self.value}}).replace("\n", line)
        if value is None:
            yield text.replace(line + own, "") if text != own else ""
        elif table not in before:
            end = "" if not text else line if text.endswith(line) else line * 2
            yield text + end + own
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
    """Text between nacre's marks."""

    words: str

    def put(self, text: str) -> str:
        return json_text.put_block(text, self.words)

    def drop(self, text: str) -> str:
        return json_text.drop_blocks(text)


@dataclass(frozen=True)
class TomlServer:
    """An MCP server named nacre: a table between marks in a TOML file."""

    path: tuple[str, ...]
    value: Values

    def server(self, text: str) -> Server | None:
        return server_of(json_text.at(_toml(text), self.path))

    def is_marked(self, text: str) -> bool:
        """Return True if the table is between the comments that mark nacre's part."""
        return json_text.at(_toml(text), self.path) is not None and self._is_out(
            json_text.drop_blocks(text, json_text.TOML), _without(_toml(text), self.path)
        )

    def put(self, text: str) -> str:
        before = _toml(text)
        if json_text.at(before, self.path) == self.value and text.count(json_text.TOML[0]) == 1:
            return text
        expected = json_text.with_value(before, self.path, self.value)
        bare = self.drop(text)
        after = json_text.put_block(bare, self._render(), json_text.TOML)
        if _reads_as(after, expected):
            return after
        # The parent table is written inline, so there is no room for marks.
        document: Any = tomlkit.parse(bare)
        above = document
        for key in self.path[:-1]:
            above = above.setdefault(key, tomlkit.table())
        above[self.path[-1]] = dict(self.value)
        after = tomlkit.dumps(document)
        if not _reads_as(after, expected):
            raise UnparsableFileError(f"{'.'.join(self.path)} cannot be set safely")
        return after

    def drop(self, text: str) -> str:
        before = _toml(text)
        if json_text.at(before, self.path) is None and not json_text.blocks_of(
            text, json_text.TOML
        ):
            return text
        expected = _without(before, self.path)
        for after in self._drop_table_variants(text):
            if self._is_out(after, expected):
                return after
        raise UnparsableFileError(f"{'.'.join(self.path)} cannot be removed safely")

    def _is_out(self, text: str, expected: JsonObject) -> bool:
        """Return True if a text lacks the table, but nothing else except empty parent tables."""
        try:
            rest = _toml(text)
        except UnparsableFileError:
            return False
        return json_text.at(rest, self.path) is None and _without(rest, self.path) == expected

    def _drop_table_variants(self, text: str) -> Iterator[str]:
        """Yield candidate texts without the table. The caller picks a valid one."""
        yield json_text.drop_blocks(text, json_text.TOML)
        yield json_text.drop_tables(text, ".".join(self.path))
        document = tomlkit.parse(text)
        above: Any = document
        for key in self.path[:-1]:
            above = above[key]
        del above[self.path[-1]]
        yield tomlkit.dumps(document)

    def _render(self) -> str:
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


@dataclass(frozen=True)
class TomlTables:
    """TOML tables that a host creates for nacre. nacre can remove them, but never adds them.

    ``begins``: prefix of the tables' names.
    """

    path: tuple[str, ...]
    begins: str

    def put(self, text: str) -> str:
        return text

    def drop(self, text: str) -> str:
        tables = json_text.at(_toml(text), self.path)
        own = (
            [key for key in tables if key.startswith(self.begins)]
            if isinstance(tables, dict)
            else []
        )
        for key in own:
            text = _drop_quoted(text, self.path, key)
        if own and json_text.at(_toml(text), self.path) == {}:
            name = ".".join(self.path)
            text = re.sub(
                rf"^\[{re.escape(name)}\][ \t]*\r?\n(?:\r?\n)?", "", text, flags=re.MULTILINE
            )
        return text


@dataclass(frozen=True)
class WholeFile:
    """A file that belongs entirely to nacre."""

    content: str

    def put(self, _: str) -> str:
        return self.content

    def drop(self, text: str) -> str:
        return "" if text == self.content or "nacre" in text else text


@dataclass(frozen=True)
class ServerFile(WholeFile):
    """A file that contains only nacre's MCP server."""

    def server(self, text: str) -> Server | None:
        return server_in_yaml(text)


ServerPiece: TypeAlias = JsonServer | TomlServer | ServerFile
SettingPiece: TypeAlias = JsonSetting | TomlSetting


def _runs_own(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("hooks"), list):
        return bool(value["hooks"]) and all(map(_runs_own, value["hooks"]))
    return any(name in str(value.get("command", "")) for name in OWN_COMMANDS)


def _is_mixed(group: Values) -> bool:
    inner = group.get("hooks")
    return isinstance(inner, list) and any(map(_runs_own, inner)) and not all(map(_runs_own, inner))


def _drop_quoted(text: str, path: tuple[str, ...], key: str) -> str:
    """Remove a table with a quoted name from a TOML text. Nothing else changes."""
    begin = f"[{'.'.join(path)}."
    lines: list[str] = []
    is_own = False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if bare.startswith("["):
            name = bare[len(begin) :].rstrip("]").strip() if bare.startswith(begin) else ""
            is_own = name in (f'"{key}"', f"'{key}'")
        if not is_own:
            lines.append(line)
    if is_own and lines and not lines[-1].strip():
        lines.pop()  # the empty line before a table at the end
    return "".join(lines)


def _toml(text: str) -> JsonObject:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise UnparsableFileError(str(error)) from error


def _reads_as(text: str, expected: JsonObject) -> bool:
    try:
        return _toml(text) == expected
    except UnparsableFileError:
        return False


def _without(old: JsonObject, path: tuple[str, ...]) -> JsonObject:
    """Remove the value at a path, and parent tables that become empty."""
    if path[0] not in old:
        return old
    below = _without(old[path[0]], path[1:]) if len(path) > 1 else {}
    rest = {key: value for key, value in old.items() if key != path[0]}
    return {**rest, path[0]: below} if below else rest


# -- nacre's programs ------------------------------------------------------------------------------
# Hosts get absolute paths, because editors have a different PATH.


@frozen
class Programs:
    """The commands that start nacre.

    ``quick_hook`` starts a fast hook that the daemon answers. ``home`` is ``None`` for nacre's
    default folder. ``environ`` contains the environment variables that the commands need.
    """

    nacre: tuple[str, ...]
    hook: tuple[str, ...]
    home: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    platform: str = "linux"
    version: str = ""
    quick_hook: tuple[str, ...] = ()

    @property
    def mcp(self) -> tuple[str, list[str]]:
        """The command that starts the MCP server, and its arguments."""
        command, *arguments = self._words(self.nacre, "mcp")
        return command, arguments

    @property
    def given_environ(self) -> dict[str, str]:
        """The environment variables that a host must set for nacre's commands. Only Windows needs them."""
        return dict(self.environ) if self.platform == "win32" else {}

    def _words(self, program: tuple[str, ...], *first: str) -> list[str]:
        words = [*program, *first, *(["--home", self.home] if self.home else [])]
        if self.platform == "win32" or not self.environ:
            return words
        variables = (f"{name}={value}" for name, value in self.environ.items())
        return ["/usr/bin/env", *variables, *words]

    def mcp_server(self, **more: Any) -> JsonObject:
        """Return the settings for the MCP server in the format that most hosts use."""
        command, arguments = self.mcp
        environ = {"env": self.given_environ} if self.given_environ else {}
        return {"command": command, "args": arguments, **environ, **more}

    def hook_line(self, host: str, event: str, *, is_quick: bool = False) -> str:
        """Return a hook's shell command. If ``is_quick`` is True, use the fast hook if possible."""
        program = self.quick_hook if is_quick and self.quick_hook else self.hook
        words = [*self._words(program), host, event]
        return subprocess.list2cmdline(words) if self.platform == "win32" else shlex.join(words)

    def as_record(self) -> JsonObject:
        """Return the contents of ``nacre.json``, a file that some plugins read."""
        return {
            "version": self.version,
            "home": self.home,
            "nacre": list(self.nacre),
            "hook": list(self.hook),
            "env": dict(self.environ),
        }


# -- Hosts -----------------------------------------------------------------------------------------


SERVER = "nacre"
"""Name of the MCP server and the plugins, and key in other settings."""

READING_TOOLS = ("memory_search", "memory_get")
"""Tools that change nothing."""

FREE_TOOLS = (*READING_TOOLS, "memory_store")
"""Tools that an agent can call without asking, because they only read or propose memories."""

_IN_SESSION = frozenset({"UserPromptSubmit", "PreToolUse", "Stop"})
"""Frequent events that make the user wait, and therefore run the quick hook.

The quick hook reads to the end of its input, which hosts close for these events.
"""


@frozen
class Way:
    """The options of a connection.

    ``plain``: the host is connected with settings instead of a plugin. ``slot``: nacre is the
    host's memory provider. ``tool_hook``: a hook runs before each edit and command. ``isolates``:
    the host's own memory is turned off.
    """

    places: Places
    programs: Programs
    plain: bool = False
    slot: bool = False
    tool_hook: bool = False
    isolates: bool = False

    @property
    def project(self) -> Path | None:
        """The connected project's folder, or ``None`` for a connection of the user."""
        return self.places.project


@frozen
class Target:
    """A file and the parts of it that nacre writes. ``what``: name of these parts."""

    path: Path
    pieces: tuple[Piece, ...]
    what: str


@frozen
class MemoryPlace:
    """A file or folder in which a host keeps its own memory. ``source``: the importer's name."""

    source: str
    path: Path


@frozen
class Host:
    """An agent tool.

    ``programs``: the tool's commands. ``traces`` returns files or folders that show that the tool
    is installed. ``targets`` returns the files to change. ``notes`` returns advice for the user.
    ``by_user``: the user can be connected. ``by_project``: a project can be connected.
    ``own_memory`` returns the places of the tool's memory. ``can_isolate``: a setting can turn off
    this memory.
    ``copies`` returns folders in which the tool keeps copies of nacre's files.
    """

    name: str
    label: str
    programs: tuple[str, ...]
    traces: Callable[[Places], Sequence[Path]]
    targets: Callable[[Way], Iterable[Target]]
    notes: Callable[[Way], Sequence[str]] = lambda _: ()
    by_user: bool = True
    by_project: bool = True
    own_memory: Callable[[Places], Sequence[MemoryPlace]] | None = None
    can_isolate: bool = True
    copies: Callable[[Places], Sequence[Path]] = lambda _: ()


def hook_groups(
    way: Way, host: str, seconds: Mapping[str, int], matchers: Mapping[str, str] | None = None
) -> tuple[JsonHook, ...]:
    """Return hooks in Claude Code's format.

    ``seconds``: timeout for each event. ``matchers``: filters for events, for example by tool.
    """
    filters = matchers or {}
    return tuple(
        JsonHook(
            ("hooks", event),
            {
                **({"matcher": filters[event]} if event in filters else {}),
                "hooks": [
                    {
                        "type": "command",
                        **_entry(way, host, event, limit, is_quick=event in _IN_SESSION),
                    }
                ],
            },
        )
        for event, limit in seconds.items()
    )


def hook_entries(way: Way, host: str, seconds: dict[str, int]) -> tuple[JsonHook, ...]:
    """Return hooks in the format that lists entries directly under each event."""
    return tuple(
        JsonHook(("hooks", event), _entry(way, host, event, limit))
        for event, limit in seconds.items()
    )


def _entry(
    way: Way, host: str, event: str, limit: int, *, is_quick: bool = False
) -> dict[str, object]:
    return {"command": way.programs.hook_line(host, event, is_quick=is_quick), "timeout": limit}


# -- Tested versions -------------------------------------------------------------------------------
# They are listed in proven.toml.


@frozen
class Proven:
    """The version of a host that CI tests, the newest version tested, and when that was tested."""

    pinned: str
    newest: str
    on: date

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions without duplicates."""
        return tuple(dict.fromkeys((self.pinned, self.newest)))


@cache
def proven_versions() -> Mapping[str, Proven]:
    """Return the tested versions of each host."""
    tables = tomllib.loads((files(__package__) / "proven.toml").read_text(encoding="utf-8"))
    return {name: Proven(**table) for name, table in tables.items()}


# -- Texts for agents ------------------------------------------------------------------------------
# The same texts are used for all hosts.


@cache
def words(name: str) -> str:
    """Read a text from the folder ``words``."""
    return (files(__package__) / "words" / name).read_text(encoding="utf-8")


def instructions(front: str = "") -> str:
    """Return the content of an instructions file. ``front`` is front matter that the host requires."""
    return (f"---\n{front}\n---\n\n" if front else "") + words("instructions.md")
