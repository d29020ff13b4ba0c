"""Dreams: what a plan holds, and what became of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from nacre.base.ids import content_hash
from nacre.base.times import day_of, shown_day
from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.home.spending import NONE, Answered, ask_all, is_final, model_for, name_for, rests
from nacre.memories.usage import is_protected
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.store.memories import EndingBounds
from nacre.values.memory import Expiry, Kind, Memory
from nacre.values.reports import OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.session import Task


class DreamAction(StrEnum):
    """What a dream does to memories.

    ``expire``: what was meant for a while is over. ``forget``: what was never asked for goes. ``merge``: what says the
    same goes into the one that stays. ``shelve``: what waits in the inbox, and nobody could file. All of them retire;
    nothing is deleted. ``unlink``: a link that leads nowhere is dropped. ``file``: what waits in the inbox goes into
    the project that it belongs to. ``page``: a project's page tells of its sessions and decisions, and of what a writer
    made of its memories; the owner's profile of what it made of the owner's. ``link``: two memories that a writer says
    belong together are linked. ``join``: a project becomes a part of another one. There nothing ends.
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


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a dream would do: the ids of the memories that end, the one that stays in their place, if any,
    what it is about, and why. ``links`` are the ends of links that the one that stays loses. What is filed is in
    ``into``, and goes into ``project``; the project ``subject`` joins ``project``; a page is that of ``project``, else
    the owner's profile, and ``words`` are what nacre's part of it says from then on. A link leads from ``into`` to the
    one of ``links``, and ``words`` are its relation.

    Where a writer proposed it, ``by`` names it, ``words`` are what the one that stays says from then on (empty: what it
    says already), and ``mark`` is what the proposal rests on.
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
        """What tells a step from any other of a plan."""
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


@dataclass(frozen=True, slots=True)
class PageDraft:
    """What a writer (``by``) made of a page: sections, each a heading and its lines, and in words what they rest on.

    ``project`` is empty for the owner's profile.
    """

    project: str
    sections: tuple[tuple[str, tuple[str, ...]], ...]
    by: str
    why: str


SIGNALS = ("relevance", "frequency", "diversity", "recency", "consolidation", "richness")
"""What is weighed of a project's sessions."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """What speaks for telling of a project's new sessions on its page: six signals, each 0 to 1, and their weighed sum.

    ``failed`` are the gates that it did not pass; where there are none, the page is written.
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


@dataclass(frozen=True, slots=True)
class DreamPlan:
    """What a dream would do, of ``seen`` active memories; ``put_off`` is more than one night ends (``most``).

    ``refused`` are steps that a writer proposed and that did not bear a second look, each with the reason; they wait in
    the review queue. ``settled`` are clusters and pairs (marks) about which nothing is left to ask, ``unasked`` is how
    many wait for another dream, and ``note`` says why a writer was not asked, or not to the end. ``promotions`` say
    what was found of projects with new sessions. ``unfiled`` waits in the inbox, and nothing says where it belongs;
    ``None`` where nobody looked. ``texts`` are the first words of the memories that merges and endings name, by id.
    ``brought_back`` counts those that a dream ended before, and a person brought back: they are left. ``looked`` are
    the pages that a writer was asked about, by project (empty: the profile), with marks of what it was shown. ``keys``
    name the steps, one each, for who wants some of them only.
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
        """How many memories end."""
        return sum(len(step.ends) for step in self.steps)

    @property
    def dropped(self) -> int:
        """How many ends of links are dropped."""
        return sum(len(step.links) for step in self.steps if step.action is DreamAction.UNLINK)


@dataclass(frozen=True, slots=True)
class DreamEstimate:
    """What asking a writer would take: ``clusters`` of so many memories, ``pages``, and ``pairs`` that nothing
    connects, in so many calls.

    ``cost`` is millionths of a US dollar, ``None`` where the price is not known. ``model`` is ``none`` where no writer
    is set; ``unasked`` are clusters that wait for another dream; ``note`` says why there are none.
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


@dataclass(frozen=True, slots=True)
class DreamReport:
    """What was planned, the operation that did it (``None``: nothing was done), and the diary's path in the vault.

    ``left`` are steps that were not done, each with the reason. ``is_first``: a home's first dream, which only plans.
    """

    plan: DreamPlan
    operation: str | None = None
    diary: str | None = None
    left: tuple[tuple[Step, str], ...] = ()
    is_first: bool = False


# ----------------------------------------------------------------------------
# What ends by rules alone: memories that were meant for a while, and those that nobody ever asked
# for.


TEMPORARY_FOR = timedelta(days=130)
"""So long a temporary memory stays that is not recalled. The seed means it (its documents), and computes otherwise
(seed facts 1.0)."""

_HALF_LIFE_DAYS = 90.0
_A_RECALL, _MOST_BY_RECALLS = 0.05, 0.3
_FLOORS = ((8, 0.4), (6, 0.15))
"""A memory of so much importance scores so much at least."""

_ANY_IMPORTANCE, _ANY_NUMBER = 11, 2**62


