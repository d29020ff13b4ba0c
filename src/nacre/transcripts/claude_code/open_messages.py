"""What is still open while a Claude Code transcript is read: calls without an answer, messages that may grow."""

from __future__ import annotations

from dataclasses import dataclass, field

from nacre.transcripts.claude_code.records import Record, Usage
from nacre.transcripts.tool_calls import answered
from nacre.transcripts.trust import is_outside, is_own
from nacre.values.session import Action, Flag, Speaker, ToolCall, Trust


@dataclass(slots=True)
class OpenCall:
    """A tool call that waits for its result."""

    call: ToolCall

    @property
    def is_outside(self) -> bool:
        """Whether it brings text from outside."""
        return is_outside(self.call.name, self.call.input) or self.call.action is Action.FETCH

    @property
    def is_own(self) -> bool:
        """Whether it asks nacre."""
        return is_own(self.call.name, self.call.input)

    def answer(self, result: str, output: str) -> None:
        """How it came out."""
        self.call = answered(self.call, result, lambda: output)


@dataclass(slots=True)
class OpenMessage:
    """An agent message that may still grow."""

    offset: int
    before: bytes
    mark: tuple[int, ...]
    key: str
    record: Record
    texts: list[str] = field(default_factory=list)
    calls: list[OpenCall] = field(default_factory=list)
    usage: Usage | None = None
    trust: Trust = Trust.TRUSTED

    def add(self, call: OpenCall, trust: Trust) -> None:
        """One more call; what it has nacre keep is the message's word, too."""
        self.calls.append(call)
        if trust is Trust.UNTRUSTED:
            self.trust = trust


@dataclass(frozen=True, slots=True)
class First:
    """What the owner said first, or what was handed over: it is told once it is known which session answers."""

    record: Record
    speaker: Speaker
    text: str
    flags: Flag
    trust: Trust
