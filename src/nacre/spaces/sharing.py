"""Carry a copy of a memory into another space: the only way in which anything of one space comes into another."""

from __future__ import annotations

from dataclasses import replace

from nacre.errors import Conflict, NotAllowed
from nacre.home.further_spaces import opened_space
from nacre.home.home import Home
from nacre.home.standing import DONE, Standing, note, standing
from nacre.indexing.vectors import embed_pending
from nacre.memories.store import get
from nacre.spaces.requests import ShareRequest
from nacre.spaces.values import Raising, Shared
from nacre.tombstones.tombstones import Barred
from nacre.values.actor import Role
from nacre.values.memory import Memory, Scope, Source

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
        state = "was proposed by an agent, and nobody kept it" if memory.proposed else "does not hold any more"
        raise Conflict(f"{memory.subject!r} {state}", hint="share what holds: nacre review, nacre unretire")
    if (scope or memory.scope) is Scope.PRIVATE:
        raise NotAllowed(
            f"{memory.subject!r} is private", hint="say that others may see the copy: --as personal, or --as public"
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
        memory, source=Source(), confirmed=(), links=(), author=memory.author or who.account, updated=home.now(),
        extra={SHARED: told},
    )  # fmt: skip


def _put(other: Home, copy: Memory, who: Standing) -> Shared:
    """Raises Conflict where it was forgotten there, or is retired there."""
    barred = Barred(other.tombstones.all())
    if copy.id in barred.memories or barred.has_words(copy.content):
        raise Conflict("it was forgotten there", hint="nacre forget --allow-again, in that space, lets it come back")
    with other.change("share", subject=copy.subject, why=f"{who.account} shared it") as change:
        known = other.memories.in_any_state([copy.id])
        if known and not known[0].is_active:
            raise Conflict("it was retired there", hint="nacre unretire, in that space, brings it back")
        if known:
            copy = replace(known[0], **{name: getattr(copy, name) for name in _OWN})
        change.put([copy], [change.entry("share", memory=copy.id, space=who.space, by=who.account)])
    embed_pending(other, lambda _: None, limit=_EMBEDDED)
    return Shared(copy, other.settings.text("storage.tenant"), is_new=not known)


_OWN = ("content", "subject", "kind", "importance", "tags", "valid", "expires_on", "trust", "updated", "extra", "scope")
"""What a copy takes over anew from the memory; the rest is the space's."""
