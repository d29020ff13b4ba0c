"""Queries and answers for recall and deep recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.times import shown_day
from nacre.values.memory import Expiry, Kind, Memory, Scope
from nacre.values.session import Session, Speaker, Turn

DEFAULT_LIMIT = 10
DEFAULT_TURNS = 5
DEFAULT_RADIUS_DAYS = 14.0
MOST_RADIUS_DAYS = 36_500


class Mode(StrEnum):
    """The search methods ("lanes") that a recall uses.

    ``hybrid``: all lanes. ``lexical``: lanes that need no model. ``vector``: only vectors.
    ``browse``: no lanes; results are sorted by importance and date.
    """

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    VECTOR = "vector"
    BROWSE = "browse"


@frozen
class Filter:
    """Restrictions on the results of a search. Empty fields are ignored.

    ``projects``: allowed projects; their dependencies and memories without a project are allowed,
        too, unless ``strict`` is set.
    ``since``, ``until``: period, excluding its end.
    ``scope``: the caller's scope; ``private`` sees everything, and other scopes see no turns.
    ``as_of``: day on which memories must have been true, even if they are superseded now.
    ``trusted``: whether to exclude results based on external text.
    ``settled``: whether to exclude the inbox.
    """

    projects: Annotated[
        tuple[str, ...],
        bounds("Only these projects, their dependencies, and memories without a project."),
    ] = ()
    strict: Annotated[
        bool,
        bounds("Only the given projects, without dependencies and memories without a project."),
    ] = False
    exclude_projects: Annotated[tuple[str, ...], bounds("Leave these projects out.")] = ()
    since: Annotated[datetime | None, bounds("Start time.")] = None
    until: Annotated[datetime | None, bounds("End, excluded.")] = None
    kinds: Annotated[tuple[Kind, ...], bounds("Only memories of these kinds.")] = ()
    tags: Annotated[tuple[str, ...], bounds("Only memories with one of these tags.")] = ()
    min_importance: (
        Annotated[int, bounds("Only memories of this importance or more (1-10).", ge=1, le=10)]
        | None
    ) = None
    expiry: Annotated[tuple[Expiry, ...], bounds("Only memories with this intended lifetime.")] = ()
    scope: Annotated[
        Scope, bounds("The caller's visibility: a public request sees public memories only.")
    ] = Scope.PRIVATE
    owner_only: Annotated[bool, bounds("Only the owner's words.")] = False
    tools: Annotated[
        tuple[str, ...],
        bounds("Only sessions with these tools, e.g. claude-code."),
    ] = ()
    sessions: Annotated[
        tuple[str, ...],
        bounds("Only these sessions, by id or label, e.g. telegram:5054."),
    ] = ()
    as_of: Annotated[
        date | None, bounds("Memories as of that day, including those superseded since.")
    ] = None
    trusted: Annotated[bool, bounds("Leave out results based on external text.")] = False
    settled: Annotated[bool, bounds("Leave out the inbox.")] = False


MEMORY_FIELDS = ("kinds", "tags", "min_importance", "expiry")
"""The fields of a filter that apply only to memories."""


@frozen
class RecallQuery:
    """A question for recall, with its options.

    ``around``: time near which memories must have been recorded, at most ``radius_days`` away
        unless the filter has times. A Gaussian with sigma ``radius_days / 2`` then replaces
        recency.
    ``topic``: text that is added to the question before it is embedded.
    ``boost``: False to rank only by relevance.
    ``word_share``: weight of words relative to meaning.
    ``mmr_lambda``: weight of relevance relative to novelty (Carbonell & Goldstein 1998).
    ``threshold``: minimum score.
    ``confident``: whether to omit weak hits and pending candidates.
    ``fuzzy``: whether to replace unknown words with the nearest known ones.
    ``update``: False to record no usage.
    ``budget_tokens``: maximum length of the answer.
    ``turns``: number of session turns to add.
    ``session``: the host's session, in which memories count as used together.
    ``co_recall``: False to ignore which memories were used together.
    ``is_prompt``: whether the text is a person's prompt to an agent.
    """

    text: Annotated[str, bounds("A question or keywords.")]
    filter: Annotated[Filter, bounds("Restrictions on the results.")] = field(
        default_factory=Filter
    )
    mode: Annotated[Mode, bounds("Lanes to use.")] = Mode.HYBRID
    limit: Annotated[int, bounds("Maximum number of memories.", ge=0)] = DEFAULT_LIMIT
    around: Annotated[
        datetime | None, bounds("Only memories recorded around that day, nearest first.")
    ] = None
    ignore_time: Annotated[bool, bounds("Ignore times mentioned in the question.")] = False
    radius_days: Annotated[
        float, bounds("With --around: number of days before and after.", gt=0, le=MOST_RADIUS_DAYS)
    ] = DEFAULT_RADIUS_DAYS
    budget_tokens: Annotated[int, bounds("Maximum tokens of the answer.", ge=0)] | None = None
    boost: Annotated[bool, bounds("False to rank only by relevance.")] = True
    update: Annotated[bool, bounds("Count the hits as used.")] = True
    diversify: Annotated[bool, bounds("Leave out near duplicates.")] = True
    mmr_lambda: (
        Annotated[
            float,
            bounds("Weight of relevance against novelty; 1 means only relevance [.7].", ge=0, le=1),
        ]
        | None
    ) = None
    word_share: (
        Annotated[float, bounds("Weight of words compared with meaning [.5].", ge=0, le=1)] | None
    ) = None
    prefer_kinds: Annotated[
        tuple[Kind, ...], bounds("Raise the score of memories of these kinds by a quarter.")
    ] = ()
    threshold: Annotated[float, bounds("Minimum score.", ge=0, le=1)] = 0.0
    topic: Annotated[
        str, bounds("Text added before the question in the search by meaning.", max_length=500)
    ] = ""
    fuzzy: Annotated[bool, bounds("Replace misspelt words with the nearest known words.")] = False
    confident: Annotated[bool, bounds("Leave out weak hits and pending candidates.")] = False
    turns: Annotated[int, bounds("Number of session turns to show, too.", ge=0, le=100)] = (
        DEFAULT_TURNS
    )
    session: Annotated[
        str | None,
        bounds("The host's session id. Memories used in one session count as used together."),
    ] = None
    co_recall: Annotated[bool, bounds("Add memories that were used together before.")] = True
    is_prompt: Annotated[bool, bounds("A person typed the text to an agent.")] = False


class HitConfidence(StrEnum):
    """The likelihood that a hit answers the question.

    A ``weak`` hit merely shares words or meaning with the question.
    """

    SURE = "sure"
    LIKELY = "likely"
    WEAK = "weak"


class LaneState(StrEnum):
    """The state of a lane. ``partial`` means that some texts have no vectors yet."""

    RAN = "ran"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    UNAVAILABLE = "unavailable"


@frozen
class Lane:
    """A search method, such as ``lexical`` or ``vector``, and whether it worked."""

    name: str
    state: LaneState
    note: str | None = None


def degraded(lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """Return the search methods that worked only partly or not at all."""
    return tuple(lane for lane in lanes if lane.state in (LaneState.PARTIAL, LaneState.UNAVAILABLE))


@frozen
class Evidence:
    """A message from which a memory was learned, with an excerpt.

    ``seq`` is the position of the message in the session.
    """

    session_id: str
    turn_id: str
    seq: int
    speaker: Speaker
    time: datetime | None
    excerpt: str


@frozen
class MemoryHit:
    """A memory found by recall, with its score from 0 to 1 and its evidence.

    ``candidate``: whether it is a candidate that the user has not reviewed yet.
    ``rank``: position in :attr:`RecallResult.ranked`.
    ``outdated_by``: newer memories that probably contradict it, and rank higher if found.
    ``doubt``: another reason why it might be outdated, such as a change to files that it names.
    ``space``: its space, if several were searched.
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
    rank: int = 0


