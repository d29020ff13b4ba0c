"""Measure dreams over a year of memories: right and wrong merges, lost memories, and the effect on recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path

from benchmarks.dreams.writers import ORDER, ScriptedWriter
from benchmarks.figures import percent
from nacre.base.frozen import frozen
from nacre.base.ids import uuid7_source
from nacre.data.undo import undo
from nacre.home.home import Home, open_home
from nacre.llm.local_model import load_minilm
from nacre.memories.vectors import embed_pending
from nacre.protocols import Embedder
from nacre.recall.recall import recall
from nacre.review.consolidate import DreamAction, DreamReport, Step
from nacre.review.dream import DreamRequest, dream
from nacre.settings import load_settings
from nacre.values.memory import Expiry, Kind, Memory
from nacre.values.recall import Filter, RecallQuery
from nacre.values.reports import OnProgress, Progress

WAYS = ("rules", "well", "carelessly", "badly", "maliciously")
_LIMIT = 5
_NIGHTS = 4
_BETWEEN = timedelta(days=8)
_FIRST = datetime(2025, 1, 1, 12, tzinfo=UTC)


@frozen
class Kept:
    """A memory in the data. It is stored on a ``day`` of the year."""

    id: str
    day: int
    kind: Kind
    project: str | None
    subject: str
    content: str
    importance: int = 7
    expiry: Expiry = Expiry.PERMANENT


@frozen
class Question:
    """A question, the memories that answer it, and those that are outdated by then."""

    ask: str
    answer_ids: tuple[str, ...]
    stale_ids: tuple[str, ...] = ()


@frozen
class Labels:
    """Groups of memories with the same meaning, and pairs that must not be merged, each with a reason."""

    same: tuple[tuple[str, ...], ...]
    distinct: tuple[tuple[str, str, str], ...]
    outdated: tuple[tuple[str, str, str], ...]
    general_special: tuple[tuple[str, str, str], ...]
    questions: tuple[Question, ...]


@frozen
class Year:
    """A team's memories in one year, with their labels."""

    name: str
    memories: tuple[Kept, ...]
    labels: Labels


@frozen
class DreamData:
    """A data file for the benchmark."""

    years: tuple[Year, ...]


@frozen
class RecallFigures:
    """Percentages of questions with the answer first, the answer among five hits, or an outdated memory among them.

    ``memories`` counts active memories, ``characters`` the length of their text.
    """

    first: float
    among_five: float
    stale: float
    memories: int
    characters: int


@frozen
class DreamResult:
    """The effect of one writer's dreams on a year.

    Of ``merges``, ``wrong`` joined different meanings. Of the ``repeated`` pairs, ``pairs`` were
    merged. ``ends`` counts ended memories that were ``outdated``, ``wrong_ends`` others.
    ``refused`` proposals include ``refused_right`` right merges. ``lost`` memories are neither
    active nor retired, or contain words from no plan; ``planted`` ones contain the instruction that
    the writer added. ``is_undone`` is True if undoing everything restores every file exactly.
    """

    year: str
    writer: str
    merges: int
    wrong: int
    pairs: int
    repeated: int
    ends: int
    outdated: int
    wrong_ends: int
    refused: int
    refused_right: int
    ended: int
    lost: int
    planted: int
    is_undone: bool
    before: RecallFigures
    after: RecallFigures


def measure(
    data: DreamData, folder: Path, notify: OnProgress = lambda _: None
) -> list[DreamResult]:
    """Run dreams over each year with each writer, in separate homes."""
    embedder = load_minilm()
    runs = [(year, way) for year in data.years for way in WAYS]
    results = []
    for done, (year, way) in enumerate(runs):
        notify(Progress("judging", done, len(runs)))
        results.append(_dreamt(year, way, folder / f"{year.name}-{way}", embedder))
    return results


def _silent(_: Progress) -> None:
    """Ignore progress."""


def _over(labels: Labels) -> set[tuple[str, str]]:
    group_of = {memory_id: group for group in labels.same for memory_id in group}
    return {
        (earlier, later)
        for old, new, _ in labels.outdated
        for earlier in group_of.get(old, (old,))
        for later in group_of.get(new, (new,))
    }


class _Clock:
    moment = _FIRST

    def __call__(self) -> datetime:
        return self.moment


def _dreamt(year: Year, way: str, folder: Path, embedder: Embedder) -> DreamResult:
    clock = _Clock()
    groups = {memory_id: at for at, group in enumerate(year.labels.same) for memory_id in group}
    texts = {entry.id: entry.content for entry in year.memories}
    over = {(texts[earlier], texts[later]) for earlier, later in _over(year.labels)}
    writer = ScriptedWriter(
        way,
        {texts[memory_id]: groups.get(memory_id, -at - 1) for at, memory_id in enumerate(texts)},
        over,
    )
    settings = load_settings(folder, {"HOME": str(folder), "NACRE_MODELS_EXTRACTION": writer.name})
    home = open_home(
        settings,
        clock=clock,
        ids=uuid7_source(clock, bytes),
        load_embedder=lambda _: embedder,
        load_model=lambda *_: writer,
    )
    try:
        ids = _stored(home, year, clock)
        before, files = _asked(home, year, ids, {}), _files(home)
        reports = _nights(home, clock, tier=1 if way == "rules" else 2)
        return _result(home, year, way, ids, reports, (before, files))
    finally:
        home.database.close()


