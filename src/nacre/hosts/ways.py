"""The record of connected hosts, and the planning of changes to their files.

The record is ``hosts/wiring.json`` in nacre's home. Removing nacre needs it to restore the files.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from nacre import __version__
from nacre.base import files
from nacre.base import json as json_values
from nacre.base.bounds import bounds
from nacre.base.environment import server_address
from nacre.base.frozen import frozen
from nacre.base.plain import JsonObject, Values, mapping, objects_in, string
from nacre.base.request import Request
from nacre.errors import InvalidInputError
from nacre.hosts import files as files_module
from nacre.hosts import registry
from nacre.hosts.files import Places, Text, UneditableFileError, UnparsableFileError
from nacre.hosts.host import (
    OWN_COMMANDS,
    Block,
    Host,
    JsonHook,
    Programs,
    Server,
    ServerPiece,
    SettingPiece,
    Target,
    TomlServer,
    Way,
    WholeFile,
    instructions,
)
from nacre.hosts.registry import ALL_HOSTS, OPENCLAW
from nacre.settings import Settings
from nacre.values.reports import (
    FileChange,
    LeftAlone,
    OwnMemory,
    WiringWish,
)


@dataclass(frozen=True)
class WrittenFile:
    """A file that nacre changed.

    ``before``, ``after``: hashes of the original content ("" for a new file) and the new content.
    ``backup``: copy of the original. ``older``: previous backups. ``made``: folders created for the
    file.
    """

    after: str
    before: str = ""
    backup: str = ""
    made: tuple[str, ...] = ()
    older: tuple[str, ...] = ()

    @property
    def copies(self) -> tuple[Path, ...]:
        return tuple(Path(path) for path in (*self.older, self.backup) if path)


@dataclass(frozen=True)
class Wired:
    """The record of all connections. All mappings have paths as keys.

    ``servers``: command lines of the MCP servers that nacre wrote. ``settings``: old values of
    changed host settings (``None`` if there was none). ``nacre``, ``program``: nacre's version and
    path when a file was last written.
    """

    wishes: tuple[WiringWish, ...] = ()
    files: dict[str, WrittenFile] = field(default_factory=dict)
    servers: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    nacre: str = ""
    program: str = ""


def hooks_start_daemon(settings: Settings) -> bool:
    """Return True if agents are connected to this home and their hooks can start its daemon."""
    return bool(load(settings.home).wishes) and settings.flag("daemon.enabled")


def load(home: Path) -> Wired:
    """Return a home's record of connections, or an empty one if it cannot be read."""
    try:
        record = json_values.decode(_path(home).read_bytes(), Wired)
        return replace(
            record, wishes=tuple(wish for wish in record.wishes if wish.host in ALL_HOSTS)
        )
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return Wired()


def save(home: Path, wired: Wired) -> None:
    """Save a home's record of connections, or delete the file if the record is empty."""
    if wired.wishes or wired.files or wired.settings:
        files.make_folder(_path(home).parent)
        files.write_file(
            _path(home), msgspec.json.format(msgspec.json.encode(wired, enc_hook=str), indent=1)
        )
        return
    _path(home).unlink(missing_ok=True)
    if _path(home).parent.is_dir() and not any(_path(home).parent.iterdir()):
        _path(home).parent.rmdir()


def digest(content: bytes | None) -> str:
    """Return the hash of a file's content, or an empty string if there is no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _path(home: Path) -> Path:
    return home / "hosts" / "wiring.json"


# -- Ways to connect a host ------------------------------------------------------------------------
# A way depends on this machine's folders and on where nacre's programs are installed.


_QUICK_HOOK = "nacre-hook.sh"
_PINNED = ("NACRE_CONFIG", "NACRE_DB")
_FOLDERS = (
    "APPDATA",
    "CLAUDE_CONFIG_DIR",
    "CLINE_DIR",
    "CODEX_HOME",
    "CONTINUE_GLOBAL_DIR",
    "OPENCLAW_STATE_DIR",
    "XDG_CONFIG_HOME",
)
"""Environment variables that locate hosts' files."""


