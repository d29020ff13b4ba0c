"""Forget in the gateway's database: also what no transcript has, or not yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nacre.platform import json_values
from nacre.platform.ids import at_ms
from nacre.storage.database import in_transaction
from nacre.storage.gateway import GatewayStore

_WORDS = ("text", "content", "name", "summary", "reason")
"""Fields of messages, parts of answers and lines that hold what somebody wrote."""

_ERASE = {"inbound": "finish_inbound", "outbound": "drop_outbound", "line": "drop_pending_line"}


@dataclass(frozen=True, slots=True)
class Held:
    """Words that the database holds until they are answered, sent or in a transcript: in the row ``seq`` of ``kind``
    (``inbound``, ``outbound`` or ``line``). ``session`` is the one that goes on there; empty where none does."""

    kind: str
    seq: int
    session: str
    texts: tuple[str, ...]
    at: datetime


class GatewayErasure(GatewayStore):
    """The gateway's database, to be forgotten in."""

    def held(self) -> list[Held]:
        """All such words."""
        return [
            Held(kind, seq, session or "", tuple(_texts(json_values.decode(text.encode(), Any))), at_ms(at))
            for kind, seq, session, text, at in self._db.all("list_held_words")
        ]

    def names(self) -> list[str]:
        """Names of conversations, and of those who asked to be let in."""
        return [name for (name,) in self._db.all("list_chat_names")]

    @in_transaction
    def erase_held(self, held: Iterable[Held], names: Iterable[str] = ()) -> None:
        """Nothing is kept of such words: they are answered and sent no more. Nor are names."""
        for one in held:
            self._db.run(_ERASE[one.kind], seq=one.seq)
        for name in names:
            self._db.run("clear_chat_name", called=name)
            self._db.run("clear_pairing_name", called=name)

    @in_transaction
    def erase(self, lines: Iterable[str], pending: Iterable[int]) -> None:
        """Nothing is kept of what lines told, by their ids, nor of lines that wait, by their numbers."""
        for line in lines:
            self._db.run("erase_inbound", line=line)
            self._db.run("erase_outbound", line=line)
        for seq in pending:
            self._db.run("drop_pending_line", seq=seq)

    def delete_session(self, session: str) -> None:
        """A session goes: the next message begins another one."""
        self._db.run("delete_chat_session", id=session)

    def compact(self) -> bool:
        """Leave no byte of what is gone; ``False`` while another process still reads it. Raises StoreBusy."""
        return self._db.compact()


def _texts(value: Any) -> Iterator[str]:
    for name, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(one, str) and name in _WORDS:
            yield one
        yield from _texts(one)
