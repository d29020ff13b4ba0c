"""Requests to settle what waits for a person, and to have it judged."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from nacre.base.ids import to_ms
from nacre.base.locks import FileLock
from nacre.base.request import Request
from nacre.base.text import count, normalise, shorten
from nacre.data.history import JUDGE_LOCK
from nacre.errors import (
    AnswerUnusable,
    BudgetSpent,
    Conflict,
    DepartedError,
    EditConflict,
    InvalidInput,
    ModelRefused,
    ModelUnavailable,
    NacreError,
    NotFound,
    PromptTooLong,
)
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.location import redacted
from nacre.home.spending import (
    Answered,
    ask_all,
    is_final,
    may_judge,
    model_for,
    tracing,
    waits_for_models,
)
from nacre.home.views import Choice, Pair, PendingKind
from nacre.learn.explicit import leans
from nacre.learn.sentences import language_of
from nacre.llm.failures import ask, schema_of
from nacre.memories.compare import (
    Bearing,
    JudgeAnswer,
    Judgement,
    Resolution,
    TodosAnswer,
    finished,
    judge_prompt,
    judgements,
    todos_prompt,
)
from nacre.memories.compare import resolve as compare_resolve
from nacre.memories.decision import Expected
from nacre.memories.edit import catch_up
from nacre.memories.judge import (
    APART,
    SUPERSEDES,
    Action,
    Decision,
    Relation,
    compare,
    doubted,
    ended,
    outranks,
    released,
    without_doubt,
)
from nacre.memories.placement import await_models, place, united
from nacre.memories.store import get, queue_reviews, refuse_broken
from nacre.memories.vectors import embed_memories
from nacre.protocols import LanguageModel
from nacre.review.claims import tell_claim
from nacre.review.judgements import find_departure, is_settled, open_todos, rivals
from nacre.store.review import Due
from nacre.values.memory import DROP, Claim, Confirmation, HeldCandidate, Link, Memory, Retirement
from nacre.values.models import Step, TraceKind
from nacre.values.reports import OnProgress, Progress, StoreOutcome
from nacre.values.review import JudgedPair, Reason, Relates
from nacre.values.session import Speaker, Task, Trust
from nacre.vault import files

Item = Annotated[
    str,
    Meta(
        description="An item: a candidate or a memory by its id, a conflict by the ids of both memories, joined by +, "
        "or of one that is in one conflict only."
    ),
]


class ReviewRequest(Request, frozen=True, kw_only=True):
    """Items in review: conflicts first, then doubts, then candidates, the likeliest first."""

    project: Annotated[str | None, Meta(description="Those of one project.")] = None
    only: Annotated[PendingKind | None, Meta(description="Those of one kind.")] = None
    limit: Annotated[int, Meta(description="Items at most; 0 for all.", ge=0)] = 50
    offset: Annotated[int, Meta(description="Items to skip.", ge=0)] = 0


class ReviewDropRequest(Request, frozen=True, kw_only=True):
    """Drop candidates for good, and retire memories in doubt."""

    references: Annotated[tuple[Item, ...], Meta(description="Items, by their ids.", min_length=1)]
    reason: Annotated[
        str | None, Meta(description="Why memories are retired; that of the review if left out.")
    ] = None


class ReviewKeepRequest(Request, frozen=True, kw_only=True):
    """Keep items: candidates become memories, memories in doubt stay, both memories of a conflict hold."""

    references: Annotated[tuple[Item, ...], Meta(description="Items, by their ids.", min_length=1)]
    content: Annotated[str | None, Meta(description="Keep one item in these words.")] = None
    into: Annotated[
        str | None, Meta(description="Merge one item into this memory, by its id or subject.")
    ] = None
    expected: Expected = None
    anyway: Annotated[
        bool, Meta(description="Keep a candidate although a later statement departs from it.")
    ] = False


class ReviewResolveRequest(Request, frozen=True, kw_only=True):
    """Say which of two memories in conflict holds."""

    reference: Item
    choice: Annotated[Choice, Meta(description="Which one holds.")]
    reason: Annotated[str | None, Meta(description="Why; it is kept in the ledger.")] = None


class ReviewUndoRequest(Request, frozen=True, kw_only=True):
    """Take back the last decision about an item: it waits again."""

    reference: Item


class JudgeWaitingRequest(Request, frozen=True, kw_only=True):
    """Have a model judge the memories that wait."""

    background: Annotated[
        bool, Meta(description="As background work; else what failed is tried at once.")
    ] = True
    seconds: Annotated[
        float | None, Meta(description="Longest time, in seconds; none: until all are judged.")
    ] = None


class EstimateClaimsRequest(Request, frozen=True, kw_only=True):
    """What a backfill of claims would cost."""

    limit: Annotated[int, Meta(description="Memories at most.", ge=1)] | None = None


class BackfillRequest(EstimateClaimsRequest, frozen=True, kw_only=True):
    """Have a model tell what older memories claim."""

    batch_size: Annotated[
        int, Meta(description="Claims that are written together.", ge=1, le=1000)
    ] = 10


class ReflectRequest(Request, frozen=True, kw_only=True):
    """What to ask the owner about memories that nothing connects, or that contradict each other."""

    limit: Annotated[int, Meta(description="Questions at most.", ge=1, le=100)] = 5
    project: Annotated[str | None, Meta(description="About one project only.")] = None


class ReflectAnswerRequest(Request, frozen=True, kw_only=True):
    """The owner's answer to one such question: just one of a link, words, a choice, or to skip it."""

    reference: Annotated[
        str,
        Meta(
            description="Two memories, by their ids joined by +; a link leads from the first to the second."
        ),
    ]
    text: Annotated[
        str | None, Meta(description="What connects them, in a sentence: it becomes a memory.")
    ] = None
    link: Annotated[
        Relates | None, Meta(description="How the first one relates to the second.")
    ] = None
    keep: Annotated[
        Choice | None, Meta(description="Which one holds, of two that contradict each other.")
    ] = None
    skip: Annotated[bool, Meta(description="Do not ask about them again.")] = False
    lesson: Annotated[bool, Meta(description="The sentence is a lesson; else a fact.")] = False


