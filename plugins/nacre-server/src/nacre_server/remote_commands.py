"""The ``nacre server remote`` and ``nacre data move`` commands."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from nacre.base.json import to_plain
from nacre.cli.command import Command, DefaultGroup, Paper, Run, bold, dim
from nacre.cli.options import YES, argument, ask, count, flag, option, perform, size
from nacre.cli.writer import MAX_KEY_CHARACTERS, check_key
from nacre.errors import NacreError
from nacre.home import views
from nacre_server import move as care_move
from nacre_server import remote as connection

if TYPE_CHECKING:
    from nacre_server.move import MoveReport
    from nacre_server.remote import Exchanged

_MOST = 10


@click.group(
    "remote",
    cls=DefaultGroup,
    examples=[
        "nacre server remote add https://memory.example.org",
        "nacre server remote",
        "nacre server remote remove",
    ],
)
def remote(run: Run) -> None:
    """Keep this machine in sync with your memory on a server.

    Memories are sent and received, and merged as in nacre sync. Sessions are only sent. Secrets are
    removed before anything leaves this machine. Agents get their context from this machine, even
    when the server is unreachable.
    """
    standing = perform(run, connection.show_remote)

    def render(paper: Paper) -> None:
        paper.line(bold(standing.url), dim(f", space {standing.space}" if standing.space else ""))
        if standing.problem:
            paper.line(f"Not in sync: {standing.problem}", indent=2)
            paper.note(standing.hint, indent=2)
        paper.line(f"last in sync: {standing.succeeded or 'never'}", indent=2)
        sessions = (
            f"turns to send: {standing.waiting_turns:,}"
            if standing.private
            else "private memories and sessions stay"
        )
        paper.note(f"{count(standing.documents, 'document')}; {sessions}", indent=2)

    run.answer(standing, render)


@remote.command(
    "add",
    examples=[
        "nacre server remote add https://memory.example.org",
        "pass show nacre-key | nacre server remote add https://memory.example.org --yes",
        "nacre server remote add https://memory.example.org --no-private",
    ],
)
@argument("remote-add", "url", metavar="URL")
@click.option(
    "--private/--no-private",
    default=True,
    help="Also send private memories and sessions, or only personal and public memories.",
)
@YES
def add(run: Run, url: str, private: bool, yes: bool) -> None:
    """Sync this home with your space on a server.

    The key is asked for, or read from standard input or NACRE_REMOTE_KEY. An owner of the space
    creates it there with nacre server keys create --role owner. nacre serve --http must be running
    there.
    """
    run.keeps_history = False
    place = connection.check_url(url)
    key = _key(run)
    listing = ask(run, views.Listing, "list", limit=1)
    what = (
        f"your memories ({listing.total:,}) and sessions"
        if private
        else "memories that are not private"
    )
    run.confirm(
        f"Send {what} to {place}, and keep both in sync?",
        yes=yes,
        refusal="memories leave this machine: confirm with --yes",
    )
    result = perform(run, connection.add_remote, url=url, key=key, private=private)
    run.answer(result, lambda paper: _render_exchange(paper, result, is_first=True))


@remote.command("sync", examples=["nacre server remote sync", "nacre server remote sync --json"])
@flag("--quiet", "Print nothing. nacre server remote shows the outcome.")
def sync(run: Run, quiet: bool) -> None:
    """Sync with the server now.

    nacre serve does it every minute, and commands do it in the background.
    """
    run.keeps_history = False
    if quiet:
        with suppress(NacreError):
            connection.exchange(run.home)
        return
    result = perform(run, connection.exchange)
    run.home.problems[:] = result.problems
    run.answer(result, lambda paper: _render_exchange(paper, result))


@remote.command(
    "remove", examples=["nacre server remote remove", "nacre server remote remove --yes"]
)
@YES
def remove(run: Run, yes: bool) -> None:
    """Stop syncing with the server.

    Both sides keep their contents.
    """
    if run.is_interactive and not yes:
        run.confirm("Forget the server and its key?")
    standing = perform(run, connection.remove_remote)
    run.answer(
        standing,
        lambda paper: paper.line(
            f"Sync with {standing.url} has stopped. Both sides keep their contents."
        ),
    )


def _key(run: Run) -> str:
    if run.settings.environ.get(connection.KEY):
        return ""
    if run.is_interactive:
        return check_key(
            str(click.prompt("Key (not shown)", hide_input=True, err=True)).strip(),
            "what you typed",
        )
    return check_key(sys.stdin.read(MAX_KEY_CHARACTERS).strip(), "standard input")


def _render_exchange(paper: Paper, result: Exchanged, *, is_first: bool = False) -> None:
    counts = (
        ("sent", result.sent, "document"),
        ("received", result.received, "document"),
        ("sent", result.turns, "turn"),
    )
    summary = ", ".join(f"{word} {count(number, what)}" for word, number, what in counts if number)
    paper.line(
        bold(f"In sync with {result.url}"), f": {summary}." if summary else ": nothing was new."
    )
    for note in result.notes[:_MOST]:
        paper.line(
            f"merged: {note.subject or note.path or note.memory} ({note.outcome.value.replace('_', ' ')})",
            indent=2,
        )
    for path, why in result.held[:_MOST]:
        paper.line(f"not sent: {path} {why}", indent=2)
    if len(result.held) > _MOST:
        paper.note(f"and {len(result.held) - _MOST:,} more; --json lists them all", indent=2)
    if is_first:
        paper.note(
            "From now on, nacre serve keeps both in sync. Without it, commands do so occasionally.",
            indent=2,
        )


# ----------------------------------------------------------------------------
# ``nacre data move``.


@click.command(
    "move",
    cls=Command,
    examples=[
        "nacre data move --to postgresql://ada@db.example.org/nacre",
        "nacre data move --to postgresql://ada@db.example.org/nacre --tenant ada",
        "nacre data move --from postgresql://ada@db.example.org/nacre --tenant ada",
    ],
)
@option("move", "to", metavar="ADDRESS")
@option(
    "move", "source", "--from", metavar="ADDRESS", help="Bring the memory back from that server."
)
@option("move", "tenant", metavar="NAME")
@flag("--yes", "Do not ask.", "-y")
def move(run: Run, to: str | None, source: str | None, tenant: str | None, yes: bool) -> None:
    """Move your memory to a PostgreSQL server, or back.

    Memories with their files and history, sessions, links, vectors and usage are moved with the
    same ids. Both sides are compared before nacre uses the new one. The source stays unchanged. To
    continue an interrupted move, repeat the command. Exits with 1 if documents differ.
    """
    if to:
        question = f"Move your memory to {care_move.without_password(to)}, and use it there?"
        run.confirm(
            question, yes=yes, refusal="your memory leaves this machine: confirm with --yes"
        )
    report = perform(run, care_move.move, to=to, source=source, tenant=tenant)
    run.answer(
        {**to_plain(report), "is_same": report.is_same}, lambda paper: _render_move(paper, report)
    )
    if not report.is_same:
        run.exit_code = 1


def _render_move(paper: Paper, report: MoveReport) -> None:
    rows = report.rows
    paper.line(bold("Moved"), f" to {report.place}", dim(f", tenant {report.tenant}"))
    counts = [count(rows["memories"], "memory", "memories")]
    counts += [count(rows[f"{item}s"], item) for item in ("turn", "session", "link")]
    paper.line(", ".join(counts), indent=2)
    paper.note(
        f"{sum(rows.values()):,} rows of {sum(map(bool, rows.values()))} tables, the same in both",
        indent=2,
    )
    here, there = report.documents, report.documents_there
    same = "byte for byte the same" if here == there else f"{there.count:,} there: they differ"
    paper.note(f"{count(here.count, 'document')}, {size(here.bytes)}: {same}", indent=2)
    if report.is_in_use:
        paper.line(
            f"It is used there from now on. {report.kept} stays unchanged and is no longer read.",
            indent=2,
        )
    else:
        paper.line(f"Your memory is still used where it was: {report.left}", indent=2)
