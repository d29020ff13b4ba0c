"""Types for dreams, rules that retire memories, and access to the writer."""

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
from nacre.store.memories import EndingBounds, UsageById
from nacre.values.memory import Expiry, Kind, Memory
from nacre.values.reports import OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.session import Task

MemoriesById = Mapping[str, Memory]

Section = tuple[str, tuple[str, ...]]
"""A heading in nacre's part of a page, and the lines below it."""


class DreamAction(StrEnum):
    """An effect of a dream. Nothing is deleted.

    ``expire``: retires a memory whose time has passed. ``forget``: retires a memory that is never
    used. ``merge``: retires memories that state the same as a kept memory. ``unlink``: drops a dead
    link. ``file``: moves a memory from the inbox into its project. ``page``: writes a project's page
    or the owner's profile.
    """

    EXPIRE = "expire"
    FORGET = "forget"
    MERGE = "merge"
    SUPERSEDE = "supersede"
    FILE = "file"
    PAGE = "page"
    UNLINK = "unlink"


@frozen
class Step:
    """A step of a dream.

    ``ends``: memories to retire. ``into``: the memory to keep or file. ``subject``: the subject of
    the step. ``links``: targets to unlink. ``words``: a
    page's text, or the kept memory's new text. ``by``: the writer's
    name. ``mark``: a fingerprint of the sources. ``project``: the target project, or an empty
    string for the profile.
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
        return content_hash("\0".join(parts)).hex()[:16]


@frozen
class PageDraft:
    """A writer's draft of a page.

    ``project``: empty for the owner's profile. ``sections``: headings and lines. ``by``: the writer's
    name. ``why``: a summary of the sources.
    """

    project: str
    sections: tuple[Section, ...]
    by: str
    why: str


@frozen
class DreamPlan:
    """The steps of a dream.

    ``put_off``: steps that exceed the limit ``most``. ``seen``: number of examined active memories.
    ``refused``: the writer's rejected steps with reasons. ``settled``: fingerprints of answered
    clusters. ``unasked``: number of postponed questions. ``note``: the reason why the writer was not
    asked or stopped. ``unwritten``: paths of pages that must not be written, with reasons.
    ``unfiled``: ids of inbox memories without a known project. ``texts``: ids and first words of
    affected memories. ``brought_back``: number of memories skipped because a person restored them.
    ``looked``: projects whose pages the writer was asked about, with the fingerprints of the
    sources.
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
    unwritten: tuple[tuple[str, str], ...] = ()
    unfiled: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    brought_back: int = 0
    looked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def ending(self) -> int:
        """Number of memories to retire."""
        return sum(len(step.ends) for step in self.steps)

    @property
    def dropped(self) -> int:
        """Number of link targets to drop."""
        return sum(len(step.links) for step in self.steps if step.action is DreamAction.UNLINK)


@frozen
class DreamReport:
    """A plan, the operation that executed the plan (``None`` if nothing was done), and the diary's path.

    ``left``: skipped steps with reasons. ``is_first``: this was the first dream, which only plans.
    """

    plan: DreamPlan
    operation: str | None = None
    diary: str | None = None
    left: tuple[tuple[Step, str], ...] = ()
    is_first: bool = False


# -- Retiring by rules --------------------------------------------------------


TEMPORARY_FOR = timedelta(days=130)
"""Lifetime of a temporary memory after the last use."""

_HALF_LIFE_DAYS = 90.0
_MIN_SCORE = 0.05
"""Minimum score of memories. Memories with a lower score are forgotten."""

_SCORE_PER_RECALL, _MAX_RECALL_SCORE = 0.05, 0.3
_FLOORS = ((8, 0.4), (6, 0.15))
"""Minimum scores of important memories, as pairs of importance and score."""

_ANY_IMPORTANCE, _ANY_NUMBER = 11, 2**62


def plan_ending(
    memories: Sequence[Memory], usage: UsageById, now: datetime, settings: Settings
) -> list[Step]:
    """Return steps that retire outdated and unused memories, except todos and core memories."""
    protected = settings.texts("forgetting.protect")
    steps = []
    for memory in memories:
        is_kept = memory.kind is Kind.TODO or memory.expiry is Expiry.CORE
        if is_kept or is_protected(memory, protected):
            continue
        used = usage[memory.id]
        expiry = _expiry(memory, used, now)
        if why := expiry or _disuse(memory, used, now, settings):
            action = DreamAction.EXPIRE if expiry else DreamAction.FORGET
            steps.append(Step(action, (memory.id,), None, memory.subject, why))
    return steps


def bounds(settings: Settings) -> EndingBounds:
    """Return limits for finding memories that :func:`plan_ending` might retire."""
    if not settings.flag("forgetting.enabled"):
        return EndingBounds(TEMPORARY_FOR, timedelta(0), 0, 0)
    faded = int(
        -_HALF_LIFE_DAYS * math.log2(_MIN_SCORE)
    )  # up to this age, a memory's score stays above the threshold
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
    """Return the reason why an unused memory is to be forgotten, or an empty string."""
    last, worth = last_used(memory, used), score(memory, used, now)
    is_young = now - last <= timedelta(days=settings.whole("forgetting.max_age_days"))
    if is_young or not settings.flag("forgetting.enabled") or worth >= _MIN_SCORE:
        return ""
    return f"last stated or recalled on {shown_day(last)}, importance {memory.importance}, score {worth:.3f}"


def score(memory: Memory, used: Usage, now: datetime) -> float:
    """Return a memory's score from 0 to 1.3, which decays without use."""
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
    """Open the writer and yield it, or yield the reason why it must not be asked.

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

    Return the answers, with ``None`` for failed or unasked questions, and the first problem. Stop
    when the writer is unavailable or the budget is spent.
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
