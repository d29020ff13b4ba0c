"""Moving a home to a server and back, and comparing the answers of both."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import msgspec

from nacre.base import files, json
from nacre.base.bounds import bounds
from nacre.base.environment import server_address
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash
from nacre.care.database import set_aside, take_place
from nacre.errors import (
    ConflictError,
    EditConflictError,
    InvalidInputError,
    NacreError,
    StoreBusyError,
    UnavailableError,
)
from nacre.home.home import Home, open_home
from nacre.home.location import is_empty
from nacre.home.operations import apply_intents
from nacre.home.spending import fold_notes
from nacre.memories.edit import scan
from nacre.memories.store import fold_usage
from nacre.operations import operation
from nacre.recall.recall import recall
from nacre.settings import Settings, unwrite_setting, write_setting
from nacre.values.recall import RecallQuery, RecallResult
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Deeds
from nacre.vault.files import LEDGER, Vault
from nacre_server.mirror import Mirror, Mirrored


@frozen
class Documents:
    """The number and total size of a vault's documents, the number of ledger lines, and a hash of all contents."""

    count: int
    bytes: int
    ledger_lines: int
    hash: str


def documents_of(vault: Vault) -> Documents:
    """Count and hash the contents of a vault: paths and bytes in path order, then the ledger."""
    digest, count, size = sha256(), 0, 0
    for path, data in _read_documents(vault):
        digest.update(f"{path}\0{len(data)}\0".encode())
        digest.update(data)
        count, size = count + 1, size + len(data)
    lines = _ledger(vault)
    for line in lines:
        digest.update(line + b"\n")
    return Documents(count, size, len(lines), digest.hexdigest())


def carry_documents(source: Vault, home: Home) -> int:
    """Make a home's documents equal to those in a vault. Return the number written.

    Raises EditConflictError if another process writes to the home.
    """
    target = home.vault
    written, source_paths = 0, set()
    for path, data in _read_documents(source):
        source_paths.add(path)
        present = _present(target, path)
        if present != data:
            if present is not None:
                _keep(home, path, present)
            target.write_bytes(path, data, base=None if present is None else bytes_hash(present))
            written += 1
    for path in set(target.paths()) - source_paths:
        _keep(home, path, _present(target, path) or b"")
        target.remove(path)
        written += 1
    lines, kept = _ledger(source), set(_ledger(target))
    # A line that is only in the target belongs to another memory.
    if not kept <= set(lines):
        raise EditConflictError(
            f"{target.root}/{LEDGER} has entries that are not from the memory to be moved",
            hint="move it to an empty home, or to another tenant",
        )
    missing = [line for line in lines if line not in kept]
    if missing:
        target.append(LEDGER, [line.decode("utf-8", "replace") for line in missing])
    return written + len(missing)


def _read_documents(vault: Vault) -> Iterator[tuple[str, bytes]]:
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


# -- Source and target of a move: a home's folder, and a tenant on a server ------------------------


_PASSWORD = re.compile(r"(://[^/@:]*):[^/]*@|([?&])password=[^&]*&?")


@frozen
class Moved:
    """The record of a home's last move. ``is_whole``: True if the move was completed."""

    id: str
    server: str
    tenant: str
    is_whole: bool


def without_password(address: str) -> str:
    """Return an address without its password."""
    return _PASSWORD.sub(lambda match: f"{match[1]}@" if match[1] else match[2], address).rstrip(
        "?&"
    )


def in_folder(settings: Settings) -> Settings:
    """Return the settings of a home with its memory in its folder."""
    if server_address(settings.environ):
        raise UnavailableError(
            "NACRE_DB is a server, so the home is ambiguous",
            hint="unset it, and give the server as an argument",
        )
    database = Path(settings.environ.get("NACRE_DB") or settings.home / "nacre.db").expanduser()
    return replace(settings, database=database).having("storage.url", "")


def on_server(settings: Settings, address: str, tenant: str | None) -> Settings:
    """Return settings for a tenant's memory on a server. The address can contain a password, which is not stored."""
    settings = settings.having("storage.tenant", tenant) if tenant else settings
    return replace(settings, environ={**settings.environ, "NACRE_DB": address})


