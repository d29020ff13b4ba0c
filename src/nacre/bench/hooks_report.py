"""The results of ``nacre benchmark hooks`` for people."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.bench.hooks import LIMIT_MS, START_LIMIT_MS, HookFigures
from nacre.bench.machine import Machine
from nacre.bench.report import render_machine
from nacre.cli.paper import Paper, bold, dim


def render_hooks(paper: Paper, figures: Sequence[HookFigures], machine: Machine) -> None:
    """A line for each event in each state."""
    allowed = f"{LIMIT_MS:,.0f} are allowed, {START_LIMIT_MS:,.0f} at a session's start"
    paper.line(bold("Hooks"), dim(f"  milliseconds of the whole process; {allowed}"))
    rows = []
    for one in figures:
        p99, limit = f"{one.p99:.0f}", START_LIMIT_MS if one.event == "SessionStart" else LIMIT_MS
        rows.append(
            [
                one.state, one.event, f"{one.p50:.0f}", p99 if one.p99 < limit else bold(p99),
                f"{one.longest:.0f}", f"{one.cpu_p50:.0f}", f"{one.told}/{one.runs}",
                bold(str(one.failed)) if one.failed else "0",
            ]
        )  # fmt: skip
    headings = ("", "event", "p50", "p99", "longest", "cpu", "told", "failed")
    paper.table([[dim(name) for name in headings], *rows], indent=2)
    render_machine(paper, machine)
