"""Codex CLI: rollouts in ``~/.codex/sessions``.

Human and agent messages are written twice, as UI events and as items of the model's history. The owner's
words are taken from the events as soon as a file has any, because the history also holds what Codex injects;
the agent's are taken from whichever comes first, and the double is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from nacre.platform.ids import turn_hash
from nacre.text.open_weights import answered_by
from nacre.transcripts.adapter import Adapter, Places, Root, Source
from nacre.transcripts.blocks import blocks_of, plain
from nacre.transcripts.codex.records import (
    COMPACTED,
    ITEM,
    KEPT,
    KEPT_RECORDS,
    MARKS,
    META,
    NOISE_ITEMS,
    NOISE_RECORDS,
    RECORD,
    SPENT,
    TOOL,
    Answer,
    Item,
    Marks,
    Meta,
    Record,
    is_anothers,
    is_noise,
    is_noise_event,
    is_rollout,
    read_output,
    replies_in,
    session_of,
    typed,
)
from nacre.transcripts.conversation import Before, Conversation, OpenTurn, is_precise
from nacre.transcripts.injected import clean
from nacre.transcripts.objects import decode, parse_time, split_objects
from nacre.transcripts.origins import Claims, names_another
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, Trust, Turn

Said = Iterator[Session | Turn]

_NAME = re.compile(r"rollout-.*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_OLD_ITEMS = _CALLS | _OUTPUTS | {"message", "reasoning"}
_ENDS = frozenset({"task_complete", "turn_complete", "turn_aborted"})
_UNPAIRED = 16
_REPLAY_GAP = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class _Heard:
    """A user message of the model's history, while it is not known whether the file has events."""

    words: str
    stamp: str | None
    is_others: bool = False


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        name = _NAME.search(source.path.name)
        self.talk = Conversation(source, Session(TOOL, name.group(1) if name else source.path.stem))
        self.heard: list[_Heard] = []
        self.heard_at: Before | None = None

    def read(self) -> Said:
        for offset, line in self.source.lines():
            if is_noise(line):
                continue
            split = split_objects(line)
            if split.torn:
                self.source.corrupt()
            for raw in split.objects:
                yield from self.take(offset, raw)
            if len(split.objects) > 1:
                yield from self.talk.close()
        before = self.talk.before or self.heard_at
        yield from self.settle()
        yield from self.talk.finish(before)

    def take(self, offset: int, raw: bytes) -> Said:
        record = decode(RECORD, raw)
        if record is None:
            self.source.corrupt()
        elif record.type in ("session_meta", None):
            self.begin(record, raw)
        elif "replay" in self.source.carry and self.replays(record):
            return
        elif record.type in ("event_msg", "response_item"):
            yield from self.item(offset, record, bytes(record.payload))
        elif record.type in ("turn_context", "compacted"):
            yield from self.context(record)
        elif record.type in KEPT_RECORDS:
            yield from self.kept(offset, record)
        elif record.type in _OLD_ITEMS:
            yield from self.item(offset, record, raw)
        elif record.type not in NOISE_RECORDS:
            self.source.unknown(record.type)

    # The session

    def begin(self, record: Record, raw: bytes) -> None:
        """The first ``session_meta`` names the session; another's, before any turn, begins a replay."""
        if record.record_type or (record.type is None and record.session_id):
            return
        meta = decode(META, bytes(record.payload) if record.type else raw)
        if meta is None or not meta.id:
            self.source.corrupt()
            return
        carry = self.source.carry
        if not carry.get("named"):
            carry["named"] = True
            carry["provider"] = meta.model_provider
            self.talk.session = session_of(meta, self.talk.session.native_id)
            carry["others"] = is_anothers(meta)
        elif meta.id == self.talk.session.native_id:
            carry.pop("replay", None)
            carry["provider"] = meta.model_provider or carry["provider"]
        elif not carry.get("begun"):
            carry["replay"] = record.timestamp

    def replays(self, record: Record) -> bool:
        """Whether a record of a fork only repeats its parent's history.

        Codex copies the history in one go, mostly under the time of the fork. The replay ends where the
        fork's own meta is repeated, or where a record comes later than a copy could.
        """
        last = parse_time(self.source.carry.get("replay"))
        now, start = parse_time(record.timestamp), self.talk.session.started
        if last is None or now is None or start is None:
            self.source.carry.pop("replay", None)
            return False
        own = now >= start and (last < start - _REPLAY_GAP or now - max(last, start) > _REPLAY_GAP)
        if own:
            del self.source.carry["replay"]
        else:
            self.source.carry["replay"] = record.timestamp
        return not own

    def context(self, record: Record) -> Said:
        if record.type == "turn_context":
            meta = decode(META, bytes(record.payload)) or Meta()
            known, model = self.talk.session, answered_by(meta.model, self.source.carry.get("provider"))
            self.talk.session = replace(known, model=model or known.model, cwd=known.cwd or meta.cwd)
            return
        compacted = decode(COMPACTED, bytes(record.payload))
        yield from self.settle()
        if compacted and compacted.message:
            yield from self.say(Speaker.SYSTEM, compacted.message, record.timestamp, Flag.SUMMARY)

    def kept(self, offset: int, record: Record) -> Said:
        """What another agent wrote is only heard; what the owner answered in a form, or spoke, is theirs."""
        found = decode(KEPT, bytes(record.payload))
        if found is None:
            self.source.corrupt()
        elif record.type == "inter_agent_communication":
            self.talk.exchange.saw(found.content or "")
        elif found.type == "verified_answer":
            yield from self.settle()
            for one in found.questions:
                yield from self.answered(one, record.timestamp)
        elif found.type == "transcript_segment" and found.data:
            yield from self.settle()
            if found.data.role == "user":
                yield from self.prompt(found.data.text, record.timestamp, is_others=False)
            else:
                yield from self.agent([found.data.text], "spoken", offset, record)

    def answered(self, one: Answer, stamp: str | None) -> Said:
        """An answer with its question, which are the agent's words: what draws on text from outside is left out."""
        trusts = self.talk.exchange.trust_of
        pair = f"{one.question} → {one.answer}" if one.question else one.answer
        words = next((text for text in (pair, one.answer) if trusts(text) is Trust.TRUSTED), "")
        yield from self.prompt(words or pair, stamp, is_others=not words)

    # Messages and calls

    def item(self, offset: int, record: Record, body: bytes) -> Said:
        item = decode(ITEM, body)
        if item is None:
            self.source.corrupt()
        elif record.type == "event_msg":
            yield from self.event(offset, record, item)
        elif item.type == "message":
            yield from self.message(offset, record, item)
        elif item.type in _CALLS:
            yield from self.call(offset, record, item)
        elif item.type in _OUTPUTS:
            output = read_output(item.output)
            self.talk.result(item.call_id or "", output.outcome, lambda: output.text)
        elif item.type not in NOISE_ITEMS:
            self.source.unknown(f"response_item/{item.type}")

    def event(self, offset: int, record: Record, item: Item) -> Said:
        if item.type in ("user_message", "agent_message"):
            text = plain(item.message)
            if not isinstance(text, str):
                self.source.corrupt()
            elif item.type == "agent_message":
                yield from self.agent([text], "event", offset, record)
            elif item.kind in (None, "plain"):
                yield from self.owner(typed(text), record, is_others=names_another(record, item))
            else:
                self.talk.exchange.saw(text)
        elif item.type == "thread_name_updated":
            if isinstance(item.thread_name, str):
                self.talk.session = replace(self.talk.session, title=item.thread_name)
        elif item.type == "token_count":
            self.count(item)
        elif item.type in _ENDS or item.type == "error":
            yield from self.ended(item, record.timestamp)
        elif not is_noise_event(item.type or ""):
            self.source.unknown(f"event_msg/{item.type}")

    def ended(self, item: Item, stamp: str | None) -> Said:
        """The agent's work ends: it is done, the owner stopped it, or the model failed."""
        yield from self.settle()
        yield from self.talk.close()
        text = plain(item.message) if item.type == "error" else ""
        if item.type == "turn_aborted" and item.reason in (None, "interrupted"):
            yield from self.talk.interrupted(self.talk.new_id(Speaker.SYSTEM, stamp, "aborted"), self.time(stamp))
        elif text and isinstance(text, str):
            yield from self.talk.failed(self.talk.new_id(Speaker.SYSTEM, stamp, text), text, self.time(stamp))

    def count(self, item: Item) -> None:
        """The total up to here; where it is smaller than before, Codex began to count anew."""
        info = decode(SPENT, bytes(item.info))
        if info is None or info.total_token_usage is None:
            return
        now, before = info.total_token_usage.tokens.bounded, Tokens(*self.source.carry.get("counted", ()))
        self.talk.spend(now - before if now.total >= before.total else now)
        self.source.carry["counted"] = [now.input, now.cached, now.output]

    def message(self, offset: int, record: Record, item: Item) -> Said:
        blocks = blocks_of(item.content)
        texts = [block.text for block in blocks if block.text and block.is_text]
        if item.role == "assistant":
            yield from self.agent(texts, "item", offset, record)
        elif item.role == "user" and not self.source.carry.get("events"):
            marks = decode(MARKS, bytes(item.internal_chat_message_metadata_passthrough)) or Marks()
            said = marks.without_harness(blocks)
            words = "\n\n".join(filter(None, (typed(block.text) for block in said if block.text and block.is_text)))
            if words:
                self.heard_at = self.heard_at or self.talk.place(offset)
                is_others = marks.is_scheduled or names_another(record, item, *said, *marks.claims)
                self.heard.append(_Heard(words, record.timestamp, is_others))

    def owner(self, words: str, record: Record, *, is_others: bool) -> Said:
        """An event of the owner: the history's user messages are doubles from now on, as the last one was."""
        self.source.carry["events"] = True
        double = next((heard for heard in self.heard if heard.words == words), _Heard(words, record.timestamp))
        self.heard, self.heard_at = [], None
        if words:
            yield from self.prompt(words, double.stamp, is_others=is_others or double.is_others)

    def settle(self) -> Said:
        """No event came with the user messages heard: they are all there is."""
        heard, self.heard, self.heard_at = self.heard, [], None
        for message in heard:
            yield from self.prompt(message.words, message.stamp, is_others=message.is_others)

    def prompt(self, words: str, stamp: str | None, *, is_others: bool) -> Said:
        """What the owner typed, or somebody else; a sub-agent is prompted by another agent."""
        if not is_others and (replies := replies_in(words)):
            for one in replies:
                yield from self.answered(one, stamp)
            return
        is_sub = self.talk.session.kind is SessionKind.SUBAGENT
        claim = Claims(isSynthetic=is_others or self.source.carry.get("others"))
        yield from self.say(Speaker.AGENT if is_sub else Speaker.OWNER, words, stamp, Flag.NONE, claim)

    def agent(self, texts: Sequence[str], stream: str, offset: int, record: Record) -> Said:
        yield from self.settle()
        before = self.talk.place(offset)
        fresh = [text for text in texts if text.strip() and not self.is_double(stream, text)]
        if not fresh:
            return
        text = "\n\n".join(fresh)
        opened = self.talk.opened
        if opened is None or (opened.texts and not opened.waits):
            yield from self.open(text, before, record)
        self.talk.add_text(text)

    def is_double(self, stream: str, text: str) -> bool:
        key = turn_hash("", " ".join(text.split()), 0)[:8]
        unpaired: list[list[str]] = self.source.carry.setdefault("unpaired", [])
        for other in unpaired:
            if other[0] != stream and other[1] == key:
                unpaired.remove(other)
                return True
        self.source.carry["unpaired"] = [*unpaired, [stream, key]][-_UNPAIRED:]
        return False

    def call(self, offset: int, record: Record, item: Item) -> Said:
        yield from self.settle()
        call_id = item.call_id or item.id or ""
        if self.talk.opened is None:
            yield from self.open(f"call {call_id}", self.talk.place(offset), record)
        arguments = next(filter(None, map(plain, (item.arguments, item.input, item.action))), "")
        name = item.name or str(item.type).removesuffix("_call")
        call_id = self.talk.add_call(call_id, name, arguments if isinstance(arguments, str | dict) else "")
        if item.type == "web_search_call":
            # What the search found is not in the rollout, so nothing said after it can be compared with it.
            self.talk.exchange.unseen()
            self.talk.result(call_id, "error" if item.status == "failed" else "ok", str)

    def open(self, seed: str, before: Before, record: Record) -> Said:
        yield from self.talk.close()
        stamp = record.timestamp
        identity = self.talk.new_id(Speaker.AGENT, stamp, clean(seed).text)
        yield from self.talk.open(OpenTurn(identity, self.time(stamp), is_precise(stamp)), before)

    def say(
        self, speaker: Speaker, text: str, stamp: str | None, flags: Flag = Flag.NONE, *claims: Claims
    ) -> Said:  # fmt: skip
        cleaned = self.talk.clean(text)
        if not cleaned.text:
            return
        if cleaned.injected:
            flags |= Flag.INJECTED
        identity = self.talk.new_id(speaker, stamp, cleaned.text)
        yield from self.talk.say(
            Turn(identity, speaker, cleaned.text, self.time(stamp), flags=flags, unique=is_precise(stamp)), *claims
        )

    def time(self, stamp: str | None) -> datetime | None:
        """Records of old rollouts have no time: then the session's start."""
        return parse_time(stamp) if stamp else self.talk.session.started


def parse(source: Source) -> Said:
    """Parse one rollout; see :class:`~nacre.transcripts.adapter.Adapter`."""
    return _Reader(source).read()


def _roots(places: Places) -> Sequence[Root]:
    configured = places.environ.get("CODEX_HOME")
    home = Path(configured).expanduser() if configured else places.home / ".codex"
    return [Root(home, ("sessions/**/rollout-*.jsonl", "archived_sessions/**/rollout-*.jsonl"))]


ADAPTER = Adapter(
    tool=TOOL,
    label="Codex CLI",
    roots=_roots,
    sniff=is_rollout,
    parse=parse,
    resume=("codex", "resume", "{id}"),
    versions="0.116–0.121, 0.169; spoken words, and rollouts without payloads (from their description)",
    reads=(
        "what was said",
        "tool calls with outcome, files and errors",
        "folder, branch and repository",
        "model",
        "tokens",
        "version",
        "title",
        "sub-agents",
        "summaries",
        "interruptions",
        "errors of the model",
    ),
    leaves_out=("reasoning", "injected instructions", "pictures", "compressed rollouts"),
    environment=("CODEX_HOME",),
)
