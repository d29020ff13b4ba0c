"""What follows whatever was done, whoever runs it: a command, the daemon or an agent's server."""

from __future__ import annotations

from nacre.history import schedule
from nacre.home.home import Home
from nacre.indexing import vectors
from nacre.sync import sync


def keep_history(home: Home, *, commits: bool = True) -> None:
    """Embed new memories, then judge, sync and commit changes in the background, where that is wanted and due.

    Without ``commits`` changes are not synced or committed.
    """
    if home.database.unwritable:
        return
    embed_new_memories(home)
    if home.settings.flag("models.background"):
        schedule.judge_in_background(home)
    if not commits:
        return
    schedule.exchange_in_background(home)
    if home.settings.flag("sync.auto") and schedule.sync_in_background(home):
        return
    if home.journal.waiting()[0]:
        schedule.commit_in_background(home)


def embed_new_memories(home: Home) -> None:
    """Embed the memories that were written through this home, unless their operation already did."""
    if home.memories.has_new_rows:
        vectors.embed_memories(home, begins=True)


def warnings_of(home: Home, *, of_sync: bool = True) -> list[str]:
    """What a person should know beside an answer: that syncs fail, or that nothing can be written now."""
    found = []
    if of_sync and home.settings.flag("sync.auto"):
        last = sync.long_failing(home)
        found += [f"syncing has failed since {last.failing_since}: {last.message}; {last.hint}"] if last else []
    why = home.database.unwritable
    return found + ([f"nothing is written, and edits by hand are not read: {why.message}; {why.hint}"] if why else [])