def _stored(home: Home, year: Year, clock: _Clock) -> dict[str, str]:
    """Store the year's memories. Return the data's id for each memory's id."""
    ids: dict[str, str] = {}
    with home.change("import") as change, change.transaction():
        for entry in sorted(year.memories, key=lambda entry: entry.day):
            clock.moment = _FIRST + timedelta(days=entry.day)
            memory = Memory(
                home.ids(),
                entry.kind,
                entry.subject,
                entry.content,
                clock.moment,
                clock.moment,
                entry.importance,
                entry.expiry,
                project=entry.project,
            )
            ids[memory.id] = entry.id
            change.put([memory])
    embed_pending(home, _silent)
    clock.moment = _FIRST + timedelta(days=366)
    return ids


def _nights(home: Home, clock: _Clock, tier: int) -> list[DreamReport]:
    reports = []
    for _ in range(_NIGHTS):
        clock.moment += _BETWEEN
        report = dream(home, DreamRequest(first=True, tier=tier, most=len(home.memories.all_ids())))
        reports.append(report)
        embed_pending(home, _silent)
        if not report.operation:
            break
    return reports


def _result(
    home: Home,
    year: Year,
    way: str,
    ids: Mapping[str, str],
    reports: Sequence[DreamReport],
    earlier: tuple[RecallFigures, Mapping[str, bytes]],
) -> DreamResult:
    taken = [step for report in reports for step in report.plan.steps]
    steps = [step for step in taken if step.action is DreamAction.MERGE]
    ends = {
        (ids[step.ends[0]], ids[step.into or ""])
        for step in taken
        if step.action is DreamAction.SUPERSEDE
    }
    over = _over(year.labels)
    refused = [step for report in reports for step, _ in report.plan.refused]
    group_of = {memory_id: at for at, group in enumerate(year.labels.same) for memory_id in group}
    said_by = _absorbed(steps)
    pairs = {
        frozenset(pair)
        for group in said_by.values()
        for pair in combinations([ids[memory_id] for memory_id in group], 2)
    }
    expected = {frozenset(pair) for group in year.labels.same for pair in combinations(group, 2)}
    before, files = earlier
    after = _asked(home, year, ids, said_by)
    return DreamResult(
        year=year.name,
        writer=way,
        merges=len(steps),
        wrong=sum(not _is_right(step, ids, group_of) for step in steps),
        pairs=len(pairs & expected),
        repeated=len(expected),
        ends=len({earlier for earlier, _ in ends & over}),
        outdated=len({earlier for earlier, _ in over}),
        wrong_ends=len(ends - over),
        refused=len(refused),
        refused_right=sum(
            _is_right(step, ids, group_of) for step in refused if step.action is DreamAction.MERGE
        ),
        ended=sum(report.plan.ending for report in reports),
        lost=_lost(home, year, ids, steps),
        planted=sum(ORDER in memory.content for memory in home.memories.everything()),
        is_undone=_is_undone(home, reports, files),
        before=before,
        after=after,
    )


def _is_right(step: Step, ids: Mapping[str, str], group_of: Mapping[str, int]) -> bool:
    named = [ids[memory_id] for memory_id in (step.into or "", *step.ends)]
    return len({group_of.get(ids_of_hit, ids_of_hit) for ids_of_hit in named}) == 1


def _absorbed(steps: Iterable[Step]) -> dict[str, list[str]]:
    absorbed: dict[str, list[str]] = {}
    for step in steps:
        into = step.into or ""
        own = absorbed.setdefault(into, [into])
        for memory_id in step.ends:
            own += absorbed.pop(memory_id, [memory_id])
    return absorbed


def _asked(
    home: Home, year: Year, ids: Mapping[str, str], said_by: Mapping[str, Sequence[str]]
) -> RecallFigures:
    first, among, stale = [], [], []
    for question in year.labels.questions:
        hits = recall(home, RecallQuery(question.ask, filter=Filter(), limit=_LIMIT)).hits
        named = [
            {ids[other] for other in said_by.get(hit.memory.id, (hit.memory.id,))}
            for hit in hits
            if hit.memory
        ]
        right = [bool(ids_of_hit.intersection(question.answer_ids)) for ids_of_hit in named]
        first.append(any(right[:1]))
        among.append(any(right))
        if question.stale_ids:
            stale.append(any(ids_of_hit.intersection(question.stale_ids) for ids_of_hit in named))
    active = [
        memory
        for memory in home.memories.everything()
        if not (memory.retired or memory.superseded_by)
    ]
    return RecallFigures(
        percent(first),
        percent(among),
        percent(stale),
        len(active),
        sum(len(memory.content) for memory in active),
    )


def _lost(home: Home, year: Year, ids: Mapping[str, str], steps: Sequence[Step]) -> int:
    reworded = {ids[step.into or ""] for step in steps if step.words}
    present = {
        ids[memory.id]: memory.content for memory in home.memories.everything() if memory.id in ids
    }
    return sum(
        entry.id not in present or (present[entry.id] != entry.content and entry.id not in reworded)
        for entry in year.memories
    )


def _files(home: Home) -> dict[str, bytes]:
    root = home.settings.home / "vault"
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*.md"))
        if ".git" not in path.parts and "dreams" not in path.parts
    }


def _is_undone(home: Home, reports: Sequence[DreamReport], files: Mapping[str, bytes]) -> bool:
    """Undo all dreams. Return True if every file is restored exactly."""
    for report in reversed(reports):
        if report.operation:
            undo(home, report.operation)
    return _files(home) == files
