"""The questions of ``nacre init``, on standard error: the answer alone goes to standard output."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.paper import bold, dim
from nacre.cli.render.words import count, size
from nacre.errors import InvalidInput
from nacre.settings import write_setting

if TYPE_CHECKING:
    from nacre.cli.run import Run
    from nacre.wiring.ways import FoundHost

_NONE = "none"


def choose_hosts(run: Run, found: Sequence[FoundHost]) -> list[str]:
    """Which of the tools on this machine are to be wired. Raises InvalidInput where there is none."""
    if not found:
        raise InvalidInput(
            "no tool of an agent was found on this machine", hint="name it: nacre init --host NAME; nacre init --help"
        )
    paper = run.paper(stderr=True)
    paper.line("nacre plugs into your agents' tools: they start knowing what matters, and leave what they learn.")
    paper.heading("Found on this machine")
    rows = [(f"{number:>4}", one.host.label, dim(_told(one))) for number, one in enumerate(found, start=1)]
    paper.table(rows)
    click.echo(f"\n{paper.text()}", err=True)
    while True:
        said = str(click.prompt("Which ones? Numbers, all or none", default="all", err=True)).strip().lower()
        chosen = _numbers(said, len(found))
        if chosen is not None:
            return [found[number - 1].host.name for number in chosen]
        click.echo(f"Type numbers from 1 to {len(found)}, such as 1,2; or all, or none.", err=True)


def offer_first_reading(run: Run) -> None:
    """Where nothing was read yet: tell what there is to read and what that takes, and do it if it is wanted."""
    from nacre.setup import examples, first_ingest

    if examples.has_others(run.home):
        return
    found = first_ingest.look(run.home)
    if not found.files:
        return
    paper = run.paper(stderr=True)
    paper.line(bold("Your agents' sessions"))
    paper.line(f"{count(found.files, 'transcript')} of {size(found.bytes)} can be read; they stay where they are.")
    if found.estimate:
        from nacre.cli.render.spending import render_estimate

        render_estimate(paper, found.estimate)
    else:
        paper.line(dim("No language model is set, so it costs nothing: rules learn from them. nacre setup sets one."))
    click.echo(f"\n{paper.text()}", nl=False, err=True)
    recent = f"week ({count(len(found.recent), 'transcript')} of the last 7 days), " if found.recent else ""
    said = click.prompt(
        f"Read them now? all, {recent}later", default="all", err=True, show_choices=False,
        type=click.Choice(["all", "week", "later"] if found.recent else ["all", "later"]),
    )  # fmt: skip
    if said != "all":  # the daemon follows what is new, and leaves to the owner what was put off
        write_setting(run.settings.config, "watch.changed_since", _since(run, said).isoformat(timespec="milliseconds"))
    if said == "later":
        click.echo("New sessions are read as they happen; nacre ingest reads the others whenever you like.", err=True)
    else:
        _read(run, found.recent if said == "week" else ())


def _since(run: Run, said: str) -> datetime:
    from nacre.setup.first_ingest import RECENT

    return run.home.clock() - (RECENT if said == "week" else timedelta())


def _read(run: Run, paths: Sequence[Path]) -> None:
    from nacre.cli.render.quickstart import render_quickstart
    from nacre.cli.render.reports import render_ingest
    from nacre.ingestion.ingest import ingest
    from nacre.ingestion.requests import IngestOptions
    from nacre.setup.quickstart import run_quickstart

    with progress.shown(run) as notify:
        if paths:
            report = ingest(run.home, IngestOptions(paths=tuple(paths), remember_paths=False), notify)
            run.answer({}, lambda paper: render_ingest(paper, report, searched=False))
        else:
            result = run_quickstart(run.home, notify)
            run.answer({}, lambda paper: render_quickstart(paper, result, run.settings.vault))


def _numbers(said: str, most: int) -> list[int] | None:
    """The numbers that were typed; ``None`` where that is nothing of the kind."""
    if said in ("all", ""):
        return list(range(1, most + 1))
    if said in (_NONE, "0"):
        return []
    parts = said.replace(",", " ").split()
    if not all(part.isdecimal() and 1 <= int(part) <= most for part in parts):
        return None
    return list(dict.fromkeys(int(part) for part in parts))


def _told(one: FoundHost) -> str:
    parts = [one.program or "", "wired already" if one.is_wired else ""]
    return ", ".join(part for part in parts if part)


def offer_to_forget_examples(run: Run) -> None:
    """Where a first look brought example sessions along: take them out, if wanted, before agents are told them."""
    from nacre.setup import examples

    if not examples.present(run.home):
        return
    click.echo("\nYour memory holds the example sessions of nacre quickstart, and what they taught.", err=True)
    if click.confirm("Take them out?", default=True, err=True):
        examples.forget(run.home, examples.plan_to_forget(run.home))
        click.echo("Gone. nacre recall answers from your own sessions now.", err=True)
    else:
        click.echo("nacre forget --examples takes them out whenever you like.", err=True)
