"""What programs may do that show a key to a space on a server."""

from __future__ import annotations

from nacre.errors import NotAllowed

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
            f"{operation} is not done by a key", hint="run it on a machine whose nacre opens that space itself"
        )
