"""Chores that hooks leave for later: reading, handoffs, learning, and judging used memories."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from nacre.base import files, json
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.link import CHORES_LOCK, chore_file, chores_folder
from nacre.base.locks import FileLock
from nacre.context import hooks
from nacre.context.effects import record_effects
from nacre.context.handoff import hand_over, hand_over_late, improve, put_away
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
from nacre.learn.ingest import find_session, read_recent, read_session
from nacre.learn.learn import learn
from nacre.memories.edit import catch_up
from nacre.memories.usage import fold_usage, note_stale, session_name
from nacre.memories.vectors import embed_pending
from nacre.operations import operation
from nacre.recall.pins import check_pins
from nacre.recall.recall import feedback
from nacre.values.reports import IngestReport, OnProgress
from nacre.values.session import (
    ChoresReport,
    Flag,
    FlushReport,
    SessionKind,
    Speaker,
    StoredSession,
    Trust,
)

_EXCLUDED_FLAGS = Flag.META | Flag.SUMMARY | Flag.SIDECHAIN | Flag.INJECTED


# -- Learning while the session continues ----------------------------------------------------------


VECTOR_SECONDS = 10.0
"""Time limit in seconds for creating vectors, which the next ingest completes."""


def learn_now(
    home: Home,
    session: StoredSession | None,
    notify: OnProgress | None = None,
    *,
    is_over: bool = False,
) -> IngestReport:
    """Learn from one session or from all pending ones, unless learning is off.

    No new turns are read. ``is_over`` is True if the last message will get no reply.
    """
    if not home.settings.flag("extraction.enabled"):
        return IngestReport()
    notify = notify or (lambda _: None)
    with home.run("ingest") as run:
        report = learn(
            home, notify, only=session.row if session else None, is_over=is_over, run=run
        )
    embed_pending(home, notify, seconds=VECTOR_SECONDS)
    return report


# -- Chores ----------------------------------------------------------------------------------------
# A chore is a small file in ``run/chores``, left by a hook (:mod:`nacre.serve.hook_shapes`). Chores of the same kind
# and session are combined, and one process works at a time. A chore that fails five times moves to
# ``run/chores/given-up`` with the reason, which ``nacre admin doctor`` shows. Chores that might call a model have a
# separate lock, so that no handoff waits for a model.


MOST_TRIES = 5
MOST_SECONDS = 300.0
_RETRY_SECONDS = 10.0
"""Delay in seconds before the second try. Each further delay is three times as long."""

_MAX_FILES = 2_000
_MAX_AGE_SECONDS = 7 * 86_400
_ABANDONED = "given-up"
_MAX_ABANDONED = 100

_SLOW_LOCK = "chores-slow.lock"


_Moment = Annotated[float, Meta(ge=0, le=1e11)]


class Chore(msgspec.Struct, frozen=True):
    """A pending task.

    ``kind``: a :class:`~nacre.values.context.HookEvent`, or a task that follows from an event.
    ``session``: ``<tool>:<the host's own id>``. ``occasion``: why the session started. ``at``,
    ``after``: when a hook left the chore and when it becomes due, in epoch seconds. ``tries``:
    number of attempts. ``note``: the reason for the last failure.
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
        """Return a key that is the same for chores that can be combined."""
        place = "" if self.session else self.transcript or self.folder or ""
        return self.kind, self.session or "", place


class NotYetError(Exception):
    """Raised by a chore that must wait for a condition.

    The chore is retried later, and eventually dropped without a report. ``following``: chores that
    result from the work done so far.
    """

    def __init__(self, following: Sequence[Chore] = ()) -> None:
        super().__init__("not yet")
        self.following = following


Work = Callable[[Home, Chore], Sequence[Chore] | None]
"""A function that does a chore and returns the chores that follow from it, if any."""


@frozen
class _Pending:
    chore: Chore
    paths: tuple[Path, ...]


def is_due(home: Path, now: float) -> bool:
    """Return True if a home has a chore that is due at ``now`` (epoch seconds)."""
    return any(_is_due(pending.chore, now) for pending in _grouped_chores(home))


