"""Measure whether changed facts replace the outdated ones, and nothing else.

The data contains changes in six phrasings, look-alikes that change nothing, and pairs of statements
with the same or different meanings. They are stored in a temporary home in the order of their
dates. Then the questions are asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from nacre.base.frozen import frozen
from nacre.errors import NotFoundError
from nacre.home.home import Home, open_home
from nacre.home.spending import embedder_of
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.judge import CONTRADICTS
from nacre.memories.requests import StoreRequest
from nacre.memories.store import store
from nacre.memories.vectors import embed_pending
from nacre.protocols import Embedder
from nacre.recall.recall import recall
from nacre.settings import load_settings
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter, RecallQuery
from nacre.values.reports import OnProgress, Progress

_LIMIT = 5
"""Maximum number of hits for each question."""

_FIRST_DAY = date(2025, 1, 1)


@frozen
class Statement:
    """A statement in the data."""

    text: str
    kind: Kind = Kind.FACT
    subject: str | None = None
    date: date = _FIRST_DAY
    project: str | None = None


@frozen
class Change:
    """A change: the old and the new fact, related statements, and questions."""

    id: str
    phrasing: str
    project: str
    old: Statement
    new: Statement
    questions: tuple[str, ...] = ()
    filler: tuple[Statement, ...] = ()


@frozen
class LookAlike:
    """Two statements that look like a change. ``expects`` says which must stay: both, new-or-both or either."""

    id: str
    why: str
    project: str
    first: Statement
    second: Statement
    expects: str = "both"


@frozen
class Twins:
    """Two statements with the same meaning (``True``), different meanings, or a common subject (``"related"``)."""

    id: str
    a: Statement
    b: Statement
    same: bool | str


@frozen
class StaleData:
    """A data file for the benchmark."""

    changes: tuple[Change, ...]
    lookalikes: tuple[LookAlike, ...] = ()
    pairs: tuple[Twins, ...] = ()


@frozen
class Failure:
    """A failure: its type, the case, and the two statements."""

    what: str
    id: str
    note: str
    earlier: str
    later: str


@frozen
class PhrasingResult:
    """Figures for the changes in one phrasing.

    Of all ``changes``, ``superseded`` replaced the old memory and ``doubted`` only marked it.
    ``past`` counts changes whose old memory is found for the day before. For ``questions``, the
    first five hits count: ``stale`` if they contain the old memory, ``found`` the new one,
    ``marked`` an old memory marked as possibly outdated. ``first`` counts old memories that were
    the first hit.
    """

    phrasing: str
    changes: int = 0
    superseded: int = 0
    questions: int = 0
    stale: int = 0
    found: int = 0
    past: int = 0
    first: int = 0
    doubted: int = 0
    marked: int = 0


@frozen
class Rate:
    """A count out of a total."""

    count: int
    of: int

    @property
    def percent(self) -> float:
        return round(100 * self.count / self.of, 1) if self.of else 0.0


@frozen
class StaleResult:
    """The results of a run.

    ``wrong_*`` counts memories that were superseded or dropped although they are still true,
    ``doubted_*`` those that were marked. No questions are asked about them, so the marked ones are
    an upper bound for wrong warnings.
    """

    through: str
    vectors: bool
    phrasings: tuple[PhrasingResult, ...]
    wrong_lookalikes: Rate
    wrong_others: Rate
    doubted_lookalikes: Rate
    doubted_others: Rate
    duplicates_found: Rate
    distinct_merged: Rate
    related_merged: Rate
    not_learned: int
    failures: tuple[Failure, ...] = field(default=())


Kept = dict[str, Memory]
"""The memory for each statement, by the statement's key. A repeated statement has the older memory."""


def measure(
    data: StaleData,
    folder: Path,
    load_embedder: Callable[[], Embedder] | None,
    *,
    through: str = "store",
    notify: OnProgress = lambda _: None,
) -> StaleResult:
    """Store all statements in an empty folder, directly or through ``sessions``, and ask the questions."""
    clock = _Clock()
    settings = load_settings(
        folder / "home", {"HOME": str(folder), **({} if load_embedder else _NO_MODEL)}
    )
    context = open_home(settings, clock=clock, load_embedder=lambda _: _loaded(load_embedder))
    try:
        if load_embedder:
            context.vectors.begin(embedder_of(context).name)
        fill = _fill_by_sessions if through == "sessions" else _fill_by_store
        kept = fill(context, clock, _statements(data), notify)
        clock.moment += timedelta(days=1)
        return _result(context, data, kept, through=through, vectors=load_embedder is not None)
    finally:
        context.database.close()


_NO_MODEL = {"NACRE_EMBEDDING_MODEL": "none"}


