"""What a dream ended and a person brought back: no dream ends it again.

A memory that holds although the ledger says that a dream ended it came back since, by undo, by ``unretire``, by hand,
or because what superseded it was retired: the owner has the last word. The ledger knows it after a rebuild, and on
every machine that shares the vault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nacre.home.home import Home
from nacre.values.memory import Memory
from nacre.vault import ledger
from nacre.vault.layout import LEDGER

DREAM = "dream"
ENDED = "ended"
"""What the ledger calls a dream, and there the ids of the memories that it ended."""

_ENTRY = re.compile(rb'"action": ?"dream"')


def may_end(home: Home, memories: Iterable[Memory]) -> list[Memory]:
    """The memories, of those that hold, that no dream has ended before: only these end, or have others go into them."""
    ended = set(_ended(home))
    return [one for one in memories if one.id not in ended]


def _ended(home: Home) -> Iterator[str]:
    try:
        data = home.vault.read(LEDGER)
    except FileNotFoundError:
        return
    for entry in ledger.read_about(data, _ENTRY):
        listed = entry.details.get(ENDED) if entry.action == DREAM else None
        yield from (one for one in (listed if isinstance(listed, list) else ()) if isinstance(one, str))
