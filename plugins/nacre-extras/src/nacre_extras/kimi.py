"""Kimi CLI (``~/.kimi``) and its successor Kimi Code (``~/.kimi-code``).

Both record a session's events in ``wire.jsonl``, with different records. Kimi CLI also writes the
messages that the model sees to ``context.jsonl``, which is only read if there are no events.
"""

from __future__ import annotations

from hashlib import md5
from pathlib import Path

from nacre.base.plain import Values, mapping, objects, string
from nacre.readers.adapter import Adapter, Head, Items, Root, Source, beside, local_time
from nacre.readers.conversation import tokens_of
from nacre.readers.generic import text_in
from nacre.readers.messages import Chat, Message, message_of, say
from nacre.values.session import Flag, Session, SessionKind, Speaker

_QUIET = frozenset(
    "metadata TurnEnd CompactionBegin CompactionEnd StepRetry HookTriggered HookResolved HookRequest "
    "MCPLoadingBegin MCPLoadingEnd MCPStatusSnapshot Notification PlanDisplay BtwBegin BtwEnd "
    "SubagentEvent ApprovalRequest ApprovalResponse ToolCallRequest QuestionRequest "
    "config context cron forked full_compaction goal interaction interruptionReminder llm mcp "
    "permission plan plan_mode plugin profile prompt retry runtime staleGuard swarm_mode task "
    "token_counting tools tower_mode turn usage".split()
)
"""Names of records without messages, or the part before the dot."""


class _Reader(Chat):
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
            case _ if kind.partition(".")[0] not in _QUIET:
                self.source.unknown(kind)
        yield from say(self.talk, message, offset, joins=True)


def _folder(path: Path) -> Path:
    """Return a session's folder, which in Kimi Code contains a folder for each agent."""
    agents = path.parent.parent
    return agents.parent if agents.name == "agents" else path.parent


def _sniff(head: Head) -> bool:
    return any(
        "protocol_version" in record
        or str(record.get("role")).startswith("_")
        or "payload" in mapping(record, "message")
        for record in head.objects
    )


def _parse(source: Source) -> Items:
    events = source.path.with_name("wire.jsonl")
    if source.path == events or not events.exists():
        yield from _Reader(source)


ADAPTER = Adapter(
    tool="kimi",
    label="Kimi CLI, Kimi Code",
    roots=lambda places: [
        Root(
            places.folder("KIMI_SHARE_DIR", ".kimi"),
            ("sessions/*/*/wire.jsonl", "sessions/*/*/context.jsonl"),
        ),
        Root(places.folder("KIMI_CODE_HOME", ".kimi-code"), ("sessions/*/*/agents/*/wire.jsonl",)),
    ],
    sniff=_sniff,
    parse=_parse,
    beside=lambda path: [_folder(path) / "state.json"],
    resume=("kimi", "--session", "{id}"),
    versions="wire 1.1 to 1.5*",
    reads="sub-agents; summaries; interruptions",
    leaves_out="sub-agents of Kimi CLI; times in context.jsonl",
)
