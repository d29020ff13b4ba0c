"""Sync of a home with a space on a server, on both sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import field, replace
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
from nacre.base.plain import string
from nacre.base.text import to_bytes
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
from nacre.llm.credentials import is_local
from nacre.memories.edit import catch_up
from nacre.memories.tombstones import Gate
from nacre.operations import operation
from nacre.settings import Settings, unwrite_setting, write_setting
from nacre.store.schema import encode
from nacre.values.codec import stamp
from nacre.values.memory import Role, Scope
from nacre.values.reports import OK, WARNING, Check, OnProgress, Progress
from nacre.values.session import Session, Turn
from nacre.vault.documents import Note, parse
from nacre.vault.files import LEDGER, is_memory_file
from nacre_server.move import present_bytes, read_documents
from nacre_server.spaces import standing

T = TypeVar("T")

KEY = "NACRE_REMOTE_KEY"
_CREDENTIAL_NAME = "nacre-remote"
_TIMEOUT_SECONDS = 300.0
"""Timeout in seconds. A busy server can be slow."""
_MAX_ANSWER_BYTES = 32 << 20
_CONNECT_SECONDS = 10.0


class Connection:
    """An authenticated connection to a server.

    Requests raise RemoteUnreachableError, RemoteRefusedError or NotAllowedError.
    """

    def __init__(self, url: str, key: str) -> None:
        self._client = httpx2.Client(
            base_url=url.rstrip("/"),
            trust_env=not is_local(url),
            verify=not url.startswith("http:"),  # loading certificates takes 20 ms
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
            path, content, data = f"/api/v1/{operation}", json.encode(request), bytearray()
            with self._client.stream("POST", path, content=content) as response:
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
            problem = None
            with suppress(ValueError, RecursionError):
                problem = json.parse(bytes(data))
            message = string(problem, "detail", "title") or f"status {response.status_code}"
            message, hint = message[:500], (string(problem, "hint") or "")[:500]
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
            return json.decode(bytes(data), answer)
        except msgspec.DecodeError:
            raise RemoteRefusedError(
                "the server's answer is unexpected",
                hint="check that it has the same version of nacre",
            ) from None

    def close(self) -> None:
        self._client.close()


def check_url(url: str) -> str:
    """Normalise a server's address.

    Raises InvalidInputError if it contains a login, or is neither encrypted nor local.
    """
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        raise InvalidInputError(
            f"{url!r} is not an address", hint="give an address such as https://memory.example.org"
        ) from None
    if parts.scheme in ("postgresql", "postgres"):
        raise InvalidInputError(
            "this is the address of a database",
            hint="give the address of nacre serve --http; to work on the database directly, use nacre data move --to",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInputError(
            "the address must not contain a key",
            hint="leave it out: nacre asks for the key and stores it separately",
        )
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_local(url))):
        raise InvalidInputError(
            f"{url!r} is not safe for sending memories", hint="use https, or http on this machine"
        )
    return url.strip().rstrip("/")


def key_for(settings: Settings) -> str:
    """Return the key from the environment, or else the stored one. Raises UnavailableError."""
    key = settings.environ.get(KEY, "").strip() or credentials.read(settings).get(_CREDENTIAL_NAME)
    if not key:
        raise UnavailableError(
            "the key for the server is missing", hint=f"nacre server remote add URL, or set {KEY}"
        )
    return key


# -- Messages and results --------------------------------------------------------------------------


@frozen
class SentDocument:
    """A document that is sent, or removed if ``text`` is ``None``.

    ``base`` is the hash of the version that the sender edited, if any.
    """

    path: str
    text: str | None
    base: str | None = None


@frozen
class PushedSession:
    """Successive turns of a session, to be stored on a server."""

    session: Session
    project: str | None
    turns: list[Turn]


@frozen
class ServerChanges:
    """A server's changed documents up to ``version``, and its ledger up to line ``ledger_at``.

    ``is_all`` is False if there are more changes. ``newest`` is the server's latest version.
    """

    space: str
    version: int
    newest: int
    ledger_at: int
    documents: list[SentDocument]
    ledger: list[str]
    is_all: bool


@frozen
class Exchanged:
    """The result of an exchange with a server.

    ``held`` are documents that were not sent, with the reasons, and ``notes`` describe merges.
    """

    url: str
    space: str
    sent: int
    received: int
    turns: int = 0
    notes: tuple[Note, ...] = ()
    held: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


@frozen
class RemoteStanding:
    """The state of a home's sync with its server.

    ``succeeded`` is the time of the last complete sync, and ``problem`` is why later ones failed.
    """

    url: str
    space: str
    private: bool
    succeeded: str | None
    problem: str
    hint: str
    documents: int
    waiting_turns: int


def digest(data: bytes | None) -> str | None:
    """Return the hash of a document's content."""
    return None if data is None else bytes_hash(data).hex()


