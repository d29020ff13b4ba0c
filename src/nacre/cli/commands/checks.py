"""``nacre health`` and ``nacre doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.model.reports import Check


@command("health", examples=["nacre health", "nacre health --json"])
@click.pass_obj
def health(run: Run) -> None:
    """Tell what is remembered and what waits.

    Exits with 1 when something is wrong.
    """
    from nacre.app import checking

    _answer(run, checking.health(run.context))


@command("doctor", examples=["nacre doctor", "nacre doctor --repair"])
@click.option("--repair", is_flag=True, help="Mend what can be mended without a choice: permissions.")
@click.pass_obj
def doctor(run: Run, repair: bool) -> None:
    """Check the installation and the home.

    Exits with 1 when something is wrong; what is wrong comes with the way out.
    """
    from nacre.app import checking

    _answer(run, checking.doctor(run.context, repair=repair))


def _answer(run: Run, checks: Sequence[Check]) -> None:
    from nacre.cli.records import checks_record
    from nacre.cli.render.reports import render_checks

    run.context.problems.clear()  # they are among the checks
    run.exit_code = 1 if any(check.state == "failure" for check in checks) else 0
    run.answer(checks_record(checks), lambda paper: render_checks(paper, checks))
