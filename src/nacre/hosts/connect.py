"""Plan, preview, apply and undo the changes that connect hosts to nacre."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from nacre.base import files as private_files
from nacre.base.frozen import frozen
from nacre.base.ids import utc_now
from nacre.base.locks import FileLock
from nacre.base.text import count
from nacre.hosts import files, own_memory
from nacre.hosts.files import UneditableFileError
from nacre.hosts.host import JsonHook, Target
from nacre.hosts.registry import ALL_HOSTS
from nacre.hosts.ways import (
    Drafts,
    Wired,
    WireRequest,
    WrittenFile,
    digest,
    found_hosts,
    host_named,
    load,
    own_notes,
    own_programs,
    save,
    targets_of,
    unwritten,
    way_of,
)
from nacre.operations import operation
from nacre.redact.redactor import Redactor
from nacre.settings import Settings
from nacre.values.reports import (
    FileChange,
    LeftAlone,
    OwnMemory,
    WiringDone,
    WiringPlan,
    WiringWish,
)

PATIENCE_SECONDS = 10.0

COPIES = Path("hosts") / "copies"
"""Folder in nacre's home for backups of files in projects."""

CHANGED = "changed"
"""Recorded instead of a file's hash if another program edited the file between nacre's changes."""


def alone(home: Path) -> AbstractContextManager[object]:
    """Return a lock on a home's connections. Raises StoreBusyError.

    A missing home is not created.
    """
    return FileLock(home / "init.lock", PATIENCE_SECONDS) if home.is_dir() else nullcontext()


def apply(settings: Settings, wiring: WiringPlan, now: datetime) -> WiringDone:
    """Back up the files in a plan and change them."""
    wired = load(settings.home)
    places = {wish.place for wish in wiring.wishes}
    other_wishes = tuple(wish for wish in wired.wishes if wish.place not in places)
    wishes = other_wishes if wiring.is_removal else (*other_wishes, *wiring.wishes)
    isolated = [wish.host for wish in wishes if wish.isolates]
    if not wiring.is_removal:  # old values are saved first, to restore them after an interruption
        old = {
            path: {**values, **wired.settings.get(path, {})}
            for path, values in wiring.settings.items()
        }
        save(settings.home, replace(wired, settings=old))
    own_memory.isolate(settings.home, isolated)
    projects = [wish.project for wish in wiring.wishes if wish.project]
    books = _Books(wired, now.strftime("%Y%m%dT%H%M%SZ"), settings.home / COPIES, projects)
    for change in wiring.changes:
        if change.action != "none":
            books.write(change)
    programs = own_programs(settings)
    used = {
        os.path.realpath(target.path) for wish in wishes for target in targets_of(settings, wish)
    }
    written = {path: entry for path, entry in books.files.items() if path in used}
    servers = {path: words for path, words in wiring.servers.items() if path in used}
    old_copies = [
        copy for path, entry in wired.files.items() if path not in used for copy in entry.copies
    ]
    files.remove_empty({*books.emptied, settings.home / COPIES})
    skipped = {str(item.path): item.host.split(", ") for item in books.left_alone}
    old_settings = {
        path: dict(values)
        for path in wiring.settings
        if (values := (wired if path in skipped else wiring).settings.get(path))
    }
    save(
        settings.home,
        Wired(wishes, written, servers, old_settings, programs.version, shlex.join(programs.nacre)),
    )
    remaining_copies = tuple(path for path in old_copies if path.exists())
    failing = {
        host for path, hosts in skipped.items() if wiring.settings.get(path) for host in hosts
    }
    states = tuple(
        unwritten(memory.host) if memory.host in failing else memory
        for memory in wiring.own_memories
    )
    wiring = replace(wiring, own_memories=states)
    return WiringDone(wiring, tuple(books.copies), tuple(books.left_alone), remaining_copies)


@contextmanager
def attribute_write(settings: Settings, path: Path) -> Iterator[None]:
    """Record a host's change to a file during the block as nacre's own.

    Nothing is recorded if the file had already changed since nacre last wrote it.
    """
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
    except UneditableFileError:
        return CHANGED


