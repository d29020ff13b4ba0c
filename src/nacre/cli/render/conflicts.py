"""Pairs of memories that cannot both hold, side by side, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.render.words import SHORT_ID, amount, count, kind_span, minute, short_id, speaker_name, when
from nacre.text.passages import shorten
from nacre.values.memory import Memory
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.review.claims import Backfill, Estimate
    from nacre.review.contradictions import JudgeReport
    from nacre.views import Choice, Pair, Settled

_CHARACTERS = 400
_DONE = {
    "keep-new": "the newer one holds",
    "keep-old": "the older one holds; the newer one is retired",
    "keep-both": "both hold",
}


def render_pairs(paper: Paper, pairs: Sequence[Pair]) -> None:
    """Every pair, and the ways out."""
    if not pairs:
        paper.line("Nothing waits for a decision.")
        return
    for pair in pairs:
        render_pair(paper, pair, pair.id)
    paper.line(dim("nacre conflicts resolve ID keep-new, keep-old or keep-both settles one; nacre conflicts asks you"))


def render_pair(paper: Paper, pair: Pair, title: str) -> None:
    """Two memories: what each says, since when, and who said it; and why they are in doubt."""
    paper.line(bold(title), "  ", bold(pair.older.subject), hang=2)
    _side(paper, "older", pair.older)
    _side(paper, "newer", pair.newer)
    judged = pair.judged
    by = f"{judged.relation}, {judged.confidence:.2f}, says {judged.model}" if judged else "told by the words alone"
    paper.line(Span(joined((pair.reason, f"({by})"), " "), "yellow"), indent=2, hang=2)
    paper.blank()


def _side(paper: Paper, name: str, memory: Memory) -> None:
    valid = memory.valid.since
    facts = (
        kind_span(memory.kind).text, memory.project, f"importance {memory.importance}",
        f"said by {speaker_name(memory.speaker, memory.author)}", when(memory.created),
        f"holds from {valid}" if valid else "", short_id(memory),
    )  # fmt: skip
    if memory.trust is Trust.UNTRUSTED:
        paper.line(f"{name}:", indent=2)
        paper.framed(shorten(memory.content, _CHARACTERS), "from outside", indent=4)
    else:
        paper.line(dim(f"{name}: "), shorten(memory.content, _CHARACTERS), indent=2, hang=7)
    paper.line(dim(joined(facts)), indent=9)


def render_settled(paper: Paper, settled: Sequence[tuple[Pair, Choice]], total: int) -> None:
    """What was decided."""
    if not total:
        paper.line("Nothing waits for a decision.")
    for pair, choice in settled:
        paper.line(bold("Settled"), f"  {pair.older.subject}: {_DONE[choice.value]}", dim(f"  {pair.id}"), hang=2)
    left = total - len(settled)
    if left:
        paper.line(dim(f"{count(left, 'pair')} still {'waits' if left == 1 else 'wait'}"))


def render_history(paper: Paper, found: Sequence[Settled]) -> None:
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
            said = shorten(memory.content, _CHARACTERS // 2) if memory else "(forgotten)"
            paper.line(dim(f"{name}: "), said, indent=2, hang=7)
        if one.reason:
            paper.line(one.reason, indent=2, hang=2)
        if known:
            paper.line(dim(f"nacre undo {one.operation[-SHORT_ID:]} takes it back"), indent=2)
        paper.blank()


def render_judged(paper: Paper, report: JudgeReport) -> None:
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


def render_backfill(paper: Paper, report: Backfill) -> None:
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


def render_estimate(paper: Paper, expected: Estimate) -> None:
    """What a backfill would cost."""
    if not expected.memories:
        paper.line("Every memory has a claim, or claims nothing.")
        return
    cost = "unknown: the price of this model is not" if expected.cost is None else f"about ${expected.cost:.2f}"
    paper.line(bold(f"{count(expected.memories, 'memory', 'memories')} without a claim"))
    tokens = f"{amount(expected.tokens.input)} read, {amount(expected.tokens.output)} written"
    paper.facts((("model", expected.model), ("tokens", tokens), ("cost", cost)), indent=2)
