"""Cline and Roo Code: the messages that the person saw, ``tasks/<id>/ui_messages.json``.

The same task lies in ``api_conversation_history.json``, which counts only where there are no messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from nacre.text.passages import one_line
from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.cline.tasks import (
    CLINE,
    CLINE_ENVIRONMENT,
    MESSAGES,
    folder_in,
    is_roo,
    model_of,
    roots,
    session_of,
)
from nacre.transcripts.cline.tasks import ROO as ROO_CODE
from nacre.transcripts.conversation import Call, Conversation, OpenTurn
from nacre.transcripts.editors import ENVIRONMENT
from nacre.transcripts.objects import decode, parse_time
from nacre.transcripts.tool_calls import outcome
from nacre.transcripts.whole_json import document, mapping, shape_of, string, total
from nacre.values.session import Flag, Session, Speaker, Tokens, Turn

Said = Iterator[Session | Turn]
Message = Mapping[str, Any]

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_OUTPUT = "\nOutput:\n"
_OWNER = frozenset({"task", "user_feedback"})
_ANSWERS = frozenset({"text", "completion_result", "followup", "plan_mode_respond", "act_mode_respond"})
_ASKED = frozenset({"followup", "plan_mode_respond", "act_mode_respond"})
_ANSWERS_IN = ("response", "question", "text")
_CALLS = frozenset({
    "tool", "command", "use_mcp_server", "browser_action_launch", "browser_action", "use_subagents", "subagent",
    "new_task",
})  # fmt: skip
_RECORDED = frozenset({"command", "use_mcp_server"})
"""Calls whose results are messages, too."""

_OUTSIDE_RESULTS = frozenset({"mcp_server_response", "browser_action_result"})
_SUMMARIES = frozenset({"condense_context", "summarize_task", "condense"})
_QUIET = frozenset({
    "reasoning", "api_req_started", "api_req_finished", "api_req_retried", "api_req_retry_delayed", "api_req_deleted",
    "deleted_api_reqs", "task_progress", "checkpoint_created", "checkpoint_saved", "error", "error_retry", "diff_error",
    "shell_integration_warning", "shell_integration_warning_with_suggestion", "mcp_server_request_started",
    "mcp_notification", "load_mcp_documentation", "info", "hook_status", "hook_output_stream", "clineignore_error",
    "rooignore_error", "user_feedback_diff", "subtask_result", "codebase_search_result", "user_edit_todos",
    "command_permission_denied", "generate_explanation", "image", "conditional_rules_applied", "subagent_usage",
    "resume_task", "resume_completed_task", "api_req_failed", "mistake_limit_reached", "report_bug",
    "auto_approval_max_req_reached", "finish_task", "sliding_window_truncation",
})  # fmt: skip


class _Reader:
    def __init__(self, source: Source, tool: str, messages: Sequence[Message]) -> None:
        self.source = source
        self.messages = messages
        self.talk = Conversation(source, session_of(source, tool))
        self.seen: dict[str, int] = {}
        self.last_call = ""
        self.is_unseen = False
        self.chosen: dict[str, str] = {}
        """Options of the last question, each as an answer to it: their words are the agent's."""

    def read(self) -> Said:
        newest = {(message.get("ts"), _kind(message)): number for number, message in enumerate(self.messages)}
        for number, message in enumerate(self.messages):
            if message.get("partial") and newest[message.get("ts"), _kind(message)] > number:
                continue
            yield from self.take(_kind(message) if number or _kind(message) != "text" else "task", message)
        yield from self.talk.end()

    def take(self, kind: str, message: Message) -> Said:
        text = string(message, "text") or ""
        self.learn(kind, message, text)
        if kind in _OWNER:
            answer, self.chosen = self.chosen.get(one_line(text), text), {}
            yield from self.say(message, Speaker.OWNER, answer, Flag.NONE)
        elif kind in _ANSWERS:
            yield from self.answer(message, text)
        elif kind in _CALLS:
            yield from self.call(kind, message, text)
        elif kind in _OUTSIDE_RESULTS or kind == "command_output":
            self.answered(kind, text)
        elif kind in _SUMMARIES:
            summary = string(mapping(message, "contextCondense"), "summary") or text
            yield from self.say(message, Speaker.SYSTEM, summary, Flag.SUMMARY)
        elif kind not in _QUIET:
            self.source.unknown(f"{message.get('type')} {kind}")

    def learn(self, kind: str, message: Message, text: str) -> None:
        model = model_of(message)
        if model and model != self.talk.session.model:
            self.talk.session = replace(self.talk.session, model=model)
        if kind == "api_req_started":
            self.request(_object(text))
        if not self.talk.session.started:
            self.talk.session = replace(self.talk.session, started=parse_time(message.get("ts")))

    def request(self, asked: Mapping[str, Any]) -> None:
        """What went to the model: it names the folder, and what the answer cost is added to it later."""
        fresh = total(asked, "tokensIn", "cacheWrites")
        self.talk.spend(Tokens(fresh, total(asked, "cacheReads"), total(asked, "tokensOut")))
        if not self.talk.session.cwd:
            self.talk.session = replace(self.talk.session, cwd=folder_in(string(asked, "request") or ""))

    def say(self, message: Message, speaker: Speaker, text: str, flags: Flag) -> Said:
        cleaned = self.talk.clean(text)
        if cleaned.text:
            flags |= Flag.INJECTED if cleaned.injected else Flag.NONE
            identity, time = self.identity(message)
            yield from self.talk.say(Turn(identity, speaker, cleaned.text, time, flags=flags), message)
        if self.is_unseen:
            self.talk.exchange.unseen()

    def identity(self, message: Message) -> tuple[str, datetime | None]:
        """The time at which a message began, and what it is: it stays while the message grows."""
        name = f"{message.get('ts')}-{_kind(message)}"
        self.seen[name] = self.seen.get(name, 0) + 1
        again = self.seen[name]
        return name if again == 1 else f"{name}-{again}", parse_time(message.get("ts"))

    def answer(self, message: Message, text: str) -> Said:
        said = (string(_object(text), *_ANSWERS_IN) if _kind(message) in _ASKED else None) or text
        if _kind(message) in _ASKED:
            self.chosen = as_answers(said, _object(text))
        if said.strip():
            yield from self.open(message)
            self.talk.add_text(said)

    def open(self, message: Message) -> Said:
        identity, time = self.identity(message)
        yield from self.talk.open(OpenTurn(identity, time, unique=False))

    def call(self, kind: str, message: Message, text: str) -> Said:
        """A call. That the tool asked first, and then told, is one call."""
        if not text.strip():
            return
        command, _, output = text.partition(_OUTPUT) if kind == "command" else (text, "", "")
        given = _object(text)
        name = string(given, "toolName", "tool", "action") or ("execute_command" if kind == "command" else kind)
        server = string(given, "serverName")
        name = f"mcp__{server}__{name}" if server else name
        if self.talk.opened is None:
            yield from self.open(message)
        made = self.made(f"{message.get('ts')}-{message.get('type')}-{kind}", name, _arguments(kind, given, command))
        if made and made.outside and kind not in _RECORDED:
            self.miss()
        told = string(given, "content") or string(given, "diff") or output
        if output or (message.get("type") == "say" and kind != "command"):
            self.talk.result(self.last_call, outcome(), partial(str, told))

    def made(self, call_id: str, name: str, arguments: dict[str, Any] | str) -> Call | None:
        """The call that is made; the last one, where the tool asked for it before and waits for its result."""
        calls = self.talk.opened.calls if self.talk.opened else {}
        known = calls.get(self.last_call)
        made = calls[self.talk.add_call(call_id, name, arguments)] if self.talk.opened else None
        if known and made and known is not made and known.call == made.call:
            del calls[call_id]
            return known
        self.last_call = call_id
        return made

    def answered(self, kind: str, text: str) -> None:
        self.talk.result(self.last_call, "ok", lambda: text)
        if kind in _OUTSIDE_RESULTS:
            self.talk.exchange.heard(text, outside=True)
        if kind == "browser_action_result":
            self.miss()  # a page's words are in its picture

    def miss(self) -> None:
        """Something came from outside that is not recorded, and stays with the agent."""
        self.is_unseen = True
        self.talk.exchange.unseen()


