"""Every operation, once: its name, what is asked, what is answered, where its function is, and how it behaves.

The Python API, the daemon, MCP and the command line go by it, and docs/json.md is written from it. An operation has the
name of the command that people know it by, its words joined by ``-``. Listing the catalogue imports no operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nacre.catalogue.home import CARE, MODELS, OWN, PROJECTS
from nacre.catalogue.memories import CODE, FORGETTING, GRAPH, HISTORY, MEMORIES, REVIEW
from nacre.catalogue.remote import REMOTE
from nacre.catalogue.sessions import AGENTS, GATEWAY, SESSIONS
from nacre.catalogue.spaces import SPACES
from nacre.catalogue.withheld import NOT_BY
from nacre.operation import Needs, Operation
from nacre.values.actor import Face


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
