"""What is still open while a Claude Code transcript is read: calls without an answer, messages that may grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nacre.transcripts.claude_code.records import Record, Usage
from nacre.transcripts.tool_calls import answered
from nacre.transcripts.trust import is_outside, is_own
from nacre.values.session import Action, Flag, Speaker, ToolCall, Trust

_OF_HOST = frozenset(
    "Agent AskUserQuestion Edit EnterPlanMode ExitPlanMode Glob Grep LS MultiEdit NotebookEdit NotebookRead Read Task "
    "TodoRead TodoWrite Write exit_plan_mode".split()
)
"""Tools that put nothing out where they fail but what the host says of it."""

_SHELL, _MARKED_SINCE = "Bash", 2
"""Of a command that fails versions since this one tell the exit code first; before, only what it put out."""


@dataclass(slots=True)
class OpenCall:
    """A tool call that waits for its result; ``questions`` are those of a form, with their options."""

    call: ToolCall
    record: str | None = None
    questions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_outside(self) -> bool:
        """Whether it brings text from outside."""
        return is_outside(self.call.name, self.call.input) or self.call.action is Action.FETCH

    @property
    def is_own(self) -> bool:
        """Whether it asks nacre."""
        return is_own(self.call.name, self.call.input)

    def fails_in_words_of_host(self, version: str | None) -> bool:
        """Whether its result, where it is an error, begins with what a version of the host says, and nobody else."""
        if self.is_outside:
            return False
        major = (version or "").partition(".")[0]
        is_marked = self.call.name == _SHELL and major.isdecimal() and int(major[:9]) >= _MARKED_SINCE
        return is_marked or self.call.name in _OF_HOST

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
