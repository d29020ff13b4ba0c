"""The tenants of a cluster's server, for whoever manages it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from nacre.cluster.schema import server_of
from nacre.errors import Conflict, NotFound
from nacre.settings import Settings
from nacre.storage.postgres.registry import Registry
from nacre.values.actor import NO_QUOTA, Quota
from nacre.values.reports import OnProgress, Progress

_OF_A_SPACE = ("delete_keys", "delete_members", "delete_tended", "delete_quota", "delete_calls", "delete_space")


@dataclass(frozen=True, slots=True)
class Tenant:
    """A space and what it holds; ``bytes`` are its rows without indexes."""

    name: str
    kind: str
    members: int
    memories: int
    sessions: int
    turns: int
    rows: int
    bytes: int
    quota: Quota


@dataclass(frozen=True, slots=True)
class Removed:
    """What was deleted of a tenant: so many rows. ``left`` are those of all tables, counted again afterwards."""

    name: str
    rows: int
    tables: int
    left: int


def list_tenants(settings: Settings, notify: OnProgress = lambda _: None) -> list[Tenant]:
    """All spaces. Every row is read. Raises NotAllowed, StoreUnusable."""
    found = []
    with closing(Registry(server_of(settings))) as registry:
        names = registry.all("list_tenants")
        for told in names:
            found.append(_weighed(registry, *told))
            notify(Progress("weighing", len(found), len(names)))
    return found


def tenant_of(settings: Settings, name: str) -> Tenant:
    """One of them. Raises NotFound."""
    with closing(Registry(server_of(settings))) as registry:
        for told in registry.all("list_tenants"):
            if told[0] == name:
                return _weighed(registry, *told)
    raise _unknown(name)


def limit_tenant(settings: Settings, name: str, change: Callable[[Quota], Quota]) -> Quota:
    """Change what a tenant may use, from its next request on; returns it. Raises NotFound."""
    with closing(Registry(server_of(settings))) as registry, registry.transaction():
        registry.all("lock_space", space=name)
        found = registry.all("read_quota", space=name)
        if not found:
            raise _unknown(name)
        quota = change(Quota(*found[0]))
        if quota == NO_QUOTA:
            registry.run("delete_quota", space=name)
        else:
            registry.run("set_quota", space=name, calls=quota.calls, turns=quota.turns, usd=quota.usd)
        return quota


def remove_tenant(settings: Settings, name: str) -> Removed:
    """Delete a tenant with all its rows, members and keys. Its audit log stays, which holds ids and no texts.

    Raises NotFound, Conflict where somebody wrote meanwhile.
    """
    with closing(Registry(server_of(settings))) as registry:
        with registry.transaction():
            is_known = registry.all("lock_space", space=name)
            if not is_known and not sum(rows for rows, _ in registry.weigh(name).values()):
                raise _unknown(name)
            for statement in _OF_A_SPACE:
                registry.run(statement, space=name)
            deleted = registry.delete_rows(name)
        found = registry.weigh(name)
        left = sum(rows for rows, _ in found.values())
        if left:
            raise Conflict(f"{left} rows of {name} were written meanwhile", hint="end what writes there, and repeat it")
        return Removed(name, deleted, len(found), left)


def _unknown(name: str) -> NotFound:
    return NotFound(f"there is no tenant {name}", hint="nacre cluster tenants lists them")


def _weighed(registry: Registry, name: str, kind: str, members: int, *quota: Any) -> Tenant:
    found = registry.weigh(name)
    memories, sessions, turns = (found[table][0] for table in ("memories", "sessions", "turns"))
    rows, taken = (sum(one[at] for one in found.values()) for at in (0, 1))
    return Tenant(name, kind, members, memories, sessions, turns, rows, taken, Quota(*quota))
