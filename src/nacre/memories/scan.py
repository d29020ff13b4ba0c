"""Edits made in any editor are seen by the next command: a stat scan, and a hash where something changed."""

from __future__ import annotations

from nacre.dedup.retirement_rules import retire_due
from nacre.home.home import Home
from nacre.home.intents import apply_intents
from nacre.home.operations import left_open
from nacre.home.projects import read_pages
from nacre.memories.hand_edits import read_changes
from nacre.tombstones.erasure import apply_tombstones
from nacre.tombstones.tombstones import is_ledger_new

_LOOKS = 2
_A_MOMENT = 1.0
_PATIENCE_SECONDS = 5.0
_LEAST_PATIENCE_SECONDS = 0.3


def scan(home: Home, *, from_remote: bool = False, patience_seconds: float = _PATIENCE_SECONDS) -> int:
    """Complete what a crash left, then bring the index up to the vault; returns how many files had changed.

    Where most files are gone at once, nothing is retired, unless it came ``from_remote``: what is gone is meant to be
    gone, then, and what came back is in the ledger. What the ledger says is forgotten goes, also when it came from
    another machine.

    A file that is not well formed is reported in ``home.problems``; its last good version stays in the index. Where
    nothing changed, which is nearly always, no lock is taken and nothing is written. What another process is just
    about to write is no change: nobody waits for it. Nothing is looked at where nothing can be written.
    """
    home.problems.clear()
    if home.database.unwritable:
        return 0
    read_pages(home)
    if is_ledger_new(home) or home.tombstones.due():
        apply_tombstones(home, patient=False)  # before files that are gone are taken for deleted by a person
    taken = _catch_edits(home, patience_seconds, from_remote=from_remote)
    told = set(home.problems)
    unreadable = (f"{path}: {reason}" for path, reason in home.files.seen_now()[2].items())
    home.problems.extend(one for one in unreadable if one not in told)
    if taken or is_ledger_new(home):
        apply_tombstones(home, patient=False)
    retire_due(home)
    return taken


def _catch_edits(home: Home, patience_seconds: float, *, from_remote: bool) -> int:
    was_edited = _was_edited(home)
    if not was_edited and not home.files.has_intents() and not left_open(home):
        return 0
    with home.vault_lock.if_free(patience_seconds if was_edited else 0.0) as is_ours:
        if is_ours:
            apply_intents(home)  # what a crash left hides what people did to the same files
            return read_changes(home, from_remote=from_remote)
    if was_edited:
        home.problems.append("what was edited by hand just now is not read yet: another process is writing")
    return 0


def catch_up(home: Home, seconds: float = _A_MOMENT) -> None:
    """Scan; wait for so long at most."""
    scan(home, patience_seconds=max(seconds, _LEAST_PATIENCE_SECONDS))


def _was_edited(home: Home) -> bool:
    """Whether a file is new, gone, or not as it was last seen, by another hand than nacre's.

    Files are looked at one after the other while others write: what differs for two looks in the same way, does.
    """
    before: set[tuple[str, int, int]] | None = None
    for _ in range(_LOOKS):
        different = _differences(home)
        before = different if before is None else before & different
        if not before:
            return False
    return True


def _differences(home: Home) -> set[tuple[str, int, int]]:
    """Path, time and size of files that are new, gone, or not as last seen; without those of pending writes."""
    stats = home.vault.times()
    seen, pending, _ = home.files.seen_now()
    if stats == seen:
        return set()
    paths = {path for path in stats.keys() | seen.keys() if stats.get(path) != seen.get(path)} - pending
    return {(path, *stats.get(path, (0, -1))) for path in paths}