def drop(home: Path, is_needless: Callable[[Chore], bool]) -> None:
    """Remove the chores for which ``is_needless`` returns True."""
    for pending in _grouped_chores(home):
        if is_needless(pending.chore):
            _remove(pending.paths)


def pending_chores(home: Path) -> list[Chore]:
    """Return a home's chores, oldest first."""
    return [pending.chore for pending in _grouped_chores(home)]


def abandoned_chores(home: Path) -> list[Chore]:
    """Return the chores that failed too often, oldest first."""
    folder = folder_of(home) / _ABANDONED
    return [chore for path in _files(folder) if (chore := _read(path))]


def put(home: Path, chore: Chore) -> None:
    """Write a chore's file. Raises OSError."""
    files.write_file(Path(chore_file(home)), json.encode(chore))


def _do_first(
    home: Home, kinds: Mapping[str, Work], counts: Counter[str], *, is_slow: bool
) -> bool:
    if not _first_due(home, is_slow=is_slow):
        return False
    lock = FileLock(home.settings.home / (_SLOW_LOCK if is_slow else CHORES_LOCK))
    with lock.if_free() as is_ours:
        if is_ours and (pending := _first_due(home, is_slow=is_slow)):
            counts[_do(home, pending, kinds)] += 1
    # The caller checks again, because processes that left a chore meanwhile did not wait.
    return is_ours


def _first_due(home: Home, *, is_slow: bool) -> _Pending | None:
    now = home.clock().timestamp()
    due = (item for item in _grouped_chores(home.settings.home) if _is_due(item.chore, now))
    return next((item for item in due if (item.chore.kind in _SLOW) == is_slow), None)


def _do(home: Home, pending: _Pending, kinds: Mapping[str, Work]) -> str:
    chore, work = pending.chore, kinds.get(pending.chore.kind)
    now = home.clock().timestamp()
    if work is None:
        return _give_up(
            home, pending, f"this version of nacre does not know the chore {chore.kind!r}"
        )
    if chore.tries >= MOST_TRIES:
        return _give_up(home, pending, chore.note or "its process ended at every attempt")
    if now - chore.at > _MAX_AGE_SECONDS:
        return _give_up(home, pending, "too old to be useful")
    after = now + _RETRY_SECONDS * 3**chore.tries
    chore = replace(chore, tries=chore.tries + 1, after=after, note="")
    *others, path = pending.paths
    # The attempt is recorded first, and OSError is raised if this fails, so that a chore that kills
    # its process is not tried forever.
    files.write_file(path, json.encode(chore))
    _remove(others)
    outcome = "done"
    try:
        following = work(home, chore)
    except NotYetError as error:
        outcome, following = "waiting", error.following
    except (UnusableStoreError, StoreBusyError):  # the home has a problem, not the chore
        _write(path, replace(chore, tries=chore.tries - 1))
        raise
    except Exception as error:  # noqa: BLE001 - a failing chore must not stop the others
        name = "" if isinstance(error, NacreError) else f"{type(error).__name__}: "
        note = home.redactor.clean(f"{name}{error}")[:500]
        if chore.tries >= MOST_TRIES:
            return _give_up(home, _Pending(chore, (path,)), note)
        _write(path, replace(chore, note=note))
        return "failed"
    for item in following or ():
        put(home.settings.home, item)
    if outcome == "done" or chore.tries >= MOST_TRIES:
        _remove([path])
    return outcome


def _give_up(home: Home, pending: _Pending, note: str) -> str:
    folder = folder_of(home.settings.home) / _ABANDONED
    files.make_folder(folder)
    _remove(_files(folder)[: -_MAX_ABANDONED + 1])
    chore = replace(pending.chore, note=note)
    files.write_file(folder / pending.paths[-1].name, json.encode(chore))
    _remove(pending.paths)
    return "given_up"


def _is_due(chore: Chore, now: float) -> bool:
    # A longer delay means that the clock was set back.
    return not now < chore.after <= now + _RETRY_SECONDS * 3**MOST_TRIES


