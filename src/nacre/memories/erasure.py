"""Erase forgotten content from the archive, chats, document versions and the database.

A transcript cannot be redacted turn by turn. If it contains forgotten content, the archive keeps
only its indexed turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from nacre.base import files
from nacre.base.ids import bytes_hash
from nacre.base.locks import FileLock
from nacre.base.text import to_text
from nacre.errors import DamagedArchiveError, EditConflictError, InvalidMemoryError, StoreBusyError
from nacre.home import archive
from nacre.home.change import PINNED, Change, Pin, page_path, write_pins
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
from nacre.store import gateway, maintenance, packs, sessions
from nacre.values.memory import Memory, Tombstone, TombstoneKind
from nacre.vault import files as ledger
from nacre.vault.documents import parse
from nacre.vault.files import LEDGER

_NAME = re.compile(rb'"([^"\\]{6,200})"')


def withdraw(home: Home, affected: Affected) -> None:
    """Mark the archive packs that contain forgotten content, so that they are rewritten without it.

    Call this before deleting the content, and :func:`nacre.home.archive.settle` afterwards.
    """
    places = [*affected.sessions, *affected.turns, *affected.untitled]
    if not places or not home.archive.all():
        return
    # Short ids are unique only within a file, which is found by its path.
    names = {place.native_id.encode() for place in places}
    for session in affected.sessions:
        names |= {place.id.encode() for place in home.erasing.places_in(session.row)}
    for session, rows in affected.turns.items():
        forgotten_rows = set(rows)
        names |= {
            place.id.encode()
            for place in home.erasing.places_in(session.row)
            if place.row in forgotten_rows
        }
    files = {place.file for place in places if place.file}
    states = [
        state
        for state in home.archive.all()
        if state.path in files
        or _has_payload(
            home, state, lambda payload: not names.isdisjoint(_NAME.findall(payload.text))
        )
    ]
    _withhold(home, states)


def withdraw_matching(home: Home, match: Pattern) -> None:
    """Keep only the indexed messages of archived transcripts that match a pattern."""
    states = [
        state
        for state in home.archive.all()
        if state.kind == packs.LINES
        and _has_payload(
            home,
            state,
            lambda payload: any(
                match.search(text)
                for line in payload.text.split(b"\n")
                for text in packs.texts_of(line)
            ),
        )
    ]
    _withhold(home, states)
    archive.settle(home)


def _withhold(home: Home, states: list[sessions.Archived]) -> None:
    with home.transaction():
        archive.withhold(home, [(state.tool, state.path) for state in states])


def _has_payload(
    home: Home, state: sessions.Archived, test: Callable[[packs.Payload], bool]
) -> bool:
    if state.pack is None:
        return False
    try:
        return any(test(payload) for _, payload in archive.payloads(home, state))
    except DamagedArchiveError:
        return True


# -- Chats ---------------------------------------------------------------------
#
# nacre's own transcripts, files and database of channel conversations. Transcripts of other tools
# are not erased.


_TOOL = "nacre-chat:"


def _gateway(home: Home) -> AbstractContextManager[maintenance.GatewayErasure | None]:
    if not (home.settings.home / gateway.DATABASE).exists():
        return nullcontext()
    return closing(maintenance.GatewayErasure.open(home.settings.home))


def count_forgotten(home: Home, barred: Barred, match: Pattern | None = None) -> int:
    """Count forgotten messages and names that exist only in the gateway's database."""
    with _gateway(home) as store:
        if store is None:
            return 0
        return len(_forgotten_items(store, barred, match)) + len(_matching_names(store, match))


def erase_matching(home: Home, match: Pattern) -> None:
    """Erase text that matches a pattern and exists only in the gateway's database."""
    with _gateway(home) as store:
        if store:
            items = _forgotten_items(store, Barred(), match)
            store.erase_pending(items, _matching_names(store, match))


def erase_chats(home: Home, affected: Affected, barred: Barred) -> None:
    """Delete forgotten conversations, and forgotten messages in other conversations."""
    folder = home.settings.home / gateway.FOLDER
    with _gateway(home) as store:
        if store is None:
            return
        with FileLock(folder / gateway.TRANSCRIPTS_LOCK):
            store.erase_pending(_forgotten_items(store, barred, None))
            for session in (*affected.turns, *affected.sessions):
                if session.id.startswith(_TOOL):
                    is_whole = session in affected.sessions
                    name = session.id.removeprefix(_TOOL)
                    _erase_chat(folder, name, store, None if is_whole else barred)


