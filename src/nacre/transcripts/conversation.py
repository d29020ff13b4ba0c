"""Turns in the order in which they were said, for formats whose tool results follow as records of their own.

The agent's last turn stays open for the results of its calls. Where the file ends while it is open, the next
reading starts at that turn again, with the carry as it was then: two readings give what one would have given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import msgspec

from nacre.platform import json_values
from nacre.platform.ids import turn_hash
from nacre.text.open_weights import noted
from nacre.text.passages import shorten
from nacre.transcripts.adapter import Source
from nacre.transcripts.injected import Cleaned
from nacre.transcripts.origins import Claims, attribute
from nacre.transcripts.tool_calls import INPUT_CHARACTERS, answered, asked
from nacre.transcripts.trust import Exchange, is_outside, is_own
from nacre.values.session import Action, Flag, Session, Speaker, Tokens, ToolCall, Trust, Turn

INTERRUPTION = "[Interrupted by the owner]"
"""What stands where the owner stopped the agent, in tools that have no words of their own for it."""
_ERROR_CHARACTERS = 300
_AWAITED = 50
"""How many late results of outside calls are waited for after their turn was closed."""


@dataclass(slots=True)
class Call:
    """A tool call whose result may still come."""

    call: ToolCall
    outside: bool
    own: bool = False


@dataclass(frozen=True, slots=True)
class Before:
    """A place to read on from: a record's offset, what was carried before it, and how much was heard."""

    offset: int
    carry: bytes
    mark: tuple[int, ...]


@dataclass(slots=True)
class OpenTurn:
    """An agent turn that may still grow."""

    id: str
    time: datetime | None
    unique: bool
    texts: list[str] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    flags: Flag = Flag.NONE
    trust: Trust = Trust.TRUSTED

    @property
    def waits(self) -> bool:
        """Whether the result of a call is still to come."""
        return any(waiting.call.outcome is None for waiting in self.calls.values())


