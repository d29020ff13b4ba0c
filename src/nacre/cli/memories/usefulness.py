"""``nacre usefulness``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import Record, count, day, stamp
from nacre.cli.operations import ask
from nacre.cli.paper import Cell, Paper, bold, dim
from nacre.cli.run import Run
from nacre.usefulness.interval import needed_at
from nacre.usefulness.values import Aspect, Finding

if TYPE_CHECKING:
    from nacre.usefulness.values import Comparison, Usefulness

_LABELS = {
    Aspect.MESSAGES: "your messages in a session",
    Aspect.CORRECTIONS: "of 100 messages, that correct",
    Aspect.REPEATED: "of 100 messages, sent before",
    Aspect.FAILED_CALLS: "of 100 calls, that failed",
}
_NAMES = {
    Aspect.MESSAGES: "messages",
    Aspect.CORRECTIONS: "corrections",
    Aspect.REPEATED: "repetitions",
    Aspect.FAILED_CALLS: "failed calls",
}
_FOUND = {
    Finding.LESS_WITH_MEMORY: "Fewer where nacre tells something",
    Finding.MORE_WITH_MEMORY: "More where nacre tells something",
    Finding.UNCLEAR: "Cannot be said, more and fewer are both possible",
}
_SUGGESTED = 0.2


@command(
    "usefulness", examples=["nacre config set usefulness.hold_out 0.2", "nacre usefulness", "nacre usefulness --json"]
)
@click.pass_obj
def usefulness(run: Run) -> None:
    """Measure whether memory helps: sessions with and without it, compared.

    With usefulness.hold_out a random share of sessions gets no context by itself. The difference between these and the
    others is the effect of memory. Where too few sessions are held out, no result is shown.
    """
    found: Usefulness = ask(run, "usefulness")
    run.answer(_record(found), lambda paper: _render(paper, found))


def _render(paper: Paper, found: Usefulness) -> None:
    if not found.share:
        paper.line("No session is held out: every session gets context from nacre.")
        paper.line(f"nacre config set usefulness.hold_out {_SUGGESTED}", indent=2)
        paper.line(
            f"gives a random session in {round(1 / _SUGGESTED)} no context, and compares these with the others. "
            "Searches of their agents are still answered. "
            f"A result takes {needed_at(_SUGGESTED)} sessions, {needed_at(0.5)} with 0.5."
        )
    if found.since is None:
        if found.share:
            paper.line("The hold-out begins with the next session.")
        return
    if not found.share:
        paper.blank()
    paper.line(
        bold(f"{found.compared:.0%} of sessions held out, from {day(found.since)}: "),
        f"{found.sessions_held_out:,} of them, beside {found.sessions_told:,} others"
        + (f"; {found.left_out:,} not compared" if found.left_out else ""),
        hang=2,
    )
    judged = [one for one in found.comparisons if one.finding is not Finding.TOO_FEW]
    if judged:
        paper.blank()
        paper.table([_row(one) for one in judged], header=("", "told", "held out", "difference, with 95 % confidence"))
        paper.blank()
    for finding, words in _FOUND.items():
        names = [_NAMES[one.aspect] for one in judged if one.finding is finding]
        if names:
            paper.line(bold(f"{words}: "), ", ".join(names), hang=2)
    few = [one for one in found.comparisons if one.finding is Finding.TOO_FEW]
    if few:
        of = f" of {', '.join(_NAMES[one.aspect] for one in few)}" if judged else ""
        missing = max(0, found.needed - found.sessions_told - found.sessions_held_out)
        more = f"; it takes some {count(missing, 'session')} more" if missing else ""
        paper.line(bold("Too few"), f" to say anything{of}{more}.")
    if judged:
        paper.line(dim("One interval in 20 lies beside 0 by chance alone."))


def _row(one: Comparison) -> tuple[Cell, ...]:
    times = 1 if one.aspect is Aspect.MESSAGES else 100
    told, without = (f"{times * (value or 0.0):.1f}" for value in (one.told, one.held_out))
    difference, low, high = (
        f"{times * (value or 0.0):+.1f}".replace("-", "−") for value in (one.difference, one.low, one.high)
    )
    return dim(_LABELS[one.aspect]), told, without, f"{difference}  ({low} to {high})"


def _record(found: Usefulness) -> Record:
    return {
        "share": found.share, "compared": found.compared, "since": stamp(found.since),
        "sessions_told": found.sessions_told, "sessions_held_out": found.sessions_held_out,
        "left_out": found.left_out, "needed": found.needed,
        "comparisons": [
            {
                "aspect": one.aspect.value, "finding": one.finding.value, "sessions_told": one.sessions_told,
                "sessions_held_out": one.sessions_held_out, "told": one.told, "held_out": one.held_out,
                "difference": one.difference, "low": one.low, "high": one.high,
            }
            for one in found.comparisons
        ],
    }  # fmt: skip
