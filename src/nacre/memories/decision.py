"""Requests about single memories."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from nacre.base.ids import to_ms
from nacre.base.request import Request
from nacre.base.text import excerpt, one_line, shorten, stem, words
from nacre.errors import EmbedderUnavailable, NacreError
from nacre.home.change import Change, part_of
from nacre.home.change import Run as change_Run
from nacre.home.consent import embedder_in_use
from nacre.home.home import Home
from nacre.home.operations import subject_of
from nacre.home.spending import NONE, Answered, Run, ask_all, is_final, model_for, name_for, tracing
from nacre.llm.failures import ask
from nacre.llm.local_model import calibration_of
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
from nacre.memories.placement import await_models, left_of, rarity_of, united
from nacre.memories.vectors import has_vectors, passages
from nacre.protocols import LanguageModel
from nacre.readers import registry
from nacre.values.memory import Expiry, Kind, Memory, Scope, Source, Validity
from nacre.values.models import Step, TraceKind
from nacre.values.recall import Evidence, Filter
from nacre.values.review import Reason
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
    """How a model is asked about new memories.

    ``online`` asks in so many words (or forbids it); left open, it is background work. ``aggressive`` asks about
    memories that are less alike, and shows ten instead of five; left open, the settings tell. ``threshold`` is the
    cosine of the nearest memory from which a model is asked, instead of the calibrated one. ``seconds`` is how long all
    answers together may take; ``None`` waits for each as long as models may take.
    """

    online: bool | None = None
    aggressive: bool | None = None
    threshold: float | None = None
    seconds: float | None = None


class StoreRequest(Request, frozen=True, kw_only=True):
    """One memory to store.

    Without a ``project`` it is that of the ``folder`` where it is said: one that nobody knows yet is made, as for a
    session there. Without a ``speaker`` it is whoever runs nacre: the agent in an agent's shell, else the owner.
    Without a session in its ``source`` it is that agent's, where its host names it. What an agent stores is its
    proposal, unless it has a ``quote`` that the owner typed in that session, and is that sentence, word for word.
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
        """How a model is asked about it."""
        return Asking(self.online_dedup, self.aggressive, self.dedup_threshold)


class EditRequest(Request, frozen=True, kw_only=True, omit_defaults=True):
    """Fields of a memory that change; those that are not given stay as they are."""

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
    """One memory."""

    reference: Reference
    update: Annotated[bool, Meta(description="Count this as a use of the memory.")] = True
    session: HostSession = None


class ReferenceRequest(Request, frozen=True, kw_only=True):
    """One memory."""

    reference: Reference


class ReferencesRequest(Request, frozen=True, kw_only=True):
    """Some memories."""

    references: References


class RetireRequest(Request, frozen=True, kw_only=True):
    """Memories to take out of recall: named by id, subject, or a pattern in which ``*`` stands for any text."""

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
    """Active memories, the newest first."""

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
    """Which memories were used together."""

    reference: Reference | None = None
    limit: Annotated[int, Meta(description="Pairs at most.", ge=1, le=1000)] = 20


# ----------------------------------------------------------------------------
# Ask a language model about new memories of which the rules cannot tell what they are to those that
# are there.
#
# No lock and no transaction is held meanwhile: what is decided is checked again, under the lock, when
# the memory is
# placed (:mod:`nacre.memories.placement`). Where no model may be asked, or it fails or takes too long,
# there is no
# decision, and the rules alone place the memory.


if TYPE_CHECKING:
    Matrix = np.typing.NDArray[np.float32]

_Answer = Answered[Choice] | NacreError | None

AT_ONCE = 4
"""So many questions are asked side by side."""

_SHOWN = 5
_SHOWN_MORE = 10
_BY_WORDS = 12
_BY_MEANING = 48
_TITLE_CHARACTERS = 80


