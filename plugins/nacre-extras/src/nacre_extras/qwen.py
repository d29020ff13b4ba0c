"""Qwen Code: ``~/.qwen/projects/<folder>/chats/<id>.jsonl``, one record per line.

Messages have the format of Gemini CLI, from which Qwen Code was forked.
"""

from __future__ import annotations

from datetime import datetime

from nacre.base.plain import Values, mapping, objects, string, total
from nacre.readers.adapter import Adapter, Items, Places, Root, Source, parse_time
from nacre.readers.claude_code import is_qwen
from nacre.readers.gemini_cli import output_of, record_result, responses_of, words_of
from nacre.readers.messages import Chat, Message, say
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens

TOOL = "qwen-code"

_TYPED = (None, "mid_turn_user_message")


class _Reader(Chat):
    def __init__(self, source: Source) -> None:
        super().__init__(source, Session(TOOL, source.path.stem))

    def take(self, offset: int, record: Values) -> Items:
        values = mapping(record, "message")
        kind, parts = record.get("type"), objects(values, "parts")
        time = parse_time(record.get("timestamp"))
        message = Message(Speaker.SYSTEM, time, str(record.get("uuid")))
        self.learn(record, time)
        if "forkedFrom" in record:
            return  # a copy: the original session has this record
        if kind == "user":
            typed = string(mapping(record, "systemPayload"), "displayText") or words_of(parts)
            is_typed = record.get("subtype") in _TYPED and not record.get("externalInputKind")
            claims = {**record, "isSystemInitiated": not is_typed}
            if record.get("provenance") == "real_user":
                del claims["provenance"]
            message.speaker, message.texts, message.claims = Speaker.OWNER, [typed], [claims]
        elif kind == "assistant":
            message.speaker, message.texts = Speaker.AGENT, [words_of(parts)]
            message.model = string(record, "model")
            message.tokens = _tokens(mapping(record, "usageMetadata"))
            for call in filter(None, (mapping(part, "functionCall") for part in parts)):
                message.call(call.get("id"), call.get("name"), call.get("args"))
        elif kind == "tool_result":
            facts = {"status": "success", **mapping(record, "toolCallResult")}
            for response in responses_of(parts):
                call_id = str(response.get("id") or facts.get("callId"))
                record_result(self.talk, call_id, facts["status"], output_of(response))
        elif record.get("subtype") == "chat_compression":
            history = objects(mapping(record, "systemPayload"), "compressedHistory")
            message.texts = [words_of(objects(history[0], "parts")) if history else ""]
            message.flags = Flag.SUMMARY
        elif kind != "system":
            self.source.unknown(f"record {kind}")
        yield from say(self.talk, message, offset)

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


def _tokens(usage: Values) -> Tokens:
    read, cached = total(usage, "promptTokenCount"), total(usage, "cachedContentTokenCount")
    return Tokens.with_cached(read, cached, max(0, total(usage, "totalTokenCount") - read))


def _roots(places: Places) -> list[Root]:
    variable = "QWEN_RUNTIME_DIR" if places.environ.get("QWEN_RUNTIME_DIR") else "QWEN_HOME"
    patterns = ("*/chats/*.jsonl", "*/subagents/*/*.jsonl")
    return [Root(places.folder(variable, ".qwen") / "projects", patterns)]


ADAPTER = Adapter(
    tool=TOOL,
    label="Qwen Code",
    roots=_roots,
    sniff=is_qwen,
    parse=_Reader,
    resume=("qwen", "--resume", "{id}"),
    versions="0.19*",
    reads="branch; version; sub-agents; summaries",
    leaves_out="commands; copies in forks",
)
