"""``nacre quickstart``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.formats import Record, count, kind_span, seconds, short_id, size
from nacre.cli.home import ingest_report
from nacre.cli.home.problems import render_problems
from nacre.cli.memories import hits, recall
from nacre.cli.memories.memory import memory_record
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, Span, bold, dim
from nacre.cli.run import Run
from nacre.indexing import vectors

if TYPE_CHECKING:
    from nacre.setup.quickstart import QuickstartResult, SampleAnswer
    from nacre.setup.reach import Reach


_HITS_SHOWN = 1


@command("quickstart", examples=["nacre quickstart", "nacre quickstart --json"])
@click.pass_obj
def quickstart(run: Run) -> None:
    """Read what your agents wrote and show what it teaches.

    Where no agent left transcripts, six example sessions stand in. A second run doubles nothing.
    """
    with progress.shown(run) as notify:
        result: QuickstartResult = perform(run, "quickstart", notify)
    vault = run.settings.where_documents
    run.answer(_quickstart_record(result), lambda paper: render_quickstart(paper, result, vault))
    if is_short_of_vectors(result):
        run.afterwards.append(partial(finish_vectors, run))


def is_short_of_vectors(result: QuickstartResult) -> bool:
    """Whether there was no time for all vectors; where something else stood in the way, the answer tells it."""
    return bool(result.report.vectors_left) and not result.report.vectors_note


def finish_vectors(run: Run) -> None:
    """Make the vectors that a first look had no time for. Ctrl-C leaves them to the next ingest."""
    with progress.shown(run) as notify:
        vectors.embed_pending(run.home, notify or (lambda _: None))


def _quickstart_record(result: QuickstartResult) -> Record:
    """What a first look found."""
    return {
        "source": result.source,
        "tools": result.tools,
        "report": ingest_report.ingest_record(result.report),
        "best": [memory_record(memory) for memory in result.best],
        "answers": [
            {"question": answer.question, **recall.recall_record(answer.result, None)} for answer in result.answers
        ],
        "reach": _reach_record(result.reach),
    }


def _reach_record(found: Reach) -> Record:
    foreseen = found.foreseen
    return {
        "memories": found.memories, "replaced": found.replaced, "candidates": found.candidates,
        "likeliest": list(found.likeliest),
        "sessions": found.sessions, "turns": found.turns,
        "writer": found.writer.writer, "writer_found": found.found.name if found.found else None,
        "sessions_a_day": round(foreseen.sessions, 1) if foreseen else None,
        "tokens_a_day": foreseen.tokens if foreseen else None,
    }  # fmt: skip


def render_quickstart(paper: Paper, result: QuickstartResult, vault: str) -> None:
    """What was read, what was learned, a few questions answered, what is in reach, and how to go on."""
    render_first_look(paper, result)
    render_reach(paper, result.reach)
    _render_next(paper, result, vault)
    render_problems(paper, result.report.problems)


def render_first_look(paper: Paper, result: QuickstartResult) -> None:
    """What was read, what was learned, and a few questions answered."""
    _render_read(paper, result)
    if result.best:
        paper.heading("What was learned")
        rows = [(kind_span(memory.kind), dim(memory.project or ""), memory.content) for memory in result.best]
        paper.table(rows, drop=(1,), indent=2)
        left = len(result.report.memories) - len(result.best)
        if left > 0:
            paper.line(dim(f"and {left:,} more: nacre list"), indent=2)
    if result.answers:
        paper.heading("What it can answer")
        for answer in result.answers:
            _render_answer(paper, answer)


def render_reach(paper: Paper, found: Reach) -> None:
    """What is in reach, in plain words: what is remembered, what waits, and who writes or could."""
    paper.heading("In reach")
    searchable = f"{count(found.turns, 'turn')} of {count(found.sessions, 'session')}"
    held = count(found.memories, "memory", "memories")
    replaced = f", and {found.replaced:,} that a later one replaced" if found.replaced else ""
    paper.line(f"{held}{replaced}; every word of {searchable}", indent=2, hang=2)
    if found.candidates:
        waiting = "candidate waits" if found.candidates == 1 else "candidates wait"
        told = f"{found.candidates:,} {waiting}, statements that may matter, for your yes or no: "
        paper.line(told, bold("nacre review"), indent=2, hang=2)
        for one in found.likeliest:
            paper.line(dim(f"“{one}”"), indent=4, hang=1)
    paper.line(*_who_writes(found), indent=2, hang=2)


def _who_writes(found: Reach) -> tuple[str | Span, ...]:
    writer = found.writer
    if writer.state != "off":
        waiting = f"; {count(writer.waiting, 'session')} to read" if writer.waiting else ""
        return (f"{writer.writer} writes the rest once a session is over{waiting}: ", bold("nacre writer"))
    alone = "By itself nacre keeps only what you say plainly. "
    if found.found is None:
        return (f"{alone}With a language model it writes the rest, too: ", bold("nacre setup"))
    much = f", {found.foreseen.in_words}" if found.foreseen and found.foreseen.tokens else ""
    problem = f" {found.found.problem}" if found.found.problem else ""
    return (
        f"{alone}{found.found.label} can write the rest once a session is over{much}: ", bold("nacre writer set"),
        f".{problem}" if problem else "",
    )  # fmt: skip


def _render_read(paper: Paper, result: QuickstartResult) -> None:
    report = result.report
    tools = ", ".join(f"{label} ({number:,})" for label, number in result.tools.items())
    if result.source == "examples":
        paper.line(bold("No agent has left transcripts on this machine yet"), ", so here are example sessions.")
    else:
        paper.line(bold("Your agents' transcripts were found on this machine."))
    paper.facts(
        (
            ("read", f"{count(sum(result.tools.values()), 'transcript')}: {tools}" if tools else ""),
            ("now", _fresh(result)),
            ("vectors", report.vectors_note or _vectors_to_come(result)),
        ),
        indent=2,
    )


def _vectors_to_come(result: QuickstartResult) -> str:
    if not is_short_of_vectors(result):
        return ""
    return f"{result.report.vectors_left:,} texts are found by their words so far; their vectors follow below"


def _fresh(result: QuickstartResult) -> str:
    report = result.report
    if not report.files:
        return "nothing new since the last time"
    learned = count(len(report.memories), "memory", "memories")
    took = f"{size(report.bytes_read)} in {seconds(report.read_seconds)}"
    return f"{count(report.sessions, 'session')}, {count(report.turns, 'turn')}, {learned}; {took}"


def _render_answer(paper: Paper, answer: SampleAnswer) -> None:
    paper.line(dim("$"), f' nacre recall "{answer.question}"', indent=2)
    with paper.indented(2):
        for rank, hit in enumerate(answer.result.hits[:_HITS_SHOWN], start=1):
            hits.render_hit(paper, rank, hit, explain=False)
        if not answer.result.hits:
            hits.render_turn_hits(paper, answer.result.turns[:_HITS_SHOWN], explain=False)
    paper.blank()


def _render_next(paper: Paper, result: QuickstartResult, vault: str) -> None:
    paper.heading("Go on")
    rows = [('nacre recall "…"', "ask anything, in your own words")]
    if result.changed:
        name, sessions = result.changed
        rows.append((f"nacre did {name}", f"why it was changed, in {sessions:,} sessions"))
    if result.best:
        rows.append((f"nacre show {short_id(result.best[0])}", "one memory, with the words it comes from"))
    if result.has_examples:
        rows.append(("nacre forget --examples", "take the example sessions out, and what they taught"))
    rows += [
        ("nacre open", "see, search and change all of it in your browser"),
        ("nacre init", "plug it into your agents' tools: they start knowing what matters"),
        ('nacre store "…"', "keep something you tell it"),
        (vault, f"the memories, as Markdown{'' if '://' in vault else ': read and edit them'}"),
    ]
    paper.table([(bold(what), why) for what, why in rows[:-1]], indent=2)
    paper.line(bold(rows[-1][0]), f"  {rows[-1][1]}", indent=2, hang=2)