def ending(
    memories: Sequence[Memory], usage: Mapping[str, Usage], now: datetime, settings: Settings
) -> list[Step]:
    """What is over or forgotten, the first such rule for each memory. Open todos stay, whatever their age."""
    protected = settings.texts("forgetting.protect")
    found = []
    for memory in memories:
        if (
            memory.kind is Kind.TODO
            or memory.expiry is Expiry.CORE
            or is_protected(memory, protected)
        ):
            continue
        used = usage.get(memory.id, Usage())
        step = _over(memory, used, now) or _forgotten(memory, used, now, settings)
        if step:
            found.append(step)
    return found


def bounds(settings: Settings) -> EndingBounds:
    """What :func:`ending` never ends, as a database can tell it: the rest is to be looked at."""
    worth = settings.number("forgetting.score_threshold")
    if worth <= 0 or not settings.flag("forgetting.enabled"):
        return EndingBounds(TEMPORARY_FOR, timedelta(0), 0, 0)
    faded = int(-_HALF_LIFE_DAYS * math.log2(worth))  # so long the age alone scores as much
    return EndingBounds(
        TEMPORARY_FOR,
        timedelta(days=max(0, faded, settings.whole("forgetting.max_age_days"))),
        min((least for least, floor in _FLOORS if floor >= worth), default=_ANY_IMPORTANCE),
        _ANY_NUMBER if worth > _MOST_BY_RECALLS else math.ceil(worth / _A_RECALL),
    )


def _over(memory: Memory, used: Usage, now: datetime) -> Step | None:
    if memory.expires_on and memory.expires_on <= day_of(now):
        return _step(DreamAction.EXPIRE, memory, f"was to be used until {memory.expires_on}")
    last = last_used(memory, used)
    if memory.expiry is Expiry.TEMPORARY and now - last >= TEMPORARY_FOR:
        why = f"was meant for a while, and last said or recalled on {shown_day(last)}"
        return _step(DreamAction.EXPIRE, memory, why)
    return None


def _forgotten(memory: Memory, used: Usage, now: datetime, settings: Settings) -> Step | None:
    last = last_used(memory, used)
    is_young = now - last <= timedelta(days=settings.whole("forgetting.max_age_days"))
    if is_young or not settings.flag("forgetting.enabled"):
        return None
    worth = score(memory, used, now)
    if worth < settings.number("forgetting.score_threshold"):
        why = f"last said or recalled on {shown_day(last)}, importance {memory.importance}, score {worth:.3f}"
        return _step(DreamAction.FORGET, memory, why)
    return None


def _step(action: DreamAction, memory: Memory, why: str) -> Step:
    return Step(action, (memory.id,), None, memory.subject, why)


def score(memory: Memory, used: Usage, now: datetime) -> float:
    """How much speaks against forgetting a memory (seed facts 1.4), 0 to 1.3; its age counts from its last use."""
    days = max(0.0, (now - last_used(memory, used)) / timedelta(days=1))
    own: float = 0.5 ** (days / _HALF_LIFE_DAYS) + min(
        used.recall_count * _A_RECALL, _MOST_BY_RECALLS
    )
    return max(own, next((floor for least, floor in _FLOORS if memory.importance >= least), 0.0))


def last_used(memory: Memory, used: Usage) -> datetime:
    """When a memory was last said, written down or recalled."""
    return max(memory.last_said, used.last_recalled) if used.last_recalled else memory.last_said


# ----------------------------------------------------------------------------
# The writer of dreams: opened where it may be asked, asked side by side, shown only what it may see.


A = TypeVar("A")

NO_WRITER = "no writer is set: nacre writer set"
_AT_ONCE = 3


@contextmanager
def writer_of(home: Home, *, background: bool) -> Iterator[tuple[LanguageModel | None, str]]:
    """The writer, and why there is none where it may not be asked; it is closed in the end.

    Raises ModelRefused where the model that is set cannot be opened.
    """
    model = model_for(home, Task.DREAM, background=background)
    if model is None:
        yield None, NO_WRITER if name_for(home, Task.DREAM) == NONE else "models.background is off"
        return
    try:
        if background and rests(home.settings):
            yield None, "the writer is paused, or waits for the mains"
        else:
            yield model, ""
    finally:
        model.close()


def answers(
    home: Home, questions: Sequence[Callable[[], A]], on_progress: OnProgress | None
) -> tuple[list[A | None], str | None]:
    """What a writer answers, some questions at once: ``None`` for each that failed or was not asked, and what went
    wrong first. Once it is away, or may cost no more, nobody goes on asking it."""
    found: list[Answered[A] | NacreError | None] = []
    for start in range(0, len(questions), _AT_ONCE):
        if on_progress:
            on_progress(Progress("asking", start, len(questions)))
        found += ask_all(home, questions[start : start + _AT_ONCE], _AT_ONCE)
        if any(one is None or is_final(one) for one in found):
            break
    failed = next((one.message for one in found if isinstance(one, NacreError)), None)
    good = [one.value if isinstance(one, Answered) else None for one in found]
    return [*good, *(None for _ in questions[len(good) :])], failed
