"""Do what a plan says, and keep what is needed to take it back."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from nacre.hosts import files, isolation
from nacre.hosts.files import Untouchable
from nacre.platform import private_files
from nacre.platform.locks import FileLock
from nacre.settings import Settings
from nacre.values.wiring import FileChange, LeftAlone, WiringDone, WiringPlan
from nacre.wiring.commands import run_command
from nacre.wiring.own_memory import recorded, unwritten
from nacre.wiring.record import Wired, WrittenFile, digest, load, save
from nacre.wiring.ways import host_named, own_programs, places_of, targets_of

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
        isolation.isolate(settings.home, isolated)
    projects = {wish.project: settings.home / COPIES for wish in wanted.wishes if wish.project}
    books = _Books(wired, now.strftime("%Y%m%dT%H%M%SZ"), projects)
    changing = [change for change in wanted.changes if change.action != "none"]
    ready = [change for change in changing if books.back_up(change)]
    own = [one for one in ready if one.path.is_relative_to(settings.home.resolve()) and not wanted.is_removal]
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
    used = {os.path.realpath(target.path) for wish in wishes for target in targets_of(settings, wish)}
    written = {path: one for path, one in books.files.items() if path in used}
    servers = {path: one for path, one in _servers(wired, wanted).items() if path in used}
    old_copies = [copy for path, one in wired.files.items() if path not in used for copy in one.copies]
    isolation.isolate(settings.home, isolated)
    files.remove_empty({*books.emptied, settings.home / COPIES})
    kept = recorded(wired, (), (*given_back, *undone)).settings
    save(settings.home, Wired(wishes, written, servers, kept, programs.version, shlex.join(programs.nacre)))
    left = tuple(path for path in old_copies if path.exists())
    failing = {one.host for one in undone}
    states = tuple(unwritten(one.host) if one.host in failing else one for one in wanted.own_memories)
    wanted = replace(wanted, own_memories=states)
    return WiringDone(wanted, tuple(books.copies), tuple(books.left_alone), tuple(failed), left)


def _remove_copies(settings: Settings, wanted: WiringPlan) -> None:
    """Remove what a host that nacre is taken out of still keeps of nacre's own files: it would lie there for good."""
    for wish in wanted.wishes:
        for folder in host_named(wish.host).copies(places_of(settings)) if wish.project is None else ():
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
                self._copy_of[change.path] = files.back_up(change.path, self._stamp, self._folder(change.path))
                self.copies.append(self._copy_of[change.path])
        except Untouchable as error:
            self._leave(change, error)
            return False
        return True

    def _folder(self, path: Path) -> Path | None:
        """Where the copy of a project's file goes: beside it, it would be one more file of the repository."""
        folder = next((copies for project, copies in self._projects.items() if path.is_relative_to(project)), None)
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
        self.left_alone.append(LeftAlone(change.path, ", ".join(change.hosts), str(error), "run it again"))
