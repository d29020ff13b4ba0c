"""What a session's agent made of the memories that it looked up: feedback that nobody has to ask for (agenr)."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from nacre.base import files, json
from nacre.base.ids import to_ms
from nacre.base.link import CHORES_LOCK, chores_folder
from nacre.base.locks import FileLock
from nacre.base.request import Request
from nacre.code.ask import note_stale
from nacre.context import delivery
from nacre.context.handoff import hand_over, hand_over_late, improve, put_away
from nacre.context.hooks import note_share, prune_states
from nacre.data.imports import capture
from nacre.errors import BudgetSpent, ModelRefused, NacreError, StoreBusy, StoreUnusable
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.home.spending import MOST_REFS, counted, noting
from nacre.hosts import host
from nacre.learn.ingest import find_session, read_beside, read_recent, read_session
from nacre.learn.learn import Lessons, learn
from nacre.memories.edit import catch_up
from nacre.memories.store import fold_usage, session_name
from nacre.memories.vectors import embed_pending
from nacre.recall.recall import feedback
from nacre.values.models import Step, TraceKind
from nacre.values.reports import OnProgress
from nacre.values.session import (
    ChoresReport,
    Flag,
    FlushReport,
    SessionKind,
    Speaker,
    StoredSession,
    Trust,
    Turn,
)

_NOT_ITS_WORDS = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN | Flag.INJECTED


def is_to_be_heard(home: Home, session: StoredSession) -> bool:
    """Whether memories were looked up in a session on which no reply was heard since."""
    fold_usage(home)
    return home.session_uses.first_unjudged(session_name(session.session.id)) is not None


def hear_reply(home: Home, session: StoredSession) -> None:
    """Judge the memories that were looked up in a session by what its agent said since; see docs/context.md.

    What the agent stored meanwhile and says one of them anew corrects it. Each use is judged once.
    """
    name = session.session.id
    since = home.session_uses.first_unjudged(session_name(name))
    if since is None:
        return
    said = _words_since(since, (item.turn for item in home.sessions.turns_of(session.row)))
    known = (home.memories.find(one.id) for one in home.memories.known_of(name))
    stored = [one.id for one in known if one and one.speaker is Speaker.AGENT and not one.retired]
    feedback(home, said, session=name, stored=stored)


def _words_since(moment: int, turns: Iterable[Turn]) -> str:
    """What the agent itself said after a time (epoch milliseconds)."""
    own = (turn for turn in turns if turn.speaker is Speaker.AGENT and turn.trust is Trust.TRUSTED)
    return "\n\n".join(
        turn.text
        for turn in own
        if not turn.flags & _NOT_ITS_WORDS and turn.time and turn.time.timestamp() * 1000 >= moment
    )


# ----------------------------------------------------------------------------
# Learn from what was read of a session, while its host goes on.


VECTOR_SECONDS = 10.0
"""So long vectors are made; the next ingest goes on with them."""


def learn_now(
    home: Home,
    session: StoredSession | None,
    notify: OnProgress | None = None,
    *,
    is_over: bool = False,
) -> Lessons | None:
    """Learn from a session as far as it was read, or from all that wait; ``None`` where learning is off.

    ``is_over``: nobody will answer what was said last.
    """
    if not home.settings.flag("extraction.enabled"):
        return None
    told = notify or (lambda _: None)
    subject = session.session.id if session else "what waits"
    with noting(home, TraceKind.INDEX, subject) as trace, home.run("ingest") as run:
        lessons = learn(home, told, only=session.row if session else None, is_over=is_over, run=run)
        counts = {"memories": len(lessons.memories), "candidates": lessons.candidates}
        trace.outcome = counted(counts)
        if trace.outcome:
            trace.add(
                Step("learns", output=trace.outcome, refs=tuple(lessons.memories[:MOST_REFS]))
            )
    embed_pending(home, told, seconds=VECTOR_SECONDS)
    return lessons


# ----------------------------------------------------------------------------
# Do what hooks left to be done: read a session, hand it over, learn from it. One process at a time,
# each chore once.
#
# A chore is a small file in ``run/chores``, left by a hook (:mod:`nacre.serve.hook_shapes`). Those of a
# kind and a session are
# one. What fails is tried again later, up to five times; what is given up lies in ``run/chores/given-
# up`` with the
# reason, where ``nacre doctor`` tells of it. Those that may ask a model have a lock of their own: no
# handoff waits for
# one.


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
    """What is to be done. ``kind`` is a :class:`~nacre.values.context.HookEvent`, or what follows from one; ``session``
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
        return (
            self.kind,
            self.session or "",
            "" if self.session else (self.transcript or self.folder or ""),
        )


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
    files.write_file(_own_name(home), msgspec.json.encode(chore))


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
            self.give_up(
                waits, chore if chore.note else replace_note(chore, "its process ended each time")
            )
        elif now - chore.at > _KEPT_SECONDS:
            self.give_up(waits, replace_note(chore, "it is too old to be of use"))
        else:
            begun = msgspec.structs.replace(
                chore, tries=chore.tries + 1, after=now + _PAUSE_SECONDS * 3**chore.tries, note=""
            )
            files.write_file(waits.paths[-1], msgspec.json.encode(begun))
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
        except (
            StoreUnusable,
            StoreBusy,
        ):  # it is the home that is not well: the chore is as good as before
            _write(begun.paths[0], msgspec.structs.replace(chore, tries=chore.tries - 1))
            raise
        except Exception as error:  # noqa: BLE001 - a chore that fails, however it does, is in nobody's way
            told = (
                error.message
                if isinstance(error, NacreError)
                else f"{type(error).__name__}: {error}"
            )
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
        files.make_folder(folder)
        _remove(_files(folder)[: -_MOST_GIVEN_UP + 1])
        files.write_file(folder / waits.paths[-1].name, msgspec.json.encode(chore))
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
        names = sorted(
            path.name for path in folder.iterdir() if path.suffix == ".json" and path.name[0] != "."
        )
        return [folder / name for name in names[:_MOST_FILES]]
    return []


