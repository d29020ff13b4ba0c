"""Cline and Roo Code: what was sent to the model, ``tasks/<id>/api_conversation_history.json``.

Where the messages that the person saw are beside it, those are told instead: one task is one session. In it, the
owner's words stand between tags that the tool puts around them; all else of a user message was written by the tool, or
came from one.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from nacre.text.passages import one_line
from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.cline.messages import as_answers, read_messages
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
from nacre.transcripts.conversation import Conversation, OpenTurn
from nacre.transcripts.editors import ENVIRONMENT
from nacre.transcripts.file_source import MAX_WHOLE_BYTES
from nacre.transcripts.objects import parse_time
from nacre.transcripts.tool_calls import outcome
from nacre.transcripts.trust import is_outside, is_own
from nacre.transcripts.whole_json import beside, document, mapping, objects, shape_of, string, torn
from nacre.values.session import Flag, Session, Speaker, Trust, Turn

Said = Iterator[Session | Turn]
Values = Mapping[str, Any]

NAME = "api_conversation_history.json"

_TAGS = "task|feedback|answer|user_message"
_SAID = re.compile(rf"\A\s*<({_TAGS})>(.*)</\1>\s*\Z", re.DOTALL)
_DENIED = re.compile(
    r"\A\s*The user (?:denied|provided|has provided)[^\n]{0,200}\n+<(?:feedback|user_message)>(.*?)</", re.DOTALL
)
_HEADER = re.compile(r"\A\s*\[([\w-]+)(?: for [^\n]*)?\] Result:[ \t]*", re.DOTALL)
_DETAILS = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_HARNESS = re.compile(r"\A\s*(?:# (?:TODO LIST|task_progress)|\[(?:TASK RESUMPTION|ERROR)|\(This is an automated)")
_CALL = re.compile(r"<([a-z]+(?:_[a-z]+)+)>\s*(<[a-z_]+>.*?)</\1>", re.DOTALL)
_ARGUMENT = re.compile(r"<([a-z_]+)>(.*?)</\1>", re.DOTALL)
_THINKING = re.compile(r"<thinking>.*?(?:</thinking>|\Z)", re.DOTALL)
_SPOKEN_CALLS = ("attempt_completion", "ask_followup_question", "plan_mode_respond", "act_mode_respond")


class _Reader:
    def __init__(self, source: Source, tool: str, messages: Sequence[Values]) -> None:
        self.source = source
        self.messages = messages
        self.talk = Conversation(source, session_of(source, tool))
        self.answering = ""
        self.chosen: dict[str, str] = {}
        """Options of the last question, each as an answer to it: their words are the agent's."""

    def read(self) -> Said:
        for number, message in enumerate(self.messages):
            role = message.get("role")
            if role == "user":
                yield from self.user(number, message)
            elif role == "assistant":
                yield from self.agent(number, message)
            else:
                self.source.unknown(f"role {role}")
        yield from self.talk.end()

    def user(self, number: int, message: Values) -> Said:
        is_output, self.answering = False, ""
        for part, block in enumerate(_blocks(message)):
            kind = block.get("type")
            if kind == "tool_result":
                yield from self.result(f"{number}.{part}", message, block)
            elif kind == "text":
                text = str(block.get("text") or "")
                self.learn(text)
                text = _DETAILS.sub("", text)
                is_output = yield from self.text(f"{number}.{part}", message, text, is_output=is_output)
            elif kind not in ("image", "document"):
                self.source.unknown(f"block {kind}")

    def text(self, place: str, message: Values, text: str, *, is_output: bool) -> Generator[Session | Turn, None, bool]:
        """One text of a user message; gives whether what follows in it may be what a tool said.

        From there on a tag proves nothing: a page or a file may hold it. Such words are kept, and not trusted.
        """
        header = _HEADER.match(text)
        said = _SAID.match(text)
        if header:
            self.answering = self.waiting(header[1])
        if said:
            answer, self.chosen = self.chosen.get(one_line(said[2].strip()), said[2]), {}
            yield from self.say(place, message, answer, Trust.UNTRUSTED if is_output else Trust.TRUSTED)
        elif header or is_output:
            output = text[header.end() :] if header else text
            self.hear(header[1] if header else "", output)
            yield from self.denied(place, message, output)
        elif text.strip() and not _HARNESS.match(text):
            self.talk.exchange.heard(text)
        return is_output or bool(header)

    def denied(self, place: str, message: Values, text: str) -> Said:
        """What the owner said when declining a call stands where its result would, as any result may."""
        said = _DENIED.match(text)
        if said:
            yield from self.say(place, message, said[1], Trust.UNTRUSTED)

    def waiting(self, name: str) -> str:
        """The call that a result without an id belongs to."""
        calls = self.talk.opened.calls if self.talk.opened else {}
        return next((key for key, call in calls.items() if call.call.outcome is None and call.call.name == name), "")

    def hear(self, name: str, output: str) -> None:
        if not self.answering:
            self.talk.exchange.heard(output, outside=is_outside(name, ""), own=is_own(name, ""))
            return
        result = "rejected" if output.lstrip().startswith("The user denied") else outcome(output)
        self.talk.result(self.answering, result, lambda: output)

    def result(self, place: str, message: Values, block: Values) -> Said:
        output = _DETAILS.sub("", _words(block))
        is_error = block.get("is_error") is True
        result = "rejected" if output.startswith("The user denied") else outcome(output, is_error=is_error)
        self.talk.result(str(block.get("tool_use_id")), result, lambda: output)
        yield from self.denied(place, message, output)

    def learn(self, text: str) -> None:
        if not self.talk.session.cwd and (told := folder_in(text)):
            self.talk.session = replace(self.talk.session, cwd=told)

    def say(self, place: str, message: Values, text: str, trust: Trust) -> Said:
        cleaned = self.talk.clean(text)
        if cleaned.text:
            flags = Flag.INJECTED if cleaned.injected else Flag.NONE
            time = parse_time(message.get("ts")) or self.talk.session.started
            turn = Turn(f"{place}-user", Speaker.OWNER, cleaned.text, time, flags=flags, trust=trust)
            yield from self.talk.say(turn, message)

    def agent(self, number: int, message: Values) -> Said:
        model = model_of(message)
        if model:
            self.talk.session = replace(self.talk.session, model=model)
        time = parse_time(message.get("ts")) or self.talk.session.started
        yield from self.talk.open(OpenTurn(f"{number}-assistant", time, unique=False))
        for block in _blocks(message):
            if block.get("type") == "text":
                self.words(str(block.get("text") or ""))
            elif block.get("type") == "tool_use":
                self.call(str(block.get("id") or ""), str(block.get("name")), block.get("input"))
            elif block.get("type") not in ("thinking", "redacted_thinking", "reasoning"):
                self.source.unknown(f"block {block.get('type')}")

    def words(self, text: str) -> None:
        """Words, and in old versions calls between tags."""
        text = _THINKING.sub("", text)
        self.talk.add_text(_CALL.sub("", text))
        for call in _CALL.finditer(text):
            self.call("", call[1], {one[1]: one[2].strip() for one in _ARGUMENT.finditer(call[2])})

    def call(self, identity: str, name: str, arguments: Any) -> None:
        if name in _SPOKEN_CALLS:
            told = string(arguments, "result", "question", "response") or ""
            self.talk.add_text(told)
            self.chosen = as_answers(told, mapping(arguments))
        else:
            self.talk.add_call(identity, name, arguments if isinstance(arguments, str | dict) else "")


