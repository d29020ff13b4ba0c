"""``nacre conflicts`` and ``nacre backfill-claims``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from nacre import views
from nacre.cli import progress
from nacre.cli.command import DefaultGroup, command
from nacre.cli.formats import (
    SHORT_ID,
    Record,
    amount,
    count,
    float_or_none,
    kind_span,
    minute,
    short_id,
    speaker_name,
    stamp,
    when,
)
from nacre.cli.memories.memory import memory_record, origin_of
from nacre.cli.operations import ask, perform
from nacre.cli.options import TRACE_PROMPTS
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.platform.lazy import Module
from nacre.text import passages
from nacre.values import session

if TYPE_CHECKING:
    from nacre.review import conflicts as review_conflicts
    from nacre.review.claims import Backfill, Estimate
    from nacre.review.contradictions import JudgeReport
    from nacre.values.memory import Memory
    from nacre.views import Choice, Pair, Settled
else:
    review_conflicts = Module("nacre.review.conflicts")


_CHOICES = {"n": "keep-new", "o": "keep-old", "b": "keep-both", "s": "skip", "q": "quit"}
_CHARACTERS = 400
_DONE = {
    "keep-new": "the newer one holds",
    "keep-old": "the older one holds; the newer one is retired",
    "keep-both": "both hold",
}


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
    pairs = ask(run, "waiting").conflicts
    run.answer({"conflicts": [_pair_record(pair) for pair in pairs]}, lambda paper: _render_pairs(paper, pairs))


def _ask(run: Run) -> None:
    """Show one pair after another, and do as the person says."""
    pairs = review_conflicts.pending(run.home)
    settled: list[tuple[Pair, Choice]] = []
    for number, pair in enumerate(pairs, 1):
        run.show(partial(_render_pair, pair=pair, title=f"{number} of {len(pairs)}"))
        chosen = _CHOICES[_prompted()]
        if chosen == "quit":
            break
        if chosen != "skip":
            choice = views.Choice(chosen)
            settled.append((review_conflicts.resolve(run.home, pair, choice), choice))
    run.answer({}, lambda paper: _render_settled(paper, settled, len(pairs)))
    run.embed_afterwards()


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
@argument("conflicts-resolve", "reference", metavar="ID")
@argument("conflicts-resolve", "choice")
@option("conflicts-resolve", "reason")
@click.pass_obj
def resolve_conflict(run: Run, reference: str, choice: str, reason: str | None) -> None:
    """Say which of two memories holds.

    ID is that of the pair, or of a memory that is in one pair only. With keep-new the newer memory takes the older
    one's place; with keep-old the newer one is retired; with keep-both neither is doubted again. nacre undo takes it
    back.
    """
    settled: Pair = perform(run, "conflicts-resolve", reference=reference, choice=choice, reason=reason)
    record = {"resolved": _pair_record(settled), "choice": choice, "reason": reason}
    run.answer(record, lambda paper: _render_settled(paper, [(settled, views.Choice(choice))], 1))
    run.embed_afterwards()


@conflicts.command("history", examples=["nacre conflicts history", "nacre conflicts history --json"])
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=20, show_default=True, help="So many at most.")
@click.pass_obj
def history(run: Run, limit: int) -> None:
    """List what was settled, by you and by a model alone, the latest first."""
    found = ask(run, "settled")
    shown = found[:limit]
    record = {"settled": [_settled_record(one) for one in shown], "more": len(found) - len(shown), "limit": limit}
    run.answer(record, lambda paper: _render_history(paper, shown))


@conflicts.command("judge", examples=["nacre conflicts judge", "nacre conflicts judge --json"])
@TRACE_PROMPTS
@click.option("--quiet", "-q", is_flag=True, help="Say nothing when all went well.")
@click.option("--background", is_flag=True, hidden=True, help="Nobody asked for it in so many words.")
@click.pass_obj
def judge(run: Run, quiet: bool, background: bool) -> None:
    """Have the model judge now what waits for it.

    New memories wait in a queue, and are judged in the background where models.background is on.
    """
    with progress.shown(run) as notify:
        report: JudgeReport = perform(run, "conflicts-judge", notify, background=background)
    if not quiet or run.as_json:
        run.answer(dataclasses.asdict(report), lambda paper: _render_judged(paper, report))


@command(
    "backfill-claims",
    examples=[
        "nacre backfill-claims --estimate",
        "nacre backfill-claims --limit 200",
        "nacre backfill-claims --batch-size 25 --json",
    ],
)
@option("claims-backfill", "limit", "--limit", "-n", help="Memories at most, the latest first.")
@option("claims-backfill", "batch_size")
@TRACE_PROMPTS
@click.option("--estimate", is_flag=True, help="Tell what it would cost, and ask no model.")
@click.pass_obj
def backfill_claims(run: Run, limit: int | None, batch_size: int, estimate: bool) -> None:
    """Have a model tell what older memories claim.

    Memories that are stored later are compared with these claims. An interrupted run goes on with the next one.
    """
    if estimate:
        expected: Estimate = perform(run, "claims-estimate", limit=limit)
        run.answer(_estimate_record(expected), lambda paper: _render_estimate(paper, expected))
        return
    with progress.shown(run) as notify:
        report: Backfill = perform(run, "claims-backfill", notify, limit=limit, batch_size=batch_size)
    run.exit_code = 5 if report.note else 0
    run.answer(dataclasses.asdict(report), lambda paper: _render_backfill(paper, report))


def _pair_record(pair: Pair) -> Record:
    """Two memories and why they wait."""
    judged = pair.judged
    return {
        "conflict": pair.id,
        "older": memory_record(pair.older),
        "newer": memory_record(pair.newer),
        "why": pair.reason,
        "judge": judged.model if judged else "rules",
        "relation": judged.relation if judged else None,
        "certainty": judged.confidence if judged else None,
        "since": stamp(judged.at if judged and judged.at else pair.newer.created),
    }


def _settled_record(one: Settled) -> Record:
    """What became of a pair."""
    return {
        "operation": one.operation,
        "time": stamp(one.at),
        "choice": one.choice.value,
        "judge": one.judge,
        "relation": one.relation,
        "certainty": one.confidence,
        "reason": one.reason,
        "older_id": one.older_id,
        "newer_id": one.newer_id,
        "older": memory_record(one.older) if one.older else None,
        "newer": memory_record(one.newer) if one.newer else None,
    }


def _estimate_record(expected: Estimate) -> Record:
    """What a backfill would cost."""
    return {
        "memories": expected.memories,
        "model": expected.model,
        "input_tokens": expected.tokens.input,
        "output_tokens": expected.tokens.output,
        "cost_usd": float_or_none(expected.cost),
    }


def _render_pairs(paper: Paper, pairs: Sequence[Pair]) -> None:
    """Every pair, and the ways out."""
    if not pairs:
        paper.line("Nothing waits for a decision.")
        return
    for pair in pairs:
        _render_pair(paper, pair, pair.id)
    paper.line(dim("nacre conflicts resolve ID keep-new, keep-old or keep-both settles one; nacre conflicts asks you"))


def _render_pair(paper: Paper, pair: Pair, title: str) -> None:
    """Two memories: what each says, since when, and who said it; and why they are in doubt."""
    paper.line(bold(title), "  ", bold(pair.older.subject), hang=2)
    _side(paper, "older", pair.older)
    _side(paper, "newer", pair.newer)
    judged = pair.judged
    by = f"{judged.relation}, {judged.confidence:.2f}, says {judged.model}" if judged else "not judged by a model"
    paper.line(Span(joined((pair.reason, f"({by})"), " "), "yellow"), indent=2, hang=2)
    paper.blank()


def _side(paper: Paper, name: str, memory: Memory) -> None:
    valid = memory.valid.since
    facts = (
        kind_span(memory.kind).text, memory.project, f"importance {memory.importance}",
        f"said by {speaker_name(memory.speaker, memory.author)}", when(memory.created),
        f"holds from {valid}" if valid else "", short_id(memory),
    )  # fmt: skip
    if memory.trust is session.Trust.UNTRUSTED:
        paper.line(f"{name}:", indent=2)
        paper.framed(passages.shorten(memory.content, _CHARACTERS), origin_of(memory), indent=4)
    else:
        paper.line(dim(f"{name}: "), passages.shorten(memory.content, _CHARACTERS), indent=2, hang=7)
    paper.line(dim(joined(facts)), indent=9)


def _render_settled(paper: Paper, settled: Sequence[tuple[Pair, Choice]], total: int) -> None:
    """What was decided."""
    if not total:
        paper.line("Nothing waits for a decision.")
    for pair, choice in settled:
        paper.line(bold("Settled"), f"  {pair.older.subject}: {_DONE[choice.value]}", dim(f"  {pair.id}"), hang=2)
    left = total - len(settled)
    if left:
        paper.line(dim(f"{count(left, 'pair')} still {'waits' if left == 1 else 'wait'}"))


def _render_history(paper: Paper, found: Sequence[Settled]) -> None:
    """What became of pairs, the latest first."""
    if not found:
        paper.line("Nothing was settled yet.")
        return
    for one in found:
        known = one.older or one.newer
        by = f"by {one.judge}" if one.judge else "by you"
        sure = f"{one.relation} {one.confidence:.2f}" if one.relation and one.confidence is not None else ""
        paper.line(bold(_DONE[one.choice.value]), dim(f"  {joined((by, sure, minute(one.at)))}"), hang=2)
        for name, memory in (("older", one.older), ("newer", one.newer)):
            said = passages.shorten(memory.content, _CHARACTERS // 2) if memory else "(forgotten)"
            paper.line(dim(f"{name}: "), said, indent=2, hang=7)
        if one.reason:
            paper.line(one.reason, indent=2, hang=2)
        if known:
            paper.line(dim(f"nacre undo {one.operation[-SHORT_ID:]} takes it back"), indent=2)
        paper.blank()


def _render_judged(paper: Paper, report: JudgeReport) -> None:
    """What a model made of what waited."""
    if not report.judged and not report.waiting and not report.note:
        paper.line("Nothing waits to be judged.")
        return
    paper.line(bold(f"Judged {count(report.judged, 'memory', 'memories')}"))
    paper.facts(
        (
            ("claims", str(report.claims or "")),
            ("superseded", str(report.superseded or "")),
            ("in doubt", f"{report.conflicts}; nacre conflicts shows them" if report.conflicts else ""),
            ("todos done", str(report.todos or "")),
            ("given up", str(report.given_up or "")),
            ("still waiting", str(report.waiting or "")),
        ),
        indent=2,
    )
    if report.note:
        paper.line(Span(report.note, "yellow"), indent=2, hang=2)


def _render_backfill(paper: Paper, report: Backfill) -> None:
    """What became of older memories."""
    paper.line(bold(f"{count(report.claimed, 'memory has', 'memories have')} a claim now"))
    paper.facts(
        (
            ("claim nothing", str(report.claimless or "")),
            ("no answer of use", str(report.failed or "")),
            ("left", f"{report.left}; run it again" if report.left else ""),
        ),
        indent=2,
    )
    if report.note:
        paper.line(Span(report.note, "yellow"), indent=2, hang=2)


def _render_estimate(paper: Paper, expected: Estimate) -> None:
    """What a backfill would cost."""
    if not expected.memories:
        paper.line("Every memory has a claim, or claims nothing.")
        return
    cost = "unknown: the price of this model is not" if expected.cost is None else f"about ${expected.cost:.2f}"
    paper.line(bold(f"{count(expected.memories, 'memory', 'memories')} without a claim"))
    tokens = f"{amount(expected.tokens.input)} read, {amount(expected.tokens.output)} written"
    paper.facts((("model", expected.model), ("tokens", tokens), ("cost", cost)), indent=2)