class _Books:
    def __init__(self, wired: Wired, stamp: str, folder: Path, projects: Sequence[Path]) -> None:
        self.files = dict(wired.files)
        self.copies: list[Path] = []
        self.left_alone: list[LeftAlone] = []
        self.emptied: set[Path] = set()
        self._stamp = stamp
        self._folder = folder
        self._projects = projects

    def write(self, change: FileChange) -> None:
        try:
            self._write(change)
        except UneditableFileError as error:
            self.left_alone.append(
                LeftAlone(change.path, ", ".join(change.hosts), str(error), "run nacre init again")
            )

    def _write(self, change: FileChange) -> None:
        if files.read(change.path).content != change.before:
            raise UneditableFileError("it changed in the meantime")
        key, copy = str(change.path), None
        old = self.files.get(key)
        is_as_written = bool(old and old.after == digest(change.before))
        if change.before is not None and not is_as_written:
            in_project = any(map(change.path.is_relative_to, self._projects))
            if in_project:
                private_files.make_folder(self._folder)
            copy = files.back_up(change.path, self._stamp, self._folder if in_project else None)
            self.copies.append(copy)
        if change.after is None:
            files.remove(change.path)
            self.emptied |= set(map(Path, old.made)) if old else set()
            self.files.pop(key, None)
            return
        new_folders = files.write(change.path, change.after, mode=change.mode)
        after = digest(change.after)
        if old and is_as_written and old.backup and old.before == after:
            Path(old.backup).unlink(missing_ok=True)  # the file equals its backup again
            del self.files[key]
        elif old and is_as_written:
            self.files[key] = replace(old, after=after)
        else:
            self.files[key] = WrittenFile(
                after,
                digest(change.before) if change.is_pristine and not old else CHANGED,
                str(copy or ""),
                old.made if old else tuple(map(str, new_folders)),
                tuple(map(str, old.copies)) if old else (),
            )


# -- Plans -----------------------------------------------------------------------------------------
# A plan contains each file before and after the change, so that the preview shows the exact result.


_RUNS_TWICE_NOTE = "It is also connected for all your projects: its hooks run twice here."
_PATHS_NOTE = "The written files contain paths on this machine. Other people need their own files."


def plan(settings: Settings, wishes: Sequence[WiringWish]) -> WiringPlan:
    """Return the plan for connecting these hosts. Raises InvalidInputError."""
    wired = load(settings.home)
    drafts = Drafts(settings, wired, is_removal=False)
    before = {command.place: command for command in wired.wishes}
    needed = _pieces(settings, wishes)
    for wish in wishes:
        old = before.get(wish.place)
        for target in targets_of(settings, old) if old and old != wish else ():
            drafts.take(wish, _without(target, needed), is_put=False)
    drafts.restore(wired, {path for path, _ in needed})
    for wish in wishes:
        for target in targets_of(settings, wish):
            drafts.take(wish, target, is_put=True)
    notes = [
        (wish.host, note)
        for wish in wishes
        for note in host_named(wish.host).notes(way_of(settings, wish))
    ]
    shared = next((wish.host for wish in wishes if wish.project), None)
    notes += [(shared, _PATHS_NOTE)] if shared else []
    notes += [
        (wish.host, _RUNS_TWICE_NOTE)
        for wish in wishes
        if _runs_twice(settings, wish, (*wishes, *wired.wishes))
    ]
    return replace(_planned(settings, wishes, drafts, is_removal=False), notes=tuple(notes))


def _planned(
    settings: Settings, wishes: Sequence[WiringWish], drafts: Drafts, *, is_removal: bool
) -> WiringPlan:
    own_memories = list(drafts.own_memories.states(tuple(wishes), is_removal=is_removal))
    known = {memory.host for memory in own_memories}
    for wish in () if is_removal else wishes:
        notes = own_notes(settings, wish)
        if notes and wish.host not in known:
            finding = f"{count(len(notes), 'file')} that only this host reads"
            own_memories.append(OwnMemory(wish.host, "on", finding))
    return WiringPlan(
        tuple(wishes),
        drafts.changes(),
        tuple(drafts.left_alone),
        tuple(drafts.servers.foreign),
        drafts.servers.written,
        is_removal=is_removal,
        own_memories=tuple(own_memories),
        settings=drafts.own_memories.settings,
    )


