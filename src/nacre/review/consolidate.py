"""Value types of dreams, the rules that end memories, and access to the writer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from nacre.base.frozen import frozen
from nacre.base.ids import content_hash
from nacre.base.times import day_of, shown_day
from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.home.spending import NONE, Answer, ask_all, is_final, model_for, name_for, rests
from nacre.memories.usage import is_protected
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.store.memories import EndingBounds
from nacre.values.memory import Expiry, Kind, Memory
from nacre.values.reports import OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.session import Task


class DreamAction(StrEnum):
    """An effect of a dream.

    ``expire`` (past its time), ``forget`` (never used), ``merge`` (same statement as the kept memory) and
    ``shelve`` (not fileable from the inbox) retire memories; nothing is deleted. The others end nothing:
    ``unlink`` drops a dead link, ``file`` moves a memory from the inbox into its project, ``page`` writes a
    project's page or the owner's profile, ``link`` connects two memories, and ``join`` merges a project into
    another.
    """

    EXPIRE = "expire"
    FORGET = "forget"
    MERGE = "merge"
    SUPERSEDE = "supersede"
    SHELVE = "shelve"
    FILE = "file"
    PAGE = "page"
    JOIN = "join"
    UNLINK = "unlink"
    LINK = "link"


@frozen
class Step:
    """A step of a dream: the memories that end, the memory that stays (``into``), a subject and a reason.

    ``links`` are targets to unlink or to link with the relation ``words``. A filed memory (``into``)
    moves to ``project``. The project ``subject`` joins ``project``. A page step writes ``words`` to the
    page of ``project``, or to the profile. A writer's step has the writer's name (``by``), the kept
    memory's new text (``words``, empty if unchanged) and a fingerprint of the sources (``mark``).
    """

    action: DreamAction
    ends: tuple[str, ...]
    into: str | None
    subject: str
    why: str
    links: tuple[str, ...] = ()
    words: str = ""
    by: str = ""
    mark: str = ""
    project: str = ""

    @property
    def key(self) -> str:
        """Identifier of the step within a plan."""
        parts = (
            self.action,
            self.into or "",
            self.words,
            self.project,
            *self.ends,
            "",
            *self.links,
        )
        parts = (*parts, self.subject) if self.action is DreamAction.JOIN else parts
        return content_hash("\0".join(parts)).hex()[:16]


@frozen
class PageDraft:
    """The page sections (headings and lines) by a writer (``by``), and a summary of the sources.

    ``project`` is empty for the owner's profile.
    """

    project: str
    sections: tuple[tuple[str, tuple[str, ...]], ...]
    by: str
    why: str


SIGNALS = ("relevance", "frequency", "diversity", "recency", "consolidation", "richness")
"""Signals of a project's sessions."""


@frozen
class Promotion:
    """An evaluation of a project's new sessions: six signals from 0 to 1 and their weighted sum.

    The page is written unless any gate ``failed``.
    """

    project: str
    sessions: int
    relevance: float
    frequency: float
    diversity: float
    recency: float
    consolidation: float
    richness: float
    score: float
    failed: tuple[str, ...] = ()


@frozen
class DreamPlan:
    """The steps of a dream that examined ``seen`` active memories.

    ``put_off`` steps exceed the bound ``most``. ``refused`` are the writer's rejected steps with reasons,
    for review. ``settled`` are marks of answered clusters and pairs. ``unasked`` is the number of
    postponed questions. ``note`` explains why the writer was not asked or stopped. ``promotions`` are
    projects with new sessions. ``unfiled`` are inbox ids without a known project, ``None`` if not
    examined. ``texts`` are ids and starts of affected memories. ``brought_back`` is the number of
    memories skipped because a person restored them. ``looked`` are projects (empty for the profile) and
    marks of pages asked about. ``keys`` identify the steps.
    """

    steps: tuple[Step, ...]
    put_off: tuple[Step, ...] = ()
    seen: int = 0
    most: int = 0
    project: str | None = None
    refused: tuple[tuple[Step, str], ...] = ()
    settled: tuple[str, ...] = ()
    unasked: int = 0
    note: str | None = None
    promotions: tuple[Promotion, ...] = ()
    unfiled: tuple[str, ...] | None = None
    texts: tuple[tuple[str, str], ...] = ()
    brought_back: int = 0
    looked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def ending(self) -> int:
        """Number of memories that end."""
        return sum(len(step.ends) for step in self.steps)

    @property
    def dropped(self) -> int:
        """Number of dropped link targets."""
        return sum(len(step.links) for step in self.steps if step.action is DreamAction.UNLINK)


@frozen
class DreamEstimate:
    """The cost of asking a writer about clusters, pages and pairs.

    ``cost`` is in millionths of a US dollar, ``None`` if the price is unknown. ``model`` is ``none``
    without a writer. ``unasked`` clusters are postponed. ``note`` explains why no clusters are asked
    about.
    """

    model: str
    clusters: int = 0
    memories: int = 0
    calls: int = 0
    tokens: int = 0
    cost: int | None = None
    unasked: int = 0
    note: str | None = None
    pages: int = 0
    pairs: int = 0


@frozen
class DreamReport:
    """A plan, the operation that executed it (``None`` if nothing was done), and the diary's path.

    ``left`` are skipped steps with reasons. ``is_first`` marks a home's first dream, which only plans.
    """

    plan: DreamPlan
    operation: str | None = None
    diary: str | None = None
    left: tuple[tuple[Step, str], ...] = ()
    is_first: bool = False


# -- Ending by rules ----------------------------------------------------------


