"""Turns of sessions go to the server, in the order in which they were stored here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from nacre.home.home import Home
from nacre.home.redaction import clean_values
from nacre.remote.connection import Connection
from nacre.remote.requests import RemoteTurnsRequest
from nacre.remote.state import State
from nacre.remote.values import PushedSession, PushedTurn
from nacre.storage.turn_rows import encode, kept_calls
from nacre.values.session import StoredTurn, Turn

_AT_ONCE = 200
_BYTES_AT_ONCE = 1_500_000
_MOST_CHARACTERS, _MOST_CALLS = 400_000, 400_000
"""Of a text, which is cut there, and of tool calls, which stay here beyond: JSON may take six bytes for
a character, and a server takes four million of a request."""

_Pair = tuple[StoredTurn, PushedTurn]


def send_turns(
    home: Home, server: Connection, state: State, keep: Callable[[State], None], tell: Callable[[int], object]
) -> tuple[State, int]:  # fmt: skip
    """Send what was stored since; returns how many turns went. ``keep`` is given the state after each part."""
    state = _checked(home, state)
    sent = 0
    while found := _next(home, state.turn):
        for part in _parts([(one, _pushed(clean_values(home.redactor, one.turn))) for one in found]):
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
    rows = [int(row) for (row,) in home.database.all("list_turns_after", after=after, limit=_AT_ONCE)]
    return [turn for _, turn in sorted(home.sessions.by_rows(rows).items())]


def _parts(turns: list[_Pair]) -> Iterator[list[_Pair]]:
    part: list[_Pair] = []
    size = 0
    for one in turns:
        own = len(encode(one[1]))
        if part and size + own > _BYTES_AT_ONCE:
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


def _pushed(turn: Turn) -> PushedTurn:
    calls = encode(kept_calls(turn.tool_calls)).decode() if turn.tool_calls else ""
    return PushedTurn(
        turn.id, turn.speaker, turn.text[:_MOST_CHARACTERS], turn.time, calls if len(calls) <= _MOST_CALLS else "",
        int(turn.flags), turn.trust, turn.author,
    )  # fmt: skip