@frozen
class FoundHost:
    """A host on this machine, its program, and whether it is connected for the user."""

    host: Host
    program: str | None
    is_wired: bool


def host_named(name: str) -> Host:
    """Return the host with this name. Raises InvalidInputError."""
    if name not in ALL_HOSTS:
        raise InvalidInputError(
            f"there is no host {name!r}", hint=f"one of: {', '.join(ALL_HOSTS)}"
        )
    return ALL_HOSTS[name]


def found_hosts(settings: Settings) -> list[FoundHost]:
    """Return the hosts whose programs or files are on this machine, in a fixed order.

    The user's folder and the working folder are searched for files.
    """
    user = places_of(settings)
    places = [user, *(replace(user, user=folder, environ={}) for folder in _working_folders())]
    wired = {wish.host for wish in load(settings.home).wishes if wish.project is None}
    hosts = []
    for host in ALL_HOSTS.values():
        program = next(filter(None, (program_of(settings, name) for name in host.programs)), None)
        if program or any(path.exists() for place in places for path in host.traces(place)):
            hosts.append(FoundHost(host, program, host.name in wired))
    return hosts


def _working_folders() -> list[Path]:
    try:
        working_folder = Path.cwd()
    except FileNotFoundError:
        # The working folder was deleted.
        return []
    above = [working_folder, *working_folder.parents]
    top = next((at for at, folder in enumerate(above) if (folder / ".git").exists()), 0)
    return above[: top + 1]


def way_of(settings: Settings, wish: WiringWish) -> Way:
    """Return how to connect a host. Raises InvalidInputError for a scope that it does not support."""
    host = host_named(wish.host)
    if wish.project is None and not host.by_user:
        raise InvalidInputError(
            f"{host.name} can only be connected for a project",
            hint=f"nacre init --host {host.name} --project .",
        )
    if wish.project is not None and not host.by_project:
        raise InvalidInputError(
            f"{host.label} has no project settings", hint=f"nacre init --host {host.name}"
        )
    return Way(places_of(settings, wish.project), own_programs(settings), wish)


def drop_unsupported(wish: WiringWish) -> WiringWish:
    """Return the wish without the options that the host does not support."""
    return replace(
        wish,
        slot=wish.slot and wish.host == OPENCLAW,
        tool_hook=wish.tool_hook and wish.host in (registry.NAME, registry.NAME_CODEX),
        isolates=wish.isolates and can_isolate(wish),
        introduces=wish.introduces and has_own_memory(wish),
    )


def has_own_memory(wish: WiringWish) -> bool:
    """Return True if the host has its own memory and is connected for the user."""
    return not wish.project and host_named(wish.host).own_memory is not None


def can_isolate(wish: WiringWish) -> bool:
    """Return True if nacre can turn off the host's own memory."""
    return has_own_memory(wish) and host_named(wish.host).can_isolate


def init_command(wish: WiringWish, *more: str) -> str:
    """Return the ``nacre init`` command for a connection, with the options ``more``."""
    project = ["--project", str(wish.project)] if wish.project else []
    named = {
        "--slot": wish.slot,
        "--tool-hook": wish.tool_hook,
        "--own-memory isolate": wish.isolates,
        "--own-memory note": wish.introduces,
    }
    forms = []
    if "--uninstall" not in more:
        forms = " ".join(option for option, is_wanted in named.items() if is_wanted).split()
    return shlex.join(["nacre", "init", "--host", wish.host, *project, *forms, *more])


def targets_of(settings: Settings, wish: WiringWish) -> Sequence[Target]:
    """Return the files to change for a connection. Raises InvalidInputError."""
    targets = tuple(host_named(wish.host).targets(way_of(settings, wish)))
    if not wish.introduces or wish.host == registry.NAME_CODEX:  # Codex rewrites its file
        return targets
    block = (Block(instructions()),)
    lists = [path for path in own_notes(settings, wish) if path.name == "MEMORY.md"]
    return (*targets, *(Target(path, block, "own memory: a note about nacre") for path in lists))


