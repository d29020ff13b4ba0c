"""A cluster: the schema of its server, its API process, metrics and tenants."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from nacre import __version__
from nacre.base.environment import install_hint, is_installed
from nacre.base.frozen import frozen
from nacre.base.ids import utc_now
from nacre.base.lazy import Module
from nacre.base.serving import split_place
from nacre.errors import (
    ConflictError,
    InvalidInputError,
    NacreError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
)
from nacre.home.home import Home
from nacre.serve.browsers import Browsers
from nacre.serve.events import Bus, Live
from nacre.serve.homes import Answering, Homes, Run, Site, Waiting
from nacre.serve.server_web import Door, Web
from nacre.settings import Settings
from nacre.values.memory import NO_QUOTA, Actor, Quota
from nacre.values.reports import OnProgress, Progress
from nacre_server.connection import connect, migrate, state, translated_errors
from nacre_server.keys import Spaces
from nacre_server.postgres import Distributed, distribute
from nacre_server.queue import prepare_queue
from nacre_server.registry import Registry

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@frozen
class Migrated:
    """The schema number before and after a migration."""

    before: int
    after: int


def server_of(settings: Settings) -> str:
    """Return the address of the server. Raises InvalidInputError if none is set."""
    if not settings.server:
        raise InvalidInputError(
            "a cluster needs a PostgreSQL server", hint="set NACRE_DB=postgresql://…"
        )
    return settings.server


def migrate_server(settings: Settings) -> Migrated:
    """Upgrade the server's database to the current schema, and create the job queue.

    Raises InvalidInputError, SchemaTooNewError, UnusableStoreError, UnavailableError.
    """
    url = server_of(settings)
    with closing(connect(url)) as connection, translated_errors():
        before = state(connection).number
        migrate(connection)
        after = state(connection).number
    prepare_queue(url)
    return Migrated(before, after)


def distribute_server(settings: Settings, shards: int) -> Distributed:
    """Distribute the rows of a migrated server over its Citus nodes.

    Raises InvalidInputError, UnusableStoreError, NotAllowedError, StoreBusyError.
    """
    with closing(connect(server_of(settings))) as connection, translated_errors():
        return distribute(connection, shards)


# ----------------------------------------------------------------------------
# Observation of a process. It records the name, outcome and duration of each operation or job, but
# no content.


OK = "ok"
FAULT = "fault"
"""The outcome of an unexpected exception. Other outcomes are ``ok`` or an error code."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
"""Bounds of the histogram buckets, in seconds."""

Note = Callable[[str, float], None]
"""A function that takes an outcome and a duration in seconds."""


class Observer(Protocol):
    """A receiver of observations."""

    def observed(self, name: str) -> AbstractContextManager[Note]:
        """Observe the block under a name. The block reports its outcome and duration to the yielded function."""
        ...


