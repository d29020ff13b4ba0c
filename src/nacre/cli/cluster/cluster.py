"""``nacre cluster``."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import click

from nacre.cli import crash, progress
from nacre.cli.command import TEXT, DefaultGroup, Group
from nacre.cli.formats import count, minute, size
from nacre.cli.paper import Paper, bold, dim, printable
from nacre.cli.run import Run
from nacre.cli.services.signals import stopped_by_signals
from nacre.cluster import api as cluster_api
from nacre.cluster import metrics, operators_page, queue, schema, telemetry, tenants
from nacre.cluster import watch as watches
from nacre.cluster import worker as cluster_worker
from nacre.daemon import web as daemon_web
from nacre.platform import ids
from nacre.platform.json_values import to_plain
from nacre.values.actor import Quota


@click.group(
    "cluster",
    cls=Group,
    examples=["nacre cluster migrate", "nacre cluster api --http 0.0.0.0:8765 --name memory.example --insecure"],
)
def cluster() -> None:
    """Serve many people's memories from many machines.

    All that is remembered is on the PostgreSQL server that NACRE_DB names. Processes keep nothing: api answers, worker
    does what takes long.
    """


@cluster.command("migrate", examples=["nacre cluster migrate", "nacre cluster migrate --citus"])
@click.option("--citus", is_flag=True, help="Spread the tenants over the nodes that Citus knows.")
@click.option("--shards", type=click.IntRange(1, 1024), default=32, show_default=True,
              help="How many parts the tenants are in at first.")  # fmt: skip
@click.pass_obj
def migrate(run: Run, citus: bool, shards: int) -> None:
    """Bring the server's database to the schema of this nacre.

    Programs of the former version work on beside it, where the migration lets them. With --citus tenants are spread
    over nodes; what is spread stays as it is, and new nodes learn what they need.
    """
    done = schema.migrate_server(run.settings)
    changed = f"Migrated from schema {done.before} to {done.after}." if done.after != done.before else (
        f"The schema is {done.after} already.")  # fmt: skip
    spread = schema.distribute_server(run.settings, shards) if citus else None

    def tell(paper: Paper) -> None:
        paper.line(changed)
        if spread:
            paper.line(f"Nodes that hold rows: {spread.nodes}. Tables distributed now: {spread.tables}.")

    run.answer({**asdict(done), **(asdict(spread) if spread else {})}, tell)


@cluster.command(
    "api",
    examples=["nacre cluster api", "nacre cluster api --http 0.0.0.0:8765 --name memory.example --insecure"],
)
@click.option("--http", metavar="[HOST:]PORT", type=TEXT, default="8765", show_default=True, help="Where to listen.")
@click.option("--name", "names", metavar="NAME", type=TEXT, multiple=True, help="A name by which clients call it.")
@click.option("--tls-cert", metavar="FILE", type=TEXT, help="Encrypt by this certificate (PEM).")
@click.option("--tls-key", metavar="FILE", type=TEXT, help="Its key, where that is in a file of its own.")
@click.option("--insecure", is_flag=True, help="Serve other machines without encryption, behind what encrypts.")
@click.option("--linger", type=click.FloatRange(0, 600), default=5.0, show_default=True,
              help="So many seconds it answers on when it is to end, while /health/ready says 503.")  # fmt: skip
@click.option("--metrics", "figures", metavar="[HOST:]PORT", type=TEXT,
              help="Where Prometheus finds figures, and operators a page.")  # fmt: skip
@click.option("--otlp", "collector", metavar="URL", type=TEXT,
              help="An OpenTelemetry collector that gets traces and figures.")  # fmt: skip
@click.pass_obj
def api(  # noqa: PLR0913 - one parameter an option
    run: Run, http: str, names: tuple[str, ...], tls_cert: str | None, tls_key: str | None, insecure: bool,
    linger: float, figures: str | None, collector: str | None,
) -> None:  # fmt: skip
    """Answer programs and agents by the keys that they show.

    REST, events and /mcp are those of nacre serve. It keeps nothing on this machine: run as many as you like, on as
    many machines. SIGTERM ends it once what was asked is answered.
    """
    run.keeps_history = False
    door = replace(
        daemon_web.Door.of(run.settings, http), cert=tls_cert or "", key=tls_key or "", unencrypted=insecure,
        names=names,
    )  # fmt: skip
    stop = stopped_by_signals()
    with tempfile.TemporaryDirectory(prefix="nacre-api-", ignore_cleanup_errors=True) as folder:
        around = telemetry.Continued if collector else None
        with _watching(run, "api", "requests", figures, collector) as watch:
            cluster_api.Api(run.settings, Path(folder), door, partial(_tell, run), watch, around).run(stop, linger)
    sys.stdout.flush()
    os._exit(0)  # threads that wait for the server would keep the process


@cluster.command("worker", examples=["nacre cluster worker", "nacre cluster worker --jobs 4"])
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="So many are done at a time.")
@click.option("--every", type=click.FloatRange(0.1, 3600), default=60.0, show_default=True,
              help="So many seconds between two looks at what is to be done.")  # fmt: skip
@click.option("--lease", type=click.FloatRange(1, 3600), default=30.0, show_default=True,
              help="A worker that is silent for so many seconds is taken for dead.")  # fmt: skip
@click.option("--backoff", type=click.IntRange(0, 20), default=4, show_default=True,
              help="The first pause before a job that failed is tried again; then its square, its cube …")  # fmt: skip
@click.option("--metrics", "figures", metavar="[HOST:]PORT", type=TEXT,
              help="Where Prometheus finds figures, and operators a page.")  # fmt: skip
@click.option("--otlp", "collector", metavar="URL", type=TEXT,
              help="An OpenTelemetry collector that gets traces and figures.")  # fmt: skip
@click.pass_obj
def worker(
    run: Run, jobs: int, every: float, lease: float, backoff: int, figures: str | None, collector: str | None
) -> None:  # fmt: skip
    """Learn, make vectors and dream for the spaces in which something was done.

    Run several: each job is done by one of them, and one that was killed leaves its job to another. It waits for a
    server that goes away. SIGTERM ends it once its job is done.
    """
    run.keeps_history = False
    options = cluster_worker.WorkerOptions(jobs, every, lease, backoff)
    with (
        tempfile.TemporaryDirectory(prefix="nacre-worker-", ignore_cleanup_errors=True) as folder,
        _watching(run, "worker", "jobs", figures, collector) as watch,
    ):
        working = cluster_worker.Worker(run.settings, Path(folder), options, partial(_tell, run), watch)
        asyncio.run(working.run())


@cluster.group("jobs", cls=DefaultGroup, examples=["nacre cluster jobs", "nacre cluster jobs retry 17"])
@click.pass_context
def jobs(context: click.Context) -> None:
    """List the jobs that wait, are done now, or were given up."""
    if context.invoked_subcommand is None:
        run: Run = context.obj
        found = queue.list_jobs(schema.server_of(run.settings))
        run.answer({"jobs": [to_plain(one) for one in found]}, lambda paper: _render_jobs(paper, found))


@jobs.command("retry", examples=["nacre cluster jobs retry 17", "nacre cluster jobs retry --all"])
@click.argument("job", type=click.IntRange(min=1), required=False)
@click.option("--all", "is_all", is_flag=True, help="All that were given up.")
@click.pass_obj
def retry(run: Run, job: int | None, *, is_all: bool) -> None:
    """Have a job done again that was given up."""
    if is_all is (job is not None):
        raise click.UsageError("name a job, or say --all")
    done = queue.retry_failed(schema.server_of(run.settings), job)
    run.answer({"retried": done}, lambda paper: paper.line(f"To be done again: {count(done, 'job', 'jobs')}."))


def _render_jobs(paper: Paper, found: Sequence[queue.Job]) -> None:
    if not found:
        paper.line("There is no job.")
        return
    names = {"todo": "waits", "doing": "is done", "failed": "given up"}
    rows = [(bold(str(one.id)), one.space, names.get(one.state, one.state), count(one.tries, "try", "tries"),
             dim(minute(one.due) if one.due else "")) for one in found]  # fmt: skip
    paper.table(rows, header=("job", "space", "state", "tries", "not before"))


@cluster.group(
    "tenants", cls=DefaultGroup, examples=["nacre cluster tenants", "nacre cluster tenants remove ferry-team"]
)
@click.pass_context
def tenants_(context: click.Context) -> None:
    """List the spaces on the server: what they hold, and how large they are.

    nacre spaces create makes one. Sizes are those of rows, without indexes; every row is read.
    """
    if context.invoked_subcommand is None:
        run: Run = context.obj
        with progress.shown(run) as notify:
            found = tenants.list_tenants(run.settings, notify or (lambda _: None))
        run.answer({"tenants": [to_plain(one) for one in found]}, lambda paper: _render_tenants(paper, found))


@tenants_.command(
    "limit",
    examples=["nacre cluster tenants limit ferry-team --calls 20000 --turns 1000000 --usd 0.50",
              "nacre cluster tenants limit ferry-team --lift calls"],
)  # fmt: skip
@click.argument("name")
@click.option("--calls", type=click.IntRange(0), help="Requests by its keys a day (UTC); 0 lets nobody in by a key.")
@click.option("--turns", type=click.IntRange(1), help="Turns that it may hold; who adds more is refused.")
@click.option("--usd", type=click.FloatRange(0), help="What models may cost a day in the background, in US dollars.")
@click.option("--lift", type=click.Choice(["calls", "turns", "usd"]), multiple=True, help="Take this bound away.")
@click.pass_obj
def limit(
    run: Run, name: str, calls: int | None, turns: int | None, usd: float | None, lift: tuple[str, ...]
) -> None:  # fmt: skip
    """Bound what a space may use, from the next request on.

    Without options it says what bounds there are. Each process learns every half minute how often the others answered,
    so a few more requests than --calls may be.
    """

    def changed(old: Quota) -> Quota:
        return Quota(
            None if "calls" in lift else old.calls if calls is None else calls,
            None if "turns" in lift else old.turns if turns is None else turns,
            None if "usd" in lift else old.usd if usd is None else usd,
        )

    quota = tenants.limit_tenant(run.settings, name, changed)
    run.answer({"name": name, **asdict(quota)}, lambda paper: paper.line(f"{name}: {_bounds(quota) or 'no bounds'}"))


@tenants_.command("remove", examples=["nacre cluster tenants remove ferry-team"])
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove(run: Run, name: str, yes: bool) -> None:
    """Delete a space with every row, member and key, and prove that none is left.

    Nothing brings it back but a backup of the server. Its audit log stays, which holds ids and no texts.
    """
    found = tenants.tenant_of(run.settings, name)
    if not yes:
        held = f"{count(found.memories, 'memory', 'memories')} and {count(found.turns, 'turn')}"
        click.confirm(f"Delete {name} with {held} for good?", abort=True)
    done = tenants.remove_tenant(run.settings, name)
    told = f"Deleted {done.rows:,} rows of {name}; counted again, {done.left} are left in {done.tables} tables."
    run.answer(asdict(done), lambda paper: paper.line(told))


def _render_tenants(paper: Paper, found: Sequence[tenants.Tenant]) -> None:
    if not found:
        paper.line("There is no space.")
        return
    rows = [(bold(one.name), one.kind, f"{one.members:,}", f"{one.memories:,}", f"{one.sessions:,}", f"{one.turns:,}",
             size(one.bytes), dim(_bounds(one.quota))) for one in found]  # fmt: skip
    paper.table(rows, header=("tenant", "of a", "members", "memories", "sessions", "turns", "size", "bounds"))


def _bounds(quota: Quota) -> str:
    """In words; empty where there are none."""
    told = (
        "" if quota.calls is None else f"{count(quota.calls, 'call')} a day",
        "" if quota.turns is None else count(quota.turns, "turn"),
        "" if quota.usd is None else f"${quota.usd:,.2f} a day",
    )
    return ", ".join(filter(None, told))


@contextmanager
def _watching(run: Run, title: str, what: str, place: str | None, collector: str | None) -> Iterator[watches.Watch]:
    """What the process does in the block is counted for Prometheus at a place, and told to a collector."""
    with ExitStack() as stack:
        observers: list[watches.Observer] = []
        if place:
            observers.append(_figures(run, title, what, place))
        if collector:
            sent = telemetry.Telemetry(f"nacre-{title}", what, collector, partial(_tell, run))
            stack.callback(sent.close)
            observers.append(sent)
        yield watches.Watch(observers)


def _figures(run: Run, title: str, what: str, place: str) -> metrics.Metrics:
    found, url = metrics.Metrics(what), schema.server_of(run.settings)
    told = found.serve(place, title, lambda: operators_page.read_state(url, ids.to_ms(ids.utc_now()) or 0))
    _tell(run, f"figures at {told} (and a page at /)")
    return found


def _tell(run: Run, line: str) -> None:
    click.echo(printable(f"{ids.utc_now():%Y-%m-%d %H:%M:%S}  {crash.redactor_of(run).clean(line)}"))
