"""What is answered to requests about single memories; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nacre.home.home import Home
from nacre.memories import lineage, retire, store, views
from nacre.memories.agent_rights import as_agent_may, is_owners, wish
from nacre.memories.requests import (
    EditRequest,
    GetRequest,
    ListRequest,
    ReferenceRequest,
    ReferencesRequest,
    RetireRequest,
)
from nacre.memories.retire import BroughtBack, Chosen
from nacre.values.memory import Memory
from nacre.views import Listing, MemoryView, Step

_NO_CHANGES = ("reference", "expected")
"""Fields of a request to edit that say which memory is meant."""


def list_memories(home: Home, request: ListRequest) -> Listing:
    """Active memories, the newest first, and how many there are in all."""
    found, total = store.list_active(
        home, request.filter, words=request.words, limit=max(0, request.limit), offset=max(0, request.offset)
    )
    return Listing(tuple(found), total)


def get(home: Home, request: GetRequest) -> Memory:
    """One memory, also a retired one. Raises NotFound, Conflict."""
    return views.read_memory(home, request.reference, update=request.update, session=request.session)


def show(home: Home, request: GetRequest) -> MemoryView:
    """One memory with its evidence and links. Raises NotFound, Conflict."""
    return views.look_at(home, request.reference, update=request.update, session=request.session)


def history(home: Home, request: ReferenceRequest) -> list[Step]:
    """A memory with all that it superseded and all that superseded it, the oldest first. Raises NotFound."""
    return lineage.history_of(home, request.reference)


def edit(home: Home, request: EditRequest) -> Memory:
    """Change fields of a memory; returns it as it is now. Raises NotFound, EditConflict, MemoryInvalid.

    What an agent wants changed of the owner's waits for review; its own memories stay proposals.
    """
    changes = changes_of(request)
    if home.actor.is_agent:
        memory = store.get(home, request.reference)
        if is_owners(memory):
            wish(home, [memory], f"changed: {_in_words(changes)}")
            return memory
        changes = as_agent_may(memory, changes)
    return store.edit(home, request.reference, expected=request.expected, **changes)


def _in_words(changes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_plainly(value)}" for name, value in changes.items())


def _plainly(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def changes_of(request: EditRequest) -> dict[str, Any]:
    """The fields that change, with their new values."""
    given = ((name, getattr(request, name)) for name in request.__struct_fields__ if name not in _NO_CHANGES)
    return {name: value for name, value in given if value is not msgspec.UNSET}


def finish_todos(home: Home, request: ReferencesRequest) -> list[Memory]:
    """Retire todos as done; what an agent says of the owner's waits for review. Raises NotFound, MemoryInvalid."""
    done = []
    for reference in request.references:
        todo = store.open_todo(home, reference)
        if home.actor.is_agent and is_owners(todo):
            wish(home, [todo], "retired: done")
            done.append(todo)
        else:
            done.append(store.retire(home, [todo.id], "done")[0])
    return done


def choose(home: Home, request: RetireRequest) -> Chosen:
    """The memories that retiring would take out of recall; nothing is changed. Raises NotFound, Conflict."""
    return retire.choose(
        home, request.references, request.contains, subjects=request.subjects, like=request.like,
        persist=request.persist,
    )  # fmt: skip


def retire_memories(home: Home, request: RetireRequest) -> list[Memory]:
    """Take memories out of recall; their files are kept. Raises NotFound, Conflict, OwnerOnly.

    What an agent asks for is done to its own memories; for those of the owner, which stay, it waits for review.
    """
    chosen = choose(home, request)
    return retire.retire_chosen(home, chosen, request.reason, persist=request.persist)[0]


def unretire(home: Home, request: ReferencesRequest) -> BroughtBack:
    """Bring memories back that were retired or superseded, and end standing retirements. Raises NotFound, Conflict."""
    return retire.unretire(home, request.references)
