"""Chores that hooks leave: reading sessions, handoffs, learning, and judging used memories."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from nacre.base import files, json
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.link import CHORES_LOCK, chore_file, chores_folder
from nacre.base.locks import FileLock
from nacre.context import delivery
from nacre.context.effects import record_effects
from nacre.context.handoff import hand_over, hand_over_late, improve, put_away
from nacre.context.hooks import note_share, prune_states
from nacre.data.imports import capture
from nacre.errors import (
    BudgetSpentError,
    ModelRefusedError,
    NacreError,
    StoreBusyError,
    UnusableStoreError,
)
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.hosts import own_memory
from nacre.learn.ingest import find_session, read_beside, read_recent, read_session
from nacre.learn.learn import Lessons, learn
from nacre.memories.edit import catch_up
from nacre.memories.store import fold_usage, session_name
from nacre.memories.usage import note_stale
from nacre.memories.vectors import embed_pending
from nacre.operations import operation
from nacre.recall.pins import check_pins
from nacre.recall.recall import feedback
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

_EXCLUDED_FLAGS = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN | Flag.INJECTED


def is_to_be_heard(home: Home, session: StoredSession) -> bool:
    """Return True if a session has memory lookups that have not been judged yet."""
    fold_usage(home)
    return home.session_uses.first_unjudged(session_name(session.session.id)) is not None


def hear_reply(home: Home, session: StoredSession) -> None:
    """Judge the memories that an agent looked up, based on what it said afterwards.

    If the agent then stored a new version of a memory, this counts as a correction. Each use is
    judged once. See docs/context.md.
    """
    name = session.session.id
    since = home.session_uses.first_unjudged(session_name(name))
    if since is None:
        return
    reply = _words_since(since, (item.turn for item in home.sessions.turns_of(session.row)))
    memories = (home.memories.find(memory.id) for memory in home.memories.known_of(name))
    stored = [
        memory.id
        for memory in memories
        if memory and memory.speaker is Speaker.AGENT and not memory.retired
    ]
    feedback(home, reply, session=name, stored=tuple(stored))


def _words_since(moment: int, turns: Iterable[Turn]) -> str:
    """Return the agent's own text after a time in epoch milliseconds."""
    own = (turn for turn in turns if turn.speaker is Speaker.AGENT and turn.trust is Trust.TRUSTED)
    return "\n\n".join(
        turn.text
        for turn in own
        if not turn.flags & _EXCLUDED_FLAGS and turn.time and turn.time.timestamp() * 1000 >= moment
    )


# -- Learning while the session continues ----------------------------------------------------------


VECTOR_SECONDS = 10.0
"""Time limit in seconds for creating vectors. The next ingest creates missing vectors."""


def learn_now(
    home: Home,
    session: StoredSession | None,
    notify: OnProgress | None = None,
    *,
    is_over: bool = False,
) -> Lessons | None:
    """Learn from one session or from all pending sessions. Return ``None`` if learning is off.

    Only turns that were already read are used. ``is_over``: True if the last message will get no reply.
    """
    if not home.settings.flag("extraction.enabled"):
        return None
    report = notify or (lambda _: None)
    with home.run("ingest") as run:
        lessons = learn(
            home, report, only=session.row if session else None, is_over=is_over, run=run
        )
    embed_pending(home, report, seconds=VECTOR_SECONDS)
    return lessons


# -- Chores ----------------------------------------------------------------------------------------
# A chore is a small file in ``run/chores``, left by a hook (:mod:`nacre.serve.hook_shapes`). Chores of the same kind
# and session are combined. One process works at a time. Failures are retried up to five times. Then the chore moves to
# ``run/chores/given-up`` with the reason, which ``nacre admin doctor`` shows. Chores that might call a model have a
# separate lock, so that no handoff waits for a model.


MOST_TRIES = 5
MOST_SECONDS = 300.0
_RETRY_SECONDS = 10.0
"""Delay before the second try, in seconds. Each further delay is three times as long."""

_MAX_FILES = 2_000
_MAX_BYTES = 100_000
_KEPT_SECONDS = 7 * 86_400
_GIVEN_UP = "given-up"
_MAX_GIVEN_UP = 100

_SLOW_LOCK = "chores-slow.lock"


_Moment = Annotated[float, Meta(ge=0, le=1e11)]


class Chore(msgspec.Struct, frozen=True):
    """A pending task.

    ``kind``: a :class:`~nacre.values.context.HookEvent`, or a task that follows from an event. ``session``:
    ``<tool>:<the host's own id>``. ``occasion``: reason for the session's start. ``at``: time when the chore was left.
    ``after``: time from which the chore is due. Both times are in epoch seconds. ``tries``: number of attempts.
    ``note``: reason for the last failure.
    """

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
        """Return a key. Chores with the same key can be combined."""
        return (
            self.kind,
            self.session or "",
            "" if self.session else (self.transcript or self.folder or ""),
        )


