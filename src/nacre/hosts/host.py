"""Hosts, the settings that nacre adds to them, and nacre's programs."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.base.plain import JsonObject, Values, mapping
from nacre.hosts import files as json_text
from nacre.hosts.files import Places, UnparsableFileError
from nacre.values.reports import WiringWish

if TYPE_CHECKING:
    import tomlkit
else:
    tomlkit = Module("tomlkit")

_YAML = re.compile(r"^    (command|args|env): (.+)$", re.MULTILINE)
"""Matches the command in Continue's file, where nacre writes the values as JSON."""


@frozen
class Server:
    """An MCP server in a host's settings, with its command line (empty if unknown)."""

    words: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


def server_of(value: Any) -> Server | None:
    """Return the server that a value in the settings describes, or ``None`` if it is missing."""
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


# -- Parts of hosts' files -------------------------------------------------------------------------
# Each piece can add itself to a file's text and remove itself.


OWN_COMMANDS = ("nacre-hook", "nacre.serve.hook_process")
"""Parts by which a command is recognised as nacre's hook, wherever nacre is installed."""


class Piece(Protocol):
    """Content that nacre adds to a host's file. All methods raise UnparsableFileError."""

    def put(self, text: str) -> str:
        """Return the file's text with this piece, which is added only once."""

    def drop(self, text: str) -> str:
        """Return the file's text without this piece."""


@frozen
class JsonKey:
    """A JSON key that belongs to nacre, and its value."""

    path: tuple[str, ...]
    value: Any

    def put(self, text: str) -> str:
        return json_text.put(text, self.path, self.value)

    def drop(self, text: str) -> str:
        return json_text.drop(text, self.path)


@frozen
class JsonServer(JsonKey):
    """nacre's MCP server in a JSON file."""

    def server(self, text: str) -> Server | None:
        return server_of(json_text.find(text, self.path))


@frozen
class JsonDefault(JsonKey):
    """A JSON key that nacre sets only if it is missing.

    Disconnecting removes the key if it ``is_own`` and its value is unchanged.
    """

    is_own: bool = False

    def put(self, text: str) -> str:
        return JsonKey.put(self, text) if json_text.find(text, self.path) is None else text

    def drop(self, text: str) -> str:
        is_as_put = self.is_own and json_text.find(text, self.path) == self.value
        return JsonKey.drop(self, text) if is_as_put else text


@frozen
class JsonItem:
    """A list item in a JSON file that belongs to nacre."""

    path: tuple[str, ...]
    value: str

    def put(self, text: str) -> str:
        return json_text.add(text, self.path, self.value)

    def drop(self, text: str) -> str:
        return json_text.filter_out(text, self.path, lambda value: value == self.value)


@frozen
class JsonHook:
    """A hook in the list of an event: an entry with a command, or a group of such entries."""

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
        """Remove the hook, but keep other hooks in the same group."""
        present = json_text.find(text, self.path)
        if not isinstance(present, list):
            return text
        for at, group in enumerate(present):
            hooks = mapping(group).get("hooks")
            listed = hooks if isinstance(hooks, list) else []
            foreign = [hook for hook in listed if not _runs_own(hook)]
            if 0 < len(foreign) < len(listed):
                present = [*present[:at], {**group, "hooks": foreign}, *present[at + 1 :]]
                text = json_text.put(text, self.path, present)
        return json_text.filter_out(text, self.path, _runs_own)


@frozen
class JsonSetting(JsonKey):
    """A host setting that nacre changes.

    ``before`` is the old value, or ``None`` if there was none. Disconnecting restores it only if
    nobody has changed the setting since.
    """

    before: Any = None

    def read(self, text: str) -> Any:
        return json_text.find(text, self.path)

    def drop(self, text: str) -> str:
        if self.read(text) != self.value:
            return text
        if self.before is None:
            return JsonKey.drop(self, text)
        return json_text.put(text, self.path, self.before)


@frozen
class TomlSetting:
    """A host setting in a TOML file. ``path`` is the name of the table and the key."""

    path: tuple[str, str]
    value: Any
    before: Any = None

    def read(self, text: str) -> Any:
        return json_text.at(_toml(text), self.path)

    def put(self, text: str) -> str:
        return text if self.read(text) == self.value else _set(text, self.path, self.value)

    def drop(self, text: str) -> str:
        if self.read(text) != self.value:
            return text
        if self.before is None:
            return _delete(text, self.path)
        return _set(text, self.path, self.before)