def own_notes(settings: Settings, wish: WiringWish) -> list[Path]:
    """Return the Markdown files of a host's own memory."""
    own = host_named(wish.host).own_memory
    paths = [place.path for place in own(places_of(settings))] if own and not wish.project else []
    return [
        path
        for place in paths
        for path in (sorted(place.glob("*.md")) if place.is_dir() else [place])
        if path.is_file()
    ]


def places_of(settings: Settings, project: Path | None = None) -> Places:
    """Return the folders and variables that locate hosts' files."""
    return Places(
        settings.user_home, settings.home.absolute(), settings.environ, settings.platform, project
    )


def roots_for(settings: Settings, path: Path, project: Path | None) -> list[Path]:
    """Return the folders in which a file may be changed: only the project for a project's file."""
    if project and path.is_relative_to(project):
        return [project]
    named = [Path(settings.environ[name]) for name in _FOLDERS if settings.environ.get(name)]
    config = settings.environ.get("OPENCLAW_CONFIG_PATH")
    return [settings.user_home, settings.home, *named, *([Path(config).parent] if config else [])]


def own_programs(settings: Settings) -> Programs:
    """Return the absolute paths of nacre's programs.

    If a program is missing, the interpreter runs its module instead.
    """
    nacre, hook = (
        _script(settings, name) or (sys.executable, "-P", "-m", module)
        for name, module in (("nacre", "nacre"), ("nacre-hook", "nacre.serve.hook_process"))
    )
    environ = {name: settings.environ[name] for name in _PINNED if settings.environ.get(name)}
    if server_address(environ):
        # The address contains a password, which must not be written to hosts' files.
        del environ["NACRE_DB"]
    if modules := settings.environ.get("PYTHONPATH"):
        environ["PYTHONPATH"] = os.pathsep.join(
            os.path.abspath(module_path) for module_path in modules.split(os.pathsep) if module_path
        )
    usual = settings.user_home / ".nacre"
    home = None if settings.home.absolute() == usual else str(settings.home.absolute())
    quick = _script(settings, _QUICK_HOOK) if settings.platform != "win32" else None
    return Programs(nacre, hook, home, environ, settings.platform, __version__, quick or ())


def program_of(settings: Settings, name: str) -> str | None:
    """Return the path of a command on the user's PATH, or ``None``."""
    return shutil.which(name, path=settings.environ.get("PATH"))


def _script(settings: Settings, name: str) -> tuple[str, ...] | None:
    suffix = ".exe" if settings.platform == "win32" else ""
    running = Path(sys.argv[0])
    folders = [Path(sys.executable).parent]
    if running.stem == "nacre" and running.is_file():
        folders.insert(0, running.absolute().parent)
    paths = (folder / (name + suffix) for folder in folders)
    return next(((str(path),) for path in paths if path.is_file()), None)


# -- Messages to and from programs -----------------------------------------------------------------


class RpcError(Exception):
    """Raised if a program does not answer. Its message gives the reason."""


