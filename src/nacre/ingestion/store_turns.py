"""Store what was read of transcripts: sessions, their turns, and how far each file was read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from nacre.archive.keep import withhold
from nacre.home.change import Run
from nacre.home.exclusions import Exclusions
from nacre.home.home import Home
from nacre.home.projects import resolve_project
from nacre.home.room import require_room
from nacre.ingestion.read_tally import ReadTally
from nacre.parsing.names import kept_name
from nacre.parsing.parse import Batch, Event, FileDone, FileFailed
from nacre.storage.sessions import TurnBatch
from nacre.tombstones.tombstones import Gate
from nacre.transcripts.registry import is_guess
from nacre.transcripts.tool_calls import memories_made
from nacre.values.session import Session, Trust, Turn

COMMIT_TURNS = 400
"""Turns of one transaction: some 30 ms, during which other writers wait."""

_REST_SECONDS = 0.005


class TurnStore:
    """Stores the events of reading, some hundred turns at a time, without what was excluded or forgotten."""

    def __init__(self, home: Home, run: Run | None, exclusions: Exclusions, tally: ReadTally) -> None:
        self._home = home
        self._run = run
        self._exclusions = exclusions
        self._tally = tally
        self._gate = Gate(home)

    def store_all(self, events: Iterable[Event], tell: Callable[[float], None]) -> None:
        """Store all events; ``tell`` is called after each transaction with the seconds so far."""
        started = time.perf_counter()
        pending: list[Batch | FileDone] = []
        waiting = 0
        stored_at = 0.0
        for event in events:
            if self._is_kept(event):
                pending.append(event)
                waiting += len(event.turns) if isinstance(event, Batch) else 1
            if waiting >= COMMIT_TURNS:
                # Who waits for the lock asks again every few milliseconds.
                time.sleep(max(0.0, stored_at + _REST_SECONDS - time.perf_counter()))
                self._store(pending)
                pending, waiting = [], 0
                stored_at = time.perf_counter()
                tell(stored_at - started)
        self._store(pending)

    def _is_kept(self, event: Event) -> TypeGuard[Batch | FileDone]:
        """Whether an event has something to store; the others are counted."""
        if isinstance(event, FileFailed):
            self._tally.count_failed(event)
            return False
        if isinstance(event, Batch) and (why := self._exclusions.reason(self._home, event.session)):
            self._tally.excluded[event.session.id] = why
            self._tally.withheld.add(event.path)
            return False
        return True

    def _store(self, events: Sequence[Batch | FileDone]) -> None:
        self._gate.refresh()
        projects = self._projects_of([event for event in events if isinstance(event, Batch)])
        with self._home.database.transaction():
            self._gate.refresh()  # what was forgotten just now stays away
            before = self._tally.turns
            part = _Part(self._home, self._gate, self._tally, projects)
            for event in events:
                self._home.database.yield_write_lock(part.flush)
                if isinstance(event, Batch):
                    part.add(event)
                else:
                    part.finish_file(event)
            part.flush()
            if self._tally.turns > before:
                require_room(self._home)
        for event in events:
            if isinstance(event, FileDone):
                self._tally.count_done(event)

    def _projects_of(self, batches: Sequence[Batch]) -> dict[Session, str | None]:
        """The project of each session that may be stored; what a file says of it goes before what its folder says."""
        sessions = dict.fromkeys(batch.session for batch in batches if self._gate.admits(batch.session))
        projects = {session: resolve_project(self._home, session, run=self._run) for session in sessions}
        stated = {batch.session: batch.project for batch in batches if batch.project}
        return projects | {session: project for session, project in stated.items() if session in projects}


class _Part:
    """What one transaction stores."""

    def __init__(
        self, home: Home, gate: Gate, tally: ReadTally, projects: Mapping[Session, str | None]
    ) -> None:  # fmt: skip
        self._home = home
        self._gate = gate
        self._tally = tally
        self._projects = projects
        self._touched: set[int] = set()
        self._waiting: list[TurnBatch] = []

    def add(self, batch: Batch) -> None:
        """Store a session, and let its turns wait, without what was forgotten."""
        session = batch.session
        if session not in self._projects or not self._gate.admits(session):
            self._tally.left_out.add(batch.path)
            return
        project = self._projects[session]
        turns = self._gate.admitted(session, project, batch.turns)
        titled = self._gate.titled(session)
        if len(turns) < len(batch.turns) or titled != session:
            self._tally.left_out.add(batch.path)
            if not turns and not self._home.sessions.find(session.id):
                return
        row = self._home.sessions.upsert(titled, project=project, file=self._name_of(batch))
        self._tally.distrusted.update((session.id, made) for turn in turns for made in _stored_unduly(turn))
        if turns:
            self._waiting.append((session.tool, row, turns))
        self._touched.add(row)

    def finish_file(self, done: FileDone) -> None:
        """Forget what a file does not hold any more, and note how far it was read."""
        self._forget_gone(done)
        left_out = done.path in self._tally.left_out
        self._save_cursor(done, leaves_out=left_out)
        if left_out or done.path in self._tally.withheld:
            withhold(self._home, [(done.tool, self._name_of(done))])

    def flush(self) -> None:
        """Store the turns that wait, and bring their sessions up to date."""
        for (_, row, _), added in zip(self._waiting, self._home.sessions.add_batches(self._waiting), strict=True):
            self._tally.turns += added
            if added:
                self._tally.sessions.add(row)
        self._waiting.clear()
        self._home.sessions.refresh(sorted(self._touched))
        self._touched.clear()

    def _forget_gone(self, done: FileDone) -> None:
        """Forget what a file does not hold any more, or only seemed to hold."""
        name = self._name_of(done)
        known = self._home.sessions.cursor(name)
        if known and known[0] != done.tool and is_guess(known[0]):
            self.flush()
            self._touched |= self._home.sessions.retain(known[0], name, {})
        if done.present is not None:
            self.flush()
            self._touched |= self._home.sessions.retain(done.tool, name, done.present)

    def _save_cursor(self, done: FileDone, *, leaves_out: bool) -> None:
        """A file that something was left out of is read from its beginning each time: what is carried quotes it."""
        cursor = replace(done.cursor, offset=0, carry={}) if leaves_out else done.cursor
        goes_on = done.present is None and done.bytes_read < done.cursor.size
        self._home.sessions.save_cursor(self._name_of(done), done.tool, cursor, done.tally, goes_on=goes_on)

    def _name_of(self, event: Batch | FileDone) -> str:
        return kept_name(self._home.redactor, str(event.path))


def _stored_unduly(turn: Turn) -> Iterator[str]:
    """The ends of the ids of memories that an agent stored in a turn which draws on text from outside."""
    if turn.trust is Trust.UNTRUSTED:
        yield from memories_made((turn,))