GapReference = Annotated[str, Meta(description="The gap, by its id, or that of any of its cases.")]


class UnansweredRequest(Request, frozen=True, kw_only=True):
    """Questions that nacre was asked and did not answer, grouped by what they ask."""

    days: Annotated[int, Meta(description="Questions of the last days.", ge=1, le=3650)] = 30
    project: Annotated[str | None, Meta(description="Only questions about this project.")] = None
    min_times: Annotated[int, Meta(description="Asked at least this many times.", ge=1)] = 1
    limit: Annotated[int, Meta(description="Gaps at most.", ge=1, le=100)] = 10


class GapRequest(Request, frozen=True, kw_only=True):
    """One gap."""

    reference: GapReference


class GapTodoRequest(GapRequest, frozen=True, kw_only=True):
    """Store a todo to write down what a gap asks."""

    importance: Annotated[int, Meta(description="1 to 10.", ge=1, le=10)] = 6


# ----------------------------------------------------------------------------
# What models and rules say of memories that wait to be judged; nothing is written here.
#
# A few are looked at together. Claims are told first, then what is read of the home is read, and
# models judge all of them
# side by side, so that what comes of it does not hang on which answer was first.


TOGETHER = 6
"""So many memories are looked at together."""

AT_ONCE = 3
"""So many questions are asked side by side."""

BY_RULES = "rules"

A = TypeVar("A")

Models = Callable[[Task], LanguageModel | None]
"""The model of a task, if one is set. Raises ModelRefused."""


@dataclass(frozen=True, slots=True)
class Found:
    """Another memory, how it stands to the one in question, what becomes of the two, and who said so."""

    other: Memory
    judged: Judgement
    outcome: Resolution
    by: str
    is_todo: bool = False


@dataclass(slots=True)
class Looked:
    """A memory as it was when models were asked, and what they said.

    ``is_reworded``: it has other words than those of which its claim was told. ``claim`` is what a model told just now,
    ``is_claimless`` that it claims nothing. ``error`` is why an answer is missing, ``is_partial`` that one about it and
    an earlier one is; ``is_left`` that nobody was asked, as a model was not to be had for another memory.
    """

    memory: Memory
    is_reworded: bool = False
    claim: Claim | None = None
    found: tuple[Found, ...] = ()
    is_claimless: bool = False
    error: NacreError | None = None
    is_partial: bool = False
    is_left: bool = False

    @property
    def is_open(self) -> bool:
        """Whether there is nothing that stands in the way of asking on."""
        return self.error is None and not self.is_left

    @property
    def claiming(self) -> Memory:
        """The memory with its claim."""
        return (
            replace(self.memory, claim=self.claim)
            if self.claim or self.is_claimless
            else self.memory
        )


def look_at(home: Home, looked: Sequence[Looked], models: Models) -> None:
    """Fill in what is said of each memory. Call it without a lock. Raises ModelRefused.

    An earlier one counts as told when a later one is looked at; two of them are judged once.
    """
    with tracing(
        home, TraceKind.CONTRADICTION, ", ".join(one.memory.id for one in looked)
    ) as trace:
        _tell_claims(home, looked, models)
        _judge(home, looked, models)
        for one in looked:
            for found in one.found:
                trace.add(_step(one.memory, found))


def _tell_claims(home: Home, looked: Sequence[Looked], models: Models) -> None:
    """One after another: each is told the entities of those before it, or one thing would get several names."""
    wanted = [one for one in looked if one.memory.claim is None or one.is_reworded]
    model = models(Task.CLAIMS) if wanted else None
    if model is None:
        return
    names: dict[str, None] = {}
    for at, one in enumerate(wanted):
        try:
            one.claim = tell_claim(home, model, one.memory, also_known=tuple(names))
        except (AnswerUnusable, ModelUnavailable, ModelRefused, BudgetSpent) as error:
            one.error = error
            if is_final(error):
                for left in wanted[at + 1 :]:
                    left.is_left = True
                return
            continue
        one.is_claimless = one.claim is None
        names |= {one.claim.entity: None} if one.claim else {}


