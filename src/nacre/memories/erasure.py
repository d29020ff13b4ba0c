"""Take what is forgotten out of the archive.

What a transcript says cannot be taken apart turn by turn: of one that holds anything forgotten, the archive keeps what
the index has left of it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from nacre.base import files
from nacre.base.ids import bytes_hash
from nacre.base.locks import FileLock
from nacre.errors import ArchiveDamaged, EditConflict, MemoryInvalid, StoreBusy
from nacre.home import archive_packs
from nacre.home.archive import settle, withhold
from nacre.home.change import Change, forget_in_baseline
from nacre.home.home import Home
from nacre.home.operations import apply_intents
from nacre.home.spending import fold_notes
from nacre.memories.judge import OUTLIVED
from nacre.memories.tombstones import (
    ALLOW_AGAIN,
    FORGET,
    RETIRE_ALWAYS,
    RETIRE_NO_LONGER,
    Affected,
    Barred,
    Pattern,
    Quotes,
    excerpt_of,
    handed_over,
    heed_ledger,
    is_in_path,
    is_ledger_new,
    survey,
)
from nacre.store.gateway import DATABASE, FOLDER, TRANSCRIPTS_LOCK
from nacre.store.maintenance import GatewayErasure, Held
from nacre.store.packs import LINES, Payload, texts_of
from nacre.store.postgres import Documents
from nacre.store.sessions import Archived
from nacre.values.memory import Memory, Tombstone, TombstoneKind
from nacre.vault import files as ledger
from nacre.vault.documents import parse
from nacre.vault.files import LEDGER

__all__ = ["settle", "withdraw", "withdraw_matching"]

_NAME = re.compile(rb'"([^"\\]{6,200})"')


def withdraw(home: Home, found: Affected) -> None:
    """Note which packs must not stay as they are, before anything is deleted; :func:`settle` writes them anew."""
    places = [*found.sessions, *found.turns, *found.untitled]
    if not places or not home.archive.all():
        return
    names = {
        one.native_id.encode() for one in places
    }  # ids that are short are a file's own, and found by its path
    for session in found.sessions:
        names |= {place.id.encode() for place in home.erasing.places_in(session.row)}
    for session, rows in found.turns.items():
        gone = set(rows)
        names |= {
            place.id.encode() for place in home.erasing.places_in(session.row) if place.row in gone
        }
    files = {one.file for one in places if one.file}
    chosen = [
        state
        for state in home.archive.all()
        if state.path in files or _holds(home, state, lambda payload: _mentions(payload, names))
    ]
    _withhold(home, chosen)


def withdraw_matching(home: Home, match: Pattern) -> None:
    """Keep of transcripts that say something, anywhere, only what the index has."""
    chosen = [
        state
        for state in home.archive.all()
        if state.kind == LINES and _holds(home, state, lambda payload: _says(payload, match))
    ]
    _withhold(home, chosen)
    settle(home)


def _withhold(home: Home, chosen: list[Archived]) -> None:
    with home.database.transaction():
        withhold(home, [(state.tool, state.path) for state in chosen])


def _holds(home: Home, state: Archived, test: Callable[[Payload], bool]) -> bool:
    """Whether any part of a pack passes a test; one that cannot be read might."""
    if state.pack is None:
        return False
    try:
        return any(test(payload) for _, payload in archive_packs.payloads(home, state))
    except ArchiveDamaged:
        return True


def _mentions(payload: Payload, names: set[bytes]) -> bool:
    return not names.isdisjoint(_NAME.findall(payload.text))


def _says(payload: Payload, match: Pattern) -> bool:
    return any(match.search(text) for text in _said(payload))


def _said(payload: Payload) -> Iterator[str]:
    for line in payload.text.split(b"\n"):
        yield from texts_of(line)


# ----------------------------------------------------------------------------
# Forget in what nacre itself keeps of conversations in channels: transcripts, files, the gateway's
# database.
#
# Transcripts of other tools are theirs and stay; these would be found again by whoever looks into the
# home.


_TOOL = "nacre-chat:"


def held(home: Home, barred: Barred, match: Pattern | None = None) -> int:
    """How many messages, parts of answers and names go that only the gateway's database has."""
    if not (home.settings.home / DATABASE).exists():
        return 0
    with closing(GatewayErasure.open(home.settings.home)) as store:
        return len(_held(store, barred, match)) + len(_names(store, match))


