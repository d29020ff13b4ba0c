"""``nacre sessions export``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.paper import unsteered
from nacre.cli.run import Run
from nacre.cli.sessions.session import REFERENCE, ask_session, session_facts_record, session_view_record, turn_record
from nacre.home.territory import territory
from nacre.platform import named_files
from nacre.portability import readable_export

if TYPE_CHECKING:
    from nacre.views import SessionView


_STDOUT = "-"
_FORMS = ("markdown", "jsonl", "json")
_ENDINGS = {".md": "markdown", ".markdown": "markdown", ".jsonl": "jsonl", ".json": "json"}


@command(
    "export",
    examples=[
        "nacre sessions export > session.md",
        "nacre sessions export 7f3a1c2d --output talk.jsonl",
        "nacre sessions export 7f3a1c2d --format json | jq .turns[].text",
    ],
)
@REFERENCE
@click.option(
    "--format", "form", type=click.Choice(_FORMS),
    help="Without it, the ending of the file decides; without a file it is markdown.",
)  # fmt: skip
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, allow_dash=True), default=Path(_STDOUT), show_default=True,
    help="The file to write; - is standard output.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.pass_obj
def export_session(run: Run, reference: str | None, form: str | None, output: Path, force: bool) -> None:
    """Write one session to a file that others can read.

    ID is the session's id at its tool, or the beginning of it; without one, the last session of this folder. Secrets
    are taken out once more; who said what, and what draws on text from outside, stays visible.
    """
    to_stdout = str(output) == _STDOUT
    if to_stdout and run.as_json:
        raise click.UsageError("standard output can hold the session or the report: --output FILE, or --format json")
    chosen = form or _ENDINGS.get(output.suffix.lower(), "markdown")
    view = ask_session(run, reference, limit=None)
    data = "".join(f"{line}\n" for line in _lines(view, chosen)).encode("utf-8", "replace")
    if to_stdout:
        click.echo(data, nl=False)
        return
    path = output.expanduser().absolute()
    named_files.refuse_named(path, territory(run.settings))
    if path.exists() and not force and run.is_interactive:
        run.confirm(f"{path} exists. Overwrite it?")
        force = True
    with named_files.named_file(path, territory(run.settings), overwrite=force) as file:
        file.write(data)
    record = {
        "path": str(path), "format": chosen, "session": view.session.session.id, "turns": len(view.turns),
        "bytes": len(data),
    }  # fmt: skip
    run.answer(record, lambda paper: paper.line(f"Wrote {len(view.turns):,} turns to {path}"))


def _lines(view: SessionView, form: str) -> Iterable[str]:
    if form == "markdown":
        return readable_export.session_lines(view.session, [item.turn for item in view.turns], title=view.opening)
    if form == "json":
        return [unsteered(json.dumps(session_view_record(view, 0), ensure_ascii=False, default=str))]
    records = [session_facts_record(view), *(turn_record(item) for item in view.turns)]
    return [unsteered(json.dumps(record, ensure_ascii=False, default=str)) for record in records]
