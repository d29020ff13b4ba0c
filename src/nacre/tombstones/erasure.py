"""Carry out what tombstones say: of this command, of one that was cut short, or of another machine.

Every step may be done twice. Memories go with their files, sessions and turns with all that was derived from them;
then the bytes go from the database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from nacre.dedup.supersession import OUTLIVED
from nacre.errors import EditConflict, StoreBusy
from nacre.home.baseline import forget_in_baseline
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.intents import apply_intents
from nacre.platform.ids import bytes_hash
from nacre.spending.spool import fold_notes
from nacre.tombstones import archive_erasure, chat_erasure, version_erasure
from nacre.tombstones.affected import Affected, handed_over, survey
from nacre.tombstones.quotes import Quotes
from nacre.tombstones.text_search import Pattern
from nacre.tombstones.tombstones import (
    ALLOW_AGAIN,
    FORGET,
    RETIRE_ALWAYS,
    RETIRE_NO_LONGER,
    Barred,
    heed_ledger,
    is_ledger_new,
)
from nacre.values.forgetting import Tombstone, TombstoneKind
from nacre.vault import ledger
from nacre.vault.layout import LEDGER

FORGETTING = "forgetting"
"""The operation that changes what is left: evidence and links that go, memories that are retired for it."""

_MEMORIES_A_STEP = 50
_WORD = re.compile(r"[^\s\"'#,;()\[\]{}]+")
_KEPT = (FORGET, ALLOW_AGAIN, RETIRE_ALWAYS, RETIRE_NO_LONGER)


def apply_tombstones(home: Home, *, patient: bool = True) -> int:
    """Take away what tombstones bar and what is there all the same; returns how many things that were.

    Looks only where something is due: a run of this home that was cut short, tombstones that another machine's ledger
    brought, a memory whose file came back. Call it whenever the ledger may have changed; where it did not, it costs a
    few lookups. Memories that are being edited just now are told in ``home.problems`` and go the next time. Without
    ``patient``, a ledger that another process is just writing is left to it.
    """
    if (home.files.has_intents() or is_ledger_new(home)) and not _heed(home, patient=patient):
        return 0
    due = home.tombstones.due() | home.erasing.returned()
    if not due:
        return 0
    apply_intents(home)
    everything = home.tombstones.all()
    runs = [one for one in everything if one.run in due]
    common = [one for one in everything if one.kind in (TombstoneKind.KEY, TombstoneKind.ALLOWED)]
    barred = Barred([*runs, *common])
    edition = home.database.edition()
    found = survey(home, barred)  # it reads everything, and nobody is to wait meanwhile
    with home.change(FORGETTING) as change:
        apply_intents(home)
        if home.database.edition() != edition:
            found = survey(home, barred)
        try:
            _erase_memories(change, found)
        except EditConflict as error:
            home.problems.append(error.message)
            return 0

    archive_erasure.withdraw(home, found)
    _unhurried(home, lambda: _erase_sessions(home, found))
    archive_erasure.settle(home)
    chat_erasure.erase_chats(home, found, barred)
    with home.vault_lock:
        for handoff in handed_over(home, (*found.sessions, *found.turns), barred):  # made while the sessions went
            home.handoffs.remove(handoff)
        _clear_pages(home, barred)
        gone = barred.memories | {memory.id for memory in found.memories}
        clear_words(home, gone)
        _erase_candidates(home, Barred(everything))
        forget_in_baseline(home, gone)
        _erase_told(home, found)
        _tell_more(home, found, runs)
        with home.database.transaction():
            home.tombstones.set_due(home.tombstones.due() - due)
            home.tombstones.set("erase", "1")
    return len(found.sessions) + sum(map(len, found.turns.values())) + len(found.memories)


def _heed(home: Home, *, patient: bool) -> bool:
    if not patient:
        with home.vault_lock.if_free() as is_ours:
            return is_ours and _heed(home, patient=True)
    with home.vault_lock:
        apply_intents(home)
        heed_ledger(home)
    return True


def _erase_candidates(home: Home, barred: Barred) -> None:
    """Delete candidates that what was forgotten shows, or that say it."""
    waiting = [one.memory for one in home.candidates.with_words()]
    gone = [one.id for one in waiting if barred.left_of(one) != one or barred.has_words(one.content)]
    with home.database.transaction():
        home.candidates.delete(gone)


def erase_bytes(home: Home) -> bool:
    """Leave no byte of what was deleted in the database; returns whether none is left.

    ``False`` while another process reads the old state; the next writing command tries again.
    """
    if home.tombstones.value("erase") != "1":
        return True
    try:
        _unhurried(home, home.erasing.blank_passages)
        is_done = (_erase_from_server if home.database.is_server else _erase_from_file)(home)
    except StoreBusy:
        return False
    if is_done:
        home.tombstones.set("erase", "")
    return is_done


def _erase_from_server(home: Home) -> bool:
    """A server writes over the room of deleted rows by itself."""
    home.erasing.prune_names()
    return chat_erasure.erase_bytes(home)


def _erase_from_file(home: Home) -> bool:
    """A file is written anew without deleted rows."""
    _unhurried(home, home.erasing.merge_full_text)
    with home.vault_lock:
        return all([chat_erasure.erase_bytes(home), home.database_file.compact()])


def _unhurried(home: Home, work: Callable[[], object]) -> None:
    """Many small transactions that need not wait for the disk one by one: what a crash takes is done again."""
    home.database.relax()
    try:
        work()
    finally:
        home.database.tighten()


def clear_words(home: Home, memory_ids: Iterable[str], quotes: Pattern | None = None) -> None:
    """Take from the ledger what it says about forgotten memories beside ids and numbers.

    It is the one exception to append-only. With ``quotes``, also from entries that hold what it matches. Tombstones and
    standing retirements stay.
    """
    ids = set(memory_ids)
    try:
        data = home.vault.read(LEDGER)
    except FileNotFoundError:
        return
    text = data.decode("utf-8", errors="replace")
    if (cleared := without_words(text, ids, quotes)) != text:
        home.vault.write(LEDGER, cleared, base=bytes_hash(data))


def without_words(text: str, ids: set[str], quotes: Pattern | None = None) -> str:
    """Return the text of a ledger as :func:`clear_words` leaves it."""
    return "\n".join(_without_words(line, ids, quotes) for line in text.split("\n"))


def _without_words(line: str, ids: set[str], quotes: Pattern | None) -> str:
    if not (ids & ledger.ids_in(line)) and not (quotes and quotes.search(line)):
        return line
    item = next(ledger.read(line.encode("utf-8")), None)
    if item is None or item.action in _KEPT:
        return line
    less = item.without_words()
    return line if less == item else less.line()


def _erase_memories(change: Change, found: Affected) -> None:
    """What stays is written first: nothing that names a forgotten memory outlives it. Then file and row go."""
    told = [change.entry("retire", memory=memory.id, reason=OUTLIVED) for memory in found.retired]
    for start in range(0, len(found.changed), _MEMORIES_A_STEP):
        change.put(found.changed[start : start + _MEMORIES_A_STEP])
    change.append(told)
    change.apply()
    version_erasure.erase_naming(change.home, found.memories)
    with change.transaction():
        for memory_id in sorted(memory.id for memory in found.memories):
            _erase_memory(change.home, memory_id)
            change.yield_locks()
    for handoff in found.handoffs:
        change.home.handoffs.remove(handoff)


def _erase_memory(home: Home, memory_id: str) -> None:
    """Not by an intent: what is to go must not be written down once more on its way."""
    file = home.files.file_of(memory_id)
    if file:
        version_erasure.remove_for_good(home, file.path)
        home.files.forget(file.path)
    home.memories.delete(memory_id)
    home.erasing.delete_traces(memory_id)


def _erase_sessions(home: Home, found: Affected) -> None:
    staying = list(found.turns)
    for path in {one.file for one in (*found.sessions, *staying, *found.untitled) if one.file}:
        home.erasing.delete_cursor(path)
    home.erasing.clear_titles([one.row for one in found.untitled])
    for session, rows in found.turns.items():
        home.erasing.delete_turns(session.row, list(rows))
    for session in found.sessions:
        home.erasing.delete_turns(session.row, [place.row for place in home.erasing.places_in(session.row)])
    home.erasing.delete_sessions([session.row for session in found.sessions])


def clear_told(home: Home, quotes: Pattern) -> None:
    """Take away the traces and doubts that quote a text, and all kept answers, which may."""
    _clear_traces(home, lambda said: quotes.search(said) is not None)


def _clear_traces(home: Home, tells: Callable[[str], bool]) -> None:
    with home.database.transaction():
        home.traces.delete_where(tells)
        home.reviews.delete_where(tells)
        home.spending.clear_answers()


def _erase_told(home: Home, found: Affected) -> None:
    """The same for all that is gone: traces that name it, or that say what a memory said."""
    ids = {one.id for one in (*found.sessions, *found.turns, *found.untitled)}
    ids |= {memory.id for memory in found.memories}
    ids |= {memory.source.session for memory in found.memories if memory.source.session}
    quotes = Quotes(text for one in found.memories for text in (one.subject, one.content))

    def tells(text: str) -> bool:
        return not ids.isdisjoint(_WORD.findall(text)) or quotes.are_in(text)

    fold_notes(home)
    _clear_traces(home, tells)


def _clear_pages(home: Home, barred: Barred) -> None:
    slugs = [project.slug for project in home.files.projects()]
    for _, scope in barred.before:
        remove_empty_projects(home, barred.projects(scope, slugs) or ())


def remove_empty_projects(home: Home, slugs: Iterable[str]) -> None:
    """Delete the pages of projects to which no session and no memory belongs. The caller holds the vault's lock."""
    for slug in set(slugs) - home.sessions.projects():
        for page in ("project.md", "MEMORY.md"):
            version_erasure.remove_for_good(home, f"projects/{slug}/{page}")
        home.files.forget_project(slug)


def _tell_more(home: Home, found: Affected, runs: Sequence[Tombstone]) -> None:
    """Sessions that only a time or a project named are named themselves, so that they stay away when they grow."""
    named = {one.value for one in runs if one.kind is TombstoneKind.SESSION}
    scopes = sorted({one.run for one in runs if one.kind is TombstoneKind.BEFORE})
    more = sorted({one.id for one in found.sessions} - named)
    if not more or not scopes:
        return
    fresh = [Tombstone(TombstoneKind.SESSION, session, scopes[0]) for session in more]
    details = {"run": scopes[0], "sessions": {session: [] for session in more}}
    with home.change(FORGET) as change, change.transaction():
        change.append([change.entry(FORGET, **details)])
        home.tombstones.add(fresh)
