"""``nacre review``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from nacre.cli.command import DefaultGroup
from nacre.cli.formats import Record, count, kind_span, short_id, stamp, when
from nacre.cli.memories.candidates import candidates, drop, is_candidate, keep_candidates, waiting_of
from nacre.cli.memories.memory import memory_record, render_outcomes, render_table
from nacre.cli.operations import ask, perform
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.platform.lazy import Module
from nacre.text import passages
from nacre.values import review as values_review

if TYPE_CHECKING:
    from nacre.cli.terminal import screen, triage
    from nacre.memories import store
    from nacre.values.memory import Memory
    from nacre.views import Review
else:
    screen = Module("nacre.cli.terminal.screen")
    store = Module("nacre.memories.store")
    triage = Module("nacre.cli.terminal.triage")


_CONTENT_CHARACTERS = 240


@click.group(
    "review",
    cls=DefaultGroup,
    examples=[
        "nacre review",
        "nacre review keep 5f0c2a4d",
        "nacre review replace 5f0c2a4d",
    ],
)
@click.pass_context
def review(context: click.Context) -> None:
    """Go through what waits for you: keep it, change it or drop it.

    A memory waits here when an agent proposed it or wants it changed, when it is recalled often and rarely used, when a
    newer one seems to contradict it, or when you called it bad. Candidates may be worth remembering; no agent is
    told them.

    On a terminal all of them are shown, one after another: a key keeps it, edits it, merges it into another memory,
    drops it, skips it, or undoes the last decision. Elsewhere it lists the memories, as nacre review list does.
    """
    if context.invoked_subcommand is not None:
        return
    run: Run = context.obj
    if screen.can_be_drawn(run):
        _triage(run)
    else:
        _list(run)


def _triage(run: Run) -> None:
    """Go through memories to review, then candidates."""
    found = ask(run, "waiting")
    newer = {pair.older.id: pair.newer for pair in found.conflicts}
    reviews = [triage.Waiting(one.memory, _why(one), False, newer.get(one.memory.id)) for one in found.reviews]
    page = ask(run, "candidates", limit=0)
    triage.go_through(run, [*reviews, *waiting_of(page)], "Nothing waits for review.")


def _why(review: Review) -> str:
    return joined((review.entry.reason.value.replace("_", " "), review.entry.detail), ": ")


def _list(run: Run) -> None:
    found = ask(run, "waiting")
    run.answer(
        {"reviews": [_review_record(item) for item in found.reviews], "candidates": found.candidates},
        lambda paper: _render_reviews(paper, found.reviews, found.candidates),
    )


@review.command("list", examples=["nacre review list", "nacre review list --json"])
@click.pass_obj
def list_reviews(run: Run) -> None:
    """List the memories that wait for you, the longest waiting first."""
    _list(run)


@review.command("dismiss", examples=["nacre review dismiss 5f0c2a4d", "nacre review keep 5f0c2a4d --into 3f9a01c2"])
@argument("review-dismiss", "references", metavar="ID...")
@option("review-dismiss", "content")
@option("review-dismiss", "into")
@click.pass_obj
def dismiss(run: Run, references: tuple[str, ...], content: str | None, into: str | None) -> None:
    """Keep memories that wait.

    Their quality is raised to .3 where it is lower; a newer memory that seemed to say otherwise holds beside them.
    Candidates become memories.
    """
    waiting = tuple(one for one in references if is_candidate(run, one))
    if waiting:
        keep_candidates(run, waiting, content=content, into=into)
    references = tuple(one for one in references if one not in waiting)
    if not references:
        return
    kept: list[Memory] = perform(run, "review-dismiss", references=references, content=content, into=into)
    run.answer(
        {"dismissed": [memory_record(memory) for memory in kept]},
        lambda paper: render_outcomes(paper, "Kept", kept),
    )
    run.embed_afterwards()


@review.command("undo", examples=["nacre review undo 5f0c2a4d"])
@argument("review-undo", "reference", metavar="ID")
@click.pass_obj
def undo(run: Run, reference: str) -> None:
    """Take back the last decision about what waited: it waits again.

    A candidate that was kept or dropped can be brought back for a day.
    """
    memory: Memory = perform(run, "review-undo", reference=reference)
    run.answer({"waits": memory_record(memory)}, lambda paper: render_outcomes(paper, "Waits again", [memory]))
    run.embed_afterwards()


review.add_command(dismiss, "keep")
review.add_command(candidates)
review.add_command(drop)


@review.command("replace", examples=["nacre review replace 5f0c2a4d"])
@argument("review-replace", "references", metavar="ID...")
@click.pass_obj
def replace(run: Run, references: tuple[str, ...]) -> None:
    """Let the newer memory take the place of one that it outdated.

    The older one is found for its own time only; nacre unretire brings it back.
    """
    replaced: list[Memory] = perform(run, "review-replace", references=references)
    run.answer(
        {"replaced": [memory_record(memory) for memory in replaced]},
        lambda paper: render_outcomes(paper, "Replaced", replaced),
    )
    run.embed_afterwards()


@review.command(
    "retire", examples=["nacre review retire 5f0c2a4d", "nacre review retire 5f0c2a4d --reason 'no longer so' --yes"]
)
@argument("review-retire", "references", metavar="ID...")
@option("review-retire", "reason")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def retire(run: Run, references: tuple[str, ...], reason: str | None, yes: bool) -> None:
    """Retire memories that wait; their files are kept.

    On a terminal it asks first.
    """
    _confirm_and_retire(
        run, references, lambda: perform(run, "review-retire", references=references, reason=reason), yes=yes
    )


def _confirm_and_retire(
    run: Run, references: tuple[str, ...], retire: Callable[[], list[Memory]], *, yes: bool
) -> None:
    """Retire after a look at what goes, on a terminal; answer with what went."""
    if run.is_interactive and not yes:
        memories = [store.get(run.home, reference) for reference in references]
        run.show(lambda paper: render_table(paper, memories))
        run.confirm("Retire?")
    retired = retire()
    run.answer(
        {"retired": [memory_record(memory) for memory in retired]},
        lambda paper: render_outcomes(paper, "Retired", retired),
    )
    run.embed_afterwards()  # what holds again was written anew


def _review_record(review: Review) -> Record:
    """One memory that waits for a person."""
    return {
        **memory_record(review.memory),
        "reason": review.entry.reason.value,
        "detail": review.entry.detail,
        "suggested": review.entry.suggested.value,
        "since": stamp(review.entry.since),
        "quality": round(review.usage.quality, 4),
        "recall_count": review.usage.recall_count,
    }


def _render_reviews(paper: Paper, waiting: Sequence[Review], candidate_count: int) -> None:
    """What waits, why, and the two ways out."""
    if not waiting:
        paper.line("No memory waits for review.")
    if candidate_count:
        paper.line(dim(f"{count(candidate_count, 'candidate')} may be worth remembering: nacre review candidates"))
    if not waiting:
        return
    for review in waiting:
        memory = review.memory
        paper.line(kind_span(memory.kind), "  ", bold(memory.subject), hang=2)
        if passages.normalise(memory.content) != passages.normalise(memory.subject):
            paper.line(passages.shorten(memory.content, _CONTENT_CHARACTERS), indent=2)
        paper.line(Span(_why(review), "yellow"), indent=2)
        facts = (memory.project, f"recalled {count(review.usage.recall_count, 'time')}", when(review.entry.since))
        paper.line(dim(joined((*facts, short_id(memory)))), indent=2)
        paper.blank()
    if any(review.entry.reason is values_review.Reason.CONTRADICTED for review in waiting):
        paper.line(dim("nacre conflicts shows those that contradict each other side by side"))
    paper.line(dim("nacre review keep ID keeps a memory, replace ID lets the newer one hold, retire ID retires it"))
