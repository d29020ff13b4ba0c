"""An MCP server as hosts' settings name it: how it is started, and with what."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import tomlkit

from nacre.base import files as private_files
from nacre.hosts import files as json_text
from nacre.hosts.files import Places, Unparsable

_YAML = re.compile(r"^    (command|args|env): (.+)$", re.MULTILINE)
"""Continue's file is nacre's own, with values as JSON has them."""


@dataclass(frozen=True, slots=True)
class Server:
    """``words`` start it; there are none where it is reached in another way, or nobody can tell."""

    words: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


def server_of(value: Any) -> Server | None:
    """The server that a value of settings describes; ``None`` where there is no value."""
    if value is None:
        return None
    first = value.get("command") if isinstance(value, dict) else None
    if not first:
        return Server(())
    given = value.get("args")
    words = (
        first if isinstance(first, list) else [first, *(given if isinstance(given, list) else ())]
    )
    environ = value.get("env") or value.get("environment")
    named = environ if isinstance(environ, dict) else {}
    return Server(tuple(map(str, words)), {str(name): str(one) for name, one in named.items()})


def server_in_yaml(text: str) -> Server | None:
    """The server of a file in YAML that holds one alone, in the layout that nacre gives it."""
    if not text.strip():
        return None
    try:
        return server_of({key: json.loads(value) for key, value in _YAML.findall(text)})
    except ValueError:
        return Server(())


# ----------------------------------------------------------------------------
# The pieces that a wiring is made of: each knows how to put itself into a text of the owner's, and
# out of it again.


OWN_COMMANDS = ("nacre-hook", "nacre.serve.hook_process")
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
        return (
            text
            if json_text.find(text, self.path) is not None
            else json_text.put(text, self.path, self.value)
        )

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
        return value == self.value or bool(
            self.family and isinstance(value, str) and value.startswith(self.family)
        )


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
        line = json_text.newline(text)
        own = tomlkit.dumps({table: {key: self.value}}).replace("\n", line)
        if value is None:
            yield text.replace(line + own, "") if text != own else ""
        elif table not in before:
            yield (
                text
                + (line if text and not text.endswith(line) else "")
                + (line if text else "")
                + own
            )
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
        return json_text.put_block(text, self.words)

    def drop(self, text: str) -> str:
        """See Piece."""
        return json_text.drop_blocks(text)


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
            json_text.drop_blocks(text, json_text.TOML), _without(_toml(text), self.path)
        )

    def put(self, text: str) -> str:
        """See Piece."""
        before = _toml(text)
        if _at(before, self.path) == self.value and text.count(json_text.TOML[0]) == 1:
            return text
        wanted = _with(before, self.path, self.value)
        bare = self.drop(text)
        after = json_text.put_block(bare, self._rendered(), json_text.TOML)
        if _reads_as(after, wanted):
            return after
        after = self._put_inline(
            bare
        )  # the table above it is written in one line: there is no room for marks
        if not _reads_as(after, wanted):
            raise Unparsable(f"{'.'.join(self.path)} cannot be set without a risk to the rest")
        return after

    def drop(self, text: str) -> str:
        """See Piece."""
        before = _toml(text)
        if _at(before, self.path) is None and not json_text.has_block(text, json_text.TOML):
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
        yield json_text.drop_blocks(text, json_text.TOML)
        yield json_text.drop_tables(text, (".".join(self.path),))
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
        own = (
            [key for key in found if key.startswith(self.begins)] if isinstance(found, dict) else []
        )
        for key in own:
            text = _drop_quoted(text, self.path, key)
        if own and _at(_toml(text), self.path) == {}:
            name = ".".join(self.path)
            text = re.sub(
                rf"^\[{re.escape(name)}\][ \t]*\r?\n(?:\r?\n)?", "", text, flags=re.MULTILINE
            )
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


# ----------------------------------------------------------------------------
# nacre's programs as hosts are told to run them: with absolute paths, since editors have another
# PATH.


@dataclass(frozen=True, slots=True)
class Programs:
    """``nacre`` and ``hook`` are the words that start them; ``quick_hook`` those that start the hook which asks the
    daemon from a shell, where there is one. ``home`` is named only where it is not the usual one.

    ``environ`` is what they need of the environment, such as where modules lie that are not installed.
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
        """The command that serves MCP, and its arguments."""
        words = [
            *self._environ_words,
            *self.nacre,
            "mcp",
            *(["--home", self.home] if self.home else []),
        ]
        return words[0], words[1:]

    @property
    def given_environ(self) -> dict[str, str]:
        """What settings of hosts have to say of the environment: nothing where the command itself can say it.

        Some hosts refuse to set variables that could change what a program loads.
        """
        return dict(self.environ) if self.platform == "win32" else {}

    @property
    def _environ_words(self) -> list[str]:
        if self.platform == "win32" or not self.environ:
            return []
        return ["/usr/bin/env", *(f"{name}={value}" for name, value in self.environ.items())]

    def mcp_server(self, **more: Any) -> dict[str, Any]:
        """The server as most hosts' settings have it."""
        command, arguments = self.mcp
        environ = {"env": self.given_environ} if self.given_environ else {}
        return {"command": command, "args": arguments, **environ, **more}

    def hook_line(self, host: str, event: str, *, is_quick: bool = False) -> str:
        """The command line of a hook, as a shell reads it; ``is_quick``: of the quick one, where there is one."""
        program = self.quick_hook if is_quick and self.quick_hook else self.hook
        words = [
            *self._environ_words,
            *program,
            *(["--home", self.home] if self.home else []),
            host,
            event,
        ]
        return subprocess.list2cmdline(words) if self.platform == "win32" else shlex.join(words)

    def told(self) -> dict[str, Any]:
        """What plugins that are programs themselves are told: the file ``nacre.json`` beside them."""
        return {
            "version": self.version,
            "home": self.home,
            "nacre": list(self.nacre),
            "hook": list(self.hook),
            "env": dict(self.environ),
        }


