"""The gateway's thread in the daemon, and its health check."""

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


def gateway_thread(
    settings: Settings, lend: Lend, log: Tell
) -> Callable[[threading.Event], None] | None:
    """Return a function that serves the channels in a thread, or ``None`` without
    ``gateway.enabled``.

    The function waits while another process serves them.
    """
    if not settings.flag("gateway.enabled"):
        return None

    def run(stop: threading.Event) -> None:
        problem = ""
        while not stop.is_set():
            before = problem
            try:
                engine.serve(settings, lend, log, stop)
            except ConflictError:
                problem = "another process answers in the channels"
            except NacreError as error:
                problem = f"no gateway: {error.with_hint}"
            if problem != before:
                log(problem)
            stop.wait(_RETRY_SECONDS)

    return run


def check(home: Home) -> list[Check]:
    """Check that channels can be opened, that a model is set, and that the gateway sends answers."""
    if not home.settings["gateway.channels"]:
        return []
    state = engine.gateway_status(home)
    broken = [f"{item.name}: {item.problem}" for item in state.channels if item.problem]
    if state.model == NONE:
        broken.append("no model for answers: nacre writer set")
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
