"""Does what changed replace what was true before, and nothing else?

Planted changes in six phrasings, look-alikes that change nothing, and pairs that do or do not say the same are stored
in a home of their own, in the order of their dates; then the questions are asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from nacre.errors import NotFound
from nacre.home.consent import configured_embedder
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.decision import StoreRequest
from nacre.memories.judge import CONTRADICTS
from nacre.memories.store import store
from nacre.memories.vectors import embed_pending
from nacre.protocols import Embedder
from nacre.recall.recall import recall
from nacre.settings import load_settings
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter, RecallQuery
from nacre.values.reports import OnProgress, Progress

_LIMIT = 5
"""Hits looked at for every question."""

_FIRST_DAY = date(2025, 1, 1)


@dataclass(frozen=True, slots=True)
class Said:
    """One statement of the data."""

    text: str
    kind: Kind = Kind.FACT
    subject: str | None = None
    date: date = _FIRST_DAY
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A planted change: what was true, what is true now, statements around it, and questions about it."""

    id: str
    phrasing: str
    project: str
    old: Said
    new: Said
    questions: tuple[str, ...] = ()
    filler: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class LookAlike:
    """Two statements that look like a change; ``expects`` says which of them must stay: both, new-or-both, either."""

    id: str
    why: str
    project: str
    first: Said
    second: Said
    expects: str = "both"


@dataclass(frozen=True, slots=True)
class Twins:
    """Two statements that say the same (``True``), do not (``False``), or are about one thing (``"related"``)."""

    id: str
    a: Said
    b: Said
    same: bool | str


