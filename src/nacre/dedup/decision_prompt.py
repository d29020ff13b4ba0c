"""What a language model may decide about a new memory and those nearest to it, and what code holds it to.

ADD, UPDATE, SKIP and SUPERSEDE are agenr's (online dedup from a cosine of .72); AMEND is for what ends in a part. A
model only ever names one of the
memories it was shown, by number; whatever it says, a decision that would lose a number, a name or a denial, or by
which a weaker source would change a stronger one, is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from nacre.dedup.coverage import MOST_LEFT_OUT, adds, exchanges, leaves_out, lost, lost_denial, swaps
from nacre.dedup.judge import LONGEST
from nacre.llm.answers import schema_of
from nacre.platform.days import shown_day
from nacre.platform.ids import content_hash
from nacre.text.passages import normalise, one_line, shorten, visible
from nacre.values.memory import Kind, Memory
from nacre.values.model_calls import Prompt, Task
from nacre.values.session import Speaker

VERSION = "decide-2"
NAME = "decide"

SHORTEST = 20
"""Characters of a merged memory at least (seed facts 1.5), where neither of the two has fewer."""

_SETTLED = frozenset({Kind.DECISION, Kind.PREFERENCE})
"""What a choice may be called when it is written down twice: as a rule from now on, or as what was settled that day."""

MOST_ADDED = 100
"""A merged memory is at most so many characters longer than both together."""

MOST_ENDED = 0.5
"""Of a memory that goes on in a part, so much of its words may go; with more of them it is another one."""

_REASON_CHARACTERS = 160
_OUTPUT_TOKENS = 4_096
_CLAIMS = frozenset({Kind.FACT, Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP})


class Action(StrEnum):
    """What becomes of a new memory."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    SKIP = "SKIP"
    SUPERSEDE = "SUPERSEDE"
    AMEND = "AMEND"


_IN_WORDS = frozenset({Action.UPDATE, Action.AMEND})
"""What is given in words of its own."""


class Choice(msgspec.Struct, forbid_unknown_fields=True):
    """What a model answers: why, what, about which memory (its number), and the words of both where they become one, or
    those that are left of it.
    """

    reason: str
    action: Literal["ADD", "UPDATE", "SKIP", "SUPERSEDE", "AMEND"]
    target: int | None
    merged: str | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a model decided: about which memory (its id, and its :func:`mark` then), in which words, why.

    ``by`` is the model.
    """

    action: Action
    by: str
    reason: str
    target: str | None = None
    mark: str | None = None
    merged: str = ""

    def in_words(self) -> str:
        """The reason and who gave it."""
        return f"{self.reason or self.action.value.lower()} ({self.by})"


def mark(memory: Memory) -> str:
    """What a decision about a memory rests on: it is void when this is another."""
    parts = (
        memory.subject, memory.content, memory.kind, memory.project or "", memory.speaker, memory.trust,
        memory.superseded_by or "", str(memory.retired is not None),
    )  # fmt: skip
    return content_hash("\0".join(parts)).hex()


def prompt_for(memory: Memory, near: Sequence[Memory], *, seconds: float) -> Prompt:
    """What a model is asked: a new memory and those nearest to it, as data that nothing within it can end."""
    stored = "\n".join(_as_data(one, number) for number, one in enumerate(near, start=1))
    return Prompt(
        Task.DEDUP, _system(), f"<stored>\n{stored}\n</stored>\n<new>\n{_as_data(memory)}\n</new>", schema_of(Choice),
        name=NAME, version=VERSION, output_tokens=_OUTPUT_TOKENS, timeout_seconds=seconds,
    )  # fmt: skip


def decide(choice: Choice, memory: Memory, near: Sequence[Memory], by: str) -> Decision:
    """What follows from a model's answer; ADD, with the reason why, where it may not be followed."""
    reason = shorten(visible(choice.reason), _REASON_CHARACTERS)
    if choice.action == Action.ADD:
        return Decision(Action.ADD, by, reason)
    if choice.target is None or not 1 <= choice.target <= len(near):
        return Decision(Action.ADD, by, f"no memory has the number {choice.target}")
    target = near[choice.target - 1]
    action, merged = Action(choice.action), visible(choice.merged or "").strip()
    if "\n" not in target.content + memory.content:
        merged = one_line(merged)
    if action is Action.UPDATE and normalise(merged) == normalise(target.content):
        action = Action.SKIP
    made = Decision(action, by, reason, target.id, mark(target), merged if action in _IN_WORDS else "")
    why = refusal(made, memory, target)
    return Decision(Action.ADD, by, f"not {_NAMES[action]}: {why}") if why else made


