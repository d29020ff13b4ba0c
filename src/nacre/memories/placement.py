"""Where a new memory belongs among those that are there: known already, in place of another, or beside them.

A new memory and those it supersedes change together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from functools import partial

from nacre.base.ids import to_ms
from nacre.base.text import shorten, title_of, visible, written
from nacre.base.times import day_of
from nacre.errors import EditConflict
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.location import redacted
from nacre.home.spending import waits_for_models
from nacre.memories.judge import (
    SUPERSEDES,
    Action,
    Comparison,
    Decision,
    Rarity,
    Relation,
    Verdict,
    active_again,
    compare,
    doubted,
    ended,
    last_said,
    outranks,
    refusal,
    retired_by,
    standing_for,
    vouches,
    without_doubt,
)
from nacre.values.memory import Confidence, Confirmation, Link, Memory, StandingRetirement
from nacre.values.reports import Replaced, StoreOutcome
from nacre.values.review import Reason
from nacre.values.session import Speaker

MOST_CONFIRMATIONS = 20
"""Of a memory that is said over and over, the latest are kept."""

MERGED = "merged"
"""The front-matter key of a memory whose words a model made of several: which model, and why."""

AMENDED = "amended"
"""The front-matter key of a memory whose words a model brought up to date: which model, and what showed it."""

_SIMILAR_RELATIONS = frozenset({Relation.RELATED, Relation.DOUBTS})

_SAID_AGAIN = "the other was said again since"
_REASON_CHARACTERS = 160
_CANDIDATES = 12
_SIMILAR = 3
_MOST_REPLACED = 5


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
    """Store a memory where it belongs; ``more`` are candidates to compare beside those that share its words.

    What was retired comes back when it is stored ``by_hand``, and not because a session is read that says it. With
    ``touched``, the files of memories that were only said again are left to :func:`write_touched`. An echo
    confirms nothing: an agent may have from nacre what it says. A ``decision`` of a model is followed where the rules
    leave it open, and where what it was about is still as it was.
    """
    with change.home.database.transaction():
        return _place(
            change,
            memory,
            more,
            by_hand=by_hand,
            touched=touched,
            is_echo=is_echo,
            decision=decision,
        )


def _place(
    change: Change,
    memory: Memory,
    more: Sequence[Memory],
    *,
    by_hand: bool,
    touched: set[str] | None,
    is_echo: bool,
    decision: Decision | None,
) -> StoreOutcome:
    home = change.home
    known = _in_same_words(home, memory)
    if known and _is_heard(memory, known):
        memory = replace(memory, id=known.id)
    elif known and (
        same := _known(change, memory, known, by_hand=by_hand, touched=touched, is_echo=is_echo)
    ):
        return same
    rule = standing_for(home, memory)
    is_owners_wish = by_hand and memory.is_vouched and memory.speaker is Speaker.OWNER
    if rule and not is_owners_wish:
        return _retire_at_once(change, memory, rule)
    outcome = _compare_and_put(
        change, memory, more, touched=touched, is_echo=is_echo, decision=decision
    )
    if rule:
        told = f"your word goes before the standing retirement of {rule.pattern!r} (nacre unretire {rule.id[-8:]} ends it)"  # noqa: E501
        return replace(outcome, reason=told)
    return outcome


def _compare_and_put(
    change: Change,
    memory: Memory,
    more: Sequence[Memory],
    *,
    touched: set[str] | None,
    is_echo: bool,
    decision: Decision | None,
) -> StoreOutcome:
    home = change.home
    rows = home.comparisons.alike(memory, limit=_CANDIDATES)
    others = {other.id: other for other in (*home.memories.by_rows(rows).values(), *more)}
    present = [other for other in others.values() if not other.superseded_by]
    found = compare(memory, present, rarity=rarity_of(home))
    again = next((one for one in found if one.repeats), None)
    if again:
        if not is_echo:
            confirm(change, again.other, memory, touched)
        return StoreOutcome("known", again.other.id, again.verdict.reason)
    if decision and not any(one.replaces or one.is_replaced for one in found):
        say_again = None if is_echo else partial(confirm, change, memory=memory, touched=touched)
        followed = _follow(change, memory, decision, found, say_again)
        if followed:
            return replace(followed, reason=decision.reason, decided_by=decision.by)
    outcome = put(change, memory, found)
    home.comparisons.wait(memory.id)
    if outcome.action == "stored" and not outcome.superseded_by:
        await_models(home, memory)
    if decision and decision.action is Action.ADD:
        return replace(outcome, reason=decision.reason, decided_by=decision.by)
    return outcome


def await_models(home: Home, memory: Memory, before: Memory | None = None) -> None:
    """A memory is new, or has new words: where models work in the background, one judges it by and by.

    Given what it was ``before``, one that says the same, in the same place, and as surely, is left alone.
    """
    if (
        memory.is_active
        and (before is None or _says(before) != _says(memory))
        and waits_for_models(home)
    ):
        reworded = (
            before is not None and before.content != memory.content and before.claim == memory.claim
        )
        home.claims.wait(memory.id, to_ms(home.now()) or 0, reworded=reworded)


def _says(memory: Memory) -> tuple[object, ...]:
    """What a judgement of a memory rests on."""
    return (
        memory.content,
        memory.kind,
        memory.project,
        memory.inbox,
        memory.speaker,
        memory.is_vouched,
    )


def write_touched(change: Change, touched: set[str]) -> None:
    """Bring the files of memories that were said again up to the index, each once."""
    for memory_id in sorted(touched):
        touched.discard(memory_id)
        memory = change.home.memories.find(memory_id)
        if memory:
            update(change, memory)


def _follow(
    change: Change,
    memory: Memory,
    decision: Decision,
    found: Sequence[Comparison],
    say_again: Callable[[Memory], None] | None,
) -> StoreOutcome | None:
    """What became of a memory as a model decided; ``None`` where the rules are to place it.

    They are where what was decided about has changed since, or is being edited just now.
    """
    home = change.home
    target = home.memories.find(decision.target or "")
    if target is None or refusal(decision, memory, target):
        return None
    if decision.action is Action.SKIP:
        if say_again:
            say_again(target)
        return StoreOutcome("known", target.id)
    if decision.action is Action.UPDATE:
        merged = united(home, target, memory, decision)
        if not update(change, merged):
            return None
        await_models(home, merged)
        if say_again:
            home.usage.confirm(target.id)
        return StoreOutcome("updated", target.id)
    others = [other for other in found if other.other.id != target.id]
    if decision.action is Action.AMEND:
        if not amend(change, target, left_of(home, target, memory, decision)):
            return None
    else:
        others.insert(
            0, Comparison(target, Verdict(Relation.SUPERSEDES, decision.in_words()), is_later=True)
        )
    outcome = put(change, memory, others)
    home.comparisons.wait(memory.id)
    await_models(home, memory)
    return (
        replace(outcome, amended=home.memories.find(target.id))
        if decision.action is Action.AMEND
        else outcome
    )


def united(home: Home, target: Memory, memory: Memory, decision: Decision) -> Memory:
    """A memory in the words that a model made of it and a new one: who said it, its trust and its name stay.

    It is as old as the later of the two: what is read afterwards and was said after them comes after it.
    """
    is_inferred = Confidence.INFERRED in (target.confidence, memory.confidence)
    merged = replace(
        target,
        content=decision.merged,
        claim=None,
        updated=max(memory.updated, target.updated),
        confirmed=_with(target.confirmed, again_of(memory)),
        tags=tuple(dict.fromkeys((*target.tags, *memory.tags))),
        confidence=Confidence.INFERRED if is_inferred else target.confidence,
        extra={**target.extra, MERGED: {"by": decision.by, "reason": decision.reason}},
    )
    return redacted(home.redactor, merged)


def amend(change: Change, memory: Memory, now: Memory) -> bool:
    """Have a memory be what it is :func:`amended` to; returns whether it is: what a person writes into its file just
    now comes first.
    """
    is_written = update(change, now)
    if is_written:
        await_models(change.home, now, memory)
    return is_written


def amended(
    home: Home, memory: Memory, words: str, shown: Confirmation, *, by: str, reason: str
) -> Memory:
    """A memory that says what it says now, in words that the model ``by`` that name chose, as is ``shown`` somewhere.

    Who said it, its trust and its name stay; a name that was its first words goes with them.
    """
    subject = title_of(words) if memory.subject == title_of(memory.content) else memory.subject
    told = shorten(home.redactor.clean(visible(reason)), _REASON_CHARACTERS)
    return redacted(
        home.redactor,
        replace(
            memory,
            subject=subject,
            content=words,
            claim=None,
            updated=max(memory.updated, shown.at),
            confirmed=_with(memory.confirmed, shown),
            extra={**memory.extra, AMENDED: {"by": by, "reason": told}},
        ),
    )


def left_of(home: Home, target: Memory, memory: Memory, decision: Decision) -> Memory:
    """A memory of which a new one ends a part, in the words that a model left of it. The turn is the new one's own
    evidence, and no more than the time is noted of it.
    """
    return amended(
        home,
        target,
        decision.merged,
        Confirmation(memory.created),
        by=decision.by,
        reason=decision.reason,
    )


def again_of(memory: Memory) -> Confirmation:
    """When and where a memory was said, as it stands beside another one's own."""
    return Confirmation(memory.created, memory.source.session, memory.source.turns)


