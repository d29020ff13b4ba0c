"""Types for dreams, rules for retiring memories, and access to the writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from nacre.base.frozen import frozen
from nacre.base.ids import short_hash
from nacre.base.times import day_of, shown_day
from nacre.errors import ModelRefusedError, NacreError
from nacre.home.home import Home
from nacre.home.spending import NONE, ask_all, is_final, model_for, name_for
from nacre.memories.usage import is_protected
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.store.memories import UsageById
from nacre.values.memory import Expiry, Kind, Memory
from nacre.values.reports import OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.session import Task

MemoriesById = Mapping[str, Memory]

Section = tuple[str, tuple[str, ...]]
"""A heading in nacre's part of a page, and the lines below it."""


class DreamAction(StrEnum):
    """The changes that a dream makes, in order.

    ``expire`` retires a memory whose time has passed, ``forget`` one that is never used, and
    ``merge`` those that a kept memory repeats. ``page`` writes a project's page or the owner's
    profile. Nothing is deleted.
    """

    SUPERSEDE = "supersede"
    MERGE = "merge"
    EXPIRE = "expire"
    FORGET = "forget"
    PAGE = "page"


@frozen
class Step:
    """A step of a dream, which retires the memories ``ends`` and keeps ``into``.

    ``words``: the new text of the kept memory or page. ``by``: the writer's name. ``mark``: a
    fingerprint of the sources. ``project``: empty for the profile.
    """

    action: DreamAction
    ends: tuple[str, ...]
    into: str | None
    subject: str
    why: str
    words: str = ""
    by: str = ""
    mark: str = ""
    project: str = ""

    @property
    def memories(self) -> tuple[str, ...]:
        """Ids of the memories that the step retires or keeps."""
        return (*self.ends, self.into) if self.into else self.ends

    @property
    def key(self) -> str:
        """Identifier of the step within a plan."""
        return short_hash(self.action, self.into or "", self.words, self.project, *self.ends)


@frozen
class PageDraft:
    """A draft of a page.

    ``by``: the writer's name. ``why``: a summary of the sources.
    """

    sections: tuple[Section, ...]
    by: str
    why: str


@frozen
class DreamPlan:
    """The steps of a dream.

    ``put_off``: steps beyond the limit ``most``. ``seen``: number of memories examined.
    ``refused``: the writer's rejected steps, with reasons. ``settled``, ``looked``: clusters and
    pages about which the writer was asked. ``unasked``: number of postponed questions. ``note``:
    the reason why the writer was not asked or stopped. ``unwritten``: pages that cannot be written,
    with reasons. ``texts``: first words of affected memories. ``brought_back``: number of memories
    that a person restored.
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
    texts: tuple[tuple[str, str], ...] = ()
    brought_back: int = 0
    looked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def ending(self) -> int:
        """Number of memories that the plan retires."""
        return sum(len(step.ends) for step in self.steps)


@frozen
class DreamReport:
    """The result of a dream.

    ``operation``: the id of its operation, or ``None`` if nothing was done. ``diary``: the diary's
    path. ``left``: skipped steps, with reasons. ``is_first``: whether this first dream only made a
    plan.
    """

    plan: DreamPlan
    operation: str | None = None
    diary: str | None = None
    left: tuple[tuple[Step, str], ...] = ()
    is_first: bool = False


# -- Retiring by rules --------------------------------------------------------


TEMPORARY_FOR = timedelta(days=130)
"""Time without use after which a temporary memory is retired."""

_HALF_LIFE_DAYS = 90.0
_MIN_SCORE = 0.05
"""Score below which an unused memory is retired."""

_SCORE_PER_RECALL, _MAX_RECALL_SCORE = 0.05, 0.3
_FLOORS = ((8, 0.4), (6, 0.15))
"""Pairs of an importance and the minimum score of memories with at least this importance."""


def plan_ending(
    memories: Sequence[Memory], usage: UsageById, now: datetime, settings: Settings
) -> list[Step]:
    """Return steps that retire expired and unused memories, except todos and core memories."""
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


def _expiry(memory: Memory, used: Usage, now: datetime) -> str:
    if memory.expires_on and memory.expires_on <= day_of(now):
        return f"was valid until {memory.expires_on}"
    last = last_used(memory, used)
    if memory.expiry is Expiry.TEMPORARY and now - last >= TEMPORARY_FOR:
        return f"was temporary; last stated or recalled on {shown_day(last)}"
    return ""


def _disuse(memory: Memory, used: Usage, now: datetime, settings: Settings) -> str:
    last, worth = last_used(memory, used), score(memory, used, now)
    is_young = now - last <= timedelta(days=settings.whole("forgetting.max_age_days"))
    if is_young or not settings.flag("forgetting.enabled") or worth >= _MIN_SCORE:
        return ""
    return f"last stated or recalled on {shown_day(last)}, importance {memory.importance}, score {worth:.3f}"


def score(memory: Memory, used: Usage, now: datetime) -> float:
    """Return a memory's score, from 0 to 1.3. It falls while the memory is not used."""
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
    """Open the writer, or yield ``None`` and the reason why no model may be asked.

    Raises ModelRefusedError if the model cannot be opened, except in the background.
    """
    model = None
    note = NO_WRITER if name_for(home, Task.DREAM) == NONE else "models.background is off"
    try:
        if background and home.settings.flag("writer.paused"):
            note = "the writer is paused"
        else:
            model = model_for(home, Task.DREAM, background=background)
    except ModelRefusedError as error:
        if not background:
            raise
        note = error.message
    with closing(model) if model else nullcontext():
        yield model, "" if model else note


def answers(
    home: Home, questions: Sequence[Callable[[], A]], on_progress: OnProgress
) -> tuple[list[A | None], str | None]:
    """Ask the writer several questions in parallel.

    Return the answers, with ``None`` for failed questions, and the first error message. The last
    questions may be skipped.
    """
    results = []
    for start in range(0, len(questions), _MAX_PARALLEL):
        on_progress(Progress("asking", start, len(questions)))
        results += ask_all(home, questions[start : start + _MAX_PARALLEL], _MAX_PARALLEL)
        if any(map(is_final, results)):
            break
    failed = next((result.message for result in results if isinstance(result, NacreError)), None)
    return [None if isinstance(result, NacreError) else result for result in results], failed
