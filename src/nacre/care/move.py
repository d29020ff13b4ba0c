"""Documents go from one vault to another, byte for byte."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from nacre.base import files
from nacre.base import json as json_text
from nacre.base.environment import server_address
from nacre.base.ids import bytes_hash
from nacre.base.request import Request
from nacre.care.database import set_aside, take_place
from nacre.errors import Conflict, EditConflict, InvalidInput, NacreError, StoreBusy, Unavailable
from nacre.home.home import Home, open_home
from nacre.home.location import is_empty
from nacre.home.operations import apply_intents
from nacre.home.spending import fold_notes
from nacre.memories.edit import scan
from nacre.memories.store import fold_usage
from nacre.recall.recall import recall
from nacre.settings import Settings, unwrite_setting, write_setting
from nacre.store.maintenance import Mirror, Mirrored, Stamp
from nacre.values.recall import RecallQuery, RecallResult
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Deeds
from nacre.vault.files import LEDGER, Vault


@dataclass(frozen=True, slots=True)
class Documents:
    """What a vault holds: how many documents, their bytes, the lines of the ledger, and one hash over all of it."""

    count: int
    bytes: int
    ledger_lines: int
    hash: str


def documents_of(vault: Vault) -> Documents:
    """Count and hash what a vault holds: paths and bytes, in the order of the paths, then the ledger."""
    digest, count, size = sha256(), 0, 0
    for path, data in _read(vault):
        digest.update(f"{path}\0{len(data)}\0".encode())
        digest.update(data)
        count, size = count + 1, size + len(data)
    lines = _ledger(vault)
    for line in lines:
        digest.update(line + b"\n")
    return Documents(count, size, len(lines), digest.hexdigest())


def carry_documents(source: Vault, target: Vault, keep: Callable[[str, bytes], object]) -> int:
    """Write what the target has not, or has otherwise, and remove what the source has not; returns how many.

    ``keep`` is given each document before it goes or becomes another. Raises EditConflict where somebody else writes to
    the target meanwhile.
    """
    written, kept = 0, set()
    for path, data in _read(source):
        kept.add(path)
        present = _present(target, path)
        if present != data:
            if present is not None:
                keep(path, present)
            target.write_bytes(path, data, base=None if present is None else bytes_hash(present))
            written += 1
    for path in set(target.paths()) - kept:
        keep(path, _present(target, path) or b"")
        target.remove(path)
        written += 1
    return written + _carry_ledger(source, target)


def _carry_ledger(source: Vault, target: Vault) -> int:
    """Append the lines that the target has not. One that it alone has means that it is another memory's."""
    lines, present = _ledger(source), _ledger(target)
    if not set(present) <= set(lines):
        raise EditConflict(
            f"{target.root}/{LEDGER} tells of what never happened in the memory that is carried there",
            hint="carry it to an empty home, or to another tenant",
        )
    missing = [line for line in lines if line not in set(present)]
    if missing:
        target.append(LEDGER, [line.decode("utf-8", "replace") for line in missing])
    return len(missing)


def _read(vault: Vault) -> Iterator[tuple[str, bytes]]:
    for path in vault.paths():
        data = _present(vault, path)
        if data is not None:
            yield path, data


def _present(vault: Vault, path: str) -> bytes | None:
    with contextlib.suppress(FileNotFoundError):
        return vault.read(path, whole=True)
    return None


def _ledger(vault: Vault) -> list[bytes]:
    return (_present(vault, LEDGER) or b"").splitlines()


# ----------------------------------------------------------------------------
# The two ends of a move: the home in its folder, and a tenant on a server.


Open = Callable[[Settings], Home]

_PASSWORD = re.compile(r"(://[^/@:]*):[^/]*@|([?&])password=[^&]*&?")


@dataclass(frozen=True, slots=True)
class Moved:
    """What a home keeps of its move: the id of the move, where to, and whether it ended."""

    id: str
    server: str
    tenant: str
    is_whole: bool


def without_password(address: str) -> str:
    """An address as it may be written down and shown."""
    return _PASSWORD.sub(lambda found: f"{found[1]}@" if found[1] else found[2], address).rstrip(
        "?&"
    )


def in_folder(settings: Settings) -> Settings:
    """The settings of a home whose memory is in its folder."""
    if server_address(settings.environ):
        raise Unavailable(
            "NACRE_DB names a server: which home is meant?",
            hint="unset it, and name the server here",
        )
    database = Path(settings.environ.get("NACRE_DB") or settings.home / "nacre.db").expanduser()
    return replace(settings, database=database).having("storage.url", "")


