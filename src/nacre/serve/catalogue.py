"""Every operation, once: its name, what is asked, what is answered, where its function is, and how it behaves.

The Python API, the daemon, MCP and the command line go by it, and docs/json.md is written from it. An operation has the
name of the command that people know it by, its words joined by ``-``. Listing the catalogue imports no operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nacre.errors import NotAllowed
from nacre.serve.catalogue_home import (
    AGENTS,
    CARE,
    GATEWAY,
    MODELS,
    NOT_BY,
    OWN,
    PROJECTS,
    REMOTE,
    SESSIONS,
    SPACES,
)
from nacre.serve.catalogue_memories import CODE, FORGETTING, GRAPH, HISTORY, MEMORIES, REVIEW
from nacre.serve.operation import Needs, Operation
from nacre.values.memory import Face


def _with_reasons(operation: Operation) -> Operation:
    reasons = {
        face: reason
        for face, named in NOT_BY.items()
        for reason, names in named.items()
        if operation.name in names.split()
    }
    return replace(operation, not_by={**operation.not_by, **reasons})


CATALOGUE: Mapping[str, Operation] = {
    one.name: _with_reasons(one)
    for part in (
        MEMORIES,
        GRAPH,
        CODE,
        SESSIONS,
        GATEWAY,
        AGENTS,
        REVIEW,
        HISTORY,
        FORGETTING,
        SPACES,
        REMOTE,
        PROJECTS,
        OWN,
        MODELS,
        CARE,
    )
    for one in part
}
"""By name."""

_OPEN = (Face.DAEMON, Face.MCP, Face.HTTP)


def offered_by(face: Face) -> Mapping[str, Operation]:
    """The operations that a face offers, by name; the daemon, agents and programs find the home open."""
    return {
        name: one
        for name, one in CATALOGUE.items()
        if face not in one.not_by and not (face in _OPEN and one.needs is Needs.CLOSED)
    }


# ----------------------------------------------------------------------------
# What programs may do that show a key to a space on a server.


BY_KEY = frozenset(
    """
    recall list get look history edges store store-rehearse edit retire retire-plan retired retired-standing todo-done
    page review alike reflect unanswered
    graph-link graph-unlink graph-invalidate graph-list graph-show graph-central graph-gaps
    graph-components graph-map graph-brief
    graph-callers graph-importers graph-about graph-impact
    sessions session search-sessions search-chats did fix
    log diff place project-list project-show spaces spaces-log
    remote-changes remote-versions remote-push remote-turns
    """.split()
)
"""Operations that keep to rows of that space. All others read or write what is on the machine that serves, spend its
money, or are for the owner alone."""


def require(operation: str) -> None:
    """Raises NotAllowed where a key does not do."""
    if operation not in BY_KEY:
        raise NotAllowed(
            f"{operation} is not done by a key",
            hint="run it on a machine whose nacre opens that space itself",
        )
