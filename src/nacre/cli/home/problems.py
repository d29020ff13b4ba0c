"""Files that could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.formats import Record, count
from nacre.cli.paper import Paper, Span, dim

if TYPE_CHECKING:
    from nacre.values.reports import Problem

PROBLEMS_SHOWN = 20


def problem_records(problems: Sequence[Problem]) -> list[Record]:
    """What is wrong."""
    return [{"path": one.path, "message": one.message, "hint": one.hint} for one in problems]


def render_problems(paper: Paper, problems: Sequence[Problem], *, rest: str = "everything else was read") -> None:
    """What could not be read, and the way out."""
    if not problems:
        return
    paper.heading(f"{count(len(problems), 'problem')}; {rest}")
    for problem in problems[:PROBLEMS_SHOWN]:
        hint = f" ({problem.hint})" if problem.hint else ""
        paper.line(Span(problem.path, "yellow"), f": {problem.message}{hint}", indent=2, hang=2)
    if len(problems) > PROBLEMS_SHOWN:
        paper.line(dim(f"and {len(problems) - PROBLEMS_SHOWN} more: --json lists all"), indent=2)
