"""Codex CLI: rollouts in ``~/.codex/sessions``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain, repeat
from typing import Any

import msgspec

from nacre.base.ids import turn_hash
from nacre.base.plain import Values, mapping, objects, objects_in, string, total
from nacre.base.text import answered_by
from nacre.errors import NacreError
from nacre.readers.adapter import (
    Adapter,
    FileSource,
    Head,
    Items,
    Source,
    content_blocks,
    decode,
    parse_time,
    plain,
    plain_path,
    under,
)
from nacre.readers.conversation import clean, is_tools, new_call, outcome
from nacre.readers.trust import (
    ABSENT,
    Before,
    Claims,
    Conversation,
    blocks_of,
    names_another,
    text_of,
)
from nacre.values.session import Flag, Session, SessionKind, Speaker, Tokens, Trust

TOOL = "codex"


_NOISE_ITEMS = tuple(
    "reasoning ghost_ tool_search_ image_generation agent_message compaction context_compaction "
    "additional_ configuration_".split()
)
_NOISE_EVENTS = tuple(
    "agent_reasoning task_started turn_started context_compacted item_started entered_ exited_ "
    "thread_goal thread_settings thread_rolled guardian_ warning stream_error view_image sub_agent_ "
    "dynamic_tool_ undo_ plan_update turn_diff background_ hook_".split()
)
"""Prefixes of the names of events without text."""
_NOISE_RECORDS = frozenset(
    "world_state inter_agent_communication_metadata state token_usage_record "
    "dynamic_tools_updated security_risk_score".split()
)
_SEPARATE_RECORDS = frozenset({"inter_agent_communication", "retained_context", "realtime_item"})
"""Types of records that are not part of the model's history."""

_STEP_SUFFIXES = ("_begin", "_end", "_delta")
_ROLLOUT_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_OWNER_SOURCES = frozenset(
    "cli vscode exec tui desktop app appserver chatgpt atlas user subagent".split()
)
"""Sources of sessions that the user or the user's agents started.

Other sessions, such as those from ``mcp``, contain no prompts by the user.
"""

_REQUEST_HEAD = "## My request for Codex:"
_REPLIES = re.compile(r"<(send_user_message_question_reply)>(.*)</\1>", re.DOTALL)
_HEARTBEAT = "user.heartbeat"
_TAGGED = re.compile(r"<([a-z]+(?:_[a-z]+)+)\b[^>]*>.*</\1>\s*\Z", re.DOTALL)
_EXIT_CODE = re.compile(r"\bexit(?:ed with)? code:?\s*(-?\d+)", re.IGNORECASE)
_FAILED = re.compile(r"(failed|error|execution error|aborted|unsupported|unknown)\b", re.IGNORECASE)
_REJECTED = re.compile(r"[\w ]{0,40}rejected by (the )?user")


class Record(Claims, gc=False):
    """A line of a rollout file.

    In old files, items have no ``payload`` and the first line has no ``type``.
    """

    type: str | None = None
    timestamp: str | None = None
    payload: msgspec.Raw = ABSENT
    id: str | None = None
    ordinal: int | None = None


class Item(Claims, gc=False):
    """The payload of a response item or an event."""

    type: str | None = None
    role: str | None = None
    content: msgspec.Raw = ABSENT
    message: Any = None
    kind: Any = None
    name: str | None = None
    arguments: Any = None
    input: Any = None
    action: Any = None
    call_id: str | None = None
    id: str | None = None
    output: msgspec.Raw = ABSENT
    status: Any = None
    thread_name: Any = None
    info: Any = None
    item: msgspec.Raw = ABSENT
    reason: Any = None
    internal_chat_message_metadata_passthrough: Any = None


class Meta(msgspec.Struct, gc=False):
    """The payload of ``session_meta`` or ``turn_context``, or an old rollout's first line."""

    id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    model: str | None = None
    model_provider: str | None = None
    cli_version: str | None = None
    source: Any = None
    thread_source: str | None = None
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    subagent_history_start_ordinal: int | None = None
    turn_id: str | None = None
    git: Any = None