def plan_removal(settings: Settings, wishes: Sequence[WiringWish]) -> WiringPlan:
    """Return the plan for disconnecting these hosts. Raises InvalidInputError.

    Files that only nacre changed are restored. Settings that another connection needs are kept.
    """
    wired = load(settings.home)
    drafts = Drafts(settings, wired, is_removal=True)
    places = {wish.place for wish in wishes}
    needed = _pieces(settings, [wish for wish in wired.wishes if wish.place not in places])
    for wish in wishes:
        all_options = replace(wish, slot=True, tool_hook=True, isolates=True, introduces=True)
        for target in targets_of(settings, all_options):
            drafts.take(wish, _without(target, needed), is_put=False)
    drafts.restore(wired, {path for path, _ in needed})
    return _planned(settings, wishes, drafts, is_removal=True)


def _runs_twice(settings: Settings, wish: WiringWish, all_wishes: Iterable[WiringWish]) -> bool:
    other = any(item.host == wish.host and not item.project for item in all_wishes)
    pieces = (piece for target in targets_of(settings, wish) for piece in target.pieces)
    return bool(wish.project) and other and any(isinstance(piece, JsonHook) for piece in pieces)


def _pieces(settings: Settings, wishes: Iterable[WiringWish]) -> set[tuple[Path, str]]:
    return {
        (target.path, repr(piece))
        for wish in wishes
        for target in targets_of(settings, wish)
        for piece in target.pieces
    }


def _without(target: Target, needed: set[tuple[Path, str]]) -> Target:
    pieces = (piece for piece in target.pieces if (target.path, repr(piece)) not in needed)
    return replace(target, pieces=tuple(pieces))


# -- Operations ----------------------------------------------------------------------------------


@operation("hosts-plan", daemon=False, http=False)
def plan_answers(settings: Settings, request: WireRequest) -> WiringPlan:
    """Return the plan for connecting or disconnecting hosts. Raises InvalidInputError."""
    return (plan_removal if request.uninstall else plan)(settings, request.wishes)


@operation("hosts-wire", writes=True, owners=True, daemon=False, command="init")
def wire(settings: Settings, request: WireRequest) -> WiringDone:
    """Connect hosts to nacre, or disconnect them. Raises InvalidInputError, EditConflictError."""
    return apply(settings, plan_answers(settings, request), utc_now())


# -- Test runs of hosts' commands ------------------------------------------------------------------
# Only nacre's own programs are run. The test runs leave no files behind.


SAMPLE = {
    "session_id": "nacre-doctor",
    "hook_event_name": "SessionStart",
    "source": "startup",
    "prompt": "",
}
"""Sample input for hooks."""

_HOOK_TIMEOUT_SECONDS = 5.0


def run_hook(
    settings: Settings,
    line: str,
    hook_input: Mapping[str, str],
    project: Path | None,
    *,
    says_json: bool = True,
) -> str | None:
    """Run a hook as the host does, but without a shell. Return an error message, or ``None``."""
    words = [line] if settings.platform == "win32" else shlex.split(line)
    if settings.platform != "win32" and not is_own(words, project):
        return f"it runs something else: {line}"
    try:
        result = subprocess.run(
            line if settings.platform == "win32" else words,
            env=quiet(settings),
            cwd=project or settings.user_home,
            input=json.dumps(hook_input),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_HOOK_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_HOOK_TIMEOUT_SECONDS:.0f} seconds: {line}"
    except OSError as error:
        return f"{error.strerror}: {line}"
    if result.returncode:
        error_text = " ".join(result.stderr.split())[-200:]
        return (
            f"it exited with {result.returncode}{f' ({error_text})' if error_text else ''}: {line}"
        )
    if says_json and result.stdout.strip():
        try:
            json.loads(result.stdout)
        except ValueError:
            return f"its answer is not JSON: {line}"
    return None


