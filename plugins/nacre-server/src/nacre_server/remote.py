"""Sync of a home with a space on a server: the connection, exchange of documents and turns, and the server's side."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec
from msgspec import Meta

from nacre.base import files, json
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash
from nacre.base.locks import FileLock
from nacre.data.history import REMOTE_LOCK, SYNC_LOCK
from nacre.data.sync import (
    FileChange,
    Plan,
    plan_merge,
    refuse_paths,
    united_in,
    write_plan,
)
from nacre.errors import (
    ConflictError,
    InvalidInputError,
    InvalidMemoryError,
    NacreError,
    NotAllowedError,
    NotFoundError,
    RemoteMovedError,
    RemoteRefusedError,
    RemoteUnreachableError,
    RepositoryBusyError,
    UnavailableError,
)
from nacre.home.home import Home
from nacre.home.location import clean_values, without_secrets
from nacre.home.operations import apply_intents
from nacre.llm import credentials
from nacre.llm.credentials import is_loopback
from nacre.memories.edit import catch_up
from nacre.memories.tombstones import Gate
from nacre.memories.usage import write_listings
from nacre.operations import operation
from nacre.settings import Settings, unwrite_setting, write_setting
from nacre.store.schema import encode, kept_calls, stored_calls
from nacre.values.codec import stamp
from nacre.values.memory import Role, Scope
from nacre.values.reports import OK, WARNING, Check, OnProgress, Progress
from nacre.values.session import Flag, Session, Speaker, StoredTurn, Trust, Turn
from nacre.vault.documents import Note, parse
from nacre.vault.files import LEDGER, LISTING, is_derived, is_memory_file
from nacre.vault.merging import Tree, merge_ledgers
from nacre_server.spaces import standing

T = TypeVar("T")

KEY = "NACRE_REMOTE_KEY"
_CREDENTIAL_NAME = "nacre-remote"
_TIMEOUT_SECONDS = 300.0
"""Timeout in seconds. A server that receives much data from many machines can be slow."""
_CONNECT_SECONDS = 10.0
_MAX_ANSWER_BYTES = 32 << 20


class Connection:
    """An HTTP connection to a server with a key. Raises RemoteUnreachableError, RemoteRefusedError, NotAllowedError."""

    def __init__(self, url: str, key: str) -> None:
        address = urlsplit(url)
        self._client = httpx2.Client(
            base_url=url.rstrip("/"),
            trust_env=not is_loopback(address.hostname or ""),
            verify=address.scheme != "http",  # loading certificates takes 20 ms
            follow_redirects=False,
            headers={
                "authorization": f"Bearer {key}",
                "user-agent": "nacre",
                "content-type": "application/json",
            },
            timeout=httpx2.Timeout(_TIMEOUT_SECONDS, connect=_CONNECT_SECONDS),
        )

    def ask(self, operation: str, answer: type[T], **request: Any) -> T:
        try:
            with self._client.stream(
                "POST", f"/api/v1/{operation}", content=json.encode(request)
            ) as response:
                data = bytearray()
                for piece in response.iter_bytes():
                    data += piece
                    if len(data) > _MAX_ANSWER_BYTES:
                        raise RemoteRefusedError("the server's answer is too large for nacre")
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise RemoteUnreachableError(
                f"the server cannot be reached ({type(error).__name__})",
                hint="nothing is lost: changes are sent when it is reachable again",
            ) from None
        if response.status_code != 200:
            try:
                problem = json.parse(bytes(data))
            except (ValueError, RecursionError):
                problem = {}
            problem = problem if isinstance(problem, dict) else {}
            message = str(
                problem.get("detail") or problem.get("title") or f"status {response.status_code}"
            )[:500]
            hint = str(problem.get("hint") or "")[:500]
            if response.status_code == 401:
                raise NotAllowedError(
                    "the server rejects the key",
                    hint="create a new one: nacre server keys create; then nacre server remote add",
                )
            if response.status_code in (403, 404):
                raise NotAllowedError(f"the server refuses: {message}", hint=hint)
            if response.status_code in (429, 503) or response.status_code >= 500:
                raise RemoteUnreachableError(
                    f"the server cannot answer now: {message}", hint=hint or "it will be retried"
                )
            raise RemoteRefusedError(f"the server refuses: {message}", hint=hint)
        try:
            parsed: T = json.decode(bytes(data), answer)
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise RemoteRefusedError(
                "the server's answer is unexpected",
                hint="check that it has the same version of nacre",
            ) from None
        return parsed

    def close(self) -> None:
        self._client.close()


def check_url(url: str) -> str:
    """Return an address for storage.

    Raises InvalidInputError if it is neither encrypted nor local, or contains a login.
    """
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        raise InvalidInputError(
            f"{url!r} is not an address", hint="https://memory.example.org"
        ) from None
    if parts.scheme in ("postgresql", "postgres"):
        raise InvalidInputError(
            "that is a database; give the address of nacre serve",
            hint="give the address of nacre serve --http; to work on the database directly, use nacre data move --to",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInputError(
            "the address must not contain a key",
            hint="nacre asks for the key and stores it apart",
        )
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        raise InvalidInputError(
            f"{url!r} is not safe for sending memories", hint="use https, or http on this machine"
        )
    return url.strip().rstrip("/")


def key_for(settings: Settings) -> str:
    """Return the stored key or the key in the environment. Raises UnavailableError."""
    key: str | None = settings.environ.get(KEY, "").strip()
    if not key:
        with suppress(UnavailableError):
            key = "" if credentials.why_not() else credentials.read_from_keyring(_CREDENTIAL_NAME)
    key = key or credentials.read(settings).get(_CREDENTIAL_NAME)
    if not key:
        raise UnavailableError(
            "the key for the server is missing", hint=f"nacre server remote add URL, or set {KEY}"
        )
    return key


def keep_key(settings: Settings, secret: str) -> None:
    """Store a key in the keyring or, without one, in credentials.toml.

    Raises UnavailableError, UnusableCredentialsError.
    """
    try:
        credentials.store_in_keyring(_CREDENTIAL_NAME, secret)
    except UnavailableError:
        credentials.keep(settings, _CREDENTIAL_NAME, secret)
    else:
        credentials.drop(settings, _CREDENTIAL_NAME)


# -- Values exchanged between a machine and a server, and the results ------------------------------


@frozen
class PushedDocument:
    """A new, changed or removed document.

    ``text``: new text, or ``None`` for a removal. ``base``: hash of the old text, if any.
    """

    path: str
    text: str | None
    base: str | None = None


@frozen
class PushedTurn:
    """A turn for a server. ``calls`` are its tool calls in JSON, as in rows."""

    id: str
    speaker: Speaker
    text: str
    time: datetime | None = None
    calls: str = ""
    flags: int = 0
    trust: Trust = Trust.TRUSTED
    author: str | None = None


@frozen
class PushedSession:
    """Consecutive turns of a session."""

    session: Session
    project: str | None
    turns: list[PushedTurn]


@frozen
class ServerDocument:
    """A document on the server. ``text`` is ``None`` if the document was removed."""

    path: str
    text: str | None


@frozen
class ServerChanges:
    """Changed documents up to ``version``, and the ledger up to line ``ledger_at``.

    ``is_all`` is True if there are no more changes. ``newest`` is the server's latest version.
    """

    space: str
    version: int
    newest: int
    ledger_at: int
    documents: list[ServerDocument]
    ledger: list[str]
    is_all: bool


@frozen
class Pushed:
    """The reason why concurrent changes prevented a push, or empty if it was accepted."""

    obstacle: str = ""


@frozen
class Exchanged:
    """The result of an exchange. ``held`` are documents that stay local, with reasons. ``notes`` describe merges."""

    url: str
    space: str
    sent: int = 0
    received: int = 0
    turns: int = 0
    notes: tuple[Note, ...] = ()
    held: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


@frozen
class RemoteStanding:
    """The state of a home's sync with its server.

    ``succeeded``: time of the last complete exchange. ``problem``: reason why sync is blocked.
    """

    url: str
    space: str
    private: bool
    succeeded: str | None = None
    problem: str = ""
    hint: str = ""
    documents: int = 0
    waiting_turns: int = 0


def digest(data: bytes | None) -> str | None:
    """Return the hash of a document's contents."""
    return None if data is None else bytes_hash(data).hex()