# ----------------------------------------------------------------------------
# What a host is to nacre: where it is known by, and the files that a wiring of it touches.


SERVER = "nacre"
"""The name of the MCP server, of plugins, and of keys in settings of others."""

READING_TOOLS = ("memory_search", "memory_get")
"""Tools that change nothing."""

FREE_TOOLS = (*READING_TOOLS, "memory_store")
"""Tools that an agent may call without asking: they read, or propose what the owner may keep."""

_IN_SESSION = frozenset({"UserPromptSubmit", "PreToolUse", "Stop"})
"""Events that come often, and hold somebody up: the quick hook is for them. The tools that have them by these names end
what they hand over, which it waits for."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a host is to be wired. ``plain``: by its settings alone, where there would be a plugin.

    ``slot``: the host's place for memory, where it has one, becomes that of nacre. ``tool_hook``: a hook
    runs before each edit and command, too. ``isolates``: the host's own memory is turned off.
    """

    places: Places
    programs: Programs
    plain: bool = False
    slot: bool = False
    tool_hook: bool = False
    isolates: bool = False

    @property
    def project(self) -> Path | None:
        """The folder that is wired; ``None`` for all of the user's."""
        return self.places.project


@dataclass(frozen=True, slots=True)
class Target:
    """A file and what of nacre's goes into it; ``what`` tells it in a word or two."""

    path: Path
    pieces: tuple[Piece, ...]
    what: str


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """A file or folder of a host's own memory, and the source of imports that reads it."""

    source: str
    path: Path