@frozen
class Block:
    """Text that nacre adds between its marks."""

    words: str

    def put(self, text: str) -> str:
        return json_text.put_block(text, self.words)

    def drop(self, text: str) -> str:
        return json_text.drop_blocks(text)


@frozen
class TomlServer:
    """nacre's MCP server in a TOML file: a table between two marks."""

    path: tuple[str, ...]
    value: Values

    def server(self, text: str) -> Server | None:
        return server_of(json_text.at(_toml(text), self.path))

    def is_marked(self, text: str) -> bool:
        """Return True if the table is between nacre's marks."""
        header = f"[{'.'.join(self.path)}]"
        return any(header in block for block in json_text.blocks_of(text, json_text.TOML))

    def put(self, text: str) -> str:
        before = _toml(text)
        if json_text.at(before, self.path) == self.value and text.count(json_text.TOML[0]) == 1:
            return text
        bare = self.drop(text)
        after = json_text.put_block(bare, _set("", self.path, self.value), json_text.TOML)
        if _reads_as(after, json_text.with_value(before, self.path, self.value)):
            return after
        return _set(bare, self.path, self.value)  # an inline parent table has no room for marks

    def drop(self, text: str) -> str:
        after = json_text.drop_blocks(text, json_text.TOML)
        if _is_without(after, text, self.path):
            return after
        # Hosts that rewrite the file put other tables between the marks.
        lines = text.splitlines(keepends=True)
        unmarked = "".join(line for line in lines if line.strip() not in json_text.TOML)
        return _delete(unmarked, self.path)


@frozen
class TomlTables:
    """TOML tables that a host creates for nacre. Their names begin with ``begins``.

    nacre can remove them, but never adds them.
    """

    path: tuple[str, ...]
    begins: str

    def put(self, text: str) -> str:
        return text

    def drop(self, text: str) -> str:
        tables = json_text.at(_toml(text), self.path)
        for key in tables if isinstance(tables, dict) else ():
            if key.startswith(self.begins):
                text = _delete(text, (*self.path, key))
        return text


@frozen
class WholeFile:
    """A file that belongs entirely to nacre."""

    content: str

    def put(self, _: str) -> str:
        return self.content

    def drop(self, text: str) -> str:
        return "" if text == self.content or "nacre" in text else text


@frozen
class ServerFile(WholeFile):
    """A file that contains only nacre's MCP server."""

    def server(self, text: str) -> Server | None:
        if not text.strip():
            return None
        try:
            return server_of({key: json.loads(value) for key, value in _YAML.findall(text)})
        except ValueError:
            return Server(())


ServerPiece: TypeAlias = JsonServer | TomlServer | ServerFile
SettingPiece: TypeAlias = JsonSetting | TomlSetting


def _runs_own(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("hooks"), list):
        return bool(value["hooks"]) and all(map(_runs_own, value["hooks"]))
    return any(name in str(value.get("command", "")) for name in OWN_COMMANDS)


def _toml(text: str) -> JsonObject:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise UnparsableFileError(str(error)) from error


def _set(text: str, path: tuple[str, ...], value: Any) -> str:
    document = tomlkit.parse(text)
    above = document
    for key in path[:-1]:
        above = above.setdefault(key, tomlkit.table(is_super_table=True))
    above[path[-1]] = value
    after = tomlkit.dumps(document)
    if not _reads_as(after, json_text.with_value(_toml(text), path, value)):
        raise UnparsableFileError(f"{'.'.join(path)} cannot be set safely")
    return after


def _delete(text: str, path: tuple[str, ...]) -> str:
    if json_text.at(_toml(text), path) is None:
        return text
    tables = [tomlkit.parse(text)]
    for key in path[:-1]:
        tables.append(tables[-1][key])
    del tables[-1][path[-1]]
    for table, key in zip(tables[-2::-1], path[-2::-1], strict=True):
        if not table[key]:
            del table[key]
    after = tomlkit.dumps(tables[0])
    ends = ("\n\n", "\n\r\n")
    if after.endswith(ends) and not text.endswith(ends):
        after = after[:-1].removesuffix("\r")  # the empty line before a table at the end
    if not _is_without(after, text, path):
        raise UnparsableFileError(f"{'.'.join(path)} cannot be removed safely")
    return after


def _reads_as(text: str, expected: JsonObject) -> bool:
    try:
        return _toml(text) == expected
    except UnparsableFileError:
        return False


def _is_without(after: str, before: str, path: tuple[str, ...]) -> bool:
    try:
        remaining = _toml(after)
    except UnparsableFileError:
        return False
    expected = json_text.with_value(_toml(before), path, None)
    is_out = json_text.at(remaining, path) is None
    return is_out and json_text.with_value(remaining, path, None) == expected


