"""What a tool works with: the operations, where its client works, and a line to tell how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from nacre import views
from nacre.errors import InvalidInput, NacreError, NotFound
from nacre.home.requests import PlaceRequest
from nacre.mcp.calling import Call
from nacre.platform.ids import utc_now
from nacre.text import time_expressions

ALL = "*"
GLOBAL = "global"


def _silent(_: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Desk:
    """One call of a tool. ``folder`` is where the client works, ``session`` the host's session if that is known.

    ``tell`` says in a few words how far it is.
    """

    call: Call
    folder: str | None = None
    session: str | None = None
    tell: Callable[[str], None] = _silent
    clock: Callable[[], datetime] = utc_now

    def moment(self, name: str, said: str | None) -> datetime | None:
        """A date as people say it. Raises InvalidInput."""
        if said is None or not said.strip():
            return None

        try:
            return time_expressions.parse_moment(said, self.clock())
        except (NacreError, OverflowError, ValueError):
            hint = "write 2026-11-20, 3d, 2w, yesterday, last week or march"
            raise InvalidInput(f"{name}: {said!r} is not a date", hint=hint) from None

    def place(self, name: str | None) -> views.Place:
        """The project that a call is about: the one named, else that of the folder. Raises NacreError."""
        if name is not None and name.strip() == ALL:
            return views.Place(None)
        found: views.Place = self.call("place", PlaceRequest(name=name.strip() if name else None, folder=self.folder))
        return found

    @contextmanager
    def naming(self, hint: str) -> Iterator[None]:
        """Within it, what is not found comes with a hint for agents, who may have no command line."""
        try:
            yield
        except NacreError as error:
            if error.code == NotFound.code:
                raise NotFound(error.message, hint=hint) from None
            raise

    def projects(self, name: str | None) -> tuple[str, ...]:
        """The same for a filter; empty where nothing restricts. Raises InvalidInput for a name nobody knows."""
        found = self.place(name)
        if not found.is_known:
            known = ", ".join(found.known[:20]) or "none yet"
            raise InvalidInput(f"no project is called {name!r}", hint=f'known: {known}; "*" searches all')
        return (found.project,) if found.project else ()


def page_of(cursor: str | None) -> int:
    """Where a page begins. Raises InvalidInput."""
    if not cursor:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 6:
        raise InvalidInput(f"cursor: {cursor!r} is none", hint="take it from the end of the answer before")
    return int(cursor)


def going_on(tool: str, at: int, total: int | None = None) -> str:
    """The line that says how to get what comes next."""
    left = f"{total - at:,} more" if total is not None else "There may be more"
    return f'{left}: ask {tool} the same with cursor "{at}".'