RECORD = msgspec.json.Decoder(Record)
ITEM = msgspec.json.Decoder(Item)
META = msgspec.json.Decoder(Meta)
_RAW = msgspec.json.Decoder(msgspec.Raw)


def is_rollout(head: Head) -> bool:
    """Return True for a Codex rollout of any version, or for Codex's history of prompts."""
    for record in head.objects:
        if record.get("type") in _ROLLOUT_TYPES and isinstance(record.get("payload"), dict):
            return True
    first = head.first
    if "type" in first or "role" in first:
        return False
    is_old = {"id", "timestamp"} <= first.keys() and bool({"instructions", "git"} & first.keys())
    return is_old or first.keys() == {"session_id", "ts", "text"}


def session_of(meta: Meta) -> Session:
    """Return the session that a rollout's first line describes."""
    git = mapping(meta.git)
    spawn = mapping(meta.source, "subagent", "thread_spawn")
    is_sub = bool(mapping(meta.source).get("subagent")) or meta.thread_source == "subagent"
    return Session(
        tool=TOOL,
        native_id=meta.id or "",
        cwd=meta.cwd,
        branch=git.get("branch"),
        repository=git.get("repository_url"),
        kind=SessionKind.SUBAGENT if is_sub else SessionKind.MAIN,
        parent=meta.parent_thread_id or spawn.get("parent_thread_id"),
        started=parse_time(meta.timestamp),
        tool_version=meta.cli_version,
        model=answered_by(meta.model, meta.model_provider),
    )


def typed(text: str) -> str:
    """Return the request that the user typed, without the editor's context.

    The result is empty if Codex wrote the text.
    """
    text = text.strip()
    if is_tools(TOOL, text) or (_TAGGED.match(text) and not replies_in(text)):
        return ""
    return text.rpartition(_REQUEST_HEAD)[2].strip() if text.startswith("#") else text


def replies_in(text: str) -> list[Values]:
    """Return the user's late answers to the agent's questions, which Codex sends in a message."""
    replies = _REPLIES.fullmatch(text)
    return objects_in(plain(replies[2])) if replies else []


def read_output(value: Any) -> tuple[str, str]:
    """Return a call's output and outcome.

    ``value`` is text, JSON text, an object or a list of content blocks.
    """
    is_encoded = isinstance(value, str) and value.startswith("{")
    fields = mapping(plain(value) if is_encoded else value)
    keys = ("output", "content", "text")
    body = next((fields[key] for key in keys if fields.get(key)), "") if fields else value
    text = (
        body
        if isinstance(body, str)
        else text_of(msgspec.Raw(msgspec.json.encode(body)), separator="\n")
    )
    head = text[:400]
    if _REJECTED.match(head):
        return text, "rejected"
    code = mapping(fields, "metadata").get("exit_code")
    if type(code) is not int:
        match = _EXIT_CODE.search(head)
        code = match and match[1]
    is_error = fields.get("success") is False or fields.get("isError") is True
    return text, outcome(text, exit_code=code, is_error=is_error or bool(_FAILED.match(head)))


def _tokens(item: Item, name: str) -> Tokens:
    usage = mapping(item.info, name)
    read, cached = total(usage, "input_tokens"), total(usage, "cached_input_tokens")
    return Tokens.with_cached(read, cached, total(usage, "output_tokens"))


# -- Reading rollouts ----------------------------------------------------------
# Codex writes messages twice: as UI events and as items of the model's history. Prompts are read
# from the events if the file has any, because Codex adds text to the history. The agent's messages
# are read from whichever comes first, and the duplicate is skipped.