def name_of(path: str) -> str:
    """Return the hash of a path, for use where the path must not appear."""
    return bytes_hash(path.encode("utf-8", "surrogatepass")).hex()


MOST_NAMES = 20_000

_Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Line = Annotated[str, Meta(max_length=1_000_000)]


# -- The state of the exchange ---------------------------------------------------------------------
# It contains hashes of paths and contents, but no texts.


_FILE = "remote.json"


@frozen
class State:
    """The state after the last exchange.

    ``seen`` maps the hash of each path to the hash of its document. ``at`` and ``ledger_at`` are
    the known versions of the server's documents and ledger. ``ledger_size`` and ``ledger`` are the
    size and hash of the part of the local ledger that the server has. ``here`` is a hash of the
    local state. Turns up to row ``turn``, with the id ``turn_id``, were sent.
    """

    url: str = ""
    space: str = ""
    at: int = 0
    ledger_at: int = 0
    ledger_size: int = 0
    ledger: str = ""
    here: str = ""
    turn: int = 0
    turn_id: str = ""
    succeeded: str | None = None
    failing_since: str | None = None
    message: str = ""
    hint: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)

    def knows(self, path: str) -> str | None:
        """Return the hash that a document had after the last exchange."""
        return self.seen.get(name_of(path))

    def having(self, documents: Mapping[str, bytes | None]) -> State:
        """Return the state after an exchange of these documents."""
        hashes = dict(self.seen)
        for path, data in documents.items():
            hashes.pop(name_of(path), None)
            if data is not None:
                hashes[name_of(path)] = digest(data) or ""
        return replace(self, seen=hashes)