def erase_bytes(home: Home) -> bool:
    """Compact the gateway's database so that no deleted bytes remain, and return True on success.

    Raises StoreBusyError.
    """
    with _gateway(home) as store:
        return store is None or store.compact()


def _erase_chat(
    folder: Path, session: str, store: maintenance.GatewayErasure, barred: Barred | None
) -> None:
    path = folder / "sessions" / f"{session}.jsonl"
    session_id = f"{_TOOL}{session}"

    def is_gone(record: dict[str, Any]) -> bool:
        if barred is None or record.get("type") != "message":
            return barred is None
        barred_by_id = any(
            barred.has_turn(session_id, str(record.get("id")), is_shared=shared)
            for shared in (False, True)
        )
        return barred_by_id or barred.is_before(_time(record), None, session_id)

    data = path.read_bytes() if path.exists() else b""
    lines = [(line, _record(line)) for line in data.split(b"\n")]
    pending = ((seq, _record(line.text.encode())) for seq, line in store.pending_lines(session))
    pending_gone = {seq: record for seq, record in pending if is_gone(record)}
    erased_records = [*(record for _, record in lines if is_gone(record)), *pending_gone.values()]
    store.erase([str(record.get("id")) for record in erased_records], pending_gone)
    if barred is None:
        store.delete_session(session)
        path.unlink(missing_ok=True)
    elif erased_records:
        remaining = [line for line, record in lines if not is_gone(record)]
        files.write_file(path, b"\n".join(remaining))


def _forgotten_items(
    store: maintenance.GatewayErasure, barred: Barred, match: Pattern | None
) -> list[maintenance.PendingText]:
    return [
        item
        for item in store.pending_texts()
        if (match and excerpt_of(match, item.texts) is not None) or _is_barred(item, barred)
    ]


def _is_barred(item: maintenance.PendingText, barred: Barred) -> bool:
    session = f"{_TOOL}{item.session}"
    if barred.before:  # sessions that are forgotten by date keep their later messages
        return barred.is_before(item.at, None, session)
    return barred.has_session(session)


def _matching_names(store: maintenance.GatewayErasure, match: Pattern | None) -> list[str]:
    return [name for name in store.names() if match and match.search(name)]


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


# -- Former versions of documents ----------------------------------------------
#
# A database server stores former versions as rows. Former versions of files are in git.


def erase_quoting(home: Home, match: Pattern) -> None:
    """Erase old versions of documents whose text or path matches a pattern."""
    home.vault.forget_former(
        lambda path, data: bool(match.search(to_text(data))) or is_in_path(match, path)
    )


def still_saying(home: Home, match: Pattern) -> list[str]:
    """Return the paths of documents on a server that still match a pattern."""
    paths = home.vault.paths() if home.database.server else []
    return [path for path in paths if match.search(to_text(home.vault.read(path, any_size=True)))]


def erase_naming(home: Home, memories: Sequence[Memory]) -> None:
    """Erase old versions of documents on a server that mention or quote the given memories."""
    if not home.database.server or not memories:
        return
    ids = {memory.id for memory in memories}
    quotes = Quotes(
        text
        for memory in (*memories, *_former_versions(home, ids))
        for text in (memory.subject, memory.content)
    )

    def is_revealing(text: str) -> bool:
        return any(memory_id in text for memory_id in ids) or quotes.are_in(text)

    home.vault.forget_former(lambda _, data: is_revealing(to_text(data)))
    home.erasing.clear_journal(is_revealing)


def _former_versions(home: Home, ids: set[str]) -> Iterator[Memory]:
    for _, path, data in home.vault.former():
        with suppress(InvalidMemoryError):
            memory = parse(to_text(data), path, new_id=home.ids, modified=home.now())
            if memory.id in ids:
                yield memory


# -- Applying tombstones -------------------------------------------------------
#
# Tombstones can come from this command, an interrupted command or another machine. Every step can
# be repeated. Memories are deleted with their files. Sessions and turns are deleted with all
# derived data. The bytes in the database are erased last.


FORGETTING = "forgetting"
"""Name of the operation that removes forgotten evidence and links from memories."""

_WORD = re.compile(r"[^\s\"'#,;()\[\]{}]+")
_KEPT_ACTIONS = (FORGET, ALLOW_AGAIN, RETIRE_ALWAYS, RETIRE_NO_LONGER)