@dataclass
class Decisions:
    """What a model decided, by the new memory's id; how many it was asked about, and why some have no answer."""

    made: dict[str, Decision] = field(default_factory=dict)
    asked: int = 0
    note: str | None = None

    def of(self, memory: Memory) -> Decision | None:
        """The decision about a memory."""
        return self.made.get(memory.id)


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A new memory of which the rules cannot tell what it is to those near to it, the nearest first."""

    memory: Memory
    near: tuple[Memory, ...]


def decisions(home: Home, memories: Iterable[Memory], asking: Asking) -> Decisions:
    """What a model decides about new memories that are about to be placed, in the order in which they will be.

    They are looked at only where a model may be asked. Call it without a lock, and without a transaction. It raises
    nothing that a model does wrong.
    """
    if not may_ask(home, asking):
        return Decisions(note="no language model is set (nacre setup)" if asking.online else None)
    wanted = [memory for memory in memories if not _is_settled(home, memory)]
    if not wanted:
        return Decisions()
    try:
        model = model_for(home, Task.DEDUP, background=not asking.online)
    except NacreError as error:
        return Decisions(note=_note(error))
    if model is None:
        return Decisions()
    try:
        doubtful = list(_doubtful(home, wanted, asking))
        return _decide(home, model, doubtful, asking.seconds) if doubtful else Decisions()
    except EmbedderUnavailable as error:
        is_meant = home.settings.text("embedding.model") == "none" and not asking.online
        return Decisions(note=None if is_meant else _note(error))
    finally:
        model.close()


def weigh(
    home: Home, memories: Sequence[Memory]
) -> Iterable[tuple[Memory, list[Comparison], dict[str, float]]]:
    """Each new memory, how the rules compare it with those near to it, and the cosines of these by id.

    Those before it in ``memories`` count as stored. Raises EmbedderUnavailable.
    """
    meanings = _Meanings(home)
    meanings.make(memories)
    for at, memory in enumerate(memories):
        indexed = meanings.of_index(memory)
        nearest = sorted(indexed, key=lambda row: -indexed[row])[:_BY_MEANING]
        rows = dict.fromkeys((*home.comparisons.alike(memory, limit=_BY_WORDS), *nearest))
        found = home.memories.by_rows(list(rows))
        cosines = {found[row].id: indexed[row] for row in found.keys() & indexed.keys()}
        others = [one for one in (*found.values(), *memories[:at]) if _may_meet(memory, one)]
        meanings.make([one for one in others if one.id not in cosines])
        cosines |= {one.id: meanings.cosine(memory, one) for one in others if one.id not in cosines}
        model, seen = embedder_in_use(home).name, home.vectors.seen()
        yield (
            memory,
            compare(
                memory, others, cosines=cosines, model=model, seen=seen, rarity=rarity_of(home)
            ),
            cosines,
        )


def _doubtful(home: Home, memories: Sequence[Memory], asking: Asking) -> Iterable[Doubtful]:
    is_more = (
        home.settings.flag("dedup.aggressive") if asking.aggressive is None else asking.aggressive
    )
    limits = calibration_of(embedder_in_use(home).name, home.vectors.seen())
    least = _least(home, asking, limits.ask_more if is_more else limits.ask)
    shown = _SHOWN_MORE if is_more else _SHOWN
    becoming = _Becoming()
    for memory, found, cosines in weigh(home, memories):
        if any(one.repeats or one.replaces or one.is_replaced for one in found):
            becoming.judged(memory, found)
            continue  # the rules are sure
        near = [
            one.other
            for one in found
            if cosines[one.other.id] >= least and len(one.other.content) <= LONGEST
        ]
        near.sort(key=lambda one: -cosines[one.id])
        if near:
            yield Doubtful(memory, becoming.all(near)[:shown])


def _least(home: Home, asking: Asking, usual: float) -> float:
    """The cosine from which a model is asked: the call's, else the setting's, else what is usual for the vectors."""
    if asking.threshold is not None:
        return asking.threshold
    return home.settings.number("dedup.threshold") or usual


def may_ask(home: Home, asking: Asking) -> bool:
    """Whether a model is set that decides about new memories, and may be asked."""
    wanted = home.settings.flag("models.background") if asking.online is None else asking.online
    return bool(wanted) and name_for(home, Task.DEDUP) != NONE


def _is_settled(home: Home, memory: Memory) -> bool:
    """Whether the rules know what becomes of a memory without a look at others, or it is too long to be judged."""
    same = home.memories.find(home.memories.same_content(memory.content, memory.project) or "")
    return (
        (same is not None and not same.retired)
        or len(memory.content) > LONGEST
        or standing_for(home, memory) is not None
    )


def _may_meet(memory: Memory, other: Memory) -> bool:
    return other.shares_place(memory) and not (other.superseded_by or other.id == memory.id)


class _Meanings:
    """The vectors of memories, those of the index where they are there, else made on the spot."""

    def __init__(self, home: Home) -> None:
        self._embedder = embedder_in_use(home)
        self._index = home.vectors.of(self._embedder.name)
        self._has_index = has_vectors(home)
        self._own: dict[str, Matrix] = {}

    def make(self, memories: Iterable[Memory]) -> None:
        """Make the vectors of memories that have none here yet."""
        texts = {
            one.id: passages(f"{one.subject}. {one.content[:LONGEST]}")
            for one in memories
            if one.id not in self._own
        }
        if not texts:
            return
        vectors = self._embedder.embed([text for found in texts.values() for text in found])
        at = 0
        for memory_id, found in texts.items():
            self._own[memory_id] = vectors[at : at + len(found)]
            at += len(found)

    def of_index(self, memory: Memory) -> dict[int, float]:
        """The cosines of stored memories whose vectors are in the index, by row."""
        best: dict[int, float] = {}
        for piece in self._own[memory.id] if self._has_index else ():
            for row, cosine in self._index.memory_cosines(piece).items():
                best[row] = max(best.get(row, -1.0), cosine)
        return best

    def cosine(self, one: Memory, other: Memory) -> float:
        """That of the two pieces that are nearest to each other."""
        return float((self._own[one.id] @ self._own[other.id].T).max())


def _decide(
    home: Home, model: LanguageModel, doubtful: Sequence[Doubtful], seconds: float | None
) -> Decisions:
    subject = shorten(doubtful[0].memory.subject, _TITLE_CHARACTERS)
    more = f" and {len(doubtful) - 1:,} more" if len(doubtful) > 1 else ""
    decided = Decisions(asked=len(doubtful))
    with tracing(home, TraceKind.DEDUP, subject + more) as run:
        deciding = _Deciding(home, model, seconds, decided, run)
        for one, answer in zip(doubtful, deciding.ask(doubtful), strict=True):
            deciding.take(one, answer)
        run.outcome = _outcome(decided)
    if seconds is not None and decided.note is None and len(decided.made) < len(doubtful):
        decided.note = (
            f"{model.name} did not answer within {seconds:g} seconds (dedup.model_seconds)"
        )
    return decided


class _Deciding:
    """Answers about new memories, taken in the order in which these are placed.

    All are asked about as things are now. Where what one is about is to be changed by another before it, the answer
    would be void by then: that one is asked about again, as things will be.
    """

    def __init__(
        self, home: Home, model: LanguageModel, seconds: float | None, decided: Decisions, run: Run
    ) -> None:
        longest = home.settings.number("models.timeout_seconds")
        self._home = home
        self._model = model
        self._decided = decided
        self._run = run
        self._until = None if seconds is None else time.monotonic() + seconds
        self._each = longest if seconds is None else min(seconds, longest)
        self._becoming = _Becoming()
        self._is_over = False

    def ask(self, doubtful: Sequence[Doubtful]) -> list[_Answer]:
        """The answers; ``None`` where there is none in time, or nobody to be asked any more."""
        if self._is_over:
            return [None] * len(doubtful)
        questions = [partial(self._choose, one) for one in doubtful]
        left = None if self._until is None else max(0.0, self._until - time.monotonic())
        answers = ask_all(self._home, questions, AT_ONCE, left)
        self._is_over = any(map(is_final, answers))
        return answers

    def take(self, one: Doubtful, answer: _Answer) -> None:
        """Note what was decided, or why nothing was."""
        made = self._made(one, answer)
        target = next((other for other in one.near if made and other.id == made.target), None)
        if target and self._becoming.of(target) != target:
            one = replace(one, near=self._becoming.all(one.near))
            (answer,) = self.ask([one])
            made = self._made(one, answer)
            target = next((other for other in one.near if made and other.id == made.target), None)
        if made is None:
            return
        self._decided.made[one.memory.id] = made
        if target:
            self._becoming.follow(self._home, one.memory, target, made)

    def _choose(self, one: Doubtful) -> Choice:
        return ask(self._model, prompt_for(one.memory, one.near, seconds=self._each), Choice)

    def _made(self, one: Doubtful, answer: _Answer) -> Decision | None:
        if not isinstance(answer, Answered):
            self._decided.note = self._decided.note or (_note(answer) if answer else None)
            told = (
                _step(one, answer.message, "failed")
                if answer
                else _step(one, "not answered", "skipped")
            )
            self._run.add(told)
            return None
        made = decide(answer.value, one.memory, one.near, self._model.name)
        clean = self._home.redactor.clean
        made = replace(made, reason=clean(made.reason), merged=clean(made.merged))
        self._run.add(_step(one, f"{made.action}: {made.reason}"))
        return made


class _Becoming:
    """What memories are to be once those before them are placed: what they are, rewritten, or one in their place."""

    def __init__(self) -> None:
        self._as: dict[str, Memory] = {}

    def of(self, memory: Memory) -> Memory:
        """What a memory is to be."""
        while (after := self._as.get(memory.id)) and after.id != memory.id:
            memory = after
        return after or memory

    def all(self, memories: Iterable[Memory]) -> tuple[Memory, ...]:
        """Each of them once, in their order."""
        return tuple({one.id: one for one in map(self.of, memories)}.values())

    def follow(self, home: Home, memory: Memory, target: Memory, made: Decision) -> None:
        """A decision of a model takes effect."""
        if made.action is Action.SUPERSEDE:
            self._lead(target, memory)
        elif made.action is Action.UPDATE:
            self._as[target.id] = self._as[memory.id] = united(home, target, memory, made)
        elif made.action is Action.AMEND:
            self._as[target.id] = left_of(home, target, memory, made)
        elif made.action is Action.SKIP:
            self._lead(memory, target)

    def judged(self, memory: Memory, found: Sequence[Comparison]) -> None:
        """The rules are sure about a memory and others."""
        gone = [one for one in found if one.repeats] or [one for one in found if one.is_replaced]
        if gone:
            self._lead(memory, gone[0].other)
            return
        for one in found:
            if one.replaces:
                self._lead(one.other, memory)

    def _lead(self, one: Memory, to: Memory) -> None:
        """One is not there any more, and the other is; never in a circle, as that one leads nowhere yet."""
        to = self.of(to)
        if to.id != one.id:
            self._as[one.id] = to


def _step(one: Doubtful, told: str, status: str = "done") -> Step:
    """What became of an answer; that the model was asked is a step of its own, with its time and cost."""
    return Step(
        "decide",
        shorten(one.memory.content, _TITLE_CHARACTERS),
        told,
        status,
        (one.memory.id, *(other.id for other in one.near)),
    )


def _outcome(decided: Decisions) -> str:
    counts = count_by_action(decided.made.values())
    missing = decided.asked - len(decided.made)
    told = [f"{number} {action}" for action, number in counts.items()]
    return ", ".join([*told, f"{missing} without an answer"] if missing else told)


def count_by_action(made: Iterable[Decision]) -> Mapping[str, int]:
    """How many decisions there are of each sort."""
    actions = [one.action for one in made]
    return {action.value: actions.count(action) for action in Action if action in actions}


def _note(error: NacreError) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"{error.message}{hint}"


# ----------------------------------------------------------------------------
# The turns that show a memory.


_CHARACTERS = 240
_CONFIRMATIONS = 2
"""Of a memory that was said again, the latest turns are shown as evidence."""


def evidence_of(home: Home, memory: Memory, characters: int = _CHARACTERS) -> tuple[Evidence, ...]:
    """The turns that show a memory, first and when it was said again, as far as they are in the index; of each this
    many characters, at most.
    """
    said_in = [(memory.source.session, turn) for turn in memory.source.turns]
    said_in += [
        (one.session, turn) for one in memory.confirmed[-_CONFIRMATIONS:] for turn in one.turns
    ]
    evidence = []
    for session_id, turn_id in said_in:
        stored = home.sessions.find_said(session_id, turn_id) if session_id else None
        if stored is None:
            continue
        turn, session = stored.turn, home.sessions.get(stored.session).session
        said = excerpt(turn.text, words(memory.content)[:12], characters, wanted=memory.content)
        evidence.append(Evidence(session.id, turn_id, turn.speaker, turn.time, said))
    return tuple(evidence)


# ----------------------------------------------------------------------------
# Memories read in documents (Markdown, text) that were changed since.


def unsaid(home: Home) -> Iterator[str]:
    """The ids of active memories whose document lost the passage they were read in, and holds their words no more."""
    tools = [one.tool for one in registry.adapters() if one.guesses]
    found = home.reviews.unfounded(tools)
    for memory in home.memories.rows_of(found).values():
        if not _is_said(home, memory):
            yield memory.id


def _is_said(home: Home, memory: Memory) -> bool:
    """Whether every word of a memory stands in its document as it is now."""
    said: set[str] = set()
    for session in home.sessions.find(memory.source.session or ""):
        for item in home.sessions.turns_of(session.row):
            said.update(map(stem, words(item.turn.text)))
    return said.issuperset(map(stem, words(memory.content)))


# ----------------------------------------------------------------------------
# What an agent may do to memories: propose its own, and wish for changes of the owner's.
#
# What an agent stores is proposed: it is found when searched for, is told nobody unasked, and ends
# nothing. It is the
# owner's to keep (``nacre review``) or to say. What the owner said, the owner ends, edits or bars;
# that an agent wants it
# goes into the review queue.


MOST_IMPORTANT = 7
"""The highest importance of what an agent stores."""

MOST_IMPORTANT_QUOTED = 8
"""The highest of what it stores in the owner's words: that of what they asked to remember."""

