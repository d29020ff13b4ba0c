"""Figures of a process for Prometheus: how many, how long, how it ended. None names a space or a text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nacre.errors import NacreError, Unavailable
from nacre.platform.distribution import install_hint
from nacre.platform.installed import is_installed
from nacre.platform.lazy import Module
from nacre.serving.place import split_place
from nacre.values.actor import Actor
from nacre.web.served import Asking, Run

if TYPE_CHECKING:
    import prometheus_client as prometheus
else:
    prometheus = Module("prometheus_client")

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
_FAULT = "fault"


class Metrics:
    """What is done, by name: operations in ``nacre cluster api``, jobs in ``nacre cluster worker``.

    ``<what>_total{name, outcome}``, where the outcome is ``ok`` or the code of an error; ``<what>_seconds{name}``;
    ``<what>_running``; and what the system says of the process.
    """

    def __init__(self, what: str) -> None:
        """``what`` is how its figures begin: ``nacre_requests``. Raises Unavailable where the library is missing."""
        if not is_installed("prometheus_client"):
            raise Unavailable("figures need a library: prometheus_client", hint=install_hint("metrics"))
        own = self._registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=own)
        self._done = prometheus.Counter(what, "What was done.", ["name", "outcome"], registry=own)
        self._seconds = prometheus.Histogram(
            f"{what}_seconds", "How long.", ["name"], buckets=_SECONDS, registry=own
        )  # fmt: skip
        self._running = prometheus.Gauge(f"{what}_running", "What is done now.", registry=own)

    def serve(self, place: str) -> str:
        """Answer at ``[HOST:]PORT``, by default to this machine alone; returns the address.

        Raises InvalidInput, Unavailable where it cannot listen.
        """
        host, port = split_place(place)
        try:
            server, _ = prometheus.start_http_server(port, host, self._registry)
        except OSError as error:
            raise Unavailable(
                f"cannot listen at {place}: {error.strerror or error}", hint="take another port"
            ) from error
        return f"http://{host}:{server.server_port}/metrics"

    @contextmanager
    def counted(self, name: str) -> Iterator[None]:
        """Count what is done in the block."""
        began, outcome = time.perf_counter(), _FAULT
        try:
            with self._running.track_inprogress():
                yield
            outcome = "ok"
        except NacreError as error:
            outcome = error.code
            raise
        finally:
            self._seconds.labels(name).observe(time.perf_counter() - began)
            self._done.labels(name, outcome).inc()

    def measured(self, run: Run) -> Run:
        """The same, and it is counted."""

        def counted(operation: str, request: bytes, actor: Actor, caller: Asking) -> bytes:
            with self.counted(operation):
                return run(operation, request, actor, caller)

        return counted