def _with(confirmed: Sequence[Confirmation], again: Confirmation) -> tuple[Confirmation, ...]:
    return tuple(sorted((*confirmed, again), key=lambda one: one.at)[-MOST_CONFIRMATIONS:])


def put(change: Change, memory: Memory, found: Sequence[Comparison]) -> StoreOutcome:
    """Write a memory, and what its comparisons with others change."""
    with change.home.database.transaction():
        return _put(change, memory, found)


def _put(change: Change, memory: Memory, found: Sequence[Comparison]) -> StoreOutcome:
    newest = min(
        (one for one in found if one.is_replaced),
        key=lambda one: last_said(one.other),
        default=None,
    )
    by = Replaced(newest.other, newest.verdict.reason) if newest else None
    if by:
        memory = ended(memory, by.memory)
    replaced = [one for one in found if one.replaces][:_MOST_REPLACED]
    gone = [done for one in replaced if (done := _replace(change, one, memory))]
    links = tuple(Link(SUPERSEDES, one.memory.id, one.reason) for one in gone)
    memory = replace(memory, links=(*memory.links, *links))
    memory = _with_doubts(memory, found, {one.memory.id for one in gone}, is_ended=by is not None)
    change.put([memory])
    changed = [
        doubted(one.other, memory.id, one.verdict.reason)
        for one in found
        if one.is_doubted and not by
    ]
    for other in changed:
        update(change, other)
    if by:
        _take_into_history(change, memory, by)
    now = {one.id: one for one in changed}
    similar = [
        now.get(one.other.id, one.other)
        for one in found
        if one.verdict.relation in _SIMILAR_RELATIONS
    ]
    return StoreOutcome(
        "stored",
        memory.id,
        supersedes=tuple(gone),
        superseded_by=by,
        similar=tuple(similar[:_SIMILAR]),
    )


