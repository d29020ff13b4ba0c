"""Traces of runs and of answered questions: state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from nacre.platform import json_values
from nacre.platform.ids import at_ms, to_ms
from nacre.storage.database import Database, in_transaction
from nacre.values.trace import NOT_SURE, NOTHING_FOUND, Step, Trace, TraceKind

_STEP = 500


class Traces:
    """Reads and writes traces."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, trace: Trace) -> None:
        """Keep a trace; one that is kept already stays as it is."""
        seconds = (trace.ended - trace.began).total_seconds() if trace.ended else 0.0
        self._db.run(
            "insert_trace", id=trace.id, kind=trace.kind.value, subject=trace.subject, session=trace.session or None,
            began=to_ms(trace.began), seconds=seconds, outcome=trace.outcome, steps=_encoded(trace.steps),
        )  # fmt: skip

    def latest(self, kind: TraceKind | None = None, since: datetime | None = None, limit: int = 20) -> list[Trace]:
        """The latest first."""
        rows = self._db.all("list_traces", kind=kind.value if kind else None, since=to_ms(since), limit=limit)
        return [_trace(row) for row in rows]

    def unanswered(self, since: datetime) -> list[Trace]:
        """Questions that nothing was shown for, the latest first."""
        outcomes = json.dumps([NOTHING_FOUND, NOT_SURE])
        rows = self._db.all("list_unanswered_cases", since=to_ms(since), outcomes=outcomes)
        return [_trace(row) for row in rows]

    def find(self, reference: str) -> list[Trace]:
        """Those of an id, or of its beginning or end."""
        return [_trace(row) for row in self._db.all("find_traces", reference=reference)]

    def case_of(self, memory: str, session: str | None, since: datetime) -> str | None:
        """The latest question that a memory was shown for."""
        row = self._db.one("list_cases_of", memory=memory, session=session, since=to_ms(since))
        return row[0] if row else None

    @in_transaction
    def add_step(self, trace_id: str, step: Step, outcome: str) -> None:
        """Say what became of it later."""
        for trace in self.find(trace_id):
            steps = _encoded((*trace.steps, step))
            self._db.run("update_trace_steps", id=trace.id, steps=steps, outcome=outcome)

    def delete_where(self, tells: Callable[[str], bool]) -> int:
        """Delete traces in whose texts something is told; returns how many."""
        gone = [trace_id for trace_id, said in self._texts() if tells(said)]
        self._db.run_many("delete_trace", [{"id": trace_id} for trace_id in gone])
        return len(gone)

    def count_where(self, tells: Callable[[str], bool]) -> int:
        """How many traces there are in whose texts something is told."""
        return sum(1 for _, said in self._texts() if tells(said))

    def prune(self, before: datetime, most: int) -> None:
        """Delete the old ones, and the oldest of too many."""
        self._db.run("prune_traces", before=to_ms(before), most=most)

    def _texts(self) -> Iterator[tuple[str, str]]:
        """What each says, its steps as they are and not as JSON writes them."""
        after = ""
        while rows := self._db.all("list_trace_texts", after=after, limit=_STEP):
            for trace_id, subject, outcome, steps in rows:
                yield trace_id, "\n".join((subject, outcome, *_strings(msgspec.json.decode(steps))))
            after = rows[-1][0]


def _encoded(steps: tuple[Step, ...]) -> str:
    return msgspec.json.encode(steps).decode()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _trace(row: tuple[Any, ...]) -> Trace:
    trace_id, kind, subject, session, began, seconds, outcome, steps = row
    start = at_ms(began)
    told = json_values.parse(steps, tuple[Step, ...])
    return Trace(
        trace_id, TraceKind(kind), subject, start, start + timedelta(seconds=seconds), outcome, told,
        session=session or "",
    )  # fmt: skip
