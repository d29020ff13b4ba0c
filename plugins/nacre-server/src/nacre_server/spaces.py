"""Spaces of a server: rights, members, keys, recall over several spaces, and sharing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from secrets import token_hex, token_urlsafe
from typing import Annotated, Any

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import from_ms, to_ms
from nacre.base.text import count_tokens, to_bytes
from nacre.errors import ConflictError, NacreError, NotAllowedError, NotFoundError, UnavailableError
from nacre.home.home import Home, open_database
from nacre.memories.store import get
from nacre.memories.tombstones import Barred
from nacre.memories.vectors import embed_pending
from nacre.operations import operation
from nacre.store.schema import records
from nacre.values.fields import Reference
from nacre.values.memory import Bearer, Memory, Role, Scope, Source
from nacre.values.recall import HitConfidence, Lane, LaneState, MemoryHit, RecallQuery, RecallResult
from nacre_server.connection import Registry

# -- Rights in a space ---------------------------------------------------------


DONE = "done"
_SELF_LOGGED = ("spaces-", "keys-", "share")
"""Prefixes of operations that write their own audit entries."""


@frozen
class Standing:
    """The caller and their role in the space."""

    account: str
    space: str
    role: Role
    kind: str | None
    """Kind of the space's owner, or ``None`` if the tenant is not a space."""

    raising: str | None
    """Who may share memories into the space."""


def standing(home: Home) -> Standing:
    """Return the caller's role in the home's space.

    Raises UnavailableError if the memory is in a file, or NotAllowedError for non-members.
    """
    if not home.database.server:
        raise UnavailableError(
            "this memory is in a file and belongs to one person",
            hint="to use spaces, roles and keys, keep the memory on a server: docs/server.md",
        )
    space = home.settings.text("storage.tenant")
    account = home.settings.text("storage.account") or space
    row = home.database.one("read_standing", account=account)
    if row is None:
        raise NotAllowedError(
            f"{account} does not belong to the space {space}", hint="ask an owner to add it"
        )
    role, kind, raising = row
    return Standing(account, space, Role(role).at_most(home.actor.most), kind, raising)


def note(home: Home, who: Standing, action: str, subject: str = "", outcome: str = DONE) -> None:
    """Append a line to the space's audit log. It must not quote memories."""
    home.database.one(
        "note_in_audit_log", account=who.account, action=action, subject=subject, outcome=outcome
    )


@contextmanager
def allowed(home: Home, operation: str, *, writes: bool, owners: bool) -> Iterator[None]:
    """Run the block, and log its writes in the space's audit log.

    Raises NotAllowedError if the caller's role does not allow the operation.
    """
    caller = standing(home)
    is_reader = caller.role is Role.READER
    if (owners and caller.role is not Role.OWNER) or (writes and is_reader):
        note(home, caller, operation, outcome=NotAllowedError.code)
        raise NotAllowedError(
            f"{caller.account} may only read {caller.space}"
            if is_reader
            else f"{operation} is only for owners of {caller.space}",
            hint=f"an owner can change the role: nacre server spaces members {caller.space} "
            f"--add {caller.account} --role …",
        )
    try:
        yield
    except NacreError as error:
        if writes:
            note(home, caller, operation, outcome=error.code)
        raise
    if writes and not operation.startswith(_SELF_LOGGED):
        note(home, caller, operation)


# -- Values --------------------------------------------------------------------


class SpaceKind(StrEnum):
    """The kind of owner of a space."""

    PERSON = "person"
    TEAM = "team"
    ORGANISATION = "organisation"


class Raising(StrEnum):
    """The role required to share memories into a space."""

    OWNERS = "owners"
    MEMBERS = "members"


@frozen
class Space:
    """A space and the account's role in it.

    ``is_own`` marks the space to which the account writes, and ``is_read`` those that recall also
    reads.
    """

    name: str
    kind: SpaceKind
    raising: Raising
    role: Role
    is_own: bool
    is_read: bool = False


@frozen
class Member:
    """A member of a space. ``since`` is the start of the membership."""

    account: str
    role: Role
    since: datetime | None


@frozen
class Key:
    """A key without its secret. ``id`` is the part after ``nacre_``."""

    id: str
    space: str
    account: str
    role: Role
    created: datetime | None
    expires: datetime | None
    revoked: datetime | None = None
    last_used: datetime | None = None


