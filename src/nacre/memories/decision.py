"""Requests about single memories, model decisions about new ones, evidence, and rules for agents."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from nacre.base import ids
from nacre.base.request import Request
from nacre.base.text import excerpt, one_line, shorten, stem, words
from nacre.errors import EmbedderUnavailable, NacreError
from nacre.home import change as home_change
from nacre.home import consent, home, operations
from nacre.home.spending import NONE, Answered, Run, ask_all, is_final, model_for, name_for, tracing
from nacre.llm import failures, local_model
from nacre.memories import placement
from nacre.memories import vectors as memories_vectors
from nacre.memories.judge import (
    LONGEST,
    Action,
    Choice,
    Comparison,
    Decision,
    compare,
    decide,
    prompt_for,
    standing_for,
)
from nacre.protocols import LanguageModel
from nacre.readers import registry
from nacre.values import models, review
from nacre.values.memory import Expiry, Kind, Memory, Scope, Source, Validity
from nacre.values.recall import Evidence, Filter
from nacre.values.session import Speaker, Task, Trust

if TYPE_CHECKING:
    import numpy as np

Content = Annotated[str, Meta(description="One piece of knowledge that stands by itself.")]
Subject = Annotated[str, Meta(description="A title; made from the content where missing.")]
Importance = Annotated[int, Meta(description="1 to 10; 10 is never forgotten.", ge=1, le=10)]
Expected = Annotated[
    str | None,
    Meta(
        description="The etag under which it was read: where the file is another one by now, nothing is written."
    ),
]
KindOfMemory = Annotated[Kind, Meta(description="What sort of knowledge it is.")]
Lasting = Annotated[Expiry, Meta(description="How long it is meant to hold.")]
SeenBy = Annotated[Scope, Meta(description="Who may see it.")]
ExpiresOn = Annotated[
    date | None,
    Meta(
        description="From this day on recall and context leave it out; its file stays. None: never."
    ),
]
Tags = Annotated[tuple[str, ...], Meta(description="Its tags.")]
Triggers = Annotated[
    tuple[str, ...],
    Meta(
        description="Words or phrases: with a prompt that says one of them it is told.",
        max_length=10,
    ),
]
Reference = Annotated[
    str,
    Meta(
        description="A memory's id, 4 or more characters of its beginning or end, or its subject."
    ),
]
References = Annotated[
    tuple[str, ...],
    Meta(description="Memories: their ids, 4 or more characters of these, or their subjects."),
]
HostSession = Annotated[
    str | None,
    Meta(
        description="The session it is for, by the host's own id: what one session uses is used together."
    ),
]
Limit = Annotated[int, Meta(description="Memories at most.", ge=0)]
Offset = Annotated[int, Meta(description="Items to skip.", ge=0)]
Why = Annotated[str | None, Meta(description="Why.")]


@dataclass(frozen=True, slots=True)
class Asking:
    """Options for asking a model about new memories.

    ``online``: explicitly ask (or forbid it). ``None`` makes it background work. ``aggressive``:
    ask about less similar memories and show ten instead of five. ``None`` follows the settings.
    ``threshold``: minimum cosine of the nearest memory, instead of the calibrated one. ``seconds``:
    time limit for all answers together. ``None`` applies only the limit per model call.
    """

    online: bool | None = None
    aggressive: bool | None = None
    threshold: float | None = None
    seconds: float | None = None


class StoreRequest(Request, frozen=True, kw_only=True):
    """A memory to store.

    Without a ``project``, the memory belongs to the project of ``folder``, which is created if it
    is new. Without a ``speaker``, the speaker is the caller: the agent in an agent's shell, else
    the owner. Without a session in ``source``, it is the agent's session if its host names one. A
    memory from an agent is a proposal, unless its ``quote`` is a sentence that the owner typed in
    that session, and equals the content.
    """

    content: Content
    subject: Subject | None = None
    kind: KindOfMemory = Kind.FACT
    importance: Importance = 7
    expiry: Lasting = Expiry.PERMANENT
    expires_on: ExpiresOn = None
    scope: SeenBy = Scope.PRIVATE
    project: Annotated[str | None, Meta(description="The project it belongs to.")] = None
    folder: Annotated[
        str | None, Meta(description="Where it is said: tells the project where none is named.")
    ] = None
    tags: Tags = ()
    triggers: Triggers = ()
    canonical_key: Annotated[
        str | None, Meta(description="A canonical key: one memory holds it.")
    ] = None
    speaker: Annotated[
        Speaker | None, Meta(description="Who says it; by default, whoever runs nacre.")
    ] = None
    trust: Annotated[Trust, Meta(description="Whether it draws on text from outside.")] = (
        Trust.TRUSTED
    )
    quote: Annotated[
        str | None,
        Meta(description="For agents: the owner's own sentence, if the content is just that."),
    ] = None
    source: Annotated[
        Source, Meta(description="The session and the turns in which it was said.")
    ] = Source()
    author: Annotated[str | None, Meta(description="The name of who said it.")] = None
    force: Annotated[
        bool, Meta(description="Store it beside whatever says the same or otherwise.")
    ] = False
    online_dedup: Annotated[
        bool | None, Meta(description="Ask a language model where the rules cannot tell; or never.")
    ] = None
    aggressive: Annotated[
        bool | None, Meta(description="Ask about memories that are less alike, too.")
    ] = None
    dedup_threshold: (
        Annotated[float, Meta(description="Ask from this cosine on.", ge=0, le=1)] | None
    ) = None

    @property
    def asking(self) -> Asking:
        """The options for asking a model about it."""
        return Asking(self.online_dedup, self.aggressive, self.dedup_threshold)


class EditRequest(Request, frozen=True, kw_only=True, omit_defaults=True):
    """Changes to a memory. Fields that are not given do not change."""

    reference: Reference
    expected: Expected = None
    subject: Subject | UnsetType = UNSET
    content: Content | UnsetType = UNSET
    kind: KindOfMemory | UnsetType = UNSET
    importance: Importance | UnsetType = UNSET
    expiry: Lasting | UnsetType = UNSET
    expires_on: ExpiresOn | UnsetType = UNSET
    scope: SeenBy | UnsetType = UNSET
    project: Annotated[
        str | UnsetType | None, Meta(description="The project it belongs to; none: everywhere.")
    ] = UNSET
    tags: Annotated[
        tuple[str, ...] | UnsetType, Meta(description="Tags that replace its tags.")
    ] = UNSET
    add_tags: Annotated[
        tuple[str, ...] | UnsetType, Meta(description="Tags beside those it has.")
    ] = UNSET
    triggers: Triggers | UnsetType = UNSET
    valid: Annotated[Validity | UnsetType, Meta(description="When it is true in the world.")] = (
        UNSET
    )
    evergreen: Annotated[
        bool | UnsetType, Meta(description="It does not fade with age, and is never forgotten.")
    ] = UNSET
    suppressed_contexts: Annotated[
        tuple[Literal["session-start", "prompt"], ...] | UnsetType,
        Meta(description="Kinds of context that leave it out; replaces those it has."),
    ] = UNSET


class GetRequest(Request, frozen=True, kw_only=True):
    """A memory to return."""

    reference: Reference
    update: Annotated[bool, Meta(description="Count this as a use of the memory.")] = True
    session: HostSession = None


class ReferenceRequest(Request, frozen=True, kw_only=True):
    """A memory."""

    reference: Reference


class ReferencesRequest(Request, frozen=True, kw_only=True):
    """Some memories."""

    references: References


class RetireRequest(Request, frozen=True, kw_only=True):
    """Memories to retire, by id, subject, or pattern with ``*`` for any text."""

    references: References = ()
    subjects: Annotated[
        tuple[str, ...], Meta(description="Also memories about exactly this: never an id.")
    ] = ()
    contains: Annotated[
        tuple[str, ...], Meta(description="Also memories whose subject contains one of these.")
    ] = ()
    like: Annotated[
        tuple[str, ...], Meta(description="Also memories whose subject is nearly one of these.")
    ] = ()
    reason: Why = None
    persist: Annotated[
        bool, Meta(description="Also whatever is stored later under such a subject.")
    ] = False


class ListRequest(Request, frozen=True, kw_only=True):
    """A page of active memories, newest first."""

    filter: Annotated[Filter, Meta(description="Which memories.")] = Filter()
    words: Annotated[
        str,
        Meta(
            description="Only those whose subject, content or tags hold each of these words.",
            max_length=2_000,
        ),
    ] = ""
    limit: Limit = 50
    offset: Offset = 0


class EdgesRequest(Request, frozen=True, kw_only=True):
    """Pairs of memories used together."""

    reference: Reference | None = None
    limit: Annotated[int, Meta(description="Pairs at most.", ge=1, le=1000)] = 20


# -- Decisions by a language model ---------------------------------------------
#
# The model is asked only where the rules are unsure how a new memory relates to the stored ones. No
# lock or transaction is held meanwhile, so the decision is checked again under the lock when the
# memory is placed (:mod:`nacre.memories.placement`). If no model may be asked, or it fails or times
# out, the rules alone place the memory.


if TYPE_CHECKING:
    Matrix = np.typing.NDArray[np.float32]

_Answer = Answered[Choice] | NacreError | None

AT_ONCE = 4
"""Maximum concurrent questions."""

_MAX_NEAR = 5
_MAX_NEAR_AGGRESSIVE = 10
_MAX_BY_WORDS = 12
_MAX_BY_MEANING = 48
_MAX_TITLE_CHARACTERS = 80


@dataclass
class Decisions:
    """A model's decisions by the new memory's id, the number of memories asked about, and why some have no answer."""

    made: dict[str, Decision] = field(default_factory=dict)
    asked: int = 0
    note: str | None = None

    def of(self, memory: Memory) -> Decision | None:
        """Return the decision about a memory, if any."""
        return self.made.get(memory.id)


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A new memory that the rules cannot place, and the stored ones close to it, nearest first."""

    memory: Memory
    near: tuple[Memory, ...]