@dataclass
class _Clock:
    moment: datetime = datetime(2024, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment


def _loaded(load_embedder: Callable[[], Embedder] | None) -> Embedder:
    if load_embedder is None:
        raise NotFoundError("this run uses no embedding model")
    return load_embedder()


def _statements(data: StaleData) -> list[tuple[str, Statement]]:
    statements: list[tuple[str, Statement]] = []
    for change in data.changes:
        statements += [(f"{change.id}/old", _in(change.project, change.old))]
        statements += [(f"{change.id}/new", _in(change.project, change.new))]
        statements += [
            (f"{change.id}/{at}", _in(change.project, statement))
            for at, statement in enumerate(change.filler)
        ]
    for look in data.lookalikes:
        statements += [
            (f"{look.id}/old", _in(look.project, look.first)),
            (f"{look.id}/new", _in(look.project, look.second)),
        ]
    for twins in data.pairs:
        later = replace(twins.b, date=max(twins.b.date, twins.a.date + timedelta(days=1)))
        statements += [
            (f"{twins.id}/old", _in(twins.id, twins.a)),
            (f"{twins.id}/new", _in(twins.id, later)),
        ]
    return sorted(statements, key=lambda item: item[1].date)


def _in(project: str, statement: Statement) -> Statement:
    return replace(statement, project=statement.project or project)


def _fill_by_store(
    context: Home, clock: _Clock, statements: Sequence[tuple[str, Statement]], notify: OnProgress
) -> Kept:
    ids = {}
    for at, (key, statement) in enumerate(statements):
        clock.moment = datetime.combine(statement.date, datetime.min.time(), UTC) + timedelta(
            hours=9, seconds=at
        )
        new = StoreRequest(
            content=statement.text,
            subject=statement.subject,
            kind=statement.kind,
            project=statement.project,
        )
        ids[key] = store(context, new).memory_id
        notify(Progress("storing", at + 1, len(statements)))
    return {
        key: memory
        for key, memory_id in ids.items()
        if (memory := context.memories.find(memory_id))
    }


def _fill_by_sessions(
    context: Home, clock: _Clock, statements: Sequence[tuple[str, Statement]], notify: OnProgress
) -> Kept:
    """Write a session for each statement and ingest all of them. Statements that are not extracted are left out."""
    folder = context.settings.home.parent / "transcripts"
    folder.mkdir()
    clock.moment = datetime.combine(statements[-1][1].date, datetime.max.time(), UTC)
    for at, (key, statement) in enumerate(statements):
        line = {
            "session_id": key,
            "id": f"{key}/turn",
            "role": "user",
            "content": f"Remember that {statement.text}",
            "timestamp": f"{statement.date}T09:00:00Z",
            "cwd": f"/projects/{statement.project}",
        }
        (folder / f"{at:05}.jsonl").write_text(
            json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    ingest(context, IngestOptions(paths=(folder,), remember_paths=False, vectors=False), notify)
    embed_pending(context, notify)
    learned: Kept = {}
    for memory_id in context.memories.all_ids():
        memory = context.memories.find(memory_id)
        for session in (
            (memory.source.session, *(confirmation.session for confirmation in memory.confirmed))
            if memory
            else ()
        ):
            key = (session or "").partition(":")[2]
            if memory and (key not in learned or not memory.retired):
                learned[key] = memory
    return learned


def _result(
    context: Home, data: StaleData, kept: Kept, *, through: str, vectors: bool
) -> StaleResult:
    failures: list[Failure] = []
    learned_data = replace(
        data,
        changes=tuple(change for change in data.changes if _both(kept, change.id)),
        lookalikes=tuple(look for look in data.lookalikes if _both(kept, look.id)),
        pairs=tuple(twins for twins in data.pairs if _both(kept, twins.id)),
    )
    phrasings: dict[str, PhrasingResult] = {}
    for change in learned_data.changes:
        before = phrasings.get(change.phrasing, PhrasingResult(change.phrasing))
        phrasings[change.phrasing] = _judged(context, change, kept, before, failures)
    wrong = [look for look in learned_data.lookalikes if _is_wrong(look, kept, failures)]
    others = [
        (change, at)
        for change in learned_data.changes
        for at in range(len(change.filler))
        if f"{change.id}/{at}" in kept
    ]
    harmed = [item for item in others if _is_harmed(*item, kept, failures)]
    doubted = [
        look
        for look in learned_data.lookalikes
        if _doubts(kept[f"{look.id}/new"], kept[f"{look.id}/old"])
    ]
    later = [memory for key, memory in kept.items() if key.endswith(("/old", "/new"))]
    marked = [
        item
        for item in others
        if any(_doubts(newer, kept[f"{item[0].id}/{item[1]}"]) for newer in later)
    ]
    merged = {
        same: [twins for twins in learned_data.pairs if twins.same == same]
        for same in (True, False, "related")
    }
    rates = {same: _merged(same, pairs, kept, failures) for same, pairs in merged.items()}
    total = len(data.changes) + len(data.lookalikes) + len(data.pairs)
    learned = len(learned_data.changes) + len(learned_data.lookalikes) + len(learned_data.pairs)
    return StaleResult(
        through,
        vectors,
        tuple(phrasings.values()),
        Rate(len(wrong), len(learned_data.lookalikes)),
        Rate(len(harmed), len(others)),
        Rate(len(doubted), len(learned_data.lookalikes)),
        Rate(len(marked), len(others)),
        rates[True],
        rates[False],
        rates["related"],
        total - learned,
        tuple(failures),
    )


def _both(kept: Kept, key: str) -> bool:
    return f"{key}/old" in kept and f"{key}/new" in kept


def _judged(
    context: Home, change: Change, kept: Kept, so_far: PhrasingResult, failures: list[Failure]
) -> PhrasingResult:
    old, new = kept[f"{change.id}/old"], kept[f"{change.id}/new"]
    done = old.id != new.id and old.superseded_by == new.id and _is_active(new)
    if not done:
        note = "the new one was treated as a repetition" if old.id == new.id else "both stay"
        failures.append(
            Failure("missed", change.id, f"{change.phrasing}: {note}", old.content, change.new.text)
        )
    stale = current = first = marked = 0
    for question in change.questions:
        hits, doubted = _asked(context, question, change.project)
        is_stale = old.id in hits and old.id != new.id
        stale += is_stale
        marked += old.id in doubted
        first += is_stale and hits[0] == old.id
        current += new.id in hits
        if is_stale:
            failures.append(Failure("stale hit", change.id, question, old.content, new.content))
    past, _ = (
        _asked(context, change.questions[0], change.project, change.old.date)
        if change.questions
        else ((), ())
    )
    return replace(
        so_far,
        changes=so_far.changes + 1,
        superseded=so_far.superseded + done,
        stale=so_far.stale + stale,
        questions=so_far.questions + len(change.questions),
        found=so_far.found + current,
        past=so_far.past + (old.id in past and new.id not in past),
        first=so_far.first + first,
        doubted=so_far.doubted + (_doubts(new, old) and not done),
        marked=so_far.marked + marked,
    )


def _doubts(newer: Memory, older: Memory) -> bool:
    return any(link.rel == CONTRADICTS and link.to == older.id for link in newer.links)


def _asked(
    context: Home, question: str, project: str, day: date | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    query = RecallQuery(
        question, Filter(projects=(project,), as_of=day), limit=_LIMIT, update=False
    )
    hits = recall(context, query).hits
    return tuple(hit.memory.id for hit in hits), tuple(
        hit.memory.id for hit in hits if hit.outdated_by
    )


def _is_active(memory: Memory) -> bool:
    return not memory.superseded_by and not memory.retired


def _is_wrong(look: LookAlike, kept: Kept, failures: list[Failure]) -> bool:
    first, second = kept[f"{look.id}/old"], kept[f"{look.id}/new"]
    both = first.id != second.id and _is_active(first) and _is_active(second)
    fine = both or (look.expects == "either" and (_is_active(first) or _is_active(second)))
    fine = fine or (look.expects == "new-or-both" and _is_active(second) and second.id != first.id)
    if not fine:
        failures.append(Failure("wrong", look.id, look.why, look.first.text, look.second.text))
    return not fine


def _is_harmed(change: Change, at: int, kept: Kept, failures: list[Failure]) -> bool:
    filler = kept[f"{change.id}/{at}"]
    mixed = filler.id in (kept[f"{change.id}/old"].id, kept[f"{change.id}/new"].id)
    if _is_active(filler) and not mixed:
        return False
    failures.append(
        Failure(
            "wrong",
            f"{change.id}/{at}",
            "unrelated",
            filler.content,
            change.new.text,
        )
    )
    return True


_SAMENESS: dict[Any, str] = {
    True: "same meaning",
    False: "different meanings",
    "related": "same subject",
}


def _merged(same: Any, pairs: Sequence[Twins], kept: Kept, failures: list[Failure]) -> Rate:
    merged = 0
    for twins in pairs:
        first, second = kept[f"{twins.id}/old"], kept[f"{twins.id}/new"]
        is_merged = first.id == second.id or not _is_active(first) or not _is_active(second)
        merged += is_merged
        if is_merged is not (same is True):
            what = "merged" if is_merged else "duplicate missed"
            failures.append(Failure(what, twins.id, _SAMENESS[same], twins.a.text, twins.b.text))
    return Rate(merged, len(pairs))


def totals(result: StaleResult) -> PhrasingResult:
    """Return the totals for all phrasings."""
    total = PhrasingResult("all")
    for phrasing in result.phrasings:
        total = replace(
            total,
            changes=total.changes + phrasing.changes,
            superseded=total.superseded + phrasing.superseded,
            questions=total.questions + phrasing.questions,
            stale=total.stale + phrasing.stale,
            found=total.found + phrasing.found,
            past=total.past + phrasing.past,
            first=total.first + phrasing.first,
            doubted=total.doubted + phrasing.doubted,
            marked=total.marked + phrasing.marked,
        )
    return total