def on_server(settings: Settings, address: str, tenant: str | None) -> Settings:
    """The same where the memory is a tenant's on a server; the address may hold a password here, in memory."""
    with_tenant = settings.having("storage.tenant", tenant) if tenant else settings
    return replace(with_tenant, environ={**settings.environ, "NACRE_DB": address})


def read_moved(settings: Settings) -> Moved | None:
    """What the home knows of its last move."""
    try:
        held = json_text.parse(_file(settings).read_bytes())
        return Moved(
            str(held["id"]), str(held["server"]), str(held["tenant"]), bool(held["is_whole"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_moved(settings: Settings, moved: Moved | None) -> None:
    """Keep it, or forget it."""
    if moved is None:
        _file(settings).unlink(missing_ok=True)
        return
    held = {
        "id": moved.id,
        "server": moved.server,
        "tenant": moved.tenant,
        "is_whole": moved.is_whole,
    }
    files.write_file(_file(settings), json.dumps(held) + "\n")


def claim_tenant(server: Home, moved: Moved) -> None:
    """Begin to carry a home to a tenant, or go on. Raises Conflict where it holds another memory."""
    with server.database.transaction():
        found = server.database.one("find_move")
        if found and found[0] == moved.id:
            return
        if found or (server.database.one("holds_anything") or (0,))[0]:
            raise Conflict(
                f"the tenant {moved.tenant} on that server holds a memory already",
                hint="name another one: --tenant NAME; nothing was carried",
            )
        server.database.run("begin_move", id=moved.id)


def require_own(folder: Home, moved: Moved | None, address: str, tenant: str) -> None:
    """That what is in the folder may be replaced: nothing, or what was carried to that tenant and not touched since.

    Raises Conflict.
    """
    is_former = (
        moved is not None and moved.is_whole and (moved.server, moved.tenant) == (address, tenant)
    )
    if not is_former and not is_empty(folder):
        raise Conflict(
            f"{folder.settings.home} holds a memory of its own",
            hint="carry it to an empty home: nacre --home FOLDER move --from …",
        )
    seen, pending, _ = folder.files.seen_now()
    edited = {path for path, now in folder.vault.times().items() if seen.get(path) != now} - pending
    if edited:
        raise Conflict(
            f"{len(edited)} files of {folder.settings.vault} were edited since, as {min(edited)}",
            hint="move them out of the vault first, and repeat the command",
        )


def open_both(folder: Settings, server: Settings, opener: Open = open_home) -> tuple[Home, Home]:
    """Open both ends; the server first, as it may not be there. Raises StoreUnusable."""
    there = opener(server)
    try:
        return opener(folder), there
    except BaseException:
        there.close()
        raise


def _file(settings: Settings) -> Path:
    return settings.home / "moved.json"


# ----------------------------------------------------------------------------
# Two homes are asked the same, to see whether they answer the same.


_TURNS = 3


@dataclass(frozen=True, slots=True)
class SameAnswers:
    """How many questions both were asked, how many got the same answer (memories and turns in the same order), and how
    many at least the same first memory. ``differing`` are some that did not."""

    asked: int
    same: int
    same_first: int
    differing: tuple[str, ...] = ()


def questions_for(home: Home, most: int) -> list[str]:
    """What to ask a home: subjects of memories and what the owner said, in turn, spread evenly over each."""
    memories = [
        memory.subject
        for memory in home.memories.in_any_state(_spread(sorted(home.memories.all_ids()), most))
    ]
    said = _spread([text for (text,) in home.database.all("list_short_turns")], most)
    mixed = [text for pair in zip_longest(memories, said) for text in pair if text and text.strip()]
    return list(dict.fromkeys(mixed))[:most]


def compare_answers(
    one: Home, other: Home, questions: Sequence[str], notify: Callable[[int], object]
) -> SameAnswers:
    """Ask both; nothing is counted as used."""
    same = first = 0
    differing = []
    for number, question in enumerate(questions):
        answers = [
            _told(recall(home, RecallQuery(question, update=False, turns=_TURNS)))
            for home in (one, other)
        ]
        same += answers[0] == answers[1]
        first += answers[0][:1] == answers[1][:1]
        if answers[0] != answers[1]:
            differing.append(question)
        notify(number + 1)
    return SameAnswers(len(questions), same, first, tuple(differing[:5]))


def _told(result: RecallResult) -> list[str]:
    return [hit.memory.id for hit in result.hits] + [
        f"{hit.session.tool}:{hit.session.native_id}#{hit.turn.id}" for hit in result.turns
    ]


def _spread(values: Sequence[str], most: int) -> list[str]:
    step = max(1, len(values) // max(1, most))
    return list(values[::step][:most])


# ----------------------------------------------------------------------------
# Requests for moves.


Address = Annotated[
    str,
    Meta(
        description="The server: postgresql://login@server:5432/database.",
        pattern="^postgres(ql)?://",
        max_length=2_000,
    ),
]


class MoveRequest(Request, frozen=True, kw_only=True):
    """Carry the memory of this home to a server, or from one; exactly one of ``to`` and ``source`` is set."""

    to: Address | None = None
    source: Address | None = None
    tenant: Annotated[
        str | None, Meta(description="Whose rows on the server; by default storage.tenant.")
    ] = None
    questions: Annotated[
        int, Meta(description="Questions that both have to answer alike.", ge=0, le=10_000)
    ] = 200


# ----------------------------------------------------------------------------
# Carry a home to a server, and back: documents, every row, full text. What was interrupted goes on.


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


def move(
    settings: Settings, request: MoveRequest, on_progress: OnProgress | None = None
) -> MoveReport:
    """Carry the memory of a home to a server, or from one, and work with it there from then on.

    The place that it came from stays as it is. Raises InvalidInput, Conflict, StoreUnusable, StoreBusy, EditConflict,
    Unavailable.
    """
    if (request.to is None) == (request.source is None):
        raise InvalidInput(
            "say where the memory goes or where it comes from",
            hint="--to ADDRESS, or --from ADDRESS",
        )
    if request.to and settings.server:
        raise Conflict(
            f"this memory is on a server already: {without_password(settings.server)}",
            hint="nacre move --from brings it back",
        )
    notify = on_progress or (lambda _: None)
    folder = in_folder(settings)
    if request.to:
        return _to_server(folder, on_server(folder, request.to, request.tenant), request, notify)
    return _from_server(
        folder, on_server(folder, request.source or "", request.tenant), request, notify
    )


def _to_server(
    here: Settings, there: Settings, request: MoveRequest, notify: OnProgress
) -> MoveReport:
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


def _from_server(
    here: Settings, there: Settings, request: MoveRequest, notify: OnProgress
) -> MoveReport:
    address, tenant = without_password(there.server), there.text("storage.tenant")
    former = here.database.with_name(here.database.name + MOVED)
    at_rest = (
        replace(here, database=former) if former.exists() and not here.database.exists() else here
    )
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
    written = carry_documents(
        source.vault, target.vault, lambda path, data: _keep(target, path, data)
    )
    mirrored = _carry_rows(source, target, notify)
    questions = questions_for(source, request.questions)
    answers = compare_answers(
        source, target, questions, lambda done: notify(Progress("questions", done, len(questions)))
    )
    server = target if target.database.is_server else source
    return MoveReport(
        place=_place(target),
        kept=_place(source),
        tenant=server.settings.text("storage.tenant"),
        rows=dict(mirrored.rows),
        written=mirrored.written + written,
        passes=mirrored.passes,
        documents=documents_of(source.vault),
        documents_there=documents_of(target.vault),
        answers=answers,
        is_in_use=False,
    )


def _keep(target: Home, path: str, data: bytes) -> None:
    """What a folder held under a name that goes, or becomes another document, is put aside: it may be somebody's
    own. A server keeps every version itself."""
    if not target.database.is_server:
        kept = target.settings.home / KEPT / path
        files.make_folder(kept.parent)
        files.write_file(kept, data)


def _place(home: Home) -> str:
    return without_password(home.settings.server) or str(home.settings.home)


def _carry_rows(source: Home, target: Home, notify: OnProgress) -> Mirrored:
    expected = sum(source.memories.counts().values()) + sum(
        turns or 0 for _, _, turns, *_ in source.sessions.counts()
    )
    mirror = Mirror(source.database, target.database, _stamps(target))
    mirror.number_above()
    read: dict[str, int] = {}

    def at(table: str, rows: int) -> None:
        read[table] = rows
        notify(
            Progress("rows", min(sum(read.values()), expected), expected, table.replace("_", " "))
        )

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
        home.deeds.index_again(
            [Deeds(row, it.turn.tool_calls) for row, it in home.sessions.by_rows(rows).items()]
        )
        home.sessions.index_again(rows)


def _why_not_in_use(here: Settings, address: str, tenant: str) -> str:
    """Why nacre cannot go on there with what may be written down: without the password."""
    try:
        open_home(here.having("storage.url", address).having("storage.tenant", tenant)).close()
    except NacreError as error:
        return f"without the password in the address the server says: {error.message}"
    return ""
