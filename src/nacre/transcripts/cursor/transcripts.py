"""Cursor's agent transcripts: ``~/.cursor/projects/<project>/agent-transcripts/<id>/<id>.jsonl``.

They hold no ids, times, models or results: a session is named as its file, and dated by it. What a call brought from
outside may not be recorded: then nothing that the agent says after it is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source, records
from nacre.transcripts.conversation import Conversation, OpenTurn
from nacre.transcripts.cursor.prompts import ENVIRONMENT, TOOL, read_prompt, roots, session_of
from nacre.transcripts.objects import parse_time
from nacre.transcripts.tool_calls import outcome
from nacre.transcripts.whole_json import mapping, modified, objects, string
from nacre.values.session import Flag, Session, SessionKind, Speaker, Trust, Turn

Said = Iterator[Session | Turn]
Values = Mapping[str, Any]

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_CALLS = frozenset({"tool_use", "tool_call", "tool-call"})
_RESULTS = frozenset({"tool_result", "tool-result"})
_QUIET = frozenset({"thinking", "redacted_thinking", "reasoning", "image", "image_url", "file"})
_REDACTED = "[REDACTED]"
_OTHERS = frozenset({"type", "uuid", "id", "timestamp", "sessionId", "session_id"})


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.talk = Conversation(source, session_of(source))
        self.time: datetime | None = parse_time(source.carry.get("time")) or modified(source)

    def read(self) -> Said:
        for offset, line in self.source.lines():
            found = list(records(self.source, line, _ANY))
            for record in found:
                if isinstance(record, dict):
                    yield from self.take(offset, record)
            if len(found) > 1:
                yield from self.talk.close()
        yield from self.talk.finish()

    def take(self, offset: int, record: Values) -> Said:
        role, blocks = record.get("role"), _blocks(mapping(record, "message"))
        if role == "user":
            yield from self.user(record, blocks)
        elif role == "assistant":
            yield from self.agent(offset, record, blocks)
        elif record.get("type") != "turn_ended":
            self.source.unknown(str(role or record.get("type") or "no role"))

    def user(self, record: Values, blocks: Sequence[Values]) -> Said:
        for block in blocks:
            if block.get("type") in _RESULTS:
                self.result(block)
        cleaned = self.talk.clean("\n\n".join(self.texts(blocks)))
        prompt = read_prompt(cleaned.text)
        if prompt.context:
            self.talk.exchange.heard(prompt.context)
        if not prompt.words:
            return
        is_child = self.talk.session.kind is SessionKind.SUBAGENT
        speaker = Speaker.AGENT if is_child else Speaker.OWNER
        self.time = prompt.time or self.time
        identity = self.talk.new_id(speaker, None, prompt.words)
        flags = Flag.INJECTED if cleaned.injected else Flag.NONE
        trust = Trust.TRUSTED if prompt.is_sure else Trust.UNTRUSTED
        turn = Turn(identity, speaker, prompt.words, self.time, flags=flags, trust=trust)
        yield from self.talk.say(turn, record, mapping(record, "message"), *blocks)
        self.source.carry["time"] = prompt.time.isoformat() if prompt.time else self.source.carry.get("time")

    def texts(self, blocks: Sequence[Values]) -> Iterator[str]:
        for block in blocks:
            kind = block.get("type")
            if kind in ("text", None):
                yield str(block.get("text") or "")
            elif kind not in _QUIET | _CALLS | _RESULTS:
                self.source.unknown(f"block {kind}")

    def agent(self, offset: int, record: Values, blocks: Sequence[Values]) -> Said:
        model = string(record, "model")
        if model:
            self.talk.session = replace(self.talk.session, model=model)
        self.miss()
        text = "\n\n".join(self.texts(blocks)).replace(_REDACTED, "").strip()
        calls = [block for block in blocks if block.get("type") in _CALLS]
        if not (text or calls):
            return
        before = self.talk.place(offset)
        identity = self.talk.new_id(Speaker.AGENT, None, text or f"call {calls[0].get('name')}")
        yield from self.talk.open(OpenTurn(identity, self.time, unique=False), before)
        self.talk.add_text(text)
        for call in calls:
            arguments = call.get("input", call.get("arguments"))
            known = arguments if isinstance(arguments, str | dict) else ""
            self.talk.add_call(str(call.get("id") or ""), string(call, "name") or "tool", known)

    def miss(self) -> None:
        """The agent goes on although no result of its calls was recorded."""
        calls = self.talk.opened.calls.values() if self.talk.opened else ()
        if any(call.call.outcome is None and (call.outside or call.own) for call in calls):
            self.source.carry["unseen"] = True
        if self.source.carry.get("unseen"):
            self.talk.exchange.unseen()

    def result(self, block: Values) -> None:
        """A result belongs to the call it names, else to the first that waits."""
        calls = self.talk.opened.calls if self.talk.opened else {}
        own = str(block.get("tool_use_id") or "")
        waiting = [key for key, call in calls.items() if call.call.outcome is None]
        output = "\n".join(str(one.get("text") or "") for one in _blocks(block))
        identity = own if own in calls else (waiting[0] if waiting else own)
        self.talk.result(identity, outcome(output, is_error=block.get("is_error") is True), lambda: output)


def _blocks(message: Values) -> list[Values]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(message, "content")


def _sniff(head: Head) -> bool:
    first = head.objects[0] if head.objects else {}
    if first.get("role") not in ("user", "assistant") or not first.keys().isdisjoint(_OTHERS):
        return False
    return isinstance(mapping(first, "message").get("content"), list)


def parse(source: Source) -> Said:
    """Parse one transcript; see :class:`~nacre.transcripts.adapter.Adapter`."""
    return _Reader(source).read()


def _roots(places: Places) -> Sequence[Root]:
    return roots(places, ".jsonl")


ADAPTER = Adapter(
    tool=TOOL, label="Cursor", roots=_roots, sniff=_sniff, parse=parse,
    versions="agent transcripts of 2026 (files name no version)",
    reads=("what was said", "tool calls", "sub-agents", "folder, where it can be told"),
    leaves_out=("results, models and times (not recorded)", "thinking", "attached files"),
    environment=ENVIRONMENT,
)  # fmt: skip
