"""The ``nacre server`` commands for keys, sharing and spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from nacre.base.ids import utc_now
from nacre.cli.command import TEXT, DefaultGroup, Group, Paper, Run, bold, command, dim
from nacre.cli.options import argument, day, minute, option, perform, short_id
from nacre_server import spaces as memories_spaces

if TYPE_CHECKING:
    from nacre_server.spaces import Key, Member, NewKey, Note, Shared, Space

server = Group(
    "server",
    help="Share memory through a server: spaces, keys, and a copy on this machine.",
    examples=[
        "nacre server remote add https://memory.example.com",
        "nacre server spaces",
        "nacre server share 5f0c2a4d --with team:platform",
    ],
)
"""The command group. Its commands are in the entry-point group ``nacre.commands.server``."""


# ----------------------------------------------------------------------------
# ``nacre server keys``.


@click.group(
    "keys",
    cls=DefaultGroup,
    examples=[
        "nacre server keys",
        "nacre server keys create --role reader --days 30",
        "nacre server keys revoke 3f9a01bc",
    ],
)
@option("keys", "space")
def keys(run: Run, space: str | None) -> None:
    """Show the keys that give programs access to a space on a server.

    You must own the space. Each key is listed with its account and expiry.
    """
    all_keys = perform(run, memories_spaces.list_keys, space=space)
    run.answer({"keys": all_keys}, lambda paper: _render_keys(paper, all_keys))


@keys.command(
    "create",
    examples=[
        "nacre server keys create --role reader",
        "nacre server keys create --space ferry-team --account build-bot --role service --days 30",
    ],
)
@option("keys-create", "space", "account", "role", "days")
def create(run: Run, /, **fields: Any) -> None:
    """Create a key.

    It is shown only once, because the server stores only its hash. A client that sends it to nacre
    serve as Authorization: Bearer works in that space as an agent, with the role of the account or
    the key, whichever allows less.
    """
    new_key = perform(run, memories_spaces.create_key, **fields)
    run.answer(new_key, lambda paper: _render_new(paper, new_key))


@keys.command("revoke", examples=["nacre server keys revoke 3f9a01bc"])
@argument("keys-revoke", "id", metavar="KEY")
@option("keys-revoke", "space")
def revoke(run: Run, /, **fields: Any) -> None:
    """Revoke a key."""
    key = perform(run, memories_spaces.revoke_key, **fields)
    run.answer(
        key,
        lambda paper: paper.line("Revoked the key ", bold(key.id), f" of {key.account}."),
    )


def _render_keys(paper: Paper, all_keys: Sequence[Key]) -> None:
    if not all_keys:
        paper.line("There are no keys.")
        return
    rows = [
        (
            bold(f"nacre_{key.id}_…"),
            key.account,
            key.role,
            _state(key),
            dim(day(key.last_used) or "never used"),
        )
        for key in all_keys
    ]
    paper.table(rows, header=("key", "account", "at most", "holds", "last used"))


def _state(key: Key) -> str:
    if key.revoked:
        return f"ended {day(key.revoked)}"
    is_over = key.expires is not None and key.expires <= utc_now()
    return f"{'expired' if is_over else 'until'} {day(key.expires)}"


def _render_new(paper: Paper, new_key: NewKey) -> None:
    key = new_key.key
    paper.line(
        f"A key to {key.space} for {key.account}, at most {key.role}, until {day(key.expires)}:"
    )
    paper.verbatim(new_key.secret)
    paper.note("It is shown only once.")


# ----------------------------------------------------------------------------
# ``nacre server share``.


@command(
    "share",
    examples=[
        "nacre server share 5f0c2a4d --with ferry-team --as personal",
        "nacre server share 5f0c2a4d --with acme --as public",
    ],
)
@argument("share", "reference", metavar="ID")
@option("share", "space", "--with", metavar="SPACE")
@option("share", "scope", "--as")
def share(run: Run, /, **fields: Any) -> None:
    """Copy a memory into the space of a team or an organisation.

    The space's rule determines who can do this. Your memory stays, and sharing it again updates the
    copy. Private memories need --as. The audit logs of both spaces record it.
    """
    copy = perform(run, memories_spaces.share, **fields)
    run.answer(copy, lambda paper: _render_share(paper, copy))


def _render_share(paper: Paper, copy: Shared) -> None:
    how = "Shared with" if copy.is_new else "Up to date in"
    paper.line(f"{how} ", bold(copy.space), f"  {copy.memory.subject}", hang=2)
    paper.note(f"{short_id(copy.memory)}, {copy.memory.scope}", indent=2)


# ----------------------------------------------------------------------------
# ``nacre server spaces``.


@click.group(
    "spaces",
    cls=DefaultGroup,
    examples=[
        "nacre server spaces",
        "nacre server spaces create ferry-team",
        "nacre server spaces members ferry-team --add anna --role member",
    ],
)
def spaces(run: Run) -> None:
    """Show shared spaces on a server and their members.

    A space is the memory of a person, a team or an organisation. You write to your own space
    (storage.tenant), and recall also reads the spaces in storage.spaces. nacre server share copies
    a memory into a space.
    """
    own_spaces = perform(run, memories_spaces.list_spaces)
    run.answer({"spaces": own_spaces}, _render_spaces, own_spaces)


@spaces.command(
    "create",
    examples=[
        "nacre server spaces create ferry-team",
        "nacre server spaces create anna --kind person",
        "nacre server spaces create acme --kind organisation --raise owners",
    ],
)
@argument("spaces-create", "space", metavar="SPACE")
@option("spaces-create", "kind")
@option("spaces-create", "raising", "--raise")
def create_spaces(run: Run, /, **fields: Any) -> None:
    """Create a space that you own.

    A person's space belongs to the account of the same name. This needs the login that owns the database.
    """
    space = perform(run, memories_spaces.create_space, **fields)
    run.answer(
        space,
        lambda paper: paper.line("Created the space ", bold(space.name), f" of a {space.kind}."),
    )


@spaces.command(
    "members",
    examples=[
        "nacre server spaces members ferry-team",
        "nacre server spaces members ferry-team --add build-bot --role service",
        "nacre server spaces members ferry-team --remove anna",
    ],
)
@argument("spaces-members", "space", metavar="[SPACE]", required=False)
@click.option("--add", metavar="ACCOUNT", type=TEXT, help="Add an account, or change its role.")
@option("spaces-add", "role")
@click.option(
    "--remove", metavar="ACCOUNT", type=TEXT, help="Remove an account and revoke its keys."
)
def members(run: Run, space: str | None, add: str | None, role: str, remove: str | None) -> None:
    """List, add or remove the members of a space that you own.

    Owners have all rights and manage members. Members can read and write, and so can services,
    which are accounts for programs. Readers can only read.
    """
    if add and remove:
        raise click.UsageError("--add and --remove cannot be combined")
    if (add or remove) and not space:
        raise click.UsageError(
            "SPACE is required with --add and --remove", click.get_current_context()
        )
    accounts: list[Member]
    if add:
        accounts = perform(run, memories_spaces.add_member, space=space, account=add, role=role)
    elif remove:
        accounts = perform(run, memories_spaces.remove_member, space=space, account=remove)
    else:
        accounts = perform(run, memories_spaces.list_members, space=space)
    rows = [(bold(member.account), member.role, dim(day(member.since))) for member in accounts]
    record = {"members": accounts}
    run.answer(record, lambda paper: paper.table(rows, header=("account", "role", "since")))


@spaces.command(
    "log", examples=["nacre server spaces log", "nacre server spaces log --limit 200 --json"]
)
@option("spaces-log", "limit")
def log(run: Run, limit: int) -> None:
    """List the operations in your space, newest first, without texts."""
    notes = perform(run, memories_spaces.list_log, limit=limit)
    run.answer({"log": notes}, lambda paper: _render_log(paper, notes))


def _render_spaces(paper: Paper, own_spaces: Sequence[Space]) -> None:
    if not own_spaces:
        paper.line("You belong to no space.")
        paper.note(
            "nacre server spaces create NAME creates one. Without a space, this memory is only yours.",
            indent=2,
        )
        return
    rows = [
        (
            bold(space.name),
            space.kind,
            space.role,
            "written to" if space.is_own else "read" if space.is_read else "",
            dim(f"{space.raising} raise"),
        )
        for space in own_spaces
    ]
    paper.table(rows, header=("space", "of a", "you are", "here", "rule"), drop=(4,))


def _render_log(paper: Paper, notes: Sequence[Note]) -> None:
    if not notes:
        paper.line("The audit log is empty.")
        return
    rows = [
        (dim(minute(note.at)), note.account, bold(note.action), note.subject, note.outcome)
        for note in notes
    ]
    paper.table(rows, header=("when", "account", "did", "about", "outcome"))