def name_of(path: str) -> str:
    """Return the hash of a path, for use where the path must not appear."""
    return bytes_hash(path.encode("utf-8", "surrogatepass")).hex()


MOST_NAMES = 20_000

_Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Line = Annotated[str, Meta(max_length=1_000_000)]


# -- The state of the exchange ---------------------------------------------------------------------
# It contains hashes instead of paths and text, so that it reveals nothing that was forgotten.


_FILE = "remote.json"


@frozen
class State:
    """The state of a home's sync after the last exchange with its server."""

    url: str = ""
    space: str = ""
    at: int = 0
    """The server's version of the documents."""

    ledger_at: int = 0
    """The server's version of the ledger."""

    ledger_size: int = 0
    """Size of the local ledger's part that the server has."""

    ledger: str = ""
    """Hash of the same part."""

    here: str = ""
    """Hash of the local documents."""

    turn: int = 0
    """Row of the last turn sent."""

    turn_id: str = ""
    succeeded: str | None = None
    failing_since: str | None = None
    message: str = ""
    hint: str = ""
    seen: dict[str, str] = field(default_factory=dict)
    """Hashes of documents by the hashes of their paths."""

    def hash_of(self, path: str) -> str | None:
        """Return the hash that a document had after the last exchange, if it existed."""
        return self.seen.get(name_of(path))

    def after_exchange(self, documents: Mapping[str, bytes | None]) -> State:
        hashes = self.seen | {name_of(path): digest(data) for path, data in documents.items()}
        return replace(self, seen={name: value for name, value in hashes.items() if value})


def read_state(settings: Settings) -> State:
    """Return the stored state of the sync, or an empty one if it is of another server or missing."""
    url = settings.text("remote.url")
    try:
        state = json.decode((settings.home / _FILE).read_bytes(), State)
    except (OSError, msgspec.DecodeError):
        return State(url)
    return state if state.url == url else State(url)


def write_state(settings: Settings, state: State) -> None:
    """Store the state of the sync. Raises OSError."""
    files.write_file(settings.home / _FILE, json.encode(state).decode() + "\n")


# -- Exchange of documents -------------------------------------------------------------------------
# Changes are differences from the last common state. Documents that changed on both sides are merged
# as in a sync.


_MAX_DOCUMENT_BYTES = 3_000_000
"""Maximum size of a document.

A request can have four million bytes, and JSON uses several for some characters.
"""

_DOCUMENTS_PER_PUSH, _BYTES_PER_PUSH = 100, 1_000_000
"""Maximum number of documents and bytes per push."""

_PRIVATE_REASON = "private; it stays on this machine"


def vault_fingerprint(home: Home) -> str:
    """Return a hash of the documents and ledger on this machine."""
    times = sorted([*home.vault.times().items(), *home.vault.pages().items()], key=str)
    last = [operation.id for operation in home.journal.operations(limit=1)]
    parts = times, len(home.ledger(whole=True)), last, home.settings.mark
    return bytes_hash(repr(parts).encode("utf-8", "surrogatepass")).hex()


def pull_documents(
    home: Home, server: Connection, state: State
) -> tuple[State, int, tuple[Note, ...]]:
    """Apply the server's changes to this home.

    Return the new state, the number of changes, and notes about merges. Raises RemoteMovedError if
    a document is being edited, and the errors of a sync.
    """
    changes = _fetch(server, state)
    if changes.newest < state.at:  # the server was restored from a backup, so start over
        return pull_documents(
            home, server, State(state.url, turn=state.turn, turn_id=state.turn_id)
        )
    refuse_paths([document.path for document in changes.documents])
    remote = {
        document.path: None if document.text is None else document.text.encode()
        for document in changes.documents
        if not document.path.startswith(".") and document.path != LEDGER
    }
    remote = {path: data for path, data in remote.items() if digest(data) != state.hash_of(path)}
    ledger = home.ledger(whole=True)
    local_lines = set(ledger.splitlines())
    lines = b"".join(
        line.encode() + b"\n" for line in changes.ledger if line.encode() not in local_lines
    )
    notes: tuple[Note, ...] = ()
    if remote or lines:
        local = dict(read_documents(home.vault))
        base = {path: data for path, data in local.items() if digest(data) == state.hash_of(path)}
        base |= _versions(server, state, sorted(state.seen.keys() - set(map(name_of, base))))
        theirs = {path: data for path, data in {**base, **remote}.items() if data is not None}
        plan, _ = plan_merge(home, base, {**local, LEDGER: ledger}, {**theirs, LEDGER: lines})
        if obstacle := write_plan(home, plan, {}):
            raise RemoteMovedError(obstacle, hint="it will be retried")
        notes = plan.notes
    state = replace(
        state.after_exchange(remote),
        space=changes.space,
        at=changes.version,
        ledger_at=changes.ledger_at,
    )
    return state, len(remote), notes