def read_moved(settings: Settings) -> Moved | None:
    """Return the record of the home's last move, if any."""
    try:
        moved: Moved = json.decode(_file(settings).read_bytes(), Moved)
    except (OSError, msgspec.DecodeError):
        return None
    return moved


def write_moved(settings: Settings, moved: Moved | None) -> None:
    """Store the record of the last move, or delete it if ``moved`` is ``None``."""
    if moved is None:
        _file(settings).unlink(missing_ok=True)
        return
    files.write_file(_file(settings), json.encode(moved).decode() + "\n")


def claim_tenant(server: Home, moved: Moved) -> None:
    """Reserve a tenant for a new or continued move.

    Raises ConflictError if the tenant contains another memory.
    """
    with server.database.transaction():
        claim = server.database.one("find_move")
        if claim and claim[0] == moved.id:
            return
        if claim or (server.database.value("holds_anything") or 0):
            raise ConflictError(
                f"the tenant {moved.tenant} on that server already has a memory",
                hint="choose another: --tenant NAME; nothing was moved",
            )
        server.database.run("begin_move", id=moved.id)


def _file(settings: Settings) -> Path:
    return settings.home / "moved.json"


# -- Comparison of answers -------------------------------------------------------------------------


_TURNS_PER_ANSWER = 3


@frozen
class SameAnswers:
    """A comparison of the answers from two homes.

    ``asked``: number of questions. ``same``: number of equal answers. ``same_first``: number of
    equal first memories. ``differing``: some questions with different answers.
    """

    asked: int
    same: int
    same_first: int
    differing: tuple[str, ...] = ()


def questions_for(home: Home, most: int) -> list[str]:
    """Return questions for comparing homes, alternating between memories and user messages.

    They are subjects of memories and texts of messages, evenly spread.
    """
    memories = [
        memory.subject
        for memory in home.memories.in_any_state(_spread(sorted(home.memories.all_ids()), most))
    ]
    texts = _spread(home.database.column("list_short_turns"), most)
    mixed = [
        text for pair in zip_longest(memories, texts) for text in pair if text and text.strip()
    ]
    return list(dict.fromkeys(mixed))[:most]


def compare_answers(
    first_home: Home, second_home: Home, questions: Sequence[str], notify: OnProgress
) -> SameAnswers:
    """Ask both homes the same questions, without counting usage."""
    same = first = 0
    differing = []
    for number, question in enumerate(questions, start=1):
        answers = [
            _answer_ids(recall(home, RecallQuery(question, update=False, turns=_TURNS_PER_ANSWER)))
            for home in (first_home, second_home)
        ]
        same += answers[0] == answers[1]
        first += answers[0][:1] == answers[1][:1]
        if answers[0] != answers[1]:
            differing.append(question)
        notify(Progress("questions", number, len(questions)))
    return SameAnswers(len(questions), same, first, tuple(differing[:5]))


def _answer_ids(result: RecallResult) -> list[str]:
    return [hit.memory.id for hit in result.hits] + [
        f"{hit.session.tool}:{hit.session.native_id}#{hit.turn.id}" for hit in result.turns
    ]