def folder_of(home: Path) -> Path:
    """Return the folder of a home's chore files."""
    return Path(chores_folder(home))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[!.]*.json"))[:_MAX_FILES]


def _grouped_chores(home: Path) -> list[_Pending]:
    pending: dict[tuple[str, str, str], _Pending] = {}
    for path in _files(folder_of(home)):
        if chore := _read(path):
            before = pending.get(chore.subject) or _Pending(chore, ())
            # A later chore is new: the delay after earlier failures does not apply.
            latest = chore if chore.at > before.chore.at else before.chore
            pending[chore.subject] = _Pending(latest, (*before.paths, path))
    return list(pending.values())


def _read(path: Path) -> Chore | None:
    try:
        with files.open_to_read(path) as file:
            data = file.read()
    except OSError:
        return None
    with suppress(msgspec.MsgspecError):
        return json.decode(data, Chore)
    _remove([path])
    return None


def _write(path: Path, chore: Chore) -> None:
    with suppress(OSError):  # the attempt is already recorded
        files.write_file(path, json.encode(chore))


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


# -- Work on each kind of chore --------------------------------------------------------------------
# All this work can be repeated without harm.


LEARN, IMPROVE, CAPTURE, JUDGE, STALE = "learn", "improve", "capture", "hear", "stale"

_COMPACTS_EACH_TURN = frozenset({"gemini-cli"})
"""Tools that report a possible compaction before each turn, and then keep the same session."""


def _session_start(home: Home, chore: Chore) -> Sequence[Chore]:
    catch_up(home)
    hooks.prune_states(home.settings.home, home.clock().timestamp())
    put_away(home)
    following = _capture_chores(home, chore)
    if chore.tries <= 1 and chore.occasion in (None, "", "startup", "clear"):
        following += _late(home, chore)
    if chore.session and hooks.has_claim(home, chore.session):
        raise NotYetError(following)  # its host or nacre has not received the handoff yet
    return following


def _late(home: Home, chore: Chore) -> list[Chore]:
    read_recent(home, (chore.session or "").partition(":")[0], but=chore.transcript)
    project = project_of_folder(home, chore.folder)
    if not project:
        return []
    before = datetime.fromtimestamp(chore.at, UTC) if chore.at else home.now()
    handoff = hand_over_late(home, project, before=before, but=chore.session or "")
    return [Chore(IMPROVE, handoff.session, at=chore.at)] if handoff else []


def _session_end(home: Home, chore: Chore) -> Sequence[Chore]:
    return [*_ended(home, chore, learns_all=True), *_capture_chores(home, chore)]


def _pre_compact(home: Home, chore: Chore) -> Sequence[Chore] | None:
    if (chore.session or "").partition(":")[0] in _COMPACTS_EACH_TURN:
        _turn_end(home, chore)
        return None
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
    fold_usage(home)
    if home.session_uses.first_unjudged(session_name(session.session.id)) is not None:
        following.append(Chore(JUDGE, session.session.id, at=chore.at))
    return following


def _turn_end(home: Home, chore: Chore) -> None:
    put_away(home)
    read_session(home, chore.session or "", chore.transcript)


def _capture_chores(home: Home, chore: Chore) -> list[Chore]:
    return [Chore(CAPTURE, at=chore.at)] if own_memory.load(home.settings.home).hosts else []


def _capture(home: Home, _: Chore) -> None:
    capture(home)


def _learn(home: Home, chore: Chore) -> None:
    session = find_session(home, chore.session or "")
    report = learn_now(home, session, is_over=chore.occasion == "end") if session else None
    if report and report.extraction and report.extraction.elsewhere:
        raise NotYetError  # another process is asking the writer, perhaps without this session


