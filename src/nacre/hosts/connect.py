"""Do what a plan says, and keep what is needed to take it back."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from nacre.base import files as private_files
from nacre.base.ids import utc_now
from nacre.base.locks import FileLock
from nacre.hosts import files, host
from nacre.hosts.files import Untouchable
from nacre.hosts.host import JsonHook, Target
from nacre.hosts.registry import HOSTS_REGISTRY
from nacre.hosts.ways import (
    Drafts,
    Wired,
    WireRequest,
    WrittenFile,
    commands_for,
    digest,
    dropped,
    found_hosts,
    host_named,
    load,
    own_programs,
    places_of,
    put,
    recorded,
    run_command,
    save,
    targets_of,
    unwritten,
    way_of,
)
from nacre.redact.redactor import Redactor
from nacre.settings import Settings
from nacre.values.reports import (
    FileChange,
    HostCommand,
    LeftAlone,
    OwnMemory,
    WiringDone,
    WiringPlan,
    WiringWish,
)

PATIENCE_SECONDS = 10.0

COPIES = Path("hosts") / "copies"
"""In the home: copies of files of projects."""

CHANGED = "changed"
"""In the place of a hash: somebody else changed the file between two of nacre's changes."""


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Be the only one who changes the wirings of a home: another one is waited for. Raises StoreBusy.

    A home that is not there is not made.
    """
    with FileLock(home / "init.lock", PATIENCE_SECONDS) if home.is_dir() else nullcontext():
        yield


def apply(settings: Settings, wanted: WiringPlan, now: datetime) -> WiringDone:
    """Do what a plan says: keep a copy of every file that changes, run the hosts' own commands, write the files.

    Commands run before files of hosts are written: hosts write their settings anew in a layout of their own, and in
    the end there stands what was shown, which keeps the owner's.
    """
    wired = load(settings.home)
    places = {wish.place for wish in wanted.wishes}
    others = tuple(wish for wish in wired.wishes if wish.place not in places)
    wishes = others if wanted.is_removal else (*others, *wanted.wishes)
    isolated = [wish.host for wish in wishes if wish.isolates]
    if wanted.set:  # what they were is kept before they change: who was interrupted gives them back all the same
        wired = recorded(wired, wanted.set)
        save(settings.home, wired)
        host.isolate(settings.home, isolated)
    projects = {wish.project: settings.home / COPIES for wish in wanted.wishes if wish.project}
    books = _Books(wired, now.strftime("%Y%m%dT%H%M%SZ"), projects)
    changing = [change for change in wanted.changes if change.action != "none"]
    ready = [change for change in changing if books.back_up(change)]
    own = [
        one
        for one in ready
        if one.path.is_relative_to(settings.home.resolve()) and not wanted.is_removal
    ]
    for change in own:
        books.write(change, ())
    failed = []
    for command in wanted.commands:
        if problem := run_command(settings, command):
            failed.append((" ".join(command.words), problem))
    rewritten = [path for command in wanted.commands for path in command.touches]
    for change in ready:
        if change not in own:
            books.write(change, rewritten)
    if wanted.is_removal and not failed:
        _remove_copies(settings, wanted)
    left_alone = {one.path for one in books.left_alone}
    undone = [one for one in wanted.set if one.path in left_alone]
    given_back = [one for one in wanted.given_back if one.path not in left_alone]
    programs = own_programs(settings)
    used = {
        os.path.realpath(target.path) for wish in wishes for target in targets_of(settings, wish)
    }
    written = {path: one for path, one in books.files.items() if path in used}
    servers = {path: one for path, one in _servers(wired, wanted).items() if path in used}
    old_copies = [
        copy for path, one in wired.files.items() if path not in used for copy in one.copies
    ]
    host.isolate(settings.home, isolated)
    files.remove_empty({*books.emptied, settings.home / COPIES})
    kept = recorded(wired, (), (*given_back, *undone)).settings
    save(
        settings.home,
        Wired(wishes, written, servers, kept, programs.version, shlex.join(programs.nacre)),
    )
    left = tuple(path for path in old_copies if path.exists())
    failing = {one.host for one in undone}
    states = tuple(
        unwritten(one.host) if one.host in failing else one for one in wanted.own_memories
    )
    wanted = replace(wanted, own_memories=states)
    return WiringDone(wanted, tuple(books.copies), tuple(books.left_alone), tuple(failed), left)


def _remove_copies(settings: Settings, wanted: WiringPlan) -> None:
    """Remove what a host that nacre is taken out of still keeps of nacre's own files: it would lie there for good."""
    for wish in wanted.wishes:
        for folder in (
            host_named(wish.host).copies(places_of(settings)) if wish.project is None else ()
        ):
            if not folder.is_symlink():
                shutil.rmtree(folder, ignore_errors=True)
            files.remove_empty((folder.parent, folder.parent.parent))


