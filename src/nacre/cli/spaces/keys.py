"""``nacre keys``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import DefaultGroup
from nacre.cli.formats import day
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option, options
from nacre.cli.run import Run
from nacre.platform.ids import utc_now
from nacre.platform.json_values import to_plain

if TYPE_CHECKING:
    from nacre.spaces.values import Key, NewKey


@click.group(
    "keys",
    cls=DefaultGroup,
    examples=["nacre keys", "nacre keys create --role reader --days 30", "nacre keys revoke 3f9a01bc"],
)
@click.pass_context
def keys(context: click.Context) -> None:
    """Look after the keys by which programs get into a space on a server."""
    if context.invoked_subcommand is None:
        _list(context.obj, None)


@keys.command("list", examples=["nacre keys list", "nacre keys list ferry-team --json"])
@argument("keys", "space", metavar="[SPACE]", required=False)
@click.pass_obj
def list_keys(run: Run, space: str | None) -> None:
    """List the keys to a space that you own: how they begin, whose they are, when they end."""
    _list(run, space)


@keys.command(
    "create",
    examples=["nacre keys create --role reader",
              "nacre keys create --space ferry-team --account build-bot --role service --days 30"],
)  # fmt: skip
@options("keys-create", "space", "account", "role", "days")
@click.pass_obj
def create(run: Run, /, **asked: Any) -> None:
    """Make a key; it is shown once, and the server keeps a hash of it.

    Whoever shows it to nacre serve as Authorization: Bearer works in that space, as an agent does, with the account's
    role there or the key's, whichever allows less.
    """
    _show_new(run, perform(run, "keys-create", **asked))


@keys.command("rotate", examples=["nacre keys rotate 3f9a01bc", "nacre keys rotate 3f9a01bc --days 30"])
@argument("keys-rotate", "id", metavar="KEY")
@options("keys-rotate", "space", "days")
@click.pass_obj
def rotate(run: Run, /, **asked: Any) -> None:
    """End a key, and make another in its place."""
    _show_new(run, perform(run, "keys-rotate", **asked))


@keys.command("revoke", examples=["nacre keys revoke 3f9a01bc"])
@argument("keys-revoke", "id", metavar="KEY")
@option("keys-revoke", "space")
@click.pass_obj
def revoke(run: Run, /, **asked: Any) -> None:
    """End a key."""
    ended: Key = perform(run, "keys-revoke", **asked)
    run.answer(to_plain(ended), lambda paper: paper.line("Ended: the key ", bold(ended.id), f" of {ended.account}."))


def _list(run: Run, space: str | None) -> None:
    found: list[Key] = perform(run, "keys", space=space)
    run.answer({"keys": [to_plain(one) for one in found]}, lambda paper: _render(paper, found))


def _render(paper: Paper, found: Sequence[Key]) -> None:
    if not found:
        paper.line("There is no key.")
        return
    rows = [
        (bold(f"nacre_{one.id}_…"), one.account, one.role, _state(one), dim(day(one.last_used) or "never used"))
        for one in found
    ]
    paper.table(rows, header=("key", "account", "at most", "holds", "last used"))


def _state(key: Key) -> str:
    if key.revoked:
        return f"ended {day(key.revoked)}"
    is_over = key.expires is not None and key.expires <= utc_now()
    return f"{'expired' if is_over else 'until'} {day(key.expires)}"


def _show_new(run: Run, made: NewKey) -> None:
    key = made.key

    def render(paper: Paper) -> None:
        paper.line(f"A key to {key.space} for {key.account}, at most {key.role}, until {day(key.expires)}:")
        paper.verbatim(made.secret)
        paper.line(dim("It is shown this once."))

    run.answer(to_plain(made), render)