def erase_matching(home: Home, match: Pattern) -> None:
    """Take away what says something, of what only the gateway's database has."""
    if (home.settings.home / DATABASE).exists():
        with closing(GatewayErasure.open(home.settings.home)) as store:
            store.erase_held(_held(store, Barred(), match), _names(store, match))


def erase_chats(home: Home, found: Affected, barred: Barred) -> None:
    """Take whole conversations with their files away, and from others the messages that are forgotten; also what is not
    in a transcript yet."""
    gone = [one.id.removeprefix(_TOOL) for one in found.sessions if one.id.startswith(_TOOL)]
    touched = [one.id.removeprefix(_TOOL) for one in found.turns if one.id.startswith(_TOOL)]
    if not (home.settings.home / DATABASE).exists():
        return
    folder = home.settings.home / FOLDER
    with (
        FileLock(folder / TRANSCRIPTS_LOCK),
        closing(GatewayErasure.open(home.settings.home)) as store,
    ):
        store.erase_held(_held(store, barred, None))
        for session in touched:
            _Chat(folder, session, store).erase(barred)
        for session in gone:
            _Chat(folder, session, store).erase(None)


def erase_bytes(home: Home) -> bool:
    """Leave no byte of what was forgotten in the gateway's database; whether none is left. Raises StoreBusy."""
    if not (home.settings.home / DATABASE).exists():
        return True
    with closing(GatewayErasure.open(home.settings.home)) as store:
        return store.compact()


@dataclass(frozen=True, slots=True)
class _Chat:
    """One conversation, in all places."""

    folder: Path
    session: str
    store: GatewayErasure

    @property
    def path(self) -> Path:
        return self.folder / "sessions" / f"{self.session}.jsonl"

    @property
    def files(self) -> Path:
        return self.folder / "files" / self.session

    def erase(self, barred: Barred | None) -> None:
        """Take away what is barred, or all of it. A summary goes with any message: it may say what is forgotten."""
        lines = [(line, _record(line)) for line in self._lines()]
        waiting = [
            (seq, _record(line.text.encode()))
            for seq, line in self.store.pending_lines(self.session)
        ]
        late = {seq: one for seq, one in waiting if self._is_gone(one, barred)}
        gone = [*(one for _, one in lines if self._is_gone(one, barred)), *late.values()]
        self.store.erase([str(one.get("id")) for one in gone], late)
        if barred is None:
            self.store.delete_session(self.session)
            self.path.unlink(missing_ok=True)
            shutil.rmtree(self.files, ignore_errors=True)
        elif gone:
            for place in (place for record in gone for place in _places(record)):
                (self.files / place).unlink(missing_ok=True)
            kept = [
                line
                for line, one in lines
                if one.get("type") != "compaction" and not self._is_gone(one, barred)
            ]
            files.write_file(self.path, b"\n".join(kept))

    def _lines(self) -> Sequence[bytes]:
        try:
            return self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ()

    def _is_gone(self, record: dict[str, Any], barred: Barred | None) -> bool:
        """Whether a line is forgotten: by its own id, or as the new text of one that is."""
        if barred is None or record.get("type") != "message":
            return barred is None
        session, ids = (
            f"{_TOOL}{self.session}",
            (record.get("id"), _said_chat_erasure(record).get("edits")),
        )
        barred_by_id = any(
            barred.has_turn(session, str(one), is_shared=shared)
            for one in ids
            if one
            for shared in (False, True)
        )
        return barred_by_id or barred.is_before(_time(record), None, session)


def _held(store: GatewayErasure, barred: Barred, match: Pattern | None) -> list[Held]:
    """What is forgotten of it: by its words, its time, or with its whole conversation."""
    return [
        one
        for one in store.held()
        if (match and excerpt_of(match, one.texts) is not None) or _is_barred(one, barred)
    ]


