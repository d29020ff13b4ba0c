"""Agents that append to a log of JSON lines: droid, gptme, Grok, iFlow, Kimi and Qwen Code."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from hashlib import md5
from itertools import groupby
from pathlib import Path

from nacre.base.plain import JsonObject, Values, mapping, objects, string, total
from nacre.base.text import answered_by
from nacre.readers.adapter import (
    Adapter,
    Head,
    Items,
    Places,
    Root,
    Source,
    beside,
    content_blocks,
    local_time,
    parse_time,
    records,
    under,
)
from nacre.readers.claude_code import is_qwen
from nacre.readers.conversation import tokens_of
from nacre.readers.gemini_cli import output_of, record_result, responses_of, words_of
from nacre.readers.generic import text_in
from nacre.readers.messages import HOST, OBJECT, Chat, Message, message_of, say
from nacre.readers.trust import Before
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens


def _parse(events: str, source: Source, reader: Callable[[Source], Chat]) -> Items:
    """Parse a session, except from a file of messages if there is a file of its events."""
    path = source.path.with_name(events)
    if source.path == path or not path.exists():
        yield from reader(source)


# -- Factory's droid: ``~/.factory/sessions/<folder>/<id>.jsonl`` -----------------------------
# ``<id>.settings.json`` has the session's model and token counts.


_QUIET_DROID = ("todo_state", "session_settings", "agent_turn_outcome")
_TASK_TITLE = "# Task Tool Invocation"
"""Beginning of a sub-agent's session title in versions that do not record the calling session."""


class _DroidReader(Chat):
    def __init__(self, source: Source) -> None:
        super().__init__(source, Session("droid", source.path.stem))
        settings = mapping(beside(_settings(source.path)))
        usage = mapping(settings, "tokenUsage")
        self.talk.spent = tokens_of(usage) if usage else None
        model = answered_by(string(settings, "model"), string(settings, "providerLock"))
        self.talk.learn(model=model)

    def take(self, offset: int, record: Values) -> Items:
        message, stamp = mapping(record, "message"), record.get("timestamp")
        identity = string(record, "id")
        match record.get("type"):
            case "session_start":
                self.begin(record)
            case "message":
                if "llm_only" not in (record.get("visibility"), message.get("visibility")):
                    answer = message_of(self.source, message, stamp, id=identity)
                    yield from say(self.talk, answer, offset)
            case "compaction_state":
                summary = Message(Speaker.SYSTEM, local_time(stamp), identity, flags=Flag.SUMMARY)
                summary.texts = [string(record, "summaryText", "summary")]
                yield from say(self.talk, summary, offset)
            case kind if kind not in _QUIET_DROID:
                self.source.unknown(str(kind))

    def begin(self, record: Values) -> None:
        caller = string(record, "callingSessionId")
        title = string(record, "sessionTitle", "title") or ""
        is_inner = caller or title.startswith(_TASK_TITLE)
        self.talk.session = replace(
            self.talk.session,
            native_id=string(record, "id") or self.source.path.stem,
            title=title or None,
            cwd=string(record, "cwd"),
            parent=caller or string(record, "parent"),
            kind=SessionKind.SUBAGENT if is_inner else SessionKind.MAIN,
        )


def _settings(transcript: Path) -> Path:
    return transcript.with_suffix(".settings.json")


def _sniff_droid(head: Head) -> bool:
    first = head.first
    return first.get("type") == "session_start" and "id" in first


ADAPTER_DROID = Adapter(
    tool="droid",
    label="Factory droid",
    roots=under("FACTORY_HOME_OVERRIDE", "", ".factory/sessions", "**/*.jsonl"),
    sniff=_sniff_droid,
    parse=_DroidReader,
    beside=lambda path: [_settings(path)],
    resume=("droid", "--resume", "{id}"),
    versions="0.213, 0.229*",
    reads="sub-agents; summaries",
    leaves_out="text for the model; todos",
)


# -- gptme: ``~/.local/share/gptme/logs/<name>/conversation.jsonl`` ---------------------------
# Calls are code blocks or lines in the agent's text, and their results are in the following system
# messages.