def read_state(settings: Settings) -> State:
    """Return the stored state, or an empty state if it belongs to another server."""
    url = settings.text("remote.url")
    try:
        state: State = json.decode((settings.home / _FILE).read_bytes(), State)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return State(url)
    return state if state.url == url else State(url)


def write_state(settings: Settings, state: State) -> None:
    """Store the state. Raises OSError."""
    files.write_file(settings.home / _FILE, json.encode(state).decode() + "\n")


# -- Exchange of documents -------------------------------------------------------------------------
# Changes are differences from the last common state (:class:`~nacre_server.remote.State`).
# Documents that changed on both sides are merged as in a sync, based on the common version, which
# the server keeps.


_MAX_DOCUMENT_BYTES = 3_000_000
"""Maximum size of a document. Requests can have four million bytes, and JSON uses several for some characters."""

_DOCUMENTS_PER_PUSH, _BYTES_PER_PUSH = 100, 1_000_000
"""Maximum number of documents and bytes per push. A server accepts this in some seconds."""

_FLAGGED_REASON = "seems to contain a secret"
_PRIVATE_REASON = "private; it stays on this machine"


def documents_here(home: Home) -> dict[str, bytes]:
    """Return all documents except derived listings."""
    documents = {}
    for path in home.vault.paths():
        try:
            data = home.vault.read(path, whole=True)
        except (FileNotFoundError, InvalidMemoryError):
            continue
        if not _is_listing(path, data):
            documents[path] = data
    return documents


def what_is_here(home: Home) -> str:
    """Return a hash of the local documents and ledger."""
    times = sorted([*home.vault.times().items(), *home.vault.pages().items()], key=str)
    last = home.journal.operations(limit=1)
    parts = (
        times,
        len(home.ledger(whole=True)),
        [operation.id for operation in last],
        home.settings.mark,
    )
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def bring_in(home: Home, server: Connection, state: State) -> tuple[State, int, tuple[Note, ...]]:
    """Write remote changes to this home. Return their number, and notes about merges.

    Raises RemoteMovedError if a document is being edited, and the errors of a sync.
    """
    changes = _fetch(server, state)
    if changes.newest < state.at:  # the server was restored from a backup, so start over
        return bring_in(home, server, State(state.url, turn=state.turn, turn_id=state.turn_id))
    refuse_paths([document.path for document in changes.documents])
    remote = {
        document.path: None if document.text is None else document.text.encode()
        for document in changes.documents
    }
    remote = {
        path: data
        for path, data in remote.items()
        if not path.startswith(".")
        and path != LEDGER
        and not _is_listing(path, data or b"")
        and digest(data) != state.knows(path)
    }
    ledger = home.ledger(whole=True)
    local_lines = set(ledger.splitlines())
    lines = b"".join(
        line.encode() + b"\n" for line in changes.ledger if line.encode() not in local_lines
    )
    notes: tuple[Note, ...] = ()
    if remote or lines:
        plan = _plan(
            home,
            _versions_of(server, state),
            state,
            (documents_here(home), ledger),
            (remote, lines),
        )
        if obstacle := write_plan(home, plan, {}):
            raise RemoteMovedError(obstacle, hint="it will be retried")
        notes = plan.notes
    state = replace(
        state.having(remote), space=changes.space, at=changes.version, ledger_at=changes.ledger_at
    )
    return state, len(remote), notes