class NotYetError(Exception):
    """Raised by a chore that must wait for a condition.

    The chore is retried later, and finally dropped without a report. ``following``: chores that
    result from the work done so far.
    """

    def __init__(self, following: Sequence[Chore] = ()) -> None:
        super().__init__("not yet")
        self.following = following


@frozen
class Kind:
    """The function for a kind of chore. ``is_slow`` means that it can call or load a model."""

    do: Callable[[Home, Chore], Sequence[Chore]]
    is_slow: bool = False


@frozen
class _Pending:
    """Chores that are completed together. ``chore``: the latest one. ``paths``: their files."""

    chore: Chore
    paths: tuple[Path, ...]


def is_due(home: Path, now: float) -> bool:
    """Return True if a home has a chore that is due at ``now`` (epoch seconds)."""
    return any(_is_due(pending.chore, now) for pending in _listed(home))


def drop(home: Path, is_needless: Callable[[Chore], bool]) -> None:
    """Remove unnecessary chores."""
    for pending in _listed(home):
        if is_needless(pending.chore):
            _remove(pending.paths)


def waiting(home: Path) -> list[Chore]:
    """Return a home's chores, oldest first."""
    return [pending.chore for pending in _listed(home)]


def given_up(home: Path) -> list[Chore]:
    """Return the chores that failed too often, oldest first."""
    folder = folder_of(home) / _GIVEN_UP
    return [chore for path in _files(folder) if (chore := _read(path))]


def put(home: Path, chore: Chore) -> None:
    """Store a chore. Raises OSError."""
    files.write_file(Path(chore_file(str(home))), msgspec.json.encode(chore))


class Worklist:
    """A process that works on chores."""

    def __init__(self, home: Home, kinds: Mapping[str, Kind]) -> None:
        self.home = home
        self.home_path = home.settings.home
        self.kinds = kinds
        self.report = ChoresReport()

    def step(self, *, is_slow: bool) -> bool:
        """Do the first due chore, and return True if there might be more."""
        if self.next(is_slow=is_slow) is None:
            return False
        lock = FileLock(self.home_path / (_SLOW_LOCK if is_slow else CHORES_LOCK))
        if not lock.acquire():
            return False
        try:
            pending = self.next(is_slow=is_slow)
            claimed = self.take(pending) if pending else None
            if claimed:
                self.do(claimed)
        finally:
            lock.release()
        # Check again, because processes that left a chore while the lock was held did not wait.
        return self.next(is_slow=is_slow) is not None or pending is not None

    def next(self, *, is_slow: bool) -> _Pending | None:
        now = self.home.clock().timestamp()
        due = (pending for pending in _listed(self.home_path) if _is_due(pending.chore, now))
        return next((pending for pending in due if self.is_slow(pending.chore) == is_slow), None)

    def is_slow(self, chore: Chore) -> bool:
        kind = self.kinds.get(chore.kind)
        return kind is not None and kind.is_slow

    def do(self, waits: _Pending) -> None:
        """Do a chore.

        The attempt is recorded first, so that a chore that kills its process is eventually abandoned. Raises OSError if
        the attempt cannot be recorded, because the chore could otherwise be tried forever.
        """
        chore, kind = waits.chore, self.kinds.get(waits.chore.kind)
        now = self.home.clock().timestamp()
        if kind is None:
            self.give_up(waits, f"this version of nacre does not know the chore {chore.kind!r}")
        elif chore.tries >= MOST_TRIES:
            self.give_up(waits, chore.note or "its process ended at every attempt")
        elif now - chore.at > _KEPT_SECONDS:
            self.give_up(waits, "too old to be useful")
        else:
            begun = msgspec.structs.replace(
                chore, tries=chore.tries + 1, after=now + _RETRY_SECONDS * 3**chore.tries, note=""
            )
            files.write_file(waits.paths[-1], msgspec.json.encode(begun))
            _remove(waits.paths[:-1])
            self.run(kind, _Pending(begun, waits.paths[-1:]))

    def take(self, waits: _Pending) -> _Pending | None:
        """Rename a chore's files, because hooks might use the old names again. Raises OSError."""
        paths = []
        for path in waits.paths:
            own = Path(chore_file(str(self.home_path)))
            with suppress(FileNotFoundError):  # another process was faster
                path.rename(own)
                paths.append(own)
        claimed = [(chore, path) for path in paths if (chore := _read(path))]
        if not claimed:
            return None
        latest = max((chore for chore, _ in claimed), key=lambda item: item.at)
        return _Pending(latest, tuple(path for _, path in claimed))

    def run(self, kind: Kind, begun: _Pending) -> None:
        chore = begun.chore
        try:
            following = kind.do(self.home, chore)
        except NotYetError as error:
            for following_chore in error.following:
                put(self.home_path, following_chore)
            if chore.tries >= MOST_TRIES:
                _remove(begun.paths)
            return
        except (UnusableStoreError, StoreBusyError):  # the home has a problem, not the chore
            _write(begun.paths[0], msgspec.structs.replace(chore, tries=chore.tries - 1))
            raise
        except Exception as error:  # noqa: BLE001 - a failing chore must not stop the others
            message = f"{type(error).__name__}: {error}"
            message = error.message if isinstance(error, NacreError) else message
            note = self.home.redactor.clean(message)[:500]
            if chore.tries >= MOST_TRIES:
                self.give_up(begun, note)
            else:
                _write(begun.paths[0], msgspec.structs.replace(chore, note=note))
                self.report = replace(self.report, failed=self.report.failed + 1)
            return
        for following_chore in following:
            put(self.home_path, following_chore)
        _remove(begun.paths)
        self.report = replace(self.report, done=self.report.done + 1)

    def give_up(self, waits: _Pending, note: str) -> None:
        """Move a chore to the given-up folder with the reason. If this raises OSError, it stays pending."""
        chore = msgspec.structs.replace(waits.chore, note=note)
        folder = folder_of(self.home_path) / _GIVEN_UP
        files.make_folder(folder)
        _remove(_files(folder)[: -_MAX_GIVEN_UP + 1])
        files.write_file(folder / waits.paths[-1].name, msgspec.json.encode(chore))
        _remove(waits.paths)
        self.report = replace(self.report, given_up=self.report.given_up + 1)


