"""The records of a Codex rollout, as far as nacre reads them, and what Codex wraps around words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from nacre.text.open_weights import answered_by
from nacre.transcripts.adapter import Head
from nacre.transcripts.blocks import ABSENT, Block, plain, text_of
from nacre.transcripts.objects import decode, parse_time
from nacre.transcripts.origins import Claims
from nacre.transcripts.phrases import is_tools
from nacre.transcripts.tool_calls import outcome
from nacre.values.session import Session, SessionKind, Tokens

TOOL = "codex"

NOISE_ITEMS = frozenset({
    "reasoning", "ghost_snapshot", "tool_search_call", "tool_search_output", "image_generation_call",
    "agent_message", "compaction", "compaction_summary", "context_compaction", "compaction_trigger",
    "additional_tools", "configuration_update",
})  # fmt: skip
NOISE_EVENTS = frozenset({
    "agent_reasoning", "agent_reasoning_raw_content", "agent_reasoning_section_break",
    "task_started", "turn_started", "context_compacted", "item_started", "item_completed",
    "entered_review_mode", "exited_review_mode", "thread_goal_updated", "thread_settings_applied",
    "guardian_assessment", "warning", "stream_error", "view_image_tool_call", "sub_agent_activity",
    "dynamic_tool_call_request", "dynamic_tool_call_response", "thread_rolled_back", "undo_started",
    "undo_completed", "plan_update", "turn_diff", "background_event", "hook_started", "hook_completed",
})  # fmt: skip
NOISE_RECORDS = frozenset({
    "world_state", "inter_agent_communication_metadata", "state", "token_usage_record", "dynamic_tools_updated",
    "security_risk_score",
})  # fmt: skip
KEPT_RECORDS = frozenset({"inter_agent_communication", "retained_context", "realtime_item"})
"""What Codex keeps beside the model's history."""

_NOISE_ITEM_NAMES = frozenset(name.encode() for name in NOISE_ITEMS)
_NOISE_EVENT_NAMES = frozenset(name.encode() for name in NOISE_EVENTS)
_STEPS = ("_begin", "_end", "_delta")
_STEP_NAMES = (b"_begin", b"_end", b"_delta")
_LAYOUT = re.compile(
    rb'\{"timestamp":"[^"]{0,40}"(?:,"ordinal":\d+)?,"type":"(\w+)","payload":\{(?:"type":"([\w./]+)")?'
)
_ROLLOUT_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_OWNERS_SOURCES = frozenset({
    "cli", "vscode", "exec", "tui", "desktop", "app", "appserver", "chatgpt", "atlas", "user", "subagent",
})  # fmt: skip
"""Where a session of the owner's begins, or of an agent's that the owner's began. One whose source is another, ``mcp``
say, is prompted by somebody else."""

_REQUEST = "## My request for Codex:"
_REPLY, _REPLY_ENDS = "<send_user_message_question_reply>", "</send_user_message_question_reply>"
_HEARTBEAT = "user.heartbeat"
_TAGGED = re.compile(r"<([a-z]+(?:_[a-z]+)+)\b[^>]*>.*</\1>\s*\Z", re.DOTALL)
_EXIT_CODE = re.compile(r"\bexit(?:ed with)? code:?\s*(-?\d+)", re.IGNORECASE)
_FAILED = re.compile(r"(failed|error|execution error|aborted|unsupported|unknown)\b", re.IGNORECASE)
_REJECTED = re.compile(r"[\w ]{0,40}rejected by (the )?user")


class Record(Claims, gc=False):
    """One line. Old rollouts have items without ``payload``, and a first line without ``type``."""

    type: str | None = None
    timestamp: str | None = None
    payload: msgspec.Raw = ABSENT
    id: str | None = None
    record_type: str | None = None
    session_id: str | None = None


