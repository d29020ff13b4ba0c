"""``nacre spaces``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import DefaultGroup
from nacre.cli.formats import day, minute
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option, options
from nacre.cli.run import Run
from nacre.platform.json_values import to_plain

if TYPE_CHECKING:
    from nacre.spaces.values import Member, Note, Space


@click.group(
    "spaces",
    cls=DefaultGroup,
    examples=["nacre spaces", "nacre spaces create ferry-team", "nacre spaces add ferry-team anna --role member"],
)
@click.pass_context
def spaces(context: click.Context) -> None:
    """Tell whose memory you share on a server, and who belongs to it.

    A space is the memory of a person, a team or an organisation. You write to your own (storage.tenant); recall also
    reads those that storage.spaces names. nacre share carries a memory into one.
    """
    if context.invoked_subcommand is None:
        _list(context.obj)


@spaces.command("list", examples=["nacre spaces list", "nacre spaces list --json"])
@click.pass_obj
def list_spaces(run: Run) -> None:
    """List the spaces that you belong to."""
    _list(run)


@spaces.command(
    "create",
    examples=["nacre spaces create ferry-team", "nacre spaces create anna --kind person",
              "nacre spaces create acme --kind organisation --raise owners"],
)  # fmt: skip
@argument("spaces-create", "space", metavar="SPACE")
@option("spaces-create", "kind")
@option("spaces-create", "raising", "--raise")
@click.pass_obj
def create(run: Run, /, **asked: Any) -> None:
    """Make a space; you own it, and let others in.

    A person's belongs to the account that is called as the space is. It takes the login that owns the database.
    """
    made: Space = perform(run, "spaces-create", **asked)
    run.answer(to_plain(made), lambda paper: paper.line("Made: the space ", bold(made.name), f" of a {made.kind}."))


@spaces.command("members", examples=["nacre spaces members ferry-team", "nacre spaces members --json"])
@argument("spaces-members", "space", metavar="[SPACE]", required=False)
@click.pass_obj
def members(run: Run, space: str | None) -> None:
    """List who belongs to a space that you own."""
    _show_members(run, perform(run, "spaces-members", space=space))


@spaces.command(
    "add", examples=["nacre spaces add ferry-team anna", "nacre spaces add ferry-team build-bot --role service"]
)
@argument("spaces-add", "space", metavar="SPACE")
@argument("spaces-add", "account", metavar="ACCOUNT")
@option("spaces-add", "role")
@click.pass_obj
def add(run: Run, /, **asked: Any) -> None:
    """Let somebody into a space, or give them another role there.

    An owner does everything, and says who belongs to the space. A member reads and writes. A service does so for
    programs. A reader reads.
    """
    _show_members(run, perform(run, "spaces-add", **asked))


@spaces.command("remove", examples=["nacre spaces remove ferry-team anna"])
@argument("spaces-remove", "space", metavar="SPACE")
@argument("spaces-remove", "account", metavar="ACCOUNT")
@click.pass_obj
def remove(run: Run, /, **asked: Any) -> None:
    """Let somebody into a space no more; their keys to it end."""
    _show_members(run, perform(run, "spaces-remove", **asked))


@spaces.command("log", examples=["nacre spaces log", "nacre spaces log --limit 200 --json"])
@options("spaces-log", "limit")
@click.pass_obj
def log(run: Run, limit: int) -> None:
    """List who did what in your space, the newest first: operations and ids, no texts."""
    found: list[Note] = perform(run, "spaces-log", limit=limit)
    run.answer({"log": [to_plain(one) for one in found]}, lambda paper: _render_log(paper, found))


def _list(run: Run) -> None:
    found: list[Space] = perform(run, "spaces")
    run.answer({"spaces": [to_plain(one) for one in found]}, lambda paper: _render(paper, found))


def _render(paper: Paper, found: Sequence[Space]) -> None:
    if not found:
        paper.line("You belong to no space.")
        paper.line(dim("nacre spaces create NAME makes one; without any, this memory is yours alone."), indent=2)
        return
    rows = [
        (bold(one.name), one.kind, one.role, "written to" if one.is_own else "read" if one.is_read else "",
         dim(f"{one.raising} raise"))
        for one in found
    ]  # fmt: skip
    paper.table(rows, header=("space", "of a", "you are", "here", "rule"), drop=(4,))


def _show_members(run: Run, found: Sequence[Member]) -> None:
    rows = [(bold(one.account), one.role, dim(day(one.since))) for one in found]
    record = {"members": [to_plain(one) for one in found]}
    run.answer(record, lambda paper: paper.table(rows, header=("account", "role", "since")))


def _render_log(paper: Paper, found: Sequence[Note]) -> None:
    if not found:
        paper.line("Nothing was noted.")
        return
    rows = [(dim(minute(one.at)), one.account, bold(one.action), one.subject, one.outcome) for one in found]
    paper.table(rows, header=("when", "account", "did", "about", "outcome"))