def _judge(home: Home, looked: Sequence[Looked], models: Models) -> None:
    """Let the rules say what they are sure of, and models the rest."""
    asking = _Asking(home, models)
    for one in looked:
        if one.is_open:
            asking.about_rivals(one)
            asking.about_todos(one)
    asking.ask()


class _Asking:
    """Questions about memories, each an earlier one's or its own, and what waits for their answers."""

    def __init__(self, home: Home, models: Models) -> None:
        self._home = home
        self._models = models
        self._questions: list[tuple[Looked, Callable[[], Sequence[Found]]]] = []
        self._told: list[Memory] = []
        self._pairs: dict[frozenset[str], Looked] = {}
        self._left: list[tuple[Looked, Looked]] = []

    def about_rivals(self, one: Looked) -> None:
        """Those that a memory may be at odds with, but those that an earlier one is asked about with it."""
        memory = one.claiming
        others = rivals(self._home, memory, beside=self._told)
        judge = self._models(Task.CONTRADICTION) if others else None
        one.found = tuple(_by_rules(memory, others, is_alone=judge is None))
        self._told.append(memory)
        settled = {found.other.id for found in one.found}
        open_ = {
            frozenset((memory.id, other.id)): other for other in others if other.id not in settled
        }
        rest = [other for pair, other in open_.items() if pair not in self._pairs]
        self._left += [(one, self._pairs[pair]) for pair in open_ if pair in self._pairs]
        if judge and rest:
            self._pairs.update({pair: one for pair in open_ if pair not in self._pairs})
            self._questions.append((one, partial(_judged, self._home, judge, memory, rest)))

    def about_todos(self, one: Looked) -> None:
        """The todos that a memory may show to be done."""
        candidates = open_todos(self._home, one.memory)
        model = self._models(Task.TODOS) if candidates else None
        if model:
            self._questions.append((one, partial(_finished, model, one.memory, candidates)))

    def ask(self) -> None:
        """Ask all of it; a memory that an earlier one was asked about in vain is to be looked at again."""
        answers = ask_all(self._home, [question for _, question in self._questions], AT_ONCE)
        for (one, _), answer in zip(self._questions, answers, strict=True):
            found = _taken(one, answer)
            one.found += tuple(found or ())
        for later, earlier in self._left:
            later.is_partial = later.is_partial or not earlier.is_open


def _taken(one: Looked, answer: Answered[A] | NacreError | None) -> A | None:
    """An answer; where it is none, why."""
    if isinstance(answer, Answered):
        return answer.value
    one.error = one.error or answer
    one.is_left = one.is_left or answer is None
    return None


def _by_rules(memory: Memory, others: Sequence[Memory], *, is_alone: bool) -> list[Found]:
    """Where two memories claim something of one key, the rules decide first, and no model is asked.

    ``is_alone``: no model judges, so that other values of one key are for a person to settle.
    """
    claim = memory.claim
    same = {
        other.id: other.claim
        for other in others
        if claim and other.claim and other.claim.key == claim.key
    }
    found = []
    for one in compare(memory, [other for other in others if other.id in same]):
        theirs = same[one.other.id]
        if one.verdict.relation is Relation.SUPERSEDES:
            judged = Judgement(Bearing.SUPERSEDES, 1.0, one.verdict.reason)
            found.append(Found(one.other, judged, Resolution.SUPERSEDED, BY_RULES))
        elif is_alone and claim and theirs and normalise(theirs.object) != normalise(claim.object):
            why = f"{claim.key}: {theirs.object} and {claim.object}"
            judged = Judgement(Bearing.CONTRADICTS, min(theirs.confidence, claim.confidence), why)
            found.append(Found(one.other, judged, Resolution.PENDING, BY_RULES))
    return found


def _judged(
    home: Home, model: LanguageModel, memory: Memory, others: Sequence[Memory]
) -> list[Found]:
    prompt = judge_prompt(memory, others, schema_of(JudgeAnswer))
    answer = ask(model, prompt, JudgeAnswer, lambda answer: judgements(answer, len(others)))
    found = judgements(answer, len(others))
    sure = home.settings.number("contradiction.auto_supersede")
    judged = []
    for other, one in zip(others, found, strict=True):
        one = replace(one, explanation=home.redactor.clean(one.explanation))
        earlier, later = in_order(memory, other)
        judged.append(Found(other, one, compare_resolve(earlier, later, one, sure), model.name))
    return judged


