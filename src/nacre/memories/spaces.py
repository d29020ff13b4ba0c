"""How often a space was asked today, over all processes that answer."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from secrets import token_hex, token_urlsafe
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from nacre.base.ids import Clock, from_ms, to_ms
from nacre.base.lazy import load
from nacre.base.request import Request
from nacre.base.text import count_tokens
from nacre.errors import Conflict, NacreError, NotAllowed, NotFound, QuotaSpent
from nacre.home.home import DONE, Home, Standing, note, standing
from nacre.home.projects import opened_space
from nacre.memories.decision import Reference
from nacre.memories.store import get
from nacre.memories.tombstones import Barred
from nacre.memories.vectors import embed_pending
from nacre.values.memory import Bearer, Memory, Quota, Role, Scope, Source
from nacre.values.recall import HitConfidence, Lane, LaneState, MemoryHit, RecallQuery, RecallResult

if TYPE_CHECKING:
    from nacre.store.postgres_schema import Registry
    from nacre.store.schema import Row

FOLD_SECONDS = 30.0
"""So often a process adds what it counted to what all count: what others answered meanwhile may go beyond a quota."""


class Calls:
    """Counts requests of spaces whose quota bounds them. For any thread; who asks has the registry to itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._day = ""
        self._known: dict[str, int] = {}
        self._fresh: Counter[str] = Counter()
        self._folded = clock()

    def count(self, registry: Registry, bearer: Bearer) -> None:
        """Count one more. Raises QuotaSpent where it is one too many."""
        most = bearer.quota.calls
        if most is None:
            return
        now = self._clock()
        with self._guard:
            self._begin_day(now)
            if (
                bearer.space not in self._known
                or (now - self._folded).total_seconds() >= FOLD_SECONDS
            ):
                self._fresh[bearer.space] += 0
                self._fold(registry, now)
            if self._known[bearer.space] + self._fresh[bearer.space] >= most:
                raise _spent(bearer.space, most, now)
            self._fresh[bearer.space] += 1

    def fold(self, registry: Registry) -> None:
        """Add what was counted here to what all processes count."""
        with self._guard:
            self._fold(registry, self._clock())

    def _begin_day(self, now: datetime) -> None:
        day = now.date().isoformat()
        if day != self._day:
            self._day, self._known = day, {}
            self._fresh.clear()

    def _fold(self, registry: Registry, now: datetime) -> None:
        for space, number in self._fresh.items():
            ((total,),) = registry.all("add_calls", space=space, day=self._day, calls=number)
            if space not in self._known:
                registry.run("delete_old_calls", space=space, day=self._day)
            self._known[space] = int(total)
            self._fresh[space] = 0
        self._folded = now


def _spent(space: str, most: int, now: datetime) -> QuotaSpent:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    seconds = int((midnight - now).total_seconds()) + 1
    hint = "it is asked again after midnight (UTC); who manages the server says how often: nacre cluster tenants limit"
    return QuotaSpent(
        f"{space} was asked {most:,} times today, which is all that it may",
        seconds=seconds,
        hint=hint,
    )


# ----------------------------------------------------------------------------
# Spaces, who belongs to them, keys to them, and what is noted of them.


class SpaceKind(StrEnum):
    """Whose a space is."""

    PERSON = "person"
    TEAM = "team"
    ORGANISATION = "organisation"


