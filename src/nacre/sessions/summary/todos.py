"""Reads: what an agent's own lists have left to do, those that it keeps and those that it writes into its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nacre.extraction.reading.reports import without_fences
from nacre.values.session import Action, ToolCall, Trust, Turn

_BOX = re.compile(r"(?:^|; )\[ \] (.*?)(?=; \[[ x]\] |$)")
_UNTICKED = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[ \][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_TASK = re.compile(r"#(\w+)(?: (\w+))?")
_OVER = frozenset({"completed", "done", "deleted", "cancelled"})


def open_todos(turns: Sequence[Turn]) -> list[tuple[Turn, str]]:
    """What the agent's last list has left, and what is left of tasks that it made one by one."""
    return [*_listed(turns), *_tasks(turns)]


def unticked(text: str) -> list[str]:
    """What a list of boxes in an agent's words has left: ``- [ ] profile``."""
    return _UNTICKED.findall(without_fences(text)) if "[ ]" in text else []


def ticks(call: ToolCall) -> bool:
    """Whether a call ticks something off: in a list, or a task by its number."""
    return call.action is Action.PLAN and ("[x] " in call.input or _is_over(call))


def _listed(turns: Sequence[Turn]) -> Iterator[tuple[Turn, str]]:
    plans = [(turn, call) for turn, call in _trusted_calls(turns) if call.action is Action.PLAN]
    lists = [(turn, call) for turn, call in plans if "[ ] " in call.input or "[x] " in call.input]
    for turn, call in lists[-1:]:
        yield from ((turn, text) for text in _BOX.findall(call.input))


def _tasks(turns: Sequence[Turn]) -> Iterator[tuple[Turn, str]]:
    made: dict[str, tuple[Turn, str]] = {}
    for turn, call in _trusted_calls(turns):
        for name in call.made:
            if name.startswith("task "):
                made[name.removeprefix("task ")] = (turn, call.input)
        match = _TASK.fullmatch(call.input)
        if match and _is_over(call):
            made.pop(match[1], None)
    yield from made.values()


def _is_over(call: ToolCall) -> bool:
    match = _TASK.fullmatch(call.input) if call.name == "TaskUpdate" else None
    return bool(match and match[2] in _OVER)


def _trusted_calls(turns: Sequence[Turn]) -> Iterator[tuple[Turn, ToolCall]]:
    for turn in turns:
        if turn.trust is Trust.TRUSTED:
            yield from ((turn, call) for call in turn.tool_calls)