def _finished(model: LanguageModel, memory: Memory, candidates: Sequence[Memory]) -> list[Found]:
    """The open todos that the memory shows to be done."""
    answer = ask(model, todos_prompt(memory, candidates, schema_of(TodosAnswer)), TodosAnswer)
    found = []
    for todo, quote in finished(answer, memory, candidates):
        is_ours = memory.is_said_after(todo)
        is_sure = memory.speaker is Speaker.OWNER or todo.speaker is not Speaker.OWNER
        outcome = Resolution.SUPERSEDED if is_sure else Resolution.PENDING
        if is_ours:
            judged = Judgement(Bearing.SUPERSEDES, 1.0, f"done: {quote}")
            found.append(Found(todo, judged, outcome, model.name, is_todo=True))
    return found


def in_order(memory: Memory, other: Memory) -> tuple[Memory, Memory]:
    """Two memories, the one that was said earlier first."""
    return (other, memory) if memory.is_said_after(other) else (memory, other)


def _step(memory: Memory, one: Found) -> Step:
    said = f"{one.judged.bearing.value} ({one.judged.confidence:.2f}): {one.judged.explanation}"
    return Step(
        "judged", one.other.subject, f"{said} → {one.outcome.value}", refs=(memory.id, one.other.id)
    )


# ----------------------------------------------------------------------------
# Merge a memory, or what is to become one, into another as the owner wants it.


_BY = "you"
_REASON = "in review"


def target_of(home: Home, reference: str, memory: Memory) -> Memory:
    """The memory that another one is to be merged into. Raises NotFound, Conflict, MemoryInvalid."""
    target = get(home, reference)
    if target.id == memory.id or not target.is_active:
        why = "the same memory" if target.id == memory.id else "superseded or retired"
        raise Conflict(
            f"{target.subject!r} is {why}", hint="merge it into another memory: nacre list"
        )
    refuse_broken(home, target)
    return target


def words_of_both(target: Memory, memory: Memory) -> str:
    """The words of two memories; those of the first where they hold the second's already."""
    if normalise(memory.content) in normalise(target.content):
        return target.content
    between = "\n\n" if "\n" in target.content + memory.content else " "
    return f"{target.content.rstrip()}{between}{memory.content.strip()}"


def merge_into(change: Change, target: Memory, memory: Memory, content: str | None) -> Memory:
    """Write the target in the words given, or in those of both; the owner answers for it from now on.

    Its subject, its kind and who said it stay; tags and evidence are those of both. Raises InvalidInput, EditConflict.
    """
    home = change.home
    words = (words_of_both(target, memory) if content is None else content).strip()
    if not words:
        raise InvalidInput(
            "a memory needs content", hint="leave the content out to join the words of both"
        )
    merged = united(
        home, target, memory, Decision(Action.UPDATE, _BY, _REASON, target.id, merged=words)
    )
    merged = replace(merged.as_worded(), trust=Trust.TRUSTED, proposed=False, updated=home.now())
    change.put([merged])
    home.usage.confirm(target.id)
    home.comparisons.wait(merged.id)
    await_models(home, merged, target)
    return merged


# ----------------------------------------------------------------------------
# Pairs of memories that cannot both hold, as far as rules or a model can tell: a person settles them.
#
# A pair that waits is a link ``contradicts`` in the newer memory's front matter, whoever drew it: the
# rules that read the
# words, or a model that judged. It survives a rebuild and a sync. What a person decides is in both
# files and in the
# ledger, and can be undone.


RESOLVE = "resolve"
"""What the ledger calls a decision about a conflict."""

_CONTRADICTS = "contradicts"
_SHORTEST_REFERENCE = 4


def pending(home: Home) -> list[Pair]:
    """The pairs that wait for a person, the oldest doubt first."""
    catch_up(home)
    return waiting(home)


def waiting(home: Home) -> list[Pair]:
    """:func:`pending`, where edits by hand have been read."""
    doubts = home.reviews.doubts()
    ids = sorted({memory for doubt in doubts for memory in (doubt.older, doubt.newer)})
    memories = {memory.id: memory for memory in home.memories.in_any_state(ids)}
    judged = home.claims.judged()
    return [
        Pair(
            memories[doubt.older],
            memories[doubt.newer],
            doubt.reason,
            judged.get((doubt.older, doubt.newer)) or judged.get((doubt.newer, doubt.older)),
        )
        for doubt in doubts
    ]


def find(home: Home, reference: str) -> Pair:
    """The pair of two ids joined by ``+``, or of one where it is in one pair only. Raises NotFound, Conflict."""
    ends = [end.strip().lower() for end in reference.split("+")]
    found = []
    if len(ends) <= len(("older", "newer")) and all(
        len(end) >= _SHORTEST_REFERENCE for end in ends
    ):
        found = [pair for pair in pending(home) if all(_is_in(pair, end) for end in ends)]
    if not found:
        raise NotFound(
            f"no conflict is called {reference!r}", hint="nacre review list shows what waits"
        )
    if len(found) > 1:
        names = ", ".join(pair.id for pair in found)
        raise Conflict(f"{reference!r} means several conflicts: {names}", hint="give the id of one")
    return found[0]