def apply_tombstones(home: Home, *, patient: bool = True) -> int:
    """Delete the stored items that match tombstones, and return their number.

    Call this whenever the ledger might have changed. Memories whose files are being edited are
    reported in ``home.problems`` and deleted next time. Set ``patient`` to wait for another process
    that is writing the ledger.
    """
    if (home.files.has_intents() or is_ledger_new(home)) and not _update_tombstones(
        home, patient=patient
    ):
        return 0
    due = home.tombstones.due() | home.erasing.returned()
    if not due:
        return 0
    apply_intents(home)
    everything = home.tombstones.all()
    due_tombstones = [tombstone for tombstone in everything if tombstone.run in due]
    shared = [
        tombstone
        for tombstone in everything
        if tombstone.kind in (TombstoneKind.KEY, TombstoneKind.ALLOWED)
    ]
    barred = Barred([*due_tombstones, *shared])
    edition = home.database.edition()
    affected = survey(home, barred)  # slow, so done without the lock
    with home.change(FORGETTING) as change:
        apply_intents(home)
        if home.database.edition() != edition:
            affected = survey(home, barred)
        try:
            _erase_memories(change, affected)
        except EditConflictError as error:
            home.problems.append(error.message)
            return 0

    withdraw(home, affected)
    _without_sync(home, lambda: _erase_sessions(home, affected))
    archive.settle(home)
    erase_chats(home, affected, barred)
    with home.vault_lock:
        # Handoffs written while sessions were being deleted.
        for handoff in handed_over(home, (*affected.sessions, *affected.turns), barred):
            home.handoffs.remove(handoff)
        _clear_pages(home, barred)
        gone_ids = barred.memories | {memory.id for memory in affected.memories}
        clear_words(home, gone_ids)
        _erase_candidates(home, Barred(everything))
        ids = {session.id for session in (*affected.sessions, *affected.turns, *affected.untitled)}
        ids |= {memory.id for memory in affected.memories}
        ids |= {memory.source.session for memory in affected.memories if memory.source.session}
        quotes = Quotes(
            text for memory in affected.memories for text in (memory.subject, memory.content)
        )

        def is_revealing(text: str) -> bool:
            return not ids.isdisjoint(_WORD.findall(text)) or quotes.are_in(text)

        def is_forgotten(pin: Pin) -> bool:
            texts = (f"{memory.subject} {memory.content}" for memory in affected.memories)
            return is_revealing(f"{pin.question} {pin.answer}") or any(map(pin.is_in, texts))

        with home.change(FORGETTING) as change:
            has_pins = write_pins(change, is_forgotten)
        if has_pins:
            home.erasing.clear_journal(is_revealing)
        home.usage.drop_value(PINNED)
        clear_traces(home, is_revealing)
        _name_sessions(home, affected, due_tombstones)
        with home.transaction():
            home.tombstones.set_due(home.tombstones.due() - due)
            home.tombstones.set("erase", "1")
    return len(affected.sessions) + sum(map(len, affected.turns.values())) + len(affected.memories)


def _update_tombstones(home: Home, *, patient: bool) -> bool:
    if not patient:
        with home.vault_lock.if_free() as is_ours:
            return is_ours and _update_tombstones(home, patient=True)
    with home.vault_lock:
        apply_intents(home)
        heed_ledger(home)
    return True


def _erase_candidates(home: Home, barred: Barred) -> None:
    memories = [candidate.memory for candidate in home.candidates.with_words()]
    forgotten_ids = [
        memory.id
        for memory in memories
        if barred.strip(memory) != memory or barred.has_words(memory.content)
    ]
    with home.transaction():
        home.candidates.delete(forgotten_ids)


def erase_written_bytes(home: Home) -> bool:
    """Overwrite deleted content in the database file.

    Returns False if another process is reading the database, so that a later command must try
    again.
    """
    if home.tombstones.value("erase") != "1":
        return True
    try:
        _without_sync(home, home.erasing.blank_passages)
        if home.database.server:  # the server reuses the space of deleted rows automatically
            home.erasing.prune_names()
            is_done = erase_bytes(home)
        else:
            _without_sync(home, home.erasing.merge_full_text)
            with home.vault_lock:
                is_done = all([erase_bytes(home), home.database_file.compact()])
    except StoreBusyError:
        return False
    if is_done:
        home.tombstones.set("erase", "")
    return is_done


def _without_sync(home: Home, work: Callable[[], object]) -> None:
    """Run ``work`` without syncing to disk, because lost work is repeated after a crash."""
    home.database.relax()
    try:
        work()
    finally:
        home.database.tighten()