class Raising(StrEnum):
    """Who may raise a memory of their own into a space: its owners alone, or its members, too."""

    OWNERS = "owners"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class Space:
    """A space that an account belongs to, and in which role. ``is_own`` is where it writes, ``is_read`` whether recall
    reads it, too."""

    name: str
    kind: SpaceKind
    raising: Raising
    role: Role
    is_own: bool = False
    is_read: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """Who belongs to a space, in which role, since when."""

    account: str
    role: Role
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Key:
    """A key, without what would open anything: ``id`` is how the key begins, after ``nacre_``."""

    id: str
    space: str
    account: str
    role: Role
    created: datetime | None
    expires: datetime | None
    revoked: datetime | None = None
    last_used: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made. ``secret`` is told once; the server keeps a hash of it."""

    key: Key
    secret: str


@dataclass(frozen=True, slots=True)
class Note:
    """A line of a space's audit log: an operation, what it was about (ids and names), and what became of it: ``done``,
    or the code of the error."""

    at: datetime | None
    account: str
    action: str
    subject: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Shared:
    """A memory as it is in another space now; ``is_new`` unless it was there and was brought up to date."""

    memory: Memory
    space: str
    is_new: bool


# ----------------------------------------------------------------------------
# Requests about spaces, keys and what is shared.


_NAME = r"^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$"
SpaceName = Annotated[
    str, Meta(description="The space: up to 64 lower-case letters, digits and . _ -", pattern=_NAME)
]
Account = Annotated[
    str,
    Meta(description="The account: up to 64 lower-case letters, digits and . _ -", pattern=_NAME),
]
Days = Annotated[int, Meta(description="Days for which the key holds.", ge=1, le=3650)]
Raise = Annotated[Raising, Meta(description="Who may raise memories of their own into it.")]
KeyId = Annotated[
    str, Meta(description="The key, by the eight characters after nacre_.", pattern="^[0-9a-f]{8}$")
]
OfSpace = Annotated[str | None, Meta(description="The space; the one that is open where left out.")]


class SpaceRequest(Request, frozen=True, kw_only=True):
    """A space, by default the one that is open."""

    space: OfSpace = None


class CreateSpaceRequest(Request, frozen=True, kw_only=True):
    """Make a space, or change the rule of one."""

    space: SpaceName
    kind: Annotated[
        SpaceKind, Meta(description="Whose it is. A person's belongs to the account of its name.")
    ] = SpaceKind.TEAM
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
    account: Annotated[str | None, Meta(description="Whose key it is; yours where left out.")] = (
        None
    )
    role: Annotated[Role, Meta(description="The most that whoever has it may be there.")] = (
        Role.MEMBER
    )
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
        Meta(
            description="Who may see the copy. A private memory is shared only where this is said."
        ),
    ] = None


# ----------------------------------------------------------------------------
# Make spaces and say who belongs to them; who owns a space says so, through a login that manages the
# server.


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
            "insert_note",
            at=self.at,
            space=self.space,
            account=self.who.account,
            action=action,
            subject=subject,
            outcome=DONE,
        )

    def role_of(self, account: str) -> Role:
        """What an account is there. Raises NotFound."""
        for (role,) in self.registry.all("read_role", space=self.space, account=account):
            return Role(role)
        raise NotFound(
            f"{account} does not belong to {self.space}",
            hint=f"nacre spaces add {self.space} {account}",
        )


@contextmanager
def registry_of(home: Home) -> Iterator[Registry]:
    """The registry of a home's server, for the block."""
    opened: Registry = load("nacre.store.postgres_schema:Registry")(home.settings.server)
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
            raise NotAllowed(
                f"{who.account} does not own {name}",
                hint="ask one of its owners: nacre spaces members",
            )
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
            raise Conflict(
                f"{asked.space} is a memory of its own already", hint="take another name"
            )
        with registry.transaction():
            made = registry.run(
                "insert_space",
                space=asked.space,
                kind=asked.kind.value,
                raising=asked.raising.value,
                at=at,
            )
            if not made:
                raise Conflict(
                    f"there is a space {asked.space} already", hint="nacre spaces list shows yours"
                )
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
    return [
        Note(from_ms(at), *told)
        for at, *told in home.database.all("list_audit_log", most=asked.limit)
    ]


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


# ----------------------------------------------------------------------------
# Keys to a space, for programs and for other machines.
#
# A key is 256 random bits, so one fast hash of it is kept, without salt: nobody can guess it, and a
# slow hash, which
# protects words that people choose, would only slow each request.


BEGINS = "nacre_"
_ID_BYTES, _SECRET_BYTES = 4, 32
_HASH_BYTES = 32
_SHAPE = re.compile(rf"{BEGINS}[0-9a-f]{{8}}_[\w-]{{43}}", re.ASCII)


def bearer_of(registry: Registry, secret: str) -> Bearer | None:
    """Who has a key that holds now, by the server's clock; ``None`` where it does not."""
    if not _SHAPE.fullmatch(secret):
        return None
    for key, space, account, role, *quota in registry.all("read_key", hash=_hash(secret)):
        registry.run("note_key_used", id=key)
        return Bearer(account, space, Role(role), Quota(*quota))
    return None


def list_keys(home: Home, asked: SpaceRequest) -> list[Key]:
    """The keys to a space, the newest first. Raises NotAllowed to who does not own it."""
    with managed(home, asked.space) as held:
        return _keys(held)


