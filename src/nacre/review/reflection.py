"""Questions to the owner: how memories stand to each other that nothing connects, and which of two that contradict
each other holds. An answer is a link, a memory, or a decision; links that it makes have ``origin: reflect``.

No model is asked here; a writer may be asked in dreams (:mod:`nacre.dream.relations`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations

from nacre.dedup.comparison import CONTRADICTS
from nacre.dedup.placement import place
from nacre.errors import Conflict, InvalidInput
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.projects import known_or_named
from nacre.memories.requests import StoreRequest
from nacre.memories.scan import catch_up
from nacre.memories.store import get, new_memory
from nacre.memories.usage import fold_usage
from nacre.review.conflicts import pending, resolve, settle
from nacre.review.requests import ReflectAnswerRequest, ReflectRequest
from nacre.text.passages import identifiers
from nacre.values.memory import Kind, Link, Memory
from nacre.values.review import Question, Reflected, Reflection, Relates
from nacre.values.session import Speaker
from nacre.views import Choice, Pair

ORIGIN = "reflect"
"""The origin of the links that answers make."""

_ACTION = "reflect"
_SKIPPED = "reflect.skipped"
_MOST_SKIPPED = 2_000
_SHARED_BY = 4
"""A name that more memories share says little about any two of them."""


def reflect(home: Home, asked: ReflectRequest) -> Reflection:
    """What is most worth asking, each memory once.

    First what contradicts each other, the oldest doubt first. Then what is near in meaning or shares a name without a
    link: what was said and used most first, then the nearest.
    """
    catch_up(home)
    fold_usage(home)
    found = [
        one for one in _not_skipped(home, chain(_contradicting(home), _unconnected(home)))
        if asked.project in (None, one.first.project)
    ]  # fmt: skip
    chosen: list[Question] = []
    used: set[str] = set()
    for one in found:
        if len(chosen) < asked.limit and not {one.first.id, one.second.id} & used:
            chosen.append(one)
            used |= {one.first.id, one.second.id}
    return Reflection(tuple(chosen), len(found))


def unconnected(home: Home) -> list[Question]:
    """All pairs that nothing connects and that the owner did not decline, the one most worth asking about first."""
    return list(_not_skipped(home, _unconnected(home)))


def _not_skipped(home: Home, questions: Iterable[Question]) -> Iterator[Question]:
    skipped = set(_skipped(home))
    return (one for one in questions if _key(one.first, one.second) not in skipped)


def _contradicting(home: Home) -> Iterator[Question]:
    for pair in pending(home):
        yield Question(pair.newer, pair.older, pair.reason or "one of them may be outdated", contradicts=True)


def _unconnected(home: Home) -> list[Question]:
    """Pairs of one place that somebody answers for, near in meaning or with a name in common, and without a link."""
    held = [one for one in home.memories.everything() if one.is_active and one.is_vouched]
    memories = {one.id: one for one in held}
    connected = home.links.connected()
    near = {(one.source, one.target): one.strength for one in home.links.alike()}
    shared = _sharing(held)
    usage = home.usage.of(list(memories))
    uses = {one.id: len(one.confirmed) + (usage[one.id].access_count if one.id in usage else 0) for one in held}
    ranked: dict[tuple[str, str], tuple[int, float, float, Question]] = {}
    for pair in chain(near, shared):
        if pair in connected or any(one not in memories for one in pair):
            continue
        first, second = (memories[one] for one in pair)
        if not first.shares_place(second):
            continue
        if second.is_said_after(first):
            first, second = second, first
        key = _key(first, second)
        names = shared.get(pair) or shared.get((pair[1], pair[0])) or ()
        cosine = max(near.get(pair, 0.0), near.get((pair[1], pair[0]), 0.0))
        why = f"both name {', '.join(names[:3])}" if names else "near in meaning"
        at = first.last_said.timestamp()
        ranked[key] = (uses[first.id] + uses[second.id], cosine, at, Question(first, second, f"{why}; no link"))
    return [one[3] for one in sorted(ranked.values(), key=lambda one: one[:3], reverse=True)]


def _sharing(memories: Sequence[Memory]) -> dict[tuple[str, str], list[str]]:
    """Pairs of memories with the names that both have, and few others: paths, names of code, error codes."""
    named: dict[tuple[str | None, str], list[str]] = defaultdict(list)
    for one in memories:
        for name in {name.lower() for name in identifiers(f"{one.subject} {one.content}")}:
            named[one.project, name].append(one.id)
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (_, name), ids in sorted(named.items(), key=lambda item: item[0][1]):
        for pair in combinations(ids, 2) if len(ids) <= _SHARED_BY else ():
            found[pair].append(name)
    return found


def answer(home: Home, asked: ReflectAnswerRequest) -> Reflected:
    """Do as the owner answers. Raises NotFound, Conflict, InvalidInput, EditConflict."""
    given = [name for name in ("text", "link", "keep", "skip") if getattr(asked, name)]
    if len(given) != 1:
        raise InvalidInput(
            "an answer is a link, a sentence, what to keep, or to skip",
            hint='nacre reflect answer ID --link depends_on, or "a sentence", or --skip',
        )
    catch_up(home)
    first, second = _meant(home, asked.reference)
    if asked.skip:
        home.usage.set_value(_SKIPPED, json.dumps([*_skipped(home), _key(first, second)][-_MOST_SKIPPED:]))
        return Reflected("skipped", first, second)
    pair = _conflict(home, first, second)
    if asked.keep:
        if pair is None:
            raise Conflict("these two are in no conflict", hint="--link contradicts says that they are")
        settled = resolve(home, pair, asked.keep)
        return _reflected("settled", settled, first)
    with home.change(_ACTION, subject=first.subject) as change, change.transaction():
        if asked.link:
            return _linked(change, first, second, asked.link, pair)
        return _said(change, first, second, asked)


def _meant(home: Home, reference: str) -> tuple[Memory, Memory]:
    ends = [one.strip() for one in reference.split("+")]
    if len(ends) != 2 or not all(ends):
        raise InvalidInput(f"{reference!r} names no question", hint="nacre reflect shows ids, as 5f0c2a4d+91d0a4be")
    first, second = (get(home, one) for one in ends)
    if first.id == second.id or not first.shares_place(second):
        raise Conflict("a question is about two memories of one project", hint="nacre reflect shows which")
    gone = next((one for one in (first, second) if not one.is_active), None)
    if gone:
        raise Conflict(f"{gone.subject!r} holds no more", hint=f"nacre show {gone.id[-8:]} tells why")
    return first, second


def _conflict(home: Home, first: Memory, second: Memory) -> Pair | None:
    ids = {first.id, second.id}
    return next((pair for pair in pending(home) if {pair.older.id, pair.newer.id} == ids), None)


def _linked(change: Change, first: Memory, second: Memory, link: Relates, pair: Pair | None) -> Reflected:
    """Draw a link. Who connects what was in doubt says that both hold; a new doubt is the later one's."""
    if link == CONTRADICTS:
        if pair:
            raise Conflict("these two are in doubt already", hint="--keep says which one holds")
        first, second = (second, first) if second.is_said_after(first) else (first, second)
    elif pair:
        pair = settle(change, pair, Choice.KEEP_BOTH)
        both = {one.id: one for one in (pair.older, pair.newer)}
        first, second = both[first.id], both[second.id]
    known = [one for one in first.links if (one.rel, one.to) != (link.value, second.id)]
    first = replace(first, links=(*known, Link(link.value, second.id, origin=ORIGIN)))
    change.put([first])
    return Reflected("linked", first, second)


