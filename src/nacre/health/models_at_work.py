"""What models do in the background: who writes, and what waits for a judgement."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.health.readers import in_words, readers
from nacre.home.home import Home
from nacre.platform.days import shown_minute
from nacre.setup.writer import STATES, WriterStatus, status
from nacre.values.reports import OK, WARNING, Check


def writer(home: Home) -> Iterator[Check]:
    """Who writes, and what waits for it or for review."""
    found, candidates = status(home), home.candidates.count()
    waiting = f"; candidates: {candidates:,} (nacre review)" if candidates else ""
    if found.state == "off":
        yield Check("writer", OK, f"none: only what you say plainly is kept (nacre writer set){waiting}")
        return
    told = f"{found.writer}, {STATES[found.state]}, {_taken(found)}; sessions waiting: {found.waiting}{waiting}"
    if found.problem:
        told += f"; {found.problem}"
    if found.state == "ready":
        told += f"; sessions are read by {in_words(readers(home.settings, home.clock))}"
    is_well = found.state == "ready" or not (found.problem or found.waiting)
    yield Check("writer", OK if is_well else WARNING, told, None if is_well else found.hint or "nacre writer")


def _taken(found: WriterStatus) -> str:
    if found.limit is None:
        return f"{found.calls_today} calls today"
    return f"{found.tokens_today:,} of {found.limit:,} tokens today"


def judging(home: Home) -> Iterator[Check]:
    """What waits for a model to judge it, and why the last try failed; what a person is to settle is told by review."""
    waiting = home.claims.waiting()
    if not waiting.count:
        return
    since = f" since {shown_minute(waiting.since)}" if waiting.since else ""
    many = "1 new memory waits" if waiting.count == 1 else f"{waiting.count:,} new memories wait"
    told = f"{many} for a model to judge{since}"
    if waiting.note:
        yield Check("contradictions", WARNING, f"{told}; {waiting.note}", "nacre review judge tries it now")
    else:
        yield Check("contradictions", OK, told)