@frozen
class NewKey:
    """A new key. ``secret`` is shown only once, because the server stores its hash."""

    key: Key
    secret: str


@frozen
class Note:
    """A line of a space's audit log.

    ``subject`` contains ids and names, and ``outcome`` is ``done`` or an error code.
    """

    at: datetime | None
    account: str
    action: str
    subject: str
    outcome: str


@frozen
class Shared:
    """A memory that was shared into another space.

    ``is_new`` is False if an earlier copy was updated.
    """

    memory: Memory
    space: str
    is_new: bool


# -- Parameters ------------------------------------------------------------------


_NAME = r"^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$"
SpaceName = Annotated[
    str, bounds("The space: up to 64 lower-case letters, digits and . _ -", pattern=_NAME)
]
Account = Annotated[
    str,
    bounds("The account: up to 64 lower-case letters, digits and . _ -", pattern=_NAME),
]
OfSpace = Annotated[str | None, bounds("The space; default: the open space.")]


# -- Spaces and members --------------------------------------------------------
# The database login must be allowed to manage spaces, and the caller must own the space.


@frozen
class Managed:
    """A space that one of its owners (``who``) changes in the open transaction."""

    registry: Registry
    who: Standing
    space: str
    at: int

    def run(self, name: str, **values: Any) -> int:
        """Run a statement about the space, and return the number of changed rows."""
        return self.registry.run(name, space=self.space, at=self.at, **values)

    def note(self, action: str, subject: str) -> None:
        account = self.who.account
        self.run("insert_note", account=account, action=action, subject=subject, outcome=DONE)

    def role_of(self, account: str) -> Role:
        """Return an account's role in the space. Raises NotFoundError."""
        for (role,) in self.registry.all("read_role", space=self.space, account=account):
            return Role(role)
        raise NotFoundError(
            f"{account} is not a member of {self.space}",
            hint=f"nacre server spaces members {self.space} --add {account}",
        )


@contextmanager
def managed(home: Home, space: str | None) -> Iterator[Managed]:
    """Open a space, by default the current one, for changes.

    Raises NotFoundError, or NotAllowedError if the caller is not an owner.
    """
    caller = standing(home)
    name = space or caller.space
    with closing(Registry(home.settings.server)) as registry, registry.transaction():
        if not registry.all("lock_space", space=name):
            raise NotFoundError(
                f"there is no space {name}", hint=f"nacre server spaces create {name} creates it"
            )
        rows = registry.all("read_role", space=name, account=caller.account)
        role = Role(rows[0][0]).at_most(home.actor.most) if rows else None
        if role is not Role.OWNER:
            raise NotAllowedError(
                f"{caller.account} does not own {name}",
                hint="ask one of its owners",
            )
        yield Managed(registry, caller, name, home.now_ms())


@operation("spaces", by_key=True)
def list_spaces(home: Home) -> list[Space]:
    """List the spaces of the caller."""
    caller = standing(home)
    read_spaces = home.settings.texts("storage.spaces")
    return [
        Space(
            name,
            SpaceKind(kind),
            Raising(raising),
            Role(role),
            name == caller.space,
            name in read_spaces,
        )
        for name, kind, raising, role in home.database.all("list_spaces", account=caller.account)
    ]


@operation("spaces-create", writes=True, owners=True, command="server spaces create")
def create_space(
    home: Home,
    space: SpaceName,
    kind: Annotated[
        SpaceKind,
        bounds("The owning account. A personal space belongs to the account of the same name."),
    ] = SpaceKind.TEAM,
    raising: Annotated[
        Raising, bounds("The role required to share personal memories into the space.")
    ] = Raising.MEMBERS,
) -> Space:
    """Create a space. Its owner is the caller or, for a person's space, that person.

    Raises ConflictError if the space exists or its name belongs to another account's memories.
    """
    caller = standing(home)
    owner = space if kind is SpaceKind.PERSON else caller.account
    with closing(Registry(home.settings.server)) as registry:
        if owner != space and registry.is_used(space):
            raise ConflictError(f"{space} is already a separate memory", hint="choose another name")
        with registry.transaction():
            new = Managed(registry, caller, space, home.now_ms())
            if not new.run("insert_space", kind=kind.value, raising=raising.value):
                raise ConflictError(
                    f"there is already a space {space}", hint="nacre server spaces shows yours"
                )
            _set_member(new, owner, Role.OWNER)
            new.note("spaces-create", space)
    return Space(space, kind, raising, Role.OWNER, space == caller.space)