@contextmanager
def rewriting(settings: Settings, path: Path) -> Iterator[None]:
    """Within, a host writes into a file what nacre asked it to: that is nacre's own work, where the file was as nacre
    had left it. What others wrote into it before stays theirs."""
    real = Path(os.path.realpath(path))
    before = _digest_at(real)
    yield
    wired = load(settings.home)
    written = wired.files.get(str(real))
    if written and written.after == before:
        after = replace(written, after=_digest_at(real))
        save(settings.home, replace(wired, files={**wired.files, str(real): after}))


def _digest_at(path: Path) -> str:
    try:
        return digest(files.read(path).content)
    except Untouchable:
        return CHANGED


def _servers(wired: Wired, wanted: WiringPlan) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The servers that are nacre's, by file: those it wrote before among them."""
    servers = dict(wired.servers)
    for path, words in wanted.servers:
        servers[str(path)] = tuple(dict.fromkeys((*servers.get(str(path), ()), words)))
    return servers


class _Books:
    """What was written, and what is needed to leave the files as they were."""

    def __init__(self, wired: Wired, stamp: str, projects: Mapping[Path, Path]) -> None:
        self.files = dict(wired.files)
        self.copies: list[Path] = []
        self.left_alone: list[LeftAlone] = []
        self.emptied: set[Path] = set()
        self._stamp = stamp
        self._projects = projects
        self._copy_of: dict[Path, Path] = {}

    def back_up(self, change: FileChange) -> bool:
        """Copy a file that is to change; returns whether it may be changed."""
        try:
            self._refuse_changed(change, ())
            if change.before is not None and not self._is_as_written(change):
                self._copy_of[change.path] = files.back_up(
                    change.path, self._stamp, self._folder(change.path)
                )
                self.copies.append(self._copy_of[change.path])
        except Untouchable as error:
            self._leave(change, error)
            return False
        return True

    def _folder(self, path: Path) -> Path | None:
        """Where the copy of a project's file goes: beside it, it would be one more file of the repository."""
        folder = next(
            (copies for project, copies in self._projects.items() if path.is_relative_to(project)),
            None,
        )
        if folder:
            private_files.make_folder(folder)
        return folder

    def write(self, change: FileChange, rewritten: Sequence[Path]) -> None:
        """Write a file, or remove it."""
        try:
            self._refuse_changed(change, rewritten)
            if change.after is None:
                self._remove(change)
            else:
                made = files.write(change.path, change.after, mode=change.mode)
                self._note(change, change.after, made)
        except Untouchable as error:
            self._leave(change, error)

    def _remove(self, change: FileChange) -> None:
        written = self.files.pop(str(change.path), None)
        files.remove(change.path)
        self.emptied |= {Path(folder) for folder in written.made} if written else set()

    def _note(self, change: FileChange, after: bytes, made: Sequence[Path]) -> None:
        """Remember a file as it was before nacre first wrote into it."""
        old = self.files.get(str(change.path))
        if old and self._is_as_written(change) and old.backup and old.before == digest(after):
            Path(old.backup).unlink(missing_ok=True)  # the file itself is what the copy was
            del self.files[str(change.path)]
            return
        if old and self._is_as_written(change):
            self.files[str(change.path)] = replace(old, after=digest(after))
            return
        before = digest(change.before) if change.is_pristine and not old else CHANGED
        folders = old.made if old else tuple(str(folder) for folder in made)
        backup = str(self._copy_of.get(change.path, ""))
        older = tuple(map(str, old.copies)) if old else ()
        self.files[str(change.path)] = WrittenFile(digest(after), before, backup, folders, older)

    def _is_as_written(self, change: FileChange) -> bool:
        """Whether a file is as nacre left it: then there is a copy of what it was, if it was anything."""
        old = self.files.get(str(change.path))
        return bool(old and old.after == digest(change.before))

    def _refuse_changed(self, change: FileChange, rewritten: Sequence[Path]) -> None:
        if change.path not in rewritten and files.read(change.path).content != change.before:
            raise Untouchable("it changed meanwhile")

    def _leave(self, change: FileChange, error: Untouchable) -> None:
        self.left_alone.append(
            LeftAlone(change.path, ", ".join(change.hosts), str(error), "run it again")
        )


