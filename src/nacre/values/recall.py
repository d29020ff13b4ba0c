"""What is asked of recall, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.times import shown_day
from nacre.values.memory import Expiry, Kind, Memory, Scope
from nacre.values.session import Session, Speaker, Turn

DEFAULT_LIMIT = 10
DEFAULT_TURNS = 3
DEFAULT_RADIUS_DAYS = 14.0
MOST_RADIUS_DAYS = 36_500


class Mode(StrEnum):
    """Which lanes a recall may use: all of them, those that need no model, or none (by date and importance)."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    VECTOR = "vector"
    BROWSE = "browse"


@dataclass(frozen=True, slots=True)
class Filter:
    """What may be found at all; an empty field does not restrict.

    ``projects`` without ``strict`` also admits what they depend on, as their pages say, and what belongs to no project.
    ``since`` and ``until`` are half open: ``since <= t < until``. ``scope`` is who asks: a private request sees
    everything, any other one no turns. The fields from ``kinds`` to ``expiry`` concern memories, the others both;
    ``tools`` are those in whose sessions it was said, ``sessions`` names these sessions themselves. ``as_of`` asks for
    what was true on that day, also where it was superseded since. ``trusted`` leaves out what draws on text from
    outside, ``settled`` what waits in the inbox: what an agent is given unasked is looked for with both.
    """

    projects: Annotated[
        tuple[str, ...],
        bounds("Only these projects, what they depend on, and what belongs to none."),
    ] = ()
    strict: Annotated[
        bool,
        bounds("With projects: only these; neither what they depend on nor what belongs to none."),
    ] = False
    exclude_projects: Annotated[tuple[str, ...], bounds("Leave these projects out.")] = ()
    since: Annotated[datetime | None, bounds("From then on.")] = None
    until: Annotated[datetime | None, bounds("Before then.")] = None
    kinds: Annotated[tuple[Kind, ...], bounds("Only memories of these kinds.")] = ()
    tags: Annotated[tuple[str, ...], bounds("Only memories with one of these tags.")] = ()
    min_importance: (
        Annotated[int, bounds("Only memories of this importance or more (1-10).", ge=1, le=10)]
        | None
    ) = None
    expiry: Annotated[tuple[Expiry, ...], bounds("Only memories meant to hold this long.")] = ()
    scope: Annotated[Scope, bounds("Who asks: a public request sees public memories only.")] = (
        Scope.PRIVATE
    )
    owner_only: Annotated[bool, bounds("Only what the owner said.")] = False
    tools: Annotated[
        tuple[str, ...],
        bounds("Only what was said in sessions with these tools, e.g. claude-code."),
    ] = ()
    sessions: Annotated[
        tuple[str, ...],
        bounds("Only what was said in these sessions, by their ids or labels, e.g. telegram:5054."),
    ] = ()
    as_of: Annotated[
        date | None, bounds("What was true on that day, also what was superseded since.")
    ] = None
    trusted: Annotated[bool, bounds("Leave out what draws on text from outside.")] = False
    settled: Annotated[bool, bounds("Leave out what waits in the inbox.")] = False


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """One question to recall.

    ``around`` replaces recency by a Gaussian of sigma ``radius_days / 2`` (seed facts 1.2.1), and admits only memories
    recorded within the radius unless the filter has times of its own; a filter's ``until`` is the moment that recency
    counts back from. ``topic`` stands before the text where it is embedded. ``boost=False`` ranks by relevance alone:
    with ``scoring.profile = "agenr"`` by the cosine as it is. ``word_share`` is what words count beside meaning,
    ``mmr_lambda`` what relevance counts beside being unlike the hits before (Carbonell & Goldstein 1998); ``None``
    leaves both as they were measured best. ``threshold`` is the least score shown. ``confident`` leaves out weak
    hits and pending candidates, as for context that nobody asked for. ``fuzzy`` reads words that nothing in the home
    holds as the nearest words that something does hold. ``update=False`` leaves usage as it is.
    ``budget_tokens`` cuts the answer to that many tokens. ``turns`` is how many turns of sessions to add to
    the memories. ``session`` is the host's session that asks: what is used in one session is used together.
    ``co_recall=False`` leaves out what such use adds, as for context that nobody asked for. ``expand`` also asks other
    phrasings by a language model, ``rerank`` has it grade the best hits: both take seconds, and cost what the model
    costs. ``is_prompt`` says that a person typed the text to an agent, who did not ask for what was remembered.
    """

    text: Annotated[str, bounds("A question or key words.")]
    filter: Annotated[Filter, bounds("What may be found at all.")] = field(default_factory=Filter)
    mode: Annotated[Mode, bounds("Which lanes.")] = Mode.HYBRID
    limit: Annotated[int, bounds("Memories at most.", ge=0)] = DEFAULT_LIMIT
    around: Annotated[
        datetime | None, bounds("Only memories recorded around that day, the nearest first.")
    ] = None
    ignore_time: Annotated[bool, bounds("Read no time from the words of the question.")] = False
    radius_days: Annotated[
        float, bounds("With --around: how many days before and after.", gt=0, le=MOST_RADIUS_DAYS)
    ] = DEFAULT_RADIUS_DAYS
    budget_tokens: Annotated[int, bounds("Tokens the answer may take.", ge=0)] | None = None
    boost: Annotated[bool, bounds("False: by relevance alone.")] = True
    update: Annotated[bool, bounds("Count what is found as used.")] = True
    diversify: Annotated[bool, bounds("Leave out what says nearly the same.")] = True
    mmr_lambda: (
        Annotated[
            float,
            bounds(
                "Relevance against difference from other hits; 1: relevance alone [.7].", ge=0, le=1
            ),
        ]
        | None
    ) = None
    word_share: (
        Annotated[float, bounds("Weight of words against meaning [.5].", ge=0, le=1)] | None
    ) = None
    prefer_kinds: Annotated[
        tuple[Kind, ...], bounds("Memories of these kinds count a quarter more.")
    ] = ()
    threshold: Annotated[float, bounds("The least score to show.", ge=0, le=1)] = 0.0
    topic: Annotated[
        str, bounds("Put before the question in the search by meaning.", max_length=500)
    ] = ""
    fuzzy: Annotated[bool, bounds("Read misspelt words as the nearest known ones.")] = False
    confident: Annotated[bool, bounds("Leave out weak hits and pending candidates.")] = False
    turns: Annotated[int, bounds("Turns of sessions to show as well.", ge=0, le=100)] = (
        DEFAULT_TURNS
    )
    session: Annotated[
        str | None,
        bounds(
            "The session it is for, by the host's own id: what one session uses is used together."
        ),
    ] = None
    co_recall: Annotated[bool, bounds("Add what was used together before.")] = True
    expand: Annotated[
        bool, bounds("Have a language model ask in other words, too; takes seconds.")
    ] = False
    rerank: Annotated[bool, bounds("Have a language model grade the best hits; takes seconds.")] = (
        False
    )
    is_prompt: Annotated[bool, bounds("A person typed the text to an agent.")] = False