TEMPORARY_FOR = timedelta(days=130)
"""Lifetime of a temporary memory after its last use. The seed's code differs. See seed facts 1.0."""

_HALF_LIFE_DAYS = 90.0
_MIN_SCORE = 0.05
"""Score below which a memory is forgotten."""

_SCORE_PER_RECALL, _MAX_RECALL_SCORE = 0.05, 0.3
_FLOORS = ((8, 0.4), (6, 0.15))
"""Pairs of minimum importance and minimum score."""

_ANY_IMPORTANCE, _ANY_NUMBER = 11, 2**62


def plan_ending(
    memories: Sequence[Memory], usage: Mapping[str, Usage], now: datetime, settings: Settings
) -> list[Step]:
    """Return steps that end outdated and unused memories by the first applicable rule. Open todos stay."""
    protected = settings.texts("forgetting.protect")
    steps = []
    for memory in memories:
        is_kept = memory.kind is Kind.TODO or memory.expiry is Expiry.CORE
        if is_kept or is_protected(memory, protected):
            continue
        used = usage.get(memory.id, Usage())
        if why := _expiry(memory, used, now):
            steps.append(Step(DreamAction.EXPIRE, (memory.id,), None, memory.subject, why))
        elif why := _disuse(memory, used, now, settings):
            steps.append(Step(DreamAction.FORGET, (memory.id,), None, memory.subject, why))
    return steps


def bounds(settings: Settings) -> EndingBounds:
    """Return database bounds for memories that :func:`plan_ending` certainly keeps."""
    if not settings.flag("forgetting.enabled"):
        return EndingBounds(TEMPORARY_FOR, timedelta(0), 0, 0)
    faded = int(
        -_HALF_LIFE_DAYS * math.log2(_MIN_SCORE)
    )  # until then, age alone reaches the threshold
    return EndingBounds(
        TEMPORARY_FOR,
        timedelta(days=max(0, faded, settings.whole("forgetting.max_age_days"))),
        min((least for least, floor in _FLOORS if floor >= _MIN_SCORE), default=_ANY_IMPORTANCE),
        math.ceil(_MIN_SCORE / _SCORE_PER_RECALL),
    )


def _expiry(memory: Memory, used: Usage, now: datetime) -> str:
    """Return the reason why a memory has expired, or an empty string."""
    if memory.expires_on and memory.expires_on <= day_of(now):
        return f"was valid until {memory.expires_on}"
    last = last_used(memory, used)
    if memory.expiry is Expiry.TEMPORARY and now - last >= TEMPORARY_FOR:
        return f"was temporary; last stated or recalled on {shown_day(last)}"
    return ""


def _disuse(memory: Memory, used: Usage, now: datetime, settings: Settings) -> str:
    """Return the reason why an unused memory is forgotten, or an empty string."""
    last, worth = last_used(memory, used), score(memory, used, now)
    is_young = now - last <= timedelta(days=settings.whole("forgetting.max_age_days"))
    if is_young or not settings.flag("forgetting.enabled") or worth >= _MIN_SCORE:
        return ""
    return f"last stated or recalled on {shown_day(last)}, importance {memory.importance}, score {worth:.3f}"


def score(memory: Memory, used: Usage, now: datetime) -> float:
    """Return a memory's protection from forgetting (0 to 1.3), which decays without use. See seed facts
    1.4.
    """
    days = max(0.0, (now - last_used(memory, used)) / timedelta(days=1))
    own: float = 0.5 ** (days / _HALF_LIFE_DAYS) + min(
        used.recall_count * _SCORE_PER_RECALL, _MAX_RECALL_SCORE
    )
    return max(own, next((floor for least, floor in _FLOORS if memory.importance >= least), 0.0))


def last_used(memory: Memory, used: Usage) -> datetime:
    """Return when a memory was last stated, written or recalled."""
    return max(memory.last_said, used.last_recalled) if used.last_recalled else memory.last_said


# -- The writer ---------------------------------------------------------------


A = TypeVar("A")

NO_WRITER = "no writer is set: nacre writer set"
_MAX_PARALLEL = 3


@contextmanager
def writer_of(home: Home, *, background: bool) -> Iterator[tuple[LanguageModel | None, str]]:
    """Yield the open writer, or the reason why it must not be asked. Close the writer at the end.

    Raises ModelRefusedError if the configured model cannot be opened.
    """
    model = model_for(home, Task.DREAM, background=background)
    if model is None:
        yield None, NO_WRITER if name_for(home, Task.DREAM) == NONE else "models.background is off"
        return
    try:
        if background and rests(home.settings):
            yield None, "the writer is paused or waiting for mains power"
        else:
            yield model, ""
    finally:
        model.close()


def answers(
    home: Home, questions: Sequence[Callable[[], A]], on_progress: OnProgress | None
) -> tuple[list[A | None], str | None]:
    """Ask the writer several questions in parallel.

    Return ``None`` for each failed or unasked question, and the first problem. Stop once the writer is
    unavailable or the budget is spent.
    """
    results: list[Answer[A] | NacreError | None] = []
    for start in range(0, len(questions), _MAX_PARALLEL):
        if on_progress:
            on_progress(Progress("asking", start, len(questions)))
        results += ask_all(home, questions[start : start + _MAX_PARALLEL], _MAX_PARALLEL)
        if any(result is None or is_final(result) for result in results):
            break
    failed = next((result.message for result in results if isinstance(result, NacreError)), None)
    good = [result.value if isinstance(result, Answer) else None for result in results]
    return [*good, *(None for _ in questions[len(good) :])], failed
