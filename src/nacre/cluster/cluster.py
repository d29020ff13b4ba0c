"""The schema of a cluster's server."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from nacre import __version__
from nacre.base.environment import install_hint, is_installed
from nacre.base.ids import utc_now
from nacre.base.lazy import Module
from nacre.base.serving import listen_at, split_place
from nacre.cluster.queue import prepare_queue
from nacre.errors import Conflict, InvalidInput, NacreError, NotAllowed, NotFound, Unavailable
from nacre.home.home import Home
from nacre.serve.browsers import Browsers
from nacre.serve.events import Bus, Live
from nacre.serve.homes import Answering, Homes
from nacre.serve.server import Spaces
from nacre.serve.server_web import Door, Site, Web
from nacre.serve.web import Asking, Run
from nacre.settings import Settings
from nacre.store.postgres import Distributed, distribute
from nacre.store.postgres_connection import connect, migrate, state, translated_errors
from nacre.store.postgres_schema import Registry
from nacre.values.memory import NO_QUOTA, Actor, Quota
from nacre.values.reports import OnProgress, Progress

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@dataclass(frozen=True, slots=True)
class Migrated:
    """The schema's number before and after."""

    before: int
    after: int


def server_of(settings: Settings) -> str:
    """The address of the server. Raises InvalidInput where none is set."""
    if not settings.server:
        raise InvalidInput(
            "a cluster keeps its memory on a PostgreSQL server", hint="set NACRE_DB=postgresql://…"
        )
    return settings.server


def migrate_server(settings: Settings) -> Migrated:
    """Bring the server's database to the present schema, and make the queue of jobs.

    Raises InvalidInput, SchemaTooNew, StoreUnusable, Unavailable.
    """
    url = server_of(settings)
    with closing(connect(url)) as connection, translated_errors():
        before = state(connection).number
        migrate(connection)
        after = state(connection).number
    prepare_queue(url)
    return Migrated(before, after)


def distribute_server(settings: Settings, shards: int) -> Distributed:
    """Spread the rows of a migrated server over the nodes that Citus knows there. Raises InvalidInput, StoreUnusable,
    NotAllowed, StoreBusy."""
    with closing(connect(server_of(settings))) as connection, translated_errors():
        return distribute(connection, shards)


# ----------------------------------------------------------------------------
# What a process does, told to whoever counts it: by its name, how it ended and how long it took;
# never what about.


OK = "ok"
FAULT = "fault"
"""How it ended where nobody foresaw it; else it is ``ok`` or the code of an error."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
"""The bounds of histograms."""

Note = Callable[[str, float], None]
"""Takes how something ended, and its seconds."""


class Observer(Protocol):
    """Counts."""

    def observed(self, name: str) -> AbstractContextManager[Note]:
        """Something of that name is done in the block; how it ended is told within."""
        ...


class Watch:
    """Tells observers of all that is done in its blocks."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = tuple(observers)

    @contextmanager
    def counted(self, name: str) -> Iterator[None]:
        """Something of that name is done in the block."""
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
        """The same, and it is counted."""

        def counted(operation: str, request: bytes, actor: Actor, caller: Asking) -> bytes:
            with self.counted(operation):
                return run(operation, request, actor, caller)

        return counted


# ----------------------------------------------------------------------------
# A process that answers programs and agents: each by the key that it shows, and any process any
# request.
#
# It keeps nothing. Its home is a temporary folder, and all that is remembered is on the server.


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
        self,
        settings: Settings,
        folder: Path,
        door: Door,
        tell: Callable[[str], None],
        watch: Watch,
        around: Callable[[ASGIApp], ASGIApp] | None = None,
    ) -> None:
        """Raises InvalidInput where no server is set, or the door should not be opened."""
        server_of(settings)
        own = replace(settings, home=folder, database=folder / "nacre.db", is_temporary=True)
        self._tell = tell
        self._spaces = Spaces(own)
        nobodys = Homes(_refused, folder, own.config)
        self._answering = Answering(nobodys, tell, {}, homes_of=self._spaces.homes)
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
        """Answer until ``stop`` is set. Then for ``linger`` seconds it says that it is not ready and answers on, so
        that whoever sends requests here finds another process; then what is being answered ends.

        Raises Unavailable where it cannot listen, or what is being answered does not end.
        """
        minding = threading.Thread(
            target=self._answering.mind, args=(stop,), daemon=True, name="minding"
        )
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
    raise NotAllowed(
        "this server has no memory of its own",
        hint="show a key to a space: nacre server keys create",
    )


