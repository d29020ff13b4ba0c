"""How much a memory may hold."""

from __future__ import annotations

from nacre.errors import SpaceFull
from nacre.home.home import Home


def require_room(home: Home) -> None:
    """After turns were added, in the same transaction. Raises SpaceFull where they are more than ``storage.most_turns``
    lets."""
    most = home.settings.whole("storage.most_turns")
    if 0 < most < sum(turns for _, _, turns, *_ in home.sessions.counts()):
        raise SpaceFull(
            f"this memory may hold {most:,} turn{'s' * (most != 1)}, and there is no room for more",
            hint="forget old sessions (nacre forget), or have storage.most_turns raised",
        )