def decisions(home: home.Home, memories: Iterable[Memory], asking: Asking) -> Decisions:
    """Return a model's decisions about new memories that are about to be placed, in the given order.

    Call it without a lock or a transaction. Failures of the model are reported in ``note``.
    """
    if not may_ask(home, asking):
        return Decisions(note="no language model is set (nacre setup)" if asking.online else None)
    undecided = [memory for memory in memories if not _is_settled(home, memory)]
    if not undecided:
        return Decisions()
    try:
        model = model_for(home, Task.DEDUP, background=not asking.online)
    except NacreError as error:
        return Decisions(note=_note(error))
    if model is None:
        return Decisions()
    try:
        doubtful = list(_doubtful(home, undecided, asking))
        return _decide(home, model, doubtful, asking.seconds) if doubtful else Decisions()
    except EmbedderUnavailable as error:
        is_expected = home.settings.text("embedding.model") == "none" and not asking.online
        return Decisions(note=None if is_expected else _note(error))
    finally:
        model.close()


def weigh(
    home: home.Home, memories: Sequence[Memory]
) -> Iterable[tuple[Memory, list[Comparison], dict[str, float]]]:
    """Yield each new memory, its comparisons with similar ones according to the rules, and their cosines by id.

    Earlier items of ``memories`` count as stored. Raises EmbedderUnavailable.
    """
    vectors = _Vectors(home)
    vectors.make(memories)
    for at, memory in enumerate(memories):
        cosines_by_row = vectors.of_index(memory)
        nearest = sorted(cosines_by_row, key=lambda row: -cosines_by_row[row])[:_MAX_BY_MEANING]
        rows = dict.fromkeys((*home.comparisons.alike(memory, limit=_MAX_BY_WORDS), *nearest))
        stored = home.memories.by_rows(list(rows))
        cosines = {
            stored[row].id: cosines_by_row[row] for row in stored.keys() & cosines_by_row.keys()
        }
        others = [other for other in (*stored.values(), *memories[:at]) if _may_meet(memory, other)]
        vectors.make([other for other in others if other.id not in cosines])
        cosines |= {
            other.id: vectors.cosine(memory, other) for other in others if other.id not in cosines
        }
        model, seen = consent.embedder_in_use(home).name, home.vectors.seen()
        yield (
            memory,
            compare(
                memory,
                others,
                cosines=cosines,
                model=model,
                seen=seen,
                rarity=placement.rarity_of(home),
            ),
            cosines,
        )


