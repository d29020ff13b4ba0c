"""``nacre review candidates`` and ``nacre review drop``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nacre.cli.command import command
from nacre.cli.formats import Record, count, kind_span, short_id, stamp, when
from nacre.cli.memories.memory import memory_record
from nacre.cli.operations import ask, perform
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.platform.lazy import Module
from nacre.text import passages

if TYPE_CHECKING:
    from nacre.cli.terminal import screen, triage
    from nacre.values.candidate import HeldCandidate
    from nacre.values.reports import StoreOutcome
    from nacre.views import CandidatePage
else:
    screen = Module("nacre.cli.terminal.screen")
    triage = Module("nacre.cli.terminal.triage")

_CHARACTERS = 400
_WHY = {
    "found": "you said it",
    "unproven": "not borne out",
    "untrusted": "may come from outside",
    "unused": "never used",
    "minor": "others matter more",
}


@command(
    "candidates",
    examples=["nacre review candidates", "nacre review candidates --json", "nacre review keep 5f0c2a4d"],
)
@option("candidates", "project")
@option("candidates", "limit")
@option("candidates", "offset")
@click.option("--list", "only_list", is_flag=True, help="List them, and ask nothing.")
@click.pass_obj
def candidates(run: Run, project: str | None, limit: int, offset: int, only_list: bool) -> None:
    """Look at what may be worth remembering, and say what is.

    On a terminal one after another is shown, the likeliest first, as by nacre review. A candidate that nobody keeps is
    deleted after 90 days.
    """
    is_drawn = not only_list and screen.can_be_drawn(run)
    given = click.get_current_context().get_parameter_source("limit")
    most = 0 if is_drawn and given is ParameterSource.DEFAULT else limit
    page: CandidatePage = ask(run, "candidates", project=project, limit=most, offset=offset)
    if is_drawn:
        triage.go_through(run, waiting_of(page), "No candidate waits.")
        return
    run.answer(
        {"candidates": [_record(one) for one in page.candidates], "total": page.total},
        lambda paper: _render_list(paper, page),
    )


@command("drop", examples=["nacre review drop 5f0c2a4d"])
@argument("candidate-drop", "references", metavar="ID...")
@click.pass_obj
def drop(run: Run, references: tuple[str, ...]) -> None:
    """Drop candidates for good: their words are not found again."""
    dropped = perform(run, "candidate-drop", references=references)
    run.answer(
        {"dropped": [memory_record(memory) for memory in dropped]},
        lambda paper: paper.line(f"Dropped {count(len(dropped), 'candidate')}."),
    )


def is_candidate(run: Run, reference: str) -> bool:
    """Whether a reference is that of a candidate."""
    return bool(run.home.candidates.find(reference.strip()))


def keep_candidates(run: Run, references: Sequence[str], **words: Any) -> None:
    """Make candidates memories, or parts of one, and answer with what became of them."""
    kept: list[StoreOutcome] = [perform(run, "candidate-keep", reference=one, **words) for one in references]
    run.answer(
        {"kept": [{"id": one.memory_id, "action": one.action, "reason": one.reason} for one in kept]},
        lambda paper: paper.line(f"Kept {count(len(kept), 'candidate')}."),
    )
    run.embed_afterwards()


def waiting_of(page: CandidatePage) -> list[triage.Waiting]:
    """Candidates as triage shows them."""
    return [triage.Waiting(one.memory, _why(one), True) for one in page.candidates]


def _why(one: HeldCandidate) -> str:
    return one.detail or _WHY[one.why.value]


def _record(one: HeldCandidate) -> Record:
    return {
        **memory_record(one.memory), "why": one.why.value, "detail": one.detail, "score": one.score,
        "found": stamp(one.found),
    }  # fmt: skip


def _render_list(paper: Paper, page: CandidatePage) -> None:
    if not page.candidates:
        paper.line("No candidate waits.")
        return
    for one in page.candidates:
        _render(paper, one)
        paper.blank()
    shown = f"{len(page.candidates):,} of {count(page.total, 'candidate')}"
    paper.line(dim(f"{shown}; nacre review keep ID makes one a memory, nacre review drop ID does away with it"))


def _render(paper: Paper, candidate: HeldCandidate) -> None:
    memory = candidate.memory
    paper.line(kind_span(memory.kind), "  ", bold(passages.shorten(memory.content, _CHARACTERS)), hang=2)
    paper.line(Span(_why(candidate), "yellow"), indent=2)
    paper.line(dim(joined((memory.project, when(memory.created), short_id(memory)))), indent=2)