class Conversation:
    """Yields a session's turns; everything that must survive until the next reading lies in the carry."""

    def __init__(self, source: Source, session: Session) -> None:
        self.source = source
        known = source.carry.get("session")
        self._session: Session = json_values.convert(known, Session) if known else session
        self.exchange = Exchange(source.carry.pop("exchange", None))
        self.opened: OpenTurn | None = None
        self.before: Before | None = None
        spent = source.carry.get("spent")
        self.spent: Tokens | None = json_values.convert(spent, Tokens) if spent else None
        self._yielded: Session | None = None

    @property
    def session(self) -> Session:
        """What is known of it by now."""
        return self._session

    @session.setter
    def session(self, told: Session) -> None:
        before = self._session.model if told.native_id == self._session.native_id else None
        self._session = replace(told, model=noted(before, told.model))

    def spend(self, tokens: Tokens) -> None:
        """What one answer cost. It is told when the reading ends: a session is not yielded for it."""
        if tokens.total:
            self.spent = ((self.spent or Tokens()) + tokens).bounded

    def new_id(self, speaker: Speaker, stamp: str | None, text: str) -> str:
        """An id where the tool gives none, from the record's own time where it has one."""
        return hashed_id(self.source.carry, speaker, stamp, text)

    def say(self, turn: Turn, *claims: Claims | Mapping[str, Any]) -> Iterator[Session | Turn]:
        """A turn that is complete. One of the owner begins a new exchange, unless it is noise.

        ``claims`` are the records that may name where a turn in the owner's place is from; if it is not the owner's, it
        is from outside.
        """
        yield from self.close()
        turn = attribute(turn, self.session.tool, self.source.identities, self.exchange, *claims)
        if turn.speaker is Speaker.OWNER and turn.trust is Trust.TRUSTED and not turn.flags & Flag.META:
            self.exchange.begin(turn.text)
        elif turn.speaker is not Speaker.OWNER:
            judged = self.exchange.judge(turn.text)
            trust = Trust.UNTRUSTED if judged.trust is Trust.UNTRUSTED else turn.trust
            turn = replace(turn, trust=trust, flags=turn.flags | judged.flags)
        yield from self._emit(turn)

    def interrupted(self, identity: str, time: datetime | None) -> Iterator[Session | Turn]:
        """Here the owner stopped the agent: what is open stays as it is. Before anybody spoke it tells nothing."""
        flags = Flag.META | Flag.INTERRUPTED
        if self._begun:
            yield from self.say(Turn(identity, Speaker.SYSTEM, INTERRUPTION, time, flags=flags))

    def failed(self, identity: str, text: str, time: datetime | None) -> Iterator[Session | Turn]:
        """The model's provider refused, or could not be reached, as the host tells it."""
        words = shorten(self.clean(text).text, _ERROR_CHARACTERS)
        if words and self._begun:
            yield from self.say(Turn(identity, Speaker.SYSTEM, words, time, flags=Flag.META))

    @property
    def _begun(self) -> bool:
        return self.opened is not None or bool(self.source.carry.get("begun"))

    def open(self, turn: OpenTurn, before: Before | None = None) -> Iterator[Session | Turn]:
        """Begin an agent turn; ``before`` is the place of its first record, in a file that is not read as a whole."""
        yield from self.close()
        self.before, self.opened = before, turn

    def place(self, offset: int) -> Before:
        """The place of the record at ``offset``, taken before the record changes anything."""
        self._save()
        return Before(offset, msgspec.json.encode(self.source.carry), self.exchange.mark())

    def add_text(self, text: str) -> None:
        """More words of the open turn."""
        if self.opened is None:
            return
        cleaned = self.clean(text)
        self.opened.texts.append(cleaned.text)
        judged = self.exchange.judge(cleaned.text)
        self.opened.flags |= judged.flags | (Flag.INJECTED if cleaned.injected else Flag.NONE)
        if judged.trust is Trust.UNTRUSTED:
            self.opened.trust = Trust.UNTRUSTED

    def clean(self, text: str) -> Cleaned:
        """A text without what its speaker did not say, which counts as heard."""
        return self.exchange.clean(text)

    def add_call(self, call_id: str, name: str, arguments: dict[str, Any] | str) -> str:
        """A call in the open turn; gives the id under which its result is awaited."""
        if self.opened is None:
            return call_id
        call = asked(name, arguments)
        outside = is_outside(name, call.input) or call.action is Action.FETCH
        if len(call.input) >= INPUT_CHARACTERS:
            outside = outside or is_outside(name, str(arguments))
        if self.exchange.trust_of_call(name, call.input, arguments) is Trust.UNTRUSTED:
            self.opened.trust = Trust.UNTRUSTED
        call_id = call_id or f"{self.opened.id}#{len(self.opened.calls)}"  # it may be awaited beyond this turn
        self.opened.calls[call_id] = Call(call, outside, is_own(name, call.input))
        return call_id

    def result(self, call_id: str, result: str, output: Callable[[], str]) -> None:
        """How a call came out, and what it said."""
        call = self.opened.calls.get(call_id) if self.opened else None
        outside = call_id in self.source.carry.get("awaited", ()) or bool(call and call.outside)
        self.exchange.heard(output(), outside=outside, own=bool(call and call.own))
        if call:
            call.call = answered(call.call, result, output)

    def close(self) -> Iterator[Session | Turn]:
        """The open turn is complete."""
        turn, self.opened, self.before = self.opened, None, None
        if turn is None:
            return
        late = [key for key, made in turn.calls.items() if made.outside and made.call.outcome is None]
        if late:
            self.source.carry["awaited"] = [*self.source.carry.get("awaited", []), *late][-_AWAITED:]
        text = "\n\n".join(part for part in turn.texts if part)
        calls = tuple(made.call for made in turn.calls.values())
        if text or calls:
            yield from self._emit(
                Turn(
                    turn.id, Speaker.AGENT, text, time=turn.time, tool_calls=calls, flags=turn.flags,
                    trust=turn.trust, unique=turn.unique,
                )
            )  # fmt: skip

    def finish(self, before: Before | None = None) -> Iterator[Session | Turn]:
        """The file ends, for now. The next reading starts at the open turn, else at ``before``."""
        before = self.before or before
        yield from self.conclude()
        self._save()
        if before:
            self.source.carry = msgspec.json.decode(before.carry)
            self.source.hold(before.offset)
        self.source.carry["exchange"] = self.exchange.carried(before.mark if before else None)

    def end(self) -> Iterator[Session | Turn]:
        """The file was read as a whole: nothing is carried over to the next reading."""
        yield from self.conclude()
        self.source.carry.clear()

    def conclude(self) -> Iterator[Session | Turn]:
        """The session ends, for now: what is known of it only then is told."""
        yield from self.close()
        known = replace(self.session, tokens=self.spent)
        if self.source.carry.get("begun") and known != self._yielded:
            yield known

    def _emit(self, turn: Turn) -> Iterator[Session | Turn]:
        if self.session != self._yielded:
            self._yielded = self.session
            yield self.session
        self.source.carry["begun"] = True
        yield turn

    def _save(self) -> None:
        self.source.carry["session"] = msgspec.to_builtins(self.session)
        if self.spent:
            self.source.carry["spent"] = msgspec.to_builtins(self.spent)


def hashed_id(carry: dict[str, Any], speaker: Speaker, stamp: str | None, text: str) -> str:
    """A turn's id from its speaker, time, text and occurrence.

    With a time, only words repeated at that same time need counting, and a copy of the record elsewhere has
    the same id. Without, all of the session's words are counted, by the first half of their hash.
    """
    seen = carry.setdefault("seen", {"stamp": stamp, "counts": {}})
    if stamp and seen["stamp"] != stamp:
        seen["stamp"], seen["counts"] = stamp, {}
    body = f"{stamp or ''}\n{text}"
    key = turn_hash(speaker, body, 0)[:8]
    occurrence = seen["counts"].get(key, 0)
    seen["counts"][key] = occurrence + 1
    return turn_hash(speaker, body, occurrence)


def is_precise(stamp: str | None) -> bool:
    """Whether a time has fractions of a second, so that no two records of a tool share it by chance."""
    return bool(stamp) and "." in str(stamp)