@dataclass(frozen=True, slots=True)
class StaleData:
    """A file of the benchmark."""

    changes: tuple[Change, ...]
    lookalikes: tuple[LookAlike, ...] = ()
    pairs: tuple[Twins, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong: what, where, and the two statements."""

    what: str
    id: str
    note: str
    earlier: str
    later: str


@dataclass(frozen=True, slots=True)
class PhrasingResult:
    """Changes told in one way: how many, how many replaced the old memory, and what the questions found.

    ``stale`` counts questions that still found the old memory among the first five, ``found`` those that found the
    new one, ``past`` changes whose old memory comes back for the day before. ``first`` counts questions that found the
    old memory before any other, ``doubted`` changes that were only marked, ``marked`` stale hits that say
    that they may be outdated.
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


@dataclass(frozen=True, slots=True)
class Rate:
    """So many of so many."""

    count: int
    of: int

    @property
    def percent(self) -> float:
        """As a percentage; 0 of nothing is 0."""
        return round(100 * self.count / self.of, 1) if self.of else 0.0


@dataclass(frozen=True, slots=True)
class StaleResult:
    """One run. ``wrong`` counts memories that were superseded or dropped although they still hold.

    ``doubted`` counts those that were marked although they still hold: no question is asked about them, so that these
    are the most that can be called outdated wrongly.
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
"""By the key of a statement: the memory that holds it; a statement that was known already has the older one."""


def measure(
    data: StaleData,
    folder: Path,
    load_embedder: Callable[[], Embedder] | None,
    *,
    through: str = "store",
    notify: OnProgress = lambda _: None,
) -> StaleResult:
    """Store everything, in an empty folder, through the service layer or as ``sessions``; then ask and compare."""
    clock = _Clock()
    settings = load_settings(
        folder / "home", {"HOME": str(folder), **({} if load_embedder else _NO_MODEL)}
    )
    context = open_home(settings, clock=clock, load_embedder=lambda _: _loaded(load_embedder))
    try:
        if load_embedder:
            context.vectors.begin(configured_embedder(context).name)
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
        raise NotFound("this run has no embedding model")
    return load_embedder()


def _statements(data: StaleData) -> list[tuple[str, Said]]:
    """All statements with their keys, in the order of their dates."""
    found: list[tuple[str, Said]] = []
    for change in data.changes:
        found += [(f"{change.id}/old", _in(change.project, change.old))]
        found += [(f"{change.id}/new", _in(change.project, change.new))]
        found += [
            (f"{change.id}/{at}", _in(change.project, one)) for at, one in enumerate(change.filler)
        ]
    for look in data.lookalikes:
        found += [
            (f"{look.id}/old", _in(look.project, look.first)),
            (f"{look.id}/new", _in(look.project, look.second)),
        ]
    for twins in data.pairs:
        later = replace(twins.b, date=max(twins.b.date, twins.a.date + timedelta(days=1)))
        found += [
            (f"{twins.id}/old", _in(twins.id, twins.a)),
            (f"{twins.id}/new", _in(twins.id, later)),
        ]
    return sorted(found, key=lambda item: item[1].date)


def _in(project: str, said: Said) -> Said:
    return replace(said, project=said.project or project)


def _fill_by_store(
    context: Home, clock: _Clock, statements: Sequence[tuple[str, Said]], notify: OnProgress
) -> Kept:
    ids = {}
    for at, (key, said) in enumerate(statements):
        clock.moment = datetime.combine(said.date, datetime.min.time(), UTC) + timedelta(
            hours=9, seconds=at
        )
        new = StoreRequest(
            content=said.text, subject=said.subject, kind=said.kind, project=said.project
        )
        ids[key] = store(context, new).memory_id
        notify(Progress("storing", at + 1, len(statements)))
    return {key: memory for key, found in ids.items() if (memory := context.memories.find(found))}


def _fill_by_sessions(
    context: Home, clock: _Clock, statements: Sequence[tuple[str, Said]], notify: OnProgress
) -> Kept:
    """Every statement in a session of its own, all read at once; what extraction does not take is not learned."""
    folder = context.settings.home.parent / "transcripts"
    folder.mkdir()
    clock.moment = datetime.combine(statements[-1][1].date, datetime.max.time(), UTC)
    for at, (key, said) in enumerate(statements):
        line = {
            "session_id": key,
            "id": f"{key}/turn",
            "role": "user",
            "content": f"Remember that {said.text}",
            "timestamp": f"{said.date}T09:00:00Z",
            "cwd": f"/projects/{said.project}",
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
            (memory.source.session, *(one.session for one in memory.confirmed)) if memory else ()
        ):
            key = (session or "").partition(":")[2]
            if memory and (key not in learned or not memory.retired):
                learned[key] = memory
    return learned


def _result(
    context: Home, data: StaleData, kept: Kept, *, through: str, vectors: bool
) -> StaleResult:
    failures: list[Failure] = []
    known = replace(
        data,
        changes=tuple(one for one in data.changes if _both(kept, one.id)),
        lookalikes=tuple(one for one in data.lookalikes if _both(kept, one.id)),
        pairs=tuple(one for one in data.pairs if _both(kept, one.id)),
    )
    phrasings: dict[str, PhrasingResult] = {}
    for change in known.changes:
        before = phrasings.get(change.phrasing, PhrasingResult(change.phrasing))
        phrasings[change.phrasing] = _judged(context, change, kept, before, failures)
    wrong = [one for one in known.lookalikes if _is_wrong(one, kept, failures)]
    others = [
        (one, at)
        for one in known.changes
        for at in range(len(one.filler))
        if f"{one.id}/{at}" in kept
    ]
    harmed = [item for item in others if _is_harmed(*item, kept, failures)]
    doubted = [
        one for one in known.lookalikes if _doubts(kept[f"{one.id}/new"], kept[f"{one.id}/old"])
    ]
    later = [memory for key, memory in kept.items() if key.endswith(("/old", "/new"))]
    marked = [
        item
        for item in others
        if any(_doubts(one, kept[f"{item[0].id}/{item[1]}"]) for one in later)
    ]
    merged = {
        same: [one for one in known.pairs if one.same == same] for same in (True, False, "related")
    }
    rates = {same: _merged(same, found, kept, failures) for same, found in merged.items()}
    total = len(data.changes) + len(data.lookalikes) + len(data.pairs)
    learned = len(known.changes) + len(known.lookalikes) + len(known.pairs)
    return StaleResult(
        through,
        vectors,
        tuple(phrasings.values()),
        Rate(len(wrong), len(known.lookalikes)),
        Rate(len(harmed), len(others)),
        Rate(len(doubted), len(known.lookalikes)),
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
        note = "the new one was taken for the old" if old.id == new.id else "both stay"
        failures.append(
            Failure("missed", change.id, f"{change.phrasing}: {note}", old.content, change.new.text)
        )
    stale = found = first = marked = 0
    for question in change.questions:
        hits, doubted = _asked(context, question, change.project)
        is_stale = old.id in hits and old.id != new.id
        stale += is_stale
        marked += old.id in doubted
        first += is_stale and hits[0] == old.id
        found += new.id in hits
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
        found=so_far.found + found,
        past=so_far.past + (old.id in past and new.id not in past),
        first=so_far.first + first,
        doubted=so_far.doubted + (_doubts(new, old) and not done),
        marked=so_far.marked + marked,
    )


def _doubts(newer: Memory, older: Memory) -> bool:
    """Whether the newer one makes it likely, and no more, that the older one is outdated."""
    return any(link.rel == CONTRADICTS and link.to == older.id for link in newer.links)


def _asked(
    context: Home, question: str, project: str, day: date | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids of the hits, and of those that say that they may be outdated."""
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
    """Whether one of two that both hold was superseded or dropped."""
    first, second = kept[f"{look.id}/old"], kept[f"{look.id}/new"]
    both = first.id != second.id and _is_active(first) and _is_active(second)
    fine = both or (look.expects == "either" and (_is_active(first) or _is_active(second)))
    fine = fine or (look.expects == "new-or-both" and _is_active(second) and second.id != first.id)
    if not fine:
        failures.append(Failure("wrong", look.id, look.why, look.first.text, look.second.text))
    return not fine


def _is_harmed(change: Change, at: int, kept: Kept, failures: list[Failure]) -> bool:
    """Whether a statement that has nothing to do with the change was superseded or dropped."""
    filler = kept[f"{change.id}/{at}"]
    mixed = filler.id in (kept[f"{change.id}/old"].id, kept[f"{change.id}/new"].id)
    if _is_active(filler) and not mixed:
        return False
    failures.append(
        Failure(
            "wrong",
            f"{change.id}/{at}",
            "has nothing to do with it",
            filler.content,
            change.new.text,
        )
    )
    return True


_SAMENESS: dict[Any, str] = {
    True: "both say the same",
    False: "they say different things",
    "related": "one subject",
}


def _merged(same: Any, found: Sequence[Twins], kept: Kept, failures: list[Failure]) -> Rate:
    merged = 0
    for twins in found:
        first, second = kept[f"{twins.id}/old"], kept[f"{twins.id}/new"]
        is_merged = first.id == second.id or not _is_active(first) or not _is_active(second)
        merged += is_merged
        if is_merged is not (same is True):
            what = "merged" if is_merged else "duplicate missed"
            failures.append(Failure(what, twins.id, _SAMENESS[same], twins.a.text, twins.b.text))
    return Rate(merged, len(found))


def totals(result: StaleResult) -> PhrasingResult:
    """All phrasings together."""
    every = PhrasingResult("all")
    for one in result.phrasings:
        every = replace(
            every,
            changes=every.changes + one.changes,
            superseded=every.superseded + one.superseded,
            questions=every.questions + one.questions,
            stale=every.stale + one.stale,
            found=every.found + one.found,
            past=every.past + one.past,
            first=every.first + one.first,
            doubted=every.doubted + one.doubted,
            marked=every.marked + one.marked,
        )
    return every
