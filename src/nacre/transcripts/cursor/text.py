"""Cursor's agent transcripts of old: ``agent-transcripts/<id>.txt``, with headings for who speaks.

Nothing keeps a tool's output from holding such headings. So words under the owner's are not trusted where they follow
on a result, nor anywhere after text from outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nacre.transcripts.adapter import Adapter, Head, Places, Root, Source
from nacre.transcripts.conversation import Conversation, OpenTurn
from nacre.transcripts.cursor.prompts import ENVIRONMENT, TOOL, read_prompt, roots, session_of
from nacre.transcripts.tool_calls import outcome
from nacre.transcripts.whole_json import modified
from nacre.values.session import Flag, Session, SessionKind, Speaker, Trust, Turn

Said = Iterator[Session | Turn]

_MARK = re.compile(r"^(user|assistant):[ \t]*$|^\[(Thinking|Tool call|Tool result)\][ \t]*(.*)$", re.MULTILINE)
_START = re.compile(r"\A\ufeff?\s*user:[ \t]*\n")
_ARGUMENT = re.compile(r"^[ \t]*([A-Za-z_]+):[ \t]*(.+)$", re.MULTILINE)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.talk = Conversation(source, session_of(source))
        self.time = modified(source)
        self.speaker = "user"
        self.call = ""
        self.after_result = False
        self.after_outside = False
        self.is_unseen = False

    def read(self) -> Said:
        text = self.source.text().replace("\r\n", "\n")
        marks = list(_MARK.finditer(text))
        for mark, end in zip(marks, [*(one.start() for one in marks[1:]), len(text)], strict=False):
            body = text[mark.end() : end].strip()
            if mark[1]:
                yield from self.turn(mark[1], body)
            elif self.speaker == "assistant":
                yield from self.aside(mark[2], mark[3].strip(), body)
            else:
                self.talk.exchange.heard(body)
        yield from self.talk.end()

    def turn(self, speaker: str, body: str) -> Said:
        self.speaker = speaker
        is_sure = not (self.after_result or self.after_outside)
        self.after_result = False
        if speaker == "assistant":
            self.miss()
            yield from self.open(body)
            self.talk.add_text(body)
            return
        cleaned = self.talk.clean(body)
        prompt = read_prompt(cleaned.text)
        if prompt.context:
            self.talk.exchange.heard(prompt.context)
        if prompt.words:
            is_child = self.talk.session.kind is SessionKind.SUBAGENT
            speaking = Speaker.AGENT if is_child else Speaker.OWNER
            flags = Flag.INJECTED if cleaned.injected else Flag.NONE
            identity = self.talk.new_id(speaking, None, prompt.words)
            time = prompt.time or self.time
            trust = Trust.TRUSTED if is_sure and prompt.is_sure else Trust.UNTRUSTED
            yield from self.talk.say(Turn(identity, speaking, prompt.words, time, flags=flags, trust=trust))

    def aside(self, kind: str, rest: str, body: str) -> Said:
        if kind == "Thinking":
            return
        if kind == "Tool result":
            output = f"{rest}\n{body}"
            called = self.talk.opened.calls.get(self.call) if self.talk.opened else None
            self.after_result, self.after_outside = True, self.after_outside or called is None or called.outside
            self.talk.result(self.call, outcome(), lambda: output)
            return
        if self.talk.opened is None:
            yield from self.open(rest)
        name, _, more = rest.partition(" ")
        given = {one[1]: one[2] for one in _ARGUMENT.finditer(f"{more}\n{body}")}
        self.call = self.talk.add_call("", name or "tool", given or body)

    def miss(self) -> None:
        calls = self.talk.opened.calls.values() if self.talk.opened else ()
        if any(call.call.outcome is None and (call.outside or call.own) for call in calls):
            self.is_unseen = True
        if self.is_unseen:
            self.talk.exchange.unseen()

    def open(self, seed: str) -> Said:
        identity = self.talk.new_id(Speaker.AGENT, None, seed)
        yield from self.talk.open(OpenTurn(identity, self.time, unique=False))


def parse(source: Source) -> Said:
    """Parse one transcript; see :class:`~nacre.transcripts.adapter.Adapter`."""
    return _Reader(source).read()


def _sniff(head: Head) -> bool:
    return bool(_START.match(head.text.replace("\r\n", "\n"))) and b"\x00" not in head.data


def _roots(places: Places) -> Sequence[Root]:
    return roots(places, ".txt")


ADAPTER = Adapter(
    tool=TOOL, label="Cursor", roots=_roots, sniff=_sniff, parse=parse, whole=True,
    versions="agent transcripts of 2025 (from their description)",
    reads=("what was said", "tool calls"),
    leaves_out=("thinking", "times and models (not recorded)"),
    environment=ENVIRONMENT,
)  # fmt: skip