def _doubtful(home: home.Home, memories: Sequence[Memory], asking: Asking) -> Iterable[Doubtful]:
    is_aggressive = (
        home.settings.flag("dedup.aggressive") if asking.aggressive is None else asking.aggressive
    )
    limits = local_model.calibration_of(consent.embedder_in_use(home).name, home.vectors.seen())
    min_cosine = _min_cosine(home, asking, limits.ask_more if is_aggressive else limits.ask)
    max_near = _MAX_NEAR_AGGRESSIVE if is_aggressive else _MAX_NEAR
    outcomes = _Outcomes()
    for memory, comparisons, cosines in weigh(home, memories):
        if any(item.repeats or item.replaces or item.is_replaced for item in comparisons):
            outcomes.judged(memory, comparisons)
            continue
        near = [
            item.other
            for item in comparisons
            if cosines[item.other.id] >= min_cosine and len(item.other.content) <= LONGEST
        ]
        near.sort(key=lambda other: -cosines[other.id])
        if near:
            yield Doubtful(memory, outcomes.all(near)[:max_near])


def _min_cosine(home: home.Home, asking: Asking, default: float) -> float:
    """Return the minimum cosine for asking a model: from the call, the setting or the calibration."""
    if asking.threshold is not None:
        return asking.threshold
    return home.settings.number("dedup.threshold") or default


