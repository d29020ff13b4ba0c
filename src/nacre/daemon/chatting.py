"""The gateway in the daemon: it answers in channels unless another process does, and takes over when that ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from nacre.errors import Conflict, NacreError
from nacre.gateway import serve
from nacre.settings import Settings

if TYPE_CHECKING:
    from nacre.gateway.answering import Lend

_PAUSE_SECONDS = 60.0


class Chatting:
    """Serves the channels in a thread, from ``run`` until ``stop``."""

    def __init__(self, settings: Settings, lend: Lend, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._lend = lend
        self._tell = tell
        self._told = ""

    def run(self, stop: threading.Event) -> None:
        """Until ``stop`` is set. What fails is told once, and tried again in a minute."""
        while not stop.is_set():
            try:
                serve.serve(self._settings, self._lend, self._tell, stop)
            except Conflict:
                self._say("another process answers in the channels")
            except NacreError as error:
                self._say(f"no gateway: {error.message}" + (f" ({error.hint})" if error.hint else ""))
            stop.wait(_PAUSE_SECONDS)

    def _say(self, line: str) -> None:
        if line != self._told:
            self._told = line
            self._tell(line)
