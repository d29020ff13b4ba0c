"""GitHub Copilot CLI: ``~/.copilot/session-state/<id>/events.jsonl``, one event a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from nacre.text.passages import shorten
from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source, records
from nacre.transcripts.conversation import Conversation, OpenTurn
from nacre.transcripts.objects import parse_time
from nacre.transcripts.origins import names_another
from nacre.transcripts.tool_calls import outcome
from nacre.transcripts.whole_json import mapping, objects, string, total
from nacre.values.session import Flag, Session, Speaker, Tokens, Turn

TOOL = "copilot-cli"

Said = Iterator[Session | Turn]
Event = Mapping[str, Any]

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_QUIET = re.compile(
    r"hook\.|permission\.|mcp\.|subagent\.|custom_agent\.|user_input\.|elicitation\.|exit_plan_mode\.|commands\."
    r"|assistant\.(?:turn_start|turn_end|turn_retry|intent|reasoning|usage|idle|message_start|message_delta|streaming)"
    r"|tool\.(?:user_requested|execution_partial_result|execution_progress)|system\.|skill\.invoked"
    r"|session\.(?:info|warning|truncation|usage|idle|compaction_start|snapshot_rewind|handoff|mode"
    r"|plan|permissions|context|tools|skills|custom|extensions|background|remote|task|todos|workspace|schedule|import)"
)
_EXIT = re.compile(r"\bexit(?:ed with)?(?: exit)? code:?\s*(\d{1,9})\b", re.IGNORECASE)
_UUID_LENGTH = 36
_TOLD_CHARACTERS = 300


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        name = source.path.parent.name if source.path.name == "events.jsonl" else source.path.stem
        self.talk = Conversation(source, Session(TOOL, name))

    def read(self) -> Said:
        for offset, line in self.source.lines():
            events = list(records(self.source, line, _ANY))
            for event in events:
                if isinstance(event, dict):
                    yield from self.take(offset, event)
            if len(events) > 1:
                yield from self.talk.close()
        yield from self.talk.finish()

    def take(self, offset: int, event: Event) -> Said:
        kind, data = str(event.get("type") or "no type"), mapping(event, "data")
        if kind == "user.message":
            yield from self.user(event, data)
        elif kind == "assistant.message":
            yield from self.agent(offset, event, data)
        elif kind == "tool.execution_start":
            yield from self.call(offset, event, data)
        elif kind == "tool.execution_complete":
            self.result(data)
        elif kind == "session.compaction_complete":
            text = string(data, "summaryContent", "summary") or ""
            yield from self.say(event, Speaker.SYSTEM, text, Flag.SUMMARY)
        elif kind in ("abort", "session.error"):
            yield from self.broken_off(kind, event, data)
        elif kind == "session.shutdown":
            self.count(data)
        elif not self.learn(kind, data) and not _QUIET.match(kind):
            self.source.unknown(kind)

    # The session

    def learn(self, kind: str, data: Mapping[str, Any]) -> bool:
        if kind in ("session.start", "session.resume"):
            self.begin(data)
        elif kind == "session.model_change":
            self.know(model=string(data, "newModel"))
        elif kind == "session.auto_mode_resolved":
            self.know(model=string(data, "chosenModel"))
        elif kind == "session.title_changed":
            self.know(title=string(data, "title"))
        else:
            return False
        return True

    def begin(self, data: Mapping[str, Any]) -> None:
        known, place = self.talk.session, mapping(data, "context")
        self.talk.session = replace(
            known, native_id=string(data, "sessionId") or known.native_id,
            cwd=known.cwd or string(place, "cwd", "gitRoot"), branch=known.branch or string(place, "branch"),
            repository=known.repository or _repository(place), model=string(data, "selectedModel") or known.model,
            tool_version=string(data, "copilotVersion") or known.tool_version,
            started=known.started or parse_time(data.get("startTime")),
        )  # fmt: skip

    def know(self, **facts: str | None) -> None:
        told = {key: value for key, value in facts.items() if value}
        self.talk.session = replace(self.talk.session, **told)  # type: ignore[arg-type]

    def count(self, data: Mapping[str, Any]) -> None:
        """What a run cost, when it ends: all of it, while the messages before only tell what was written."""
        spent = _spent(data)
        written = self.source.carry.pop("written", 0)
        if spent.total:
            self.talk.spend(spent - Tokens(output=written))

    # Messages and calls

    def user(self, event: Event, data: Mapping[str, Any]) -> Said:
        is_child = any(map(data.get, ("parentAgentTaskId", "parentToolCallId", "agentId")))
        told = {**data, "messageSource": data.get("source"), **({"isSynthetic": True} if is_child else {})}
        flags = Flag.META if names_another(event, told) else Flag.NONE
        yield from self.say(event, Speaker.OWNER, string(data, "content") or "", flags, event, told)

    def say(self, event: Event, speaker: Speaker, text: str, flags: Flag, *claims: Event) -> Said:
        cleaned = self.talk.clean(text)
        if not cleaned.text:
            return
        flags |= Flag.INJECTED if cleaned.injected else Flag.NONE
        identity, stamp = self.identity(event, speaker, cleaned.text)
        yield from self.talk.say(
            Turn(identity, speaker, cleaned.text, parse_time(stamp), flags=flags, unique=_is_unique(identity)), *claims
        )

    def broken_off(self, kind: str, event: Event, data: Mapping[str, Any]) -> Said:
        """The owner stopped the agent, or its provider did not answer: neither is said by anybody."""
        text = string(data, "reason" if kind == "abort" else "message") or kind
        flags = Flag.META | Flag.INTERRUPTED if kind == "abort" else Flag.META
        told = f"Stopped: {text}" if kind == "abort" else text
        yield from self.say(event, Speaker.SYSTEM, shorten(told, _TOLD_CHARACTERS), flags)

    def identity(self, event: Event, speaker: Speaker, text: str) -> tuple[str, str | None]:
        own, stamp = event.get("id"), string(event, "timestamp")
        return (own if isinstance(own, str) and own else self.talk.new_id(speaker, stamp, text)), stamp

    def agent(self, offset: int, event: Event, data: Mapping[str, Any]) -> Said:
        text, calls = string(data, "content") or "", objects(data, "toolRequests")
        opened = self.talk.opened
        known = opened.calls if opened else {}
        before = self.talk.place(offset)
        self.wrote(data)
        if not text and all(str(call.get("toolCallId")) in known for call in calls):
            return
        self.know(model=None if data.get("parentToolCallId") else string(data, "model"))
        part = string(data, "messageId") if data.get("chunkIndex") else None
        if opened is None or part is None or part != self.source.carry.get("message"):
            self.source.carry["message"] = string(data, "messageId")
            yield from self.begin_turn(event, text, before)
            if data.get("parentToolCallId") and self.talk.opened:
                self.talk.opened.flags |= Flag.SIDECHAIN
        self.talk.add_text(text)
        for call in calls:
            self.add(call, "name")

    def wrote(self, data: Mapping[str, Any]) -> None:
        written = Tokens(output=total(data, "outputTokens")).bounded
        if written.total and not (data.get("chunkIndex") and data.get("messageId") == self.source.carry.get("message")):
            self.source.carry["written"] = self.source.carry.get("written", 0) + written.output
            self.talk.spend(written)

    def begin_turn(self, event: Event, seed: str, before: Any) -> Said:
        identity, stamp = self.identity(event, Speaker.AGENT, seed)
        turn = OpenTurn(identity, parse_time(stamp), unique=_is_unique(identity))
        yield from self.talk.open(turn, before)

    def call(self, offset: int, event: Event, data: Mapping[str, Any]) -> Said:
        """A call that begins; most were announced by the message before."""
        opened = self.talk.opened
        identity = str(data.get("toolCallId"))
        if data.get("parentToolCallId") or (opened and identity in opened.calls):
            return
        if opened is None:
            yield from self.begin_turn(event, f"call {identity}", self.talk.place(offset))
        self.add(data, "toolName")

    def add(self, call: Mapping[str, Any], name: str) -> None:
        arguments = call.get("arguments")
        known = arguments if isinstance(arguments, str | dict) else ""
        self.talk.add_call(str(call.get("toolCallId") or ""), string(call, name) or "tool", known)

    def result(self, data: Mapping[str, Any]) -> None:
        output = string(mapping(data, "result"), "content", "detailedContent") or ""
        error = mapping(data, "error")
        failed = data.get("success") is False
        code = _EXIT.search(output[-2_000:])
        result = outcome(
            output or string(error, "message") or "", exit_code=int(code[1]) if code else None, is_error=failed
        )
        if failed and str(error.get("code")) in ("denied", "rejected"):
            result = "rejected"
        self.talk.result(str(data.get("toolCallId")), result, lambda: f"{output}\n{string(error, 'message') or ''}")


def _spent(data: Mapping[str, Any]) -> Tokens:
    """What a run cost: by model, else by kind of token. By model, what was read from a cache is among what was read."""
    models = [mapping(value, "usage") for value in mapping(data, "modelMetrics").values()]
    found = Tokens()
    for usage in models:
        cached = total(usage, "cacheReadTokens")
        found += Tokens(max(0, total(usage, "inputTokens") - cached), cached, total(usage, "outputTokens"))
    if found.total:
        return found.bounded
    kinds = mapping(data, "tokenDetails")
    fresh, written, cached, out = (
        total(mapping(kinds, kind), "tokenCount") for kind in ("input", "cache_write", "cache_read", "output")
    )
    return Tokens(fresh + written, cached, out).bounded


def _is_unique(identity: str) -> bool:
    return len(identity) == _UUID_LENGTH


def _repository(place: Mapping[str, Any]) -> str | None:
    name = string(place, "repository")
    if not name or "://" in name:
        return name
    host = string(place, "repositoryHost") or ("github.com" if place.get("hostType") == "github" else None)
    return f"https://{host}/{name}" if host else None


def _sniff(head: Head) -> bool:
    first = head.objects[0] if head.objects else {}
    if first.get("type") == "session.start":
        return "sessionId" in mapping(first, "data")
    kind = first.get("type")
    return isinstance(kind, str) and "." in kind and {"data", "id", "timestamp", "parentId"} <= first.keys()


def parse(source: Source) -> Said:
    """Parse one session; see :class:`~nacre.transcripts.adapter.Adapter`."""
    return _Reader(source).read()


def _roots(places: Places) -> Sequence[Root]:
    told = places.environ.get("COPILOT_HOME")
    folders = [Path(told).expanduser()] if told else [places.home / ".copilot"]
    folders += [
        Path(base).expanduser() / ".copilot"
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME")
        if (base := places.environ.get(name))
    ]
    return [Root(folder, ("session-state/*/events.jsonl", "session-state/*.jsonl")) for folder in folders]


ADAPTER = Adapter(
    tool=TOOL, label="GitHub Copilot CLI", roots=_roots, sniff=_sniff, parse=parse,
    resume=("copilot", "--resume={id}"),
    versions="0.0.420, 1.0.11, 1.0.77",
    reads=(
        "what was said", "tool calls with outcome", "folder, branch and repository", "model", "tokens", "title",
        "summaries", "interruptions",
    ),
    leaves_out=("reasoning", "hooks", "system messages", "attachments' contents"),
    environment=("COPILOT_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"),
)  # fmt: skip
