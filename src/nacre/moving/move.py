"""Carry a home to a server, and back: documents, every row, full text. What was interrupted goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from nacre.errors import Conflict, InvalidInput, NacreError, StoreBusy
from nacre.health.database import set_aside, take_place
from nacre.home.home import Home, open_home
from nacre.home.intents import apply_intents
from nacre.memories.scan import scan
from nacre.memories.usage import fold_usage
from nacre.moving.documents import Documents, carry_documents, documents_of
from nacre.moving.places import (
    Moved,
    claim_tenant,
    in_folder,
    on_server,
    open_both,
    read_moved,
    require_own,
    without_password,
    write_moved,
)
from nacre.moving.questions import SameAnswers, compare_answers, questions_for
from nacre.moving.requests import MoveRequest
from nacre.platform import private_files
from nacre.settings import Settings, unwrite_setting, write_setting
from nacre.spending.spool import fold_notes
from nacre.storage.maintenance.mirror import Mirror, Mirrored, Stamp
from nacre.values.file_history import Deeds
from nacre.values.reports import OnProgress, Progress

MOVED = ".moved"
"""What the name of a database ends with whose memory is on a server: whoever has it open sees that it is gone."""

KEPT = "vault.before-move"
"""The folder beside the vault with documents that others took the place of."""

_INDEX_PORTION = 500


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What was carried, and how both ends compare.

    ``place`` is where it was carried, ``kept`` where it came from. ``rows`` of each table stand in both, field by field
    the same, as the last pass found; ``written`` is how many were written. ``documents`` is what each vault holds: the
    same hash says the same bytes. ``is_in_use`` says that nacre works with the new place from now on; where it does
    not, ``left`` says why.
    """

    place: str
    kept: str
    tenant: str
    rows: dict[str, int]
    written: int
    passes: int
    documents: Documents
    documents_there: Documents
    answers: SameAnswers
    is_in_use: bool
    left: str = ""

    @property
    def is_same(self) -> bool:
        """Whether both hold the same documents; rows do. Answers may differ in the order of what scores alike."""
        return self.documents == self.documents_there


def move(settings: Settings, request: MoveRequest, on_progress: OnProgress | None = None) -> MoveReport:
    """Carry the memory of a home to a server, or from one, and work with it there from then on.

    The place that it came from stays as it is. Raises InvalidInput, Conflict, StoreUnusable, StoreBusy, EditConflict,
    Unavailable.
    """
    if (request.to is None) == (request.source is None):
        raise InvalidInput("say where the memory goes or where it comes from", hint="--to ADDRESS, or --from ADDRESS")
    if request.to and settings.server:
        raise Conflict(
            f"this memory is on a server already: {without_password(settings.server)}",
            hint="nacre move --from brings it back",
        )
    notify = on_progress or (lambda _: None)
    folder = in_folder(settings)
    if request.to:
        return _to_server(folder, on_server(folder, request.to, request.tenant), request, notify)
    return _from_server(folder, on_server(folder, request.source or "", request.tenant), request, notify)


def _to_server(here: Settings, there: Settings, request: MoveRequest, notify: OnProgress) -> MoveReport:
    address, tenant = without_password(there.server), there.text("storage.tenant")
    with _opened(here, there) as (folder, server), _held(folder):
        moved = read_moved(here)
        if moved is None or (moved.server, moved.tenant) != (address, tenant):
            moved = Moved(str(folder.ids()), address, tenant, is_whole=False)
        claim_tenant(server, moved)
        write_moved(here, moved)
        report = _carry(folder, server, request, notify)
        left = _why_not_in_use(here, address, tenant)
        if not left:
            write_moved(here, replace(moved, is_whole=True))
            write_setting(here.config, "storage.tenant", tenant)
            write_setting(here.config, "storage.url", address)
            _carry_rows(folder, server, notify)  # what was written between the last pass and now
            server.database.run("end_move")
            folder.database_file.fold_log()
            folder.close()
            set_aside(here.database, here.database.with_name(here.database.name + MOVED))
        return replace(report, is_in_use=not left, left=left)


def _from_server(here: Settings, there: Settings, request: MoveRequest, notify: OnProgress) -> MoveReport:
    address, tenant = without_password(there.server), there.text("storage.tenant")
    former = here.database.with_name(here.database.name + MOVED)
    at_rest = replace(here, database=former) if former.exists() and not here.database.exists() else here
    with _opened(at_rest, there) as (folder, server), _held(folder, server):
        require_own(folder, read_moved(here), address, tenant)
        write_moved(here, Moved(str(folder.ids()), address, tenant, is_whole=True))
        new = replace(here, database=here.database.with_name(f"{here.database.name}.moving"))
        with contextlib.closing(open_home(new)) as fresh:
            report = _carry(server, fresh, request, notify)
            fresh.database_file.fold_log()
        folder.close()
        if at_rest is not here:
            set_aside(former, here.database)
        take_place(here.database, new.database)
        unwrite_setting(here.config, "storage.url")
        write_moved(here, None)
        return replace(report, is_in_use=True)