def _is_in(pair: Pair, reference: str) -> bool:
    return any(
        memory.id.endswith(reference) or memory.id.startswith(reference)
        for memory in (pair.older, pair.newer)
    )


def resolve(home: Home, pair: Pair, choice: Choice, reason: str | None = None) -> Pair:
    """Settle a pair as a person decided; returns the two memories as they are now.

    ``keep-new``: the newer one takes the older one's place. ``keep-old``: the newer one is retired. ``keep-both``: both
    hold beside each other, and no comparison doubts that again. Raises Conflict where the pair is settled already.
    """
    home.actor.require_owner("nacre review resolve")
    clean = home.redactor.clean(reason) if reason else None
    why = f"{choice.value}: {clean}" if clean else choice.value
    with home.change(RESOLVE, subject=pair.older.subject, why=why) as change:
        catch_up(home)
        return settle(change, pair, choice, clean)


def settle(change: Change, pair: Pair, choice: Choice, reason: str | None = None) -> Pair:
    """:func:`resolve` as part of a change, which has read the edits by hand. The reason holds no secrets."""
    home = change.home
    older, newer = (home.memories.find(memory.id) for memory in (pair.older, pair.newer))
    if older is None or newer is None or not _waits(older, newer):
        raise Conflict(f"conflict {pair.id} is settled already", hint="nacre log tells how")
    older, newer, more = _SETTLE[choice](
        home, without_doubt(older, newer.id), newer, reason or pair.reason
    )
    told = {"reason": reason} if reason else {}
    note = change.entry(RESOLVE, memory=older.id, by=newer.id, choice=choice.value, **told)
    change.put([older, newer, *more], [note])
    _close(change, replace(pair, older=older, newer=newer), choice)
    return replace(pair, older=older, newer=newer)


def _close(change: Change, pair: Pair, choice: Choice) -> None:
    """The pair waits no more, nor does the older one where no other pair keeps it."""
    home = change.home
    judged = home.claims.judged().get((pair.older.id, pair.newer.id))
    with home.database.transaction():
        home.claims.settled(pair.older.id, pair.newer.id)
        has_counted = (
            judged and judged.relation == _CONTRADICTS and not outranks(pair.older, pair.newer)
        )
        if has_counted and choice is not Choice.KEEP_NEW:
            home.claims.uncontradict(pair.older.id)
        if not home.reviews.doubts([pair.older.id]):
            home.reviews.settle(pair.older.id, Reason.CONTRADICTED, to_ms(change.at) or 0)


def _waits(older: Memory, newer: Memory) -> bool:
    if not (older.is_active and newer.is_active):
        return False
    return without_doubt(newer, older.id) != newer


def _keep_new(
    _: Home, older: Memory, newer: Memory, __: str | None
) -> tuple[Memory, Memory, list[Memory]]:
    reason = next((link.reason for link in newer.links if link.to == older.id), None)
    newer = without_doubt(newer, older.id)
    newer = replace(newer, links=(*newer.links, Link(SUPERSEDES, older.id, reason)))
    return ended(older, newer), newer, []


def _keep_old(
    home: Home, older: Memory, newer: Memory, reason: str | None
) -> tuple[Memory, Memory, list[Memory]]:
    said = f"{older.id[-8:]} holds instead" + (f": {reason}" if reason else "")
    retired = replace(without_doubt(newer, older.id), retired=Retirement(home.now(), said))
    return older, retired, [one for one in released(home, [retired]) if one.id != older.id]


def _keep_both(
    _: Home, older: Memory, newer: Memory, __: str | None
) -> tuple[Memory, Memory, list[Memory]]:
    return (
        replace(older, links=(*older.links, Link(APART, newer.id))),
        without_doubt(newer, older.id),
        [],
    )


_SETTLE = {Choice.KEEP_NEW: _keep_new, Choice.KEEP_OLD: _keep_old, Choice.KEEP_BOTH: _keep_both}


# ----------------------------------------------------------------------------
# New memories, judged by a model: what each claims, which others it is at odds with, which todos it
# shows to be done.
#
# They wait in a queue, which a crash or a spent budget leaves as it is. No lock and no transaction is
# held while a model
# is asked; before anything is written, each memory is looked at again, and what changed meanwhile is
# asked anew.


JUDGE = "judge"
"""What the ledger calls an operation of a model that judges."""

MOST_TRIES = 5
"""After so many answers that could not be used, or changes while a model was asked, a memory waits no more."""

