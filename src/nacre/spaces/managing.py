"""Make spaces and say who belongs to them; who owns a space says so, through a login that manages the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nacre.errors import Conflict, NotAllowed, NotFound
from nacre.home.home import Home
from nacre.home.standing import DONE, Standing, standing
from nacre.platform.ids import from_ms, to_ms
from nacre.platform.lazy import load
from nacre.spaces.requests import AddMemberRequest, CreateSpaceRequest, LogRequest, RemoveMemberRequest, SpaceRequest
from nacre.spaces.values import Member, Note, Raising, Space, SpaceKind
from nacre.values.actor import Role

if TYPE_CHECKING:
    from nacre.storage.postgres.registry import Registry


class Managed:
    """A space that one of its owners manages, in one transaction."""

    def __init__(self, registry: Registry, who: Standing, space: str, at: int) -> None:
        self.registry = registry
        self.who = who
        self.space = space
        self.at = at

    def note(self, action: str, subject: str) -> None:
        """A line of the space's audit log."""
        self.registry.run(
            "insert_note", at=self.at, space=self.space, account=self.who.account, action=action, subject=subject,
            outcome=DONE,
        )  # fmt: skip

    def role_of(self, account: str) -> Role:
        """What an account is there. Raises NotFound."""
        for (role,) in self.registry.all("read_role", space=self.space, account=account):
            return Role(role)
        raise NotFound(f"{account} does not belong to {self.space}", hint=f"nacre spaces add {self.space} {account}")


@contextmanager
def registry_of(home: Home) -> Iterator[Registry]:
    """The registry of a home's server, for the block."""
    opened: Registry = load("nacre.storage.postgres.registry:Registry")(home.settings.server)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def managed(home: Home, space: str | None) -> Iterator[Managed]:
    """A space, by default the one that is open, for whoever owns it. Raises NotAllowed, NotFound."""
    who = standing(home)
    name = space or who.space
    with registry_of(home) as registry, registry.transaction():
        if not registry.all("lock_space", space=name):
            raise NotFound(f"there is no space {name}", hint=f"nacre spaces create {name} makes it")
        held = registry.all("read_role", space=name, account=who.account)
        role = Role(held[0][0]).at_most(home.actor.most) if held else None
        if role is not Role.OWNER:
            raise NotAllowed(f"{who.account} does not own {name}", hint="ask one of its owners: nacre spaces members")
        yield Managed(registry, who, name, to_ms(home.now()) or 0)


def list_spaces(home: Home) -> list[Space]:
    """The spaces of whoever asks."""
    who = standing(home)
    read = home.settings.texts("storage.spaces")
    return [
        Space(name, SpaceKind(kind), Raising(raising), Role(role), name == who.space, name in read)
        for name, kind, raising, role in home.database.all("list_spaces", account=who.account)
    ]


def create_space(home: Home, asked: CreateSpaceRequest) -> Space:
    """Make a space; whoever makes it owns it, but for a person's, which is that person's.

    Raises Conflict where there is one, or memories of an account that is called so.
    """
    who = standing(home)
    owner = asked.space if asked.kind is SpaceKind.PERSON else who.account
    at = to_ms(home.now()) or 0
    with registry_of(home) as registry:
        if owner != asked.space and registry.is_used(asked.space):
            raise Conflict(f"{asked.space} is a memory of its own already", hint="take another name")
        with registry.transaction():
            made = registry.run(
                "insert_space", space=asked.space, kind=asked.kind.value, raising=asked.raising.value, at=at
            )
            if not made:
                raise Conflict(f"there is a space {asked.space} already", hint="nacre spaces list shows yours")
            held = Managed(registry, who, asked.space, at)
            _let_in(held, owner, Role.OWNER)
            held.note("spaces-create", asked.space)
    return Space(asked.space, asked.kind, asked.raising, Role.OWNER, asked.space == who.space)


def list_members(home: Home, asked: SpaceRequest) -> list[Member]:
    """Who belongs to a space. Raises NotAllowed to who does not own it."""
    with managed(home, asked.space) as held:
        return _members(held)


def add_member(home: Home, asked: AddMemberRequest) -> list[Member]:
    """Let an account in, or give it another role; returns who belongs to the space. Raises NotAllowed, Conflict."""
    with managed(home, asked.space) as held:
        _let_in(held, asked.account, asked.role)
        held.note("spaces-add", f"{asked.account} {asked.role}")
        return _owned(_members(held))


def remove_member(home: Home, asked: RemoveMemberRequest) -> list[Member]:
    """Let an account in no more, and end its keys; returns who is left. Raises NotAllowed, NotFound, Conflict."""
    with managed(home, asked.space) as held:
        held.role_of(asked.account)
        held.registry.run("revoke_keys_of", space=held.space, account=asked.account, at=held.at)
        held.registry.run("delete_member", space=held.space, account=asked.account)
        held.note("spaces-remove", asked.account)
        return _owned(_members(held))


def list_log(home: Home, asked: LogRequest) -> list[Note]:
    """What was done in the space that is open, the newest first."""
    standing(home)
    return [Note(from_ms(at), *told) for at, *told in home.database.all("list_audit_log", most=asked.limit)]


def _let_in(held: Managed, account: str, role: Role) -> None:
    held.registry.run("insert_account", account=account, at=held.at)
    held.registry.run("set_member", space=held.space, account=account, role=role.value, at=held.at)


def _members(held: Managed) -> list[Member]:
    found = held.registry.all("list_members", space=held.space)
    return [Member(account, Role(role), from_ms(since)) for account, role, since in found]


def _owned(members: list[Member]) -> list[Member]:
    """Raises Conflict where nobody owns the space any more; nothing is changed then."""
    if not any(one.role is Role.OWNER for one in members):
        raise Conflict("somebody has to own the space", hint="make another account its owner first")
    return members
