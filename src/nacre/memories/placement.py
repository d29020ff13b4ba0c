"""Store new memories, which can supersede older ones, or confirm known memories.

A new memory and the memories it supersedes change atomically.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from nacre.base.link import delivery_file
from nacre.base.text import shorten, title_of, visible, written
from nacre.base.times import day_of
from nacre.errors import EditConflictError
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.location import redact
from nacre.memories.judge import (
    SUPERSEDES,
    Action,
    Comparison,
    Decision,
    Rarity,
    Relation,
    Verdict,
    active_again,
    add_doubt,
    compare,
    mark_ended,
    outranks,
    refusal,
    retired_by,
    standing_for,
    vouches,
    without_doubt,
)
from nacre.values.memory import TRIGGER_TIMES, Confidence, Confirmation, Link, Memory, by_id
from nacre.values.reports import Replaced, StoreOutcome

MOST_CONFIRMATIONS = 20
"""Maximum number of confirmations stored per memory. The latest are kept."""

MERGED = "merged"
"""Front matter key for the model that merged a memory's text, and its reason."""

AMENDED = "amended"
"""Front matter key for the model that amended a memory's text, and its reason."""

_SIMILAR_RELATIONS = frozenset({Relation.RELATED, Relation.DOUBTS})

_SAID_AGAIN = "the other was stated again later"
_MAX_REASON_CHARACTERS = 160
_MAX_CANDIDATES = 12
_MAX_SIMILAR = 3
_MAX_REPLACED = 5


def place(
    change: Change,
    memory: Memory,
    more: Sequence[Memory] = (),
    *,
    by_hand: bool = False,
    touched: set[str] | None = None,
    is_echo: bool = False,
    decision: Decision | None = None,
) -> StoreOutcome:
    """Store a new memory, or confirm a stored memory that says the same thing.

    ``more`` contains additional memories to compare. Set ``by_hand`` if a retired memory may be
    restored, and ``is_echo`` if the agent might only be repeating what it read in nacre. If
    ``touched`` is given, the caller must write the confirmed memories with :func:`write_touched`.
    """
    home = change.home
    repeat = None if is_echo else partial(confirm, change, memory=memory, touched=touched)
    with home.transaction():
        existing = _in_same_words(home, memory)
        retirement = existing.retired if existing else None
        was_undone = existing and existing.was_taken_out and memory.is_owners
        if existing and retirement and was_undone and memory.last_said > retirement.at:
            memory = replace(memory, id=existing.id)
        elif existing and (
            known_outcome := _known_outcome(change, memory, existing, repeat, by_hand=by_hand)
        ):
            return known_outcome
        rule = standing_for(home, memory)
        is_owners_request = by_hand and memory.is_vouched and memory.is_owners
        if rule and not is_owners_request:
            same = home.memories.same_content(memory.content, memory.project)
            retired = retired_by(home, memory, rule)
            if not same:
                change.put([retired])
            return StoreOutcome(
                "retired", same or memory.id, retired.retired.reason if retired.retired else None
            )
        outcome = _compare_and_put(change, memory, more, repeat, decision)
        if rule:
            reason = (
                f"your statement overrides the retirement of {rule.pattern!r} (nacre retire --restore {rule.id[-8:]} "
                "ends it)"
            )
            return replace(outcome, reason=reason)
        return outcome


def _compare_and_put(
    change: Change,
    memory: Memory,
    candidates: Sequence[Memory],
    repeat: Callable[[Memory], None] | None,
    decision: Decision | None,
) -> StoreOutcome:
    home = change.home
    rows = home.comparisons.alike(memory, limit=_MAX_CANDIDATES)
    stored = by_id((*home.memories.by_rows(rows).values(), *candidates))
    present = [other for other in stored.values() if not other.superseded_by]
    comparisons = compare(memory, present, rarity=rarity_of(home))
    repeated = next((comparison for comparison in comparisons if comparison.repeats), None)
    if repeated:
        if repeat:
            repeat(repeated.other)
        return StoreOutcome("known", repeated.other.id, repeated.verdict.reason)
    if decision and not any(
        comparison.replaces or comparison.is_replaced for comparison in comparisons
    ):
        outcome_by_model = _follow(change, memory, decision, comparisons, repeat)
        if outcome_by_model:
            return replace(outcome_by_model, reason=decision.reason, decided_by=decision.by)
    outcome = put(change, memory, comparisons)
    home.comparisons.wait(memory.id)
    if decision and decision.action is Action.ADD:
        return replace(outcome, reason=decision.reason, decided_by=decision.by)
    return outcome


