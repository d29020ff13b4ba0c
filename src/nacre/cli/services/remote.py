"""``nacre remote``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import DefaultGroup
from nacre.cli.formats import Record, count
from nacre.cli.models.auth import MOST_KEY_CHARACTERS, checked_key
from nacre.cli.operations import ask, perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument
from nacre.cli.run import Run
from nacre.remote import connection, exchange

if TYPE_CHECKING:
    from nacre.remote.values import Exchanged, RemoteStanding

_MOST = 10


@click.group(
    "remote", cls=DefaultGroup,
    examples=["nacre remote add https://memory.example.org", "nacre remote", "nacre remote remove"],
)  # fmt: skip
@click.pass_context
def remote(context: click.Context) -> None:
    """Keep this machine in step with your memory on a server.

    Memories go both ways, and are merged as in nacre sync; sessions go there. All of it is without secrets before it
    leaves. What agents are given comes from this machine, also when the server is away.
    """
    if context.invoked_subcommand is None:
        _show(context.obj)


@remote.command("show", examples=["nacre remote", "nacre remote show --json"])
@click.pass_obj
def show(run: Run) -> None:
    """Show which server it is, and when both were last in step."""
    _show(run)


@remote.command(
    "add",
    examples=["nacre remote add https://memory.example.org",
              "pass show nacre-key | nacre remote add https://memory.example.org --yes",
              "nacre remote add https://memory.example.org --no-private"],
)  # fmt: skip
@argument("remote-add", "url", metavar="URL")
@click.option(
    "--private/--no-private", default=True,
    help="Whether private memories and sessions go there, too. Else only memories that are personal or public do.",
)  # fmt: skip
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def add(run: Run, url: str, private: bool, yes: bool) -> None:
    """Keep this home in step with a space of yours on a server.

    The key is asked for, or read from standard input or NACRE_REMOTE_KEY; an owner of the space makes it there: nacre
    keys create --role owner. nacre serve --http must run there.
    """
    run.keeps_history = False
    place = connection.check_url(url)
    key = _key(run)
    run.confirm(_question(run, place, private=private), yes=yes, refusal="memories leave this machine: --yes says so")
    with progress.shown(run) as notify:
        done: Exchanged = perform(run, "remote-add", notify, url=url, key=key, private=private)
    run.answer(_record(done), lambda paper: _tell(paper, done, is_first=True))


@remote.command("sync", examples=["nacre remote sync", "nacre remote sync --json"])
@click.option("--quiet", is_flag=True, help="Say nothing; nacre remote tells how it ended.")
@click.pass_obj
def sync(run: Run, quiet: bool) -> None:
    """Exchange what is new, now.

    nacre serve does it every minute, and commands do it in the background.
    """
    run.keeps_history = False
    if quiet:
        exchange.exchange_quietly(run.home)
        return
    with progress.shown(run) as notify:
        done: Exchanged = perform(run, "remote-sync", notify)
    run.home.problems[:] = done.problems
    run.answer(_record(done), lambda paper: _tell(paper, done))


@remote.command("remove", examples=["nacre remote remove", "nacre remote remove --yes"])
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove(run: Run, yes: bool) -> None:
    """Be in step with the server no more.

    Here and there everything stays.
    """
    if run.is_interactive and not yes:
        run.confirm("Forget the server and the key to it?")
    known: RemoteStanding = perform(run, "remote-remove")
    run.answer(
        {"url": known.url},
        lambda paper: paper.line(f"In step with {known.url} no more. What it has stays there, and all of yours here."),
    )


def _key(run: Run) -> str:
    if run.settings.environ.get(connection.KEY):
        return ""
    if run.is_interactive:
        return checked_key(str(click.prompt("Key (not shown)", hide_input=True, err=True)).strip(), "what you typed")
    return checked_key(sys.stdin.read(MOST_KEY_CHARACTERS).strip(), "standard input")


def _question(run: Run, url: str, *, private: bool) -> str:
    found = ask(run, "list", limit=1)
    what = f"your memories ({found.total:,}) and sessions" if private else "memories that are not private"
    return f"Send {what} to {url}, and keep both in step?"


def _show(run: Run) -> None:
    known: RemoteStanding = perform(run, "remote")
    record = {
        "url": known.url, "space": known.space, "private": known.private, "succeeded": known.succeeded,
        "problem": known.problem or None, "hint": known.hint or None, "documents": known.documents,
        "waiting_turns": known.waiting_turns,
    }  # fmt: skip

    def tell(paper: Paper) -> None:
        paper.line(bold(known.url), dim(f", space {known.space}" if known.space else ""))
        if known.problem:
            paper.line(f"Not in step: {known.problem}", indent=2)
            paper.line(dim(known.hint), indent=2)
        paper.line(f"last in step: {known.succeeded or 'never'}", indent=2)
        sessions = f"turns to send: {known.waiting_turns:,}" if known.private else "private memories and sessions stay"
        paper.line(dim(f"{count(known.documents, 'document')}; {sessions}"), indent=2)

    run.answer(record, tell)


def _record(done: Exchanged) -> Record:
    return {
        "url": done.url, "space": done.space, "sent": done.sent, "received": done.received, "turns": done.turns,
        "notes": [{"outcome": note.outcome.value, "id": note.memory, "path": note.path} for note in done.notes],
        "held": [{"path": path, "reason": why} for path, why in done.held], "problems": list(done.problems),
    }  # fmt: skip


def _tell(paper: Paper, done: Exchanged, *, is_first: bool = False) -> None:
    parts = [f"{word} {count(number, what)}" for word, number, what in (
        ("sent", done.sent, "document"), ("received", done.received, "document"), ("sent", done.turns, "turn"),
    ) if number]  # fmt: skip
    told = ", ".join(parts)
    paper.line(bold(f"In step with {done.url}"), f": {told}." if told else ": nothing was new.")
    for note in done.notes[:_MOST]:
        paper.line(
            f"merged: {note.subject or note.path or note.memory} ({note.outcome.value.replace('_', ' ')})", indent=2
        )
    for path, why in done.held[:_MOST]:
        paper.line(f"not sent: {path} {why}", indent=2)
    if len(done.held) > _MOST:
        paper.line(dim(f"and {len(done.held) - _MOST:,} more; --json lists them all"), indent=2)
    if is_first:
        paper.line(dim("From now on nacre serve keeps both in step; without it, commands do in passing."), indent=2)