# ----------------------------------------------------------------------------
# A page for who looks after a cluster: what one process did, and how the server is.
#
# It is made of numbers and of names of operations; it holds no text, and names no space.


HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}

_REFRESH_SECONDS = 10
_JOBS = {"todo": "wait", "doing": "are done now", "failed": "were given up"}
_FULL = 0.8
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif;
  --dim: color-mix(in srgb, CanvasText 60%, Canvas);
  --line: color-mix(in srgb, CanvasText 15%, Canvas);
  --bad: light-dark(#b3261e, #ff8a80); }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
p, .dim { color: var(--dim); margin: 0; } .bad { color: var(--bad); font-weight: 600; }
div { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem 1.5rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--dim); font-weight: 400; } td + td, th + th { text-align: right; font-variant-numeric: tabular-nums; }
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done under one name since the process began. ``failed`` counts by the code of the error; ``p95_seconds``
    is the bound below which 95 of 100 were, ``None`` above the largest."""

    name: str
    count: int
    failed: Mapping[str, int]
    mean_seconds: float
    p95_seconds: float | None


@dataclass(frozen=True, slots=True)
class ServerState:
    """How the server is; ``bytes`` are of the database, ``jobs`` by their state."""

    spaces: int
    keys: int
    connections: int
    most_connections: int
    bytes: int
    jobs: Mapping[str, int]


def read_state(url: str, at: int) -> ServerState | None:
    """How the server at an address is at a time (milliseconds since 1970); ``None`` where it does not answer."""
    try:
        with closing(Registry(url)) as registry:
            ((spaces, keys, connections, most, size),) = registry.all("read_state", at=at)
            jobs: dict[str, int] = (
                dict(registry.all("count_jobs")) if registry.all("has_queue") else {}
            )
    except NacreError:
        return None
    return ServerState(spaces, keys, connections, most, size, jobs)


def page(
    what: str, since: datetime, running: int, done: Sequence[Done], state: ServerState | None
) -> bytes:
    """The page, in HTML, which reads itself anew every ten seconds."""
    parts = [
        f"<h1>nacre server cluster {escape(what)}</h1>",
        f"<p>Version {__version__}, since {since:%Y-%m-%d %H:%M} UTC; {running} at work. "
        '<a href="/metrics">For Prometheus</a></p>',
        "<h2>The server</h2>",
        _server(state),
        "<h2>What this process did</h2>",
        _done(done),
    ]
    body = "\n".join(parts)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>nacre server cluster {escape(what)}</title>'
        f'<meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="{_REFRESH_SECONDS}">'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    ).encode()


def _server(state: ServerState | None) -> str:
    if state is None:
        return '<p class="bad">It does not answer.</p>'
    is_full = state.connections > _FULL * state.most_connections
    connections = f"{state.connections:,} of {state.most_connections:,}"
    jobs = [
        (
            f"jobs that {told}",
            _marked(f"{state.jobs.get(key, 0):,}", key == "failed" and bool(state.jobs.get(key))),
        )
        for key, told in _JOBS.items()
    ]
    rows = [
        ("spaces", f"{state.spaces:,}"),
        ("keys that hold", f"{state.keys:,}"),
        ("connections", _marked(connections, is_full)),
        ("database", f"{state.bytes / 1e6:,.0f} MB"),
        *jobs,
    ]
    return _table((), rows)


def _done(done: Sequence[Done]) -> str:
    if not done:
        return "<p>Nothing yet.</p>"
    rows = [
        (
            escape(item.name),
            f"{item.count:,}",
            _failed(item.failed),
            f"{1000 * item.mean_seconds:,.0f} ms",
            "over 10 min" if item.p95_seconds is None else f"{1000 * item.p95_seconds:,.0f} ms",
        )
        for item in sorted(done, key=lambda item: (-item.count, item.name))
    ]
    return _table(("", "times", "failed", "on average", "95 of 100 below"), rows)


def _failed(failed: Mapping[str, int]) -> str:
    return ", ".join(
        _marked(f"{count:,} {escape(code)}", code in ("fault", "internal"))
        for code, count in sorted(failed.items())
    )


def _marked(text: str, is_bad: bool) -> str:
    return f'<span class="bad">{text}</span>' if is_bad else text


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{item}</th>" for item in header)
    body = "".join(f"<tr>{''.join(f'<td>{item}</td>' for item in row)}</tr>" for row in rows)
    return f"<div><table>{f'<thead><tr>{head}</tr></thead>' if header else ''}<tbody>{body}</tbody></table></div>"


# ----------------------------------------------------------------------------
# Figures of a process, for Prometheus and as a page: how many, how long, how it ended.
#
# None names a space or a text.


if TYPE_CHECKING:
    import prometheus_client as prometheus
    from prometheus_client.samples import Sample
else:
    prometheus = Module("prometheus_client")

_PERCENTILE = 0.95
_PATIENCE_SECONDS = 10.0


class Metrics:
    """What is done, by name: operations in ``nacre server cluster api``, jobs in ``nacre server cluster worker``.

    ``nacre_<what>_total{name, outcome}``, where the outcome is ``ok`` or the code of an error; ``…_seconds{name}``;
    ``…_running``; and what the system says of the process.
    """

    def __init__(self, what: str) -> None:
        """``what`` is ``requests`` or ``jobs``. Raises Unavailable where the library is missing."""
        what = self._what = f"nacre_{what}"
        self._since = utc_now()
        if not is_installed("prometheus_client"):
            raise Unavailable(
                "figures need a library: prometheus_client", hint=install_hint("metrics")
            )
        own = self._registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=own)
        self._done = prometheus.Counter(what, "What was done.", ["name", "outcome"], registry=own)
        self._seconds = prometheus.Histogram(
            f"{what}_seconds", "How long.", ["name"], buckets=SECONDS, registry=own
        )
        self._running = prometheus.Gauge(f"{what}_running", "What is done now.", registry=own)

    def serve(self, place: str, title: str, state: Callable[[], ServerState | None]) -> str:
        """Answer at ``[HOST:]PORT``, by default to this machine alone: ``/metrics`` to Prometheus, and at ``/`` a page
        that tells how the server is, too; returns the address of the former.

        Raises InvalidInput, Unavailable where it cannot listen.
        """
        host, port = split_place(place)
        listening = listen_at(host, port, "take another port")
        server = ThreadingHTTPServer(
            listening.getsockname()[:2], _answering(self, title, state), False
        )
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
        ((running,),) = (
            [sample.value for sample in family.samples] for family in self._running.collect()
        )
        return page(title, self._since, int(running), self.done(), state)

    def done(self) -> list[Done]:
        """What was done, by its name."""
        outcomes: dict[str, Counter[str]] = {}
        for sample in self._samples(f"{self._what}_total"):
            outcomes.setdefault(sample.labels["name"], Counter())[sample.labels["outcome"]] += int(
                sample.value
            )
        sums = {
            item.labels["name"]: item.value for item in self._samples(f"{self._what}_seconds_sum")
        }
        return [
            Done(
                name,
                found.total(),
                {code: number for code, number in found.items() if code != OK},
                sums[name] / found.total(),
                self._bound(name),
            )
            for name, found in outcomes.items()
        ]

    def _bound(self, name: str) -> float | None:
        found = [
            sample
            for sample in self._samples(f"{self._what}_seconds_bucket")
            if sample.labels["name"] == name
        ]
        reached = (
            float(item.labels["le"])
            for item in found
            if item.value >= _PERCENTILE * found[-1].value
        )
        bound = min(reached)
        return None if bound == float("inf") else bound

    def _samples(self, name: str) -> Iterator[Sample]:
        for family in self._registry.collect():
            yield from (sample for sample in family.samples if sample.name == name)

    @contextmanager
    def observed(self, name: str) -> Iterator[Note]:
        """See :class:`~nacre.cluster.cluster.Observer`."""

        def note(outcome: str, seconds: float) -> None:
            self._seconds.labels(name).observe(seconds)
            self._done.labels(name, outcome).inc()

        with self._running.track_inprogress():
            yield note


def _answering(
    metrics: Metrics, title: str, state: Callable[[], ServerState | None]
) -> type[BaseHTTPRequestHandler]:
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
                self._send(
                    404,
                    {"Content-Type": "text/plain"},
                    b"/ is a page, /metrics is for Prometheus\n",
                )

        def log_message(self, *_: object) -> None:
            """Nobody reads who asked."""

        def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Answering


# ----------------------------------------------------------------------------
# Traces and figures for an OpenTelemetry collector, by OTLP over HTTP. They name no space and no
# text.
#
# What the standard variables ``OTEL_…`` say holds: headers, time limits, sampling, further
# attributes.


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
            raise InvalidInput(
                f"{url!r} is no collector's address", hint="e.g. --otlp http://localhost:4318"
            )
        try:
            import_module(_LIBRARY)
        except ImportError as error:
            raise Unavailable(
                f"traces need a library: {_LIBRARY}", hint=install_hint("telemetry")
            ) from error
        _tell_once(tell)
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
            "How long it took.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._running = meter.create_up_down_counter(
            f"nacre.{what}.running", "1", "What is done now."
        )
        self._kind = trace.SpanKind.SERVER if what == "requests" else trace.SpanKind.CONSUMER

    @contextmanager
    def observed(self, name: str) -> Iterator[Note]:
        """See :class:`~nacre.cluster.cluster.Observer`."""
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
        """Send what was not sent yet; a collector that is away is waited for some seconds."""
        closing = [
            threading.Thread(target=item.shutdown, daemon=True)
            for item in (self._spans, self._figures)
        ]
        for item in closing:
            item.start()
        for item in closing:
            item.join(_END_SECONDS)


class Continued:
    """Around a program: what is done for a request stands below the span that its client names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
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


