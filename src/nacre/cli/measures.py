"""``nacre admin usefulness`` and ``nacre admin check``."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.care import usefulness as evaluating
from nacre.care.usefulness import (
    Aspect,
    Comparison,
    Finding,
    Usefulness,
    needed_at,
)
from nacre.cli.command import Cell, Paper, Run, Span, bold, command, dim
from nacre.cli.operations import ask, perform
from nacre.cli.options import count, day, option
from nacre.recall import pins

_LABELS = {
    Aspect.MESSAGES: "your messages in a session",
    Aspect.CORRECTIONS: "corrections per 100 messages",
    Aspect.REPEATED: "repetitions per 100 messages",
    Aspect.FAILED_CALLS: "failures per 100 tool calls",
}
_NAMES = {
    Aspect.MESSAGES: "messages",
    Aspect.CORRECTIONS: "corrections",
    Aspect.REPEATED: "repetitions",
    Aspect.FAILED_CALLS: "failed calls",
}
_FOUND = {
    Finding.LESS_WITH_MEMORY: "Fewer with memory",
    Finding.MORE_WITH_MEMORY: "More with memory",
    Finding.UNCLEAR: "Unclear",
}
_SUGGESTED = 0.2


@command(
    "usefulness",
    examples=[
        "nacre config set usefulness.hold_out 0.2",
        "nacre admin usefulness",
        "nacre admin usefulness --json",
    ],
)
def usefulness(run: Run) -> None:
    """Compare sessions with and without memory.

    With usefulness.hold_out, a random share of sessions gets no automatic context. The difference from other sessions
    is the effect of memory. If too few sessions are held out, no result is shown.
    """
    run.present(ask(run, evaluating.Usefulness, "usefulness"), _render)


def _render(paper: Paper, found: Usefulness) -> None:
    if not found.share:
        paper.line("Every session gets context from nacre.")
        paper.line(f"nacre config set usefulness.hold_out {_SUGGESTED}", indent=2)
        paper.line(
            f"leaves one session in {round(1 / _SUGGESTED)}, chosen at random, without context. "
            f"About {needed_at(_SUGGESTED)} sessions are needed for a result."
        )
    if found.since is None:
        if found.share:
            paper.line("The next session is the first that can be held out.")
        return
    paper.line(
        bold(f"{found.compared:.0%} of sessions held out since {day(found.since)}: "),
        f"{found.sessions_held_out:,} held out, {found.sessions_told:,} others"
        + (f"; {found.left_out:,} not compared" if found.left_out else ""),
        hang=2,
    )
    judged = [
        comparison for comparison in found.comparisons if comparison.finding is not Finding.TOO_FEW
    ]
    if judged:
        paper.blank()
        paper.table(
            [_row(item) for item in judged],
            header=("", "memory", "held out", "difference, with 95 % confidence"),
        )
        paper.blank()
    for finding, words in _FOUND.items():
        names = [_NAMES[item.aspect] for item in judged if item.finding is finding]
        if names:
            paper.line(bold(f"{words}: "), ", ".join(names), hang=2)
    few = [comparison for comparison in found.comparisons if comparison.finding is Finding.TOO_FEW]
    if few:
        of = f" for {', '.join(_NAMES[item.aspect] for item in few)}" if judged else ""
        missing = max(0, found.needed - found.sessions_told - found.sessions_held_out)
        more = f": {count(missing, 'session')} more needed" if missing else ""
        paper.line(bold("Too few sessions"), f"{of}{more}.")


def _row(comparison: Comparison) -> tuple[Cell, ...]:
    times = 1 if comparison.aspect is Aspect.MESSAGES else 100
    told, without = (
        f"{times * (value or 0.0):.1f}" for value in (comparison.told, comparison.held_out)
    )
    difference, low, high = (
        f"{times * (value or 0.0):+.1f}".replace("-", "−")
        for value in (comparison.difference, comparison.low, comparison.high)
    )
    return dim(_LABELS[comparison.aspect]), told, without, f"{difference}  ({low} to {high})"


# ----------------------------------------------------------------------------
# ``nacre admin check``.


@command(
    "check",
    examples=["nacre admin check", 'nacre admin check --remove "which database do we use?"'],
)
@option("pin", "question", "--remove", required=False, help="Unpin the answer to this question.")
def check(run: Run, question: str | None) -> None:
    """Check the pinned answers.

    nacre recall QUESTION --pin pins an answer. nacre checks all pins after reading sessions, after a dream and after a
    change of the embedding model. A dream that would break one is not applied. You can edit pinned.txt in the vault.
    The command exits with 1 if a pinned answer is neither the first answer nor a sure one.
    """
    if question:
        removed = perform(run, pins.pin, question=question, remove=True)
        run.answer(removed, Paper.line, "Removed: ", bold(removed.question))
        return
    checks = ask(run, list[pins.PinCheck], "check")
    run.exit_code = 0 if all(pin.holds for pin in checks) else 1
    run.answer({"pins": checks}, _render_pins, checks)


def _render_pins(paper: Paper, checks: Sequence[pins.PinCheck]) -> None:
    for pin in checks:
        mark = Span("holds  ", "green") if pin.holds else Span("broken ", "yellow")
        paper.line(mark, bold(pin.question), f"  {pin.answer}", hang=7)
        if not pin.holds:
            paper.note(f"now: {pin.first or 'no answer'}", indent=7)
    if not checks:
        paper.line('No answer is pinned: nacre recall "…" --pin pins the first answer.')