def _is_due(chore: Chore, now: float) -> bool:
    """Return True if a chore is due, or if its delay is impossibly long because the clock was set back."""
    return not now < chore.after <= now + _RETRY_SECONDS * 3**MOST_TRIES


def folder_of(home: Path) -> Path:
    """Return the folder with a home's chore files."""
    return Path(chores_folder(str(home)))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[!.]*.json"))[:_MAX_FILES]


def _listed(home: Path) -> list[_Pending]:
    """Return pending chores grouped by subject, oldest first."""
    pending: dict[tuple[str, str, str], _Pending] = {}
    for path in _files(folder_of(home)):
        if chore := _read(path):
            before = pending.get(chore.subject) or _Pending(chore, ())
            # A later chore is new: the delay after earlier failures does not apply.
            latest = chore if chore.at > before.chore.at else before.chore
            pending[chore.subject] = _Pending(latest, (*before.paths, path))
    return list(pending.values())


def _read(path: Path) -> Chore | None:
    """Read a chore. Remove an invalid file, but leave an unreadable file for later."""
    try:
        with os.fdopen(files.open_file(path, os.O_RDONLY), "rb") as file:
            data = file.read(_MAX_BYTES)
    except OSError:
        return None
    with suppress(msgspec.MsgspecError):
        chore: Chore = json.decode(data, Chore)
        return chore
    _remove([path])
    return None


def _write(path: Path, chore: Chore) -> None:
    with suppress(OSError):  # the attempt is already recorded
        files.write_file(path, msgspec.json.encode(chore))


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


# -- Work on each kind of chore --------------------------------------------------------------------
# All this work can be repeated without harm.


LEARN, IMPROVE, CAPTURE, HEAR, STALE = "learn", "improve", "capture", "hear", "stale"

_COMPACTS_EACH_TURN = frozenset({"gemini-cli"})
"""Tools that report a possible compaction before each turn, and keep the same session after it."""


def _session_start(home: Home, chore: Chore) -> Sequence[Chore]:
    """Record deliveries of context. Write the previous session's handoff if it is missing."""
    catch_up(home)
    prune_states(home.settings.home, home.clock().timestamp())
    put_away(home)
    note_share(home.settings, home.now_ms())
    following = (
        _late(home, chore)
        if chore.tries <= 1 and chore.occasion in (None, "", "startup", "clear")
        else []
    )
    following += _capture_chores(home, chore)
    if chore.session and delivery.has_claim(home, chore.session):
        raise NotYetError(following)  # its host or nacre has not received the handoff yet
    return following


def _late(home: Home, chore: Chore) -> list[Chore]:
    read_beside(home, chore.session or "", chore.transcript)
    project = project_of_folder(home, Path(chore.folder)) if chore.folder else None
    if not project:
        return []
    before = datetime.fromtimestamp(chore.at, UTC) if chore.at else home.now()
    handoff = hand_over_late(home, project, before=before, but=chore.session or "")
    return [Chore(IMPROVE, handoff.session, at=chore.at)] if handoff else []


def _session_end(home: Home, chore: Chore) -> Sequence[Chore]:
    """Read the rest of the session and write its handoff.

    Return chores that use a model to learn from the session.
    """
    return [*_ended(home, chore, learns_all=True), *_capture_chores(home, chore)]


