"""``nacre review``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from nacre.cli import progress
from nacre.cli.command import DefaultGroup
from nacre.cli.formats import Record, count, kind_span, short_id, speaker_name, stamp, when
from nacre.cli.memories.memory import memory_record, origin_of, render_outcomes, render_table
from nacre.cli.operations import ask, perform
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument, option, options
from nacre.cli.run import Run
from nacre.cli.terminal import screen, triage
from nacre.errors import DepartedError
from nacre.memories import store
from nacre.text import passages
from nacre.values import session

if TYPE_CHECKING:
    from nacre.review.contradictions import JudgeReport
    from nacre.values.memory import Memory
    from nacre.views import Pair, Pending, PendingPage


_CHARACTERS = 400
_DONE = {
    "keep-new": "the newer one holds",
    "keep-old": "the older one holds; the newer one is retired",
    "keep-both": "both hold",
}


@click.group(
    "review",
    cls=DefaultGroup,
    examples=[
        "nacre review",
        "nacre review keep 5f0c2a4d",
        "nacre review resolve 5f0c2a4d keep-new",
    ],
)
@click.pass_context
def review(context: click.Context) -> None:
    """Go through what waits for you: keep it, change it or drop it.

    Two memories wait where one says otherwise than the other and nacre cannot tell which holds. A memory waits when an
    agent proposed it or wants it changed, when it is recalled often and rarely used, or when you called it bad.
    Candidates may be worth remembering; no agent is told them, and they are deleted after 90 days.

    On a terminal all of them are shown, one after another: a key keeps it, edits it, merges it into another memory,
    drops it, skips it, or undoes the last decision. Elsewhere it lists them, as nacre review list does.
    """
    if context.invoked_subcommand is not None:
        return
    run: Run = context.obj
    if screen.can_be_drawn(run):
        triage.go_through(run, ask(run, "review", limit=0).items)
    else:
        _list(run)


@review.command("list", examples=["nacre review list", "nacre review list --only candidate --json"])
@options("review", "project", "only", "limit", "offset")
@click.pass_obj
def list_items(run: Run, /, **wanted: Any) -> None:
    """List what waits for you: conflicts first, then memories in doubt, then candidates."""
    _list(run, **wanted)


def _list(run: Run, **wanted: Any) -> None:
    page: PendingPage = ask(run, "review", **wanted)
    record = {
        "items": [_record(item) for item in page.items], "total": page.total, "conflicts": page.conflicts,
        "doubts": page.doubts, "candidates": page.candidates,
    }  # fmt: skip
    run.answer(record, lambda paper: _render(paper, page))


@review.command("keep", examples=["nacre review keep 5f0c2a4d", "nacre review keep 5f0c2a4d --into 3f9a01c2"])
@argument("review-keep", "references", metavar="ID...")
@options("review-keep", "content", "into", "anyway")
@click.pass_obj
def keep(run: Run, /, references: tuple[str, ...], **fields: Any) -> None:
    """Keep what waits.

    Candidates become memories. A memory in doubt stays, its quality is raised to .3 where it is lower, and a newer
    memory that seemed to say otherwise holds beside it.
    """
    try:
        kept: list[Memory] = perform(run, "review-keep", references=references, **fields)
    except DepartedError as error:
        if not run.is_interactive:
            raise
        run.confirm(f"{error.message[:1].upper()}{error.message[1:]}. Keep it anyway?")
        kept = perform(run, "review-keep", references=references, **{**fields, "anyway": True})
    run.answer({"kept": [memory_record(memory) for memory in kept]}, lambda paper: render_outcomes(paper, "Kept", kept))


@review.command("drop", examples=["nacre review drop 5f0c2a4d", "nacre review drop 5f0c2a4d --reason 'no longer so'"])
@argument("review-drop", "references", metavar="ID...")
@option("review-drop", "reason")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def drop(run: Run, references: tuple[str, ...], reason: str | None, yes: bool) -> None:
    """Drop candidates for good, and retire memories in doubt; their files are kept.

    On a terminal it asks before it retires memories.
    """
    if run.is_interactive and not yes:
        memories = [store.get(run.home, one) for one in references if not run.home.candidates.find(one.strip())]
        if memories:
            run.show(lambda paper: render_table(paper, memories))
            run.confirm("Retire?")
    gone: list[Memory] = perform(run, "review-drop", references=references, reason=reason)
    run.answer(
        {"dropped": [memory_record(memory) for memory in gone]},
        lambda paper: render_outcomes(paper, "Dropped", gone),
    )


@review.command(
    "resolve",
    examples=[
        "nacre review resolve 5f0c2a4d keep-new",
        "nacre review resolve 5f0c2a4d+91d0a4be keep-both --reason 'one is for staging'",
    ],
)
@argument("review-resolve", "reference", metavar="ID")
@argument("review-resolve", "choice")
@option("review-resolve", "reason")
@click.pass_obj
def resolve(run: Run, reference: str, choice: str, reason: str | None) -> None:
    """Say which of two memories in conflict holds.

    With keep-new the newer memory takes the older one's place; with keep-old the newer one is retired; with keep-both
    neither is doubted again. nacre undo takes it back.
    """
    settled: Pair = perform(run, "review-resolve", reference=reference, choice=choice, reason=reason)
    record = {
        "resolved": settled.id, "choice": choice, "reason": reason, "older": memory_record(settled.older),
        "newer": memory_record(settled.newer),
    }  # fmt: skip
    told = f"  {settled.older.subject}: {_DONE[choice]}"
    run.answer(record, lambda paper: paper.line(bold("Settled"), told, hang=2))


@review.command("undo", examples=["nacre review undo 5f0c2a4d"])
@argument("review-undo", "reference", metavar="ID")
@click.pass_obj
def undo(run: Run, reference: str) -> None:
    """Take back the last decision about what waited: it waits again.

    A candidate that was kept or dropped can be brought back for a day.
    """
    memory: Memory = perform(run, "review-undo", reference=reference)
    run.answer({"waits": memory_record(memory)}, lambda paper: render_outcomes(paper, "Waits again", [memory]))


@review.command("judge", examples=["nacre review judge", "nacre review judge --json"])
@click.option("--quiet", "-q", is_flag=True, help="Say nothing when all went well.")
@click.option("--background", is_flag=True, hidden=True, help="Nobody asked for it in so many words.")
@click.pass_obj
def judge(run: Run, quiet: bool, background: bool) -> None:
    """Have the model judge now what waits for it.

    New memories wait in a queue, and are judged in the background where models.background is on.
    """
    with progress.shown(run) as notify:
        report: JudgeReport = perform(run, "review-judge", notify, background=background)
    if not quiet or run.as_json:
        run.answer(dataclasses.asdict(report), lambda paper: _render_judged(paper, report))


def _record(item: Pending) -> Record:
    """One item; of a conflict, the fields of the older memory."""
    judged = item.judged
    return {
        **memory_record(item.memory), "item": item.id, "pending": item.kind.value, "why": item.why,
        "detail": item.detail, "since": stamp(item.since), "newer": memory_record(item.newer) if item.newer else None,
        "judge": judged.model if judged else None, "relation": judged.relation if judged else None,
        "certainty": judged.confidence if judged else None,
    }  # fmt: skip


def _render(paper: Paper, page: PendingPage) -> None:
    if not page.items:
        paper.line("Nothing waits for review.")
        return
    for item in page.items:
        _render_item(paper, item)
        paper.blank()
    paper.line(dim(f"{len(page.items):,} of {count(page.total, 'item')}; nacre review keep ID keeps one"))
    paper.line(dim("nacre review drop ID drops a candidate or retires a memory in doubt"))
    if page.conflicts:
        paper.line(dim("nacre review resolve ID keep-new, keep-old or keep-both settles a conflict"))


def _render_item(paper: Paper, item: Pending) -> None:
    memory = item.memory
    if item.newer:
        paper.line(bold(f"{short_id(memory)}+{short_id(item.newer)}"), "  ", bold(memory.subject), hang=2)
        _side(paper, "older", memory)
        _side(paper, "newer", item.newer)
        judged = item.judged
        by = f"{judged.relation}, {judged.confidence:.2f}, says {judged.model}" if judged else "not judged by a model"
        paper.line(Span(joined((item.detail, f"({by})"), " "), "yellow"), indent=2, hang=2)
        return
    paper.line(kind_span(memory.kind), "  ", bold(passages.shorten(memory.content, _CHARACTERS)), hang=2)
    paper.line(Span(triage.why_of(item), "yellow"), indent=2)
    facts = (item.kind.value, memory.project, when(item.since), short_id(memory))
    paper.line(dim(joined(facts)), indent=2)


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
            ("in doubt", f"{report.conflicts}; nacre review shows them" if report.conflicts else ""),
            ("todos done", str(report.todos or "")),
            ("given up", str(report.given_up or "")),
            ("still waiting", str(report.waiting or "")),
        ),
        indent=2,
    )
    if report.note:
        paper.line(Span(report.note, "yellow"), indent=2, hang=2)