# ----------------------------------------------------------------------------
# The tenants of a cluster's server, for whoever manages it.


_OF_A_SPACE = (
    "delete_keys",
    "delete_members",
    "delete_tended",
    "delete_quota",
    "delete_calls",
    "delete_space",
)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A space and what it holds; ``bytes`` are its rows without indexes."""

    name: str
    kind: str
    members: int
    memories: int
    sessions: int
    turns: int
    rows: int
    bytes: int
    quota: Quota


@dataclass(frozen=True, slots=True)
class Removed:
    """What was deleted of a tenant: so many rows. ``left`` are those of all tables, counted again afterwards."""

    name: str
    rows: int
    tables: int
    left: int


def list_tenants(settings: Settings, notify: OnProgress = lambda _: None) -> list[Tenant]:
    """All spaces. Every row is read. Raises NotAllowed, StoreUnusable."""
    found = []
    with closing(Registry(server_of(settings))) as registry:
        names = registry.all("list_tenants")
        for told in names:
            found.append(_weighed(registry, *told))
            notify(Progress("weighing", len(found), len(names)))
    return found


def tenant_of(settings: Settings, name: str) -> Tenant:
    """One of them. Raises NotFound."""
    with closing(Registry(server_of(settings))) as registry:
        for told in registry.all("list_tenants"):
            if told[0] == name:
                return _weighed(registry, *told)
    raise _unknown(name)


def limit_tenant(settings: Settings, name: str, change: Callable[[Quota], Quota]) -> Quota:
    """Change what a tenant may use, from its next request on; returns it. Raises NotFound."""
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
    """Delete a tenant with all its rows, members and keys. Its audit log stays, which holds ids and no texts.

    Raises NotFound, Conflict where somebody wrote meanwhile.
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
            raise Conflict(
                f"{left} rows of {name} were written meanwhile",
                hint="end what writes there, and repeat it",
            )
        return Removed(name, deleted, len(found), left)


def _unknown(name: str) -> NotFound:
    return NotFound(f"there is no tenant {name}", hint="nacre server cluster tenants lists them")


def _weighed(registry: Registry, name: str, kind: str, members: int, *quota: Any) -> Tenant:
    found = registry.weigh(name)
    memories, sessions, turns = (found[table][0] for table in ("memories", "sessions", "turns"))
    rows, taken = (sum(item[at] for item in found.values()) for at in (0, 1))
    return Tenant(name, kind, members, memories, sessions, turns, rows, taken, Quota(*quota))
