"""``nacre health`` and ``nacre doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.paper import Paper
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.values.reports import Check


@command("health", examples=["nacre health", "nacre health --json"])
@click.pass_obj
def health(run: Run) -> None:
    """Tell what is remembered and what waits.

    Exits with 1 when something is wrong.
    """
    from nacre.health import checks as checking

    _answer(run, checking.health(run.home))


@command(
    "doctor",
    examples=["nacre doctor", "nacre doctor hosts", "nacre doctor --deep --all --repair"],
)
@click.argument("part", required=False, type=click.Choice(["hosts"]), metavar="[hosts]")
@click.option("--deep", is_flag=True, help="Prove every part against what it was made from.")
@click.option("--all", "everything", is_flag=True, help="With --deep: read all transcripts again, not a sample.")
@click.option(
    "--repair",
    "with_repair",
    is_flag=True,
    help="Mend what can be mended without a loss: permissions, and with --deep more.",
)
@click.pass_obj
def doctor(run: Run, part: str | None, deep: bool, everything: bool, with_repair: bool) -> None:
    """Check the installation and the home.

    With hosts: prove that your agents' tools can run nacre, by running what their files say.
    Exits with 1 when something is wrong; what is wrong comes with the way out.
    """
    from nacre.health import checks as checking

    if part:
        _prove_hosts(run, with_options=deep or with_repair)
        return
    if everything and not deep:
        raise click.UsageError("--all goes with --deep", click.get_current_context())
    if deep:
        _prove(run, everything=everything, with_repair=with_repair)
    else:
        _answer(run, checking.doctor(run.home, repair=with_repair))


def _prove_hosts(run: Run, *, with_options: bool) -> None:
    from nacre.cli.records.checks import checks_record
    from nacre.cli.render.reports import render_checks
    from nacre.wiring.prove import prove_hosts

    if with_options:
        raise click.UsageError("hosts goes without --deep and --repair", click.get_current_context())
    checks = prove_hosts(run.settings)
    run.exit_code = 1 if any(check.state == "failure" for check in checks) else 0
    run.answer(checks_record(checks), lambda paper: render_checks(paper, checks))


def _prove(run: Run, *, everything: bool, with_repair: bool) -> None:
    from nacre.cli.records.checks import checks_record, finding_records
    from nacre.cli.render.reports import render_checks, render_findings
    from nacre.health import checks as checking
    from nacre.health import prove

    repaired = 0
    with progress.shown(run) as notify:
        proofs = prove.prove(run.home, everything=everything, on_progress=notify)
        if with_repair:
            repaired = prove.repair(run.home, proofs)
            proofs = prove.prove(run.home, everything=everything, on_progress=notify) if repaired else proofs
    checks = [*checking.installation(run.home, repair=with_repair), *map(prove.as_check, proofs)]
    run.home.problems.clear()  # they are among the findings
    run.exit_code = 1 if any(check.state == "failure" for check in checks) else 0

    def render(paper: Paper) -> None:
        render_checks(paper, checks)
        render_findings(paper, proofs, repaired)

    run.answer(checks_record(checks) | {"findings": finding_records(proofs), "repaired": repaired}, render)


def _answer(run: Run, checks: Sequence[Check]) -> None:
    from nacre.cli.records.checks import checks_record
    from nacre.cli.render.reports import render_checks

    run.home.problems.clear()  # they are among the checks
    run.exit_code = 1 if any(check.state == "failure" for check in checks) else 0
    run.answer(checks_record(checks), lambda paper: render_checks(paper, checks))