@contextlib.contextmanager
def _opened(here: Settings, there: Settings) -> Iterator[tuple[Home, Home]]:
    folder, server = open_both(here, there)
    try:
        yield folder, server
    finally:
        folder.close()
        server.close()


@contextlib.contextmanager
def _held(*homes: Home) -> Iterator[None]:
    """Nobody changes a vault or an archive meanwhile, or asks a writer; what else is written another pass carries."""
    with ExitStack() as held:
        for home in homes:
            for lock in (home.vault_lock, home.archive_lock, home.writer_lock):
                held.enter_context(lock)
            apply_intents(home)
        yield


def _settle(home: Home) -> None:
    """What waits in files beside the memory becomes a part of it: edits by hand, uses, costs."""
    scan(home)
    fold_usage(home)
    fold_notes(home)
    apply_intents(home)


def _carry(source: Home, target: Home, request: MoveRequest, notify: OnProgress) -> MoveReport:
    notify(Progress("documents", 0, 1))
    _settle(source)
    written = carry_documents(source.vault, target.vault, lambda path, data: _keep(target, path, data))
    mirrored = _carry_rows(source, target, notify)
    questions = questions_for(source, request.questions)
    answers = compare_answers(
        source, target, questions, lambda done: notify(Progress("questions", done, len(questions)))
    )
    server = target if target.database.is_server else source
    return MoveReport(
        place=_place(target), kept=_place(source), tenant=server.settings.text("storage.tenant"),
        rows=dict(mirrored.rows), written=mirrored.written + written, passes=mirrored.passes,
        documents=documents_of(source.vault), documents_there=documents_of(target.vault), answers=answers,
        is_in_use=False,
    )  # fmt: skip


def _keep(target: Home, path: str, data: bytes) -> None:
    """What a folder held under a name that goes, or becomes another document, is put aside: it may be somebody's
    own. A server keeps every version itself."""
    if not target.database.is_server:
        kept = target.settings.home / KEPT / path
        private_files.make_folder(kept.parent)
        private_files.write_file(kept, data)


def _place(home: Home) -> str:
    return without_password(home.settings.server) or str(home.settings.home)


def _carry_rows(source: Home, target: Home, notify: OnProgress) -> Mirrored:
    expected = sum(source.memories.counts().values()) + sum(turns or 0 for _, _, turns, *_ in source.sessions.counts())
    mirror = Mirror(source.database, target.database, _stamps(target))
    mirror.number_above()
    read: dict[str, int] = {}

    def at(table: str, rows: int) -> None:
        read[table] = rows
        notify(Progress("rows", min(sum(read.values()), expected), expected, table.replace("_", " ")))

    target.database.relax()
    try:
        mirrored = mirror.run(at, lambda is_new: _index(target, notify, is_new=is_new))
    finally:
        target.database.tighten()
    if not mirrored.is_settled:
        raise StoreBusy(
            "somebody writes to this memory all the time, so that the two ends never are the same",
            hint="end that (nacre serve stop, nacre watcher stop), then give the command again: it goes on",
        )
    return mirrored


def _stamps(target: Home) -> dict[str, Stamp]:
    """A file was seen at a time, a document in a version: that of the end where it is now."""
    times, pages = target.vault.times(), target.vault.pages()

    def file(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"mtime_ns": times[row["path"]][0]} if row["path"] in times else row

    def project(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"mtime_ns": pages.get(row["slug"], 0)}

    return {"vault_files": file, "projects": project}


def _index(home: Home, notify: OnProgress, *, is_new: bool) -> int:
    """Make the full text that is missing; returns of how many rows. A server looks at its rows before and after."""
    if is_new and home.database.is_server:
        home.database.one("look_at_rows")
    made = _index_missing(home, notify)
    if made and home.database.is_server:
        home.database.one("look_at_rows")
    return made


def _index_missing(home: Home, notify: OnProgress) -> int:
    memories = [memory for (memory,) in home.database.all("list_memories_unindexed")]
    turns = [row for (row,) in home.database.all("list_turns_unindexed")]
    total = len(memories) + len(turns)
    for at in range(0, len(memories), _INDEX_PORTION):
        with home.database.transaction():
            home.memories.index_again(memories[at : at + _INDEX_PORTION])
        notify(Progress("words", at, total))
    for at in range(0, len(turns), _INDEX_PORTION):
        _index_turns(home, turns[at : at + _INDEX_PORTION])
        notify(Progress("words", len(memories) + at, total))
    return total


def _index_turns(home: Home, rows: list[int]) -> None:
    with home.database.transaction():
        home.deeds.index_again([Deeds(row, it.turn.tool_calls) for row, it in home.sessions.by_rows(rows).items()])
        home.sessions.index_again(rows)


def _why_not_in_use(here: Settings, address: str, tenant: str) -> str:
    """Why nacre cannot go on there with what may be written down: without the password."""
    try:
        open_home(here.having("storage.url", address).having("storage.tenant", tenant)).close()
    except NacreError as error:
        return f"without the password in the address the server says: {error.message}"
    return ""
