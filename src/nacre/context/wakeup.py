"""The wake-up bundle: a session's start in sections that each have a budget of their own (seed facts 2.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nacre.context.build import tell_start
from nacre.context.draft import OVER_BUDGET, Draft
from nacre.context.frame import frame_tokens, framed
from nacre.context.requests import WakeupRequest
from nacre.errors import InvalidInput
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.memories.scan import catch_up
from nacre.text.passages import count_tokens
from nacre.values.context import ContextItem, ContextRequest, Part, SessionState

DEFAULT_PARTS = (
    Part.IDENTITY, Part.PROFILE, Part.ACTIVE, Part.PREFERENCES, Part.LESSONS, Part.PREVIOUS, Part.CORE, Part.RECENT,
    Part.KNOWN,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WakeupSection:
    """One section: what it tells, of ``tokens``, and the ``budget_tokens`` it had, with what those before it left.

    ``truncated`` says that more was there than fitted.
    """

    part: Part
    items: tuple[ContextItem, ...]
    budget_tokens: int
    tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Wakeup:
    """The bundle in its frame, and its sections, empty ones among them."""

    text: str
    sections: tuple[WakeupSection, ...]
    project: str | None
    budget_tokens: int

    @property
    def tokens(self) -> int:
        """Of the whole text."""
        return count_tokens(self.text)


def wakeup(home: Home, asked: WakeupRequest) -> Wakeup:
    """The sections asked for, in their order. What one leaves of its budget flows on to the next.

    A section without a budget of its own gets an equal share of what the others leave. Nothing is told twice.
    Raises InvalidInput where budgets name sections that are not asked for, or exceed the whole.
    """
    parts = asked.parts or (*DEFAULT_PARTS, *((Part.RELEVANT,) if asked.prompt.strip() else ()))
    budgets = _budgets(parts, asked.part_budgets, asked.budget_tokens - frame_tokens())
    catch_up(home)
    request = ContextRequest(prompt=asked.prompt, folder=asked.folder, parts=parts)
    project = project_of_folder(home, Path(asked.folder)) if asked.folder else None
    draft = Draft(home, request, SessionState(), project, sum(budgets.values()))
    sections, left = [], 0
    for part, own in budgets.items():
        section = _section(draft, part, own + left)
        sections.append(section)
        left = section.budget_tokens - section.tokens
    text = framed([(one.part, [item.text for item in one.items]) for one in sections])
    return Wakeup(text, tuple(sections), project, asked.budget_tokens)


def _section(draft: Draft, part: Part, budget_tokens: int) -> WakeupSection:
    draft.request = replace(draft.request, parts=(part,))
    draft.left_tokens = draft.budget_tokens = budget_tokens
    told, left_out = len(draft.items), len(draft.left_out)
    tell_start(draft)
    truncated = any(one.part is part and one.why == OVER_BUDGET for one in draft.left_out[left_out:])
    return WakeupSection(part, tuple(draft.items[told:]), budget_tokens, budget_tokens - draft.left_tokens, truncated)


def _budgets(parts: Sequence[Part], named: Mapping[Part, int], whole: int) -> dict[Part, int]:
    """The budget of each section: its own, else an equal share of what those that are named leave."""
    if unknown := sorted(named.keys() - set(parts)):
        raise InvalidInput(f"no section {unknown[0]} is asked for", hint=f"sections: {', '.join(parts)}")
    rest = whole - sum(named.values())
    if rest < 0:
        raise InvalidInput(
            f"the sections' budgets exceed the whole by {-rest} tokens",
            hint=f"the frame takes {frame_tokens()} tokens; {whole} are left for sections",
        )
    shared = len(set(parts) - named.keys())
    return {part: named.get(part, rest // max(1, shared)) for part in dict.fromkeys(parts)}