def push_documents(
    home: Home, server: Connection, state: State, notify: OnProgress
) -> tuple[State, int, tuple[tuple[str, str], ...]]:
    """Send local changes, storing the state after each push.

    Return the new state, the number sent, and the reasons for documents not sent. Raises
    RemoteMovedError if the server has another version of a document.
    """
    local = dict(read_documents(home.vault))
    removed = _versions(server, state, sorted(state.seen.keys() - set(map(name_of, local))))
    changes = {
        path: local.get(path)
        for path in sorted({*local, *removed})
        if digest(local.get(path)) != state.hash_of(path)
    }
    reasons = {path: _reason_to_hold(home, state, path, data) for path, data in changes.items()}
    held = tuple((path, reason) for path, reason in reasons.items() if reason)
    for path, _ in held:
        del changes[path]
    sent = 0
    for part in _portions(
        changes, lambda path: len(changes[path] or b""), _BYTES_PER_PUSH, _DOCUMENTS_PER_PUSH
    ):
        documents = [
            SentDocument(
                path,
                None if (data := changes[path]) is None else data.decode(),
                state.hash_of(path),
            )
            for path in part
        ]
        state = _push(home, server, state, documents)
        state = state.after_exchange({path: changes[path] for path in part})
        write_state(home.settings, state)
        sent += len(part)
        notify(Progress("documents", sent, len(changes)))
    return state if sent else _push(home, server, state, []), sent, held


def _fetch(server: Connection, state: State) -> ServerChanges:
    since, ledger_since = state.at, state.ledger_at
    documents: dict[str, SentDocument] = {}
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


def _versions(server: Connection, state: State, names: list[str]) -> dict[str, bytes]:
    parts = (names[start : start + MOST_NAMES] for start in range(0, len(names), MOST_NAMES))
    return {
        document.path: (document.text or "").encode()
        for part in parts
        for document in server.ask("remote-versions", list[SentDocument], at=state.at, names=part)
    }


def _reason_to_hold(home: Home, state: State, path: str, data: bytes | None) -> str:
    """Return the reason not to send a document. A private one is sent if the server already has it."""
    if data is None:
        return ""
    if len(data) > _MAX_DOCUMENT_BYTES:
        return f"is larger than {_MAX_DOCUMENT_BYTES // 1_000_000} MB"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "is not text"
    if without_secrets(home.redactor, text) is None or without_secrets(home.redactor, path) is None:
        return "seems to contain a secret"
    if state.hash_of(path) is not None or home.settings.flag("remote.private"):
        return ""
    if is_memory_file(path):  # a page mentions private memories
        with suppress(InvalidMemoryError):
            memory = parse(text, path, new_id=lambda: "", modified=home.now())
            return _PRIVATE_REASON if memory.scope is Scope.PRIVATE else ""
    return _PRIVATE_REASON


