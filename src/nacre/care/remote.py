"""Questions to nacre on a server, over HTTP with a key."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec
from msgspec import Meta

from nacre.base import files, json
from nacre.base.ids import bytes_hash
from nacre.base.locks import FileLock
from nacre.base.request import Request
from nacre.data.history import REMOTE_LOCK, SYNC_LOCK
from nacre.data.sync import (
    FileChange,
    Plan,
    plan_merge,
    refuse_paths,
    together,
    united_in,
    write_plan,
)
from nacre.errors import (
    Conflict,
    InvalidInput,
    MemoryInvalid,
    NacreError,
    NotAllowed,
    NotFound,
    RemoteMoved,
    RemoteRefused,
    RemoteUnreachable,
    RepositoryBusy,
    Unavailable,
)
from nacre.home.home import Home, require_room, standing
from nacre.home.location import clean_values, without_secrets
from nacre.home.operations import apply_intents
from nacre.llm import credentials
from nacre.llm.credentials import is_loopback
from nacre.memories.edit import catch_up
from nacre.memories.tombstones import Gate
from nacre.memories.usage import write_listings
from nacre.settings import Settings, unwrite_setting, write_setting
from nacre.store.schema import encode, kept_calls, stored_calls
from nacre.values.codec import stamp
from nacre.values.memory import Role, Scope
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Flag, Session, Speaker, StoredTurn, Trust, Turn
from nacre.vault.documents import Note, parse
from nacre.vault.files import LEDGER, LISTING, is_derived, is_memory_file
from nacre.vault.merging import Tree, merge_ledgers

T = TypeVar("T")

KEY = "NACRE_REMOTE_KEY"
_KEPT_AS = "nacre-remote"
_SECONDS = 300.0
"""A server that many machines bring a lot to at once may take so long."""
_CONNECT_SECONDS = 10.0
_MOST_ANSWER = 32 << 20


class Connection:
    """Asks one server, in the name of whom a key is. Raises RemoteUnreachable, RemoteRefused, NotAllowed."""

    def __init__(self, url: str, key: str) -> None:
        here = is_loopback(urlsplit(url).hostname or "")
        self._client = httpx2.Client(
            base_url=url.rstrip("/"),
            trust_env=not here,
            follow_redirects=False,
            headers={
                "authorization": f"Bearer {key}",
                "user-agent": "nacre",
                "content-type": "application/json",
            },
            timeout=httpx2.Timeout(_SECONDS, connect=_CONNECT_SECONDS),
        )

    def ask(self, operation: str, request: Any, answer: type[T]) -> T:
        """What the server answers."""
        try:
            with self._client.stream(
                "POST", f"/api/v1/{operation}", content=json.encode(request)
            ) as response:
                data = bytearray()
                for piece in response.iter_bytes():
                    data += piece
                    if len(data) > _MOST_ANSWER:
                        raise RemoteRefused("the server's answer is too large to be one of nacre's")
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise RemoteUnreachable(
                f"the server cannot be reached ({type(error).__name__})",
                hint="nothing is lost: what is new goes there when it answers again",
            ) from None
        if response.status_code != 200:
            raise _refusal(response.status_code, bytes(data))
        try:
            found: T = json.decode(bytes(data), answer)
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise RemoteRefused(
                "the server answers what nacre does not understand",
                hint="is it as new as this one?",
            ) from None
        return found

    def close(self) -> None:
        """End all connections."""
        self._client.close()


def check_url(url: str) -> str:
    """An address as it is kept. Raises InvalidInput unless it is encrypted, or on this machine, and holds no login."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        raise InvalidInput(f"{url!r} is no address", hint="https://memory.example.org") from None
    if parts.scheme in ("postgresql", "postgres"):
        raise InvalidInput(
            "that is a database: a machine keeps in step with nacre serve, by a key",
            hint="work with the database itself by nacre move --to, or name the address of nacre serve --http",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            "the address is the server's alone", hint="the key is asked for, and kept apart"
        )
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        raise InvalidInput(
            f"{url!r} is not safe to send memories to", hint="https, or http on this machine"
        )
    return url.strip().rstrip("/")


