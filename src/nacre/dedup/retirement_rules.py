"""Standing retirements: what fits is retired as soon as it is stored. The ledger keeps them.

One that arrives in the ledger from another machine also takes what was stored here before, without knowing of it. What
is stored or brought back in spite of it, on whichever machine, stays.
"""

from __future__ import annotations

import re
from dataclasses import replace

from nacre.dedup.supersession import released
from nacre.errors import EditConflict
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.intents import apply_intents
from nacre.values.forgetting import Match, StandingRetirement
from nacre.values.memory import Memory, Retirement
from nacre.vault import ledger
from nacre.vault.layout import LEDGER

SUPPRESSED = ("session-start",)
"""Where what a standing retirement takes stays out (seed facts 1.9)."""


def fits(subject: str, pattern: str, match: Match) -> bool:
    """Whether a subject fits a pattern; letter case and spaces do not count."""
    subject, pattern = plain(subject), plain(pattern)
    if match is Match.EXACT:
        return subject == pattern
    if match is Match.CONTAINS:
        return pattern in subject
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), subject, re.DOTALL) is not None


def plain(subject: str) -> str:
    """A subject as subjects are compared."""
    return " ".join(subject.casefold().split())


def standing_for(home: Home, memory: Memory) -> StandingRetirement | None:
    """The standing retirement that a memory falls under; the oldest, where several do."""
    return next((rule for rule in home.tombstones.standing() if is_under(memory, rule)), None)


def is_under(memory: Memory, rule: StandingRetirement) -> bool:
    """Whether a memory falls under a standing retirement."""
    same_key = rule.canonical_key is not None and rule.canonical_key == memory.canonical_key
    return same_key or fits(memory.subject, rule.pattern, rule.match)


def retire_due(home: Home) -> int:
    """Retire what was here when a standing retirement arrived; returns how many. Call when all files are read.

    What somebody brought back in spite of it stays, as does what is being edited just now: that is told in
    ``home.problems``. While another process writes, it is left to the next command.
    """
    if not home.tombstones.arrived():
        return 0
    with home.vault_lock.if_free() as is_ours:
        return _retire_arrived(home) if is_ours else 0


def _retire_arrived(home: Home) -> int:
    with home.change("retire", why="a standing retirement of another machine") as change:
        apply_intents(home)
        arrived = home.tombstones.arrived()
        back = _brought_back(home) if arrived else set()
        found = [one for one in home.memories.in_any_state(sorted(set(arrived) - back)) if one.is_active]
        due = [(memory, rule) for memory in found if (rule := standing_for(home, memory))]
        retired = sum(_retire(change, memory, rule) for memory, rule in due)
        with home.database.transaction():
            home.tombstones.set_arrived(())
        return retired


def _retire(change: Change, memory: Memory, rule: StandingRetirement) -> bool:
    home = change.home
    gone = retired_by(home, memory, rule)
    reason = gone.retired.reason if gone.retired else None
    told = change.entry("retire", memory=memory.id, reason=reason)
    try:
        change.put([gone, *released(home, [memory])], [told])
    except EditConflict as error:
        home.problems.append(error.message)
        return False
    return True


def _brought_back(home: Home) -> set[str]:
    """Memories that were unretired after a standing retirement: the ledger tells, whichever machine it was."""
    since = min((rule.at for rule in home.tombstones.standing()), default=home.now())
    try:
        entries = ledger.read(home.vault.read(LEDGER))
    except FileNotFoundError:
        return set()
    return {str(one.details.get("memory")) for one in entries if one.action == "unretire" and one.at >= since}


def retired_by(home: Home, memory: Memory, rule: StandingRetirement) -> Memory:
    """A memory as it is stored under a standing retirement."""
    contexts = tuple(dict.fromkeys((*memory.suppressed_contexts, *rule.contexts)))
    reason = rule.reason or f"{rule.pattern!r} is retired whenever it is stored"
    return replace(memory, retired=Retirement(home.now(), reason), suppressed_contexts=contexts)
