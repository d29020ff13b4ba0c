"""The gateway's thread in the daemon, and its check in the doctor."""

from __future__ import annotations

import threading
from collections.abc import Callable

from nacre.base.text import count
from nacre.errors import ConflictError, NacreError
from nacre.home.home import Home
from nacre.home.spending import NONE
from nacre.settings import Settings
from nacre.values.reports import OK, WARNING, Check
from nacre_gateway import engine
from nacre_gateway.channels import Tell
from nacre_gateway.sessions import Lend

_RETRY_SECONDS = 60.0


class Chatting:
    """A thread that serves the channels unless another process does."""

    def __init__(self, settings: Settings, lend: Lend, log: Tell) -> None:
        self._settings = settings
        self._lend = lend
        self._tell = log
        self._last_line = ""

    def run(self, stop: threading.Event) -> None:
        """Serve until ``stop`` is set; log each failure once, and retry every minute."""
        while not stop.is_set():
            try:
                engine.serve(self._settings, self._lend, self._tell, stop)
            except ConflictError:
                self._tell_once("another process answers in the channels")
            except NacreError as error:
                self._tell_once(
                    f"no gateway: {error.message}" + (f" ({error.hint})" if error.hint else "")
                )
            stop.wait(_RETRY_SECONDS)

    def _tell_once(self, line: str) -> None:
        if line != self._last_line:
            self._last_line = line
            self._tell(line)


def chatting(settings: Settings, lend: Lend, log: Tell) -> Callable[[threading.Event], None] | None:
    """Return the thread's work if ``gateway.enabled`` is set."""
    return Chatting(settings, lend, log).run if settings.flag("gateway.enabled") else None


def check(home: Home) -> list[Check]:
    """Check that configured channels open, a model answers, and answers are sent."""
    if not home.settings["gateway.channels"]:
        return []
    state = engine.gateway_status(home)
    broken = [f"{item.name}: {item.problem}" for item in state.channels if item.problem]
    if state.model == NONE:
        broken.append("no model for answers: models.chat is not set")
    if broken:
        return [Check("gateway", WARNING, "; ".join(broken), "see docs/gateway.md")]
    late = [item for item in state.undelivered if item.state == "waiting"]
    if late:
        finding = (
            f"{count(len(late), 'answer')} could not be sent: {late[0].channel}: {late[0].problem}"
        )
        return [Check("gateway", WARNING, finding, "nacre gateway")]
    runs = "runs" if state.running else "is not running: nacre gateway run, or gateway.enabled"
    return [Check("gateway", OK, f"{count(len(state.channels), 'channel')}; it {runs}")]
