"""A year of memories, dreamt over: what became one, what should not have, what is lost, and what questions find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path

from benchmarks.dreams.writers import ORDER, ScriptedWriter
from benchmarks.figures import percent
from nacre.base.ids import uuid7_source
from nacre.data.undo import undo
from nacre.home.home import Home, open_home
from nacre.llm.local_model import load_minilm
from nacre.memories.vectors import embed_pending
from nacre.protocols import Embedder
from nacre.recall.recall import recall
from nacre.review.consolidate import DreamAction, DreamReport, Step
from nacre.review.dream import DreamRequest
from nacre.review.run import dream
from nacre.settings import load_settings
from nacre.values.memory import Expiry, Kind, Memory
from nacre.values.recall import Filter, RecallQuery
from nacre.values.reports import OnProgress, Progress

WAYS = ("rules", "well", "carelessly", "badly", "maliciously")
_LIMIT = 5
_NIGHTS = 4
_BETWEEN = timedelta(days=8)
_FIRST = datetime(2025, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Kept:
    """One memory of the data, stored on a ``day`` of the year."""

    id: str
    day: int
    kind: Kind
    project: str | None
    subject: str
    content: str
    importance: int = 7
    expiry: Expiry = Expiry.PERMANENT


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks later, the memories that answer it, and those that would be wrong by then."""

    ask: str
    answer_ids: tuple[str, ...]
    stale_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Labels:
    """Groups that say the same; pairs that must stay apart, each with why."""

    same: tuple[tuple[str, ...], ...]
    distinct: tuple[tuple[str, str, str], ...]
    outdated: tuple[tuple[str, str, str], ...]
    general_special: tuple[tuple[str, str, str], ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Year:
    """A team's memories of a year, and what is known of them."""

    name: str
    memories: tuple[Kept, ...]
    labels: Labels


@dataclass(frozen=True, slots=True)
class DreamData:
    """A file of the benchmark."""

    years: tuple[Year, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What questions found, in percent: an answer first, an answer among five, something outdated among five.

    ``memories`` are active, ``characters`` is their text.
    """

    first: float
    among_five: float
    stale: float
    memories: int
    characters: int


@dataclass(frozen=True, slots=True)
class DreamResult:
    """What one writer's dreams made of a year.

    ``merges`` of which ``wrong`` joined what does not say the same; ``pairs`` of repetitions that became one, of so
    many ``repeated``; ``ends`` of so many ``outdated`` memories, and ``wrong_ends`` of others; ``refused`` proposals,
    ``refused_right`` merges among them that were right. ``lost`` counts memories that are neither active nor retired,
    or have words that no plan gave them, ``planted`` those that hold an order of the writer's own. ``is_undone``:
    undoing all brings every file back to the byte.
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
    before: Found
    after: Found


def measure(
    data: DreamData, folder: Path, notify: OnProgress = lambda _: None
) -> list[DreamResult]:
    """Dream over each year with each writer, each in a home of its own."""
    embedder = load_minilm()
    runs = [(year, way) for year in data.years for way in WAYS]
    found = []
    for done, (year, way) in enumerate(runs):
        notify(Progress("judging", done, len(runs)))
        found.append(_dreamt(year, way, folder / f"{year.name}-{way}", embedder))
    return found


def _silent(_: Progress) -> None:
    """Nobody looks."""


def _over(labels: Labels) -> set[tuple[str, str]]:
    """Which memory which other one has ended; what is said of one member of a group is said of all."""
    group_of = {one: group for group in labels.same for one in group}
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
    groups = {one: at for at, group in enumerate(year.labels.same) for one in group}
    texts = {one.id: one.content for one in year.memories}
    over = {(texts[one], texts[other]) for one, other in _over(year.labels)}
    writer = ScriptedWriter(
        way, {texts[one]: groups.get(one, -at - 1) for at, one in enumerate(texts)}, over
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
    """Ids of the data by ids of memories."""
    ids: dict[str, str] = {}
    with home.change("import") as change, change.transaction():
        for one in sorted(year.memories, key=lambda one: one.day):
            clock.moment = _FIRST + timedelta(days=one.day)
            memory = Memory(
                home.ids(),
                one.kind,
                one.subject,
                one.content,
                clock.moment,
                clock.moment,
                one.importance,
                one.expiry,
                project=one.project,
            )
            ids[memory.id] = one.id
            change.put([memory])
    embed_pending(home, _silent)
    clock.moment = _FIRST + timedelta(days=366)
    return ids


def _nights(home: Home, clock: _Clock, tier: int) -> list[DreamReport]:
    """Dreams a week apart until one has nothing to do."""
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
    earlier: tuple[Found, Mapping[str, bytes]],
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
    group_of = {one: at for at, group in enumerate(year.labels.same) for one in group}
    said_by = _absorbed(steps)
    pairs = {
        frozenset(pair)
        for group in said_by.values()
        for pair in combinations([ids[one] for one in group], 2)
    }
    wanted = {frozenset(pair) for group in year.labels.same for pair in combinations(group, 2)}
    before, files = earlier
    after = _asked(home, year, ids, said_by)
    return DreamResult(
        year=year.name,
        writer=way,
        merges=len(steps),
        wrong=sum(not _is_right(step, ids, group_of) for step in steps),
        pairs=len(pairs & wanted),
        repeated=len(wanted),
        ends=len({one for one, _ in ends & over}),
        outdated=len({one for one, _ in over}),
        wrong_ends=len(ends - over),
        refused=len(refused),
        refused_right=sum(
            _is_right(step, ids, group_of) for step in refused if step.action is DreamAction.MERGE
        ),
        ended=sum(report.plan.ending for report in reports),
        lost=_lost(home, year, ids, steps),
        planted=sum(ORDER in one.content for one in home.memories.everything()),
        is_undone=_is_undone(home, reports, files),
        before=before,
        after=after,
    )


def _is_right(step: Step, ids: Mapping[str, str], group_of: Mapping[str, int]) -> bool:
    named = [ids[one] for one in (step.into or "", *step.ends)]
    return len({group_of.get(one, one) for one in named}) == 1


def _absorbed(steps: Iterable[Step]) -> dict[str, list[str]]:
    """Which memories one that stays stands for, itself among them."""
    found: dict[str, list[str]] = {}
    for step in steps:
        into = step.into or ""
        own = found.setdefault(into, [into])
        for one in step.ends:
            own += found.pop(one, [one])
    return found


def _asked(
    home: Home, year: Year, ids: Mapping[str, str], said_by: Mapping[str, Sequence[str]]
) -> Found:
    first, among, stale = [], [], []
    for question in year.labels.questions:
        hits = recall(home, RecallQuery(question.ask, filter=Filter(), limit=_LIMIT)).hits
        named = [
            {ids[other] for other in said_by.get(hit.memory.id, (hit.memory.id,))}
            for hit in hits
            if hit.memory
        ]
        right = [bool(one.intersection(question.answer_ids)) for one in named]
        first.append(any(right[:1]))
        among.append(any(right))
        if question.stale_ids:
            stale.append(any(one.intersection(question.stale_ids) for one in named))
    active = [one for one in home.memories.everything() if not (one.retired or one.superseded_by)]
    return Found(
        percent(first),
        percent(among),
        percent(stale),
        len(active),
        sum(len(one.content) for one in active),
    )


def _lost(home: Home, year: Year, ids: Mapping[str, str], steps: Sequence[Step]) -> int:
    """Memories that are neither active nor retired, or have other words than a plan gave them."""
    reworded = {ids[step.into or ""] for step in steps if step.words}
    present = {ids[one.id]: one.content for one in home.memories.everything() if one.id in ids}
    return sum(
        one.id not in present or (present[one.id] != one.content and one.id not in reworded)
        for one in year.memories
    )


def _files(home: Home) -> dict[str, bytes]:
    root = home.settings.home / "vault"
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*.md"))
        if ".git" not in path.parts and "dreams" not in path.parts
    }


def _is_undone(home: Home, reports: Sequence[DreamReport], files: Mapping[str, bytes]) -> bool:
    """Whether all of it can be taken back to the byte; the home is as it was then."""
    for report in reversed(reports):
        if report.operation:
            undo(home, report.operation)
    return _files(home) == files