def write_touched(change: Change, touched: set[str]) -> None:
    """Write the file of each confirmed memory once."""
    for memory_id in sorted(touched):
        touched.discard(memory_id)
        memory = change.home.memories.find(memory_id)
        if memory:
            update(change, memory)


def _follow(
    change: Change,
    memory: Memory,
    decision: Decision,
    comparisons: Sequence[Comparison],
    repeat: Callable[[Memory], None] | None,
) -> StoreOutcome | None:
    home = change.home
    target = home.memories.find(decision.target or "")
    if target is None or refusal(decision, memory, target):
        return None
    if decision.action is Action.SKIP:
        if repeat:
            repeat(target)
        return StoreOutcome("known", target.id)
    if decision.action is Action.UPDATE:
        merged = unite(home, target, memory, decision)
        if not update(change, merged):
            return None
        if repeat:
            home.usage.confirm(target.id)
        return StoreOutcome("updated", target.id)
    other_comparisons = [
        comparison for comparison in comparisons if comparison.other.id != target.id
    ]
    if decision.action is Action.AMEND:
        # The new memory supersedes a part of the target. Only its time is recorded there.
        amended = reword(
            home,
            target,
            decision.merged,
            Confirmation(memory.created),
            by=decision.by,
            reason=decision.reason,
        )
        if not update(change, amended):
            return None
    else:
        other_comparisons.insert(
            0, Comparison(target, Verdict(Relation.SUPERSEDES, decision.in_words()), is_later=True)
        )
    outcome = put(change, memory, other_comparisons)
    home.comparisons.wait(memory.id)
    return (
        replace(outcome, amended=home.memories.find(target.id))
        if decision.action is Action.AMEND
        else outcome
    )


def unite(home: Home, target: Memory, memory: Memory, decision: Decision) -> Memory:
    """Return ``target`` with the text that a model merged from both memories.

    The speaker, trust and subject stay the same, and the later date applies.
    """
    is_inferred = Confidence.INFERRED in (target.confidence, memory.confidence)
    merged = replace(
        target,
        content=decision.merged,
        updated=max(memory.updated, target.updated),
        confirmed=_confirmed(target, as_confirmation(memory)),
        tags=tuple(dict.fromkeys((*target.tags, *memory.tags))),
        confidence=Confidence.INFERRED if is_inferred else target.confidence,
        extra={**target.extra, MERGED: {"by": decision.by, "reason": decision.reason}},
    )
    return redact(home.redactor, merged)


def reword(
    home: Home, memory: Memory, words: str, statement: Confirmation, *, by: str, reason: str
) -> Memory:
    """Return a memory with new text, which the model ``by`` wrote.

    The speaker and trust stay the same, and so does a subject not derived from the old text.
    """
    subject = title_of(words) if memory.subject == title_of(memory.content) else memory.subject
    shortened_reason = shorten(home.redactor.clean(visible(reason)), _MAX_REASON_CHARACTERS)
    return redact(
        home.redactor,
        replace(
            memory,
            subject=subject,
            content=words,
            updated=max(memory.updated, statement.at),
            confirmed=_confirmed(memory, statement),
            extra={**memory.extra, AMENDED: {"by": by, "reason": shortened_reason}},
        ),
    )


def as_confirmation(memory: Memory) -> Confirmation:
    """Convert a memory to a confirmation of another memory."""
    return Confirmation(memory.created, memory.source.session, memory.source.turns)


def _confirmed(memory: Memory, added: Confirmation) -> tuple[Confirmation, ...]:
    confirmed = sorted((*memory.confirmed, added), key=lambda confirmation: confirmation.at)
    return tuple(confirmed[-MOST_CONFIRMATIONS:])