@operation("spaces-members")
def list_members(home: Home, space: OfSpace = None) -> list[Member]:
    """List the members of a space. Raises NotAllowedError unless the caller owns it."""
    with managed(home, space) as own:
        return _members(own)


@operation("spaces-add", writes=True, owners=True, command="server spaces members --add")
def add_member(
    home: Home,
    space: SpaceName,
    account: Account,
    role: Annotated[Role, bounds("The account's role in the space.")] = Role.MEMBER,
) -> list[Member]:
    """Add an account or change its role. Return the members. Raises NotAllowedError, ConflictError."""
    with managed(home, space) as own:
        _set_member(own, account, role)
        own.note("spaces-add", f"{account} {role}")
        return _changed_members(own)


@operation("spaces-remove", writes=True, owners=True, command="server spaces members --remove")
def remove_member(home: Home, space: SpaceName, account: Account) -> list[Member]:
    """Remove an account and revoke its keys. Return the remaining members.

    Raises NotAllowedError, NotFoundError, ConflictError.
    """
    with managed(home, space) as own:
        own.role_of(account)
        own.run("revoke_keys_of", account=account)
        own.run("delete_member", account=account)
        own.note("spaces-remove", account)
        return _changed_members(own)


@operation("spaces-log", by_key=True)
def list_log(
    home: Home,
    limit: Annotated[int, bounds("Maximum number of lines.", ge=1, le=10_000)] = 50,
) -> list[Note]:
    """List the audit log of the open space, newest first."""
    standing(home)
    return records(Note, home.database.all("list_audit_log", most=limit))


def _set_member(space: Managed, account: str, role: Role) -> None:
    space.run("insert_account", account=account)
    space.run("set_member", account=account, role=role.value)


def _members(space: Managed) -> list[Member]:
    return records(Member, space.registry.all("list_members", space=space.space))


def _changed_members(space: Managed) -> list[Member]:
    """Return the members, or raise ConflictError to undo the change if no owner is left."""
    members = _members(space)
    if not any(member.role is Role.OWNER for member in members):
        raise ConflictError("a space needs an owner", hint="make another account an owner first")
    return members


# -- Keys ----------------------------------------------------------------------
# A key has 256 random bits and cannot be guessed, so a fast unsalted hash is sufficient.


BEGINS = "nacre_"
_ID_BYTES, _SECRET_BYTES = 4, 32
_HASH_BYTES = 32
_KEY_PATTERN = re.compile(rf"{BEGINS}[0-9a-f]{{8}}_[\w-]{{43}}", re.ASCII)


def bearer_of(registry: Registry, secret: str) -> Bearer | None:
    """Return the holder of a key, or ``None`` if the key is invalid or expired."""
    if not _KEY_PATTERN.fullmatch(secret):
        return None
    for key, space, account, role in registry.all("read_key", hash=_hash(secret)):
        registry.run("note_key_used", id=key)
        return Bearer(account, space, Role(role))
    return None


@operation("keys")
def list_keys(home: Home, space: OfSpace = None) -> list[Key]:
    """List the keys to a space, newest first. Raises NotAllowedError unless the caller owns it."""
    with managed(home, space) as own:
        return _keys(own)


@operation(
    "keys-create", writes=True, owners=True, daemon=False, http=False, command="server keys create"
)
def create_key(
    home: Home,
    space: OfSpace = None,
    account: Annotated[str | None, bounds("The account of the key; default: yours.")] = None,
    role: Annotated[Role, bounds("The highest role that the key gives.")] = Role.MEMBER,
    days: Annotated[int, bounds("Days until the key expires.", ge=1, le=3650)] = 90,
) -> NewKey:
    """Create a key. Raises NotAllowedError, or NotFoundError if the account is not a member."""
    with managed(home, space) as own:
        account = account or own.who.account
        role = own.role_of(account).at_most(role)
        key = token_hex(_ID_BYTES)
        secret = f"{BEGINS}{key}_{token_urlsafe(_SECRET_BYTES)}"
        expires = to_ms(home.now() + timedelta(days=days)) or 0
        own.run(
            "insert_key",
            id=key,
            hash=_hash(secret),
            account=account,
            role=role.value,
            expires=expires,
        )
        own.note("keys-create", f"{key} {account} {role}")
        return NewKey(Key(key, own.space, account, role, from_ms(own.at), from_ms(expires)), secret)


