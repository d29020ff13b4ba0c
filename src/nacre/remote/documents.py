"""Documents of a home and of its server: bring in what changed there, give what changed here.

Both were the same once, document by document (:class:`~nacre.remote.state.State`): what differs from that changed. What
changed on both sides is merged as in a sync, from the version that the server still has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from nacre.errors import MemoryInvalid, RemoteMoved
from nacre.home.home import Home
from nacre.home.redaction import without_secrets
from nacre.remote.connection import Connection
from nacre.remote.requests import MOST_NAMES, RemoteChangesRequest, RemotePushRequest, RemoteVersionsRequest
from nacre.remote.state import State
from nacre.remote.values import Pushed, PushedDocument, ServerChanges, ServerDocument, digest, name_of
from nacre.sync.import_remote import together, write_plan
from nacre.sync.merge import FileChange, Plan, plan_merge, refuse_paths, united_in
from nacre.values.memory import Scope
from nacre.vault.document import parse
from nacre.vault.identity import Tree
from nacre.vault.layout import LEDGER, is_memory_file
from nacre.vault.listing import LISTING, is_derived
from nacre.vault.merge_notes import Note
from nacre.vault.merging import merge_ledgers

_MOST_BYTES = 3_000_000
"""Of a document; a request may have four million, in which some characters take several."""

_AT_ONCE, _BYTES_AT_ONCE = 100, 1_000_000
"""Documents, and their bytes, that a server takes in some seconds."""

_HELD = "holds what looks like a secret"
_PRIVATE = "private, and stays on this machine"


def documents_here(home: Home) -> dict[str, bytes]:
    """Every document, but for the listings that are made from others."""
    found = {}
    for path in home.vault.paths():
        try:
            data = home.vault.read(path, whole=True)
        except (FileNotFoundError, MemoryInvalid):
            continue
        if not _is_listing(path, data):
            found[path] = data
    return found


def what_is_here(home: Home) -> str:
    """Stands for the documents and the ledger as they are now: where it is the same, nothing changed."""
    seen = sorted([*home.vault.times().items(), *home.vault.pages().items()], key=str)
    last = home.journal.operations(limit=1)
    told = (seen, len(_ledger(home)), [one.id for one in last], home.settings.mark)
    return hashlib.blake2b(repr(told).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def bring_in(home: Home, server: Connection, state: State) -> tuple[State, int, tuple[Note, ...]]:
    """Write here what changed there; returns how many documents that were, and what was merged.

    Raises RemoteMoved where somebody edits one of them at this moment; and what a sync raises.
    """
    found = _fetch(server, state)
    if found.newest < state.at:  # a backup was restored there: nothing is known of it
        return bring_in(home, server, State(state.url, turn=state.turn, turn_id=state.turn_id))
    refuse_paths([one.path for one in found.documents])
    there = {one.path: None if one.text is None else one.text.encode() for one in found.documents}
    there = {
        path: data for path, data in there.items()
        if not path.startswith(".") and path != LEDGER and not _is_listing(path, data or b"")
        and digest(data) != state.knows(path)
    }  # fmt: skip
    ledger = _ledger(home)
    known = set(ledger.splitlines())
    lines = b"".join(line.encode() + b"\n" for line in found.ledger if line.encode() not in known)
    notes: tuple[Note, ...] = ()
    if there or lines:
        plan = _plan(home, _versions_of(server, state), state, (documents_here(home), ledger), (there, lines))
        if obstacle := write_plan(home, plan, {}):
            raise RemoteMoved(obstacle, hint="it is tried again")
        notes = plan.notes
    state = replace(state.having(there), space=found.space, at=found.version, ledger_at=found.ledger_at)
    return state, len(there), notes


def give(
    home: Home, server: Connection, state: State, keep: Callable[[State], None], tell: Callable[[int, int], object]
) -> tuple[State, int, tuple[tuple[str, str], ...]]:  # fmt: skip
    """Send what changed here; returns how many documents went, and which stay, each with the reason.

    After each part ``keep`` is given the state, and ``tell`` how many of how many went. Raises RemoteMoved where the
    server has another version of one.
    """
    here = documents_here(home)
    names = state.seen.keys() - {name_of(path) for path in here}
    gone = _versions_of(server, state)(sorted(names))
    changes = {
        path: FileChange(None, here.get(path)) for path in sorted({*here, *gone})
        if digest(here.get(path)) != state.knows(path)
    }  # fmt: skip
    held = {path: why for path, one in changes.items() if (why := _why_held(home, state, path, one.after))}
    changes = {path: one for path, one in changes.items() if path not in held}
    sent = 0
    for part in _parts(changes):
        documents = [_pushed(state, path, changes[path].after) for path in part]
        state = _push(home, server, state, documents)
        state = state.having({path: changes[path].after for path in part})
        keep(state)
        sent += len(part)
        tell(sent, len(changes))
    return state if sent else _push(home, server, state, []), sent, tuple(sorted(held.items()))


def _fetch(server: Connection, state: State) -> ServerChanges:
    """All that changed, in one."""
    asked = RemoteChangesRequest(since=state.at, ledger_since=state.ledger_at)
    found = server.ask("remote-changes", asked, ServerChanges)
    documents, lines = {one.path: one for one in found.documents}, list(found.ledger)
    while not found.is_all:
        asked = RemoteChangesRequest(since=found.version, ledger_since=found.ledger_at)
        found = server.ask("remote-changes", asked, ServerChanges)
        documents |= {one.path: one for one in found.documents}
        lines += found.ledger
    return replace(found, documents=[*documents.values()], ledger=lines)


def _plan(
    home: Home, versions: Callable[[list[str]], Tree], state: State, ours: tuple[Tree, bytes],
    theirs: tuple[Mapping[str, bytes | None], bytes],
) -> Plan:  # fmt: skip
    """What is to be written here. Where nothing changed here, it is what changed there."""
    (here, ledger), (there, lines) = ours, theirs
    names = {name_of(path) for path in here}
    changed = {path for path, data in here.items() if digest(data) != state.knows(path)}
    if not changed and state.seen.keys() <= names:
        return _plan_taking(here, ledger, there, lines)
    wanted = ({name_of(path) for path in changed} | (state.seen.keys() - names)) & state.seen.keys()
    base: dict[str, bytes] = {path: data for path, data in here.items() if path not in changed}
    base |= versions(sorted(wanted))
    remote: dict[str, bytes | None] = {**base, **there}
    remote_tree = {path: data for path, data in remote.items() if data is not None}
    plan, _ = plan_merge(home, base, {**here, LEDGER: ledger}, {**remote_tree, LEDGER: lines})
    return plan


def _plan_taking(here: Tree, ledger: bytes, there: Mapping[str, bytes | None], lines: bytes) -> Plan:
    changes = {path: FileChange(here.get(path), data) for path, data in there.items()}
    changes = {path: one for path, one in changes.items() if one.before != one.after}
    if lines:
        changes[LEDGER] = FileChange(ledger, merge_ledgers(ledger, lines))
    return Plan(None, changes, given_up=united_in(changes))


def _versions_of(server: Connection, state: State) -> Callable[[list[str]], Tree]:
    """Tells what documents held, by hashes of their paths, when both were last in step."""

    def ask(names: list[str]) -> Tree:
        found: dict[str, bytes] = {}
        for start in range(0, len(names), MOST_NAMES):
            asked = RemoteVersionsRequest(at=state.at, names=names[start : start + MOST_NAMES])
            for one in server.ask("remote-versions", asked, list[ServerDocument]):
                found[one.path] = (one.text or "").encode()
        return found

    return ask


def _why_held(home: Home, state: State, path: str, data: bytes | None) -> str:
    """Why a document stays on this machine; empty where it goes. What went once is kept in step."""
    if data is None:
        return ""
    if len(data) > _MOST_BYTES:
        return f"is larger than {_MOST_BYTES // 1_000_000} MB"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "is no text"
    if without_secrets(home.redactor, text) is None or without_secrets(home.redactor, path) is None:
        return _HELD
    if state.knows(path) is not None or home.settings.flag("remote.private"):
        return ""
    return _PRIVATE if _is_private(home, path, text) else ""


def _is_private(home: Home, path: str, text: str) -> bool:
    """Whether it is a private memory, or a page, which tells of private ones."""
    if not is_memory_file(path):
        return True
    try:
        return parse(text, path, new_id=lambda: "", modified=home.now()).scope is Scope.PRIVATE
    except MemoryInvalid:
        return True


def _parts(changes: Mapping[str, FileChange]) -> Iterator[list[str]]:
    """Paths that go at once: what belongs together, and not too much."""
    part: list[str] = []
    size = 0
    for group in together(changes):
        part += group
        size += sum(len(changes[path].after or b"") for path in group)
        if size >= _BYTES_AT_ONCE or len(part) >= _AT_ONCE:
            yield part
            part, size = [], 0
    if part:
        yield part


def _pushed(state: State, path: str, data: bytes | None) -> PushedDocument:
    return PushedDocument(path, None if data is None else data.decode(), state.knows(path))


def _push(home: Home, server: Connection, state: State, documents: list[PushedDocument]) -> State:
    """Send documents, and with them what the ledger says since."""
    ledger = _ledger(home)
    is_known = digest(ledger[: state.ledger_size]) == state.ledger
    lines = (ledger[state.ledger_size :] if is_known else ledger).decode("utf-8", "replace").splitlines()
    if documents or lines:
        clean = [home.redactor.clean(line) for line in lines if line.strip()]
        pushed = server.ask("remote-push", RemotePushRequest(documents=documents, ledger=clean), Pushed)
        if pushed.obstacle:
            raise RemoteMoved(f"the server: {pushed.obstacle}", hint="it is tried again")
    return replace(state, ledger_size=len(ledger), ledger=digest(ledger) or "")


def _ledger(home: Home) -> bytes:
    try:
        return home.vault.read(LEDGER, whole=True)
    except FileNotFoundError:
        return b""


def _is_listing(path: str, data: bytes) -> bool:
    return PurePosixPath(path).name == LISTING and (not data or is_derived(data))
