"""The results of ``nacre benchmark hooks`` for people."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.bench.hooks import HookFigures
from nacre.bench.machine import Machine
from nacre.bench.report import render_machine
from nacre.cli.paper import Paper, bold, dim


def render_hooks(paper: Paper, figures: Sequence[HookFigures], machine: Machine, limit_ms: float) -> None:
    """A line for each event in each state."""
    paper.line(bold("Hooks"), dim(f"  milliseconds of the whole process; {limit_ms:.0f} are allowed"))
    rows = []
    for one in figures:
        p99 = f"{one.p99:.0f}"
        rows.append(
            [
                one.state, one.event, f"{one.p50:.0f}", p99 if one.p99 < limit_ms else bold(p99),
                f"{one.longest:.0f}", f"{one.cpu_p50:.0f}", f"{one.told}/{one.runs}",
                bold(str(one.failed)) if one.failed else "0",
            ]
        )  # fmt: skip
    headings = ("", "event", "p50", "p99", "longest", "cpu", "told", "failed")
    paper.table([[dim(name) for name in headings], *rows], indent=2)
    render_machine(paper, machine)
