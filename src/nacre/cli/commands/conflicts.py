"""``nacre conflicts`` and ``nacre backfill-claims``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import TEXT, DefaultGroup, command
from nacre.cli.options import TRACE_PROMPTS
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.views import Pair

_CHOICES = {"n": "keep-new", "o": "keep-old", "b": "keep-both", "s": "skip", "q": "quit"}


@click.group(
    "conflicts",
    cls=DefaultGroup,
    examples=[
        "nacre conflicts",
        "nacre conflicts list --json",
        "nacre conflicts resolve 3f9a01c2 keep-new",
    ],
)
@click.pass_context
def conflicts(context: click.Context) -> None:
    """Settle memories that cannot both hold.

    A pair waits here when the rules or a language model found that one memory says otherwise than another, and could
    not tell by themselves which of them holds. On a terminal you are asked about one after another.
    """
    if context.invoked_subcommand is not None:
        return
    run: Run = context.obj
    if run.is_interactive and not run.as_json:
        _ask(run)
    else:
        _list(run)


def _list(run: Run) -> None:
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.conflicts import pair_record
    from nacre.cli.render.conflicts import render_pairs
    from nacre.platform.request import Nothing

    pairs = asked(run, "waiting", Nothing()).conflicts
    run.answer({"conflicts": [pair_record(pair) for pair in pairs]}, lambda paper: render_pairs(paper, pairs))


def _ask(run: Run) -> None:
    """Show one pair after another, and do as the person says."""
    from nacre.cli.render.conflicts import render_pair, render_settled
    from nacre.review.conflicts import pending, resolve
    from nacre.views import Choice

    pairs = pending(run.home)
    settled: list[tuple[Pair, Choice]] = []
    for number, pair in enumerate(pairs, 1):
        paper = run.paper(stderr=True)
        render_pair(paper, pair, f"{number} of {len(pairs)}")
        click.echo(paper.text(), nl=False, err=True)
        chosen = _CHOICES[_prompted()]
        if chosen == "quit":
            break
        if chosen != "skip":
            choice = Choice(chosen)
            settled.append((resolve(run.home, pair, choice), choice))
    run.answer({}, lambda paper: render_settled(paper, settled, len(pairs)))
    _embed_afterwards(run)


def _prompted() -> str:
    question = "Keep the (n)ewer one, the (o)lder one, (b)oth, (s)kip, (q)uit"
    answer: str = click.prompt(
        question, type=click.Choice(list(_CHOICES), case_sensitive=False), default="s", show_choices=False, err=True
    )
    return answer


@conflicts.command("list", examples=["nacre conflicts list", "nacre conflicts list --json"])
@click.pass_obj
def list_conflicts(run: Run) -> None:
    """List the pairs that wait for you, the longest waiting first."""
    _list(run)


@conflicts.command(
    "resolve",
    examples=[
        "nacre conflicts resolve 3f9a01c2 keep-new",
        "nacre conflicts resolve 3f9a01c2 keep-both --reason 'one is for staging'",
    ],
)
@click.argument("reference", metavar="ID", type=TEXT)
@click.argument("choice", type=click.Choice(["keep-new", "keep-old", "keep-both"], case_sensitive=False))
@click.option("--reason", type=TEXT, help="Why; it is kept in the ledger.")
@click.pass_obj
def resolve_conflict(run: Run, reference: str, choice: str, reason: str | None) -> None:
    """Say which of two memories holds.

    ID is that of the pair, or of a memory that is in one pair only. With keep-new the newer memory takes the older
    one's place; with keep-old the newer one is retired; with keep-both neither is doubted again. nacre undo takes it
    back.
    """
    from nacre.cli.records.conflicts import pair_record
    from nacre.cli.render.conflicts import render_settled
    from nacre.review.conflicts import find, resolve
    from nacre.views import Choice

    settled = resolve(run.home, find(run.home, reference), Choice(choice.lower()), reason)
    record = {"resolved": pair_record(settled), "choice": choice.lower(), "reason": reason}
    run.answer(record, lambda paper: render_settled(paper, [(settled, Choice(choice.lower()))], 1))
    _embed_afterwards(run)


@conflicts.command("history", examples=["nacre conflicts history", "nacre conflicts history --json"])
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=20, show_default=True, help="So many at most.")
@click.pass_obj
def history(run: Run, limit: int) -> None:
    """List what was settled, by you and by a model alone, the latest first."""
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.conflicts import settled_record
    from nacre.cli.render.conflicts import render_history
    from nacre.platform.request import Nothing

    found = asked(run, "settled", Nothing())
    shown = found[:limit]
    record = {"settled": [settled_record(one) for one in shown], "more": len(found) - len(shown), "limit": limit}
    run.answer(record, lambda paper: render_history(paper, shown))


@conflicts.command("judge", examples=["nacre conflicts judge", "nacre conflicts judge --json"])
@TRACE_PROMPTS
@click.option("--quiet", "-q", is_flag=True, help="Say nothing when all went well.")
@click.option("--background", is_flag=True, hidden=True, help="Nobody asked for it in so many words.")
@click.pass_obj
def judge(run: Run, quiet: bool, background: bool) -> None:
    """Have the model judge now what waits for it.

    New memories wait in a queue, and are judged in the background where models.background is on.
    """
    from nacre.cli.records.conflicts import judged_record
    from nacre.cli.render.conflicts import render_judged
    from nacre.review.contradictions import judge_waiting

    with progress.shown(run) as notify:
        report = judge_waiting(run.home, background=background, on_progress=notify)
    if not quiet or run.as_json:
        run.answer(judged_record(report), lambda paper: render_judged(paper, report))


@command(
    "backfill-claims",
    examples=[
        "nacre backfill-claims --estimate",
        "nacre backfill-claims --limit 200",
        "nacre backfill-claims --batch-size 25 --json",
    ],
)
@click.option("--limit", "-n", type=click.IntRange(1), help="So many memories at most, the latest first.")
@click.option(
    "--batch-size", type=click.IntRange(1, 500), default=10, show_default=True, help="So many are written together."
)
@TRACE_PROMPTS
@click.option("--estimate", is_flag=True, help="Tell what it would cost, and ask no model.")
@click.pass_obj
def backfill_claims(run: Run, limit: int | None, batch_size: int, estimate: bool) -> None:
    """Have a model tell what older memories claim.

    Memories that are stored later are compared with these claims. An interrupted run goes on with the next one.
    """
    from nacre.cli.records.conflicts import backfill_record, estimate_record
    from nacre.cli.render.conflicts import render_backfill, render_estimate
    from nacre.review import claims

    if estimate:
        expected = claims.estimate(run.home, limit)
        run.answer(estimate_record(expected), lambda paper: render_estimate(paper, expected))
        return
    with progress.shown(run) as notify:
        report = claims.backfill(run.home, limit=limit, batch_size=batch_size, on_progress=notify)
    run.exit_code = 5 if report.note else 0
    run.answer(backfill_record(report), lambda paper: render_backfill(paper, report))


def _embed_afterwards(run: Run) -> None:
    from nacre.indexing.vectors import embed_memories

    run.afterwards.append(lambda: embed_memories(run.home))