def _with_doubts(
    memory: Memory, found: Sequence[Comparison], gone: Container[str], *, is_ended: bool
) -> Memory:
    """A memory with its doubts about others: none about what it replaced, nor about what now doubts it."""
    for one in found:
        if one.is_doubted or one.other.id in gone:
            memory = without_doubt(memory, one.other.id)
        elif one.doubts and not is_ended:
            memory = doubted(memory, one.other.id, one.verdict.reason)
    return memory


def confirm(change: Change, known: Memory, memory: Memory, touched: set[str] | None = None) -> None:
    """A memory was said again: count it, and keep where; in its file at once, or with all that are ``touched``."""
    home = change.home
    if known.expires_on and known.expires_on <= day_of(
        memory.created
    ):  # it is shown again, as it is said now
        known = replace(known, expires_on=memory.expires_on)
        update(change, known)
    if known.speaker is Speaker.OWNER and memory.is_worded and not known.is_worded:
        known = known.as_worded()
        update(change, known)
    source = memory.source
    heard = {(known.source.session, turn) for turn in known.source.turns}
    heard |= {(one.session, turn) for one in known.confirmed for turn in one.turns}
    if any((source.session, turn) in heard for turn in source.turns):
        return  # counted when that turn was read first
    home.usage.confirm(known.id)
    if not source.session:
        return
    if len(known.confirmed) == MOST_CONFIRMATIONS and memory.created <= known.confirmed[0].at:
        return
    known = replace(known, confirmed=_with(known.confirmed, again_of(memory)))
    if touched is None:
        update(change, known)
    else:
        home.memories.put(known)
        touched.add(known.id)


def _in_same_words(home: Home, memory: Memory) -> Memory | None:
    """Return the memory of the same project, in any state, with the same words: a sign makes C++ of C.

    Without one, return a global memory that the owner retired: the words do not come back in a project either.
    """
    for project in dict.fromkeys((memory.project, None)):
        known = home.memories.find(home.memories.same_content(memory.content, project) or "")
        is_wanted = project == memory.project or (
            known and known.retired and not known.was_taken_out
        )
        if known and is_wanted and written(known.content) == written(memory.content):
            return known
    return None