def may_ask(home: home.Home, asking: Asking) -> bool:
    """Return True if a model for new memories is configured and may be called."""
    is_enabled = home.settings.flag("models.background") if asking.online is None else asking.online
    return bool(is_enabled) and name_for(home, Task.DEDUP) != NONE


def _is_settled(home: home.Home, memory: Memory) -> bool:
    """Return True if the rules decide without comparing, or the memory is too long to be judged."""
    same = home.memories.find(home.memories.same_content(memory.content, memory.project) or "")
    return (
        (same is not None and not same.retired)
        or len(memory.content) > LONGEST
        or standing_for(home, memory) is not None
    )


def _may_meet(memory: Memory, other: Memory) -> bool:
    return other.shares_place(memory) and not (other.superseded_by or other.id == memory.id)


class _Vectors:
    """Vectors of memories, from the index or computed on demand."""

    def __init__(self, home: home.Home) -> None:
        self._embedder = consent.embedder_in_use(home)
        self._index = home.vectors.of(self._embedder.name)
        self._has_index = memories_vectors.has_vectors(home)
        self._own: dict[str, Matrix] = {}

    def make(self, memories: Iterable[Memory]) -> None:
        """Compute the missing vectors of some memories."""
        texts = {
            memory.id: memories_vectors.passages(f"{memory.subject}. {memory.content[:LONGEST]}")
            for memory in memories
            if memory.id not in self._own
        }
        if not texts:
            return
        vectors = self._embedder.embed([text for pieces in texts.values() for text in pieces])
        start = 0
        for memory_id, pieces in texts.items():
            self._own[memory_id] = vectors[start : start + len(pieces)]
            start += len(pieces)

    def of_index(self, memory: Memory) -> dict[int, float]:
        """Return the cosines of the stored memories in the index, by row."""
        best: dict[int, float] = {}
        for piece in self._own[memory.id] if self._has_index else ():
            for row, cosine in self._index.memory_cosines(piece).items():
                best[row] = max(best.get(row, -1.0), cosine)
        return best

    def cosine(self, memory: Memory, other: Memory) -> float:
        """Return the highest cosine of any two passages."""
        return float((self._own[memory.id] @ self._own[other.id].T).max())