def create_key(home: Home, asked: CreateKeyRequest) -> NewKey:
    """Make a key. Raises NotAllowed, NotFound where the account does not belong to the space."""
    with managed(home, asked.space) as held:
        account = asked.account or held.who.account
        role = held.role_of(account).at_most(asked.role)
        return _made(home, held, account, role, asked.days)


def rotate_key(home: Home, asked: RotateKeyRequest) -> NewKey:
    """End a key, and make another one of the same account and role. Raises NotAllowed, NotFound."""
    with managed(home, asked.space) as held:
        old = _revoked(held, asked.id)
        return _made(home, held, old.account, old.role, asked.days)


def revoke_key(home: Home, asked: RevokeKeyRequest) -> Key:
    """End a key. Raises NotAllowed, NotFound."""
    with managed(home, asked.space) as held:
        return _revoked(held, asked.id)


def _made(home: Home, held: Managed, account: str, role: Role, days: int) -> NewKey:
    key = token_hex(_ID_BYTES)
    secret = f"{BEGINS}{key}_{token_urlsafe(_SECRET_BYTES)}"
    expires = to_ms(home.now() + timedelta(days=days)) or 0
    held.registry.run(
        "insert_key",
        id=key,
        hash=_hash(secret),
        space=held.space,
        account=account,
        role=role.value,
        at=held.at,
        expires=expires,
    )
    held.note("keys-create", f"{key} {account} {role}")
    return NewKey(Key(key, held.space, account, role, from_ms(held.at), from_ms(expires)), secret)


def _revoked(held: Managed, key: str) -> Key:
    if not held.registry.run("revoke_key", space=held.space, id=key, at=held.at):
        raise NotFound(f"no key {key} to {held.space} holds", hint="nacre keys list shows them")
    held.note("keys-revoke", key)
    return next(one for one in _keys(held) if one.id == key)


def _keys(held: Managed) -> list[Key]:
    return [_key(row) for row in held.registry.all("list_keys", space=held.space)]


def _key(row: Row) -> Key:
    key, space, account, role, *times = row
    return Key(key, space, account, Role(role), *map(from_ms, times))


def _hash(secret: str) -> bytes:
    return blake2b(secret.encode("utf-8", "replace"), digest_size=_HASH_BYTES).digest()


# ----------------------------------------------------------------------------
# One recall over several spaces: the own one, and those that ``storage.spaces`` names.


Ask = Callable[[Home, RecallQuery], RecallResult]


def with_further_spaces(
    home: Home, query: RecallQuery, own: RecallResult, ask: Ask
) -> RecallResult:
    """An answer with what further spaces hold, the best score first, each hit with its space.

    They are asked as somebody else's: what is private there, and what was said in sessions, stays there. What is in
    several spaces under one id is told once, as the own space has it. A space that cannot be read is a lane that did
    not run.
    """
    if not home.database.is_server or not home.settings.texts("storage.spaces"):
        return own
    space = home.settings.text("storage.tenant")
    hits, lanes = [replace(hit, space=space) for hit in own.hits], list(own.lanes)
    for name, other in home.further_spaces.homes().items():
        found = other if isinstance(other, NacreError) else _asked(other, query, ask)
        if isinstance(found, NacreError):
            lanes.append(Lane(f"space {name}", LaneState.UNAVAILABLE, found.message))
            continue
        lanes.append(Lane(f"space {name}", LaneState.RAN))
        known = {hit.memory.id for hit in hits}
        hits += [replace(hit, space=name) for hit in found.hits if hit.memory.id not in known]
    hits.sort(key=lambda hit: (hit.confidence is HitConfidence.WEAK, -hit.score))
    kept = _within(hits[: query.limit], query.budget_tokens)
    return replace(
        own,
        hits=tuple(kept),
        lanes=tuple(lanes),
        truncated=own.truncated or len(kept) < len(hits[: query.limit]),
    )


def _asked(other: Home, query: RecallQuery, ask: Ask) -> RecallResult | NacreError:
    """What a space answers; it counts no use, and no model is asked a second time."""
    scope = Scope.PERSONAL if query.filter.scope is Scope.PRIVATE else query.filter.scope
    asked = replace(
        query,
        filter=replace(query.filter, scope=scope),
        update=False,
        turns=0,
        co_recall=False,
        expand=False,
        rerank=False,
        budget_tokens=None,
    )
    try:
        return ask(other, asked)
    except NacreError as error:
        return error