# ----------------------------------------------------------------------------
# What wiring hosts would change: every file as it is and as it is to be. What is shown is what is
# written.


_TWICE = "It is wired for all of yours as well: in this project its hooks run twice."
_PATHS = "What was written holds paths of this machine: others who share the project's repository need their own."


def plan(settings: Settings, wishes: Sequence[WiringWish]) -> WiringPlan:
    """What wiring these hosts would change. Raises InvalidInput."""
    wired = load(settings.home)
    drafts = Drafts(settings, wired, is_removal=False)
    before = {one.place: one for one in wired.wishes}
    needed = _pieces(settings, wishes)
    for wish in wishes:
        old = before.get(wish.place)
        for target in targets_of(settings, old) if old and old != wish else ():
            drafts.take(wish, _without(target, needed), dropped)
    drafts.restore(wired, {path for path, _ in needed})
    for wish in wishes:
        for target in targets_of(settings, wish):
            drafts.take(wish, target, put)
        drafts.servers.look_beside(wish, drafts.words_at)
    notes = [
        (wish.host, note)
        for wish in wishes
        for note in host_named(wish.host).notes(way_of(settings, wish))
    ]
    shared = next((wish.host for wish in wishes if wish.project), None)
    notes += [(shared, _PATHS)] if shared else []
    notes += [
        (wish.host, _TWICE)
        for wish in wishes
        if _runs_twice(settings, wish, (*wishes, *wired.wishes))
    ]
    commands = [
        one for wish in wishes for one in commands_for(settings, wish) if drafts.may_run(one)
    ]
    servers = drafts.servers
    return WiringPlan(
        tuple(wishes),
        drafts.changes(),
        tuple(drafts.left_alone),
        tuple(servers.kept),
        tuple(servers.put),
        tuple(commands),
        tuple(notes),
        own_memories=tuple(drafts.own_memories.states(tuple(wishes), is_removal=False)),
        set=tuple(drafts.own_memories.set),
        given_back=tuple(drafts.own_memories.given_back),
    )


def plan_removal(settings: Settings, wishes: Sequence[WiringWish]) -> WiringPlan:
    """What taking these hosts' wiring out would change; files that nothing else changed become what they were.

    What another wiring needs stays. Raises InvalidInput.
    """
    wired = load(settings.home)
    drafts = Drafts(settings, wired, is_removal=True)
    places = {wish.place for wish in wishes}
    needed = _pieces(settings, [wish for wish in wired.wishes if wish.place not in places])
    for wish in wishes:
        for target in _all_forms(settings, wish):
            drafts.take(wish, _without(target, needed), dropped)
    drafts.restore(wired, {path for path, _ in needed})
    commands = [
        one
        for wish in wishes
        for one in commands_for(settings, wish, is_removal=True)
        if drafts.may_run(one)
    ]
    return WiringPlan(
        tuple(wishes),
        drafts.changes(),
        tuple(drafts.left_alone),
        tuple(drafts.servers.kept),
        (),
        tuple(commands),
        is_removal=True,
        own_memories=tuple(drafts.own_memories.states(tuple(wishes), is_removal=True)),
        given_back=tuple(drafts.own_memories.given_back),
    )


