"""``nacre status``, and ``nacre`` alone on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import Record, count, day, kind_span, place_name, short_id, short_session, stamp, when
from nacre.cli.memories.memory import memory_record, subject_and_content
from nacre.cli.operations import perform
from nacre.cli.paper import Cell, Paper, Span, bold, dim
from nacre.cli.run import Run
from nacre.cli.sessions.session import session_line_record, session_title
from nacre.platform import ids
from nacre.platform.days import shown
from nacre.setup import writer as writers
from nacre.values import spending

if TYPE_CHECKING:
    from nacre.health.status import Status
    from nacre.setup.writer import WriterStatus
    from nacre.values.memory import Memory
    from nacre.views import SessionLine

_LEAST_CONTENT = 44


@command("status", examples=["nacre", "nacre status", "nacre status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell what happened today, what was learned, and what waits for you.

    It is what nacre alone shows on a terminal. The database is read as it is: nothing is waited for, and what a session
    left just now may not be in it yet.
    """
    page: Status = perform(run, "status")
    run.answer(_record(page), lambda paper: _render(paper, page))


def _record(page: Status) -> Record:
    writer = page.writer
    return {
        "wired": list(page.wired), "not_wired": list(page.not_wired), "memories": page.memories,
        "sessions": page.sessions, "today": [session_line_record(line) for line in page.today],
        "sessions_today": page.sessions_today, "read": stamp(page.read),
        "learned": [memory_record(memory) for memory in page.learned],
        "waiting": {
            "candidates": page.candidates, "doubts": page.doubts, "conflicts": page.conflicts,
            "sessions": writer.waiting,
        },
        "writer": {
            "writer": writer.writer, "state": writer.state, "tokens_today": writer.tokens_today,
            "tokens_per_day": writer.limit,
        },
        "cost_usd": page.cost / spending.DOLLAR, "budget_usd": page.budget / spending.DOLLAR,
    }  # fmt: skip


def _render(paper: Paper, page: Status) -> None:
    if not page.memories and not page.sessions:
        _render_beginning(paper, page)
        return
    memories, sessions = count(page.memories, "memory", "memories"), count(page.sessions, "session")
    paper.line(bold("nacre"), f" remembers {memories}, and every word of {sessions}.")
    paper.facts(_hosts(page), indent=2)
    _render_today(paper, page)
    _render_learned(paper, page)
    _render_waiting(paper, page)
    paper.heading("Today's cost")
    paper.line(_cost(page), indent=2, hang=2)
    paper.blank()
    paper.line(dim('nacre recall "…" asks it; nacre --help lists all it does'))


def _render_beginning(paper: Paper, page: Status) -> None:
    paper.line(bold("nacre"), " is a memory for your agents. It remembers nothing yet.")
    paper.heading("Begin")
    plug = "plugs it into your agents' tools" + (f": {', '.join(page.not_wired)}" if page.not_wired else "")
    rows = [
        ("nacre quickstart", "reads what your agents wrote, and shows what it teaches"),
        ("nacre init", f"{', '.join(page.wired)} know of it; plugs it into others" if page.wired else plug),
        ('nacre store "…"', "keeps something you tell it"),
    ]
    width = max(len(name) for name, _ in rows)
    for name, told in rows:
        paper.line(bold(name), "\u00a0" * (width - len(name) + 2), told, indent=2, hang=width + 2)
    paper.blank()
    paper.line(dim("nacre --help lists all it does"))


def _hosts(page: Status) -> Iterator[tuple[str, Cell]]:
    if page.wired:
        yield "wired", ", ".join(page.wired)
    if page.not_wired:
        init = f"nacre init --host {','.join(page.not_wired)}"
        yield "not wired", (f"{', '.join(page.not_wired)}: ", bold(init.replace(" ", "\u00a0")))
    if not (page.wired or page.not_wired):
        yield "wired", ("no agent: ", bold("nacre\u00a0init"))


def _render_today(paper: Paper, page: Status) -> None:
    number = count(page.sessions_today, "session")
    paper.heading(f"Today: {number}" if page.today else "Today")
    if page.today:
        paper.table([_session(line) for line in page.today], drop=(2, 1), indent=2)
        more = page.sessions_today - len(page.today)
        after = f"and {more:,} more: nacre sessions list --since today; " if more > 0 else ""
        paper.line(dim(f"{after}nacre resume ID opens one again"), indent=2, hang=2)
        return
    read = f"; transcripts were read last on {when(page.read)}" if page.read else ""
    paper.line(f"no session yet{read}: ", bold("nacre\u00a0ingest"), indent=2, hang=2)


def _session(line: SessionLine) -> tuple[Cell, ...]:
    stored, session = line.session, line.session.session
    at = shown(stored.ended or session.started or ids.utc_now(), "%H:%M")
    return (
        dim(short_session(session.native_id)), dim(at), session.tool, stored.project or "",
        session_title(line),
    )  # fmt: skip


def _render_learned(paper: Paper, page: Status) -> None:
    if not page.learned:
        return
    paper.heading("Learned last")
    paper.table([_memory(memory) for memory in page.learned], drop=(1, 3), least=_LEAST_CONTENT, indent=2)
    paper.line(dim("nacre retire ID drops one; what you leave is kept"), indent=2, hang=2)
    if any(memory.proposed for memory in page.learned):
        paper.line(dim("nacre review keep ID keeps what an agent proposed"), indent=2, hang=2)


def _memory(memory: Memory) -> tuple[Cell, ...]:
    marks = (Span("proposed: ", "yellow"),) if memory.proposed else ()
    return (
        dim(short_id(memory)), dim(day(memory.created)), kind_span(memory.kind), place_name(memory),
        (*marks, *subject_and_content(memory)),
    )  # fmt: skip


def _render_waiting(paper: Paper, page: Status) -> None:
    rows = list(_waiting(page))
    if rows:
        paper.heading("Waits for you")
        paper.table([(told, bold(what)) for told, what in rows], indent=2)


def _waiting(page: Status) -> Iterator[tuple[str, str]]:
    items = page.conflicts + page.doubts + page.candidates
    if items:
        yield f"{count(items, 'item')} to review", "nacre review"
    if page.writer.waiting and page.writer.state != "ready":
        told = f"{count(page.writer.waiting, 'session')} for the writer: {writers.STATES[page.writer.state]}"
        yield told, "nacre writer"


def _cost(page: Status) -> str:
    told = spending.dollars(page.cost) if page.cost else "nothing"
    if page.writer.state == "off":
        return f"{told}; no model writes memories (nacre writer set)"
    is_paid = page.cost or page.writer.limit is None
    return f"{f'{told} of {spending.dollars(page.budget)} a day; ' if is_paid else ''}{_writing(page.writer)}"


def _writing(writer: WriterStatus) -> str:
    took = "" if writer.limit is None else f", {writer.tokens_today:,} of {writer.limit:,} tokens"
    ahead = f", {count(writer.waiting, 'session')} ahead" if writer.waiting else ""
    return f"{writer.writer}: {writers.STATES[writer.state]}{took}{ahead}"