def key_for(settings: Settings) -> str:
    """The key that was kept, or that the environment names. Raises Unavailable."""
    found = (
        settings.environ.get(KEY, "").strip()
        or _in_keyring()
        or credentials.read(settings).get(_KEPT_AS, "")
    )
    if not found:
        raise Unavailable(
            "the key to the server is not here any more", hint=f"nacre remote add URL, or set {KEY}"
        )
    return found


def keep_key(settings: Settings, secret: str) -> None:
    """Keep a key in the system's keyring, else in credentials.toml. Raises Unavailable, CredentialsUnusable."""
    try:
        credentials.keep_keyrings(_KEPT_AS, secret)
    except Unavailable:
        credentials.keep(settings, _KEPT_AS, secret)
    else:
        credentials.drop(settings, _KEPT_AS)


def drop_key(settings: Settings) -> None:
    """Forget it."""
    with suppress(Unavailable):
        credentials.drop_keyrings(_KEPT_AS)
    credentials.drop(settings, _KEPT_AS)


def _in_keyring() -> str:
    try:
        return "" if credentials.why_not() else credentials.read_keyrings(_KEPT_AS) or ""
    except Unavailable:
        return ""


def _refusal(status: int, body: bytes) -> NacreError:
    said = _problem(body)
    message = str(said.get("detail") or said.get("title") or f"status {status}")[:500]
    hint = str(said.get("hint") or "")[:500]
    if status == 401:
        return NotAllowed(
            "the server does not take the key",
            hint="make another: nacre keys create; nacre remote add",
        )
    if status in (403, 404, HTTPStatus.INSUFFICIENT_STORAGE):
        return NotAllowed(f"the server says: {message}", hint=hint)
    if status in (429, 503) or status >= 500:
        return RemoteUnreachable(
            f"the server cannot answer now: {message}", hint=hint or "it is tried again later"
        )
    return RemoteRefused(f"the server says: {message}", hint=hint)


