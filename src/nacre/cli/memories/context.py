"""``nacre context``."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from nacre.cli.command import TEXT, command
from nacre.cli.daemon import ask_daemon
from nacre.cli.formats import Record, stamp
from nacre.cli.memories.hits import describe_lanes, lane_records
from nacre.cli.options import NO_DAEMON
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.run import Run
from nacre.context.session_state import write_state
from nacre.context.snapshot import write_snapshot
from nacre.text.passages import shorten
from nacre.values.context import ContextBlock, ContextRequest, Moment, Occasion, Part

_FOLDER = click.Path(file_okay=False, path_type=Path)
_PART = click.Choice([part.value for part in Part], case_sensitive=False)
_MOMENT = click.Choice([moment.value for moment in Moment], case_sensitive=False)
_OCCASION = click.Choice([occasion.value for occasion in Occasion], case_sensitive=False)
_TEXT_CHARACTERS = 100
_ID_CHARACTERS = 8


@command(
    "context",
    examples=[
        "nacre context",
        'nacre context "why did we leave sqlite?" --explain',
        "nacre context --output CONTEXT.md --budget 1500",
    ],
)
@click.argument("prompt", nargs=-1, type=TEXT)
@click.option("--prompt", "asked", type=TEXT, help="The same; - reads it from standard input.")
@click.option("--moment", type=_MOMENT, help="As a session starts, or with a prompt; by default the latter with one.")
@click.option("--folder", type=_FOLDER, help="Where the agent works; by default, here.")
@click.option("--session", type=TEXT, help="As <tool>:<id>: what it was given already is not told again.")
@click.option("--occasion", type=_OCCASION, default=Occasion.STARTUP.value, show_default=True, help="Why it starts.")
@click.option("--budget", type=click.IntRange(0), help="Tokens at most.")
@click.option("--part", "parts", type=_PART, multiple=True, help="Only this part; may be given again.")
@click.option("--lexical", is_flag=True, help="By words alone, as a hook does where no daemon runs.")
@click.option("--explain", is_flag=True, help="Why each thing is told, and what was left out.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it there, where it changed.")
@NO_DAEMON
@click.pass_obj
def context(  # noqa: PLR0913 - one parameter an option
    run: Run, prompt: tuple[str, ...], asked: str | None, moment: str | None, folder: Path | None,
    session: str | None, occasion: str, budget: int | None, parts: tuple[str, ...], lexical: bool, explain: bool,
    output: Path | None, no_daemon: bool,
) -> None:  # fmt: skip
    """Tell an agent what it should know, at its start or with a prompt.

    Prints nothing where nothing is worth telling. With --output it is a file for agents that only read files.
    """
    text = sys.stdin.read() if asked == "-" else asked or " ".join(prompt)
    when = Moment.PROMPT if text.strip() else Moment.START
    request = ContextRequest(
        Moment(moment) if moment else when, Occasion(occasion), text,
        str((folder or Path.cwd()).absolute()), session, budget, tuple(Part(part) for part in parts), lexical,
    )  # fmt: skip
    block = _built(run, request, by_itself=no_daemon)
    changed = write_snapshot(output, block) if output else None
    record = {**_context_record(block), "output": str(output) if output else None, "changed": changed}
    if explain:
        run.answer(record, lambda paper: _render_explained(paper, block))
    else:
        run.answer(record, lambda paper: _render_context(paper, block, output=output, changed=changed))
    write_state(run.settings.home, session, block.state)


def _built(run: Run, request: ContextRequest, *, by_itself: bool) -> ContextBlock:
    found = None if by_itself else ask_daemon(run, "context", request, ContextBlock)
    if found:
        return found
    from nacre.context.on_request import context_for  # 150 ms that the daemon spares

    return context_for(run.home, request)


def _context_record(block: ContextBlock) -> Record:
    """The answer of ``context``."""
    return {
        "context": block.text,
        "project": block.project,
        "gate": block.gate,
        "tokens": block.tokens,
        "items": [
            {
                "part": item.part.value, "ref": item.ref, "text": item.text, "tokens": item.tokens,
                "date": stamp(item.date), "score": item.score, "why": item.why,
            }
            for item in block.items
        ],
        "left_out": [{"part": one.part.value, "ref": one.ref, "why": one.why} for one in block.left_out],
        "lanes": lane_records(block.lanes),
        "took_ms": round(block.took_ms, 2),
    }  # fmt: skip


def _render_context(paper: Paper, block: ContextBlock, *, output: Path | None, changed: bool | None) -> None:
    """The block itself, or where it was written; nothing where there is nothing to tell."""
    if output:
        told = f"{block.tokens:,} tokens in {output}" if changed else f"{output} says that already"
        paper.line(bold("Written: ") if changed else "", told)
    elif block.text:
        paper.verbatim(block.text)


def _render_explained(paper: Paper, block: ContextBlock) -> None:
    """What is told and why, and what was left out and why."""
    head = f"{block.tokens:,} tokens" if block.text else "Nothing is told."
    paper.line(bold(head), dim(f"  {block.project or 'no project'}" + (f" · {block.gate}" if block.gate else "")))
    part = None
    for item in block.items:
        if item.part is not part:
            tokens = sum(one.tokens for one in block.items if one.part is item.part)
            paper.heading(f"{item.part.value} · {tokens:,} tokens")
            part = item.part
        paper.line(shorten(item.text.lstrip("-> "), _TEXT_CHARACTERS), indent=2, hang=2)
        score = f" · score {item.score:.2f}" if item.score is not None else ""
        paper.line(dim(f"{item.why} · {item.tokens} tokens{score}"), indent=4)
    if block.left_out:
        paper.heading("Left out")
        for (where, why), times in Counter((one.part.value, one.why) for one in block.left_out).items():
            paper.line(f"{where}: {why}", dim(f"  {times}" if times > 1 else ""), indent=2)
    paper.blank()
    lanes = f"lanes: {describe_lanes(block.lanes)} · " if block.lanes else ""
    paper.line(dim(f"{lanes}{block.took_ms:.0f} ms"), hang=2)