@dataclass(frozen=True, slots=True)
class Host:
    """One agent tool.

    ``programs`` are the names of its commands and ``traces`` the files or folders by which it is recognised.
    ``targets`` says what a wiring touches; ``notes`` what a person has to do or to know afterwards. ``by_user`` and
    ``by_project`` say which scopes it has. ``own_memory`` says where the host keeps a memory of its own that it can be
    told to leave alone; ``None`` where there is none, or no setting for it. ``copies`` are folders in which the host
    keeps copies of nacre's own files, also when nacre is out.
    """

    name: str
    label: str
    programs: tuple[str, ...]
    traces: Callable[[Places], Sequence[Path]]
    targets: Callable[[Way], Sequence[Target]]
    notes: Callable[[Way], Sequence[str]] = lambda _: ()
    by_user: bool = True
    by_project: bool = True
    own_memory: Callable[[Places], Sequence[MemoryPlace]] | None = None
    copies: Callable[[Places], Sequence[Path]] = lambda _: ()


def hook_groups(
    way: Way, host: str, seconds: Mapping[str, int], matchers: Mapping[str, str] | None = None
) -> tuple[JsonHook, ...]:
    """Hooks in the shape that Claude Code made common: groups by event, each with a command and a time limit.

    ``matchers`` say of an event which of its occasions are meant, as tools by name.
    """
    known = matchers or {}
    return tuple(
        JsonHook(
            ("hooks", event),
            {
                **({"matcher": known[event]} if event in known else {}),
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
    """Hooks as a flat list by event."""
    return tuple(
        JsonHook(("hooks", event), _entry(way, host, event, limit))
        for event, limit in seconds.items()
    )


def _entry(
    way: Way, host: str, event: str, limit: int, *, is_quick: bool = False
) -> dict[str, object]:
    return {"command": way.programs.hook_line(host, event, is_quick=is_quick), "timeout": limit}


# ----------------------------------------------------------------------------
# The versions of hosts that were driven for real, as proven.toml lists them.


@dataclass(frozen=True, slots=True)
class Proven:
    """The version of a host that CI drives, and the newest that there was ``on`` a day."""

    pinned: str
    newest: str
    on: date

    @property
    def versions(self) -> tuple[str, ...]:
        """Both, or the one that is both."""
        return tuple(dict.fromkeys((self.pinned, self.newest)))


@cache
def proven_versions() -> Mapping[str, Proven]:
    """What was driven, by the name of the host."""
    tables = tomllib.loads((files(__package__) / "proven.toml").read_text(encoding="utf-8"))
    return {name: Proven(**table) for name, table in tables.items()}


# ----------------------------------------------------------------------------
# The words that agents are given about nacre: one source for all hosts.


@cache
def words(name: str) -> str:
    """A text of the folder ``words``."""
    return (files(__package__) / "words" / name).read_text(encoding="utf-8")


def instructions(front: str = "") -> str:
    """What goes into a file of instructions; ``front`` is the front matter that a host wants there."""
    return (f"---\n{front}\n---\n\n" if front else "") + words("instructions.md")


# ----------------------------------------------------------------------------
# Which hosts' own memories are turned off, and how far nacre has read them: ``hosts/own-memory.json``
# in the home.


@dataclass(frozen=True, slots=True)
class Isolated:
    """The hosts whose own memory is turned off. ``read`` has the hash of all notes of a place when they were read."""

    hosts: tuple[str, ...]
    read: Mapping[str, str]


def load(home: Path) -> Isolated:
    """What is turned off in a home; nothing where no record can be read."""
    try:
        found = json.loads(_path(home).read_bytes())
        hosts = tuple(one for one in found["hosts"] if isinstance(one, str))
        return Isolated(
            hosts, {key: value for key, value in found["read"].items() if isinstance(value, str)}
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Isolated((), {})


def save(home: Path, state: Isolated) -> None:
    """Write the record."""
    private_files.make_folder(_path(home).parent)
    private_files.write_file(
        _path(home), json.dumps({"hosts": state.hosts, "read": dict(state.read)}, indent=1)
    )


def isolate(home: Path, hosts: Sequence[str]) -> None:
    """From now on the own memories of these hosts are turned off, and of no others; without one there is no record."""
    before = load(home)
    if not hosts:
        _path(home).unlink(missing_ok=True)
    elif tuple(hosts) != before.hosts:
        save(home, Isolated(tuple(hosts), before.read))


def _path(home: Path) -> Path:
    return home / "hosts" / "own-memory.json"
