"""``nacre doctor``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.formats import Record, count
from nacre.cli.home.problems import PROBLEMS_SHOWN
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, Span, bold, dim
from nacre.cli.request_options import option
from nacre.cli.run import Run
from nacre.health import checks as checking
from nacre.health import prove

if TYPE_CHECKING:
    from nacre.health.proofs.finding import Proof
    from nacre.values.reports import Check


_MARKS = {"ok": Span("ok", "green"), "warning": Span("warning", "yellow"), "failure": Span("failure", "bold red")}


@command(
    "doctor",
    examples=["nacre doctor", "nacre doctor hosts", "nacre doctor --deep --all --repair"],
)
@click.argument("part", required=False, type=click.Choice(["hosts"]), metavar="[hosts]")
@click.option("--deep", is_flag=True, help="Prove every part against what it was made from.")
@option("doctor-deep", "everything", "--all", help="With --deep: read all transcripts again, not a sample.")
@option("doctor", "repair", help="Mend what can be mended without a loss: permissions, and with --deep more.")
@click.pass_obj
def doctor(run: Run, part: str | None, deep: bool, everything: bool, repair: bool) -> None:
    """Check everything; tell what is remembered and what waits.

    With hosts: prove that your agents' tools can run nacre, by running what their files say.
    Exits with 1 when something is wrong; what is wrong comes with the way out.
    """
    if part:
        _prove_hosts(run, with_options=deep or repair)
        return
    if everything and not deep:
        raise click.UsageError("--all goes with --deep", click.get_current_context())
    if deep:
        _prove(run, everything=everything, with_repair=repair)
    else:
        checks: list[Check] = perform(run, "doctor", repair=repair)
        run.home.problems.clear()  # they are among the checks
        answer_checks(run, checks)


def _prove_hosts(run: Run, *, with_options: bool) -> None:
    if with_options:
        raise click.UsageError("hosts goes without --deep and --repair", click.get_current_context())
    answer_checks(run, perform(run, "doctor-hosts"))


def _prove(run: Run, *, everything: bool, with_repair: bool) -> None:
    repaired = 0
    with progress.shown(run) as notify:
        proofs = prove.prove(run.home, everything=everything, on_progress=notify)
        if with_repair:
            repaired = prove.repair(run.home, proofs)
            proofs = prove.prove(run.home, everything=everything, on_progress=notify) if repaired else proofs
    checks = [*checking.installation(run.home, repair=with_repair), *map(prove.as_check, proofs)]
    run.home.problems.clear()  # they are among the findings
    record = checks_record(checks) | {"findings": _finding_records(proofs), "repaired": repaired}
    answer_checks(run, checks, record, lambda paper: _render_findings(paper, proofs, repaired))


def answer_checks(
    run: Run, checks: Sequence[Check], record: Record | None = None, render_more: Callable[[Paper], None] | None = None
) -> None:
    """Answer with checks, and with more after them; exits with 1 where one of them failed.

    ``record`` is the whole record, by default that of the checks.
    """
    run.exit_code = 1 if any(check.state == "failure" for check in checks) else 0

    def render(paper: Paper) -> None:
        _render_checks(paper, checks)
        if render_more:
            render_more(paper)

    run.answer(record or checks_record(checks), render)


def checks_record(checks: Sequence[Check]) -> Record:
    """What checks found."""
    return {
        "ok": not any(check.state == "failure" for check in checks),
        "checks": [
            {"name": check.name, "state": check.state, "detail": check.detail, "hint": check.hint} for check in checks
        ],
    }


def _finding_records(proofs: Sequence[Proof]) -> list[Record]:
    """Everything that ``doctor --deep`` found."""
    return [
        {
            "area": proof.area,
            "severity": one.severity,
            "sentence": one.sentence,
            "repair": one.repair,
            "repairable": one.mend is not None,
        }
        for proof in proofs
        for one in proof.findings
    ]


def _render_checks(paper: Paper, checks: Sequence[Check]) -> None:
    """One line a check, and what to do where it is not well."""
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        mark = _MARKS.get(check.state, Span(check.state))
        padded = Span(f"{mark.text:<7}".replace(" ", "\u00a0"), mark.style)
        name = f"{check.name:<{width}}".replace(" ", "\u00a0")
        paper.line(padded, "  ", bold(name), "  ", check.detail, hang=width + 11)
        if check.hint and check.state != "ok":
            paper.line(dim(check.hint), indent=width + 11)


def _render_findings(paper: Paper, proofs: Sequence[Proof], repaired: int) -> None:
    """Every finding with its repair, where a line a part did not hold them all."""
    if repaired:
        paper.blank()
        paper.line(bold(f"Repaired {count(repaired, 'finding')}."))
    for proof in proofs:
        if len(proof.findings) < 2:
            continue
        paper.heading(f"{proof.area}: {count(len(proof.findings), 'finding')}")
        for finding in proof.findings[:PROBLEMS_SHOWN]:
            paper.line(finding.sentence, indent=2, hang=2)
            paper.line(dim(finding.repair), indent=4)
        if len(proof.findings) > PROBLEMS_SHOWN:
            paper.line(dim(f"and {len(proof.findings) - PROBLEMS_SHOWN} more: --json lists all"), indent=2)