def _spread(values: Sequence[str], most: int) -> list[str]:
    step = max(1, len(values) // max(1, most))
    return list(values[::step][:most])


# -- Requests --------------------------------------------------------------------------------------


Address = Annotated[
    str,
    bounds(
        "The server: postgresql://login@server:5432/database.",
        pattern="^postgres(ql)?://",
        max_length=2_000,
    ),
]


# -- The move --------------------------------------------------------------------------------------
# An interrupted move can be continued.


MOVED = ".moved"
"""Suffix that a database gets when its memory moves to a server.

Processes that have the database open notice the move.
"""

KEPT = "vault.before-move"
"""Folder next to the vault with the documents that a move replaced."""

_INDEX_PORTION = 500


@frozen
class MoveReport:
    """The result of a move, and a comparison of both sides.

    ``place`` is the target, and ``kept`` is the source. ``rows`` is the number of rows in each
    table, which are equal on both sides in every field. ``written`` is the number of rows written.
    ``documents`` describes each vault. Equal hashes mean equal bytes. ``is_in_use`` is True if
    nacre uses the target from now on. Otherwise ``left`` is the reason.
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
        """True if both sides have equal documents.

        Answers do not count, because the order of equal scores can differ.
        """
        return self.documents == self.documents_there


@operation("move", writes=True, takes_long=True, closed=True, owners=True, command="data move")
def move(
    settings: Settings,
    on_progress: OnProgress | None = None,
    *,
    to: Address | None = None,
    source: Address | None = None,
    tenant: Annotated[
        str | None, bounds("The tenant on the server; default: storage.tenant.")
    ] = None,
    questions: Annotated[
        int,
        bounds("Number of questions that both sides must answer alike.", ge=0, le=10_000),
    ] = 200,
) -> MoveReport:
    """Move the memory of a home to a server, or from one, and use it there from then on.

    The source stays unchanged. Raises InvalidInputError, ConflictError, UnusableStoreError,
    StoreBusyError, EditConflictError, UnavailableError.
    """
    if (to is None) == (source is None):
        raise InvalidInputError(
            "give the source or the destination of the move",
            hint="--to ADDRESS, or --from ADDRESS",
        )
    if to and settings.server:
        raise ConflictError(
            f"this memory is already on a server: {without_password(settings.server)}",
            hint="nacre data move --from moves it back",
        )
    notify = on_progress or (lambda _: None)
    folder = in_folder(settings)
    if to:
        return _to_server(folder, on_server(folder, to, tenant), questions, notify)
    return _from_server(folder, on_server(folder, source or "", tenant), questions, notify)


def _to_server(local: Settings, remote: Settings, questions: int, notify: OnProgress) -> MoveReport:
    address, tenant = without_password(remote.server), remote.text("storage.tenant")
    with _open_ends(local, remote) as (folder, server), _lock_ends(folder):
        moved = read_moved(local)
        if moved is None or (moved.server, moved.tenant) != (address, tenant):
            moved = Moved(str(folder.ids()), address, tenant, is_whole=False)
        claim_tenant(server, moved)
        write_moved(local, moved)
        report = _carry(folder, server, questions, notify)
        obstacle = _obstacle(local, address, tenant)
        if not obstacle:
            write_moved(local, replace(moved, is_whole=True))
            write_setting(local.config, "storage.tenant", tenant)
            write_setting(local.config, "storage.url", address)
            _carry_rows(folder, server, notify)  # rows written since the last pass
            server.database.run("end_move")
            folder.database_file.fold_log()
            folder.close()
            set_aside(local.database, local.database.with_name(local.database.name + MOVED))
        return replace(report, is_in_use=not obstacle, left=obstacle)


def _from_server(
    local: Settings, remote: Settings, questions: int, notify: OnProgress
) -> MoveReport:
    address, tenant = without_password(remote.server), remote.text("storage.tenant")
    former = local.database.with_name(local.database.name + MOVED)
    at_rest = (
        replace(local, database=former)
        if former.exists() and not local.database.exists()
        else local
    )
    with _open_ends(at_rest, remote) as (folder, server), _lock_ends(folder, server):
        moved = read_moved(local)
        is_former = moved and moved.is_whole and (moved.server, moved.tenant) == (address, tenant)
        if not is_former and not is_empty(folder):
            raise ConflictError(
                f"{folder.settings.home} already has its own memory",
                hint="use an empty home: nacre --home FOLDER move --from …",
            )
        seen_files, pending, _ = folder.files.seen_now()
        edited = {
            path for path, now in folder.vault.times().items() if seen_files.get(path) != now
        } - pending
        if edited:
            raise ConflictError(
                f"{len(edited)} files of {folder.settings.vault} were edited since, including {min(edited)}",
                hint="move them out of the vault, then run the command again",
            )
        write_moved(local, Moved(str(folder.ids()), address, tenant, is_whole=True))
        new = replace(local, database=local.database.with_name(f"{local.database.name}.moving"))
        with contextlib.closing(open_home(new)) as fresh:
            report = _carry(server, fresh, questions, notify)
            fresh.database_file.fold_log()
        folder.close()
        if at_rest is not local:
            set_aside(former, local.database)
        take_place(local.database, new.database)
        unwrite_setting(local.config, "storage.url")
        write_moved(local, None)
        return replace(report, is_in_use=True)


@contextlib.contextmanager
def _open_ends(local: Settings, remote: Settings) -> Iterator[tuple[Home, Home]]:
    """Open both homes, the server first, because it might be unreachable. Raises UnusableStoreError."""
    closing = contextlib.closing
    with closing(open_home(remote)) as server, closing(open_home(local)) as folder:
        yield folder, server


@contextlib.contextmanager
def _lock_ends(*homes: Home) -> Iterator[None]:
    """Lock the vaults, archives and writers of both homes, and finish pending writes."""
    with ExitStack() as stack:
        for home in homes:
            for lock in (home.vault_lock, home.archive_lock, home.writer_lock):
                stack.enter_context(lock)
            apply_intents(home)
        yield


def _carry(source: Home, target: Home, number: int, notify: OnProgress) -> MoveReport:
    notify(Progress("documents", 0, 1))
    scan(source)  # add pending files to the memory: manual edits, usage, costs
    fold_usage(source)
    fold_notes(source)
    apply_intents(source)
    written = carry_documents(source.vault, target)
    mirrored = _carry_rows(source, target, notify)
    questions = questions_for(source, number)
    answers = compare_answers(source, target, questions, notify)
    server = target if target.database.server else source
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
    """Keep a copy of a replaced document in a local home. A server keeps all versions anyway."""
    if not target.database.server:
        kept_path = target.settings.home / KEPT / path
        files.make_folder(kept_path.parent)
        files.write_file(kept_path, data)


def _place(home: Home) -> str:
    return without_password(home.settings.server) or str(home.settings.home)


def _carry_rows(source: Home, target: Home, notify: OnProgress) -> Mirrored:
    expected = sum(source.memories.counts().values()) + sum(
        turns or 0 for _, _, turns, *_ in source.sessions.counts()
    )
    times, pages = target.vault.times(), target.vault.pages()

    def file(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"mtime_ns": times[row["path"]][0]} if row["path"] in times else row

    def project(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"mtime_ns": pages.get(row["slug"], 0)}

    mirror = Mirror(source.database, target.database, {"vault_files": file, "projects": project})
    mirror.number_above()
    rows_read: dict[str, int] = {}

    def at(table: str, rows: int) -> None:
        rows_read[table] = rows
        notify(
            Progress(
                "rows", min(sum(rows_read.values()), expected), expected, table.replace("_", " ")
            )
        )

    target.database.relax()
    try:
        mirrored = mirror.run(at, lambda is_new: _index(target, notify, is_new=is_new))
    finally:
        target.database.tighten()
    if not mirrored.is_settled:
        raise StoreBusyError(
            "other processes keep writing to this memory, so the two sides never match",
            hint="stop them (nacre serve stop), then run the command again: it continues",
        )
    return mirrored


def _index(home: Home, notify: OnProgress, *, is_new: bool) -> int:
    """Add rows that are missing in the full-text index, and return their number."""
    if is_new and home.database.server:
        home.database.one("look_at_rows")
    memories = home.database.column("list_memories_unindexed")
    turns = home.database.column("list_turns_unindexed")
    total = len(memories) + len(turns)
    for at in range(0, len(memories), _INDEX_PORTION):
        with home.transaction():
            home.memories.index_again(memories[at : at + _INDEX_PORTION])
        notify(Progress("words", at, total))
    for at in range(0, len(turns), _INDEX_PORTION):
        rows = turns[at : at + _INDEX_PORTION]
        with home.transaction():
            stored_turns = home.sessions.by_rows(rows).items()
            home.deeds.index_again(
                [Deeds(row, stored.turn.tool_calls) for row, stored in stored_turns]
            )
            home.sessions.index_again(rows)
        notify(Progress("words", len(memories) + at, total))
    if total and home.database.server:
        home.database.one("look_at_rows")
    return total


def _obstacle(local: Settings, address: str, tenant: str) -> str:
    """Return the error of opening the target without a password, or an empty string."""
    try:
        open_home(local.having("storage.url", address).having("storage.tenant", tenant)).close()
    except NacreError as error:
        return f"without the password in the address, the server says: {error.message}"
    return ""
