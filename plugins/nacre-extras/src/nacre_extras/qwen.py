"""Qwen Code: ``~/.qwen/projects/<folder>/chats/<id>.jsonl``, one record per line.

Messages have the parts of Gemini CLI, from which Qwen Code was forked.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from nacre.base.plain import Values, mapping, objects, string, total
from nacre.readers.adapter import ANY, Adapter, Items, Places, Root, Source, parse_time
from nacre.readers.claude_code import is_qwen
from nacre.readers.gemini_cli import output_of, record_result, responses_of, words_of
from nacre.readers.trust import Conversation, OpenTurn
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens

TOOL = "qwen-code"

_UUID_LENGTH = 36
_TYPED = (None, "mid_turn_user_message")


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.talk = Conversation(source, Session(TOOL, source.path.stem))

    def read(self) -> Items:
        return self.talk.read(ANY, self.take)

    def take(self, offset: int, record: Any) -> Items:
        if not isinstance(record, dict):
            return
        message = mapping(record, "message")
        kind, parts = record.get("type"), objects(message, "parts")
        identity, time = str(record.get("uuid")), parse_time(record.get("timestamp"))
        is_unique = len(identity) == _UUID_LENGTH
        before = self.talk.place(offset)
        self.learn(record, time)
        if "forkedFrom" in record:
            return  # a copy: the original session has this record
        if kind == "user":
            typed = string(mapping(record, "systemPayload"), "displayText") or words_of(parts)
            is_typed = record.get("subtype") in _TYPED and not record.get("externalInputKind")
            claims = {**record, "isSystemInitiated": not is_typed}
            if record.get("provenance") == "real_user":
                del claims["provenance"]
            yield from self.talk.write(
                self.talk.prompter, typed, time, claims, identity=identity, unique=is_unique
            )
        elif kind == "assistant":
            yield from self.talk.open(OpenTurn(identity, time, unique=is_unique), before)
            self.agent(record, parts)
        elif kind == "tool_result":
            facts = {"status": "success", **mapping(record, "toolCallResult")}
            for response in responses_of(parts):
                call = str(response.get("id") or facts.get("callId"))
                record_result(self.talk, call, facts["status"], output_of(response))
        elif record.get("subtype") == "chat_compression":
            kept = objects(mapping(record, "systemPayload"), "compressedHistory")
            words = words_of(objects(kept[0], "parts")) if kept else ""
            yield from self.talk.write(
                Speaker.SYSTEM, words, time, identity=identity, flags=Flag.SUMMARY
            )
        elif kind != "system":
            self.source.unknown(f"record {kind}")

    def agent(self, record: Values, parts: Sequence[Values]) -> None:
        self.talk.learn(model=string(record, "model"))
        usage = mapping(record, "usageMetadata")
        read, cached = total(usage, "promptTokenCount"), total(usage, "cachedContentTokenCount")
        written = max(0, total(usage, "totalTokenCount") - read)
        self.talk.spend(Tokens.with_cached(read, cached, written))
        self.talk.add_text(words_of(parts))
        for call in filter(None, (mapping(part, "functionCall") for part in parts)):
            name, identity = string(call, "name") or "tool", str(call.get("id") or "")
            self.talk.add_call(identity, name, call.get("args"))

    def learn(self, record: Values, time: datetime | None) -> None:
        session, payload = self.talk.session, mapping(record, "systemPayload")
        name, parent = string(record, "sessionId"), string(payload, "parentSessionId")
        if record.get("isSidechain") is True:
            name, parent = string(record, "agentId"), name
        self.talk.learn(
            native_id=name,
            title=string(payload, "customTitle"),
            cwd=session.cwd or string(record, "cwd"),
            branch=string(record, "gitBranch"),
            kind=SessionKind.SUBAGENT if parent else None,
            parent=parent,
            started=session.started or time,
            tool_version=string(record, "version"),
        )


def _roots(places: Places) -> list[Root]:
    variable = "QWEN_RUNTIME_DIR" if places.environ.get("QWEN_RUNTIME_DIR") else "QWEN_HOME"
    patterns = ("*/chats/*.jsonl", "*/subagents/*/*.jsonl")
    return [Root(places.folder(variable, ".qwen") / "projects", patterns)]


ADAPTER = Adapter(
    tool=TOOL,
    label="Qwen Code",
    roots=_roots,
    sniff=is_qwen,
    parse=lambda source: _Reader(source).read(),
    resume=("qwen", "--resume", "{id}"),
    versions="0.19*",
    reads="branch; version; sub-agents; summaries",
    leaves_out="commands; copies in forks",
)