def _runs_twice(settings: Settings, wish: WiringWish, all_wishes: Iterable[WiringWish]) -> bool:
    """Whether a project's wiring has hooks, and the host is wired for all of the user's as well."""
    other = any(one.host == wish.host and not one.project for one in all_wishes)
    pieces = (piece for target in targets_of(settings, wish) for piece in target.pieces)
    return bool(wish.project) and other and any(isinstance(piece, JsonHook) for piece in pieces)


def _pieces(settings: Settings, wishes: Iterable[WiringWish]) -> set[tuple[Path, str]]:
    """What these wirings need, by file."""
    return {
        (one.path, repr(piece))
        for wish in wishes
        for one in targets_of(settings, wish)
        for piece in one.pieces
    }


def _without(target: Target, needed: set[tuple[Path, str]]) -> Target:
    return replace(
        target, pieces=tuple(one for one in target.pieces if (target.path, repr(one)) not in needed)
    )


def _all_forms(settings: Settings, wish: WiringWish) -> Iterable[Target]:
    """The files of a wiring, in whichever form it was made."""
    forms = dict.fromkeys(
        (
            replace(wish, plain=False, slot=True, tool_hook=True, isolates=True),
            replace(wish, plain=True),
        )
    )
    return [target for form in forms for target in targets_of(settings, form)]


# ----------------------------------------------------------------------------
# What is answered to requests about hosts; :mod:`nacre.serve.catalogue` lists them.


def plan_answers(settings: Settings, request: WireRequest) -> WiringPlan:
    """What configuring hosts would change. Raises InvalidInput."""
    return (plan_removal if request.uninstall else plan)(settings, request.wishes)


def wire(settings: Settings, request: WireRequest) -> WiringDone:
    """Configure hosts to use nacre, or no longer. Raises InvalidInput, EditConflict."""
    return apply(settings, plan_answers(settings, request), utc_now())


# ----------------------------------------------------------------------------
# Run what hosts would run, as they would: nacre's own programs alone, and so that nothing stays
# behind.


SAMPLE = {
    "session_id": "nacre-doctor",
    "hook_event_name": "SessionStart",
    "source": "startup",
    "prompt": "",
}
"""What a hook is given."""

_HOOK_SECONDS = 5.0


def run_hook(
    settings: Settings,
    line: str,
    given: Mapping[str, str],
    project: Path | None,
    *,
    says_json: bool = True,
) -> str | None:
    """Run a hook as the host does, without a shell: nacre's own lines need none. Returns what is wrong."""
    words = [line] if settings.platform == "win32" else shlex.split(line)
    if settings.platform != "win32" and not is_own(words, project):
        return f"it runs something else: {line}"
    try:
        done = subprocess.run(
            line if settings.platform == "win32" else words,
            env=quiet(settings),
            input=json.dumps(given),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_HOOK_SECONDS,
            check=False,
            cwd=project or settings.user_home,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_HOOK_SECONDS:.0f} seconds: {line}"
    except OSError as error:
        return f"{error.strerror}: {line}"
    if done.returncode:
        said = " ".join(done.stderr.split())[-200:]
        return f"it ended with {done.returncode}{f' ({said})' if said else ''}: {line}"
    if says_json and done.stdout.strip():
        try:
            json.loads(done.stdout)
        except ValueError:
            return f"its answer is not JSON: {line}"
    return None


