"""Figures of a process, for Prometheus and as a page: how many, how long, how it ended.

None names a space or a text.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from nacre.cluster.operators_page import HEADERS, Done, ServerState, page
from nacre.cluster.watch import OK, SECONDS, Note
from nacre.errors import Unavailable
from nacre.platform.distribution import install_hint
from nacre.platform.ids import utc_now
from nacre.platform.installed import is_installed
from nacre.platform.lazy import Module
from nacre.serving.place import listen_at, split_place

if TYPE_CHECKING:
    import prometheus_client as prometheus
    from prometheus_client.samples import Sample
else:
    prometheus = Module("prometheus_client")

_PERCENTILE = 0.95
_PATIENCE_SECONDS = 10.0


class Metrics:
    """What is done, by name: operations in ``nacre cluster api``, jobs in ``nacre cluster worker``.

    ``nacre_<what>_total{name, outcome}``, where the outcome is ``ok`` or the code of an error; ``…_seconds{name}``;
    ``…_running``; and what the system says of the process.
    """

    def __init__(self, what: str) -> None:
        """``what`` is ``requests`` or ``jobs``. Raises Unavailable where the library is missing."""
        what = self._what = f"nacre_{what}"
        self._since = utc_now()
        if not is_installed("prometheus_client"):
            raise Unavailable("figures need a library: prometheus_client", hint=install_hint("metrics"))
        own = self._registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=own)
        self._done = prometheus.Counter(what, "What was done.", ["name", "outcome"], registry=own)
        self._seconds = prometheus.Histogram(
            f"{what}_seconds", "How long.", ["name"], buckets=SECONDS, registry=own
        )  # fmt: skip
        self._running = prometheus.Gauge(f"{what}_running", "What is done now.", registry=own)

    def serve(self, place: str, title: str, state: Callable[[], ServerState | None]) -> str:
        """Answer at ``[HOST:]PORT``, by default to this machine alone: ``/metrics`` to Prometheus, and at ``/`` a page
        that tells how the server is, too; returns the address of the former.

        Raises InvalidInput, Unavailable where it cannot listen.
        """
        host, port = split_place(place)
        listening = listen_at(host, port, "take another port")
        server = ThreadingHTTPServer(listening.getsockname()[:2], _answering(self, title, state), False)
        server.socket.close()
        server.socket = listening
        server.server_activate()
        threading.Thread(target=server.serve_forever, daemon=True, name="figures").start()
        return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/metrics"

    def exposed(self) -> bytes:
        """All figures, as Prometheus reads them."""
        return prometheus.generate_latest(self._registry)

    def page(self, title: str, state: ServerState | None) -> bytes:
        """The figures as a page."""
        ((running,),) = ([sample.value for sample in family.samples] for family in self._running.collect())
        return page(title, self._since, int(running), self.done(), state)

    def done(self) -> list[Done]:
        """What was done, by its name."""
        outcomes: dict[str, Counter[str]] = {}
        for sample in self._samples(f"{self._what}_total"):
            outcomes.setdefault(sample.labels["name"], Counter())[sample.labels["outcome"]] += int(sample.value)
        sums = {one.labels["name"]: one.value for one in self._samples(f"{self._what}_seconds_sum")}
        return [
            Done(
                name, found.total(), {code: number for code, number in found.items() if code != OK},
                sums[name] / found.total(), self._bound(name),
            )
            for name, found in outcomes.items()
        ]  # fmt: skip

    def _bound(self, name: str) -> float | None:
        found = [one for one in self._samples(f"{self._what}_seconds_bucket") if one.labels["name"] == name]
        reached = (float(one.labels["le"]) for one in found if one.value >= _PERCENTILE * found[-1].value)
        bound = min(reached)
        return None if bound == float("inf") else bound

    def _samples(self, name: str) -> Iterator[Sample]:
        for family in self._registry.collect():
            yield from (sample for sample in family.samples if sample.name == name)

    @contextmanager
    def observed(self, name: str) -> Iterator[Note]:
        """See :class:`~nacre.cluster.watch.Observer`."""

        def note(outcome: str, seconds: float) -> None:
            self._seconds.labels(name).observe(seconds)
            self._done.labels(name, outcome).inc()

        with self._running.track_inprogress():
            yield note


def _answering(
    metrics: Metrics, title: str, state: Callable[[], ServerState | None]
) -> type[BaseHTTPRequestHandler]:  # fmt: skip
    class Answering(BaseHTTPRequestHandler):
        """Two pages."""

        timeout = _PATIENCE_SECONDS

        def do_GET(self) -> None:
            """See http.server."""
            if self.path == "/metrics":
                self._send(200, {"Content-Type": prometheus.CONTENT_TYPE_LATEST}, metrics.exposed())
            elif self.path == "/":
                self._send(200, HEADERS, metrics.page(title, state()))
            else:
                self._send(404, {"Content-Type": "text/plain"}, b"/ is a page, /metrics is for Prometheus\n")

        def log_message(self, *_: object) -> None:
            """Nobody reads who asked."""

        def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Answering
