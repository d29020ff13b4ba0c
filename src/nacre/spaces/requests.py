"""Requests about spaces, keys and what is shared."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.memories.requests import Reference
from nacre.platform.request import Request
from nacre.spaces.values import Raising, SpaceKind
from nacre.values.actor import Role
from nacre.values.memory import Scope

_NAME = r"^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$"
SpaceName = Annotated[str, Meta(description="The space: up to 64 lower-case letters, digits and . _ -", pattern=_NAME)]
Account = Annotated[str, Meta(description="The account: up to 64 lower-case letters, digits and . _ -", pattern=_NAME)]
Days = Annotated[int, Meta(description="Days for which the key holds.", ge=1, le=3650)]
Raise = Annotated[Raising, Meta(description="Who may raise memories of their own into it.")]
KeyId = Annotated[str, Meta(description="The key, by the eight characters after nacre_.", pattern="^[0-9a-f]{8}$")]
OfSpace = Annotated[str | None, Meta(description="The space; the one that is open where left out.")]


class SpaceRequest(Request, frozen=True, kw_only=True):
    """A space, by default the one that is open."""

    space: OfSpace = None


class CreateSpaceRequest(Request, frozen=True, kw_only=True):
    """Make a space, or change the rule of one."""

    space: SpaceName
    kind: Annotated[SpaceKind, Meta(description="Whose it is. A person's belongs to the account of its name.")] = (
        SpaceKind.TEAM
    )
    raising: Raise = Raising.MEMBERS


class AddMemberRequest(Request, frozen=True, kw_only=True):
    """Let an account into a space, or give it another role there."""

    space: SpaceName
    account: Account
    role: Annotated[Role, Meta(description="What it may do there.")] = Role.MEMBER


class RemoveMemberRequest(Request, frozen=True, kw_only=True):
    """Let an account into a space no more; its keys to it end."""

    space: SpaceName
    account: Account


class LogRequest(Request, frozen=True, kw_only=True):
    """What was done in the space that is open."""

    limit: Annotated[int, Meta(description="Lines at most.", ge=1, le=10_000)] = 50


class CreateKeyRequest(Request, frozen=True, kw_only=True):
    """Make a key to a space."""

    space: OfSpace = None
    account: Annotated[str | None, Meta(description="Whose key it is; yours where left out.")] = None
    role: Annotated[Role, Meta(description="The most that whoever has it may be there.")] = Role.MEMBER
    days: Days = 90


class RotateKeyRequest(Request, frozen=True, kw_only=True):
    """A new key in the place of another, which ends."""

    id: KeyId
    space: OfSpace = None
    days: Days = 90


class RevokeKeyRequest(Request, frozen=True, kw_only=True):
    """End a key."""

    id: KeyId
    space: OfSpace = None


class ShareRequest(Request, frozen=True, kw_only=True):
    """Carry a copy of a memory into another space."""

    reference: Reference
    space: SpaceName
    scope: Annotated[
        Scope | None,
        Meta(description="Who may see the copy. A private memory is shared only where this is said."),
    ] = None