@frozen
class Quote:
    """An excerpt of another turn in the same session. ``seq`` is the turn's position."""

    seq: int
    speaker: Speaker
    excerpt: str


@frozen
class TurnHit:
    """A turn found by recall, with its session, position and score from 0 to 1.

    ``quotes``: nearby turns that probably answer or settle the question.
    ``doubt``: why it might be outdated.
    ``rank``: position in :attr:`RecallResult.ranked`.
    """

    session: Session
    project: str | None
    turn: Turn
    seq: int
    score: float
    excerpt: str
    components: dict[str, float]
    confidence: HitConfidence
    quotes: tuple[Quote, ...] = ()
    doubt: str | None = None
    rank: int = 0


@frozen
class RecallResult:
    """The answer to a recall query.

    ``lanes``: which search methods worked.
    ``since``, ``until``, ``around``: requested times.
    ``time_words``: words of the query that determined ``since`` and ``until``; such times affect
        only the ranking.
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
        """The requested period as text."""
        ends = (
            f"from {shown_day(self.since)}" if self.since else "",
            f"before {shown_day(self.until)}" if self.until else "",
        )
        return " and ".join(filter(None, ends))

    @property
    def degraded(self) -> tuple[Lane, ...]:
        """The search methods that failed or worked only partly."""
        return degraded(self.lanes)

    @property
    def ranked(self) -> tuple[MemoryHit | TurnHit, ...]:
        """Memories, candidates and turns in one list, best first, with weak hits last."""
        return tuple(
            sorted(
                (*self.hits, *self.turns),
                key=lambda hit: (hit.confidence is HitConfidence.WEAK, hit.rank),
            )
        )

    def best(self, limit: int | None) -> RecallResult:
        """Return a copy that contains only the first ``limit`` hits."""
        best = self.ranked[:limit]
        return replace(
            self,
            hits=tuple(hit for hit in self.hits if hit in best),
            turns=tuple(hit for hit in self.turns if hit in best),
        )

    @property
    def is_answered(self) -> bool:
        """Whether any hit is better than ``weak``."""
        return any(hit.confidence is not HitConfidence.WEAK for hit in self.ranked)


# -- Deep recall ---------------------------------------------------------------


class Route(StrEnum):
    """The memories that a question needs.

    ``none``: no memories. ``owner``: facts about the user. ``project``: memories of a project.
    """

    NONE = "none"
    OWNER = "owner"
    PROJECT = "project"


class DecidedBy(StrEnum):
    """The maker of a decision: a language model, rules, or the caller."""

    MODEL = "model"
    RULES = "rules"
    ASKER = "asker"


@frozen
class EarlierMessage:
    """An earlier message of the conversation."""

    speaker: Speaker
    text: str


@frozen
class Candidate:
    """A project that the question might concern. ``named`` is True if the question mentions it."""

    slug: str
    score: float
    named: bool = False


@frozen
class DeepStep:
    """A decision in a deep recall: ``gate``, ``owner``, ``project`` or ``select``.

    ``problem`` says why the model did not decide.
    """

    name: str
    by: DecidedBy
    outcome: str
    problem: str | None = None


@frozen
class DeepResult:
    """The answer of a deep recall.

    ``context``: text for an agent's prompt, framed as reference data, or empty if nothing was
        found.
    ``clarify``: projects among which the caller must choose before memories are searched.
    ``model``: language model used, or None.
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
    took_ms: float = 0.0

    @property
    def degraded(self) -> tuple[Lane, ...]:
        return degraded(self.lanes)

    @property
    def problem(self) -> str | None:
        """The first problem that occurred, or None."""
        return next((step.problem for step in self.steps if step.problem), None)