def give(
    home: Home, server: Connection, state: State, notify: OnProgress
) -> tuple[State, int, tuple[tuple[str, str], ...]]:
    """Send local changes. Return their number, and documents that stay local with reasons.

    The state is stored after each part. Raises RemoteMovedError if the server has another version
    of a document.
    """
    local = documents_here(home)
    names = state.seen.keys() - {name_of(path) for path in local}
    removed = _versions_of(server, state)(sorted(names))
    changes = {
        path: FileChange(None, local.get(path))
        for path in sorted({*local, *removed})
        if digest(local.get(path)) != state.knows(path)
    }
    held_back = {
        path: why
        for path, change in changes.items()
        if (why := _reason_to_hold(home, state, path, change.after))
    }
    changes = {path: change for path, change in changes.items() if path not in held_back}
    sent = 0
    for part in _parts(changes):
        documents = [
            PushedDocument(
                path,
                None if (data := changes[path].after) is None else data.decode(),
                state.knows(path),
            )
            for path in part
        ]
        state = _push(home, server, state, documents)
        state = state.having({path: changes[path].after for path in part})
        write_state(home.settings, state)
        sent += len(part)
        notify(Progress("documents", sent, len(changes)))
    return state if sent else _push(home, server, state, []), sent, tuple(sorted(held_back.items()))


def _fetch(server: Connection, state: State) -> ServerChanges:
    since, ledger_since = state.at, state.ledger_at
    documents: dict[str, ServerDocument] = {}
    lines: list[str] = []
    while True:
        changes = server.ask(
            "remote-changes", ServerChanges, since=since, ledger_since=ledger_since
        )
        documents |= {document.path: document for document in changes.documents}
        lines += changes.ledger
        if changes.is_all:
            return replace(changes, documents=[*documents.values()], ledger=lines)
        since, ledger_since = changes.version, changes.ledger_at


def _plan(
    home: Home,
    versions: Callable[[list[str]], Tree],
    state: State,
    ours: tuple[Tree, bytes],
    theirs: tuple[Mapping[str, bytes | None], bytes],
) -> Plan:
    """Plan the local changes. If no local document has changed, take the server's documents."""
    (local, ledger), (remote_files, lines) = ours, theirs
    names = {name_of(path) for path in local}
    changed = {path for path, data in local.items() if digest(data) != state.knows(path)}
    if not changed and state.seen.keys() <= names:
        changes = {
            path: FileChange(local.get(path), data)
            for path, data in remote_files.items()
            if local.get(path) != data
        }
        if lines:
            changes[LEDGER] = FileChange(ledger, merge_ledgers(ledger, lines))
        return Plan(None, changes, given_up=united_in(changes))
    needed = ({name_of(path) for path in changed} | (state.seen.keys() - names)) & state.seen.keys()
    base: dict[str, bytes] = {path: data for path, data in local.items() if path not in changed}
    base |= versions(sorted(needed))
    remote: dict[str, bytes | None] = {**base, **remote_files}
    remote_tree = {path: data for path, data in remote.items() if data is not None}
    plan, _ = plan_merge(home, base, {**local, LEDGER: ledger}, {**remote_tree, LEDGER: lines})
    return plan


def _versions_of(server: Connection, state: State) -> Callable[[list[str]], Tree]:
    """Return a function that finds documents of the last common state, given hashes of paths."""

    def ask(names: list[str]) -> Tree:
        contents: dict[str, bytes] = {}
        for start in range(0, len(names), MOST_NAMES):
            part = names[start : start + MOST_NAMES]
            answer = server.ask("remote-versions", list[ServerDocument], at=state.at, names=part)
            for document in answer:
                contents[document.path] = (document.text or "").encode()
        return contents

    return ask