def quiet(settings: Settings) -> dict[str, str]:
    """The environment of a dry call: it leaves no daemon behind."""
    return {**settings.environ, "NACRE_DAEMON_ENABLED": "false"}


def is_own(words: Sequence[str], project: Path | None) -> bool:
    """Whether a command is nacre's. What a project brings along is not run: anybody may have put it there."""
    program = Path(
        next((word for word in words if Path(word).name != "env" and "=" not in word), "")
    )
    named = program.stem in ("nacre", "nacre-hook") or any(
        (first, second.partition(".")[0]) == ("-m", "nacre") for first, second in pairwise(words)
    )
    return named and not (
        project and program.resolve().is_relative_to(project) and not _is_interpreter(program)
    )


def _is_interpreter(program: Path) -> bool:
    """Whether it is what runs this nacre, wherever that is installed."""
    return program.parent == Path(sys.executable).parent


# ----------------------------------------------------------------------------
# Hosts as people see them: which there are, and what a wiring would change, without others' secrets.


Clean = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class HostState:
    """A host: whether something of it is on this machine (``is_here``), its program, and how it is wired.

    ``by_user``: it can be wired for all of the user's.
    """

    name: str
    label: str
    is_here: bool
    program: str | None
    by_user: bool
    wired: tuple[WiringWish, ...]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that changes; ``action``: ``create``, ``change`` or ``remove``. ``is_own``: it lies in nacre's home.

    ``diff`` are lines that begin with ``+``, ``-`` or a space.
    """

    path: Path
    action: str
    what: str
    is_own: bool
    diff: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WiringPreview:
    """What a wiring would do. ``unchanged`` files are as they should be already; ``notes`` is what a person has to do
    or to know afterwards."""

    files: tuple[ChangedFile, ...]
    unchanged: int
    commands: tuple[HostCommand, ...]
    left_alone: tuple[LeftAlone, ...]
    own_memories: tuple[OwnMemory, ...]
    notes: tuple[str, ...]


def list_hosts(settings: Settings) -> list[HostState]:
    """Every host that nacre knows; first those on this machine."""
    wishes = load(settings.home).wishes
    found = {one.host.name: one for one in found_hosts(settings)}
    states = [
        HostState(
            host.name,
            host.label,
            host.name in found,
            found[host.name].program if host.name in found else None,
            host.by_user,
            tuple(wish for wish in wishes if wish.host == host.name),
        )
        for host in HOSTS_REGISTRY.values()
    ]
    return sorted(states, key=lambda one: not (one.is_here or one.wired))


def preview(settings: Settings, request: WireRequest) -> WiringPreview:
    """What configuring hosts would change, as it can be shown. Raises InvalidInput."""
    plan = plan_answers(settings, request)
    clean, home = Redactor(*settings.redaction).clean, settings.home.resolve()
    changed = [one for one in plan.changes if one.action != "none"]
    return WiringPreview(
        tuple(
            ChangedFile(
                one.path,
                one.action,
                one.what,
                one.path.is_relative_to(home),
                tuple(diff_of(one, clean)[2:]),
            )
            for one in changed
        ),
        len(plan.changes) - len(changed),
        plan.commands,
        plan.left_alone + plan.kept,
        plan.own_memories,
        _notes(plan),
    )


def diff_of(change: FileChange, clean: Clean) -> list[str]:
    """How a file changes, as diff -u tells it, without the secrets that settings of others may hold."""
    before, after = _lines(change.before, clean), _lines(change.after, clean)
    names = (
        "before" if change.before is not None else "/dev/null",
        "after" if after else "/dev/null",
    )
    return list(difflib.unified_diff(before, after, *names, lineterm="", n=2))


def _lines(content: bytes | None, clean: Clean) -> list[str]:
    return [] if content is None else clean(content.decode("utf-8", "replace")).splitlines()


def _notes(plan: WiringPlan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for _, note in plan.notes))
