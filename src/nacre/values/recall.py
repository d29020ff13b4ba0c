"""Queries and answers for recall and deep recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
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
    """The lanes that a recall uses.

    ``hybrid``: all lanes. ``lexical``: lanes that need no model. ``vector``: only vectors.
    ``browse``: no lanes; results are sorted by importance and date.
    """

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    VECTOR = "vector"
    BROWSE = "browse"


@frozen
class Filter:
    """Restrictions on results. Empty fields do not restrict.

    ``projects``: allowed projects. Unless ``strict`` is set, their dependencies and memories
    without a project are allowed, too. Dependencies are stated on project pages. ``since``: start
    of the period. ``until``: end of the period, which is excluded. ``scope``: the caller's scope. A
    private request sees everything, and other requests see no turns. ``tools``, ``sessions``: agent
    tools and sessions from which results can come. ``as_of``: day on which memories must have been
    true, even if they are superseded now. ``trusted``: True to exclude results based on external
    text. ``settled``: True to exclude the inbox. The fields from ``kinds`` to ``expiry`` apply only
    to memories.
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
    since: Annotated[datetime | None, bounds("From then on.")] = None
    until: Annotated[datetime | None, bounds("Before then.")] = None
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
    trusted: Annotated[bool, bounds("Leave out everything based on external text.")] = False
    settled: Annotated[bool, bounds("Leave out the inbox.")] = False


@frozen
class RecallQuery:
    """One recall query.

    ``around``: time near which memories must have been recorded. They are at most ``radius_days``
    away, unless the filter sets times. The score uses a Gaussian of sigma ``radius_days / 2``
    instead of recency. Without ``around``, recency counts back from the filter's ``until``, if set.
    ``topic``: text added before embedding. ``boost``: False to rank only by relevance. With
    ``scoring.profile = "agenr"``, relevance is the unscaled cosine similarity. ``word_share``:
    weight of words relative to meaning. ``mmr_lambda``: weight of relevance relative to novelty
    (Carbonell & Goldstein 1998).

    ``threshold``: minimum score. ``confident``: True to omit weak hits and pending candidates.
    ``fuzzy``: True to replace unknown words with the nearest known words. ``update``: False to
    record no usage. ``budget_tokens``: maximum length of the answer. ``turns``: number of session
    turns to add. ``session``: the host's session. Memories used in the same session count as used
    together. ``co_recall``: False to ignore which memories were used together. ``expand``: True if
    a language model adds other phrasings. ``rerank``: True if a language model grades the best
    hits. A language model takes seconds and costs money. ``is_prompt``: True if the text is a
    person's prompt to an agent.
    """

    text: Annotated[str, bounds("A question or keywords.")]
    filter: Annotated[Filter, bounds("The types of results.")] = field(default_factory=Filter)
    mode: Annotated[Mode, bounds("Which lanes.")] = Mode.HYBRID
    limit: Annotated[int, bounds("Memories at most.", ge=0)] = DEFAULT_LIMIT
    around: Annotated[
        datetime | None, bounds("Only memories recorded around that day, nearest first.")
    ] = None
    ignore_time: Annotated[bool, bounds("Ignore times mentioned in the question.")] = False
    radius_days: Annotated[
        float, bounds("With --around: number of days before and after.", gt=0, le=MOST_RADIUS_DAYS)
    ] = DEFAULT_RADIUS_DAYS
    budget_tokens: Annotated[int, bounds("Maximum tokens of the answer.", ge=0)] | None = None
    boost: Annotated[bool, bounds("False: only by relevance.")] = True
    update: Annotated[bool, bounds("Count the hits as used.")] = True
    diversify: Annotated[bool, bounds("Leave out near duplicates.")] = True
    mmr_lambda: (
        Annotated[
            float,
            bounds(
                "Relevance against difference from other hits; 1: only relevance [.7].", ge=0, le=1
            ),
        ]
        | None
    ) = None
    word_share: (
        Annotated[float, bounds("Weight of words against meaning [.5].", ge=0, le=1)] | None
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
        bounds(
            "The session it is for, by the host's own id: what one session uses is used together."
        ),
    ] = None
    co_recall: Annotated[bool, bounds("Add memories that were used together before.")] = True
    expand: Annotated[
        bool, bounds("Let a language model rephrase the question, too; takes seconds.")
    ] = False
    rerank: Annotated[bool, bounds("Let a language model grade the best hits; takes seconds.")] = (
        False
    )
    is_prompt: Annotated[bool, bounds("A person typed the text to an agent.")] = False