_FOLDERS = ("sessions", "archived_sessions")
_NAME = re.compile(r"rollout-.*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_OLD_ITEMS = _CALLS | _OUTPUTS | {"message", "reasoning"}
_ENDS = frozenset({"task_complete", "turn_complete", "turn_aborted"})
_MAX_UNPAIRED = 32
_STEPS = {"commandexecution": "exec_command", "filechange": "apply_patch", "mcptoolcall": "mcp"}
_NOISE_KINDS = frozenset(
    "collabagenttoolcall contextcompaction dynamictoolcall hookprompt imagegeneration imageview "
    "plan reasoning sleep subagentactivity".split()
)
"""Types of completed items that are ignored, in lower case and without separators."""
_REPLAY_GAP = timedelta(seconds=1)
_PROMPT_GAP = timedelta(seconds=0.1)
"""Minimum time between a fork's copied history and its first prompt if its parent is unknown."""


def _mark_of(record: Record) -> str | None:
    if record.type == "turn_context":
        return (decode(META, record.payload) or Meta()).turn_id
    item = decode(ITEM, record.payload) or Item()
    if item.type == "user_message":
        return typed(str(item.message))
    return typed(text_of(item.content)) if item.role == "user" else None


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        name = _NAME.search(source.path.name)
        self.talk = Conversation(source, Session(TOOL, name[1] if name else source.path.stem))
        self.pending: list[tuple[str, str | None, bool]] = []
        """User messages from the model's history. They are ignored if the file contains events."""

    def __iter__(self) -> Items:
        return self.talk.read(_RAW, self.take, self.settle)

    def take(self, offset: int, raw: msgspec.Raw) -> Items:
        record = decode(RECORD, raw)
        if record is None:
            self.source.corrupt()
        elif record.type in ("session_meta", None):
            self.begin(record, raw)
        elif self.is_copy(record) or record.type == "turn_context":
            context = decode(META, record.payload) or Meta()
            model = answered_by(context.model, self.source.carry.get("provider"))
            self.talk.learn(model=model, cwd=self.talk.session.cwd or context.cwd)
        elif record.type in ("event_msg", "response_item"):
            yield from self.item(offset, record, record.payload)
        elif record.type == "compacted":
            yield from self.settle()
            yield from self.talk.write(
                Speaker.SYSTEM,
                string(plain(record.payload), "message") or "",
                self.time(record.timestamp),
                stamp=record.timestamp,
                flags=Flag.SUMMARY,
            )
        elif record.type in _SEPARATE_RECORDS:
            yield from self.separate_record(offset, record)
        elif record.type in _OLD_ITEMS:
            yield from self.item(offset, record, raw)
        elif record.type not in _NOISE_RECORDS:
            self.source.unknown(record.type)

    # The session

    def begin(self, record: Record, raw: msgspec.Raw) -> None:
        if record.type is None and not record.id:
            return
        meta = decode(META, record.payload if record.type else raw)
        if meta is None or not meta.id:
            self.source.corrupt()
            return
        carry = self.source.carry
        if "others" not in carry:
            carry["provider"] = meta.model_provider
            self.talk.session = session_of(meta)
            sources = (meta.source, meta.thread_source)
            names = {source.lower() for source in sources if source and isinstance(source, str)}
            carry["others"] = not names <= _OWNER_SOURCES
            carry["start"] = meta.subagent_history_start_ordinal or 0
            carry["inherits"] = bool(meta.forked_from_id or self.talk.session.parent)
        elif meta.id == self.talk.session.native_id:
            carry.pop("replay", None)
            carry["provider"] = meta.model_provider or carry["provider"]
        elif not carry.get("begun"):
            # The next records copy the history of this other session.
            carry["replay"] = record.timestamp
            carry.setdefault("parent", meta.id)

    def is_copy(self, record: Record) -> bool:
        carry = self.source.carry
        if carry.get("start") and record.ordinal is not None:
            return bool(record.ordinal < carry["start"])
        if "replay" not in carry:
            return False
        last, now = parse_time(carry["replay"]), parse_time(record.timestamp)
        start = self.talk.session.started
        if not (last and now and start):
            del carry["replay"]
            return False
        # Codex copies the parent's history in one step. The fork's own records begin with a prompt
        # or turn that the parent lacks, or after a pause.
        pause, mark = now - max(last, start), _mark_of(record)
        is_new = mark and (pause > _PROMPT_GAP if self.parent is None else mark not in self.parent)
        is_own = now >= start and (last < start - _REPLAY_GAP or pause > _REPLAY_GAP or is_new)
        if is_own:
            del carry["replay"]
        else:
            carry["replay"] = record.timestamp
        return not is_own

    @cached_property
    def parent(self) -> set[str] | None:
        path = self.source.path
        root = next((folder for folder in path.parents if folder.name in _FOLDERS), path)
        places = (path.parent, *(root.with_name(name) for name in _FOLDERS))
        name = f"**/rollout-*{self.source.carry['parent']}.jsonl*"
        try:
            with FileSource(
                plain_path(next(chain(*(place.glob(name) for place in places))))
            ) as file:
                records = (decode(RECORD, line) for _, line in file.lines())
                return {mark for record in records if record and (mark := _mark_of(record))}
        except (StopIteration, ValueError, NacreError):
            return None

    def separate_record(self, offset: int, record: Record) -> Items:
        content = plain(record.payload)
        kind, spoken = string(content, "type"), mapping(content, "data")
        words = string(spoken, "text")
        if not isinstance(content, dict):
            self.source.corrupt()
        elif record.type == "inter_agent_communication":
            self.talk.exchange.record_outside(string(content, "content") or "")
        elif kind == "verified_answer":
            yield from self.settle()
            for answer in objects(content, "questions"):
                yield from self.form_answer(answer, record.timestamp)
        elif kind == "transcript_segment" and words:
            yield from self.settle()
            if spoken.get("role") == "user":
                yield from self.prompt(words, record.timestamp, is_foreign=False)
            else:
                yield from self.agent([words], "spoken", offset, record)

    def form_answer(self, item: Values, stamp: str | None) -> Items:
        trusts = self.talk.exchange.trust_of
        question, answer = string(item, "question"), string(item, "answer") or ""
        pair = f"{question} → {answer}" if question else answer
        words = next((text for text in (pair, answer) if trusts(text) is Trust.TRUSTED), "")
        yield from self.prompt(words or pair, stamp, is_foreign=not words)

    # Messages and calls

    def item(self, offset: int, record: Record, body: msgspec.Raw) -> Items:
        item = decode(ITEM, body)
        if item is None:
            self.source.corrupt()
        elif item.type == "item_completed":
            yield from self.completed(offset, record, plain(item.item))
        elif record.type == "event_msg":
            yield from self.event(offset, record, item)
        elif item.type == "message":
            yield from self.message(offset, record, item)
        elif item.type in _CALLS:
            yield from self.call(offset, record, item)
        elif item.type in _OUTPUTS:
            output, result = read_output(plain(item.output))
            self.talk.result(item.call_id or "", result, output)
        elif not str(item.type).startswith(_NOISE_ITEMS):
            self.source.unknown(f"response_item/{item.type}")

    def event(self, offset: int, record: Record, item: Item) -> Items:
        if item.type in ("user_message", "agent_message"):
            text = item.message
            if not isinstance(text, str):
                self.source.corrupt()
            elif item.type == "agent_message":
                yield from self.agent([text], "event", offset, record)
            elif item.kind in (None, "plain"):
                yield from self.owner(typed(text), record, is_foreign=names_another(record, item))
            else:
                self.talk.exchange.record_outside(text)
        elif item.type == "thread_name_updated":
            if isinstance(item.thread_name, str):
                self.talk.learn(title=item.thread_name)
        elif item.type == "token_count":
            self.count(item)
        elif item.type in _ENDS or item.type == "error":
            yield from self.ended(item, record.timestamp)
        elif not (
            str(item.type).startswith(_NOISE_EVENTS) or str(item.type).endswith(_STEP_SUFFIXES)
        ):
            self.source.unknown(f"event_msg/{item.type}")

    def completed(self, offset: int, record: Record, item: Any) -> Items:
        kind = (string(item, "type") or "").replace("_", "").lower()
        text = "".join(string(block, "text") or "" for block in content_blocks(mapping(item)))
        if kind == "usermessage":
            is_foreign = names_another(record, item)
            yield from self.owner(typed(text), record, "completed", is_foreign=is_foreign)
        elif kind == "agentmessage":
            yield from self.agent([text], "completed", offset, record)
        elif name := _STEPS.get(kind):  # an agent's script leaves no other record of its steps
            yield from self.step(offset, record, item, name)
        elif kind in ("websearch", "extension"):  # text of web pages
            self.talk.exchange.record_unseen()
        elif kind not in _NOISE_KINDS:
            self.source.unknown(f"item_completed/{mapping(item).get('type')}")

    def step(self, offset: int, record: Record, item: Values, name: str) -> Items:
        call_id = string(item, "id") or ""
        if call_id not in self.source.carry.get("called", ()):
            arguments: Any = item
            if name == "mcp":
                name = f"mcp__{item.get('server')}__{item.get('tool')}"
                arguments = item.get("arguments")
            elif name == "apply_patch":
                files = (f"*** Update File: {path}" for path in new_call(name, item).paths)
                arguments = "\n".join(["*** Begin Patch", *files])
            call = Item(name=name, call_id=call_id, arguments=arguments)
            yield from self.call(offset, record, call)
        result_fields = {
            "output": string(item, "aggregated_output", "aggregatedOutput", "stdout", "stderr"),
            "content": mapping(item, "result").get("content"),
            "metadata": {"exit_code": item.get("exit_code", item.get("exitCode"))},
            "success": item.get("status") != "failed",
        }
        output, result = read_output(result_fields)
        result = "rejected" if item.get("status") == "declined" else result
        self.talk.result(call_id, result, output)

    def ended(self, item: Item, stamp: str | None) -> Items:
        yield from self.settle()
        yield from self.talk.close()
        text = item.message if item.type == "error" else ""
        if item.type == "turn_aborted" and item.reason in (None, "interrupted"):
            yield from self.talk.interrupted(
                self.talk.new_id(Speaker.SYSTEM, stamp, "aborted"), self.time(stamp)
            )
        elif text and isinstance(text, str):
            yield from self.talk.failed(
                self.talk.new_id(Speaker.SYSTEM, stamp, text), text, self.time(stamp)
            )

    def count(self, item: Item) -> None:
        now = _tokens(item, "total_token_usage")
        if not now.total:  # before the first answer
            return
        carry = self.source.carry
        before = Tokens(*carry.get("counted", ()))
        carry["counted"] = list(astuple(now))
        if not carry.get("inherits"):
            # A smaller total means that Codex started to count again.
            self.talk.spend(now - before if now.total >= before.total else now)
        elif self.talk.opened or carry.get("begun"):
            carry["inherits"] = False  # a fork's total can include the parent's tokens
            self.talk.spend(_tokens(item, "last_token_usage"))

    def message(self, offset: int, record: Record, item: Item) -> Items:
        blocks = blocks_of(item.content)
        texts = [block.text for block in blocks if block.text and block.is_text]
        if item.role == "assistant":
            yield from self.agent(texts, "item", offset, record)
        elif item.role not in ("user", "developer", "system"):
            self.source.unknown(f"role {item.role}")
        elif item.role == "user" and not self.source.carry.get("events"):
            notes = mapping(item.internal_chat_message_metadata_passthrough)
            listed = notes.get("content_item_metadata")
            marks = map(mapping, listed if isinstance(listed, list) else ())
            pairs = [  # since Codex 0.169, marks say which blocks Codex wrote
                (block, mark)
                for block, mark in zip(blocks, chain(marks, repeat({})), strict=False)
                if mapping(mark, "provenance").get("type") != "harness"
            ]
            texts = [typed(block.text) for block, _ in pairs if block.text and block.is_text]
            words = "\n\n".join(filter(None, texts))
            if words:
                self.talk.held = self.talk.held or self.talk.place(offset)
                # The user wrote a heartbeat once, and Codex repeats it on a schedule.
                is_foreign = _HEARTBEAT in str(notes.get("content_item_kinds")) or names_another(
                    record, item, *(block for block, _ in pairs), *(mark for _, mark in pairs)
                )
                self.pending.append((words, record.timestamp, is_foreign))

    def owner(
        self, words: str, record: Record, stream: str = "event", *, is_foreign: bool
    ) -> Items:
        self.source.carry["events"] = True
        stamp, was_foreign = next(
            ((stamp, is_foreign) for text, stamp, is_foreign in self.pending if text == words),
            (record.timestamp, False),
        )
        self.pending, self.talk.held = [], None
        if words and not self.is_duplicate(stream, f"> {words}"):
            yield from self.prompt(words, stamp, is_foreign=is_foreign or was_foreign)

    def settle(self) -> Items:
        pending, self.pending, self.talk.held = self.pending, [], None
        for words, stamp, is_foreign in pending:
            yield from self.prompt(words, stamp, is_foreign=is_foreign)

    def prompt(self, words: str, stamp: str | None, *, is_foreign: bool) -> Items:
        if not is_foreign and (replies := replies_in(words)):
            for reply in replies:
                yield from self.form_answer(reply, stamp)
            return
        yield from self.talk.write(
            self.talk.prompter,
            words,
            self.time(stamp),
            Claims(isSynthetic=is_foreign or self.source.carry.get("others")),
            stamp=stamp,
        )

    def agent(self, texts: Sequence[str], stream: str, offset: int, record: Record) -> Items:
        yield from self.settle()
        before = self.talk.place(offset)
        fresh = [text for text in texts if text.strip() and not self.is_duplicate(stream, text)]
        if not fresh:
            return
        text = "\n\n".join(fresh)
        opened = self.talk.opened
        if opened is None or (opened.texts and not opened.is_pending):
            yield from self.open(text, before, record)
        self.talk.add_text(text)

    def is_duplicate(self, stream: str, text: str) -> bool:
        key = turn_hash("", " ".join(text.split()), 0)[:8]
        unpaired: list[list[str]] = self.source.carry.setdefault("unpaired", [])
        for other in unpaired:
            if stream not in other[0] and other[1] == key:
                other[0] += stream
                return True
        self.source.carry["unpaired"] = [*unpaired, [stream, key]][-_MAX_UNPAIRED:]
        return False

    def call(self, offset: int, record: Record, item: Item) -> Items:
        yield from self.settle()
        call_id = item.call_id or item.id or ""
        if self.talk.opened is None:
            yield from self.open(f"call {call_id}", self.talk.place(offset), record)
        arguments = item.arguments or item.input or item.action or ""
        name = item.name or str(item.type).removesuffix("_call")
        call_id = self.talk.add_call(call_id, name, arguments)
        called = self.source.carry.get("called", [])
        self.source.carry["called"] = [*called, call_id][-_MAX_UNPAIRED:]
        if item.type == "web_search_call":
            # The results are not in the rollout, so later statements cannot be compared with them.
            self.talk.exchange.record_unseen()
            self.talk.result(call_id, "error" if item.status == "failed" else "ok")

    def open(self, seed: str, before: Before, record: Record) -> Items:
        stamp, seed = record.timestamp, clean(seed).text
        yield from self.talk.open(None, self.time(stamp), stamp=stamp, seed=seed, before=before)

    def time(self, stamp: str | None) -> datetime | None:
        return parse_time(stamp) if stamp else self.talk.session.started


ADAPTER = Adapter(
    tool=TOOL,
    label="Codex CLI",
    roots=under(
        "CODEX_HOME",
        ".codex",
        "",
        *(f"{folder}/**/rollout-*.jsonl{end}" for folder in _FOLDERS for end in ("", ".zst")),
    ),
    sniff=is_rollout,
    parse=_Reader,
    resume=("codex", "resume", "{id}"),
    versions="0.116–0.121, 0.146, 0.169; older*",
    reads="branch; version; sub-agents; forks; summaries; interruptions; errors",
    leaves_out="injected instructions",
    fields=frozenset(
        {
            "metadata",
            "record_type",
            "session_id",
            "text",
            "ts",
            *Record.__struct_encode_fields__,
            *Item.__struct_encode_fields__,
        }
    ),
)
