"""What whoever asks may do in the space on a server that is open, and the log of what they did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nacre.errors import NacreError, NotAllowed, Unavailable
from nacre.home.home import Home
from nacre.values.actor import Role

DONE = "done"
_NOTE_THEMSELVES = ("spaces-", "keys-", "share")
"""They note what they were about, in the spaces that they concern."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Who asks, and in which role. ``kind`` and ``raising`` are the space's; ``None`` where the tenant is none."""

    account: str
    space: str
    role: Role
    kind: str | None
    raising: str | None


def standing(home: Home) -> Standing:
    """How whoever asks stands to the space that is open, as the server has it now.

    Raises Unavailable where the memory is in a file, NotAllowed where they do not belong to it (any more).
    """
    require_server(home)
    space = home.settings.text("storage.tenant")
    account = home.settings.text("storage.account") or space
    found = home.database.one("read_standing", account=account)
    if found is None:
        raise NotAllowed(f"{account} does not belong to the space {space}", hint="an owner lets you in")
    role, kind, raising = found
    return Standing(account, space, Role(role).at_most(home.actor.most), kind, raising)


def require_server(home: Home) -> None:
    """Raises Unavailable where the memory is in a file."""
    if not home.database.is_server:
        raise Unavailable(
            "this memory is in a file, and one person's",
            hint="spaces, roles and keys are for a memory on a server: docs/server.md",
        )


@contextmanager
def allowed(home: Home, operation: str, *, writes: bool, owners: bool) -> Iterator[None]:
    """Do an operation in the block. Raises NotAllowed for what the role does not allow.

    What writes, and what is refused, is in the space's audit log.
    """
    who = standing(home)
    if refusal := _refusal(who, operation, writes=writes, owners=owners):
        note(home, who, operation, outcome=refusal.code)
        raise refusal
    try:
        yield
    except NacreError as error:
        if writes:
            note(home, who, operation, outcome=error.code)
        raise
    if writes and not operation.startswith(_NOTE_THEMSELVES):
        note(home, who, operation)


def note(home: Home, who: Standing, action: str, subject: str = "", outcome: str = DONE) -> None:
    """A line of the audit log: ids and names, no texts."""
    home.database.one("note_in_audit_log", account=who.account, action=action, subject=subject, outcome=outcome)


def _refusal(who: Standing, operation: str, *, writes: bool, owners: bool) -> NotAllowed | None:
    hint = f"an owner of {who.space} gives roles: nacre spaces add {who.space} {who.account} --role …"
    if who.role is Role.READER and (writes or owners):
        return NotAllowed(f"{operation} writes, and {who.account} may only read {who.space}", hint=hint)
    if owners and who.role is not Role.OWNER:
        return NotAllowed(
            f"{operation} is for owners of {who.space}, and {who.account} is a {who.role} of it", hint=hint
        )
    return None