def _decide(
    home: home.Home, model: LanguageModel, doubtful: Sequence[Doubtful], seconds: float | None
) -> Decisions:
    subject = shorten(doubtful[0].memory.subject, _MAX_TITLE_CHARACTERS)
    suffix = f" and {len(doubtful) - 1:,} more" if len(doubtful) > 1 else ""
    result = Decisions(asked=len(doubtful))
    with tracing(home, models.TraceKind.DEDUP, subject + suffix) as run:
        session = _Deciding(home, model, seconds, result, run)
        for item, answer in zip(doubtful, session.ask(doubtful), strict=True):
            session.take(item, answer)
        run.outcome = _outcome(result)
    if seconds is not None and result.note is None and len(result.made) < len(doubtful):
        result.note = (
            f"{model.name} did not answer within {seconds:g} seconds (dedup.model_seconds)"
        )
    return result


class _Deciding:
    """Answers about new memories, in the order in which the memories will be placed.

    All questions describe the present state. If an earlier decision changes the target of a later
    one, that question is asked again with the new state.
    """

    def __init__(
        self,
        home: home.Home,
        model: LanguageModel,
        seconds: float | None,
        result: Decisions,
        run: Run,
    ) -> None:
        longest = home.settings.number("models.timeout_seconds")
        self._home = home
        self._model = model
        self._result = result
        self._run = run
        self._until = None if seconds is None else time.monotonic() + seconds
        self._seconds_each = longest if seconds is None else min(seconds, longest)
        self._outcomes = _Outcomes()
        self._is_over = False

    def ask(self, doubtful: Sequence[Doubtful]) -> list[_Answer]:
        """Return the answers.

        ``None`` means out of time, or that the model is not available any more.
        """
        if self._is_over:
            return [None] * len(doubtful)
        questions = [partial(self._choose, item) for item in doubtful]
        seconds = None if self._until is None else max(0.0, self._until - time.monotonic())
        answers = ask_all(self._home, questions, AT_ONCE, seconds)
        self._is_over = any(map(is_final, answers))
        return answers

    def take(self, item: Doubtful, answer: _Answer) -> None:
        """Record a decision, or the reason for its absence."""
        decision = self._made(item, answer)
        target = next(
            (other for other in item.near if decision and other.id == decision.target), None
        )
        if target and self._outcomes.of(target) != target:
            item = replace(item, near=self._outcomes.all(item.near))
            (answer,) = self.ask([item])
            decision = self._made(item, answer)
            target = next(
                (other for other in item.near if decision and other.id == decision.target), None
            )
        if decision is None:
            return
        self._result.made[item.memory.id] = decision
        if target:
            self._outcomes.follow(self._home, item.memory, target, decision)

    def _choose(self, item: Doubtful) -> Choice:
        return failures.ask(
            self._model, prompt_for(item.memory, item.near, seconds=self._seconds_each), Choice
        )

    def _made(self, item: Doubtful, answer: _Answer) -> Decision | None:
        if not isinstance(answer, Answered):
            self._result.note = self._result.note or (_note(answer) if answer else None)
            step = (
                _step(item, answer.message, "failed")
                if answer
                else _step(item, "not answered", "skipped")
            )
            self._run.add(step)
            return None
        decision = decide(answer.value, item.memory, item.near, self._model.name)
        clean = self._home.redactor.clean
        decision = replace(decision, reason=clean(decision.reason), merged=clean(decision.merged))
        self._run.add(_step(item, f"{decision.action}: {decision.reason}"))
        return decision


