"""Whether this home is in step with others: through git, or with a server."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.home.home import Home
from nacre.remote.state import read_state
from nacre.sync.sync import last_sync
from nacre.values.reports import OK, WARNING, Check


def sync(home: Home) -> Iterator[Check]:
    """How the last sync ended."""
    last = last_sync(home) if home.settings.flag("git.enabled") else None
    if last and last.failing_since:
        yield Check("sync", WARNING, f"has failed since {last.failing_since}: {last.message}", last.hint)
    elif last:
        yield Check("sync", OK, f"last {last.succeeded}")


def remote(home: Home) -> Iterator[Check]:
    """How the last exchange with the server ended."""
    if not home.settings.text("remote.url"):
        return
    state = read_state(home.settings)
    if state.failing_since:
        yield Check("remote", WARNING, f"out of step since {state.failing_since}: {state.message}", state.hint or None)
    elif state.succeeded:
        yield Check("remote", OK, f"{state.url}, space {state.space}, last {state.succeeded}")
    else:
        yield Check("remote", WARNING, f"{state.url}: nothing was exchanged yet", "nacre remote sync")