def as_answers(question: str, asked: Mapping[str, Any]) -> dict[str, str]:
    """The options of a question, in Cline's form or in Roo Code's, on one line, each as an answer to it."""
    return {option: f"{_asking(question)} → {option}" for option in _options(asked)}


def _asking(question: str) -> str:
    asking = one_line(question.strip().rpartition("\n")[2])
    return asking if asking.endswith(("?", "？", ":", "：")) else f"{asking}:"


def _options(asked: Mapping[str, Any]) -> Iterator[str]:
    listed = asked.get("options") or asked.get("suggest") or asked.get("follow_up")
    if isinstance(listed, str):
        listed = decode(_ANY, listed.encode("utf-8", errors="replace"))
    for one in listed if isinstance(listed, list) else ():
        option = one if isinstance(one, str) else string(mapping(one), "answer", "text")
        if option and option.strip():
            yield one_line(option)


def _arguments(kind: str, given: Mapping[str, Any], text: str) -> dict[str, Any] | str:
    if kind == "command":
        return {"command": text.strip()}
    inner = given.get("arguments")
    if isinstance(inner, str | dict):
        return inner
    keys = ("path", "regex", "query", "url", "uri", "command", "filePattern")
    return {key: given[key] for key in keys if given.get(key)} or text


def _kind(message: Message) -> str:
    return str(message.get(str(message.get("type"))) or "no kind")


def _object(text: str) -> Mapping[str, Any]:
    if not text.lstrip().startswith("{"):
        return {}
    return mapping(decode(_ANY, text.encode("utf-8", errors="replace")))


def parse(source: Source, tool: str = CLINE) -> Said:
    """Parse one task; see :class:`~nacre.transcripts.adapter.Adapter`."""
    return read_messages(source, tool, document(source))


def read_messages(source: Source, tool: str, value: Any) -> Said:
    """The session in the messages that the person saw."""
    messages = [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
    return _Reader(source, tool, messages).read()


def _sniff(head: Head) -> bool:
    shape = shape_of(head)
    return shape is not None and shape.is_array and {"ts", "type"} <= shape.keys and bool({"say", "ask"} & shape.keys)


def _sniff_roo(head: Head) -> bool:
    return _sniff(head) and is_roo(head.path)


def _roots(places: Places) -> Sequence[Root]:
    return roots(places, CLINE, MESSAGES)


def _roots_of_roo(places: Places) -> Sequence[Root]:
    return roots(places, ROO_CODE, MESSAGES)


ADAPTER = Adapter(
    tool=CLINE, label="Cline", roots=_roots, sniff=_sniff, parse=parse, whole=True,
    versions="3 (from its description)",
    reads=("what was said", "tool calls with outcome", "times", "folder", "model", "tokens", "summaries"),
    leaves_out=("reasoning", "pictures", "checkpoints", "contents of edits"),
    environment=CLINE_ENVIRONMENT,
)  # fmt: skip
ROO = replace(
    ADAPTER, tool=ROO_CODE, label="Roo Code", roots=_roots_of_roo, sniff=_sniff_roo,
    parse=partial(parse, tool=ROO_CODE), environment=ENVIRONMENT,
)  # fmt: skip