def put(change: Change, memory: Memory, comparisons: Sequence[Comparison]) -> StoreOutcome:
    """Write a memory and the resulting changes to other memories."""
    with change.home.transaction():
        newest = min(
            (comparison for comparison in comparisons if comparison.is_replaced),
            key=lambda comparison: comparison.other.last_said,
            default=None,
        )
        successor = Replaced(newest.other, newest.verdict.reason) if newest else None
        if successor:
            memory = mark_ended(memory, successor.memory)
        replaced = [comparison for comparison in comparisons if comparison.replaces][:_MAX_REPLACED]
        replaced_memories = [
            item for comparison in replaced if (item := _replace(change, comparison, memory))
        ]
        links = tuple(Link(SUPERSEDES, item.memory.id, item.reason) for item in replaced_memories)
        memory = replace(memory, links=(*memory.links, *links))
        memory = _with_doubts(
            memory,
            comparisons,
            {item.memory.id for item in replaced_memories},
            is_ended=successor is not None,
        )
        change.put([memory])
        changed = [
            add_doubt(comparison.other, memory.id, comparison.verdict.reason)
            for comparison in comparisons
            if comparison.is_doubted and not successor
        ]
        for other in changed:
            update(change, other)
        if successor:
            _insert_into_history(change, memory, successor)
        updated_by_id = by_id(changed)
        similar = [
            updated_by_id.get(comparison.other.id, comparison.other)
            for comparison in comparisons
            if comparison.verdict.relation in _SIMILAR_RELATIONS
        ]
        return StoreOutcome(
            "stored",
            memory.id,
            supersedes=tuple(replaced_memories),
            superseded_by=successor,
            similar=tuple(similar[:_MAX_SIMILAR]),
        )


def _with_doubts(
    memory: Memory,
    comparisons: Sequence[Comparison],
    replaced_ids: Container[str],
    *,
    is_ended: bool,
) -> Memory:
    for comparison in comparisons:
        if comparison.is_doubted or comparison.other.id in replaced_ids:
            memory = without_doubt(memory, comparison.other.id)
        elif comparison.doubts and not is_ended:
            memory = add_doubt(memory, comparison.other.id, comparison.verdict.reason)
    return memory


def limit_triggers(home: Home, memory: Memory, times: int | None) -> Memory:
    """Return a memory whose triggers end after ``times`` deliveries, or never if ``times`` is 0.

    Restarts the count of deliveries. If ``times`` is ``None``, nothing changes.
    """
    if times is None:
        return memory
    Path(delivery_file(home.settings.home, memory.id)).unlink(missing_ok=True)
    extra = memory.extra | {TRIGGER_TIMES: times}
    if not times:
        del extra[TRIGGER_TIMES]
    return replace(memory, extra=extra)


def confirm(
    change: Change, existing: Memory, memory: Memory, touched: set[str] | None = None
) -> None:
    """Record that a new memory repeats an existing one.

    If ``touched`` is given, the id is added to it, and the file is not written yet.
    """
    home = change.home
    before = existing
    # Stating an expired memory again renews it.
    if existing.expires_on and existing.expires_on <= day_of(memory.created):
        existing = replace(existing, expires_on=memory.expires_on)
    if memory.triggers and memory.is_owners:
        triggers = dict.fromkeys((*existing.triggers, *memory.triggers))
        existing = replace(existing, triggers=tuple(triggers))
        existing = limit_triggers(home, existing, memory.trigger_times or None)
    if existing.is_owners and memory.is_worded and not existing.is_worded:
        existing = existing.as_worded()
    if existing != before:
        update(change, existing)
    source = memory.source
    counted_turns = {(existing.source.session, turn) for turn in existing.source.turns}
    counted_turns |= {
        (confirmation.session, turn)
        for confirmation in existing.confirmed
        for turn in confirmation.turns
    }
    if any((source.session, turn) in counted_turns for turn in source.turns):
        return  # already counted when the turn was first read
    home.usage.confirm(existing.id)
    if not source.session:
        return
    if len(existing.confirmed) == MOST_CONFIRMATIONS and memory.created <= existing.confirmed[0].at:
        return
    existing = replace(existing, confirmed=_confirmed(existing, as_confirmation(memory)))
    if touched is None:
        update(change, existing)
    else:
        home.memories.put(existing)
        touched.add(existing.id)