@operation("keys-revoke", writes=True, owners=True, command="server keys revoke")
def revoke_key(
    home: Home,
    id: Annotated[  # noqa: A002 - the field's name
        str,
        bounds("The key, by the eight characters after nacre_.", pattern="^[0-9a-f]{8}$"),
    ],
    space: OfSpace = None,
) -> Key:
    """Revoke a key. Raises NotAllowedError, NotFoundError."""
    with managed(home, space) as own:
        if not own.run("revoke_key", id=id):
            raise NotFoundError(
                f"there is no key {id} for {own.space}", hint="nacre server keys shows them"
            )
        own.note("keys-revoke", id)
        return next(item for item in _keys(own) if item.id == id)


def _keys(space: Managed) -> list[Key]:
    return records(Key, space.registry.all("list_keys", space=space.space))


def _hash(secret: str) -> bytes:
    return blake2b(to_bytes(secret), digest_size=_HASH_BYTES).digest()


# -- Other spaces of the server ------------------------------------------------


def open_space(home: Home, space: str, unwritable: NacreError | None = None) -> Home:
    """Open another space of the server for the same account, read-only if ``unwritable``.

    Raises NotAllowedError if the account is not a member.
    """
    account = standing(home).account
    settings = (
        home.settings.having("storage.tenant", space)
        .having("storage.account", account)
        .having("storage.spaces", [])
    )
    database = open_database(settings, unwritable=unwritable)
    other = replace(home, settings=settings, database=database, problems=[], earlier=None)
    try:
        if standing(other).kind is None:
            raise NotAllowedError(
                f"there is no space {space}", hint="nacre server spaces shows yours"
            )
    except BaseException:
        other.database.close()
        raise
    return other


Ask = Callable[[Home, RecallQuery], RecallResult]


def with_further_spaces(
    opened: dict[str, Home], home: Home, query: RecallQuery, own: RecallResult, ask: Ask
) -> RecallResult:
    """Merge a recall with recalls from the spaces in ``storage.spaces``, best score first.

    Recall in these spaces omits private memories and sessions, counts no usage and calls no model.
    If several spaces have a memory, the caller's own is preferred. A space that cannot be read is
    reported as an unavailable lane.
    """
    names = home.settings.texts("storage.spaces")
    if not names:
        return own
    space = home.settings.text("storage.tenant")
    hits, lanes = [replace(hit, space=space) for hit in own.hits], list(own.lanes)
    scope = Scope.PERSONAL if query.filter.scope is Scope.PRIVATE else query.filter.scope
    other_query = replace(
        query,
        filter=replace(query.filter, scope=scope),
        update=False,
        turns=0,
        co_recall=False,
        budget_tokens=None,
    )
    for name in dict.fromkeys(name for name in names if name != space):
        try:
            answer = ask(_further_home(opened, home, name), other_query)
        except NacreError as error:
            lanes.append(Lane(f"space {name}", LaneState.UNAVAILABLE, error.message))
            continue
        lanes.append(Lane(f"space {name}", LaneState.RAN))
        seen_ids = {hit.memory.id for hit in hits}
        hits += [replace(hit, space=name) for hit in answer.hits if hit.memory.id not in seen_ids]
    hits.sort(key=lambda hit: (hit.confidence is HitConfidence.WEAK, -hit.score))
    fitting = _fitting(hits[: query.limit], query.budget_tokens)
    return replace(
        own,
        hits=tuple(fitting),
        lanes=tuple(lanes),
        truncated=own.truncated or len(fitting) < len(hits[: query.limit]),
    )


def _further_home(opened: dict[str, Home], home: Home, name: str) -> Home:
    if name not in opened:
        unwritable = UnavailableError(
            f"{name} can only be read here, because another space is open"
        )
        opened[name] = open_space(home, name, unwritable)
        return opened[name]
    try:
        standing(opened[name])  # the account may no longer be a member
    except NacreError:
        opened.pop(name).database.close()
        raise
    return opened[name]