def _judge(home: Home, chore: Chore) -> None:
    """Judge the memories that an agent looked up by what it said afterwards (see docs/context.md)."""
    name = chore.session or ""
    session, since = find_session(home, name), home.session_uses.first_unjudged(session_name(name))
    if session is None or since is None:
        return
    turns = (item.turn for item in home.sessions.turns_of(session.row))
    reply = "\n\n".join(
        turn.text
        for turn in turns
        if turn.speaker is Speaker.AGENT
        and turn.trust is Trust.TRUSTED
        and not turn.flags & _EXCLUDED_FLAGS
        and turn.time
        and turn.time.timestamp() * 1000 >= since
    )
    memories = (home.memories.find(memory.id) for memory in home.memories.known_of(name))
    stored = tuple(
        memory.id
        for memory in memories
        if memory and memory.speaker is Speaker.AGENT and not memory.retired
    )
    feedback(home, reply, session=name, stored=stored)


def _stale(home: Home, _: Chore) -> None:
    note_stale(home)
    check_pins(home)


def _improve(home: Home, chore: Chore) -> None:
    if session := find_session(home, chore.session or ""):
        with suppress(
            BudgetSpentError, ModelRefusedError
        ):  # the handoff written by rules is good enough
            improve(home, session)


KINDS: Mapping[str, Work] = {
    "session-start": _session_start,
    "session-end": _session_end,
    "pre-compact": _pre_compact,
    "turn-end": _turn_end,
    CAPTURE: _capture,
    IMPROVE: _improve,
    LEARN: _learn,
    JUDGE: _judge,
    STALE: _stale,
}
"""The function for each kind of chore."""

_SLOW = frozenset({IMPROVE, LEARN, JUDGE, STALE})
"""Kinds of chores that can call or load a model."""


@operation("chores", writes=True, takes_long=True, http=False)
def do_waiting(
    home: Home,
    *,
    seconds: Annotated[float, bounds("Time limit in seconds.", ge=0)] = MOST_SECONDS,
    kinds: Mapping[str, Work] = KINDS,
) -> ChoresReport:
    """Do due chores within a time limit, starting with the quick chores.

    Chores that another process is doing are skipped. Raises UnusableStoreError, StoreBusyError if the home is not
    writable.
    """
    if home.database.unwritable:
        raise home.database.unwritable
    until = time.monotonic() + seconds
    files.sweep(folder_of(home.settings.home))
    counts = Counter[str]()
    try:
        while time.monotonic() < until and (
            _do_first(home, kinds, counts, is_slow=False)
            or _do_first(home, kinds, counts, is_slow=True)
        ):
            pass
    except OSError as error:
        raise UnusableStoreError(
            f"cannot save the pending work: {error.strerror}",
            hint="free some disk space; the work stays pending until then",
        ) from error
    return ChoresReport(
        counts["done"],
        counts["failed"],
        counts["given_up"],
        len(pending_chores(home.settings.home)),
    )


# -- Flush -----------------------------------------------------------------------------------------


@operation("flush", writes=True, takes_long=True, http=False)
def flush(
    home: Home,
    on_progress: OnProgress = lambda _: None,
    *,
    session: Annotated[str | None, bounds("The host's session, as <tool>:<id>.")] = None,
    transcript: Annotated[str | None, bounds("The session's transcript file.")] = None,
    seconds: Annotated[float, bounds("Time limit for chores in seconds.", ge=0)] = 60.0,
) -> FlushReport:
    """Read sessions and learn from them, and then do pending chores.

    Pending memories are also written to the vault. A language model is used only if models are
    allowed in the background. Errors that occur during writing are raised.
    """
    catch_up(home)
    stored: StoredSession | None = None
    if session:
        stored = read_session(home, session, transcript)
    else:
        read_recent(home)
    rows = [candidate.row for candidate in home.sessions.to_extract()]
    pending = rows.count(stored.row) if stored else len(rows)
    is_unknown = session and stored is None
    report = IngestReport() if is_unknown else learn_now(home, stored, on_progress)
    chores = do_waiting(home, seconds=seconds)
    return FlushReport(
        report.memories,
        report.duplicates,
        0 if is_unknown else pending,
        chores,
        tuple(problem.message for problem in report.problems),
    )
