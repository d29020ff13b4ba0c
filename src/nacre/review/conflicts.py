"""Pairs of memories that cannot both hold, as far as rules or a model can tell: a person settles them.

A pair that waits is a link ``contradicts`` in the newer memory's front matter, whoever drew it: the rules that read the
words, or a model that judged. It survives a rebuild and a sync. What a person decides is in both files and in the
ledger, and can be undone.
"""

from __future__ import annotations

from dataclasses import replace

from nacre.dedup.comparison import APART, SUPERSEDES, outranks
from nacre.dedup.supersession import ended, released, without_doubt
from nacre.errors import Conflict, NotFound
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.memories.scan import catch_up
from nacre.platform.ids import to_ms
from nacre.values.memory import Link, Memory, Retirement
from nacre.values.review import Reason
from nacre.views import Choice, Pair

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
            memories[doubt.older], memories[doubt.newer], doubt.reason,
            judged.get((doubt.older, doubt.newer)) or judged.get((doubt.newer, doubt.older)),
        )
        for doubt in doubts
    ]  # fmt: skip


def find(home: Home, reference: str) -> Pair:
    """The pair of two ids joined by ``+``, or of one where it is in one pair only. Raises NotFound, Conflict."""
    ends = [end.strip().lower() for end in reference.split("+")]
    found = []
    if len(ends) <= len(("older", "newer")) and all(len(end) >= _SHORTEST_REFERENCE for end in ends):
        found = [pair for pair in pending(home) if all(_is_in(pair, end) for end in ends)]
    if not found:
        raise NotFound(f"no conflict is called {reference!r}", hint="nacre review list shows what waits")
    if len(found) > 1:
        names = ", ".join(pair.id for pair in found)
        raise Conflict(f"{reference!r} means several conflicts: {names}", hint="give the id of one")
    return found[0]


def _is_in(pair: Pair, reference: str) -> bool:
    return any(memory.id.endswith(reference) or memory.id.startswith(reference) for memory in (pair.older, pair.newer))


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
    older, newer, more = _SETTLE[choice](home, without_doubt(older, newer.id), newer, reason or pair.reason)
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
        has_counted = judged and judged.relation == _CONTRADICTS and not outranks(pair.older, pair.newer)
        if has_counted and choice is not Choice.KEEP_NEW:
            home.claims.uncontradict(pair.older.id)
        if not home.reviews.doubts([pair.older.id]):
            home.reviews.settle(pair.older.id, Reason.CONTRADICTED, to_ms(change.at) or 0)


def _waits(older: Memory, newer: Memory) -> bool:
    if not (older.is_active and newer.is_active):
        return False
    return without_doubt(newer, older.id) != newer


def _keep_new(_: Home, older: Memory, newer: Memory, __: str | None) -> tuple[Memory, Memory, list[Memory]]:
    reason = next((link.reason for link in newer.links if link.to == older.id), None)
    newer = without_doubt(newer, older.id)
    newer = replace(newer, links=(*newer.links, Link(SUPERSEDES, older.id, reason)))
    return ended(older, newer), newer, []


def _keep_old(home: Home, older: Memory, newer: Memory, reason: str | None) -> tuple[Memory, Memory, list[Memory]]:
    said = f"{older.id[-8:]} holds instead" + (f": {reason}" if reason else "")
    retired = replace(without_doubt(newer, older.id), retired=Retirement(home.now(), said))
    return older, retired, [one for one in released(home, [retired]) if one.id != older.id]


def _keep_both(_: Home, older: Memory, newer: Memory, __: str | None) -> tuple[Memory, Memory, list[Memory]]:
    return replace(older, links=(*older.links, Link(APART, newer.id))), without_doubt(newer, older.id), []


_SETTLE = {Choice.KEEP_NEW: _keep_new, Choice.KEEP_OLD: _keep_old, Choice.KEEP_BOTH: _keep_both}