def _within(hits: Sequence[MemoryHit], budget: int | None) -> list[MemoryHit]:
    """As many hits as the token budget holds; the first one always fits."""
    kept: list[MemoryHit] = []
    left = budget or 0
    for hit in hits:
        left -= count_tokens(f"{hit.memory.subject}\n{hit.memory.content}")
        if budget and left < 0 and kept:
            break
        kept.append(hit)
    return kept


# ----------------------------------------------------------------------------
# Carry a copy of a memory into another space: the only way in which anything of one space comes into
# another.


_EMBEDDED = 32
SHARED = "shared"
"""The key of front matter that says where a copy comes from."""


def share(home: Home, asked: ShareRequest) -> Shared:
    """Carry a memory into another space, or bring the copy there up to date.

    The copy keeps id, words, kind, dates and trust. It says from which space it comes, and who shared it; where it was
    said, and what it is linked to, stays behind. Raises NotFound, Conflict, and NotAllowed for what is private (unless
    ``scope`` says who may see the copy) and where the rule of the space or the role there does not allow it.
    """
    who = standing(home)
    memory = _fit(get(home, asked.reference), asked.scope)
    with opened_space(home, asked.space) as other:
        there = standing(other)
        try:
            _require_may_raise(there)
            shared = _put(other, _copy(home, memory, who), who)
        except (NotAllowed, Conflict) as error:
            note(other, there, "share", f"{memory.id} from {who.space}", error.code)
            raise
        note(other, there, "share", f"{memory.id} from {who.space}", DONE)
    note(home, who, "share", f"{memory.id} to {asked.space}")
    return shared


def _fit(memory: Memory, scope: Scope | None) -> Memory:
    """The memory, as others may see it. Raises Conflict, NotAllowed."""
    if not memory.is_active or memory.proposed:
        state = (
            "was proposed by an agent, and nobody kept it"
            if memory.proposed
            else "does not hold any more"
        )
        raise Conflict(
            f"{memory.subject!r} {state}", hint="share what holds: nacre review, nacre unretire"
        )
    if (scope or memory.scope) is Scope.PRIVATE:
        raise NotAllowed(
            f"{memory.subject!r} is private",
            hint="say that others may see the copy: --as personal, or --as public",
        )
    return replace(memory, scope=scope or memory.scope)


def _require_may_raise(there: Standing) -> None:
    may = (Role.OWNER, Role.MEMBER) if there.raising == Raising.MEMBERS else (Role.OWNER,)
    if there.role not in may:
        raise NotAllowed(
            f"{there.account} is a {there.role} of {there.space}, where {' and '.join(f'{one}s' for one in may)} raise",
            hint=f"an owner of {there.space} can share it, or make you one",
        )


def _copy(home: Home, memory: Memory, who: Standing) -> Memory:
    told = {"from": who.space, "by": who.account, "on": home.today().isoformat()}
    return replace(
        memory,
        source=Source(),
        confirmed=(),
        links=(),
        author=memory.author or who.account,
        updated=home.now(),
        extra={SHARED: told},
    )


def _put(other: Home, copy: Memory, who: Standing) -> Shared:
    """Raises Conflict where it was forgotten there, or is retired there."""
    barred = Barred(other.tombstones.all())
    if copy.id in barred.memories or barred.has_words(copy.content):
        raise Conflict(
            "it was forgotten there",
            hint="nacre forget --allow-again, in that space, lets it come back",
        )
    with other.change("share", subject=copy.subject, why=f"{who.account} shared it") as change:
        known = other.memories.in_any_state([copy.id])
        if known and not known[0].is_active:
            raise Conflict(
                "it was retired there", hint="nacre unretire, in that space, brings it back"
            )
        if known:
            copy = replace(known[0], **{name: getattr(copy, name) for name in _OWN})
        change.put([copy], [change.entry("share", memory=copy.id, space=who.space, by=who.account)])
    embed_pending(other, lambda _: None, limit=_EMBEDDED)
    return Shared(copy, other.settings.text("storage.tenant"), is_new=not known)


_OWN = (
    "content",
    "subject",
    "kind",
    "importance",
    "tags",
    "valid",
    "expires_on",
    "trust",
    "updated",
    "extra",
    "scope",
)
"""What a copy takes over anew from the memory; the rest is the space's."""