def _reason_to_hold(home: Home, state: State, path: str, data: bytes | None) -> str:
    """Return the reason why a document stays local, or an empty string.

    A private document that was sent earlier is still sent.
    """
    if data is None:
        return ""
    if len(data) > _MAX_DOCUMENT_BYTES:
        return f"is larger than {_MAX_DOCUMENT_BYTES // 1_000_000} MB"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "is not text"
    if without_secrets(home.redactor, text) is None or without_secrets(home.redactor, path) is None:
        return _FLAGGED_REASON
    if state.knows(path) is not None or home.settings.flag("remote.private"):
        return ""
    if is_memory_file(path):  # a page mentions private memories
        with suppress(InvalidMemoryError):
            memory = parse(text, path, new_id=lambda: "", modified=home.now())
            return _PRIVATE_REASON if memory.scope is Scope.PRIVATE else ""
    return _PRIVATE_REASON


def _parts(changes: Mapping[str, FileChange]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for path, change in changes.items():
        part.append(path)
        size += len(change.after or b"")
        if size >= _BYTES_PER_PUSH or len(part) >= _DOCUMENTS_PER_PUSH:
            yield part
            part, size = [], 0
    if part:
        yield part


def _push(home: Home, server: Connection, state: State, documents: list[PushedDocument]) -> State:
    ledger = home.ledger(whole=True)
    is_known = digest(ledger[: state.ledger_size]) == state.ledger
    lines = (
        (ledger[state.ledger_size :] if is_known else ledger)
        .decode("utf-8", "replace")
        .splitlines()
    )
    if documents or lines:
        clean = [home.redactor.clean(line) for line in lines if line.strip()]
        pushed = server.ask("remote-push", Pushed, documents=documents, ledger=clean)
        if pushed.obstacle:
            raise RemoteMovedError(f"the server: {pushed.obstacle}", hint="it will be retried")
    return replace(state, ledger_size=len(ledger), ledger=digest(ledger) or "")


def _is_listing(path: str, data: bytes) -> bool:
    return PurePosixPath(path).name == LISTING and (not data or is_derived(data))


# -- Sending turns, in the order in which they were stored -----------------------------------------


_TURNS_PER_PUSH = 200
_TURN_BYTES_PER_PUSH = 1_500_000
_MAX_TEXT_CHARACTERS, _MAX_CALLS_CHARACTERS = 400_000, 400_000
"""Maximum lengths of a text, which is cut, and of tool calls, which are omitted.

JSON can use six bytes per character, and a request can have four million.
"""

_Pair = tuple[StoredTurn, PushedTurn]


def send_turns(
    home: Home, server: Connection, state: State, notify: OnProgress
) -> tuple[State, int]:
    """Send new turns and return their number. The state is stored after each part."""
    state = _check_state(home, state)
    sent = 0
    while batch := _next(home, state.turn):
        for part in _parts_turns(
            [(stored, _pushed_turns(clean_values(home.redactor, stored.turn))) for stored in batch]
        ):
            by_session: dict[int, list[PushedTurn]] = {}
            for stored, pushed in part:
                by_session.setdefault(stored.session, []).append(pushed)
            sessions = [_session(home, row, pushed) for row, pushed in by_session.items()]
            server.ask("remote-turns", int, sessions=sessions)
            last, _ = part[-1]
            state = replace(state, turn=last.row, turn_id=last.turn.id)
            write_state(home.settings, state)
            sent += len(part)
            notify(Progress("turns", sent, sent))
    return state, sent


def count_waiting(home: Home, state: State) -> int:
    """Return the number of turns to send, at most a thousand."""
    return len(
        home.database.all("list_turns_after", after=_check_state(home, state).turn, limit=1_000)
    )


def _check_state(home: Home, state: State) -> State:
    """Send all turns again if the database was rebuilt, because row numbers have changed.

    The server skips known turns.
    """
    stored = home.sessions.by_rows([state.turn]).get(state.turn) if state.turn else None
    is_same = not state.turn or (stored is not None and stored.turn.id == state.turn_id)
    return state if is_same else replace(state, turn=0, turn_id="")


def _next(home: Home, after: int) -> list[StoredTurn]:
    rows = home.database.column("list_turns_after", after=after, limit=_TURNS_PER_PUSH)
    return [turn for _, turn in sorted(home.sessions.by_rows(rows).items())]


def _parts_turns(turns: list[_Pair]) -> Iterator[list[_Pair]]:
    part: list[_Pair] = []
    size = 0
    for pair in turns:
        own = len(encode(pair[1]))
        if part and size + own > _TURN_BYTES_PER_PUSH:
            yield part
            part, size = [], 0
        part.append(pair)
        size += own
    yield part


def _session(home: Home, row: int, turns: list[PushedTurn]) -> PushedSession:
    stored = home.sessions.get(row)
    return PushedSession(clean_values(home.redactor, stored.session), stored.project, turns)


def _pushed_turns(turn: Turn) -> PushedTurn:
    calls = encode(kept_calls(turn.tool_calls)).decode() if turn.tool_calls else ""
    return PushedTurn(
        turn.id,
        turn.speaker,
        turn.text[:_MAX_TEXT_CHARACTERS],
        turn.time,
        calls if len(calls) <= _MAX_CALLS_CHARACTERS else "",
        int(turn.flags),
        turn.trust,
        turn.author,
    )


# -- Adding, syncing, showing and removing the server ----------------------------------------------


_MAX_TRIES = 5
_LOCK_WAIT_SECONDS = 20.0


@operation(
    "remote-add", writes=True, takes_long=True, owners=True, http=False, command="server remote add"
)
def add_remote(
    home: Home,
    url: Annotated[
        str, bounds("The address of nacre serve: https://…, or http:// on this machine.")
    ],
    key: Annotated[
        str, bounds("A key for the space, from nacre server keys create.", max_length=500)
    ] = "",
    private: Annotated[bool, bounds("Also send private memories and sessions.")] = True,
    on_progress: OnProgress | None = None,
) -> Exchanged:
    """Store the address and key if the key opens a space of the user, then sync for the first time.

    Raises InvalidInputError, ConflictError if the memory itself is on a server, and the errors of
    :func:`exchange`. If the exchange fails, the next one continues it.
    """
    _require_files(home)
    url = check_url(url)
    secret = key.strip() or key_for(home.settings)
    with contextlib.closing(Connection(url, secret)) as server:
        far = 2**62  # request no changes
        server.ask("remote-changes", ServerChanges, since=far, ledger_since=far)
    if key:
        keep_key(home.settings, secret)
    settings = home.settings
    for name, value in (("remote.url", url), ("remote.private", private)):
        write_setting(settings.config, name, value)
        settings = settings.having(name, value)
    return exchange(replace(home, settings=settings), on_progress)


@operation("remote-remove", writes=True, owners=True, http=False, command="server remote remove")
def remove_remote(home: Home) -> RemoteStanding:
    """Remove the server. The contents of both sides stay. Raises NotFoundError."""
    removed = show_remote(home)
    unwrite_setting(home.settings.config, "remote.url")
    with suppress(UnavailableError):
        credentials.delete_from_keyring(_CREDENTIAL_NAME)
    credentials.drop(home.settings, _CREDENTIAL_NAME)
    (home.settings.home / _FILE).unlink(missing_ok=True)
    return removed


@operation("remote", http=False)
def show_remote(home: Home) -> RemoteStanding:
    """Return the state of this home's sync with its server. Raises NotFoundError if there is no server."""
    state = _state(home)
    return RemoteStanding(
        state.url,
        state.space,
        home.settings.flag("remote.private"),
        state.succeeded,
        state.message,
        state.hint,
        len(state.seen),
        count_waiting(home, state) if home.settings.flag("remote.private") else 0,
    )


@operation("remote-sync", writes=True, takes_long=True, http=False)
def exchange(home: Home, on_progress: OnProgress | None = None) -> Exchanged:
    """Receive changes, send changes, and send new turns.

    If interrupted, the next call continues. Raises NotFoundError without a server,
    RemoteUnreachableError, RemoteRefusedError, NotAllowedError, RepositoryBusyError, and the errors
    of a sync.
    """
    _require_files(home)
    notify = on_progress or (lambda _: None)
    with FileLock(home.settings.home / SYNC_LOCK, _LOCK_WAIT_SECONDS), _recording_outcome(home):
        state = _state(home)
        # Delays the next background exchange.
        (home.settings.home / REMOTE_LOCK).touch(mode=0o600)
        with contextlib.closing(Connection(state.url, key_for(home.settings))) as server:
            result, state = _documents(home, server, state, notify)
            turns = 0
            if home.settings.flag("remote.private"):
                state, turns = send_turns(home, server, state, notify)
            write_state(home.settings, state)
        if result.received:
            write_listings(home)
        return replace(result, turns=turns, problems=tuple(home.problems))


def exchange_quietly(home: Home) -> None:
    """Sync in the background. ``nacre server remote`` and ``nacre admin doctor`` show the outcome."""
    with contextlib.suppress(NacreError):
        exchange(home)


def _documents(
    home: Home, server: Connection, state: State, notify: OnProgress
) -> tuple[Exchanged, State]:
    received, sent, notes = 0, 0, list[Note]()
    held_back: tuple[tuple[str, str], ...] = ()
    reason = "the server or this home keeps changing"
    for _ in range(_MAX_TRIES):
        catch_up(home)
        apply_intents(home)
        try:
            state, came, merged = bring_in(home, server, state)
            received, notes = received + came, [*notes, *merged]
            write_state(home.settings, state)
            before = what_is_here(home)
            went = 0
            if before != state.here:
                state, went, held_back = give(home, server, state, notify)
        except RemoteMovedError as error:
            reason, state = error.message, read_state(home.settings)
            continue
        sent += went
        state = replace(state, here=before)
        if not went:
            result = Exchanged(state.url, state.space, sent, received)
            return replace(result, notes=tuple(dict.fromkeys(notes)), held=held_back), state
    raise RepositoryBusyError(reason, hint="try again in a moment; nothing was lost")


def _state(home: Home) -> State:
    if not home.settings.text("remote.url"):
        raise NotFoundError(
            "this home does not sync with a server", hint="nacre server remote add https://…"
        )
    return read_state(home.settings)


def _require_files(home: Home) -> None:
    if home.database.server:
        raise ConflictError(
            "this memory is itself on a server", hint="move it here first: nacre data move --from"
        )


@contextlib.contextmanager
def _recording_outcome(home: Home) -> Iterator[None]:
    now = stamp(home.now())
    try:
        yield
    except InvalidInputError:
        raise
    except NacreError as error:
        state = read_state(home.settings)
        since = state.failing_since or now
        clean = home.redactor.clean
        message, hint = clean(error.message), clean(error.hint or "")
        write_state(home.settings, replace(state, failing_since=since, message=message, hint=hint))
        raise
    state = read_state(home.settings)
    write_state(
        home.settings, replace(state, succeeded=now, failing_since=None, message="", hint="")
    )


def check(home: Home) -> Iterator[Check]:
    """Report the outcome of the last exchange."""
    if not home.settings.text("remote.url"):
        return
    state = read_state(home.settings)
    if state.failing_since:
        yield Check(
            "remote",
            WARNING,
            f"out of sync since {state.failing_since}: {state.message}",
            state.hint or None,
        )
    elif state.succeeded:
        yield Check("remote", OK, f"{state.url}, space {state.space}, last {state.succeeded}")
    else:
        yield Check("remote", WARNING, f"{state.url}: no sync yet", "nacre server remote sync")


# -- Serving machines with a copy of a space -------------------------------------------------------


_MAX_RESPONSE_BYTES = 2_000_000
_CHANGES_PER_RESPONSE = 500
_LINES_PER_RESPONSE = 5_000
_PERSON = "person"


@operation("remote-changes", by_key=True)
def tell_changes(
    home: Home,
    since: Annotated[_Number, bounds("The last version that the caller has.")] = 0,
    ledger_since: Annotated[
        _Number, bounds("The last line of the ledger that the caller has.")
    ] = 0,
) -> ServerChanges:
    """Return changes of documents and of the ledger. Raises NotAllowedError."""
    space = _require_own(home)
    newest = int(home.database.value("last_document_version") or 0)
    rows = home.database.all("list_changes_since", since=since, limit=_CHANGES_PER_RESPONSE)
    changes = list(_limit_size(rows))
    is_cut = len(changes) < len(rows) or len(rows) == _CHANGES_PER_RESPONSE
    version = max(changes[-1][1] if is_cut else newest, since)
    lines = home.database.all("list_ledger_since", since=ledger_since, limit=_LINES_PER_RESPONSE)
    is_all = not is_cut and len(lines) < _LINES_PER_RESPONSE
    documents = [
        document for path, _, data in changes if (document := _server_document(path, data))
    ]
    ledger_at = int(lines[-1][0]) if lines else ledger_since
    ledger = [bytes(line).decode("utf-8", "replace") for _, line in lines]
    return ServerChanges(space, version, newest, ledger_at, documents, ledger, is_all)


@operation("remote-versions", by_key=True)
def tell_versions(
    home: Home,
    at: Annotated[_Number, bounds("The version.")],
    names: Annotated[list[str], bounds("Hashes of their paths.", max_length=MOST_NAMES)],
) -> list[ServerDocument]:
    """Return documents at a version, except missing and forgotten documents. Raises NotAllowedError."""
    _require_own(home)
    wanted = set(names)
    documents = []
    for path, version in home.database.all("list_documents_at", at=at):
        if name_of(path) in wanted:
            data = home.database.value("read_version", version=version)
            document = _server_document(path, data)
            if document and document.text is not None:
                documents.append(document)
    return documents


def _server_document(path: str, data: bytes | None) -> ServerDocument | None:
    try:
        return ServerDocument(path, None if data is None else bytes(data).decode())
    except UnicodeDecodeError:
        return None


@operation("remote-push", writes=True, by_key=True)
def take_documents(
    home: Home,
    documents: Annotated[list[PushedDocument], bounds("The documents' new contents.")],
    ledger: Annotated[list[_Line], bounds("Ledger lines that the server may lack.")],
) -> Pushed:
    """Accept documents and ledger lines, unless a document was changed concurrently.

    Raises NotAllowedError, UnusableRepositoryError for paths that no vault has, InvalidMemoryError.
    """
    _require_own(home)
    paths = [document.path for document in documents]
    refuse_paths(paths)
    if LEDGER in paths or any(path.startswith(".") for path in paths):
        raise InvalidInputError("only documents are accepted")
    lines = [line.encode() for line in ledger]
    with home.vault_lock:
        changes = {}
        for document in documents:
            try:
                present: bytes | None = home.vault.read(document.path, whole=True)
            except FileNotFoundError:
                present = None
            after = None if document.text is None else document.text.encode()
            if present != after and digest(present) != document.base:
                return Pushed(f"{document.path} has changed")
            changes[document.path] = FileChange(present, after)
        if lines:
            home.vault.append(LEDGER, ledger)
    new = {LEDGER: FileChange(None, b"\n".join(lines))}
    return Pushed(write_plan(home, Plan(None, changes, given_up=united_in(new)), {}) or "")


@operation("remote-turns", writes=True, by_key=True)
def take_turns(
    home: Home,
    sessions: Annotated[list[PushedSession], bounds("Sessions, each with its turns in order.")],
) -> int:
    """Store turns that are not forgotten. Return the number of new turns. The sending machine learns from them.

    Raises NotAllowedError, InvalidInputError.
    """
    _require_own(home)
    gate = Gate(home)
    with home.transaction():
        gate.refresh()
        return sum(_take_session(home, gate, session) for session in sessions)


def _take_session(home: Home, gate: Gate, pushed: PushedSession) -> int:
    session = gate.clean_title(clean_values(home.redactor, pushed.session))
    turns = gate.filter_turns(session, pushed.project, [_turn(home, turn) for turn in pushed.turns])
    if not gate.admits(session) or not turns:
        return 0
    row = home.sessions.upsert(session, project=pushed.project, file=None)
    new = home.sessions.add_turns(session, row, turns)
    home.sessions.refresh([row])
    ((_, end),) = home.database.all("next_seqs", sessions=f"[{row}]")
    home.sessions.mark_extracted(row, end)
    return new


def _turn(home: Home, pushed: PushedTurn) -> Turn:
    try:
        calls, flags = stored_calls(pushed.calls), Flag(pushed.flags)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"the turn {pushed.id} is from another version of nacre: {error}"
        ) from error
    own = (pushed.id, pushed.speaker, pushed.text, pushed.time)
    turn = Turn(*own, calls, flags, pushed.trust, pushed.author)
    cleaned: Turn = clean_values(home.redactor, turn)
    return cleaned


def _require_own(home: Home) -> str:
    """Return the open space. Raises NotAllowedError unless it is personal and belongs to the caller."""
    caller = standing(home)
    if caller.kind not in (None, _PERSON) or caller.role is not Role.OWNER:
        raise NotAllowedError(
            f"{caller.space} cannot sync with machines of {caller.account}: only a personal space of its own "
            "account can",
            hint="create a key as its owner: nacre server keys create --space NAME --role owner",
        )
    return caller.space


def _limit_size(
    rows: Sequence[tuple[str, int, bytes | None]],
) -> Iterator[tuple[str, int, bytes | None]]:
    """Yield the rows that fit into a response, at least one."""
    size = 0
    for path, version, data in rows:
        size += len(data or b"")
        if size > _MAX_RESPONSE_BYTES and size > len(data or b""):
            return
        yield path, version, data