def quiet(settings: Settings) -> dict[str, str]:
    """Return environment variables for commands that must not start a daemon."""
    return {**settings.environ, "NACRE_DAEMON_ENABLED": "false"}


def is_own(words: Sequence[str], project: Path | None) -> bool:
    """Return True if a command runs nacre.

    A program in the project does not count, because anyone can put one there.
    """
    program = Path(
        next((word for word in words if Path(word).name != "env" and "=" not in word), "")
    )
    named = program.stem in ("nacre", "nacre-hook") or any(
        (first, second.partition(".")[0]) == ("-m", "nacre") for first, second in pairwise(words)
    )
    return named and not (
        project
        and program.resolve().is_relative_to(project)
        and program.parent != Path(sys.executable).parent
    )


# -- States and previews ---------------------------------------------------------------------------
# They contain no secrets from other settings.


Clean = Callable[[str], str]


@frozen
class HostState:
    """A host with its program and connections.

    ``is_here`` is True if the host is on this machine, ``by_user`` if it can be connected for all
    projects.
    """

    name: str
    label: str
    is_here: bool
    program: str | None
    by_user: bool
    wired: tuple[WiringWish, ...]


@frozen
class ChangedFile:
    """A planned change to a file.

    ``action`` is ``create``, ``change`` or ``remove``. ``is_own`` is True for files in nacre's
    home. Lines in ``diff`` start with ``+``, ``-`` or a space.
    """

    path: Path
    action: str
    what: str
    is_own: bool
    diff: tuple[str, ...]


@frozen
class WiringPreview:
    """A preview of connecting hosts.

    ``unchanged`` is the number of files that are already correct. ``notes`` is advice for the user.
    """

    files: tuple[ChangedFile, ...]
    unchanged: int
    left_alone: tuple[LeftAlone, ...]
    own_memories: tuple[OwnMemory, ...]
    notes: tuple[str, ...]


@operation("hosts")
def list_hosts(settings: Settings) -> list[HostState]:
    """Return all hosts that nacre supports. Hosts on this machine come first."""
    wishes = load(settings.home).wishes
    installed = {found_host.host.name: found_host for found_host in found_hosts(settings)}
    states = [
        HostState(
            host.name,
            host.label,
            host.name in installed,
            installed[host.name].program if host.name in installed else None,
            host.by_user,
            tuple(wish for wish in wishes if wish.host == host.name),
        )
        for host in ALL_HOSTS.values()
    ]
    return sorted(states, key=lambda found_host: not (found_host.is_here or found_host.wired))


@operation("hosts-preview", daemon=False)
def preview(settings: Settings, request: WireRequest) -> WiringPreview:
    """Return a preview of connecting hosts. Raises InvalidInputError."""
    plan = plan_answers(settings, request)
    changed = changed_files(settings, plan)
    return WiringPreview(
        changed,
        len(plan.changes) - len(changed),
        plan.left_alone + plan.kept,
        plan.own_memories,
        tuple(dict.fromkeys(note for _, note in plan.notes)),
    )


def changed_files(settings: Settings, plan: WiringPlan) -> tuple[ChangedFile, ...]:
    """Return the files that a plan changes, with diffs that contain no secrets."""
    clean, home = Redactor(*settings.redaction).clean, settings.home.resolve()
    return tuple(
        ChangedFile(
            item.path,
            item.action,
            item.what,
            item.path.is_relative_to(home),
            tuple(diff_of(item, clean)[2:]),
        )
        for item in plan.changes
        if item.action != "none"
    )


def diff_of(change: FileChange, clean: Clean) -> list[str]:
    """Return the unified diff of a changed file, after ``clean`` has removed secrets."""
    before, after = _lines(change.before, clean), _lines(change.after, clean)
    names = (
        "before" if change.before is not None else "/dev/null",
        "after" if after else "/dev/null",
    )
    return list(difflib.unified_diff(before, after, *names, lineterm="", n=2))


def _lines(content: bytes | None, clean: Clean) -> list[str]:
    return [] if content is None else clean(content.decode("utf-8", "replace")).splitlines()