_BLOCK = re.compile(
    r"^```(shell|ipython|save|append|patch|patch_many|morph|read|gh|tmux)\b ?([^\n]*)\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)
_CALL = re.compile(r"^@([\w.]+)\(([\w\-:.]+)\):\s*(?=\{)", re.MULTILINE)
_FAILED = re.compile(r"^Return code: (-?[1-9]\d{0,8})|^Error\b", re.MULTILINE)


class _GptmeReader(Chat):
    def __init__(self, source: Source) -> None:
        super().__init__(source, Session("gptme", source.path.parent.name))
        chat: Values = {}
        with suppress(OSError, ValueError):
            text = source.path.with_name("config.toml").read_text(encoding="utf-8")
            chat = mapping(tomllib.loads(text), "chat")
        self.talk.learn(
            title=string(chat, "name"), cwd=string(chat, "workspace"), model=string(chat, "model")
        )

    def take(self, offset: int, record: Values) -> Items:
        text, metadata = string(record, "content") or "", mapping(record, "metadata")
        if record.get("role") in ("system", "tool"):
            unanswered = [name for name, call in self.talk.calls.items() if not call.call.outcome]
            call_id = string(record, "call_id") or next(iter(unanswered), "")
            failed = _FAILED.search(text)
            code = int(failed[1]) if failed and failed[1] else None
            message = Message(Speaker.TOOL, None)
            message.result(call_id, text, is_error=bool(failed), exit_code=code)
        else:
            calls = list(_calls(text)) if record.get("role") == "assistant" else []
            words = _CALL.split(text)[0] if calls and calls[0]["id"] else text
            values = {**record, "content": words, "tool_calls": calls}
            message = message_of(self.source, values, record.get("timestamp"))
            message.model = string(metadata, "model")
            message.tokens = tokens_of(mapping(metadata, "usage") or metadata)
        yield from say(self.talk, message, offset)


def _calls(text: str) -> Iterator[JsonObject]:
    for block in _BLOCK.finditer(text):
        place, body = block[2].strip(), block[3]
        arguments = {"path": place, "content": body} if place else {"command": body.strip()}
        yield {"id": "", "name": block[1], "arguments": arguments}
    for call in _CALL.finditer(text):
        with suppress(ValueError, RecursionError):
            arguments, _ = json.JSONDecoder().raw_decode(text, call.end())
            yield {"id": call[2], "name": call[1], "arguments": arguments}


def _sniff_gptme(head: Head) -> bool:
    first = head.first
    return head.path.name == "conversation.jsonl" and {"role", "content", "timestamp"} <= set(first)


ADAPTER_GPTME = Adapter(
    tool="gptme",
    label="gptme",
    roots=under("GPTME_LOGS_HOME", ".local/share/gptme/logs", "", "*/conversation.jsonl"),
    sniff=_sniff_gptme,
    parse=_GptmeReader,
    beside=lambda path: [path.with_name("config.toml")],
    versions="2026-06, 2026-08*",
    leaves_out="prompts of the system",
)


# -- Grok Build: ``~/.grok/sessions/<folder>/<id>/`` ------------------------------------------
# ``updates.jsonl`` has the events that the user saw, ``chat_history.jsonl`` the messages that the
# model saw. The history is only read if there are no events, because compaction rewrites it.
# ``summary.json`` describes the session.


_CHUNKS = ("user_message_chunk", "agent_message_chunk")
_TYPED_GROK = (None, "interjection")
"""Reasons of messages that the user typed. Other reasons name a component of the host."""


class _GrokReader(Chat):
    def __init__(self, source: Source) -> None:
        summary = mapping(beside(source.path.with_name("summary.json")))
        info = mapping(summary, "info")
        super().__init__(source, Session("grok", string(info, "id") or source.path.parent.name))
        is_inner = str(summary.get("session_kind")).startswith("subagent")
        self.talk.learn(
            title=string(summary, "generated_title", "session_summary"),
            cwd=string(info, "cwd"),
            started=local_time(summary.get("created_at")),
            branch=string(summary, "head_branch"),
            model=string(summary, "current_model_id"),
            parent=string(summary, "parent_session_id"),
            kind=SessionKind.SUBAGENT if is_inner else None,
        )
        self.before: Before | None = None
        self.text = ""

    def __iter__(self) -> Items:
        entries = (
            (offset, record)
            for offset, line in self.source.lines()
            for record in records(self.source, line, OBJECT)
        )
        for _, chunks in groupby(entries, _message_of):
            items = list(chunks)
            offset, record = items[0]
            texts = (text_in(mapping(item, "params", "update")) for _, item in items)
            self.before, self.text = None, "".join(texts)
            yield from self.take(offset, record)
        yield from self.talk.finish(self.before)

    def take(self, offset: int, record: Values) -> Items:
        params, time = mapping(record, "params"), local_time(record.get("timestamp"))
        update = mapping(params, "update")
        kind = update.get("sessionUpdate")
        identity = string(mapping(params, "_meta"), "eventId") or f"@{offset}"
        message = Message(Speaker.AGENT, time, identity, tokens=tokens_of(mapping(update, "usage")))
        if not update:
            yield from self.history(offset, record)
        elif kind == _CHUNKS[0]:
            yield from self.talk.close()
            self.before = self.talk.place(offset)
            host = HOST if mapping(update, "_meta").get("hostTurn") else {}
            claims = [update, mapping(update, "content"), host]
            message = Message(Speaker.OWNER, time, identity, claims, texts=[self.text])
            yield from say(self.talk, message, offset)
        else:
            message.texts = [self.text if kind == _CHUNKS[1] else ""]
            _add_call(message, update)
            if update.get("status") in ("completed", "failed"):
                output = update.get("content") or update.get("rawOutput")
                message.answer({**update, "isError": update["status"] == "failed"}, output)
            joins = self.can_grow or update.get("toolCallId") in self.talk.calls
            yield from say(self.talk, message, offset, joins=joins)

    def history(self, offset: int, record: Values) -> Items:
        text = text_in(record.get("content"))
        typed = text.partition("<user_query>")[2].partition("</user_query>")[0]
        if record.get("synthetic_reason") not in _TYPED_GROK:
            self.talk.exchange.record(text)
        elif record.get("type") == "backend_tool_call":
            self.talk.exchange.record_unseen()  # the provider ran it, and its output is not recorded
        elif record.get("type") != "reasoning":
            values = {**record, "content": typed} if typed else record
            message = message_of(self.source, values, model=string(record, "model_id"))
            yield from say(self.talk, message, offset)


def _add_call(message: Message, update: Values) -> None:
    """Add a tool call, whose arguments may come with a later update."""
    tool, kind = mapping(update, "_meta", "x.ai/tool"), string(update, "kind")
    arguments = mapping(update, "rawInput") or mapping(tool, "input")
    if arguments or kind:
        title = {"command" if kind == "execute" else "title": update.get("title")}
        name = string(tool, "name") or kind
        message.call(update.get("toolCallId"), name, arguments or title)


def _message_of(item: tuple[int, JsonObject]) -> object:
    update = mapping(item[1], "params", "update")
    kind = update.get("sessionUpdate")
    return [kind, mapping(update, "_meta").get("promptIndex")] if kind in _CHUNKS else item[0]


def _sniff_grok(head: Head) -> bool:
    return any(
        "sessionUpdate" in mapping(record, "params", "update")
        or (head.path.name == "chat_history.jsonl" and "content" in record)
        for record in head.objects
    )


ADAPTER_GROK = Adapter(
    tool="grok",
    label="Grok Build",
    roots=under("GROK_HOME", ".grok", "sessions", "*/*/updates.jsonl", "*/*/chat_history.jsonl"),
    sniff=_sniff_grok,
    parse=lambda source: _parse("updates.jsonl", source, _GrokReader),
    beside=lambda path: [path.with_name("summary.json")],
    versions="2026-07, 2026-08*",
    reads="branch; sub-agents",
    leaves_out="rewound messages; times in the history",
)


# -- iFlow CLI: ``~/.iflow/projects/<folder>/session-<id>.jsonl`` -----------------------------
# Records are like Claude Code's, but with Gemini CLI's results. While an answer grows, later records
# repeat its calls.


_MAX_CALLS = 50


class _IflowReader(Chat):
    def __init__(self, source: Source) -> None:
        super().__init__(source, Session("iflow", source.path.stem))

    def take(self, offset: int, record: Values) -> Items:
        message = mapping(record, "message")
        if record.get("type") not in ("user", "assistant"):
            self.source.unknown(str(record.get("type")))
            return
        self.talk.learn(
            native_id=string(record, "sessionId"),
            cwd=string(record, "cwd"),
            branch=string(record, "gitBranch"),
            tool_version=string(record, "version"),
        )
        status = mapping(record, "toolUseResult").get("status")
        blocks = [_plain_result(block, status) for block in content_blocks(message)]
        known_ids = self.source.carry.get("calls", [])
        fresh = [block for block in blocks if block.get("id") not in known_ids]
        answer = message_of(
            self.source,
            {**message, "content": fresh},
            record.get("timestamp"),
            id=string(record, "uuid"),
            model=string(message, "model"),
            tokens=tokens_of(mapping(message, "usage")),
        )
        answer.claims += [HOST] if record.get("isSidechain") or record.get("isMeta") else []
        yield from say(self.talk, answer, offset, joins=self.can_grow)
        ids = [block["id"] for block in fresh if isinstance(block.get("id"), str)]
        self.source.carry["calls"] = [*known_ids, *ids][-_MAX_CALLS:]


def _plain_result(block: Values, status: object) -> Values:
    if block.get("type") != "tool_result":
        return block
    output = block.get("content")
    function = mapping(output, "responseParts", "functionResponse") or mapping(
        output, "functionResponse"
    )
    response = mapping(function, "response")
    failed = status not in (None, "success") or "error" in response or block.get("is_error") is True
    words = string(response, "error", "output") or output
    return {**block, "content": words, "is_error": failed}


def _sniff_iflow(head: Head) -> bool:
    return any(
        str(record.get("sessionId")).startswith("session-") and "message" in record
        for record in head.objects
    )


ADAPTER_IFLOW = Adapter(
    tool="iflow",
    label="iFlow CLI",
    roots=lambda places: [Root(places.home / ".iflow/projects", ("*/session-*.jsonl",))],
    sniff=_sniff_iflow,
    parse=_IflowReader,
    resume=("iflow", "--resume", "{id}"),
    versions="1.0.0*",
    reads="branch; version",
    leaves_out="title",
)


# -- Kimi CLI (``~/.kimi``) and its successor Kimi Code (``~/.kimi-code``) --------------------
# Both record a session's events in ``wire.jsonl``, with different records. Kimi CLI also writes the
# messages that the model sees to ``context.jsonl``, which is only read if there are no events.


_QUIET_KIMI = frozenset(
    "metadata TurnEnd CompactionBegin CompactionEnd StepRetry HookTriggered HookResolved HookRequest "
    "MCPLoadingBegin MCPLoadingEnd MCPStatusSnapshot Notification PlanDisplay BtwBegin BtwEnd "
    "SubagentEvent ApprovalRequest ApprovalResponse ToolCallRequest QuestionRequest "
    "config context cron forked full_compaction goal interaction interruptionReminder llm mcp "
    "permission plan plan_mode plugin profile prompt retry runtime staleGuard swarm_mode task "
    "token_counting tools tower_mode turn usage".split()
)
"""Names of records without messages, or the part before the dot."""


class _KimiReader(Chat):
    def __init__(self, source: Source) -> None:
        folder, agent = _folder(source.path), source.path.parent.name
        session = Session("kimi", folder.name)
        if agent not in (folder.name, "main"):
            name = f"{folder.name}-{agent}"
            session = Session("kimi", name, kind=SessionKind.SUBAGENT, parent=folder.name)
        super().__init__(source, session)
        for place in objects(beside(folder / "../../../kimi.json"), "work_dirs"):
            path = str(place.get("path"))
            digest = md5(path.encode(errors="replace"), usedforsecurity=False)
            if digest.hexdigest() == folder.parent.name:
                self.talk.learn(cwd=path)
        state = mapping(beside(folder / "state.json"))
        title = string(state, "title", "custom_title")
        self.talk.learn(title=title, cwd=string(state, "workDir"))

    def take(self, offset: int, record: Values) -> Items:
        stamp = record.get("timestamp") or record.get("time")
        envelope = mapping(record, "message")
        if role := string(record, "role"):
            text = text_in(record.get("content"))
            if not role.startswith("_") and (role != "user" or not text.startswith("<system")):
                failed = text.startswith("<system>ERROR")
                message = message_of(self.source, {**record, "is_error": failed})
                yield from say(self.talk, message, offset)
        elif "role" in envelope:
            yield from say(self.talk, message_of(self.source, envelope, stamp), offset)
        else:
            event = mapping(envelope, "payload") or mapping(record, "event") or record
            kind = string(envelope, "type") or str(event.get("type"))
            self.talk.learn(model=string(event, "model", "modelAlias"), cwd=string(event, "cwd"))
            if kind == "context.apply_compaction":
                summary = Message(Speaker.SYSTEM, local_time(stamp), flags=Flag.SUMMARY)
                summary.texts = [text_in(event.get("summary") or event.get("contextSummary"))]
                yield from say(self.talk, summary, offset)
            yield from self.event(offset, kind, event, stamp)

    def event(self, offset: int, kind: str, event: Values, stamp: object) -> Items:
        message = Message(Speaker.AGENT, local_time(stamp))
        match kind:
            case "TurnBegin" | "SteerInput":
                message.speaker, message.texts = Speaker.OWNER, [text_in(event.get("user_input"))]
                message.claims = [event, *objects(event, "user_input")]
            case "ContentPart" | "content.part":
                message.texts = [text_in(mapping(event, "part") or event)]
            case "ToolCall" | "tool.call":
                journal = {"id": event.get("toolCallId"), "arguments": event.get("args")}
                call = {**journal, **event, **mapping(event, "function")}
                message.call(call["id"], call.get("name"), call["arguments"])
            case "ToolResult" | "tool.result":
                result = mapping(event, "return_value") or mapping(event, "result")
                words = text_in(result.get("output")), string(result, "message")
                message.answer({**event, **result}, "\n".join(filter(None, words)))
            case "StepBegin" | "step.begin":
                yield from self.talk.close()
            case "StepInterrupted" | "turn.cancel":
                yield from self.talk.interrupted(f"{stamp}-cut", message.time)
            case "StatusUpdate" | "step.end":
                usage = mapping(event, "token_usage") or mapping(event, "usage")
                message.tokens = tokens_of(usage)
            case _ if kind.partition(".")[0] not in _QUIET_KIMI:
                self.source.unknown(kind)
        yield from say(self.talk, message, offset, joins=True)


def _folder(path: Path) -> Path:
    """Return a session's folder, which in Kimi Code contains a folder for each agent."""
    agents = path.parent.parent
    return agents.parent if agents.name == "agents" else path.parent


def _sniff_kimi(head: Head) -> bool:
    return any(
        "protocol_version" in record
        or str(record.get("role")).startswith("_")
        or "payload" in mapping(record, "message")
        for record in head.objects
    )


ADAPTER_KIMI = Adapter(
    tool="kimi",
    label="Kimi CLI, Kimi Code",
    roots=lambda places: [
        Root(
            places.folder("KIMI_SHARE_DIR", ".kimi"),
            ("sessions/*/*/wire.jsonl", "sessions/*/*/context.jsonl"),
        ),
        Root(places.folder("KIMI_CODE_HOME", ".kimi-code"), ("sessions/*/*/agents/*/wire.jsonl",)),
    ],
    sniff=_sniff_kimi,
    parse=lambda source: _parse("wire.jsonl", source, _KimiReader),
    beside=lambda path: [_folder(path) / "state.json"],
    resume=("kimi", "--session", "{id}"),
    versions="wire 1.1 to 1.5*",
    reads="sub-agents; summaries; interruptions",
    leaves_out="sub-agents of Kimi CLI; times in context.jsonl",
)


# -- Qwen Code: ``~/.qwen/projects/<folder>/chats/<id>.jsonl``, one record per line -----------
# Messages have the format of Gemini CLI, from which Qwen Code was forked.


_TYPED_QWEN = (None, "mid_turn_user_message")


class _QwenReader(Chat):
    def __init__(self, source: Source) -> None:
        super().__init__(source, Session("qwen-code", source.path.stem))

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
            is_typed = record.get("subtype") in _TYPED_QWEN and not record.get("externalInputKind")
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


ADAPTER_QWEN = Adapter(
    tool="qwen-code",
    label="Qwen Code",
    roots=_roots,
    sniff=is_qwen,
    parse=_QwenReader,
    resume=("qwen", "--resume", "{id}"),
    versions="0.19*",
    reads="branch; version; sub-agents; summaries",
    leaves_out="commands; copies in forks",
)
