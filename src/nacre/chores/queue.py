"""Do what hooks left to be done: read a session, hand it over, learn from it. One process at a time, each chore once.

A chore is a small file in ``run/chores``, left by a hook (:mod:`nacre.hooks.notes`). Those of a kind and a session are
one. What fails is tried again later, up to five times; what is given up lies in ``run/chores/given-up`` with the
reason, where ``nacre doctor`` tells of it. Those that may ask a model have a lock of their own: no handoff waits for
one.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec

from nacre.errors import NacreError, StoreBusy, StoreUnusable
from nacre.home.home import Home
from nacre.link.address import CHORES_LOCK, chores_folder
from nacre.platform import json_values, private_files
from nacre.platform.locks import FileLock
from nacre.values.handoff import ChoresReport

MOST_TRIES = 5
MOST_SECONDS = 300.0
_PAUSE_SECONDS = 10.0
"""Before the second try; each further one waits three times as long."""

_MOST_FILES = 2_000
_MOST_BYTES = 100_000
_KEPT_SECONDS = 7 * 86_400
_GIVEN_UP = "given-up"
_MOST_GIVEN_UP = 100

_NUMBERS = itertools.count()

_SLOW_LOCK = "chores-slow.lock"


_Moment = Annotated[float, msgspec.Meta(ge=0, le=1e11)]


class Chore(msgspec.Struct, frozen=True):
    """What is to be done. ``kind`` is a :class:`~nacre.values.hooks.HookEvent`, or what follows from one; ``session``
    is ``<tool>:<the host's own id>``, ``transcript`` the file that it writes, ``folder`` where it works, ``occasion``
    why it began. ``at`` is when it was left, ``after`` when it is due (epoch seconds); ``tries`` counts how often it
    was begun, ``note`` says why it failed."""

    kind: str
    session: str | None = None
    transcript: str | None = None
    folder: str | None = None
    occasion: str | None = None
    at: _Moment = 0.0
    tries: int = 0
    after: _Moment = 0.0
    note: str = ""

    @property
    def subject(self) -> tuple[str, str, str]:
        """Chores of one subject are done together."""
        return self.kind, self.session or "", "" if self.session else (self.transcript or self.folder or "")


class NotYetError(Exception):
    """What a chore waits for has not happened: it is left for later, and dropped without a word in the end.

    ``following`` are chores that follow from what it did so far.
    """

    def __init__(self, following: Sequence[Chore] = ()) -> None:
        super().__init__("not yet")
        self.following = following


@dataclass(frozen=True, slots=True)
class Kind:
    """How chores of a kind are done. ``is_slow``: it may ask a model, or load one."""

    do: Callable[[Home, Chore], Sequence[Chore]]
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Chores of one subject: the last one left, and the files of all."""

    chore: Chore
    paths: tuple[Path, ...]


def is_due(home: Path, now: float) -> bool:
    """Whether a chore of a home is due (``now``: epoch seconds)."""
    return any(_is_due(one.chore, now) for one in _listed(home))


def drop(home: Path, is_needless: Callable[[Chore], bool]) -> None:
    """Take chores away that need not be done."""
    for one in _listed(home):
        if is_needless(one.chore):
            _remove(one.paths)


def waiting(home: Path) -> list[Chore]:
    """The chores of a home, the oldest first."""
    return [one.chore for one in _listed(home)]


def given_up(home: Path) -> list[Chore]:
    """Those that failed too often, the oldest first."""
    folder = folder_of(home) / _GIVEN_UP
    return [chore for path in _files(folder) if (chore := _read(path))]


def put(home: Path, chore: Chore) -> None:
    """Leave a chore. Raises OSError."""
    private_files.write_file(_own_name(home), msgspec.json.encode(chore))