class HitConfidence(StrEnum):
    """How likely a hit is to answer. ``weak``: it shares words or meaning with the question, and no more."""

    SURE = "sure"
    LIKELY = "likely"
    WEAK = "weak"


class LaneState(StrEnum):
    """``ran`` also when it found nothing; ``partial`` when a part of the index has no vectors yet."""

    RAN = "ran"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Lane:
    """What one lane did, and why it did less than it should."""

    name: str
    state: LaneState
    note: str | None = None


def degraded(lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """Those of some lanes that did less than they should."""
    return tuple(lane for lane in lanes if lane.state in (LaneState.PARTIAL, LaneState.UNAVAILABLE))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a memory was said: the session, the turn, its words."""

    session_id: str
    turn_id: str
    speaker: Speaker
    time: datetime | None
    excerpt: str


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A memory that answers, with its score (0 to 1), the parts the score is made of, and its evidence.

    ``candidate``: the memory is a pending candidate, which the owner may keep or drop.
    ``outdated_by`` are newer memories that are likely to say otherwise; those that are hits, too, come before it.
    ``doubt`` is why it may be out of date otherwise: files that it names were changed, or a later session says so.
    ``space`` is whose it is, where several spaces were asked.
    """

    memory: Memory
    score: float
    components: dict[str, float]
    confidence: HitConfidence
    evidence: tuple[Evidence, ...] = ()
    outdated_by: tuple[str, ...] = ()
    doubt: str | None = None
    space: str | None = None
    candidate: bool = False


@dataclass(frozen=True, slots=True)
class TurnHit:
    """A turn that answers, with its session, project and score (0 to 1)."""

    session: Session
    project: str | None
    turn: Turn
    score: float
    excerpt: str
    components: dict[str, float]
    confidence: HitConfidence


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The answer to one question.

    ``lanes`` says what ran. Without hits and turns, nothing shares a word or a meaning with the question. ``since``,
    ``until`` and ``around`` are the times that were asked for. ``time_words`` are the words of the question that
    ``since`` and ``until`` were read from: such times weigh, and exclude nothing.
    """

    query: str
    hits: tuple[MemoryHit, ...] = ()
    turns: tuple[TurnHit, ...] = ()
    lanes: tuple[Lane, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    around: datetime | None = None
    time_words: str | None = None
    truncated: bool = False
    took_ms: float = 0.0

    @property
    def span(self) -> str:
        """The days of ``since`` and ``until`` in words."""
        ends = (
            f"from {shown_day(self.since)}" if self.since else "",
            f"before {shown_day(self.until)}" if self.until else "",
        )
        return " and ".join(filter(None, ends))

    @property
    def degraded(self) -> tuple[Lane, ...]:
        """The lanes that did less than they should."""
        return degraded(self.lanes)

    @property
    def is_answered(self) -> bool:
        """Whether any hit is more than weak."""
        found = (*(hit.confidence for hit in self.hits), *(hit.confidence for hit in self.turns))
        return any(confidence is not HitConfidence.WEAK for confidence in found)


# ----------------------------------------------------------------------------
# What is asked of deep recall, and what it answers.


class Route(StrEnum):
    """What a question needs: nothing, what is known of the owner, or the memories of a project."""

    NONE = "none"
    OWNER = "owner"
    PROJECT = "project"


class DecidedBy(StrEnum):
    """Who took a step: a language model, rules, or whoever asked, in so many words."""

    MODEL = "model"
    RULES = "rules"
    ASKER = "asker"


@dataclass(frozen=True, slots=True)
class Said:
    """A message before the question."""

    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A project that a question may be about; ``named`` says that the question names it exactly."""

    slug: str
    score: float
    named: bool = False


@dataclass(frozen=True, slots=True)
class DeepStep:
    """One step: ``gate``, ``owner``, ``project`` or ``select``; who took it, and what came out.

    ``problem`` says why a model that was to take it did not.
    """

    name: str
    by: DecidedBy
    outcome: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class DeepResult:
    """The answer to one question.

    ``context`` is a block for an agent's prompt, framed as reference data; empty where there is nothing to tell.
    ``clarify`` are the projects of which whoever asks has to name one: nothing was read of any of them.
    ``model`` is the language model that was asked; ``None`` where none is set. ``repeated`` says that the answer is one
    of the last half minute.
    """

    query: str
    route: Route
    project: str | None = None
    clarify: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    hits: tuple[MemoryHit, ...] = ()
    context: str = ""
    steps: tuple[DeepStep, ...] = ()
    lanes: tuple[Lane, ...] = ()
    model: str | None = None
    repeated: bool = False
    took_ms: float = 0.0

    @property
    def degraded(self) -> tuple[Lane, ...]:
        """The lanes that did less than they should."""
        return degraded(self.lanes)

    @property
    def problem(self) -> str | None:
        """The first reason for which a model did not do what it was to do."""
        return next((step.problem for step in self.steps if step.problem), None)
