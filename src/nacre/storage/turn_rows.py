"""What the row of a turn holds: its identity, what was said, which tools were called."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import msgspec

from nacre.platform.ids import from_ms, to_ms
from nacre.storage.database import Row
from nacre.values.session import Action, Flag, Speaker, StoredTurn, ToolCall, Trust, Turn

encode = msgspec.json.Encoder().encode
"""JSON as columns hold it."""


def turn_identity(tool: str, row: int, turn: Turn) -> bytes:
    """16 bytes that are the same for every copy of a turn, wherever its tool guarantees the id across sessions."""
    return shared_identity(tool if turn.unique else f"{tool}\0{row}", turn.id)


def shared_identity(scope: str, turn_id: str) -> bytes:
    """The identity of a turn whose id its tool guarantees across sessions (then ``scope`` is the tool)."""
    return hashlib.blake2b(f"{scope}\0{turn_id}".encode("utf-8", errors="replace"), digest_size=16).digest()


def tools_column(turn: Turn) -> str | None:
    """The tool calls of a turn as its row keeps them; ``None`` where there are none."""
    if not turn.tool_calls:
        return None
    return encode(kept_calls(turn.tool_calls)).decode()


def kept_calls(calls: Sequence[ToolCall]) -> list[list[object]]:
    """Tool calls as rows and exports keep them: name, input, outcome; then action, paths, error, made, where told."""
    kept: list[list[object]] = []
    for call in calls:
        values: list[object] = [
            call.name,
            call.input,
            call.outcome,
            call.action.value,
            call.paths,
            call.error,
            call.made,
        ]
        plain = [call.name, call.input, call.outcome, Action.OTHER.value, (), None, ()]
        while len(values) > 3 and values[-1] == plain[len(values) - 1]:
            values.pop()
        kept.append(values)
    return kept


def stored_calls(tools: str | None) -> tuple[ToolCall, ...]:
    """The tool calls of a turn as its row keeps them."""
    return tuple(kept_call(*call) for call in json.loads(tools)) if tools else ()


def kept_call(
    name: str, brief: str = "", outcome: str | None = None, action: str = Action.OTHER.value,
    paths: Sequence[str] = (), error: str | None = None, made: Sequence[str] = (),
) -> ToolCall:  # fmt: skip
    """One of them; raises ValueError for an action nobody knows."""
    return ToolCall(name, brief, outcome, Action(action), tuple(paths), error, tuple(made))


def did_of(calls: Sequence[ToolCall]) -> str:
    """What a turn did, in words for the full text."""
    return "\n".join(f"{call.name} {call.input} {call.outcome if call.outcome != 'ok' else ''}" for call in calls)


def turn_row(session: int, seq: int, identity: bytes, turn: Turn) -> tuple[object, ...]:
    """The columns of a turn."""
    return (
        session, seq, turn.id, identity.hex(), turn.speaker.value, turn.trust.value, int(turn.flags), to_ms(turn.time),
        turn.author, turn.text, tools_column(turn),
    )  # fmt: skip


def stored_turn(row: Row) -> StoredTurn:
    """A turn from its row."""
    number, session, seq, native_id, speaker, trust, flags, time, author, text, tools = row
    calls = stored_calls(tools)
    turn = Turn(
        id=native_id, speaker=Speaker(speaker), text=text, time=from_ms(time), tool_calls=calls, flags=Flag(flags),
        trust=Trust(trust), author=author,
    )  # fmt: skip
    return StoredTurn(number, session, seq, turn)