_BACKOFF_MS = 60_000
_REFUSED_MS = 3_600_000
_BUDGET_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What was judged: memories that were looked at, claims that were told, memories that were superseded, pairs that
    wait for a person, todos that were done, memories that were given up; how many wait still, and why it stopped early.
    """

    judged: int = 0
    claims: int = 0
    superseded: int = 0
    conflicts: int = 0
    todos: int = 0
    given_up: int = 0
    waiting: int = 0
    note: str | None = None


def judge_waiting(
    home: Home,
    *,
    background: bool = True,
    seconds: float = math.inf,
    on_progress: OnProgress | None = None,
) -> JudgeReport:
    """Judge the memories that wait, the longest waiting first, for so many seconds at most.

    ``background``: nobody asked for it in so many words; else what failed is tried at once. One process at a time does
    it. A model that does not answer, or a budget that is spent, ends it: the rest waits for another time.
    """
    waiting = home.claims.waiting().count
    if not (waits_for_models(home) if background else may_judge(home)):
        return JudgeReport(
            waiting=waiting, note="no language model is set for it" if waiting else None
        )
    lock = FileLock(home.settings.home / JUDGE_LOCK)
    if not lock.acquire():
        return JudgeReport(waiting=waiting, note="another process is at it")
    try:
        catch_up(home)
        run = _Run(home, background, time.monotonic() + seconds, on_progress)
        embed_memories(home)
        if not background:
            home.claims.hurry()
        try:
            run.go()
        finally:
            run.close()
        embed_memories(home)  # what was written anew
    finally:
        lock.release()
    return JudgeReport(**run.counts, waiting=home.claims.waiting().count, note=run.note)


@dataclass
class _Run:
    """Judging that goes on."""

    home: Home
    background: bool
    deadline: float
    on_progress: OnProgress | None
    note: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    models: dict[Task, LanguageModel | None] = field(default_factory=dict)

    def count(self, name: str, by: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + by

    def go(self) -> None:
        """Until nothing is due, time is up or a model fails."""
        total = self.home.claims.waiting().count
        while due := self.home.claims.due(self.now(), TOGETHER):
            if self.note or time.monotonic() >= self.deadline:
                return
            self.some(due)
            if self.on_progress:
                self.on_progress(Progress("judging", self.counts.get("judged", 0), total))

    def now(self) -> int:
        return to_ms(self.home.now()) or 0

    def some(self, due: Sequence[Due]) -> None:
        """A few memories: models are asked about all of them side by side, and what follows is written in order."""
        waiting = {one.memory: one for one in due}
        asked = []
        for one in due:
            memory = self.home.memories.find(one.memory)
            if memory is None or not memory.is_active:
                self.home.claims.done(one.memory)
            else:
                asked.append(Looked(memory, is_reworded=one.reworded))
        try:
            look_at(self.home, asked, self.model)
        except ModelRefused as error:
            self.stop(error.message, _REFUSED_MS)
            return
        for looked in asked:
            self.end(looked, waiting[looked.memory.id].tries)

    def end(self, one: Looked, tries: int) -> None:
        """What was found is written; or the memory is tried again later, or given up."""
        memory_id = one.memory.id
        try:
            if one.error:
                raise one.error
            if one.is_left:
                return
            if self.apply(one):
                self.count("judged")
            elif not one.is_partial:
                self.again(memory_id, tries, "it was changed while a model was asked")
        except (PromptTooLong, AnswerUnusable, EditConflict) as error:
            self.again(memory_id, tries, error.message)
        except ModelUnavailable as error:
            self.stop(error.message, _BACKOFF_MS)
        except BudgetSpent as error:
            self.stop(error.message, _BUDGET_MS)
        except ModelRefused as error:
            self.stop(error.message, _REFUSED_MS)

    def again(self, memory_id: str, tries: int, why: str) -> None:
        """Try a memory again later, unless that was done often enough."""
        if tries + 1 >= MOST_TRIES:
            self.home.claims.done(memory_id)
            self.count("given_up")
            return
        self.home.claims.postpone(memory_id, self.now() + _BACKOFF_MS * 2**tries, why)

    def stop(self, why: str, wait_ms: int) -> None:
        """Leave all that waits for another time."""
        self.note = why
        self.home.claims.postpone_all(self.now() + wait_ms, why)

    def model(self, task: Task) -> LanguageModel | None:
        """The model of a task, opened once."""
        if task not in self.models:
            self.models[task] = model_for(self.home, task, background=self.background)
        return self.models[task]

    def close(self) -> None:
        """Let go of the models."""
        for model in self.models.values():
            if model:
                model.close()

    def apply(self, looked: Looked) -> bool:
        """Write what was found; ``False`` where a memory is not what it was when a model was asked."""
        home = self.home
        with home.change(JUDGE) as change:
            catch_up(home)
            present = home.memories.find(looked.memory.id)
            if present is None or not present.is_active:
                home.claims.done(looked.memory.id)
                return True
            if not _is_as_it_was(looked.memory, present):
                return False
            found = [one for one in looked.found if self.holds(present, one)]
            is_whole = not looked.is_partial and not any(
                self.is_changed(one.other) for one in looked.found
            )
            change.describe(subject=present.subject)
            judgement = _Judgement(change, present, looked.claim, is_claimless=looked.is_claimless)
            with change.transaction():
                for one in sorted(found, key=lambda one: _order(present, one)):
                    judgement.take(one)
                judgement.write()
                if looked.is_claimless:
                    home.claims.claimless(present.id)
                if is_whole:
                    home.claims.done(present.id)
            if judgement.pending:
                queue_reviews(home)
        self.count("claims", int(looked.claim is not None))
        self.count("superseded", judgement.superseded)
        self.count("conflicts", judgement.pending)
        self.count("todos", judgement.todos)
        return is_whole

    def is_changed(self, before: Memory) -> bool:
        """Whether another memory holds still, and is not what it was: then it has to be judged anew."""
        other = self.home.memories.find(before.id)
        holds = other is not None and other.is_active
        return other is not None and holds and not _is_as_it_was(before, other)

    def holds(self, memory: Memory, one: Found) -> bool:
        """Whether the other memory is what it was, and nobody settled the pair meanwhile."""
        other = self.home.memories.find(one.other.id)
        is_open = other is not None and not is_settled(memory, other, self.home.claims.judged())
        return other is not None and is_open and _is_as_it_was(one.other, other)


def _order(memory: Memory, one: Found) -> tuple[bool, bool]:
    """What ends the memory in question comes first: then it ends no other."""
    is_later = in_order(memory, one.other)[1] is memory
    return is_later, one.outcome is not Resolution.SUPERSEDED


def _is_as_it_was(before: Memory, now: Memory) -> bool:
    """Whether nothing of a memory changed that a model saw or that decides; where it was said again does not count."""
    return replace(before, links=(), confirmed=(), claim=None) == replace(
        now, links=(), confirmed=(), claim=None
    )


@dataclass
class _Judgement:
    """What becomes of one memory and others, as they are to be written."""

    change: Change
    memory: Memory
    claim: Claim | None
    is_claimless: bool = False
    others: dict[str, Memory] = field(default_factory=dict)
    entries: list[files.LedgerEntry] = field(default_factory=list)
    kept: list[tuple[Memory, Memory, Found]] = field(default_factory=list)
    calmed: list[tuple[Memory, Memory]] = field(default_factory=list)
    superseded: int = 0
    pending: int = 0
    todos: int = 0

    def take(self, one: Found) -> None:
        """Let one judgement have its effect; once the memory in question is ended, it has none."""
        if self.memory.superseded_by:
            return
        other = self.change.home.memories.find(one.other.id) or one.other
        before = in_order(self.memory, other)
        earlier, later = (
            without_doubt(before[0], before[1].id),
            without_doubt(before[1], before[0].id),
        )
        if one.outcome is Resolution.SUPERSEDED:
            self._end(earlier, later, one)
        elif one.outcome is Resolution.PENDING:
            self._doubt(earlier, later, one)
        elif one.judged.says_both_hold and (earlier, later) != before:
            self._calm(earlier, later, one)

    def _calm(self, earlier: Memory, later: Memory, one: Found) -> None:
        """What the rules doubted holds, as the model sees it."""
        self._set(earlier, later)
        told = {
            "choice": "keep-both",
            "relation": one.judged.bearing.value,
            "confidence": one.judged.confidence,
        }
        self.entries.append(
            self.change.entry(
                RESOLVE,
                memory=earlier.id,
                by=later.id,
                judge=one.by,
                reason=one.judged.explanation,
                **told,
            )
        )
        self.calmed.append((earlier, later))

    def _end(self, earlier: Memory, later: Memory, one: Found) -> None:
        reason = one.judged.explanation or one.judged.bearing.value
        later = replace(later, links=(*later.links, Link(SUPERSEDES, earlier.id, reason)))
        self._set(ended(earlier, later), later)
        self.entries.append(self._entry(earlier, later, one, reason))
        self.superseded += not one.is_todo
        self.todos += one.is_todo

    def _doubt(self, earlier: Memory, later: Memory, one: Found) -> None:
        self._set(
            earlier, doubted(later, earlier.id, one.judged.explanation or one.judged.bearing.value)
        )
        self.kept.append((earlier, later, one))
        self.pending += 1

    def _set(self, *memories: Memory) -> None:
        for memory in memories:
            if memory.id == self.memory.id:
                self.memory = memory
            else:
                self.others[memory.id] = memory

    def _entry(self, earlier: Memory, later: Memory, one: Found, reason: str) -> files.LedgerEntry:
        told: dict[str, Any] = {"reason": reason, "judge": one.by}
        if one.by != BY_RULES:
            told |= {"relation": one.judged.bearing.value, "confidence": one.judged.confidence}
        return self.change.entry("supersede", memory=earlier.id, by=later.id, **told)

    def write(self) -> None:
        """Write all of it."""
        home = self.change.home
        before = {
            memory.id: memory
            for memory in home.memories.in_any_state([self.memory.id, *self.others])
        }
        claiming = replace(
            self.memory, claim=None if self.is_claimless else self.claim or self.memory.claim
        )
        if self.memory == before[self.memory.id] and not (self.is_claimless and self.memory.claim):
            if self.claim:
                self.change.set_claim(claiming)
            changed = []
        else:
            changed = [claiming]
        changed += [memory for memory in self.others.values() if memory != before.get(memory.id)]
        if changed:
            self.change.put(changed, self.entries)
        at = to_ms(home.now()) or 0
        for earlier, later, one in self.kept:
            judged = JudgedPair(one.judged.bearing.value, one.judged.confidence, one.by, None)
            home.claims.keep(earlier.id, later.id, judged, at)
            if one.judged.bearing is Bearing.CONTRADICTS and not outranks(earlier, later):
                home.claims.contradict(earlier.id)
        pairs = [*self.calmed, *((earlier, later) for earlier, later, _ in self.kept)]
        for memory in {memory.id: memory for pair in pairs for memory in pair}:
            if not home.reviews.doubts([memory]):
                home.reviews.settle(memory, Reason.CONTRADICTED, at)
        self.change.explain(self._why())

    def _why(self) -> str | None:
        said = {
            "superseded": self.superseded,
            "in doubt": self.pending,
            "in doubt no more": len(self.calmed),
            "done": self.todos,
            "claim": int(bool(self.claim)),
        }
        return ", ".join(f"{number} {what}" for what, number in said.items() if number) or None


# ----------------------------------------------------------------------------
# Candidates, for a person: what waits, keep it as a memory, drop it for good.


_SUBJECT_CHARACTERS = 60
_LATER_CHARACTERS = 300


def kept_because(candidate: HeldCandidate) -> str:
    """Why an operation wrote what a candidate became."""
    return f"candidate {candidate.memory.id[-8:]} kept in review"


def keep(home: Home, candidate: HeldCandidate, request: ReviewKeepRequest) -> StoreOutcome:
    """Make a candidate a memory, in its own words or in others, or a part of another memory.

    The owner answers for it from now on. Raises NotFound, Conflict, DepartedError unless it is kept ``anyway``, and
    InvalidInput for empty words, or words that depend on what they do not name.
    """
    if request.into is not None:
        return _merged(home, candidate, request.into, request.content)
    memory = redacted(home.redactor, _worded(candidate.memory, request.content))
    if request.content is None and leans(memory.content, language_of(memory.content)):
        raise InvalidInput(
            f"“{memory.content}” depends on something that it does not name",
            hint="name it: nacre review keep ID --content WORDS",
        )
    kept = replace(memory.as_worded(), trust=Trust.TRUSTED, proposed=False)
    if request.anyway:
        kept = replace(kept, confirmed=(*kept.confirmed, Confirmation(home.now())))
    elif later := find_departure(home, kept):
        raise DepartedError(
            f"later, on {later.at.astimezone():%Y-%m-%d}, you said: “{shorten(later.text, _LATER_CHARACTERS)}”",
            hint="drop the candidate, or keep it with --anyway",
        )
    with (
        home.change("keep", subject=kept.subject, why=kept_because(candidate)) as change,
        change.transaction(),
    ):
        outcome = place(change, kept, by_hand=True)
        _settle(change, candidate.memory)
    return outcome


def _merged(home: Home, candidate: HeldCandidate, into: str, content: str | None) -> StoreOutcome:
    """Make a candidate a part of a memory that is there."""
    with home.change("merge", why=kept_because(candidate)) as change:
        catch_up(home)
        target = target_of(home, into, candidate.memory)
        change.describe(subject=target.subject)
        with change.transaction():
            merge_into(change, target, redacted(home.redactor, candidate.memory), content)
            _settle(change, candidate.memory)
    return StoreOutcome("updated", target.id)


def _settle(change: Change, memory: Memory) -> None:
    now = to_ms(change.at) or 0
    change.home.candidates.settle(memory.id, now)
    change.home.candidates.blank(now)


def drop(home: Home, candidates: Sequence[HeldCandidate]) -> list[Memory]:
    """Do away with candidates: what they say is not proposed again. Journal and history hold no word of them."""
    found = [candidate.memory for candidate in candidates]
    with home.change(DROP, subject=count(len(found), "candidate")) as change, change.transaction():
        change.append([change.entry(DROP, candidates=sorted(memory.id for memory in found))])
        for memory in found:
            _settle(change, memory)
    return found


def find_candidates(home: Home, reference: str) -> HeldCandidate | None:
    """A candidate by the beginning or the end of its id. Raises Conflict."""
    found = home.candidates.find(reference.strip())
    if len(found) > 1:
        raise Conflict(f"{reference!r} means several candidates", hint="give more of the id")
    return found[0] if found else None


def _worded(memory: Memory, content: str | None) -> Memory:
    if content is None:
        return memory
    if not content.strip():
        raise InvalidInput(
            "a memory needs content", hint="nacre review drop does away with a candidate"
        )
    subject = shorten(content.strip().rstrip(".。"), _SUBJECT_CHARACTERS)
    return replace(memory, content=content.strip(), subject=subject)