class _Outcomes:
    """The future state of memories once earlier ones are placed: unchanged, rewritten or replaced."""

    def __init__(self) -> None:
        self._as: dict[str, Memory] = {}

    def of(self, memory: Memory) -> Memory:
        """Return the future state of a memory."""
        while (after := self._as.get(memory.id)) and after.id != memory.id:
            memory = after
        return after or memory

    def all(self, memories: Iterable[Memory]) -> tuple[Memory, ...]:
        """Return the distinct future states of some memories, in order."""
        return tuple({memory.id: memory for memory in map(self.of, memories)}.values())

    def follow(self, home: home.Home, memory: Memory, target: Memory, decision: Decision) -> None:
        """Apply a model's decision."""
        if decision.action is Action.SUPERSEDE:
            self._lead(target, memory)
        elif decision.action is Action.UPDATE:
            self._as[target.id] = self._as[memory.id] = placement.united(
                home, target, memory, decision
            )
        elif decision.action is Action.AMEND:
            self._as[target.id] = placement.left_of(home, target, memory, decision)
        elif decision.action is Action.SKIP:
            self._lead(memory, target)

    def judged(self, memory: Memory, comparisons: Sequence[Comparison]) -> None:
        """Apply the rules' comparisons of a memory."""
        covering = [comparison for comparison in comparisons if comparison.repeats] or [
            comparison for comparison in comparisons if comparison.is_replaced
        ]
        if covering:
            self._lead(memory, covering[0].other)
            return
        for comparison in comparisons:
            if comparison.replaces:
                self._lead(comparison.other, memory)

    def _lead(self, memory: Memory, to: Memory) -> None:
        """Replace a memory by another. A circle is impossible, because ``to`` has no successor yet."""
        to = self.of(to)
        if to.id != memory.id:
            self._as[memory.id] = to


def _step(item: Doubtful, output: str, status: str = "done") -> models.Step:
    """Return the step that records an answer. The model call is a separate step with time and cost."""
    return models.Step(
        "decide",
        shorten(item.memory.content, _MAX_TITLE_CHARACTERS),
        output,
        status,
        (item.memory.id, *(other.id for other in item.near)),
    )


def _outcome(result: Decisions) -> str:
    counts = count_by_action(result.made.values())
    missing = result.asked - len(result.made)
    parts = [f"{number} {action}" for action, number in counts.items()]
    return ", ".join([*parts, f"{missing} without an answer"] if missing else parts)


def count_by_action(made: Iterable[Decision]) -> Mapping[str, int]:
    """Return the number of decisions per action."""
    actions = [decision.action for decision in made]
    return {action.value: actions.count(action) for action in Action if action in actions}


def _note(error: NacreError) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"{error.message}{hint}"


# -- Evidence ------------------------------------------------------------------


_MAX_EVIDENCE_CHARACTERS = 240
_MAX_CONFIRMATIONS = 2
"""Number of latest confirmations whose turns are shown as evidence."""


def evidence_of(
    home: home.Home, memory: Memory, characters: int = _MAX_EVIDENCE_CHARACTERS
) -> tuple[Evidence, ...]:
    """Return the indexed turns in which a memory was stated or confirmed, each at most ``characters`` long."""
    sources = [(memory.source.session, turn) for turn in memory.source.turns]
    sources += [
        (confirmation.session, turn)
        for confirmation in memory.confirmed[-_MAX_CONFIRMATIONS:]
        for turn in confirmation.turns
    ]
    evidence = []
    for session_id, turn_id in sources:
        stored = home.sessions.find_said(session_id, turn_id) if session_id else None
        if stored is None:
            continue
        turn, session = stored.turn, home.sessions.get(stored.session).session
        quote = excerpt(turn.text, words(memory.content)[:12], characters, wanted=memory.content)
        evidence.append(Evidence(session.id, turn_id, turn.speaker, turn.time, quote))
    return tuple(evidence)


# -- Documents that changed after reading --------------------------------------


def unsaid(home: home.Home) -> Iterator[str]:
    """Yield the ids of active memories whose document no longer contains their passage or words."""
    tools = [adapter.tool for adapter in registry.adapters() if adapter.guesses]
    rows = home.reviews.unfounded(tools)
    for memory in home.memories.rows_of(rows).values():
        if not _is_said(home, memory):
            yield memory.id


def _is_said(home: home.Home, memory: Memory) -> bool:
    """Return True if the current document contains every word of a memory."""
    stems: set[str] = set()
    for session in home.sessions.find(memory.source.session or ""):
        for item in home.sessions.turns_of(session.row):
            stems.update(map(stem, words(item.turn.text)))
    return stems.issuperset(map(stem, words(memory.content)))