def _portions(
    items: Iterable[T], size_of: Callable[[T], int], most_bytes: int, most: int
) -> Iterator[list[T]]:
    portion: list[T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if portion and (len(portion) == most or total + size > most_bytes):
            yield portion
            portion, total = [], 0
        portion.append(item)
        total += size
    if portion:
        yield portion


def _push(home: Home, server: Connection, state: State, documents: list[SentDocument]) -> State:
    ledger = home.ledger(whole=True)
    is_known = digest(ledger[: state.ledger_size]) == state.ledger
    lines = (
        (ledger[state.ledger_size :] if is_known else ledger)
        .decode("utf-8", "replace")
        .splitlines()
    )
    if documents or lines:
        clean = [home.redactor.clean(line) for line in lines if line.strip()]
        obstacle = server.ask("remote-push", str, documents=documents, ledger=clean)
        if obstacle:
            raise RemoteMovedError(f"the server: {obstacle}", hint="it will be retried")
    return replace(state, ledger_size=len(ledger), ledger=digest(ledger) or "")


# -- Exchange of turns -----------------------------------------------------------------------------


_TURNS_PER_PUSH = 200
_TURN_BYTES_PER_PUSH = 1_500_000
_MAX_TEXT_CHARACTERS, _MAX_CALLS_BYTES = 400_000, 400_000
"""Maximum sizes of a turn's text, which is cut, and of its tool calls, which are omitted."""


def send_turns(
    home: Home, server: Connection, state: State, notify: OnProgress
) -> tuple[State, int]:
    """Send new turns, storing the state after each push.

    Return the new state and the number of turns.
    """
    state = _check_state(home, state)
    sent = 0
    while rows := home.database.column("list_turns_after", after=state.turn, limit=_TURNS_PER_PUSH):
        batch = [turn for _, turn in sorted(home.sessions.by_rows(rows).items())]
        turns = {stored.row: _turn_to_send(home, stored.turn) for stored in batch}
        for part in _portions(
            batch,
            lambda stored: len(to_bytes(encode(turns[stored.row]))),  # noqa: B023 - called at once
            _TURN_BYTES_PER_PUSH,
            _TURNS_PER_PUSH,
        ):
            by_session: dict[int, list[Turn]] = defaultdict(list)
            for stored in part:
                by_session[stored.session].append(turns[stored.row])
            sessions = []
            for row, session_turns in by_session.items():
                source = home.sessions.get(row)
                session = clean_values(home.redactor, source.session)
                sessions.append(PushedSession(session, source.project, session_turns))
            server.ask("remote-turns", int, sessions=sessions)
            last = part[-1]
            state = replace(state, turn=last.row, turn_id=last.turn.id)
            write_state(home.settings, state)
            sent += len(part)
            notify(Progress("turns", sent, sent))
    return state, sent


def count_waiting(home: Home, state: State) -> int:
    """Count the turns that are not sent yet, up to a thousand."""
    return len(
        home.database.all("list_turns_after", after=_check_state(home, state).turn, limit=1_000)
    )


def _check_state(home: Home, state: State) -> State:
    """Send all turns again after a rebuild of the database, which changes row numbers."""
    stored = home.sessions.by_rows([state.turn]).get(state.turn) if state.turn else None
    is_same = not state.turn or (stored is not None and stored.turn.id == state.turn_id)
    return state if is_same else replace(state, turn=0, turn_id="")


def _turn_to_send(home: Home, turn: Turn) -> Turn:
    cleaned: Turn = clean_values(home.redactor, turn)
    calls = cleaned.tool_calls
    return replace(
        cleaned,
        text=cleaned.text[:_MAX_TEXT_CHARACTERS],
        tool_calls=calls if len(to_bytes(encode(calls))) <= _MAX_CALLS_BYTES else (),
    )


# -- Operations on a machine -----------------------------------------------------------------------


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
    on_progress: OnProgress = lambda _: None,
) -> Exchanged:
    """Store the address and key if the key opens a space of the user, then sync for the first time.

    Raises InvalidInputError, ConflictError if the memory itself is on a server, and the errors of
    :func:`exchange`. If the exchange fails, the next one continues it.
    """
    _require_files(home)
    url = check_url(url)
    secret = key.strip() or key_for(home.settings)
    with closing(Connection(url, secret)) as server:
        far = 2**62  # request no changes
        server.ask("remote-changes", ServerChanges, since=far, ledger_since=far)
    if key:
        credentials.keep(home.settings, _CREDENTIAL_NAME, secret)
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
def exchange(home: Home, on_progress: OnProgress = lambda _: None) -> Exchanged:
    """Receive changes, send changes, and send new turns.

    If interrupted, the next call continues. Raises NotFoundError without a server,
    RemoteUnreachableError, RemoteRefusedError, NotAllowedError, RepositoryBusyError, and the errors
    of a sync.
    """
    _require_files(home)
    with FileLock(home.settings.home / SYNC_LOCK, _LOCK_WAIT_SECONDS), _recording_outcome(home):
        state = _state(home)
        # Delays the next background exchange.
        (home.settings.home / REMOTE_LOCK).touch(mode=0o600)
        with closing(Connection(state.url, key_for(home.settings))) as server:
            result, state = _documents(home, server, state, on_progress)
            turns = 0
            if home.settings.flag("remote.private"):
                state, turns = send_turns(home, server, state, on_progress)
            write_state(home.settings, state)
        return replace(result, turns=turns, problems=tuple(home.problems))


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
            state, pulled, merged = pull_documents(home, server, state)
            received, notes = received + pulled, [*notes, *merged]
            write_state(home.settings, state)
            before = vault_fingerprint(home)
            pushed_count = 0
            if before != state.here:
                state, pushed_count, held_back = push_documents(home, server, state, notify)
        except RemoteMovedError as error:
            reason, state = error.message, read_state(home.settings)
            continue
        sent += pushed_count
        state = replace(state, here=before)
        if not pushed_count:
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


