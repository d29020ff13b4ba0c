"""``nacre handoff`` and ``nacre chores``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.chores import queue
from nacre.cli.command import command
from nacre.cli.formats import Record, stamp
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.platform.days import shown_minute
from nacre.values.actor import Actor, Face, acting
from nacre.values.codec import plain

if TYPE_CHECKING:
    from nacre.chores.queue import Chore
    from nacre.values.handoff import ChoresReport, HandoffView

_FOLDER = click.Path(file_okay=False, path_type=Path)


@command(
    "handoff",
    examples=[
        "nacre handoff",
        "nacre handoff --store",
        'nacre handoff --store "The migration is half done: step 3 is next."',
    ],
)
@argument("handoff", "words", nargs=-1)
@option("handoff", "store", help="Hand the session over now: in these words, else in what was said last.")
@option("handoff", "session", help="As <tool>:<id>; by default the agent's own, else the last one here.")
@option("handoff", "folder", type=_FOLDER, help="Where the agent works; by default, here.")
@click.pass_obj
def handoff(run: Run, words: tuple[str, ...], store: bool, session: str | None, folder: Path | None) -> None:
    """Show what the last session hands over, or hand one over now.

    Sessions are handed over by themselves when they end, are reset or compacted; the next session of the project is
    told as it starts.
    """
    if words and not store:
        raise click.UsageError("words are stored with --store", click.get_current_context())
    place = str((folder or Path.cwd()).absolute())
    said = " ".join(words) or None
    view: HandoffView = perform(run, "handoff", folder=place, store=store, session=session, words=said)
    run.answer(_handoff_record(view), lambda paper: _render_handoff(paper, view))


@command("chores", hidden=True, examples=["nacre chores", "nacre chores --list"])
@click.option("--list", "only_list", is_flag=True, help="Tell what waits and what was given up; do nothing.")
@option("chores", "seconds")
@click.pass_obj
def chores(run: Run, only_list: bool, seconds: float) -> None:
    """Do what hooks left to be done: read sessions, hand them over, learn from them."""
    if only_list:
        home = run.settings.home
        there, lost = queue.waiting(home), queue.given_up(home)

        def render_list(paper: Paper) -> None:
            for one in there:
                paper.line(bold(one.kind), f"  {one.session or one.folder or ''}", dim(f"  {one.note}"))
            for one in lost:
                paper.line(bold("given up: "), f"{one.kind}  {one.session}", dim(f"  {one.note}"))
            if not (there or lost):
                paper.line("Nothing waits.")

        told = {"waiting": [_chore_record(one) for one in there], "given_up": [_chore_record(one) for one in lost]}
        run.answer(told, render_list)
        return
    with acting(Actor(Face.DAEMON)):  # a hook started it, which an agent ran
        report: ChoresReport = perform(run, "chores", seconds=seconds)
    record = {"done": report.done, "failed": report.failed, "given_up": report.given_up, "left": report.left}
    told_as = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in record.items() if count)
    run.answer(record, lambda paper: paper.line(told_as or "Nothing waits."))


def _handoff_record(view: HandoffView) -> Record:
    """The answer of ``handoff``."""
    return {
        "project": view.project,
        "handoff": plain(view.handoff),
        "waits": view.waits,
        "stored": view.is_new,
        "note": view.note,
    }


def _chore_record(chore: Chore) -> Record:
    """A chore."""
    return {
        "kind": chore.kind, "session": chore.session or None, "folder": chore.folder, "tries": chore.tries,
        "left_at": stamp(datetime.fromtimestamp(chore.at, UTC)) if chore.at else None, "note": chore.note or None,
    }  # fmt: skip


def _render_handoff(paper: Paper, view: HandoffView) -> None:
    """What is handed over, by which session, and who has it."""
    handoff = view.handoff
    if handoff is None:
        place = f"in {view.project}" if view.project else "here: this folder belongs to no project that was met"
        hint = "" if view.note else "  nacre handoff --store hands the last session over"
        paper.line(f"Nothing is handed over {place}.", dim(hint))
        if view.note:
            paper.line(dim(view.note), indent=2)
        return
    state = "stored; " if view.is_new else ""
    state += f"given to {handoff.given}" if handoff.given else "waits for the next session"
    paper.line(bold(f"session handoff {shown_minute(handoff.said)}"), dim(f"  {view.project} · {state}"))
    paper.body(handoff.content, indent=2)
    paper.line(dim(f"from {handoff.session} · by {handoff.by}"), indent=2)
    if view.note:
        paper.line(dim(view.note), indent=2)