def _is_heard(memory: Memory, known: Memory) -> bool:
    """Whether the owner says again what an undo took out: they did not retire it."""
    if known.retired is None or not known.was_taken_out or memory.speaker is not Speaker.OWNER:
        return False
    return last_said(memory) > known.retired.at


def _known(
    change: Change,
    memory: Memory,
    known: Memory,
    *,
    by_hand: bool,
    touched: set[str] | None,
    is_echo: bool,
) -> StoreOutcome | None:
    """That a memory says what is known in the same words, unless that was superseded before this was said.

    What a trusted source says is not known from an untrusted one, and what an untrusted one says confirms nothing.
    """
    if known.superseded_by:
        newer = change.home.memories.find(known.superseded_by)
        if newer and last_said(memory) > last_said(newer):
            return None
    elif by_hand if known.retired else vouches(memory, known):
        return None
    elif not (known.retired or is_echo) and memory.is_vouched is known.is_vouched:
        if known.inbox and not memory.inbox:  # now somebody says that it holds everywhere
            known = replace(known, inbox=False)
            update(change, known)
        confirm(change, known, memory, touched)
        _turn_doubts(change, known.id, memory)
    return StoreOutcome("known", known.id, "the same words are stored already")


def _turn_doubts(change: Change, known_id: str, memory: Memory) -> None:
    """What was said again in the same words since something doubted it holds: now it doubts the other one.

    So it is not where the one that doubts it is from a trusted source or the owner, and what is said now is not.
    """
    home = change.home
    known = home.memories.find(known_id)
    doubting = home.memories.in_any_state(
        [doubt.newer for doubt in home.reviews.doubts([known_id])]
    )
    for one in doubting:
        is_less = vouches(one, memory) or outranks(one, memory)
        if known is None or is_less or last_said(one) >= last_said(memory):
            continue
        if last_said(known) < last_said(memory):
            known = replace(known, confirmed=_with(known.confirmed, again_of(memory)))
        if update(change, turned := doubted(known, one.id, _SAID_AGAIN)) and update(
            change, without_doubt(one, known_id)
        ):
            known = turned
    if doubting and not home.reviews.doubts([known_id]):
        home.reviews.settle(known_id, Reason.CONTRADICTED, to_ms(home.now()) or 0)


def _retire_at_once(change: Change, memory: Memory, rule: StandingRetirement) -> StoreOutcome:
    """What falls under a standing retirement is kept where retired memories are, once, and changes no other."""
    same = change.home.memories.same_content(memory.content, memory.project)
    retired = retired_by(change.home, memory, rule)
    if not same:
        change.put([retired])
    return StoreOutcome(
        "retired", same or memory.id, retired.retired.reason if retired.retired else None
    )


def rarity_of(home: Home) -> Rarity:
    """Which words are rare in a home's turns."""

    def count(words: Sequence[str]) -> tuple[int, Sequence[int]]:
        terms = home.turn_search.terms(words)
        corpus = home.turn_search.corpus(terms)
        held = {term.word: rows for term, rows in zip(terms, corpus.frequencies, strict=True)}
        return corpus.rows, [held.get(word, 0) for word in words]

    return Rarity(count)


def _replace(change: Change, one: Comparison, memory: Memory) -> Replaced | None:
    old = ended(one.other, memory)
    return Replaced(old, one.verdict.reason) if update(change, old) else None


def _take_into_history(change: Change, memory: Memory, by: Replaced) -> None:
    """A memory that is older than the one in its place: link it there, and let it end what it ended."""
    newer = by.memory
    before = [
        other for other in change.home.memories.replaced_by(newer.id) if other.id != memory.id
    ]
    followed = [one for one in compare(memory, before) if one.replaces]
    for one in followed:
        _replace(change, replace(one, other=active_again(one.other)), memory)
    links = tuple(
        link for link in newer.links if not any(link.to == one.other.id for one in followed)
    )
    update(change, replace(newer, links=(*links, Link(SUPERSEDES, memory.id, by.reason))))
    if followed:
        own = tuple(Link(SUPERSEDES, one.other.id, one.verdict.reason) for one in followed)
        update(change, replace(memory, links=(*memory.links, *own)))


def update(change: Change, memory: Memory) -> bool:
    """Write a changed memory, unless a person is editing its file just now: what they write comes first."""
    try:
        change.put([memory])
    except EditConflict as error:
        change.home.problems.append(error.message)
        return False
    return True