_DETAIL_CHARACTERS = 300


def as_proposed(memory: Memory) -> Memory:
    """A memory as an agent may store it: importance 7 at most, never ``core``, never for every project."""
    return replace(
        _without_weight(memory, MOST_IMPORTANT),
        speaker=Speaker.AGENT,
        proposed=True,
        inbox=memory.inbox or memory.project is None,
    )


def as_quoted(memory: Memory, source: Source, at: datetime) -> Memory:
    """A memory as an agent may store it in the owner's words, said in a session: how much it weighs, beside what it
    stands and when it is told, they did not say.
    """
    return replace(
        _without_weight(memory, MOST_IMPORTANT_QUOTED),
        speaker=Speaker.OWNER,
        source=source,
        created=min(at, memory.created),
        updated=min(at, memory.updated),
    )


def _without_weight(memory: Memory, most: int) -> Memory:
    return replace(
        memory,
        expiry=Expiry.PERMANENT if memory.expiry is Expiry.CORE else memory.expiry,
        importance=min(most, memory.importance),
        canonical_key=None,
        evergreen=False,
        triggers=(),
    )


def as_agent_may(memory: Memory, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of an agent to a memory of its own: with other words, or more weight, it is a proposal again."""
    if changes.keys() <= {"add_tags", "tags"}:
        return dict(changes)
    wanted = {
        name: value
        for name, value in changes.items()
        if name != "add_tags" and (name, value) != ("project", None)
    }
    after = as_proposed(replace(memory, **wanted))
    tags = {"add_tags": changes["add_tags"]} if "add_tags" in changes else {}
    return {
        **{name: getattr(after, name) for name in wanted},
        **tags,
        "speaker": after.speaker,
        "proposed": True,
    }


def distrust(home: Home, run: change_Run | None, stored: Sequence[tuple[str, str]]) -> None:
    """Demote what agents stored out of text from outside: by session, and the end of the memory's id."""
    found = [
        replace(memory, trust=Trust.UNTRUSTED, proposed=True, speaker=Speaker.AGENT)
        for session, end in stored
        for memory in home.memories.find_like(end)
        if memory.trust is Trust.TRUSTED and memory.source.session in (None, session)
    ]
    if found:
        why = "an agent stored it out of text from outside"
        with part_of(home, run, "distrust", subject=subject_of(found), why=why) as change:
            change.put(found)


def is_owners(memory: Memory) -> bool:
    """Whether a memory is the owner's word."""
    return memory.speaker is Speaker.OWNER


def wish(home: Home, memories: Sequence[Memory], what: str) -> None:
    """Note in the review queue what an agent wants of memories: ``retired``, ``kept out``, other words."""
    agent = home.actor.agent or ""
    detail = shorten(one_line(home.redactor.clean(f"{agent} wants it {what}")), _DETAIL_CHARACTERS)
    with home.database.transaction():
        for memory in memories:
            home.reviews.add(memory.id, Reason.WISH, detail, to_ms(home.now()) or 0, once=True)


def keep(change: Change, memories: Sequence[Memory]) -> None:
    """The owner keeps what agents proposed, or what they nodded to: from now on it is told as what the owner accepts,
    and counts as their word.
    """
    home = change.home
    for one in (one for one in memories if one.proposed or one.as_worded() != one):
        kept = replace(one.as_worded(), proposed=False)
        change.put([kept])
        home.comparisons.wait(kept.id)
        await_models(home, kept, one)
