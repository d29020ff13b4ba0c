"""A process that answers programs and agents: each by the key that it shows, and any process any request.

It keeps nothing. Its home is a temporary folder, and all that is remembered is on the server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nacre import __version__
from nacre.cluster.schema import server_of
from nacre.cluster.watch import Watch
from nacre.daemon.answering import Answering
from nacre.daemon.homes import Homes
from nacre.daemon.spaces import Spaces
from nacre.daemon.web import Door, Site, Web
from nacre.errors import NotAllowed, Unavailable
from nacre.events.bus import Bus
from nacre.events.live import Live
from nacre.home.home import Home
from nacre.platform.ids import utc_now
from nacre.settings import Settings
from nacre.web.browsers import Browsers

if TYPE_CHECKING:
    from starlette.types import ASGIApp

FOLD_SECONDS = 30.0
"""So often it is counted what was recalled; who kills the process loses these counts, and nothing else."""

MOST_CLIENTS = 1_000
"""So many are served at once; most of them wait."""

END_SECONDS = 30.0
"""So long a request may go on that was begun before the end."""


class Api:
    """Answers at a door until it is told to end. ``folder`` is empty, and may be deleted afterwards; ``watch`` sees all
    operations, and ``around`` stands around the program that answers."""

    def __init__(
        self, settings: Settings, folder: Path, door: Door, tell: Callable[[str], None], watch: Watch,
        around: Callable[[ASGIApp], ASGIApp] | None = None,
    ) -> None:  # fmt: skip
        """Raises InvalidInput where no server is set, or the door should not be opened."""
        server_of(settings)
        own = replace(settings, home=folder, database=folder / "nacre.db", is_temporary=True)
        self._tell = tell
        self._spaces = Spaces(own)
        nobodys = Homes(_refused, folder, own.config)
        self._answering = Answering(nobodys, tell, {}, homes_of=self._spaces.homes)
        self._web = Web(
            Site(
                folder, watch.measured(self._answering.run), lambda: {"version": __version__}, Browsers(folder),
                Live(_refused, Bus(utc_now)), tell, everything=own.text("mcp.tools") == "all",
                bearer=self._spaces.bearer, live_of=self._spaces.live, is_ready=self._spaces.is_reachable,
                around=around,
            ), replace(door, room=MOST_CLIENTS),
        )  # fmt: skip

    def run(self, stop: threading.Event, linger: float) -> None:
        """Answer until ``stop`` is set. Then for ``linger`` seconds it says that it is not ready and answers on, so
        that whoever sends requests here finds another process; then what is being answered ends.

        Raises Unavailable where it cannot listen, or what is being answered does not end.
        """
        minding = threading.Thread(target=self._answering.mind, args=(stop,), daemon=True, name="minding")
        self._web.start()
        minding.start()
        self._tell(f"serves keys at {self._web.address}, agents at {self._web.address}/mcp")
        while not stop.wait(FOLD_SECONDS):
            self._spaces.fold()
        self._tell("ends: it answers what was asked before")
        self._web.leave()
        self._spaces.end_events()
        has_ended = self._web.drain(linger, END_SECONDS)
        self._spaces.fold()
        self._spaces.close()
        if not has_ended:
            raise Unavailable("some requests did not end", hint="their clients may send them again")


def _refused() -> Home:
    raise NotAllowed("this server has no memory of its own", hint="show a key to a space: nacre keys create")
