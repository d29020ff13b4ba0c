"""``nacre context``."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import TEXT, command
from nacre.cli.formats import Record, stamp
from nacre.cli.memories.hits import describe_lanes, lane_records
from nacre.cli.operations import ask, is_empty
from nacre.cli.options import NO_DAEMON, tie_hint
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option, options
from nacre.cli.run import Run
from nacre.context import session_state, snapshot
from nacre.home.territory import territory
from nacre.text import passages
from nacre.values.context import HELD_OUT, LOOKED_FOR

if TYPE_CHECKING:
    from nacre.values.context import ContextBlock, LeftOut


_FOLDER = click.Path(file_okay=False, path_type=Path)
_TEXT_CHARACTERS = 100
_SUBJECT_CHARACTERS = 60
_MOST_NAMED = 3


@command(
    "context",
    examples=[
        "nacre context",
        'nacre context "why did we leave sqlite?" --explain',
        "nacre context --output CONTEXT.md --budget 1500",
    ],
)
@argument("context", "prompt", nargs=-1)
@click.option("--prompt", "asked", type=TEXT, help="The same; - reads it from standard input.")
@option(
    "context", "moment", default=None, show_default=False,
    help="As a session starts, or with a prompt; by default the latter with one.",
)  # fmt: skip
@option("context", "folder", type=_FOLDER, help="Where the agent works; by default, here.")
@options("context", "session", "occasion")
@option("context", "budget_tokens", "--budget")
@option("context", "parts", help="Only this part; may be given again.")
@option("context", "alone", "--lexical")
@click.option("--explain", is_flag=True, help="Why each thing is told, and what was left out.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it there, where it changed.")
@NO_DAEMON
@click.pass_obj
def context(  # noqa: PLR0913 - one parameter an option
    run: Run, /, prompt: tuple[str, ...], asked: str | None, moment: str | None, folder: Path | None,
    session: str | None, explain: bool, output: Path | None, no_daemon: bool, **wanted: Any,
) -> None:  # fmt: skip
    """Tell an agent what it should know, at its start or with a prompt.

    Prints nothing where nothing is worth telling; why not, where that may surprise, is said on standard error. With
    --output it is a file for agents that only read files.
    """
    text = sys.stdin.read() if asked == "-" else asked or " ".join(prompt)
    run.by_itself = no_daemon
    block: ContextBlock = ask(
        run, "context", moment=moment or ("prompt" if text.strip() else "start"), prompt=text,
        folder=str((folder or Path.cwd()).absolute()), session=session, **wanted,
    )  # fmt: skip
    changed = snapshot.write_snapshot(output, block, territory(run.settings)) if output else None
    record = {**_context_record(block), "output": str(output) if output else None, "changed": changed}
    if explain:
        run.answer(record, lambda paper: _render_explained(paper, block))
    else:
        run.answer(record, lambda paper: _render_context(paper, block, output=output, changed=changed))
        if not block.text and not run.as_json and block.gate in ("", LOOKED_FOR, HELD_OUT):
            place = str((folder or Path.cwd()).absolute())
            if block.gate == HELD_OUT:
                _say_nothing(run, HELD_OUT, "nacre usefulness shows the effect; the agent's own searches are answered")
            else:
                _say_nothing(run, *_why_nothing(run, block.project, place))
    session_state.write_state(run.settings.home, session, block.state)


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
        "left_out": [
            {"part": one.part.value, "ref": one.ref, "why": one.why, "subject": one.subject} for one in block.left_out
        ],
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


def _say_nothing(run: Run, why: str, hint: str) -> None:
    run.show(lambda paper: paper.line(dim(f"Nothing to tell: {why}."), hang=2))
    run.show(lambda paper: paper.line(dim(f"hint: {hint}")))


def _why_nothing(run: Run, project: str | None, folder: str) -> tuple[str, str]:
    """Why a context is empty, and what helps."""
    if is_empty(run):
        return "nothing is remembered yet", "nacre quickstart"
    if project:
        return f"nothing that is remembered of {project} fits", "--explain tells what was left out"
    namesake = ask(run, "place", folder=folder).namesake
    helps = tie_hint(namesake) if namesake else "nacre project list shows the projects"
    return f"{folder} belongs to no known project, and no memory that holds everywhere fits", helps


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
        paper.line(passages.shorten(item.text.lstrip("-> "), _TEXT_CHARACTERS), indent=2, hang=2)
        score = f" · score {item.score:.2f}" if item.score is not None else ""
        paper.line(dim(f"{item.why} · {item.tokens} tokens{score}"), indent=4)
    if block.left_out:
        paper.heading("Left out")
        _render_left_out(paper, block.left_out)
    paper.blank()
    lanes = f"lanes: {describe_lanes(block.lanes)} · " if block.lanes else ""
    paper.line(dim(f"{lanes}{block.took_ms:.0f} ms"), hang=2)


def _render_left_out(paper: Paper, left_out: Iterable[LeftOut]) -> None:
    """What was left out by why, and of memories the first by name."""
    alike: defaultdict[tuple[str, str], list[LeftOut]] = defaultdict(list)
    for one in left_out:
        alike[one.part.value, one.why].append(one)
    for (where, why), found in alike.items():
        paper.line(f"{where}: {why}", dim(f"  {len(found)}" if len(found) > 1 else ""), indent=2, hang=2)
        named = [passages.shorten(one.subject, _SUBJECT_CHARACTERS) for one in found if one.subject][:_MOST_NAMED]
        more = f" and {len(found) - len(named)} more" if len(found) > len(named) else ""
        if named:
            paper.line(dim(f"{'; '.join(named)}{more}"), indent=4)