def clear_words(home: Home, memory_ids: Iterable[str], quotes: Pattern | None = None) -> None:
    """Remove text from ledger entries that concern forgotten memories or match ``quotes``.

    Apart from this, the ledger is append-only.
    """
    data = home.ledger()
    text = to_text(data)
    if (cleared := without_words(text, set(memory_ids), quotes)) != text:
        home.vault.write(LEDGER, cleared, base=bytes_hash(data))


def without_words(text: str, ids: set[str], quotes: Pattern | None = None) -> str:
    """Return the text of a ledger without the parts that :func:`clear_words` removes."""
    return "\n".join(_without_words(line, ids, quotes) for line in text.split("\n"))


def _without_words(line: str, ids: set[str], quotes: Pattern | None) -> str:
    if not (ids & ledger.ids_in(line)) and not (quotes and quotes.search(line)):
        return line
    item = next(ledger.read(line.encode("utf-8")), None)
    if item is None or item.action in _KEPT_ACTIONS:
        return line
    reduced = item.without_words()
    return line if reduced == item else reduced.line()


def _erase_memories(change: Change, affected: Affected) -> None:
    home = change.home
    entries = [
        change.entry("retire", memory=memory.id, reason=OUTLIVED) for memory in affected.retired
    ]
    change.put(affected.changed)
    change.append(entries)
    change.apply()
    erase_naming(home, affected.memories)
    with change.transaction():
        for memory_id in sorted(memory.id for memory in affected.memories):
            _erase_memory(home, memory_id)
            change.yield_locks()
    for handoff in affected.handoffs:
        home.handoffs.remove(handoff)


def _erase_memory(home: Home, memory_id: str) -> None:
    """Delete a memory and its file without a pending write, which would store the text again."""
    if file := home.files.file_of(memory_id):
        home.vault.forget(file.path)
        home.files.forget(file.path)
    home.memories.delete(memory_id)
    home.erasing.delete_traces(memory_id)


def _erase_sessions(home: Home, affected: Affected) -> None:
    remaining = list(affected.turns)
    for path in {
        session.file
        for session in (*affected.sessions, *remaining, *affected.untitled)
        if session.file
    }:
        home.erasing.delete_cursor(path)
    home.erasing.clear_titles([session.row for session in affected.untitled])
    for session, rows in affected.turns.items():
        home.erasing.delete_turns(session.row, list(rows))
    for session in affected.sessions:
        home.erasing.delete_turns(
            session.row, [place.row for place in home.erasing.places_in(session.row)]
        )
    home.erasing.delete_sessions([session.row for session in affected.sessions])


def clear_traces(home: Home, is_revealing: Callable[[str], bool]) -> None:
    """Delete the text of all model calls and all answered questions.

    Open questions and doubts are deleted only if ``is_revealing`` returns True for their text.
    """
    fold_notes(home)
    with home.transaction():
        home.spending.clear_texts()
        home.questions.delete_answered()
        home.questions.delete(home.questions.matching(is_revealing))
        home.reviews.delete_where(is_revealing)


def _clear_pages(home: Home, barred: Barred) -> None:
    slugs = [project.slug for project in home.files.projects()]
    for _, scope in barred.before:
        remove_empty_projects(home, barred.projects(scope, slugs) or ())


def remove_empty_projects(home: Home, slugs: Iterable[str]) -> None:
    """Delete the pages of projects that have no sessions and no memories.

    The caller must hold the vault lock.
    """
    for slug in set(slugs) - home.sessions.projects():
        home.vault.forget(page_path(slug))
        home.files.forget_project(slug)


def _name_sessions(home: Home, affected: Affected, runs: Sequence[Tombstone]) -> None:
    """Add a tombstone for each session forgotten by date or project.

    New turns then cannot restore the session.
    """
    named_ids = {tombstone.value for tombstone in runs if tombstone.kind is TombstoneKind.SESSION}
    scopes = sorted({tombstone.run for tombstone in runs if tombstone.kind is TombstoneKind.BEFORE})
    session_ids = sorted({session.id for session in affected.sessions} - named_ids)
    if not session_ids or not scopes:
        return
    tombstones = [Tombstone(TombstoneKind.SESSION, session, scopes[0]) for session in session_ids]
    details = {"run": scopes[0], "sessions": {session: [] for session in session_ids}}
    with home.change(FORGET) as change, change.transaction():
        change.note(FORGET, **details)
        home.tombstones.add(tombstones)