def _in_same_words(home: Home, memory: Memory) -> Memory | None:
    for project in dict.fromkeys((memory.project, None)):
        existing = home.memories.find(home.memories.same_content(memory.content, project) or "")
        is_relevant = project == memory.project or (
            existing and existing.retired and not existing.was_taken_out
        )
        # Symbols count as text, so "C++" differs from "C".
        if existing and is_relevant and written(existing.content) == written(memory.content):
            return existing
    return None


def _known_outcome(
    change: Change,
    memory: Memory,
    existing: Memory,
    repeat: Callable[[Memory], None] | None,
    *,
    by_hand: bool,
) -> StoreOutcome | None:
    if existing.superseded_by:
        newer = change.home.memories.find(existing.superseded_by)
        if newer and memory.last_said > newer.last_said:
            return None
    elif by_hand if existing.retired else vouches(memory, existing):
        return None
    elif repeat and not existing.retired and memory.is_vouched is existing.is_vouched:
        if existing.inbox and not memory.inbox:  # now stated for all projects
            existing = replace(existing, inbox=False)
            update(change, existing)
        repeat(existing)
        _reverse_doubts(change, existing.id, memory)
    return StoreOutcome("known", existing.id, "the same text is already stored")


def _reverse_doubts(change: Change, known_id: str, memory: Memory) -> None:
    """Mark newer memories as doubtful if they contradict a memory that was stated again."""
    home = change.home
    existing = home.memories.find(known_id)
    doubting = home.memories.in_any_state(
        [doubt.newer for doubt in home.reviews.doubts([known_id])]
    )
    for doubting_memory in doubting:
        is_weaker = vouches(doubting_memory, memory) or outranks(doubting_memory, memory)
        if existing is None or is_weaker or doubting_memory.last_said >= memory.last_said:
            continue
        if existing.last_said < memory.last_said:
            existing = replace(existing, confirmed=_confirmed(existing, as_confirmation(memory)))
        if update(
            change, reversed_memory := add_doubt(existing, doubting_memory.id, _SAID_AGAIN)
        ) and update(change, without_doubt(doubting_memory, known_id)):
            existing = reversed_memory


def rarity_of(home: Home) -> Rarity:
    """Return a test for words that are rare in the home."""

    def count(words: Sequence[str]) -> tuple[int, Sequence[int]]:
        terms = home.turn_search.terms(words)
        corpus = home.turn_search.corpus(terms)
        frequencies = {
            term.word: rows for term, rows in zip(terms, corpus.frequencies, strict=True)
        }
        return corpus.rows, [frequencies.get(word, 0) for word in words]

    return Rarity(count)


def _replace(change: Change, comparison: Comparison, memory: Memory) -> Replaced | None:
    old = mark_ended(comparison.other, memory)
    return Replaced(old, comparison.verdict.reason) if update(change, old) else None


def _insert_into_history(change: Change, memory: Memory, successor: Replaced) -> None:
    newer = successor.memory
    before = [
        other for other in change.home.memories.replaced_by(newer.id) if other.id != memory.id
    ]
    predecessors = [comparison for comparison in compare(memory, before) if comparison.replaces]
    for comparison in predecessors:
        _replace(change, replace(comparison, other=active_again(comparison.other)), memory)
    links = tuple(
        link
        for link in newer.links
        if not any(link.to == comparison.other.id for comparison in predecessors)
    )
    update(change, replace(newer, links=(*links, Link(SUPERSEDES, memory.id, successor.reason))))
    if predecessors:
        links_added = tuple(
            Link(SUPERSEDES, comparison.other.id, comparison.verdict.reason)
            for comparison in predecessors
        )
        update(change, replace(memory, links=(*memory.links, *links_added)))


def update(change: Change, memory: Memory) -> bool:
    """Write a changed memory. Return False if its file is being edited."""
    try:
        change.put([memory])
    except EditConflictError as error:
        change.home.problems.append(error.message)
        return False
    return True