# -- nacre's programs ------------------------------------------------------------------------------
# Hosts get absolute paths, because editors have a different PATH.


@frozen
class Programs:
    """The commands that start nacre.

    ``quick_hook``: a fast hook, answered by the daemon. ``home``: ``None`` for nacre's default
    folder. ``environ``: the environment variables that the commands need.
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
        """The environment variables that a host on Windows must set for nacre's commands."""
        return dict(self.environ) if self.platform == "win32" else {}

    def _words(self, program: tuple[str, ...], *first: str) -> list[str]:
        words = [*program, *first, *(["--home", self.home] if self.home else [])]
        if self.platform == "win32" or not self.environ:
            return words
        variables = (f"{name}={value}" for name, value in self.environ.items())
        return ["/usr/bin/env", *variables, *words]

    def mcp_server(self, **more: Any) -> JsonObject:
        """Return the MCP server's settings in the format that most hosts use."""
        command, arguments = self.mcp
        environ = {"env": self.given_environ} if self.given_environ else {}
        return {"command": command, "args": arguments, **environ, **more}

    def hook_line(self, host: str, event: str) -> str:
        """Return a hook's shell command, with the fast hook for frequent events if possible."""
        program = (event in _IN_SESSION and self.quick_hook) or self.hook
        words = [*self._words(program), host, event]
        return subprocess.list2cmdline(words) if self.platform == "win32" else shlex.join(words)


# -- Hosts -----------------------------------------------------------------------------------------


SERVER = "nacre"
"""Name of the MCP server and the plugins, also used as a key in settings."""

READING_TOOLS = ("memory_search", "memory_get")
"""Tools that change nothing."""

FREE_TOOLS = (*READING_TOOLS, "memory_store")
"""Tools that an agent may call without asking, because they only read or propose memories."""

_IN_SESSION = frozenset({"UserPromptSubmit", "PreToolUse", "Stop"})
"""Frequent events that make the user wait. They therefore run the quick hook.

The quick hook reads its input to the end, and hosts close the input for these events.
"""


@frozen
class Way:
    """A requested connection, with this machine's folders and nacre's programs."""

    places: Places
    programs: Programs
    wish: WiringWish

    @property
    def project(self) -> Path | None:
        """The folder of the connected project, or ``None`` for a user-wide connection."""
        return self.places.project


@frozen
class Target:
    """A file, the pieces that nacre writes into it, and a name for them (``what``)."""

    path: Path
    pieces: tuple[Piece, ...]
    what: str


@frozen
class MemoryPlace:
    """A host's own memory file or folder, and the importer that reads it (``source``)."""

    source: str
    path: Path


@frozen
class Host:
    """An agent tool that nacre can be connected to.

    ``programs``: the tool's commands. ``traces``: returns paths that exist if the tool is
    installed. ``targets``: returns the files to change. ``notes``: returns advice for the user.
    ``by_user``, ``by_project``: whether the user or a project can be connected. ``own_memory``:
    returns where the tool's own memory is. ``can_isolate``: whether a setting turns it off.
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


def hook_groups(
    way: Way, host: str, seconds: Mapping[str, int], matchers: Mapping[str, str]
) -> tuple[JsonHook, ...]:
    """Return hooks in Claude Code's format.

    ``seconds`` maps events to time limits, and ``matchers`` to filters such as tool names.
    """
    return tuple(
        JsonHook(
            ("hooks", event),
            {
                **({"matcher": matchers[event]} if event in matchers else {}),
                "hooks": [{"type": "command", **_entry(way, host, event, limit)}],
            },
        )
        for event, limit in seconds.items()
    )


def hook_entries(way: Way, host: str, seconds: dict[str, int]) -> tuple[JsonHook, ...]:
    """Return hooks in the format that lists the entries directly under each event."""
    return tuple(
        JsonHook(("hooks", event), _entry(way, host, event, limit))
        for event, limit in seconds.items()
    )


def _entry(way: Way, host: str, event: str, limit: int) -> JsonObject:
    return {"command": way.programs.hook_line(host, event), "timeout": limit}


# -- Texts for agents ------------------------------------------------------------------------------


@cache
def words(name: str) -> str:
    """Return the content of a file from the folder ``words``."""
    return (files(__package__) / "words" / name).read_text(encoding="utf-8")


def instructions(front: str = "") -> str:
    """Return the content of an instructions file. ``front`` is front matter that the host needs."""
    return (f"---\n{front}\n---\n\n" if front else "") + words("instructions.md")