def _problem(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.parse(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# ----------------------------------------------------------------------------
# What goes between a machine and a server, and how that went.


@dataclass(frozen=True, slots=True)
class PushedDocument:
    """What a document is to hold; ``None`` removes it. ``base`` is the hash of what it held, ``None`` for a new one."""

    path: str
    text: str | None
    base: str | None = None


@dataclass(frozen=True, slots=True)
class PushedTurn:
    """A turn as it goes to a server; ``calls`` are its tool calls as rows keep them, in JSON."""

    id: str
    speaker: Speaker
    text: str
    time: datetime | None = None
    calls: str = ""
    flags: int = 0
    trust: Trust = Trust.TRUSTED
    author: str | None = None


@dataclass(frozen=True, slots=True)
class PushedSession:
    """Some turns of a session, in their order."""

    session: Session
    project: str | None
    turns: list[PushedTurn]


@dataclass(frozen=True, slots=True)
class ServerDocument:
    """What a document holds at the server; ``None`` where it was removed."""

    path: str
    text: str | None


@dataclass(frozen=True, slots=True)
class ServerChanges:
    """What became of documents, up to ``version``, and the ledger, up to line ``ledger_at``. ``is_all``: there is no
    more to ask for. ``newest`` is the last version of all."""

    space: str
    version: int
    newest: int
    ledger_at: int
    documents: list[ServerDocument]
    ledger: list[str]
    is_all: bool


@dataclass(frozen=True, slots=True)
class Pushed:
    """Why nothing was taken: somebody else changed that meanwhile. Empty: everything was."""

    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What one exchange did. ``held`` are documents that stay here, each with the reason; ``notes`` what was merged."""

    url: str
    space: str
    sent: int = 0
    received: int = 0
    turns: int = 0
    notes: tuple[Note, ...] = ()
    held: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteStanding:
    """How a home stands to its server. ``succeeded`` is when both were last in step, ``problem`` why they are not."""

    url: str
    space: str
    private: bool
    succeeded: str | None = None
    problem: str = ""
    hint: str = ""
    documents: int = 0
    waiting_turns: int = 0


def digest(data: bytes | None) -> str | None:
    """What stands for what a document holds."""
    return None if data is None else bytes_hash(data).hex()


def name_of(path: str) -> str:
    """What stands for a path where it is not to be told."""
    return bytes_hash(path.encode("utf-8", "surrogatepass")).hex()


# ----------------------------------------------------------------------------
# Requests to keep a home in step with a space on a server, and what machines ask of that server.


MOST_NAMES = 20_000

_Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Line = Annotated[str, Meta(max_length=1_000_000)]


class AddRemoteRequest(Request, frozen=True, kw_only=True):
    """Keep this home in step with a space on a server."""

    url: Annotated[
        str, Meta(description="Where nacre is served: https://…, or http:// on this machine.")
    ]
    key: Annotated[
        str, Meta(description="A key to the space, as nacre keys create shows it.", max_length=500)
    ] = ""
    private: Annotated[bool, Meta(description="Private memories and sessions go there, too.")] = (
        True
    )


class RemoteChangesRequest(Request, frozen=True, kw_only=True):
    """Ask a server what became of its documents and ledger."""

    since: Annotated[_Number, Meta(description="The version up to which they are known.")] = 0
    ledger_since: Annotated[
        _Number, Meta(description="The line up to which the ledger is known.")
    ] = 0


class RemoteVersionsRequest(Request, frozen=True, kw_only=True):
    """Ask a server what documents held when they went up to a version."""

    at: Annotated[_Number, Meta(description="The version.")]
    names: Annotated[list[str], Meta(description="Hashes of their paths.", max_length=MOST_NAMES)]


class RemotePushRequest(Request, frozen=True, kw_only=True):
    """Give a server documents and lines of the ledger: all of them are taken, or none."""

    documents: Annotated[list[PushedDocument], Meta(description="What documents are to hold.")]
    ledger: Annotated[list[_Line], Meta(description="Lines that the server may not have.")]


class RemoteTurnsRequest(Request, frozen=True, kw_only=True):
    """Give a server turns of sessions; what it has already stays as it is."""

    sessions: Annotated[
        list[PushedSession], Meta(description="Sessions, each with turns in their order.")
    ]


# ----------------------------------------------------------------------------
# What a home keeps of its server: how far both were in step. No texts: paths and contents are hashes.


_FILE = "remote.json"


@dataclass(frozen=True, slots=True)
class State:
    """``seen`` are documents as both had them last, by hashes of their paths. ``at`` and ``ledger_at`` are how far the
    server's documents and ledger are known, ``ledger_size`` and ``ledger`` the bytes of the ledger here that the server
    has, and their hash; ``here`` stands for what was here then. Turns up to row ``turn``, whose own id is ``turn_id``,
    were sent."""

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
        """The hash of what a document held last."""
        return self.seen.get(name_of(path))

    def having(self, documents: Mapping[str, bytes | None]) -> State:
        """The same after both agreed on these."""
        seen = dict(self.seen)
        for path, data in documents.items():
            seen.pop(name_of(path), None)
            if data is not None:
                seen[name_of(path)] = digest(data) or ""
        return replace(self, seen=seen)


def read_state(settings: Settings) -> State:
    """What is known; of another server than the one that is set, nothing."""
    url = settings.text("remote.url")
    try:
        found: State = json.decode((settings.home / _FILE).read_bytes(), State)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return State(url)
    return found if found.url == url else State(url)


def write_state(settings: Settings, state: State) -> None:
    """Keep it. Raises OSError."""
    files.write_file(settings.home / _FILE, json.encode(state).decode() + "\n")


def drop_state(settings: Settings) -> None:
    """Forget it."""
    (settings.home / _FILE).unlink(missing_ok=True)


# ----------------------------------------------------------------------------
# Documents of a home and of its server: bring in what changed there, give what changed here.
#
# Both were the same once, document by document (:class:`~nacre.care.remote.State`): what differs
# from that changed. What
# changed on both sides is merged as in a sync, from the version that the server still has.


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
        path: data
        for path, data in there.items()
        if not path.startswith(".")
        and path != LEDGER
        and not _is_listing(path, data or b"")
        and digest(data) != state.knows(path)
    }
    ledger = _ledger(home)
    known = set(ledger.splitlines())
    lines = b"".join(line.encode() + b"\n" for line in found.ledger if line.encode() not in known)
    notes: tuple[Note, ...] = ()
    if there or lines:
        plan = _plan(
            home, _versions_of(server, state), state, (documents_here(home), ledger), (there, lines)
        )
        if obstacle := write_plan(home, plan, {}):
            raise RemoteMoved(obstacle, hint="it is tried again")
        notes = plan.notes
    state = replace(
        state.having(there), space=found.space, at=found.version, ledger_at=found.ledger_at
    )
    return state, len(there), notes


def give(
    home: Home,
    server: Connection,
    state: State,
    keep: Callable[[State], None],
    tell: Callable[[int, int], object],
) -> tuple[State, int, tuple[tuple[str, str], ...]]:
    """Send what changed here; returns how many documents went, and which stay, each with the reason.

    After each part ``keep`` is given the state, and ``tell`` how many of how many went. Raises RemoteMoved where the
    server has another version of one.
    """
    here = documents_here(home)
    names = state.seen.keys() - {name_of(path) for path in here}
    gone = _versions_of(server, state)(sorted(names))
    changes = {
        path: FileChange(None, here.get(path))
        for path in sorted({*here, *gone})
        if digest(here.get(path)) != state.knows(path)
    }
    held = {
        path: why
        for path, one in changes.items()
        if (why := _why_held(home, state, path, one.after))
    }
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
    home: Home,
    versions: Callable[[list[str]], Tree],
    state: State,
    ours: tuple[Tree, bytes],
    theirs: tuple[Mapping[str, bytes | None], bytes],
) -> Plan:
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


def _plan_taking(
    here: Tree, ledger: bytes, there: Mapping[str, bytes | None], lines: bytes
) -> Plan:
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
    lines = (
        (ledger[state.ledger_size :] if is_known else ledger)
        .decode("utf-8", "replace")
        .splitlines()
    )
    if documents or lines:
        clean = [home.redactor.clean(line) for line in lines if line.strip()]
        pushed = server.ask(
            "remote-push", RemotePushRequest(documents=documents, ledger=clean), Pushed
        )
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


# ----------------------------------------------------------------------------
# Turns of sessions go to the server, in the order in which they were stored here.


_AT_ONCE_TURNS = 200
_BYTES_AT_ONCE_TURNS = 1_500_000
_MOST_CHARACTERS, _MOST_CALLS = 400_000, 400_000
"""Of a text, which is cut there, and of tool calls, which stay here beyond: JSON may take six bytes for
a character, and a server takes four million of a request."""

_Pair = tuple[StoredTurn, PushedTurn]


def send_turns(
    home: Home,
    server: Connection,
    state: State,
    keep: Callable[[State], None],
    tell: Callable[[int], object],
) -> tuple[State, int]:
    """Send what was stored since; returns how many turns went. ``keep`` is given the state after each part."""
    state = _checked(home, state)
    sent = 0
    while found := _next(home, state.turn):
        for part in _parts_turns(
            [(one, _pushed_turns(clean_values(home.redactor, one.turn))) for one in found]
        ):
            server.ask("remote-turns", RemoteTurnsRequest(sessions=_by_session(home, part)), int)
            last, _ = part[-1]
            state = replace(state, turn=last.row, turn_id=last.turn.id)
            keep(state)
            sent += len(part)
            tell(sent)
    return state, sent


def count_waiting(home: Home, state: State) -> int:
    """How many turns are still to go, a thousand at most."""
    return len(home.database.all("list_turns_after", after=_checked(home, state).turn, limit=1_000))


def _checked(home: Home, state: State) -> State:
    """Where the database was built anew, its rows have other numbers: everything goes again, and is known there."""
    found = home.sessions.by_rows([state.turn]).get(state.turn) if state.turn else None
    is_same = not state.turn or (found is not None and found.turn.id == state.turn_id)
    return state if is_same else replace(state, turn=0, turn_id="")


def _next(home: Home, after: int) -> list[StoredTurn]:
    rows = [
        int(row)
        for (row,) in home.database.all("list_turns_after", after=after, limit=_AT_ONCE_TURNS)
    ]
    return [turn for _, turn in sorted(home.sessions.by_rows(rows).items())]


def _parts_turns(turns: list[_Pair]) -> Iterator[list[_Pair]]:
    part: list[_Pair] = []
    size = 0
    for one in turns:
        own = len(encode(one[1]))
        if part and size + own > _BYTES_AT_ONCE_TURNS:
            yield part
            part, size = [], 0
        part.append(one)
        size += own
    yield part


def _by_session(home: Home, turns: list[_Pair]) -> list[PushedSession]:
    found: dict[int, list[PushedTurn]] = {}
    for stored, pushed in turns:
        found.setdefault(stored.session, []).append(pushed)
    return [_session(home, row, those) for row, those in found.items()]


def _session(home: Home, row: int, turns: list[PushedTurn]) -> PushedSession:
    stored = home.sessions.get(row)
    return PushedSession(clean_values(home.redactor, stored.session), stored.project, turns)


def _pushed_turns(turn: Turn) -> PushedTurn:
    calls = encode(kept_calls(turn.tool_calls)).decode() if turn.tool_calls else ""
    return PushedTurn(
        turn.id,
        turn.speaker,
        turn.text[:_MOST_CHARACTERS],
        turn.time,
        calls if len(calls) <= _MOST_CALLS else "",
        int(turn.flags),
        turn.trust,
        turn.author,
    )


# ----------------------------------------------------------------------------
# Keep a home in step with a space on a server: say which, exchange what is new, tell how it stands,
# end it.


_TRIES = 5
_PATIENCE_SECONDS = 20.0


def add_remote(
    home: Home, wanted: AddRemoteRequest, on_progress: OnProgress | None = None
) -> Exchanged:
    """Keep address and key, if the key opens a space of the owner's, and exchange for the first time.

    Raises InvalidInput, Conflict where the memory is on a server itself, and what :func:`exchange` raises; where it is
    the exchange that fails, the next one goes on.
    """
    _require_files(home)
    url = check_url(wanted.url)
    key = wanted.key.strip() or key_for(home.settings)
    with contextlib.closing(Connection(url, key)) as server:
        far = 2**62  # of what is there nothing is asked for
        server.ask(
            "remote-changes", RemoteChangesRequest(since=far, ledger_since=far), ServerChanges
        )
    if wanted.key:
        keep_key(home.settings, key)
    for name, value in (("remote.url", url), ("remote.private", wanted.private)):
        write_setting(home.settings.config, name, value)
    settings = home.settings.having("remote.url", url).having("remote.private", wanted.private)
    return exchange(replace(home, settings=settings), on_progress)


def remove_remote(home: Home) -> RemoteStanding:
    """Be in step with no server any more: here and there everything stays. Raises NotFound."""
    known = show_remote(home)
    unwrite_setting(home.settings.config, "remote.url")
    drop_key(home.settings)
    drop_state(home.settings)
    return known


def show_remote(home: Home) -> RemoteStanding:
    """How this home stands to its server. Raises NotFound where there is none."""
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


def exchange(home: Home, on_progress: OnProgress | None = None) -> Exchanged:
    """Bring in what changed at the server, give what changed here, send turns that it has not.

    What was interrupted goes on the next time. Raises NotFound where no server is set, RemoteUnreachable,
    RemoteRefused, NotAllowed, RepositoryBusy, and what a sync raises.
    """
    _require_files(home)
    notify = on_progress or (lambda _: None)
    with FileLock(home.settings.home / SYNC_LOCK, _PATIENCE_SECONDS), _outcome_kept(home):
        state = _state(home)
        (home.settings.home / REMOTE_LOCK).touch(
            mode=0o600
        )  # the next one in the background is due later
        with contextlib.closing(Connection(state.url, key_for(home.settings))) as server:
            done, state = _documents(home, server, state, notify)
            turns = 0
            if home.settings.flag("remote.private"):
                state, turns = send_turns(
                    home,
                    server,
                    state,
                    lambda one: write_state(home.settings, one),
                    lambda sent: notify(Progress("turns", sent, sent)),
                )
            write_state(home.settings, state)
        if done.received:
            write_listings(home)
        return replace(done, turns=turns, problems=tuple(home.problems))


def exchange_quietly(home: Home) -> None:
    """What runs in the background: how it ends is kept, for ``nacre remote`` and ``nacre doctor``."""
    with contextlib.suppress(NacreError):
        exchange(home)


def _documents(
    home: Home, server: Connection, state: State, notify: OnProgress
) -> tuple[Exchanged, State]:
    """Until nothing changed on either side since the last look."""
    received, sent, notes = 0, 0, list[Note]()
    held: tuple[tuple[str, str], ...] = ()
    reason = "the server, or this home, keeps changing"
    for _ in range(_TRIES):
        catch_up(home)
        apply_intents(home)
        try:
            state, came, merged = bring_in(home, server, state)
            received, notes = received + came, [*notes, *merged]
            write_state(home.settings, state)
            here = what_is_here(home)
            if here == state.here:
                return _exchanged(state, sent, received, notes, held), state
            state, went, held = give(
                home,
                server,
                state,
                lambda one: write_state(home.settings, one),
                lambda done, all_: notify(Progress("documents", done, all_)),
            )
        except RemoteMoved as error:
            reason, state = error.message, read_state(home.settings)
            continue
        sent += went
        state = replace(state, here=here)
        if not went:
            return _exchanged(state, sent, received, notes, held), state
    raise RepositoryBusy(reason, hint="repeat it in a moment; nothing was lost")


def _exchanged(
    state: State, sent: int, received: int, notes: list[Note], held: tuple[tuple[str, str], ...]
) -> Exchanged:
    return Exchanged(
        state.url, state.space, sent, received, notes=tuple(dict.fromkeys(notes)), held=held
    )


def _state(home: Home) -> State:
    if not home.settings.text("remote.url"):
        raise NotFound("this home is in step with no server", hint="nacre remote add https://…")
    return read_state(home.settings)


def _require_files(home: Home) -> None:
    if home.database.is_server:
        raise Conflict(
            "this memory is on a server itself", hint="nacre move --from brings it here first"
        )


@contextlib.contextmanager
def _outcome_kept(home: Home) -> Iterator[None]:
    """Remember how an exchange ends."""
    now = stamp(home.now())
    try:
        yield
    except InvalidInput:
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


# ----------------------------------------------------------------------------
# What a server does for machines that hold a copy of a space: tell what changed, take what they have.


_MOST_BYTES_SERVING = 2_000_000
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
        for path, _, data in taken
        if data is None or _is_text(data)
    ]
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
    plan = Plan(
        None,
        {p: c for p, c in changes.items() if isinstance(c, FileChange)},
        given_up=united_in(new),
    )
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


def _bounded(
    rows: Sequence[tuple[str, int, bytes | None]],
) -> Iterator[tuple[str, int, bytes | None]]:
    """As many as an answer may hold, and at least one."""
    size = 0
    for path, version, data in rows:
        size += len(data or b"")
        if size > _MOST_BYTES_SERVING and size > len(data or b""):
            return
        yield path, version, data


def _change(home: Home, one: PushedDocument) -> FileChange | str:
    try:
        present: bytes | None = home.vault.read(one.path, whole=True)
    except FileNotFoundError:
        present = None
    after = None if one.text is None else one.text.encode()
    return (
        FileChange(present, after)
        if present == after or digest(present) == one.base
        else f"{one.path} was changed"
    )


def _is_text(data: bytes) -> bool:
    try:
        bytes(data).decode()
    except UnicodeDecodeError:
        return False
    return True