def _listed(home: Path) -> list[_Waiting]:
    """What waits, the oldest first, by subject."""
    found: dict[tuple[str, str, str], _Waiting] = {}
    for path in _files(folder_of(home)):
        if chore := _read(path):
            before = found.get(chore.subject)
            found[chore.subject] = (
                _joined(before, chore, path) if before else _Waiting(chore, (path,))
            )
    return list(found.values())


def _joined(before: _Waiting, chore: Chore, path: Path) -> _Waiting:
    """A chore that was left again is a new one: what failed before is tried at once."""
    return _Waiting(chore if chore.at > before.chore.at else before.chore, (*before.paths, path))


def _read(path: Path) -> Chore | None:
    """A chore. What is none is taken away: nobody could do it. What cannot be read now may be later."""
    try:
        with os.fdopen(files.open_file(path, os.O_RDONLY), "rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError:
        return None
    with suppress(msgspec.MsgspecError):
        chore: Chore = json.decode(data, Chore)
        return chore
    _remove([path])
    return None


def _write(path: Path, chore: Chore) -> None:
    with suppress(OSError):  # that it was begun is noted
        files.write_file(path, msgspec.json.encode(chore))


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


# ----------------------------------------------------------------------------
# What is done for each kind of chore. All of it may be done twice: what is known is known, what is
# done is done.


LEARN, IMPROVE, CAPTURE, HEAR, STALE = "learn", "improve", "capture", "hear", "stale"

_GOES_ON = frozenset({"gemini-cli"})
"""Tools that say before each turn that they may compact, and begin no session anew when they do."""


def _session_start(home: Home, chore: Chore) -> Sequence[Chore]:
    """What was given is put away, and noted which share is held out; what the last session did not hand over, as it
    ended unseen, is handed over late."""
    catch_up(home)
    prune_states(home.settings.home, home.clock().timestamp())
    put_away(home)
    note_share(home.settings, to_ms(home.clock()) or 0)
    following = (
        _late(home, chore)
        if chore.tries <= 1 and chore.occasion in (None, "", "startup", "clear")
        else []
    )
    following += _to_capture(home, chore)
    if chore.session and delivery.has_claim(home, chore.session):
        raise NotYetError(
            following
        )  # its host has not been told yet, or we have not been told that it was
    return following


def _late(home: Home, chore: Chore) -> list[Chore]:
    read_beside(home, chore.session or "", chore.transcript)
    project = project_of_folder(home, Path(chore.folder)) if chore.folder else None
    if not project:
        return []
    before = datetime.fromtimestamp(chore.at, UTC) if chore.at else home.now()
    made = hand_over_late(home, project, before=before, but=chore.session or "")
    return [Chore(IMPROVE, made.session, at=chore.at)] if made else []


def _session_end(home: Home, chore: Chore) -> Sequence[Chore]:
    """It is read to its end, and handed over; learning and the model follow."""
    return [*_ended(home, chore, learns_all=True), *_to_capture(home, chore)]


def _pre_compact(home: Home, chore: Chore) -> Sequence[Chore]:
    """What will be forgotten is read, handed over and learned from, as far as it is new."""
    if (chore.session or "").partition(":")[0] in _GOES_ON:
        return _turn_end(home, chore)
    return _ended(home, chore, learns_all=False)


def _ended(home: Home, chore: Chore, *, learns_all: bool) -> Sequence[Chore]:
    catch_up(home)
    put_away(home)
    session = read_session(home, chore.session or "", chore.transcript)
    if session is None or session.session.kind is not SessionKind.MAIN:
        return []
    made = hand_over(home, session)
    following = [Chore(IMPROVE, session.session.id, at=chore.at)] if made else []
    if any(one.row == session.row for one in home.sessions.to_extract()):
        occasion = "end" if learns_all else ""
        following.append(Chore(LEARN, session.session.id, occasion=occasion, at=chore.at))
    following.append(Chore(STALE, at=chore.at))
    if is_to_be_heard(home, session):
        following.append(Chore(HEAR, session.session.id, at=chore.at))
    return following


def _turn_end(home: Home, chore: Chore) -> Sequence[Chore]:
    """It is read, no more; what it was given late is put away."""
    put_away(home)
    read_session(home, chore.session or "", chore.transcript)
    return []


def _to_capture(home: Home, chore: Chore) -> list[Chore]:
    """Where a host's own memory is turned off, what was written there even so is imported."""
    return [Chore(CAPTURE, at=chore.at)] if host.load(home.settings.home).hosts else []


def _capture(home: Home, _: Chore) -> Sequence[Chore]:
    capture(home)
    return []


def _learn(home: Home, chore: Chore) -> Sequence[Chore]:
    session = find_session(home, chore.session or "")
    lessons = learn_now(home, session, is_over=chore.occasion == "end") if session else None
    if lessons and lessons.by_model and lessons.by_model.elsewhere:
        raise NotYetError  # another process asks the writer, and may not have this session among what it asks about
    return []


def _hear(home: Home, chore: Chore) -> Sequence[Chore]:
    session = find_session(home, chore.session or "")
    if session:
        hear_reply(home, session)
    return []


def _stale(home: Home, _: Chore) -> Sequence[Chore]:
    note_stale(home)
    return []


def _improve(home: Home, chore: Chore) -> Sequence[Chore]:
    session = find_session(home, chore.session or "")
    if session:
        with suppress(BudgetSpent, ModelRefused):  # what the rules stored is good enough then
            improve(home, session)
    return []


KINDS: Mapping[str, Kind] = {
    "session-start": Kind(_session_start),
    "session-end": Kind(_session_end),
    "pre-compact": Kind(_pre_compact),
    "turn-end": Kind(_turn_end),
    CAPTURE: Kind(_capture),
    IMPROVE: Kind(_improve, is_slow=True),
    LEARN: Kind(_learn, is_slow=True),
    HEAR: Kind(_hear, is_slow=True),
    STALE: Kind(_stale, is_slow=True),
}
"""By the name of the chore."""


def do_waiting(
    home: Home, *, seconds: float = MOST_SECONDS, kinds: Mapping[str, Kind] = KINDS
) -> ChoresReport:
    """Do what waits and is due, quick chores first, for so long at most; what another process is at is left to it.

    Raises StoreUnusable, StoreBusy where the home cannot be written to: nothing is tried in vain then.
    """
    if home.database.unwritable:
        raise home.database.unwritable
    until = time.monotonic() + seconds
    files.sweep(folder_of(home.settings.home))
    work = Worklist(home, kinds)
    try:
        while time.monotonic() < until and (work.step(is_slow=False) or work.step(is_slow=True)):
            pass
    except OSError as error:
        raise StoreUnusable(
            f"what is to be done cannot be noted: {error.strerror}",
            hint="is the disk full? it waits till there is room",
        ) from error
    return replace(work.report, left=len(waiting(home.settings.home)))


# ----------------------------------------------------------------------------
# Requests to do what waits.


class ChoresRequest(Request, frozen=True, kw_only=True):
    """Do what hooks left to be done."""

    seconds: Annotated[float, Meta(description="Longest time, in seconds.", ge=0)] = 300.0


class FlushRequest(Request, frozen=True, kw_only=True):
    """Read and learn at once from what agents wrote until now, in one session or in all that grew within a day."""

    session: Annotated[str | None, Meta(description="The host's session, as <tool>:<id>.")] = None
    transcript: Annotated[str | None, Meta(description="The file that the session writes.")] = None
    seconds: Annotated[float, Meta(description="Longest time for chores, in seconds.", ge=0)] = 60.0


# ----------------------------------------------------------------------------
# What is answered to requests about chores; :mod:`nacre.serve.catalogue` lists them.


def do_waiting_answers(home: Home, request: ChoresRequest) -> ChoresReport:
    """Do what hooks left to be done."""
    return do_waiting(home, seconds=request.seconds)


# ----------------------------------------------------------------------------
# Flush: what a session said until now is read and learned at once, and what hooks left to be done is
# done.


def flush(home: Home, request: FlushRequest, on_progress: OnProgress | None = None) -> FlushReport:
    """Read and learn from what was said until now, then do what waits. What waits for its place in the vault is placed.

    A language model reads only where one may in the background. Raises what writing raises.
    """
    notify = on_progress or (lambda _: None)
    catch_up(home)
    found: StoredSession | None = None
    if request.session:
        found = read_session(home, request.session, request.transcript)
    else:
        read_recent(home)
    rows = [one.row for one in home.sessions.to_extract() if found is None or one.row == found.row]
    is_asked_for_nothing = request.session and found is None
    lessons = None if is_asked_for_nothing else learn_now(home, found, notify)
    chores = do_waiting(home, seconds=request.seconds)
    return FlushReport(
        lessons.memories if lessons else (),
        lessons.duplicates if lessons else 0,
        0 if is_asked_for_nothing else len(rows),
        chores,
        lessons.notes if lessons else (),
    )
