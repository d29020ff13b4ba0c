"""``nacre extract``."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import TEXT, command
from nacre.cli.options import TRACE_PROMPTS
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.extraction.propose import Proposal
    from nacre.extraction.requests import ProposalRequest

_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
_NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@command(
    "extract",
    examples=[
        "nacre extract session.jsonl",
        "nacre extract --session 7f3a --model anthropic:claude-haiku-5-5",
        "cat meeting.txt | nacre extract - --markdown --output meeting.md",
    ],
)
@click.argument("path", required=False, type=_FILE)
@click.option("--session", type=TEXT, help="One session: of PATH, or without PATH of those that were read already.")
@click.option("--model", type=TEXT, help="The language model, as provider:model; none extracts by rules.")
@click.option("--whole", is_flag=True, help="Show the model each session as a whole, however long it is.")
@click.option("--chunk", "in_chunks", is_flag=True, help="Show the model parts of sessions only.")
@click.option("--user-only", is_flag=True, help="Show the model what you said, and nothing of the agent's.")
@click.option("--no-related", is_flag=True, help="Do not show the model what is known of the topic.")
@click.option("--markdown", is_flag=True, help="Answer in Markdown.")
@TRACE_PROMPTS
@click.option("--output", type=_NEW_FILE, help="Write the answer there: Markdown, or JSON with --json.")
@click.pass_obj
def extract(  # noqa: PLR0913 - one parameter an option
    run: Run, path: Path | None, session: str | None, model: str | None, whole: bool, in_chunks: bool,
    user_only: bool, no_related: bool, markdown: bool, output: Path | None,
) -> None:  # fmt: skip
    """Show what would be learned from a transcript, and store nothing.

    PATH is a transcript, or - for standard input. The language model that is set for extraction does it, in the
    foreground; without one the rules do, and where it fails they do what it left.
    """
    from nacre.extraction.propose import propose
    from nacre.extraction.requests import ProposalRequest, Way

    if whole and in_chunks:
        raise click.UsageError("a session is shown as a whole or in chunks: give one of --whole and --chunk")
    if markdown and run.as_json:
        raise click.UsageError("the answer is Markdown or JSON: give one of --markdown and --json")
    if path is None and not session:
        raise click.UsageError("say what to extract from: a transcript, - for standard input, or --session")
    if output and output.exists():
        raise click.UsageError(f"{output} exists already: name another file, or remove it")
    way = Way.WHOLE if whole else Way.CHUNKS if in_chunks else Way.FITTING
    with _readable(path) as file, progress.shown(run) as notify:
        wanted = ProposalRequest(
            path=file, session=session, model=model, way=way, user_only=user_only, related=not no_related
        )
        found = propose(run.home, wanted, notify or (lambda _: None))
    run.warnings += _warnings(found)
    _answer(run, found, wanted, output, markdown=markdown)


def _answer(
    run: Run, found: list[Proposal], wanted: ProposalRequest, output: Path | None, *, markdown: bool
) -> None:  # fmt: skip
    from nacre.cli.records.extracting import proposals_record
    from nacre.cli.render.extracting import as_markdown, render_proposals

    record = proposals_record(found)
    if output:
        text = json.dumps(record, ensure_ascii=False, indent=1) + "\n" if run.as_json else as_markdown(found)
        output.write_text(text, encoding="utf-8")
        number = sum(len(one.candidates) for one in found)
        run.answer(
            {"path": str(output), "memories": number},
            lambda paper: paper.line(f"Wrote {number} {'memory' if number == 1 else 'memories'} to {output}"),
        )
    elif markdown:
        run.answer(record, lambda paper: paper.verbatim(as_markdown(found).removesuffix("\n")))
    else:
        run.answer(record, lambda paper: render_proposals(paper, found, is_asked_for_rules=wanted.model == "none"))


def _warnings(found: list[Proposal]) -> list[str]:
    """What a model did not do, once."""
    failed = [one.asked for one in found if one.asked and one.asked.by_rules]
    told = dict.fromkeys((one.problem or "the model gave no answer", one.hint) for one in failed)
    parts = sum(one.by_rules for one in failed)
    return [
        f"{problem}; {parts} part{'' if parts == 1 else 's'} went by rules{f' ({hint})' if hint else ''}"
        for problem, hint in told
    ]


@contextmanager
def _readable(path: Path | None) -> Iterator[Path | None]:
    """A file to read; standard input is written to one first, since formats are told by looking at both ends."""
    if path is None or str(path) != "-":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="nacre-extract-") as folder:
        file = Path(folder) / "standard-input"
        file.write_bytes(sys.stdin.buffer.read())
        yield file
