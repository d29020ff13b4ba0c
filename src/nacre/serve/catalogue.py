"""The catalogue of all operations.

All interfaces use it, and docs/json.md is generated from it. An operation is named after its
command, with ``-`` between words. Listing the catalogue does not import the operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from nacre.base import plugins
from nacre.errors import NotAllowedError
from nacre.serve.catalogue_home import (
    AGENTS,
    CARE,
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

_OWN: Mapping[str, Operation] = {
    operation.name: operation
    for part in (
        MEMORIES,
        GRAPH,
        CODE,
        SESSIONS,
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


class _Catalogue(Mapping[str, Operation]):
    """All operations by name. Those of plugins are loaded when all are listed, or a name is not nacre's own."""

    def __getitem__(self, name: str) -> Operation:
        return _OWN[name] if name in _OWN else self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _all(self) -> Mapping[str, Operation]:
        groups = plugins.load_usable_plugins(plugins.OPERATIONS, Operation).values()
        return {**{operation.name: operation for group in groups for operation in group}, **_OWN}


CATALOGUE: Mapping[str, Operation] = _Catalogue()

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
    """Raise NotAllowedError if an operation is not permitted with a key."""
    if operation not in BY_KEY:
        raise NotAllowedError(
            f"{operation} is not available with a key",
            hint="run it on a machine that opens that space directly",
        )