@contextmanager
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
    """Report the outcome of the last sync with the server."""
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


# -- Operations on the server ----------------------------------------------------------------------


_MAX_RESPONSE_BYTES = 2_000_000
_CHANGES_PER_RESPONSE = 500
_LINES_PER_RESPONSE = 5_000
_PERSON = "person"


@operation("remote-changes", by_key=True)
def list_changes(
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
    changes = next(
        _portions(rows, lambda row: len(row[2] or b""), _MAX_RESPONSE_BYTES, len(rows)), []
    )
    is_cut = len(changes) < len(rows) or len(rows) == _CHANGES_PER_RESPONSE
    version = max(changes[-1][1] if is_cut else newest, since)
    lines = home.database.all("list_ledger_since", since=ledger_since, limit=_LINES_PER_RESPONSE)
    is_all = not is_cut and len(lines) < _LINES_PER_RESPONSE
    documents = [document for path, _, data in changes if (document := _sent_document(path, data))]
    ledger_at = int(lines[-1][0]) if lines else ledger_since
    ledger = [bytes(line).decode("utf-8", "replace") for _, line in lines]
    return ServerChanges(space, version, newest, ledger_at, documents, ledger, is_all)


@operation("remote-versions", by_key=True)
def list_versions(
    home: Home,
    at: Annotated[_Number, bounds("The space's version.")],
    names: Annotated[list[str], bounds("Hashes of the documents' paths.", max_length=MOST_NAMES)],
) -> list[SentDocument]:
    """Return documents at a version, except missing and forgotten documents. Raises NotAllowedError."""
    _require_own(home)
    wanted = set(names)
    documents = (
        _sent_document(path, home.database.value("read_version", version=version))
        for path, version in home.database.all("list_documents_at", at=at)
        if name_of(path) in wanted
    )
    return [document for document in documents if document and document.text is not None]


def _sent_document(path: str, data: bytes | None) -> SentDocument | None:
    try:
        return SentDocument(path, None if data is None else bytes(data).decode())
    except UnicodeDecodeError:
        return None


@operation("remote-push", writes=True, by_key=True)
def accept_documents(
    home: Home,
    documents: Annotated[list[SentDocument], bounds("The documents' new contents.")],
    ledger: Annotated[list[_Line], bounds("Ledger lines that the server may lack.")],
) -> str:
    """Accept documents and ledger lines. Return the obstacle if a document was changed concurrently.

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
            present = present_bytes(home.vault, document.path)
            after = None if document.text is None else document.text.encode()
            if present != after and digest(present) != document.base:
                return f"{document.path} has changed"
            changes[document.path] = FileChange(present, after)
        if lines:
            home.vault.append(LEDGER, ledger)
    new = {LEDGER: FileChange(None, b"\n".join(lines))}
    return write_plan(home, Plan(None, changes, given_up=united_in(new)), {}) or ""


@operation("remote-turns", writes=True, by_key=True)
def accept_turns(
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
        return sum(_accept_session(home, gate, session) for session in sessions)


def _accept_session(home: Home, gate: Gate, pushed: PushedSession) -> int:
    session = gate.clean_title(clean_values(home.redactor, pushed.session))
    turns = gate.filter_turns(session, pushed.project, clean_values(home.redactor, pushed.turns))
    if not gate.admits(session) or not turns:
        return 0
    row = home.sessions.upsert(session, project=pushed.project, file=None)
    new = home.sessions.add_turns(session, row, turns)
    home.sessions.refresh([row])
    ((_, end),) = home.database.all("next_seqs", sessions=f"[{row}]")
    home.sessions.mark_extracted(row, end)
    return new


def _require_own(home: Home) -> str:
    caller = standing(home)
    if caller.kind not in (None, _PERSON) or caller.role is not Role.OWNER:
        raise NotAllowedError(
            f"{caller.space} cannot sync with machines of {caller.account}: only a personal space of its own "
            "account can",
            hint="create a key as its owner: nacre server keys create --space NAME --role owner",
        )
    return caller.space