class Item(Claims, gc=False):
    """The payload of a response item or an event."""

    type: str | None = None
    role: str | None = None
    content: msgspec.Raw = ABSENT
    message: msgspec.Raw = ABSENT
    kind: Any = None
    name: str | None = None
    arguments: msgspec.Raw = ABSENT
    input: msgspec.Raw = ABSENT
    action: msgspec.Raw = ABSENT
    call_id: str | None = None
    id: str | None = None
    output: msgspec.Raw = ABSENT
    status: Any = None
    thread_name: Any = None
    info: msgspec.Raw = ABSENT
    reason: Any = None
    internal_chat_message_metadata_passthrough: msgspec.Raw = ABSENT


class Meta(msgspec.Struct, gc=False):
    """The payload of ``session_meta`` and of ``turn_context``, or the first line of an old rollout."""

    id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    model: str | None = None
    model_provider: str | None = None
    cli_version: str | None = None
    source: msgspec.Raw = ABSENT
    thread_source: str | None = None
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    git: msgspec.Raw = ABSENT


class Total(msgspec.Struct, gc=False):
    """What a rollout cost up to here; what was read from the cache is part of the input."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> Tokens:
        """The same in nacre's words."""
        cached = min(self.cached_input_tokens, self.input_tokens)
        return Tokens(self.input_tokens - cached, cached, self.output_tokens)


class Spent(msgspec.Struct, gc=False):
    """The ``info`` of a ``token_count``; ``null`` before the first answer."""

    total_token_usage: Total | None = None


class Answer(msgspec.Struct, gc=False):
    """A question of the agent's, and what the owner answered."""

    question: str = ""
    answer: str = ""


class Segment(msgspec.Struct, gc=False):
    """What was spoken."""

    role: str = ""
    text: str = ""


class Marks(msgspec.Struct, gc=False):
    """What Codex notes of a message's content, block by block: since 0.169 whose each of them is."""

    content_item_kinds: Sequence[str] = ()
    content_item_metadata: Sequence[dict[str, Any]] = ()

    @property
    def is_scheduled(self) -> bool:
        """Whether the owner wrote it once, and Codex says it again at its time."""
        return _HEARTBEAT in self.content_item_kinds

    @property
    def claims(self) -> list[dict[str, Any]]:
        """What names whose the blocks are that Codex did not write itself."""
        return [mark for mark in self.content_item_metadata if not _is_harness(mark)]

    def without_harness(self, blocks: Sequence[Block]) -> list[Block]:
        """The blocks that Codex did not write itself."""
        marks: list[dict[str, Any]] = [*self.content_item_metadata, *({} for _ in blocks)]
        return [block for block, mark in zip(blocks, marks, strict=False) if not _is_harness(mark)]


def _is_harness(mark: dict[str, Any]) -> bool:
    provenance = mark.get("provenance")
    return isinstance(provenance, dict) and provenance.get("type") == "harness"


class Kept(msgspec.Struct, gc=False):
    """What such a record holds: another agent's message, the answers to a form, or words that were spoken."""

    type: str | None = None
    content: str | None = None
    questions: Sequence[Answer] = ()
    data: Segment | None = None


class Compacted(msgspec.Struct, gc=False):
    """The payload of ``compacted``; the history it repeats is left alone."""

    message: str | None = None


RECORD = msgspec.json.Decoder(Record)
ITEM = msgspec.json.Decoder(Item)
META = msgspec.json.Decoder(Meta)
SPENT = msgspec.json.Decoder(Spent | None)
ANSWERS = msgspec.json.Decoder(list[Answer])
MARKS = msgspec.json.Decoder(Marks)
KEPT = msgspec.json.Decoder(Kept)
COMPACTED = msgspec.json.Decoder(Compacted)


def is_noise(line: bytes) -> bool:
    """Whether a line can be left out without decoding it."""
    layout = _LAYOUT.match(line)
    if layout is None or b"}{" in line:
        return False
    kind, name = layout.groups()
    if kind == b"event_msg":
        return name in _NOISE_EVENT_NAMES or (name or b"").endswith(_STEP_NAMES)
    return name in _NOISE_ITEM_NAMES if kind == b"response_item" else kind == b"world_state"


