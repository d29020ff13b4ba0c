"""Traces and figures for an OpenTelemetry collector, by OTLP over HTTP. They name no space and no text.

What the standard variables ``OTEL_…`` say holds: headers, time limits, sampling, further attributes.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from nacre import __version__
from nacre.cluster.watch import FAULT, SECONDS, Note
from nacre.errors import InvalidInput, Unavailable
from nacre.platform.distribution import install_hint
from nacre.platform.lazy import Module

if TYPE_CHECKING:
    from opentelemetry import context, trace
    from opentelemetry.exporter.otlp.proto.http import metric_exporter, trace_exporter
    from opentelemetry.sdk import metrics, resources
    from opentelemetry.sdk import trace as tracing
    from opentelemetry.sdk.metrics import export as metrics_export
    from opentelemetry.sdk.trace import export as trace_export
    from opentelemetry.trace.propagation import tracecontext
    from starlette.types import ASGIApp, Receive, Scope, Send
else:
    context = Module("opentelemetry.context")
    trace = Module("opentelemetry.trace")
    metric_exporter = Module("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    trace_exporter = Module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    metrics = Module("opentelemetry.sdk.metrics")
    resources = Module("opentelemetry.sdk.resources")
    tracing = Module("opentelemetry.sdk.trace")
    metrics_export = Module("opentelemetry.sdk.metrics.export")
    trace_export = Module("opentelemetry.sdk.trace.export")
    tracecontext = Module("opentelemetry.trace.propagation.tracecontext")

_END_SECONDS = 10.0
_LIBRARY = "opentelemetry.exporter.otlp.proto.http"
_TRACE_HEADERS = {b"traceparent", b"tracestate"}


class Telemetry:
    """Sends a span for each thing that is done, a histogram of their seconds, and how many are done now.

    A span is named like the operation and holds ``nacre.outcome``; its status is an error where that is ``fault``. It
    stands below the span that a client named by ``traceparent``.
    """

    def __init__(self, service: str, what: str, url: str, tell: Callable[[str], None]) -> None:
        """``what`` the service does is ``requests`` or ``jobs``. ``url`` is the collector's, as ``http://localhost:4318``.
        ``tell`` hears, once, that it takes nothing. Raises InvalidInput, Unavailable where a library is missing."""
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise InvalidInput(f"{url!r} is no collector's address", hint="e.g. --otlp http://localhost:4318")
        try:
            import_module(_LIBRARY)
        except ImportError as error:
            raise Unavailable(f"traces need a library: {_LIBRARY}", hint=install_hint("telemetry")) from error
        _tell_once(tell)
        of_this = resources.Resource({
            "service.name": service, "service.version": __version__,
            "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
        })  # fmt: skip
        resource = of_this.merge(resources.OTELResourceDetector().detect())
        base = url.rstrip("/")
        self._spans = tracing.TracerProvider(resource=resource, shutdown_on_exit=False)
        self._spans.add_span_processor(
            trace_export.BatchSpanProcessor(trace_exporter.OTLPSpanExporter(f"{base}/v1/traces"))
        )
        reader = metrics_export.PeriodicExportingMetricReader(metric_exporter.OTLPMetricExporter(f"{base}/v1/metrics"))
        self._figures = metrics.MeterProvider([reader], resource, shutdown_on_exit=False)
        self._tracer = self._spans.get_tracer("nacre", __version__)
        meter = self._figures.get_meter("nacre", __version__)
        self._seconds = meter.create_histogram(
            f"nacre.{what}.duration", "s", "How long it took.", explicit_bucket_boundaries_advisory=SECONDS
        )  # fmt: skip
        self._running = meter.create_up_down_counter(f"nacre.{what}.running", "1", "What is done now.")
        self._kind = trace.SpanKind.SERVER if what == "requests" else trace.SpanKind.CONSUMER

    @contextmanager
    def observed(self, name: str) -> Iterator[Note]:
        """See :class:`~nacre.cluster.watch.Observer`."""
        self._running.add(1)
        try:
            with self._tracer.start_as_current_span(
                name, kind=self._kind, record_exception=False, set_status_on_exception=False
            ) as span:  # fmt: skip

                def note(outcome: str, seconds: float) -> None:
                    span.set_attribute("nacre.outcome", outcome)
                    if outcome == FAULT:
                        span.set_status(trace.StatusCode.ERROR)
                    self._seconds.record(seconds, {"name": name, "outcome": outcome})

                yield note
        finally:
            self._running.add(-1)

    def close(self) -> None:
        """Send what was not sent yet; a collector that is away is waited for some seconds."""
        closing = [threading.Thread(target=one.shutdown, daemon=True) for one in (self._spans, self._figures)]
        for one in closing:
            one.start()
        for one in closing:
            one.join(_END_SECONDS)


class Continued:
    """Around a program: what is done for a request stands below the span that its client names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        named = {
            key.decode(): value.decode("latin-1") for key, value in scope.get("headers", ()) if key in _TRACE_HEADERS
        }
        token = context.attach(tracecontext.TraceContextTextMapPropagator().extract(named)) if named else None
        try:
            await self._app(scope, receive, send)
        finally:
            if token:
                context.detach(token)


def _tell_once(tell: Callable[[str], None]) -> None:
    """The libraries log every failure to send; that it happens is said once, and without what was to be sent."""
    logger = logging.getLogger("opentelemetry")
    logger.propagate = False
    logger.handlers = [_Once(tell)]


class _Once(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell: Callable[[str], None] | None = tell

    def emit(self, _: logging.LogRecord) -> None:
        tell, self._tell = self._tell, None
        if tell:
            tell("the collector does not take what is sent: traces and figures are lost")
