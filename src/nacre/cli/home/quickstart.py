"""``nacre quickstart``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.formats import Record, count, kind_span, seconds, short_id, size
from nacre.cli.home.problems import render_problems
from nacre.cli.memories.memory import memory_record
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.run import Run
from nacre.platform.lazy import Module

if TYPE_CHECKING:
    from nacre.cli.home import ingest_report
    from nacre.cli.memories import hits, recall
    from nacre.setup.quickstart import QuickstartResult, SampleAnswer
else:
    hits = Module("nacre.cli.memories.hits")
    ingest_report = Module("nacre.cli.home.ingest_report")
    recall = Module("nacre.cli.memories.recall")


_HITS_SHOWN = 1


@command("quickstart", examples=["nacre quickstart", "nacre quickstart --json"])
@click.pass_obj
def quickstart(run: Run) -> None:
    """Read what your agents wrote and show what it teaches.

    Where no agent left transcripts, six example sessions stand in. A second run doubles nothing.
    """
    with progress.shown(run) as notify:
        result: QuickstartResult = perform(run, "quickstart", notify)
    vault = run.settings.vault
    run.answer(_quickstart_record(result), lambda paper: render_quickstart(paper, result, vault))


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
    }


def render_quickstart(paper: Paper, result: QuickstartResult, vault: Path) -> None:
    """What was read, what was learned, a few questions answered, and how to go on."""
    _render_read(paper, result)
    if result.best:
        paper.heading("What was learned")
        rows = [(kind_span(memory.kind), dim(memory.project or ""), memory.content) for memory in result.best]
        paper.table(rows, drop=(1,), indent=2)
        left = len(result.report.memories) - len(result.best)
        if left > 0:
            paper.line(dim(f"and {left:,} more: nacre list"), indent=2)
    else:
        paper.heading("Nothing was said in them yet that is worth keeping")
        paper.line("Every word is searchable all the same: nacre sessions search …", indent=2)
    if result.answers:
        paper.heading("What it can answer")
        for answer in result.answers:
            _render_answer(paper, answer)
    _render_next(paper, result, vault)
    render_problems(paper, result.report.problems)


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
            ("vectors", report.vectors_note or ""),
        ),
        indent=2,
    )


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


def _render_next(paper: Paper, result: QuickstartResult, vault: Path) -> None:
    paper.heading("Go on")
    rows = [('nacre recall "…"', "ask anything, in your own words")]
    if result.best:
        rows.append((f"nacre show {short_id(result.best[0])}", "one memory, with the words it comes from"))
    if result.source == "examples":
        rows.append(("nacre forget --examples", "take the example sessions out, and what they taught"))
    rows += [
        ("nacre init", "plug it into your agents' tools: they start knowing what matters"),
        ("nacre ingest", "read what is new; a second time takes a moment"),
        ('nacre store "…"', "keep something you tell it"),
        (str(vault), "the memories, as Markdown: read and edit them"),
    ]
    paper.table([(bold(what), why) for what, why in rows[:-1]], indent=2)
    paper.line(bold(rows[-1][0]), f"  {rows[-1][1]}", indent=2, hang=2)