def refusal(decision: Decision, memory: Memory, target: Memory) -> str | None:
    """Why a decision about two memories may not be followed; ``None`` where it may."""
    if decision.mark != mark(target) or not target.is_active:
        return "the other memory has changed"
    if not memory.shares_place(target):
        return "it belongs to another project"
    if target.is_vouched and not memory.is_vouched:
        return "it comes from an untrusted source"
    return _REFUSALS[decision.action](decision, memory, target)


def _no_repetition(_: Decision, memory: Memory, target: Memory) -> str | None:
    """A memory is left out only where another one of its kind says all of it, as surely, and by who counts as much."""
    if why := _no_one_memory(memory, target):
        return why
    if missing := lost(memory.content, [target.content]):
        return f"the other does not say {missing}"
    swapped = swaps(memory.content, [target.content])
    return f"the other has {swapped}" if swapped else None


def _no_union(decision: Decision, memory: Memory, target: Memory) -> str | None:
    """Two memories become one only in words that keep what both say and add nothing."""
    if why := _no_one_memory(memory, target) or _no_later(memory, target):
        return why
    if (memory.speaker, memory.is_worded) != (target.speaker, target.is_worded):
        return "the owner and the agent said them"
    merged, both = decision.merged, (target.content, memory.content)
    shortest = min(SHORTEST, *map(len, both))
    if not shortest <= len(merged) <= min(sum(map(len, both)) + MOST_ADDED, LONGEST):
        return "the merged words are too few or too many"
    for one in both:
        if missing := lost(one, [merged]):
            return f"the merged words leave out {missing}"
        if leaves_out(one, merged) > MOST_LEFT_OUT:
            return "the merged words leave out most of one"
    added = adds(merged, both)
    return f"the merged words add {added}" if added else None


def _no_one_memory(memory: Memory, target: Memory) -> str | None:
    if memory.kind is not target.kind and not {memory.kind, target.kind} <= _SETTLED:
        return f"one is a {memory.kind}, the other a {target.kind}"
    if memory.is_vouched is not target.is_vouched or memory.trust is not target.trust:
        return "only one is trusted"
    return "the owner's words would count as the agent's" if _is_weaker(target, memory) else None


def _no_succession(_: Decision, memory: Memory, target: Memory) -> str | None:
    """What ends a memory is said later, about a like thing, and by somebody whose word counts as much."""
    if _is_weaker(memory, target):
        return "the agent's words end nothing that the owner said"
    are_like = memory.kind is target.kind or {memory.kind, target.kind} <= _CLAIMS
    if target.kind is Kind.EVENT or not are_like:
        return f"a {memory.kind} does not end a {target.kind}"
    return _no_later(memory, target)


def _no_amendment(decision: Decision, memory: Memory, target: Memory) -> str | None:
    """What ends a part of a memory may end it, and leaves it in words that add nothing and keep the most of it."""
    if why := _no_succession(decision, memory, target):
        return why
    left = decision.merged
    if not min(SHORTEST, len(target.content)) <= len(left) <= min(len(target.content) + MOST_ADDED, LONGEST):
        return "the words that are left are too few or too many"
    if normalise(left) == normalise(target.content):
        return "nothing of it has changed"
    if leaves_out(target.content, left) > MOST_ENDED:
        return "the words that are left leave out most of it"
    if denial := lost_denial(target.content, left):
        return denial
    if exchanged := exchanges(left, target.content):
        return f"the words that are left have {exchanged}"
    added = adds(left, (target.content, memory.content))
    return f"the words that are left add {added}" if added else None


def _no_later(memory: Memory, target: Memory) -> str | None:
    return "the other was said later" if memory.last_said < target.last_said else None


def _is_weaker(one: Memory, other: Memory) -> bool:
    """Whether the owner said the other, and not the one."""
    return other.speaker is Speaker.OWNER and not one.is_worded


_REFUSALS = {
    Action.ADD: lambda *_: None,
    Action.SKIP: _no_repetition,
    Action.UPDATE: _no_union,
    Action.SUPERSEDE: _no_succession,
    Action.AMEND: _no_amendment,
}
_NAMES = {
    Action.SKIP: "known", Action.UPDATE: "merged", Action.SUPERSEDE: "superseding", Action.AMEND: "amending",
}  # fmt: skip


def _as_data(memory: Memory, number: int | None = None) -> str:
    """A memory on one line of JSON, in which no mark of the prompt can stand."""
    told = {
        "number": number, "kind": memory.kind.value, "said_by": memory.speaker.value,
        "day": shown_day(memory.last_said), "subject": memory.subject, "content": memory.content,
    }  # fmt: skip
    line = msgspec.json.encode({key: value for key, value in told.items() if value is not None})
    return line.decode("utf-8", "replace").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _system() -> str:
    return (files(__package__) / "prompts" / f"{VERSION}.md").read_text(encoding="utf-8")
