"""Links in front matter that lead nowhere: the memory at their end is gone for good.

That a target is not in the index proves little: it may be of another home, of a file that nobody can read yet, a page
or an address. So a link is dropped only where the vault itself says what became of its target: the ledger that it was
retired, or a tombstone that it was forgotten; and where no file of it is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from nacre.dream.values import DreamAction, Step
from nacre.home.home import Home
from nacre.values.forgetting import TombstoneKind
from nacre.values.memory import Memory
from nacre.vault import ledger
from nacre.vault.layout import LEDGER

_ID_SHOWN = 8


def orphaned(home: Home, memories: Iterable[Memory]) -> list[Step]:
    """What drops the links of memories that lead to none; the memories stay."""
    linking = [one for one in memories if one.links]
    gone = gone_for_good(home, {link.to for one in linking for link in one.links})
    return [_step(one, gone) for one in linking if any(link.to in gone for link in one.links)]


def _step(memory: Memory, gone: Collection[str]) -> Step:
    dropped = [link for link in memory.links if link.to in gone]
    named = ", ".join(f"{link.rel} {link.to[-_ID_SHOWN:]}" for link in dropped)
    targets = tuple(dict.fromkeys(link.to for link in dropped))
    return Step(DreamAction.UNLINK, (), memory.id, memory.subject, f"nothing is left at the end of {named}", targets)


def gone_for_good(home: Home, memory_ids: Collection[str]) -> frozenset[str]:
    """Those of some ids that were a memory once, and of which no file is left. None while anything is unread."""
    lacking = set(memory_ids) - home.memories.all_ids() if memory_ids else set()
    if not lacking or _is_unread(home):
        return frozenset()
    return frozenset(lacking & _ended(home))


def _is_unread(home: Home) -> bool:
    """Whether the vault may hold memories that the index does not."""
    if home.problems:
        return True
    seen = home.files.seen_now()[0]
    return not home.vault.times().keys() <= seen.keys()


def _ended(home: Home) -> set[str]:
    """The ids that the vault says were retired or forgotten, at any time."""
    found = {one.value for one in home.tombstones.all() if one.kind is TombstoneKind.MEMORY}
    try:
        entries = list(ledger.read(home.vault.read(LEDGER)))
    except FileNotFoundError:
        return found
    for entry in entries:
        if entry.action == "retire":
            several = entry.details.get("memories")
            listed = several if isinstance(several, list) else []
            found.update(one for one in (*listed, entry.details.get("memory")) if isinstance(one, str))
    return found
