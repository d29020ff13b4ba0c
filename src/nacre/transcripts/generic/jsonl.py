"""JSON lines of no tool in particular: one message a line, or one whole session a line.

Field names are taken as they come, see :mod:`nacre.transcripts.generic.fields`. A file may hold several
sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nacre.platform.ids import turn_hash
from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source, records
from nacre.transcripts.conversation import hashed_id
from nacre.transcripts.generic.fields import (
    Line,
    is_message,
    message_id,
    messages_of,
    read_line,
    session_facts,
    session_id,
    unwrapped,
    whole_session_id,
)
from nacre.transcripts.objects import parse_time
from nacre.transcripts.origins import attribute
from nacre.transcripts.tool_calls import asked
from nacre.transcripts.trust import Exchange, Judgement, is_outside, is_own
from nacre.values.portable import FORMAT
from nacre.values.session import Flag, Session, Speaker, ToolCall, Turn

TOOL = "jsonl"

Said = Iterator[Session | Turn]

_SESSIONS_CARRIED = 200
_CALLS_CARRIED = 200
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.known: dict[str, dict[str, Any]] = source.carry.setdefault("sessions", {})
        self.exchanges: dict[str, Exchange] = {}
        self.outside: set[str] = set(source.carry.get("outside", ()))
        self.own: set[str] = set(source.carry.get("own", ()))
        self.yielded: Session | None = None

    def read(self) -> Said:
        for _, line in self.source.lines():
            for record in records(self.source, line, _ANY):
                if isinstance(record, dict):
                    yield from self.take(record)
                else:
                    self.source.corrupt()
        self.finish()

    def take(self, record: dict[str, Any]) -> Said:
        messages = messages_of(record)
        if messages:
            said = "\n".join(line.text for line in map(read_line, messages) if line)
            native_id = whole_session_id(record) or turn_hash("session", said, 0)
            self.learn(native_id, record)
            for message in messages:
                yield from self.message(native_id, message)
            return
        native_id = session_id(record) or self.source.carry.get("current") or self._nameless(record)
        self.source.carry["current"] = native_id
        facts = self.learn(native_id, record)
        if is_message(record):
            yield from self.message(native_id, record)
        elif not facts:
            self.source.unknown(str(record.get("type") or "no message"))

    def _nameless(self, record: Mapping[str, Any]) -> str:
        """Return an id for a session without one: from its first message if that has a time, else from the file."""
        line = read_line(record)
        return turn_hash("session", f"{line.stamp}\n{line.text}", 0) if line and line.stamp else self.source.path.stem

    def learn(self, native_id: str, record: Mapping[str, Any]) -> dict[str, str]:
        facts = session_facts(record)
        self.known.setdefault(native_id, {}).update(facts)
        return facts

    def message(self, native_id: str, record: Mapping[str, Any]) -> Said:
        line = read_line(record)
        if line is None:
            self.source.unknown(str(record.get("type") or "no message"))
            return
        known = self.known.setdefault(native_id, {})
        exchange = self.exchange(native_id)
        cleaned = exchange.clean(line.text)
        if line.speaker is Speaker.TOOL:
            name = line.author or ""
            outside = line.call_id in self.outside or is_outside(name, "")
            exchange.heard(cleaned.text, outside=outside, own=line.call_id in self.own or is_own(name, ""))
            return
        calls = tuple(self.call(call) for call in line.calls)
        if not (cleaned.text or calls):
            return
        known.setdefault("started", line.stamp)
        yield from self.announce(native_id, known)
        flags = Flag.META if line.speaker is Speaker.SYSTEM else Flag.NONE
        if cleaned.injected:
            flags |= Flag.INJECTED
        judged = exchange.judge(cleaned.text) if line.speaker is not Speaker.OWNER else Judgement()
        flags, trust = flags | judged.flags, judged.trust
        identity = self.identify(known, record, line, cleaned.text)
        turn = Turn(identity, line.speaker, cleaned.text, parse_time(line.stamp), calls, flags, trust, line.author)
        turn = attribute(turn, TOOL, self.source.identities, exchange, record, unwrapped(record))
        if turn.speaker is Speaker.OWNER:
            exchange.begin(turn.text)
        yield turn

    def identify(self, known: dict[str, Any], record: Mapping[str, Any], line: Line, text: str) -> str:
        """The message's id, unless the line before had the same: then it is no message's."""
        own = message_id(record)
        if own and own != known.get("last_id"):
            known["last_id"] = own
            return own
        return hashed_id(known, line.speaker, line.stamp, f"{line.author or ''}\n{text}")

    def call(self, call: Mapping[str, Any]) -> ToolCall:
        name, arguments = str(call["name"]), call["arguments"]
        made = asked(name, arguments if isinstance(arguments, str | dict) else "")
        if is_outside(name, made.input):
            self.outside.add(str(call["id"]))
        if is_own(name, made.input):
            self.own.add(str(call["id"]))
        return made

    def exchange(self, native_id: str) -> Exchange:
        if native_id not in self.exchanges:
            self.exchanges[native_id] = Exchange(self.known.get(native_id, {}).pop("exchange", None))
        return self.exchanges[native_id]

    def announce(self, native_id: str, known: Mapping[str, Any]) -> Said:
        session = Session(
            TOOL, native_id, title=known.get("title"), cwd=known.get("cwd"), branch=known.get("branch"),
            label=known.get("label"), model=known.get("model"), started=parse_time(known.get("started")),
        )  # fmt: skip
        if session != self.yielded:
            self.yielded = session
            yield session

    def finish(self) -> None:
        for native_id, exchange in self.exchanges.items():
            self.known[native_id]["exchange"] = exchange.carried()
        self.source.carry["outside"] = sorted(self.outside)[-_CALLS_CARRIED:]
        self.source.carry["own"] = sorted(self.own)[-_CALLS_CARRIED:]
        recent = list(self.known.items())[-_SESSIONS_CARRIED:]
        self.source.carry["sessions"] = dict(recent)


def _sniff(head: Head) -> bool:
    objects = head.objects
    if objects and objects[0].get("format") == FORMAT:
        return False  # nacre's own export is imported, not read as talk
    said = [record for record in objects if messages_of(record) or is_message(record)]
    return any("role" in record for record in said) or len(said) * 2 >= len(objects) > 0


def _roots(_: Places) -> Sequence[Root]:
    return ()


def parse(source: Source) -> Said:
    """Parse one file; see :class:`~nacre.transcripts.adapter.Adapter`."""
    return _Reader(source).read()


ADAPTER = Adapter(
    tool=TOOL,
    label="JSON lines",
    roots=_roots,
    sniff=_sniff,
    parse=parse,
    guesses=True,
    versions="any",
    reads=("messages with a role and a text", "tool calls", "whatever names session, folder, branch and model"),
    leaves_out=("what has no role",),
)