def _fitting(hits: Sequence[MemoryHit], budget: int | None) -> list[MemoryHit]:
    fitting: list[MemoryHit] = []
    remaining = budget or 0
    for hit in hits:
        remaining -= count_tokens(f"{hit.memory.subject}\n{hit.memory.content}")
        if budget and remaining < 0 and fitting:
            break
        fitting.append(hit)
    return fitting


# -- Sharing -------------------------------------------------------------------
# Data reaches another space only as a shared copy.


_MAX_EMBEDDED = 32
SHARED = "shared"
"""Front matter key for the origin of a copy."""


@operation("share", writes=True, owners=True, command="server share")
def share(
    home: Home,
    reference: Reference,
    space: SpaceName,
    scope: Annotated[
        Scope | None, bounds("The copy's visibility. Required to share a private memory.")
    ] = None,
) -> Shared:
    """Copy a memory into another space, or update its copy there.

    The copy keeps id, text, kind, dates and trust, and names its origin and the account that shared
    it. Sources and links are not copied. Raises NotFoundError, ConflictError, and NotAllowedError
    for a private memory (unless ``scope`` sets the copy's visibility) or if the space's rule or the
    caller's role forbids it.
    """
    caller = standing(home)
    memory = _shareable(get(home, reference), scope)
    other = open_space(home, space)
    with closing(other.database):
        target = standing(other)
        try:
            roles = (
                (Role.OWNER, Role.MEMBER) if target.raising == Raising.MEMBERS else (Role.OWNER,)
            )
            if target.role not in roles:
                names = " and ".join(f"{role}s" for role in roles)
                raise NotAllowedError(
                    f"{target.account} is a {target.role} of {target.space}; only {names} can share memories",
                    hint=f"ask an owner of {target.space} to share it or to change your role",
                )
            origin = {"from": caller.space, "by": caller.account, "on": home.today().isoformat()}
            copy = replace(
                memory,
                source=Source(),
                confirmed=(),
                links=(),
                author=memory.author or caller.account,
                updated=home.now(),
                extra={SHARED: origin},
            )
            barred = Barred(other.tombstones.all())
            if copy.id in barred.memories or barred.has_words(copy.content):
                raise ConflictError(
                    f"{copy.subject!r} was forgotten in {space}",
                    hint="nacre forget --allow-again in that space allows it again",
                )
            with other.change(
                "share", subject=copy.subject, why=f"{caller.account} shared it"
            ) as change:
                existing = other.memories.in_any_state([copy.id])
                if existing and not existing[0].is_active:
                    raise ConflictError(
                        f"{copy.subject!r} was retired in {space}",
                        hint="nacre retire --restore in that space restores it",
                    )
                if existing:
                    copy = replace(
                        existing[0], **{name: getattr(copy, name) for name in _COPIED_FIELDS}
                    )
                change.put(
                    [copy],
                    [change.entry("share", memory=copy.id, space=caller.space, by=caller.account)],
                )
            embed_pending(other, lambda _: None, limit=_MAX_EMBEDDED)
            shared = Shared(copy, other.settings.text("storage.tenant"), is_new=not existing)
        except (NotAllowedError, ConflictError) as error:
            note(other, target, "share", f"{memory.id} from {caller.space}", error.code)
            raise
        note(other, target, "share", f"{memory.id} from {caller.space}", DONE)
    note(home, caller, "share", f"{memory.id} to {space}")
    return shared


def _shareable(memory: Memory, scope: Scope | None) -> Memory:
    if not memory.is_active or memory.proposed:
        state = (
            "was proposed by an agent and never accepted" if memory.proposed else "no longer holds"
        )
        raise ConflictError(
            f"{memory.subject!r} {state}",
            hint="share only valid memories: see nacre review and nacre retire --restore",
        )
    if (scope or memory.scope) is Scope.PRIVATE:
        raise NotAllowedError(
            f"{memory.subject!r} is private",
            hint="choose who may see the copy: --as personal, or --as public",
        )
    return replace(memory, scope=scope or memory.scope)


_COPIED_FIELDS = tuple(
    "content subject kind importance tags valid expires_on trust updated extra scope".split()
)
"""Fields that sharing copies. All other fields belong to the space."""
