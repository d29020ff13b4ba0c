"""Standing retirements: what fits is retired as soon as it is stored. The ledger keeps them.

One that arrives in the ledger from another machine also takes what was stored here before, without knowing of it. What
is stored or brought back in spite of it, on whichever machine, stays.
"""

from __future__ import annotations

import re
from dataclasses import replace

from nacre.app.context import Context
from nacre.app.operating import operating
from nacre.app.superseding import released
from nacre.app.writing import apply_intents, commit, entry
from nacre.errors import EditConflict
from nacre.model.forgetting import Match, StandingRetirement
from nacre.model.memory import Memory, Retirement
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


def standing_for(context: Context, memory: Memory) -> StandingRetirement | None:
    """The standing retirement that a memory falls under; the oldest, where several do."""
    return next((rule for rule in context.tombstones.standing() if is_under(memory, rule)), None)


def is_under(memory: Memory, rule: StandingRetirement) -> bool:
    """Whether a memory falls under a standing retirement."""
    same_key = rule.canonical_key is not None and rule.canonical_key == memory.canonical_key
    return same_key or fits(memory.subject, rule.pattern, rule.match)


def retire_due(context: Context) -> int:
    """Retire what was here when a standing retirement arrived; returns how many. Call when all files are read.

    What somebody brought back in spite of it stays, as does what is being edited just now: that is told in
    ``context.problems``. While another process writes, it is left to the next command.
    """
    if not context.tombstones.arrived() or not context.vault_lock.acquire():
        return 0
    try:
        apply_intents(context)
        arrived = context.tombstones.arrived()
        back = _brought_back(context) if arrived else set()
        found = [one for one in context.memories.in_any_state(sorted(set(arrived) - back)) if _is_active(one)]
        due = [(memory, rule) for memory in found if (rule := standing_for(context, memory))]
        with operating(context, "retire", why="a standing retirement of another machine"):
            retired = sum(_retire(context, memory, rule) for memory, rule in due)
            with context.database.transaction():
                context.tombstones.set_arrived(())
        apply_intents(context)
        return retired
    finally:
        context.vault_lock.release()


def _retire(context: Context, memory: Memory, rule: StandingRetirement) -> bool:
    gone = retired_by(context, memory, rule)
    reason = gone.retired.reason if gone.retired else None
    told = entry(context, "retire", memory=memory.id, reason=reason)
    try:
        commit(context, [gone, *released(context, [memory])], [told])
    except EditConflict as error:
        context.problems.append(error.message)
        return False
    return True


def _brought_back(context: Context) -> set[str]:
    """Memories that were unretired after a standing retirement: the ledger tells, whichever machine it was."""
    since = min((rule.at for rule in context.tombstones.standing()), default=context.now())
    try:
        entries = ledger.read(context.vault.read(LEDGER))
    except FileNotFoundError:
        return set()
    return {str(one.details.get("memory")) for one in entries if one.action == "unretire" and one.at >= since}


def _is_active(memory: Memory) -> bool:
    return not memory.retired and not memory.superseded_by


def retired_by(context: Context, memory: Memory, rule: StandingRetirement) -> Memory:
    """A memory as it is stored under a standing retirement."""
    contexts = tuple(dict.fromkeys((*memory.suppressed_contexts, *rule.contexts)))
    reason = rule.reason or f"{rule.pattern!r} is retired whenever it is stored"
    return replace(memory, retired=Retirement(context.now(), reason), suppressed_contexts=contexts)