def _said(change: Change, first: Memory, second: Memory, asked: ReflectAnswerRequest) -> Reflected:
    """Store what the owner says of both, where both hold, with a link to each."""
    home = change.home
    kind = Kind.LESSON if asked.lesson else Kind.FACT
    new = StoreRequest(content=asked.text or "", kind=kind, project=first.project, speaker=Speaker.OWNER)
    links = tuple(Link(Relates.RELATED_TO.value, one.id, origin=ORIGIN) for one in (first, second))
    memory = replace(new_memory(home, new, known_or_named, None), project=first.project, inbox=first.inbox, links=links)
    outcome = place(change, memory, by_hand=True)
    stored = home.memories.find(outcome.memory_id) or memory
    if outcome.action != "stored":
        has = {one.to for one in stored.links} | {stored.id}
        stored = replace(stored, links=(*stored.links, *(one for one in links if one.to not in has)))
        change.put([stored])
    change.explain(outcome.in_words())
    now = [home.memories.find(one.id) or one for one in (first, second)]
    return Reflected("stored", now[0], now[1], stored)


def _reflected(action: str, pair: Pair, first: Memory) -> Reflected:
    is_newer = pair.newer.id == first.id
    return Reflected(action, *((pair.newer, pair.older) if is_newer else (pair.older, pair.newer)))


def _skipped(home: Home) -> list[tuple[str, str]]:
    return [(one, other) for one, other in json.loads(home.usage.value(_SKIPPED) or "[]")]


def _key(first: Memory, second: Memory) -> tuple[str, str]:
    return (min(first.id, second.id), max(first.id, second.id))
