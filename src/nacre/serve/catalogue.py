"""The catalogue of all operations.

All interfaces use it, and docs/json.md is generated from it. An operation is named after its
command, with ``-`` between words. Listing the catalogue does not import the operations.
"""

from __future__ import annotations

from collections.abc import Mapping

from nacre.errors import NotAllowed
from nacre.serve.catalogue_home import (
    AGENTS,
    CARE,
    GATEWAY,
    MODELS,
    OWN,
    PROJECTS,
    REMOTE,
    SESSIONS,
    SPACES,
)
from nacre.serve.catalogue_memories import CODE, FORGETTING, GRAPH, HISTORY, MEMORIES, REVIEW
from nacre.serve.operation import Needs, Operation
from nacre.values.memory import Face

CATALOGUE: Mapping[str, Operation] = {
    operation.name: operation
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
    for operation in part
}
"""All operations by name."""

_WITH_OPEN_HOME = (Face.DAEMON, Face.MCP, Face.HTTP)


def offered_by(face: Face) -> Mapping[str, Operation]:
    """Return the operations of an interface by name; closed-home operations need the command line."""
    return {
        name: operation
        for name, operation in CATALOGUE.items()
        if face not in operation.not_by
        and not (face in _WITH_OPEN_HOME and operation.needs is Needs.CLOSED)
    }


# -- Access with a key -----------------------------------------------------------------------------


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
"""Operations limited to the rows of a key's space.

All others use the server's machine or its money, or are for the owner alone.
"""


def require(operation: str) -> None:
    """Raise NotAllowed if an operation is not permitted with a key."""
    if operation not in BY_KEY:
        raise NotAllowed(
            f"{operation} is not available with a key",
            hint="run it on a machine that opens that space directly",
        )