def is_noise_event(name: str) -> bool:
    """Whether an event says nothing that the other records do not."""
    return name in NOISE_EVENTS or name.endswith(_STEPS)


def is_rollout(head: Head) -> bool:
    """Whether a file is a rollout, of any age, or Codex's list of prompts."""
    for record in head.objects:
        if record.get("type") in _ROLLOUT_TYPES and isinstance(record.get("payload"), dict):
            return True
    first = head.objects[0] if head.objects else {}
    if "type" in first or "role" in first:
        return False
    is_old = {"id", "timestamp"} <= first.keys() and bool({"instructions", "git"} & first.keys())
    return is_old or first.keys() == {"session_id", "ts", "text"}


def session_of(meta: Meta, fallback_id: str) -> Session:
    """The session that a rollout's first line describes."""
    source, git = plain(meta.source), plain(meta.git)
    spawned = source.get("subagent") if isinstance(source, dict) else None
    spawn = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
    parent = meta.parent_thread_id or (spawn.get("parent_thread_id") if isinstance(spawn, dict) else None)
    is_sub = bool(spawned) or meta.thread_source == "subagent"
    git = git if isinstance(git, dict) else {}
    return Session(
        tool=TOOL, native_id=meta.id or fallback_id, cwd=meta.cwd, branch=git.get("branch"),
        repository=git.get("repository_url"), kind=SessionKind.SUBAGENT if is_sub else SessionKind.MAIN,
        parent=parent or meta.forked_from_id, started=parse_time(meta.timestamp),
        tool_version=meta.cli_version, model=answered_by(meta.model, meta.model_provider),
    )  # fmt: skip


def is_anothers(meta: Meta) -> bool:
    """Whether a session names a source that is not known to be the owner's."""
    named = [value.lower() for value in (plain(meta.source), meta.thread_source) if isinstance(value, str) and value]
    return not _OWNERS_SOURCES.issuperset(named)


def typed(text: str) -> str:
    """What the owner typed: the request without an IDE's context; empty for what Codex itself wrote."""
    text = text.strip()
    if is_tools(TOOL, text) or (_TAGGED.match(text) and not replies_in(text)):
        return ""
    return text.rpartition(_REQUEST)[2].strip() if text.startswith("#") else text


def replies_in(text: str) -> list[Answer]:
    """The owner's answers to questions that did not wait for them; Codex sends them as a message."""
    if not (text.startswith(_REPLY) and text.endswith(_REPLY_ENDS)):
        return []
    return decode(ANSWERS, text.removeprefix(_REPLY).removesuffix(_REPLY_ENDS).encode("utf-8", errors="replace")) or []


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool gave back, and how it came out."""

    text: str
    outcome: str


def read_output(raw: msgspec.Raw) -> Output:
    """The output of a call: text, text that holds JSON, an object, or a list of content."""
    value: Any = plain(raw)
    if isinstance(value, str) and value.startswith("{"):
        inner = plain(msgspec.Raw(value.encode("utf-8", errors="replace")))
        value = inner if isinstance(inner, dict) else value
    if not isinstance(value, dict):
        text = value if isinstance(value, str) else text_of(raw, separator="\n")
        return Output(text, _outcome(text, exit_code=None, failed=False))
    body = next((value[key] for key in ("output", "content", "text") if value.get(key)), "")
    text = body if isinstance(body, str) else text_of(msgspec.Raw(msgspec.json.encode(body)), separator="\n")
    metadata = value.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    failed = value.get("success") is False or value.get("isError") is True
    return Output(text, _outcome(text, exit_code=code if isinstance(code, int) else None, failed=failed))


def _outcome(text: str, *, exit_code: int | None, failed: bool) -> str:
    head = text[:400]
    if _REJECTED.match(head):
        return "rejected"
    code = _EXIT_CODE.search(head) if exit_code is None else None
    if code:
        exit_code = int(code.group(1))
    return outcome(text, exit_code=exit_code, is_error=failed or bool(_FAILED.match(head)))
