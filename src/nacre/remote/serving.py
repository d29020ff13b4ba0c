"""What a server does for machines that hold a copy of a space: tell what changed, take what they have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.errors import InvalidInput, NotAllowed
from nacre.home.home import Home
from nacre.home.redaction import clean_values
from nacre.home.room import require_room
from nacre.home.standing import standing
from nacre.remote.requests import (
    RemoteChangesRequest,
    RemotePushRequest,
    RemoteTurnsRequest,
    RemoteVersionsRequest,
)
from nacre.remote.values import (
    Pushed,
    PushedDocument,
    PushedSession,
    PushedTurn,
    ServerChanges,
    ServerDocument,
    digest,
    name_of,
)
from nacre.storage.turn_rows import stored_calls
from nacre.sync.import_remote import write_plan
from nacre.sync.merge import FileChange, Plan, refuse_paths, united_in
from nacre.tombstones.tombstones import Gate
from nacre.values.actor import Role
from nacre.values.session import Flag, Turn
from nacre.vault.layout import LEDGER

_MOST_BYTES = 2_000_000
_DOCUMENTS_AT_ONCE = 500
_LINES_AT_ONCE = 5_000
_PERSON = "person"


def tell_changes(home: Home, wanted: RemoteChangesRequest) -> ServerChanges:
    """What became of documents and ledger since. Raises NotAllowed."""
    space = _require_own(home)
    newest = int((home.database.one("last_document_version") or (0,))[0])
    rows = home.database.all("list_changes_since", since=wanted.since, limit=_DOCUMENTS_AT_ONCE)
    taken = list(_bounded(rows))
    is_cut = len(taken) < len(rows) or len(rows) == _DOCUMENTS_AT_ONCE
    version = max(taken[-1][1] if is_cut else newest, wanted.since)
    lines = home.database.all("list_ledger_since", since=wanted.ledger_since, limit=_LINES_AT_ONCE)
    is_all = not is_cut and len(lines) < _LINES_AT_ONCE
    documents = [
        ServerDocument(path, None if data is None else bytes(data).decode())
        for path, _, data in taken if data is None or _is_text(data)
    ]  # fmt: skip
    ledger_at = int(lines[-1][0]) if lines else wanted.ledger_since
    ledger = [bytes(line).decode("utf-8", "replace") for _, line in lines]
    return ServerChanges(space, version, newest, ledger_at, documents, ledger, is_all)


def tell_versions(home: Home, wanted: RemoteVersionsRequest) -> list[ServerDocument]:
    """What documents held at a version, but for those that were not there or are forgotten. Raises NotAllowed."""
    _require_own(home)
    names = set(wanted.names)
    found = []
    for path, version in home.database.all("list_documents_at", at=wanted.at):
        if name_of(path) in names:
            data = (home.database.one("read_version", version=version) or (None,))[0]
            if data is not None and _is_text(data):
                found.append(ServerDocument(path, bytes(data).decode()))
    return found


def take_documents(home: Home, wanted: RemotePushRequest) -> Pushed:
    """Take documents and lines of the ledger, unless somebody else changed one of them meanwhile.

    Raises NotAllowed, RepositoryUnusable for paths that no vault has, MemoryInvalid.
    """
    _require_own(home)
    paths = [one.path for one in wanted.documents]
    refuse_paths(paths)
    if LEDGER in paths or any(path.startswith(".") for path in paths):
        raise InvalidInput("only documents are taken so")
    lines = [line.encode() for line in wanted.ledger]
    with home.vault_lock:
        changes = {one.path: _change(home, one) for one in wanted.documents}
        if obstacle := next((one for one in changes.values() if isinstance(one, str)), ""):
            return Pushed(obstacle)
        if lines:
            home.vault.append(LEDGER, wanted.ledger)
    new = {LEDGER: FileChange(None, b"\n".join(lines))}
    plan = Plan(None, {p: c for p, c in changes.items() if isinstance(c, FileChange)}, given_up=united_in(new))
    return Pushed(write_plan(home, plan, {}) or "")


def take_turns(home: Home, wanted: RemoteTurnsRequest) -> int:
    """Store turns, without what was forgotten; returns how many are new. The machine that sends them learns from them.

    Raises NotAllowed, InvalidInput, SpaceFull.
    """
    _require_own(home)
    gate = Gate(home)
    with home.database.transaction():
        gate.refresh()
        new = sum(_take_session(home, gate, one) for one in wanted.sessions)
        if new:
            require_room(home)
        return new


def _take_session(home: Home, gate: Gate, pushed: PushedSession) -> int:
    session = gate.titled(clean_values(home.redactor, pushed.session))
    turns = gate.admitted(session, pushed.project, [_turn(home, one) for one in pushed.turns])
    if not gate.admits(session) or not turns:
        return 0
    row = home.sessions.upsert(session, project=pushed.project, file=None)
    new = home.sessions.add_turns(session, row, turns)
    home.sessions.refresh([row])
    ((_, end),) = home.database.all("next_seqs", sessions=f"[{row}]")
    home.sessions.mark_extracted(row, end)
    return new


def _turn(home: Home, one: PushedTurn) -> Turn:
    try:
        calls, flags = stored_calls(one.calls), Flag(one.flags)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"the turn {one.id} is of another version of nacre: {error}") from error
    turn = Turn(one.id, one.speaker, one.text, one.time, calls, flags, one.trust, one.author)
    cleaned: Turn = clean_values(home.redactor, turn)
    return cleaned


def _require_own(home: Home) -> str:
    """The space that is open. Raises NotAllowed unless it is a person's, and whoever asks is its owner."""
    who = standing(home)
    if who.kind not in (None, _PERSON) or who.role is not Role.OWNER:
        raise NotAllowed(
            f"{who.space} is not kept in step with machines by {who.account}: that is for a person's own space",
            hint="make a key as its owner: nacre keys create --space NAME --role owner",
        )
    return who.space


def _bounded(rows: Sequence[tuple[str, int, bytes | None]]) -> Iterator[tuple[str, int, bytes | None]]:
    """As many as an answer may hold, and at least one."""
    size = 0
    for path, version, data in rows:
        size += len(data or b"")
        if size > _MOST_BYTES and size > len(data or b""):
            return
        yield path, version, data


def _change(home: Home, one: PushedDocument) -> FileChange | str:
    try:
        present: bytes | None = home.vault.read(one.path, whole=True)
    except FileNotFoundError:
        present = None
    after = None if one.text is None else one.text.encode()
    return FileChange(present, after) if present == after or digest(present) == one.base else f"{one.path} was changed"


def _is_text(data: bytes) -> bool:
    try:
        bytes(data).decode()
    except UnicodeDecodeError:
        return False
    return True
