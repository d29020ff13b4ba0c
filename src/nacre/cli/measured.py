"""Answers of benchmarks: figures, and the machine on which they were taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nacre.cli.paper import Paper, dim
from nacre.cli.run import Run
from nacre.speed import machine as speed_machine

if TYPE_CHECKING:
    from nacre.speed.machine import Machine


def answer_measured(run: Run, record: Mapping[str, Any], render: Callable[[Paper], None]) -> None:
    """Answer with the figures and the machine they were taken on."""
    machine = speed_machine.describe()

    def render_all(paper: Paper) -> None:
        render(paper)
        _render_machine(paper, machine)

    run.answer({**record, "machine": dataclasses.asdict(machine)}, render_all)


def _render_machine(paper: Paper, machine: Machine) -> None:
    """What was measured on."""
    paper.blank()
    paper.line(
        dim(
            f"{machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}, "
            f"nacre {machine.commit or 'installed'}"
        )
    )
