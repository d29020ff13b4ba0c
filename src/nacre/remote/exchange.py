"""Keep a home in step with a space on a server: say which, exchange what is new, tell how it stands, end it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from nacre.errors import Conflict, InvalidInput, NacreError, NotFound, RemoteMoved, RepositoryBusy
from nacre.history.schedule import REMOTE_LOCK, SYNC_LOCK
from nacre.home.home import Home
from nacre.home.intents import apply_intents
from nacre.memories.listing import write_listings
from nacre.memories.scan import catch_up
from nacre.platform.locks import FileLock
from nacre.remote.connection import Connection, check_url, drop_key, keep_key, key_for
from nacre.remote.documents import bring_in, give, what_is_here
from nacre.remote.requests import AddRemoteRequest, RemoteChangesRequest
from nacre.remote.state import State, drop_state, read_state, write_state
from nacre.remote.turns import count_waiting, send_turns
from nacre.remote.values import Exchanged, RemoteStanding, ServerChanges
from nacre.settings import unwrite_setting, write_setting
from nacre.values.codec import stamp
from nacre.values.reports import OnProgress, Progress
from nacre.vault.merge_notes import Note

_TRIES = 5
_PATIENCE_SECONDS = 20.0


def add_remote(home: Home, wanted: AddRemoteRequest, on_progress: OnProgress | None = None) -> Exchanged:
    """Keep address and key, if the key opens a space of the owner's, and exchange for the first time.

    Raises InvalidInput, Conflict where the memory is on a server itself, and what :func:`exchange` raises; where it is
    the exchange that fails, the next one goes on.
    """
    _require_files(home)
    url = check_url(wanted.url)
    key = wanted.key.strip() or key_for(home.settings)
    with contextlib.closing(Connection(url, key)) as server:
        far = 2**62  # of what is there nothing is asked for
        server.ask("remote-changes", RemoteChangesRequest(since=far, ledger_since=far), ServerChanges)
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
        state.url, state.space, home.settings.flag("remote.private"), state.succeeded, state.message, state.hint,
        len(state.seen), count_waiting(home, state) if home.settings.flag("remote.private") else 0,
    )  # fmt: skip


def exchange(home: Home, on_progress: OnProgress | None = None) -> Exchanged:
    """Bring in what changed at the server, give what changed here, send turns that it has not.

    What was interrupted goes on the next time. Raises NotFound where no server is set, RemoteUnreachable,
    RemoteRefused, NotAllowed, RepositoryBusy, and what a sync raises.
    """
    _require_files(home)
    notify = on_progress or (lambda _: None)
    with FileLock(home.settings.home / SYNC_LOCK, _PATIENCE_SECONDS), _outcome_kept(home):
        state = _state(home)
        (home.settings.home / REMOTE_LOCK).touch(mode=0o600)  # the next one in the background is due later
        with contextlib.closing(Connection(state.url, key_for(home.settings))) as server:
            done, state = _documents(home, server, state, notify)
            turns = 0
            if home.settings.flag("remote.private"):
                state, turns = send_turns(
                    home, server, state, lambda one: write_state(home.settings, one),
                    lambda sent: notify(Progress("turns", sent, sent)),
                )  # fmt: skip
            write_state(home.settings, state)
        if done.received:
            write_listings(home)
        return replace(done, turns=turns, problems=tuple(home.problems))


def exchange_quietly(home: Home) -> None:
    """What runs in the background: how it ends is kept, for ``nacre remote`` and ``nacre doctor``."""
    with contextlib.suppress(NacreError):
        exchange(home)


def _documents(home: Home, server: Connection, state: State, notify: OnProgress) -> tuple[Exchanged, State]:
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
                home, server, state, lambda one: write_state(home.settings, one),
                lambda done, all_: notify(Progress("documents", done, all_)),
            )  # fmt: skip
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
) -> Exchanged:  # fmt: skip
    return Exchanged(state.url, state.space, sent, received, notes=tuple(dict.fromkeys(notes)), held=held)


def _state(home: Home) -> State:
    if not home.settings.text("remote.url"):
        raise NotFound("this home is in step with no server", hint="nacre remote add https://…")
    return read_state(home.settings)


def _require_files(home: Home) -> None:
    if home.database.is_server:
        raise Conflict("this memory is on a server itself", hint="nacre move --from brings it here first")


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
    write_state(home.settings, replace(state, succeeded=now, failing_since=None, message="", hint=""))