class Watch:
    """A group of observers."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = tuple(observers)

    @contextmanager
    def counted(self, name: str) -> Iterator[None]:
        """Report the block to all observers."""
        began, outcome = time.perf_counter(), FAULT
        with ExitStack() as stack:
            notes = [stack.enter_context(observer.observed(name)) for observer in self._observers]
            try:
                yield
                outcome = OK
            except NacreError as error:
                outcome = error.code
                raise
            finally:
                seconds = time.perf_counter() - began
                for note in notes:
                    note(outcome, seconds)

    def measured(self, run: Run) -> Run:
        """Wrap ``run`` so that each call is reported to the observers."""

        def counted(operation: str, request: bytes, actor: Actor, caller: Waiting) -> bytes:
            with self.counted(operation):
                return run(operation, request, actor, caller)

        return counted


# ----------------------------------------------------------------------------
# A process that answers programs and agents with keys. It has no state, because its home is a
# temporary folder and the memory is on the server. Any process can answer any request.


FOLD_SECONDS = 30.0
"""Interval for storing usage counts, in seconds. A killed process loses only the latest counts."""

MOST_CLIENTS = 1_000
"""Maximum number of simultaneous clients. Most of them wait."""

END_SECONDS = 30.0
"""Time limit for finishing open requests at the end, in seconds."""


class Api:
    """An HTTP server for clients with keys.

    ``folder`` is empty and can be deleted afterwards. ``watch`` observes all operations. ``around``
    wraps the ASGI app.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        door: Door,
        tell: Callable[[str], None],
        watch: Watch,
        around: Callable[[ASGIApp], ASGIApp] | None = None,
    ) -> None:
        """Create the server. Raises InvalidInputError if no server is set or ``door`` is unsafe."""
        server_of(settings)
        own = replace(settings, home=folder, database=folder / "nacre.db", is_temporary=True)
        self._tell = tell
        self._spaces = Spaces(own)
        no_homes = Homes(_refused, folder, own.config)
        self._answering = Answering(no_homes, tell, {}, homes_of=self._spaces.homes)
        self._web = Web(
            Site(
                folder,
                watch.measured(self._answering.run),
                lambda: {"version": __version__},
                Browsers(folder),
                Live(_refused, Bus(utc_now)),
                tell,
                everything=own.text("mcp.tools") == "all",
                bearer=self._spaces.bearer,
                live_of=self._spaces.live,
                is_ready=self._spaces.is_reachable,
                around=around,
            ),
            replace(door, room=MOST_CLIENTS),
        )

    def run(self, stop: threading.Event, linger: float) -> None:
        """Answer until ``stop`` is set, then finish.

        The server reports that it is not ready, but still answers for ``linger`` seconds, so that
        the load balancer finds another process. Then it waits for open requests. Raises Unavailable
        if it cannot listen or requests do not end.
        """
        minding = threading.Thread(
            target=self._answering.mind, args=(stop,), daemon=True, name="minding"
        )
        self._web.start()
        minding.start()
        self._tell(f"serves keys at {self._web.address}, agents at {self._web.address}/mcp")
        while not stop.wait(FOLD_SECONDS):
            self._spaces.fold()
        self._tell("stopping: finishing the requests in progress")
        self._web.leave()
        self._spaces.end_events()
        has_ended = self._web.drain(linger, END_SECONDS)
        self._spaces.fold()
        self._spaces.close()
        if not has_ended:
            raise UnavailableError("some requests did not end", hint="clients may send them again")


def _refused() -> Home:
    raise NotAllowedError(
        "this server has no memory of its own",
        hint="send a space's key (nacre server keys create)",
    )


# ----------------------------------------------------------------------------
# Metrics of a process for Prometheus: counts, durations and outcomes, but no spaces or texts.


if TYPE_CHECKING:
    import prometheus_client as prometheus
else:
    prometheus = Module("prometheus_client")


class Metrics:
    """Metrics of operations (``nacre server cluster api``) or jobs (``… worker``).

    They are ``nacre_<what>_total{name, outcome}``, where the outcome is ``ok`` or an error code,
    ``…_seconds{name}``, ``…_running``, and the process metrics of the system.
    """

    def __init__(self, what: str) -> None:
        """Create the metrics. ``what`` is ``requests`` or ``jobs``.

        Raises UnavailableError if the library is missing.
        """
        what = f"nacre_{what}"
        if not is_installed("prometheus_client"):
            raise UnavailableError(
                "metrics need a library: prometheus_client", hint=install_hint("metrics")
            )
        own = self.registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=own)
        self._done = prometheus.Counter(what, "Finished.", ["name", "outcome"], registry=own)
        self._seconds = prometheus.Histogram(
            f"{what}_seconds", "Duration.", ["name"], buckets=SECONDS, registry=own
        )
        self._running = prometheus.Gauge(f"{what}_running", "In progress.", registry=own)

    def serve(self, place: str) -> str:
        """Serve the metrics at ``[HOST:]PORT``, by default only for this machine. Return the address.

        Raises UnavailableError if it cannot listen there.
        """
        host, port = split_place(place)
        try:
            server, _ = prometheus.start_http_server(port, host, self.registry)
        except OSError as error:
            raise UnavailableError(
                f"cannot listen at {place}: {error.strerror}", hint="choose another port"
            ) from error
        return f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"

    @contextmanager
    def observed(self, name: str) -> Iterator[Note]:
        def note(outcome: str, seconds: float) -> None:
            self._seconds.labels(name).observe(seconds)
            self._done.labels(name, outcome).inc()

        with self._running.track_inprogress():
            yield note