class Worklist:
    """One process doing chores."""

    def __init__(self, home: Home, kinds: Mapping[str, Kind]) -> None:
        self.home = home
        self.home_path = home.settings.home
        self.kinds = kinds
        self.report = ChoresReport()

    def step(self, *, is_slow: bool) -> bool:
        """Do the first chore that is due; returns whether there may be more."""
        if self.next(is_slow=is_slow) is None:
            return False
        lock = FileLock(self.home_path / (_SLOW_LOCK if is_slow else CHORES_LOCK))
        if not lock.acquire():
            return False
        try:
            found = self.next(is_slow=is_slow)
            taken = self.take(found) if found else None
            if taken:
                self.do(taken)
        finally:
            lock.release()
        # Whoever left one while the lock was held went away again: it is looked for once more.
        return self.next(is_slow=is_slow) is not None or found is not None

    def next(self, *, is_slow: bool) -> _Waiting | None:
        now = self.home.clock().timestamp()
        due = (one for one in _listed(self.home_path) if _is_due(one.chore, now))
        return next((one for one in due if self.is_slow(one.chore) == is_slow), None)

    def is_slow(self, chore: Chore) -> bool:
        kind = self.kinds.get(chore.kind)
        return kind is not None and kind.is_slow

    def do(self, waits: _Waiting) -> None:
        """Do a chore. That it was begun is noted before: one that ends its process is given up, too.

        Raises OSError where that cannot be noted, as on a full disk: it would be due again at once, and for ever.
        """
        chore, kind = waits.chore, self.kinds.get(waits.chore.kind)
        now = self.home.clock().timestamp()
        if kind is None:
            self.give_up(waits, replace_note(chore, f"this nacre knows no chore {chore.kind!r}"))
        elif chore.tries >= MOST_TRIES:
            self.give_up(waits, chore if chore.note else replace_note(chore, "its process ended each time"))
        elif now - chore.at > _KEPT_SECONDS:
            self.give_up(waits, replace_note(chore, "it is too old to be of use"))
        else:
            begun = msgspec.structs.replace(
                chore, tries=chore.tries + 1, after=now + _PAUSE_SECONDS * 3**chore.tries, note=""
            )
            private_files.write_file(waits.paths[-1], msgspec.json.encode(begun))
            _remove(waits.paths[:-1])
            self.run(kind, _Waiting(begun, waits.paths[-1:]))

    def take(self, waits: _Waiting) -> _Waiting | None:
        """A chore under names of its own: hooks write to theirs again while it is done. Raises OSError."""
        paths = []
        for path in waits.paths:
            own = _own_name(self.home_path)
            with suppress(FileNotFoundError):  # another process was faster
                path.rename(own)
                paths.append(own)
        found = [(chore, path) for path in paths if (chore := _read(path))]
        if not found:
            return None
        latest = max((chore for chore, _ in found), key=lambda one: one.at)
        return _Waiting(latest, tuple(path for _, path in found))

    def run(self, kind: Kind, begun: _Waiting) -> None:
        chore = begun.chore
        try:
            following = kind.do(self.home, chore)
        except NotYetError as error:
            for one in error.following:
                put(self.home_path, one)
            if chore.tries >= MOST_TRIES:
                _remove(begun.paths)
            return
        except (StoreUnusable, StoreBusy):  # it is the home that is not well: the chore is as good as before
            _write(begun.paths[0], msgspec.structs.replace(chore, tries=chore.tries - 1))
            raise
        except Exception as error:  # noqa: BLE001 - a chore that fails, however it does, is in nobody's way
            told = error.message if isinstance(error, NacreError) else f"{type(error).__name__}: {error}"
            failed = replace_note(chore, self.home.redactor.clean(told)[:500])
            if chore.tries >= MOST_TRIES:
                self.give_up(begun, failed)
            else:
                _write(begun.paths[0], failed)
                self.report = replace(self.report, failed=self.report.failed + 1)
            return
        for one in following:
            put(self.home_path, one)
        _remove(begun.paths)
        self.report = replace(self.report, done=self.report.done + 1)

    def give_up(self, waits: _Waiting, chore: Chore) -> None:
        """Put a chore where it is told of. Raises OSError: then it waits still."""
        folder = folder_of(self.home_path) / _GIVEN_UP
        private_files.make_folder(folder)
        _remove(_files(folder)[: -_MOST_GIVEN_UP + 1])
        private_files.write_file(folder / waits.paths[-1].name, msgspec.json.encode(chore))
        _remove(waits.paths)
        self.report = replace(self.report, given_up=self.report.given_up + 1)


def replace_note(chore: Chore, note: str) -> Chore:
    """A chore with why it failed."""
    return msgspec.structs.replace(chore, note=note)


def _is_due(chore: Chore, now: float) -> bool:
    """Whether it may be done now. One that is to wait longer than any does was left before the clock was put back."""
    return not now < chore.after <= now + _PAUSE_SECONDS * 3**MOST_TRIES


def folder_of(home: Path) -> Path:
    """Where the chores of a home wait, one file each."""
    return Path(chores_folder(str(home)))


def _own_name(home: Path) -> Path:
    """A name for a chore that no hook writes to; sorted by name is sorted by time."""
    return folder_of(home) / f"{time.time_ns():020d}-{os.getpid()}-{next(_NUMBERS)}.json"


def _files(folder: Path) -> list[Path]:
    with suppress(OSError):
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".json" and path.name[0] != ".")
        return [folder / name for name in names[:_MOST_FILES]]
    return []


def _listed(home: Path) -> list[_Waiting]:
    """What waits, the oldest first, by subject."""
    found: dict[tuple[str, str, str], _Waiting] = {}
    for path in _files(folder_of(home)):
        if chore := _read(path):
            before = found.get(chore.subject)
            found[chore.subject] = _joined(before, chore, path) if before else _Waiting(chore, (path,))
    return list(found.values())


def _joined(before: _Waiting, chore: Chore, path: Path) -> _Waiting:
    """A chore that was left again is a new one: what failed before is tried at once."""
    return _Waiting(chore if chore.at > before.chore.at else before.chore, (*before.paths, path))


def _read(path: Path) -> Chore | None:
    """A chore. What is none is taken away: nobody could do it. What cannot be read now may be later."""
    try:
        with os.fdopen(private_files.open_file(path, os.O_RDONLY), "rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError:
        return None
    with suppress(msgspec.MsgspecError):
        chore: Chore = json_values.decode(data, Chore)
        return chore
    _remove([path])
    return None


def _write(path: Path, chore: Chore) -> None:
    with suppress(OSError):  # that it was begun is noted
        private_files.write_file(path, msgspec.json.encode(chore))


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()