def _pre_compact(home: Home, chore: Chore) -> Sequence[Chore]:
    """Read a session and write its handoff before the agent's context is compacted."""
    if (chore.session or "").partition(":")[0] in _COMPACTS_EACH_TURN:
        return _turn_end(home, chore)
    return _ended(home, chore, learns_all=False)


def _ended(home: Home, chore: Chore, *, learns_all: bool) -> Sequence[Chore]:
    catch_up(home)
    put_away(home)
    session = read_session(home, chore.session or "", chore.transcript)
    if session is None or session.session.kind is not SessionKind.MAIN:
        return []
    record_effects(home, session)
    handoff = hand_over(home, session)
    following = [Chore(IMPROVE, session.session.id, at=chore.at)] if handoff else []
    if any(stored.row == session.row for stored in home.sessions.to_extract()):
        occasion = "end" if learns_all else ""
        following.append(Chore(LEARN, session.session.id, occasion=occasion, at=chore.at))
    following.append(Chore(STALE, at=chore.at))
    if is_to_be_heard(home, session):
        following.append(Chore(HEAR, session.session.id, at=chore.at))
    return following


def _turn_end(home: Home, chore: Chore) -> Sequence[Chore]:
    """Read the session and record delivered context."""
    put_away(home)
    read_session(home, chore.session or "", chore.transcript)
    return []


def _capture_chores(home: Home, chore: Chore) -> list[Chore]:
    """Return a chore that imports new notes from hosts whose own memory is turned off."""
    return [Chore(CAPTURE, at=chore.at)] if own_memory.load(home.settings.home).hosts else []


def _capture(home: Home, _: Chore) -> Sequence[Chore]:
    capture(home)
    return []


def _learn(home: Home, chore: Chore) -> Sequence[Chore]:
    session = find_session(home, chore.session or "")
    lessons = learn_now(home, session, is_over=chore.occasion == "end") if session else None
    if lessons and lessons.by_model and lessons.by_model.elsewhere:
        raise NotYetError  # another process is asking the writer, perhaps without this session
    return []


def _hear(home: Home, chore: Chore) -> Sequence[Chore]:
    session = find_session(home, chore.session or "")
    if session:
        hear_reply(home, session)
    return []


def _stale(home: Home, _: Chore) -> Sequence[Chore]:
    note_stale(home)
    check_pins(home)
    return []


def _improve(home: Home, chore: Chore) -> Sequence[Chore]:
    session = find_session(home, chore.session or "")
    if session:
        with suppress(
            BudgetSpentError, ModelRefusedError
        ):  # the handoff written by rules is good enough
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
"""Kinds of chores, keyed by name."""


@operation("chores", writes=True, takes_long=True, http=False)
def do_waiting(
    home: Home,
    *,
    seconds: Annotated[float, bounds("Time limit in seconds.", ge=0)] = MOST_SECONDS,
    kinds: Mapping[str, Kind] = KINDS,
) -> ChoresReport:
    """Do due chores within a time limit, starting with the quick chores.

    Chores that another process is doing are skipped. Raises UnusableStoreError, StoreBusyError if the home is not
    writable.
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
        raise UnusableStoreError(
            f"cannot save the pending work: {error.strerror}",
            hint="free some disk space; the work stays pending until then",
        ) from error
    return replace(work.report, left=len(waiting(home.settings.home)))


# -- Flush -----------------------------------------------------------------------------------------
# Reads and learns from current sessions, and does pending chores.


@operation("flush", writes=True, takes_long=True, http=False)
def flush(
    home: Home,
    on_progress: OnProgress | None = None,
    *,
    session: Annotated[str | None, bounds("The host's session, as <tool>:<id>.")] = None,
    transcript: Annotated[str | None, bounds("The session's transcript file.")] = None,
    seconds: Annotated[float, bounds("Time limit for chores in seconds.", ge=0)] = 60.0,
) -> FlushReport:
    """Read sessions and learn from them, and then do pending chores.

    Pending memories are also written to the vault. A language model is used only if models are
    allowed in the background. Errors that occur during writing are raised.
    """
    notify = on_progress or (lambda _: None)
    catch_up(home)
    stored: StoredSession | None = None
    if session:
        stored = read_session(home, session, transcript)
    else:
        read_recent(home)
    rows = [
        other.row
        for other in home.sessions.to_extract()
        if stored is None or other.row == stored.row
    ]
    is_unknown = session and stored is None
    lessons = None if is_unknown else learn_now(home, stored, notify)
    chores = do_waiting(home, seconds=seconds)
    return FlushReport(
        lessons.memories if lessons else (),
        lessons.duplicates if lessons else 0,
        0 if is_unknown else len(rows),
        chores,
        lessons.notes if lessons else (),
    )