# ----------------------------------------------------------------------------
# Traces and metrics for an OpenTelemetry collector, sent with OTLP over HTTP, without spaces and
# texts. The standard variables ``OTEL_…`` set headers, time limits, sampling and attributes.


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
    """Sends spans, a histogram of durations, and the number of operations in progress.

    A span has the operation's name and ``nacre.outcome``. Its status is an error for ``fault``. Its
    parent is the client's span in ``traceparent``.
    """

    def __init__(self, service: str, what: str, url: str, tell: Callable[[str], None]) -> None:
        """Connect to the collector at ``url``, such as ``http://localhost:4318``.

        ``what`` is ``requests`` or ``jobs``. ``tell`` is called once if the collector rejects data.
        Raises InvalidInputError, and UnavailableError if a library is missing.
        """
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise InvalidInputError(
                f"{url!r} is not the address of a collector",
                hint="e.g. --otlp http://localhost:4318",
            )
        try:
            import_module(_LIBRARY)
        except ImportError as error:
            raise UnavailableError(
                f"traces need a library: {_LIBRARY}", hint=install_hint("telemetry")
            ) from error
        # The logs of failed sends contain the data, so a single message replaces them.
        logger = logging.getLogger("opentelemetry")
        logger.propagate = False
        logger.handlers = [_Once(tell)]
        of_this = resources.Resource(
            {
                "service.name": service,
                "service.version": __version__,
                "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
            }
        )
        resource = of_this.merge(resources.OTELResourceDetector().detect())
        base = url.rstrip("/")
        self._spans = tracing.TracerProvider(resource=resource, shutdown_on_exit=False)
        self._spans.add_span_processor(
            trace_export.BatchSpanProcessor(trace_exporter.OTLPSpanExporter(f"{base}/v1/traces"))
        )
        reader = metrics_export.PeriodicExportingMetricReader(
            metric_exporter.OTLPMetricExporter(f"{base}/v1/metrics")
        )
        self._figures = metrics.MeterProvider([reader], resource, shutdown_on_exit=False)
        self._tracer = self._spans.get_tracer("nacre", __version__)
        meter = self._figures.get_meter("nacre", __version__)
        self._seconds = meter.create_histogram(
            f"nacre.{what}.duration",
            "s",
            "Duration.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._running = meter.create_up_down_counter(f"nacre.{what}.running", "1", "In progress.")
        self._kind = trace.SpanKind.SERVER if what == "requests" else trace.SpanKind.CONSUMER

    @contextmanager
    def observed(self, name: str) -> Iterator[Note]:
        self._running.add(1)
        try:
            with self._tracer.start_as_current_span(
                name, kind=self._kind, record_exception=False, set_status_on_exception=False
            ) as span:

                def note(outcome: str, seconds: float) -> None:
                    span.set_attribute("nacre.outcome", outcome)
                    if outcome == FAULT:
                        span.set_status(trace.StatusCode.ERROR)
                    self._seconds.record(seconds, {"name": name, "outcome": outcome})

                yield note
        finally:
            self._running.add(-1)

    def close(self) -> None:
        """Send the remaining data. Wait some seconds if the collector is unreachable."""
        closing = [
            threading.Thread(target=item.shutdown, daemon=True)
            for item in (self._spans, self._figures)
        ]
        for item in closing:
            item.start()
        for item in closing:
            item.join(_END_SECONDS)


class Continued:
    """ASGI middleware that makes the client's span the parent of a request's spans."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        named = {
            key.decode(): value.decode("latin-1")
            for key, value in scope.get("headers", ())
            if key in _TRACE_HEADERS
        }
        token = (
            context.attach(tracecontext.TraceContextTextMapPropagator().extract(named))
            if named
            else None
        )
        try:
            await self._app(scope, receive, send)
        finally:
            if token:
                context.detach(token)


class _Once(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell: Callable[[str], None] | None = tell

    def emit(self, _: logging.LogRecord) -> None:
        tell, self._tell = self._tell, None
        if tell:
            tell("the collector rejects data: traces and metrics are lost")


# ----------------------------------------------------------------------------
# Tenants of a cluster's server


_OF_A_SPACE = (
    "delete_keys",
    "delete_members",
    "delete_tended",
    "delete_quota",
    "delete_calls",
    "delete_space",
)


@frozen
class Tenant:
    """A space and its size. ``bytes`` excludes indexes."""

    name: str
    kind: str
    members: int
    memories: int
    sessions: int
    turns: int
    rows: int
    bytes: int
    quota: Quota


@frozen
class Removed:
    """The number of rows that were deleted, and the number left in all tables afterwards."""

    name: str
    rows: int
    tables: int
    left: int


def list_tenants(settings: Settings, notify: OnProgress = lambda _: None) -> list[Tenant]:
    """Return all spaces. This reads every row. Raises NotAllowedError, UnusableStoreError."""
    found = []
    with closing(Registry(server_of(settings))) as registry:
        names = registry.all("list_tenants")
        for row in names:
            found.append(_weighed(registry, *row))
            notify(Progress("weighing", len(found), len(names)))
    return found


def tenant_of(settings: Settings, name: str) -> Tenant:
    """Return a space by name. Raises NotFoundError."""
    with closing(Registry(server_of(settings))) as registry:
        for row in registry.all("list_tenants"):
            if row[0] == name:
                return _weighed(registry, *row)
    raise _unknown(name)


def limit_tenant(settings: Settings, name: str, change: Callable[[Quota], Quota]) -> Quota:
    """Change a tenant's quota and return it. It applies from the next request. Raises NotFoundError."""
    with closing(Registry(server_of(settings))) as registry, registry.transaction():
        registry.all("lock_space", space=name)
        found = registry.all("read_quota", space=name)
        if not found:
            raise _unknown(name)
        quota = change(Quota(*found[0]))
        if quota == NO_QUOTA:
            registry.run("delete_quota", space=name)
        else:
            registry.run(
                "set_quota", space=name, calls=quota.calls, turns=quota.turns, usd=quota.usd
            )
        return quota


def remove_tenant(settings: Settings, name: str) -> Removed:
    """Delete a tenant with all its rows, members and keys. Its audit log, which has no texts, stays.

    Raises NotFoundError, and ConflictError if rows were written at the same time.
    """
    with closing(Registry(server_of(settings))) as registry:
        with registry.transaction():
            is_known = registry.all("lock_space", space=name)
            if not is_known and not sum(rows for rows, _ in registry.weigh(name).values()):
                raise _unknown(name)
            for statement in _OF_A_SPACE:
                registry.run(statement, space=name)
            deleted = registry.delete_rows(name)
        found = registry.weigh(name)
        left = sum(rows for rows, _ in found.values())
        if left:
            raise ConflictError(
                f"{left} rows of {name} were written in the meantime",
                hint="stop its writers and try again",
            )
        return Removed(name, deleted, len(found), left)


def _unknown(name: str) -> NotFoundError:
    return NotFoundError(
        f"there is no tenant {name}", hint="nacre server cluster tenants lists them"
    )


def _weighed(registry: Registry, name: str, kind: str, members: int, *quota: Any) -> Tenant:
    found = registry.weigh(name)
    memories, sessions, turns = (found[table][0] for table in ("memories", "sessions", "turns"))
    rows, taken = (sum(item[at] for item in found.values()) for at in (0, 1))
    return Tenant(name, kind, members, memories, sessions, turns, rows, taken, Quota(*quota))