# -- Rules for agents ----------------------------------------------------------
#
# A memory that an agent stores is a proposal: search finds it, but it is not shown unasked and ends
# nothing until the owner keeps it (``nacre review``) or states it. An agent's request to end, edit
# or suppress the owner's memories goes into the review queue.


MOST_IMPORTANT = 7
"""Maximum importance of a memory stored by an agent."""

MOST_IMPORTANT_QUOTED = 8
"""Maximum importance of the owner's words stored by an agent, as for an explicit request to remember.
"""

_MAX_DETAIL_CHARACTERS = 300


def as_proposed(memory: Memory) -> Memory:
    """Return a memory as an agent's proposal: importance 7 at most, not ``core``, not for all projects."""
    return replace(
        _without_weight(memory, MOST_IMPORTANT),
        speaker=Speaker.AGENT,
        proposed=True,
        inbox=memory.inbox or memory.project is None,
    )


def as_quoted(memory: Memory, source: Source, at: datetime) -> Memory:
    """Return a memory as the owner's words quoted by an agent from a session.

    The agent's importance is limited, and its key and triggers are dropped, because the owner did
    not state them.
    """
    return replace(
        _without_weight(memory, MOST_IMPORTANT_QUOTED),
        speaker=Speaker.OWNER,
        source=source,
        created=min(at, memory.created),
        updated=min(at, memory.updated),
    )


def _without_weight(memory: Memory, max_importance: int) -> Memory:
    return replace(
        memory,
        expiry=Expiry.PERMANENT if memory.expiry is Expiry.CORE else memory.expiry,
        importance=min(max_importance, memory.importance),
        canonical_key=None,
        evergreen=False,
        triggers=(),
    )


def as_agent_may(memory: Memory, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent's changes to its own memory.

    New words or more weight make it a proposal again.
    """
    if changes.keys() <= {"add_tags", "tags"}:
        return dict(changes)
    fields = {
        name: value
        for name, value in changes.items()
        if name != "add_tags" and (name, value) != ("project", None)
    }
    after = as_proposed(replace(memory, **fields))
    tags = {"add_tags": changes["add_tags"]} if "add_tags" in changes else {}
    return {
        **{name: getattr(after, name) for name in fields},
        **tags,
        "speaker": after.speaker,
        "proposed": True,
    }


def distrust(
    home: home.Home, run: home_change.Run | None, stored: Sequence[tuple[str, str]]
) -> None:
    """Demote memories that agents stored from external text, given as (session, end of the memory's id)."""
    demoted = [
        replace(memory, trust=Trust.UNTRUSTED, proposed=True, speaker=Speaker.AGENT)
        for session, end in stored
        for memory in home.memories.find_like(end)
        if memory.trust is Trust.TRUSTED and memory.source.session in (None, session)
    ]
    if demoted:
        why = "an agent stored it out of text from outside"
        with home_change.part_of(
            home, run, "distrust", subject=operations.subject_of(demoted), why=why
        ) as change:
            change.put(demoted)


def is_owners(memory: Memory) -> bool:
    """Return True if the owner is the memory's speaker."""
    return memory.speaker is Speaker.OWNER


def wish(home: home.Home, memories: Sequence[Memory], what: str) -> None:
    """Queue an agent's request for review: ``retired``, ``kept out``, or other words."""
    agent = home.actor.agent or ""
    detail = shorten(
        one_line(home.redactor.clean(f"{agent} wants it {what}")), _MAX_DETAIL_CHARACTERS
    )
    with home.database.transaction():
        for memory in memories:
            home.reviews.add(
                memory.id, review.Reason.WISH, detail, ids.to_ms(home.now()) or 0, once=True
            )


def keep(change: home_change.Change, memories: Sequence[Memory]) -> None:
    """Mark memories that agents proposed, or the owner only nodded to, as the owner's words."""
    home = change.home
    for memory in (
        memory for memory in memories if memory.proposed or memory.as_worded() != memory
    ):
        accepted = replace(memory.as_worded(), proposed=False)
        change.put([accepted])
        home.comparisons.wait(accepted.id)
        placement.await_models(home, accepted, memory)