def _blocks(message: Values) -> list[Values]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(message, "content")


def _words(block: Values) -> str:
    return "\n".join(str(one.get("text") or "") for one in _blocks(block) if one.get("type") == "text")


def parse(source: Source, tool: str = CLINE) -> Said:
    """Parse one history; see :class:`~nacre.transcripts.adapter.Adapter`."""
    shown = next((path for name in MESSAGES if (path := source.path.with_name(name)).is_file()), None)
    if shown:
        value = beside(shown, MAX_WHOLE_BYTES)
        if value is None:
            raise torn(shown)
        return read_messages(source, tool, value)
    value = document(source)
    messages = [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
    return _Reader(source, tool, messages).read()


def _sniff(head: Head) -> bool:
    shape = shape_of(head)
    if shape is None or not shape.is_array or not {"role", "content"} <= shape.keys:
        return False
    return head.path.name == NAME or any(mark in head.text for mark in ("<task>", "<environment_details>"))


def _sniff_roo(head: Head) -> bool:
    return _sniff(head) and is_roo(head.path)


def _roots(places: Places) -> Sequence[Root]:
    return roots(places, CLINE, (NAME,))


def _roots_of_roo(places: Places) -> Sequence[Root]:
    return roots(places, ROO_CODE, (NAME,))


ADAPTER = Adapter(
    tool=CLINE, label="Cline", roots=_roots, sniff=_sniff, parse=parse, whole=True,
    versions="3 (from its description)",
    reads=("the model's history, where the messages are missing",),
    leaves_out=("environment details", "reminders", "thinking", "pictures", "the layout of version 4"),
    environment=CLINE_ENVIRONMENT,
)  # fmt: skip
ROO = replace(
    ADAPTER, tool=ROO_CODE, label="Roo Code", roots=_roots_of_roo, sniff=_sniff_roo,
    parse=partial(parse, tool=ROO_CODE), environment=ENVIRONMENT,
)  # fmt: skip