class HitConfidence(StrEnum):
    """How likely it is that a hit answers the question.

    A ``weak`` hit only shares words or meaning with the question.
    """

    SURE = "sure"
    LIKELY = "likely"
    WEAK = "weak"


_LEVELS = tuple(HitConfidence)


class LaneState(StrEnum):
    """The state of a search lane. ``partial``: some texts have no vectors yet."""

    RAN = "ran"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    UNAVAILABLE = "unavailable"


@frozen
class Lane:
    """The state of a search step, which is ``lexical``, ``vector`` or ``reranker``."""

    name: str
    state: LaneState
    note: str | None = None


def degraded(lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """Return the lanes that are partial or unavailable."""
    return tuple(lane for lane in lanes if lane.state in (LaneState.PARTIAL, LaneState.UNAVAILABLE))


@frozen
class Evidence:
    """A message that states a memory. ``excerpt``: the words that state it."""

    session_id: str
    turn_id: str
    speaker: Speaker
    time: datetime | None
    excerpt: str


@frozen
class MemoryHit:
    """A memory found by recall, with its score (0 to 1), score components and evidence.

    ``candidate``: True for a pending candidate, which the user can keep or drop. ``outdated_by``:
    newer memories that probably contradict the hit. If recall finds these memories, they come
    before the hit. ``doubt``: another reason why the memory might be outdated, such as a
    contradiction in a later session or a change to files that the memory names. ``space``: name of
    the memory's space, if several were searched.
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


@frozen
class TurnHit:
    """A turn found by recall, with its session, project and score (0 to 1).

    ``then``: excerpt of what follows, by ``then_by``: the agent's last words before the owner's next
    message or, after these words, that message.
    """

    session: Session
    project: str | None
    turn: Turn
    score: float
    excerpt: str
    components: dict[str, float]
    confidence: HitConfidence
    then: str = ""
    then_by: Speaker | None = None


@frozen
class RecallResult:
    """The answer to one query.

    ``hits``, ``turns``: results. They are empty if nothing shares a word or meaning with the query.
    ``lanes``: states of the search steps. ``since``, ``until``, ``around``: requested times.
    ``time_words``: words of the query that determined ``since`` and ``until``. Such times affect
    the ranking but exclude nothing.
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
        """The days from ``since`` to ``until`` as text."""
        ends = (
            f"from {shown_day(self.since)}" if self.since else "",
            f"before {shown_day(self.until)}" if self.until else "",
        )
        return " and ".join(filter(None, ends))

    @property
    def degraded(self) -> tuple[Lane, ...]:
        """The lanes that are partial or unavailable."""
        return degraded(self.lanes)

    @property
    def ranked(self) -> tuple[MemoryHit | TurnHit, ...]:
        """Memories, candidates and turns in one list, best first.

        Results of higher confidence come first. Among results of equal confidence, memories come
        before turns, and turns before candidates. A memory that may be outdated comes after the
        memories that probably replaced it.
        """
        levels = {hit.memory.id: _LEVELS.index(hit.confidence) for hit in self.hits}

        def key(hit: MemoryHit | TurnHit) -> tuple[int, int]:
            if isinstance(hit, TurnHit):
                return _LEVELS.index(hit.confidence), 1
            level = max(levels.get(item, 0) for item in (hit.memory.id, *hit.outdated_by))
            return level, 2 * hit.candidate

        return tuple(sorted((*self.hits, *self.turns), key=key))

    @property
    def is_answered(self) -> bool:
        """True if any hit has a higher confidence than ``weak``."""
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
    """Who made a decision: a language model, rules, or the caller."""

    MODEL = "model"
    RULES = "rules"
    ASKER = "asker"


@frozen
class Said:
    """An earlier message of the conversation."""

    speaker: Speaker
    text: str


@frozen
class Candidate:
    """A project that a question might be about.

    ``named`` is set if the question contains its name.
    """

    slug: str
    score: float
    named: bool = False


@frozen
class DeepStep:
    """One step of a deep recall: ``gate``, ``owner``, ``project`` or ``select``.

    ``by``: who made the decision. ``problem``: reason why the model did not decide.
    """

    name: str
    by: DecidedBy
    outcome: str
    problem: str | None = None


@frozen
class DeepResult:
    """The answer of a deep recall.

    ``context``: block for an agent's prompt, framed as reference data. The block is empty if
    nothing was found. ``clarify``: projects that the question might mean. The caller has to choose
    a project before memories are searched. ``model``: language model used, or None. ``repeated``:
    True if an answer from the last half minute was reused.
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
        return degraded(self.lanes)

    @property
    def problem(self) -> str | None:
        """The first ``problem`` of the steps, if any."""
        return next((step.problem for step in self.steps if step.problem), None)
