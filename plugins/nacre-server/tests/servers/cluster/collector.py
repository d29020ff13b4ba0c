"""A collector of OpenTelemetry on loopback that keeps what it is sent."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """What it was sent, in the order of arrival."""

    def __init__(self) -> None:
        self.url = ""
        self.sent = b""
        self.traces: list[Any] = []
        self.metrics: list[Any] = []

    def take(self, path: str, data: bytes) -> None:
        """One request."""
        self.sent += data
        if path == "/v1/traces":
            self.traces.append(ExportTraceServiceRequest.FromString(data))
        elif path == "/v1/metrics":
            self.metrics.append(ExportMetricsServiceRequest.FromString(data))

    def services(self) -> set[str]:
        """Who sent anything."""
        resources = [one.resource for sent in self.traces for one in sent.resource_spans]
        resources += [one.resource for sent in self.metrics for one in sent.resource_metrics]
        return {
            item.value.string_value
            for one in resources
            for item in one.attributes
            if item.key == "service.name"
        }

    def spans(self) -> list[Any]:
        """All spans."""
        return [
            span
            for sent in self.traces
            for one in sent.resource_spans
            for scope in one.scope_spans
            for span in scope.spans
        ]

    def counts(self, name: str) -> dict[tuple[str, ...], int]:
        """Of a histogram that tells less than a second, how many were counted by the last report, by the values of
        their attributes."""
        points = [
            point
            for one in self.metrics[-1].resource_metrics
            for scope in one.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.histogram.data_points
        ]
        fine = [one for one in points if 0 < one.explicit_bounds[0] < 1]
        return {
            tuple(sorted(item.value.string_value for item in one.attributes)): one.count
            for one in fine
        }


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens in the block."""
    collector = Collector()

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            is_packed = self.headers.get("Content-Encoding") == "gzip"
            collector.take(self.path, gzip.decompress(data) if is_packed else data)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