class RpcProcess:
    """A context manager for a program with which to exchange JSON-RPC messages, one per line.

    The program is killed after ``seconds``.
    """

    def __init__(
        self, words: Sequence[str], environ: Mapping[str, str], folder: Path, seconds: float
    ) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._number = 0
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end
        try:
            self._process = subprocess.Popen(
                words,
                env=dict(environ),
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            self._errors.close()
            raise RpcError(f"it cannot be started ({error.strerror})") from error
        self._timer = threading.Timer(seconds, self._process.kill)
        self._timer.start()

    def __enter__(self) -> RpcProcess:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # it ended before the request
            self._process.communicate()  # closes its input
        self._timer.cancel()
        self._errors.close()

    def ask(self, method: str, parameters: Values) -> Any:
        self._number += 1
        self.send(method, id=self._number, params=parameters)
        for line in self._process.stdout or ():
            try:
                message = mapping(json.loads(line))
            except ValueError:  # some programs print a notice first
                continue
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    reason = string(message["error"], "message") or "no reason given"
                    raise RpcError(f"it refuses: {reason[:200]}")
                return message.get("result")
        raise self._ended()

    def send(self, method: str, **more: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, **more}
        try:
            self._process.stdin.write(json.dumps(message) + "\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        except OSError as error:
            raise self._ended() from error

    def _ended(self) -> RpcError:
        self._process.wait()
        if time.monotonic() >= self._until:
            return RpcError(f"no answer within {self._seconds:.0f} seconds")
        self._errors.seek(0)
        error_text = " ".join(self._errors.read().decode("utf-8", "replace").split())[-200:]
        return RpcError("it ended" + (f": {error_text}" if error_text else ""))


# -- Current contents of hosts' files --------------------------------------------------------------


@frozen
class HostParts:
    """nacre's hooks (event and command line) and the MCP servers in a host's files."""

    hooks: Sequence[tuple[str, str]]
    servers: Sequence[Server]


def read_parts(settings: Settings, wish: WiringWish) -> HostParts:
    """Return nacre's hooks and the MCP servers in the host's files."""
    hooks: dict[tuple[str, str], None] = {}
    servers = []
    for target in targets_of(settings, wish):
        text = text_of(target.path)
        if any(isinstance(piece, JsonHook) for piece in target.pieces):
            hooks |= dict.fromkeys(_hooks_in(json_in(text)))
        for piece in target.pieces:
            with suppress(UnparsableFileError):
                server = piece.server(text) if isinstance(piece, ServerPiece) else None
                servers += [server] if server and server.words else []
    return HostParts(tuple(hooks), servers)


def text_of(path: Path) -> str:
    """Return a file's text, or an empty string if it is not a regular file or cannot be read."""
    try:
        return files_module.read(path).words
    except UneditableFileError:
        return ""


def json_in(text: str) -> Any:
    """Parse JSON text. Return an empty object if the text is invalid."""
    try:
        return files_module.read_json_text(text)
    except UnparsableFileError:
        return {}


def _hooks_in(content: Any) -> Iterator[tuple[str, str]]:
    for event, groups in mapping(content, "hooks").items():
        for group in objects_in(groups):
            for entry in objects_in(group.get("hooks", [group])):
                command = str(entry.get("command", ""))
                if any(name in command for name in OWN_COMMANDS):
                    yield event, command


# -- Servers that belong to the user ---------------------------------------------------------------
# nacre never changes a server that the user configured, or adds a second one without notice.


_FOREIGN_REASON = "the server nacre in it stays, because nacre init did not write it"
_FOREIGN_HINT = "agents continue to use it"


class Servers:
    """The MCP servers in a plan.

    ``foreign``: the user's servers, which are not changed. ``written``: the command lines of
    nacre's servers, by file.
    """

    def __init__(self, wired: Wired, *, is_removal: bool) -> None:
        self._wired = wired
        self._is_removal = is_removal
        self.foreign: dict[LeftAlone, None] = {}
        self.written = dict(wired.servers)

    def spare(
        self, path: Path, words: str, wish: WiringWish, target: Target, *, is_put: bool
    ) -> Target:
        """Return the target without the user's own servers, which must not change."""
        pieces = []
        for piece in target.pieces:
            if not isinstance(piece, ServerPiece):
                pieces.append(piece)
                continue
            server = piece.server(words)
            if server and not self._is_own(path, words, wish, piece, server):
                if self._is_removal or (is_put and piece.put(words) != words):
                    hint = f"agents use that one; to use nacre's, remove it and run {init_command(wish)}"
                    # The arguments are left out because they can be secret.
                    runs = f": it runs {server.words[0]}" if server.words else ""
                    kept = LeftAlone(
                        path,
                        wish.host,
                        f"{_FOREIGN_REASON}{runs}",
                        _FOREIGN_HINT if self._is_removal else hint,
                    )
                    self.foreign[kept] = None
                continue
            pieces.append(piece)
            if is_put and (new_server := piece.server(piece.put(words))):
                known = self.written.get(str(path), ())
                self.written[str(path)] = tuple(dict.fromkeys((*known, new_server.words)))
        return replace(target, pieces=tuple(pieces))

    def _is_own(
        self, path: Path, words: str, wish: WiringWish, piece: ServerPiece, server: Server
    ) -> bool:
        if server.words in self.written.get(str(path), ()):
            return True
        if isinstance(piece, TomlServer) and piece.is_marked(words):
            return True
        # If the host is not connected, an entry is nacre's if nacre would write the same one.
        is_connected = wish.place in {other.place for other in self._wired.wishes}
        return not is_connected and piece.put(words) == words


# -- Hosts' own memories ---------------------------------------------------------------------------
# nacre turns these memories off in the hosts' settings, and restores settings that nobody has changed
# since.


ISOLATED, RESTORED, CONFLICT = "isolated", "restored", "conflict"

_ISOLATED = "the host neither loads nor writes it; anything written there is imported"
_RESTORED = "the host still loads and writes it"
_UNWRITTEN = "its settings could not be changed: the host still loads and writes it"
_ON_HINT = "nacre init --host {host} --own-memory keep keeps it on; --own-memory isolate then turns it off again"


class OwnMemories:
    """The settings that turn off hosts' own memories.

    ``settings`` holds the old values of all changed settings.
    """

    def __init__(self, wired: Wired) -> None:
        self._before = {wish.place: wish for wish in wired.wishes}
        self._problems: dict[str, OwnMemory] = {}
        self.settings = dict(wired.settings)

    def spare(
        self, path: Path, words: str, wish: WiringWish, target: Target, *, is_put: bool
    ) -> tuple[Target, dict[str, Any]]:
        """Return the target without settings that must not change, and the file's old settings."""
        record = dict(self.settings.get(str(path), {}))
        before = self._before.get(wish.place)
        pieces = []
        for piece in target.pieces:
            if not isinstance(piece, SettingPiece):
                pieces.append(piece)
                continue
            name, current = ".".join(piece.path), piece.read(words)
            if is_put and current != piece.value:
                if name in record and before and before.isolates:
                    finding = f"it was turned on again in {path} ({name}), and stays on"
                    hint = _ON_HINT.format(host=wish.host)
                    self._problems[wish.host] = OwnMemory(wish.host, CONFLICT, finding, hint)
                else:
                    record[name] = current
                    pieces.append(piece)
            elif not is_put and name in record:
                old = record.pop(name)
                if current == piece.value:
                    pieces.append(replace(piece, before=old))
        return replace(target, pieces=tuple(pieces)), record

    def fail(self, wish: WiringWish, target: Target) -> None:
        if any(isinstance(piece, SettingPiece) for piece in target.pieces):
            self._problems.setdefault(wish.host, unwritten(wish.host))

    def states(self, wishes: tuple[WiringWish, ...], *, is_removal: bool) -> Iterator[OwnMemory]:
        """Yield what the plan does to each host's own memory."""
        for wish in wishes:
            before = self._before.get(wish.place)
            if wish.isolates and not is_removal:
                yield self._problems.get(wish.host) or OwnMemory(wish.host, ISOLATED, _ISOLATED)
            elif before and before.isolates:
                yield OwnMemory(wish.host, RESTORED, _RESTORED)


def unwritten(host: str) -> OwnMemory:
    """Return the state of a host's own memory if its settings could not be changed."""
    return OwnMemory(
        host,
        CONFLICT,
        _UNWRITTEN,
        f"nacre init --host {host} --own-memory isolate, as soon as they can be changed",
    )


# -- New contents of files -------------------------------------------------------------------------
# Each file is read only once, even if several hosts need changes to it.


_OWN_MODE, _PROJECT_MODE = 0o600, 0o644
_EMPTY = frozenset({"", "{}", '{"version":1}'})
"""Contents that count as an empty file once nacre's pieces are removed."""


def _change(words: str, target: Target, *, is_put: bool) -> str:
    for piece in target.pieces:
        words = piece.put(words) if is_put else piece.drop(words)
    return words


@dataclass(slots=True)
class _Draft:
    text: Text
    words: str
    is_there: bool
    mode: int
    is_pristine: bool
    hosts: dict[str, None] = field(default_factory=dict)
    whats: dict[str, None] = field(default_factory=dict)
    is_whole: bool = False


class Drafts:
    """The planned changes to files. A file that several hosts share occurs only once."""

    def __init__(self, settings: Settings, wired: Wired, *, is_removal: bool) -> None:
        self._settings = settings
        self._is_removal = is_removal
        self._drafts: dict[Path, _Draft] = {}
        self.left_alone: dict[LeftAlone, None] = {}
        self.servers = Servers(wired, is_removal=is_removal)
        self.own_memories = OwnMemories(wired)

    def take(self, wish: WiringWish, target: Target, *, is_put: bool) -> None:
        """Plan to add or remove nacre's pieces in a file, or record why it cannot be changed."""
        if not target.pieces:
            return
        try:
            path = files_module.real_place(
                target.path, roots_for(self._settings, target.path, wish.project)
            )
            draft = self._drafts.get(path)
            text = draft.text if draft else files_module.read(path)
            before = draft.words if draft else text.words
            target = self.servers.spare(path, before, wish, target, is_put=is_put)
            target, record = self.own_memories.spare(path, before, wish, target, is_put=is_put)
            words = _change(before, target, is_put=is_put)
            if draft is None:
                is_inside = wish.project and path.is_relative_to(wish.project)
                mode = _PROJECT_MODE if is_inside else _OWN_MODE
                is_pristine = (
                    text.content is None or _change(before, target, is_put=False) == before
                )
                draft = _Draft(text, before, text.content is not None, mode, is_pristine)
        except (UneditableFileError, UnparsableFileError) as error:
            self.own_memories.fail(wish, target)
            if is_put or _may_hold(target):
                self._report_unchanged(target.path, wish, error)
            return
        self.own_memories.settings[str(path)] = record
        if not is_put and words == draft.words:
            return  # the file contains nothing that belongs to nacre
        self._drafts[path] = draft
        draft.words, draft.is_there = words, draft.is_there or (is_put and bool(words))
        draft.is_whole = draft.is_whole or any(
            isinstance(piece, WholeFile) for piece in target.pieces
        )
        draft.hosts[wish.host] = draft.whats[target.what] = None

    def _report_unchanged(self, path: Path, wish: WiringWish, error: Exception) -> None:
        command = init_command(wish, *(["--uninstall"] if self._is_removal else []))
        if isinstance(error, UnparsableFileError):
            hint = f"correct the file, then run {command}"
        elif self._is_removal:
            hint = "remove nacre's part yourself"
        else:
            hint = f"edit it yourself, or take ownership of the file, then run {command}"
        self.left_alone[LeftAlone(path, wish.host, str(error), hint)] = None

    def restore(self, wired: Wired, needed: set[Path]) -> None:
        """Restore the original content of files that only nacre has changed."""
        real = {Path(os.path.realpath(path)) for path in needed}
        for path, draft in self._drafts.items():
            written = wired.files.get(str(path))
            if path in real:
                continue
            is_bare = "".join(draft.words.split()) in _EMPTY
            if is_bare and (draft.is_whole or (written and not written.before)):
                draft.is_there = False
            elif written and digest(draft.text.content) == written.after and written.backup:
                with suppress(UneditableFileError):
                    before = files_module.read(Path(written.backup))
                    is_original = digest(before.content) == written.before
                    draft.words = before.words if is_original else draft.words

    def changes(self) -> tuple[FileChange, ...]:
        return tuple(
            FileChange(
                path,
                draft.text.content,
                draft.text.encoded(draft.words) if draft.is_there else None,
                tuple(draft.hosts),
                ", ".join(draft.whats),
                draft.mode,
                draft.is_pristine,
            )
            for path, draft in self._drafts.items()
        )


def _may_hold(target: Target) -> bool:
    try:
        words = files_module.read(target.path).words
        return _change(words, target, is_put=False) != words
    except (UneditableFileError, UnparsableFileError):
        return True


# -- Trust of Codex in nacre's hooks ---------------------------------------------------------------
# Codex's app server records the trust. nacre asks for it only at the user's request.


_CODEX_TIMEOUT_SECONDS = 20.0
_TRUSTED = "trusted"
UNSEEN = "it does not trust the folder; start codex there and trust it"
"""The likely reason if Codex does not see a project's hooks."""


@frozen
class Trust:
    """The number of nacre's hooks that Codex sees, and how many of them it does not trust."""

    hooks: int
    untrusted: int


def trust_in(settings: Settings, wish: WiringWish) -> Trust | None:
    """Return Codex's trust in nacre's hooks, or ``None`` if Codex is unavailable."""
    try:
        with _codex(settings, wish) as server:
            hooks = _own_hooks(server, settings, wish)
            return Trust(len(hooks), sum(hook.get("trustStatus") != _TRUSTED for hook in hooks))
    except RpcError:
        return None


def trust_hooks(settings: Settings, wish: WiringWish) -> str | None:
    """Tell Codex to trust nacre's hooks. Return an error message or ``None``."""
    try:
        with _codex(settings, wish) as server:
            hooks = {
                str(hook["key"]): {"trusted_hash": hook["currentHash"]}
                for hook in _own_hooks(server, settings, wish)
            }
            if not hooks:
                return "it does not see nacre's hooks" + (f": {UNSEEN}" if wish.project else "")
            edit = {"keyPath": "hooks.state", "value": hooks, "mergeStrategy": "upsert"}
            config = config_file(settings)
            mode = stat.S_IMODE(config.stat().st_mode) if config.exists() else None
            server.ask("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
            if mode is not None:
                config.chmod(mode)
            own_hooks = _own_hooks(server, settings, wish)
            is_trusted = all(hook.get("trustStatus") == _TRUSTED for hook in own_hooks)
            return None if is_trusted else "it still does not trust them"
    except RpcError as error:
        return str(error)


@contextmanager
def _codex(settings: Settings, wish: WiringWish) -> Iterator[RpcProcess]:
    program = program_of(settings, "codex")
    if program is None:
        raise RpcError("there is no codex on PATH")
    folder = wish.project or settings.user_home
    with RpcProcess(
        [program, "app-server"], settings.environ, folder, _CODEX_TIMEOUT_SECONDS
    ) as server:
        client = {"name": "nacre", "title": "nacre", "version": "0"}
        server.ask("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
        server.send("initialized")
        yield server


def _own_hooks(server: RpcProcess, settings: Settings, wish: WiringWish) -> list[JsonObject]:
    answer = server.ask("hooks/list", {"cwds": [str(wish.project or settings.user_home)]})
    file = str(registry.hooks_file(places_of(settings, wish.project)))
    return [
        hook
        for hook in _hooks_in_codex_trust(answer)
        if file in str(hook["key"]) and any(name in json.dumps(hook) for name in OWN_COMMANDS)
    ]


def _hooks_in_codex_trust(answer: Any) -> Iterator[JsonObject]:
    if isinstance(answer, dict):
        if "currentHash" in answer and "key" in answer:
            yield answer
        answer = list(answer.values())
    for value in answer if isinstance(answer, list) else ():
        yield from _hooks_in_codex_trust(value)


def config_file(settings: Settings) -> Path:
    """Return the file that contains Codex's trust settings."""
    return registry.users_config(places_of(settings))


# -- Requests --------------------------------------------------------------------------------------


class WireRequest(Request):
    """Connect hosts to nacre, or disconnect them."""

    wishes: Annotated[
        tuple[WiringWish, ...],
        bounds("The hosts to connect, each for the user or a project."),
    ]
    uninstall: Annotated[bool, bounds("Disconnect the hosts.")] = False