def _is_barred(one: Held, barred: Barred) -> bool:
    session = f"{_TOOL}{one.session}"
    if barred.before:  # it bars whole sessions, too, and what came into them later stays
        return barred.is_before(one.at, None, session)
    return barred.has_session(session)


def _names(store: GatewayErasure, match: Pattern | None) -> list[str]:
    return [name for name in store.names() if match and match.search(name)]


def _said_chat_erasure(record: dict[str, Any]) -> dict[str, Any]:
    said = record.get("message")
    return said if isinstance(said, dict) else {}


def _places(record: dict[str, Any]) -> Sequence[str]:
    """The names under which files of a message lie in the folder of its conversation."""
    files = [
        one for one in _said_chat_erasure(record).get("attachments") or () if isinstance(one, dict)
    ]
    return [Path(str(one["path"])).name for one in files if one.get("path")]


def _time(record: dict[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(record.get("timestamp")))
    except ValueError:
        return None


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


# ----------------------------------------------------------------------------
# Forget in the former versions of documents, which a server keeps as rows. Beside files, git does.


def remove_for_good(home: Home, path: str) -> None:
    """Remove a document; on a server with all that it ever said."""
    if home.database.is_server:
        _documents(home).forget(path)
    else:
        home.vault.remove(path)


def erase_quoting(home: Home, match: Pattern) -> None:
    """Forget what documents said before, where it says something."""
    if home.database.is_server:
        _documents(home).forget_former(
            lambda path, data: bool(match.search(_text(data))) or is_in_path(match, path)
        )


def still_saying(home: Home, match: Pattern) -> list[str]:
    """The paths of documents on a server that say something now."""
    if not home.database.is_server:
        return []
    documents = _documents(home)
    return [
        one.path
        for one in documents.heads()
        if match.search(_text(documents.read(one.path) or b""))
    ]


def erase_naming(home: Home, memories: Sequence[Memory]) -> None:
    """Forget what documents said before, where it names memories that are to go or quotes them, as they are or were."""
    if not home.database.is_server or not memories:
        return
    documents = _documents(home)
    ids = {memory.id for memory in memories}
    quotes = Quotes(
        text
        for one in (*memories, *_earlier(home, documents, ids))
        for text in (one.subject, one.content)
    )

    def tells(text: str) -> bool:
        return any(one in text for one in ids) or quotes.are_in(text)

    documents.forget_former(lambda _, data: tells(_text(data)))
    home.erasing.clear_journal(tells)


def _earlier(home: Home, documents: Documents, ids: set[str]) -> Iterator[Memory]:
    """Memories as they were."""
    for _, path, data in documents.former():
        with suppress(MemoryInvalid):
            memory = parse(_text(data), path, new_id=home.ids, modified=home.now())
            if memory.id in ids:
                yield memory


def _documents(home: Home) -> Documents:
    return Documents(home.database, home.clock)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


# ----------------------------------------------------------------------------
# Carry out what tombstones say: of this command, of one that was cut short, or of another machine.
#
# Every step may be done twice. Memories go with their files, sessions and turns with all that was
# derived from them;
# then the bytes go from the database.


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

    withdraw(home, found)
    _unhurried(home, lambda: _erase_sessions(home, found))
    settle(home)
    erase_chats(home, found, barred)
    with home.vault_lock:
        for handoff in handed_over(
            home, (*found.sessions, *found.turns), barred
        ):  # made while the sessions went
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
    gone = [
        one.id for one in waiting if barred.left_of(one) != one or barred.has_words(one.content)
    ]
    with home.database.transaction():
        home.candidates.delete(gone)


def erase_bytes_erasure(home: Home) -> bool:
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
    return erase_bytes(home)


def _erase_from_file(home: Home) -> bool:
    """A file is written anew without deleted rows."""
    _unhurried(home, home.erasing.merge_full_text)
    with home.vault_lock:
        return all([erase_bytes(home), home.database_file.compact()])


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
    erase_naming(change.home, found.memories)
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
        remove_for_good(home, file.path)
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
        home.erasing.delete_turns(
            session.row, [place.row for place in home.erasing.places_in(session.row)]
        )
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
            remove_for_good(home, f"projects/{slug}/{page}")
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
