"""The ``nacre server cluster`` commands."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from nacre.base import ids
from nacre.cli import output
from nacre.cli.command import TEXT, Group, Run, printable
from nacre.cli.options import flag
from nacre.cli.signals import stopped_by_signals
from nacre.serve import server_web as daemon_web
from nacre_server import cluster as cluster_api


@click.group(
    "cluster",
    cls=Group,
    examples=[
        "nacre server cluster migrate",
        "nacre server cluster api --http 0.0.0.0:8765 --name memory.example --insecure",
    ],
)
def cluster() -> None:
    """Serve many people's memories from many machines.

    All data is on the PostgreSQL server in NACRE_DB. The processes are stateless: api answers requests, worker runs
    long jobs.
    """


@cluster.command("migrate", examples=["nacre server cluster migrate"])
def migrate(run: Run) -> None:
    """Migrate the server's database to this version's schema.

    If the migration allows it, processes of the previous version keep working.
    """
    migrated = cluster_api.migrate_server(run.settings)
    changed = (
        f"Migrated from schema {migrated.before} to {migrated.after}."
        if migrated.after != migrated.before
        else f"The schema already has version {migrated.after}."
    )
    run.answer(migrated, lambda paper: paper.line(changed))


@cluster.command(
    "api",
    examples=[
        "nacre server cluster api",
        "nacre server cluster api --http 0.0.0.0:8765 --name memory.example --insecure",
    ],
)
@click.option(
    "--http",
    metavar="[HOST:]PORT",
    type=TEXT,
    default="8765",
    show_default=True,
    help="Address and port to listen on.",
)
@click.option(
    "--name",
    "names",
    metavar="NAME",
    type=TEXT,
    multiple=True,
    help="A host name that clients use.",
)
@flag("--insecure", "Serve other machines without encryption, behind a proxy that encrypts.")
@click.option(
    "--linger",
    type=click.FloatRange(0, 600),
    default=5.0,
    show_default=True,
    help="Seconds to answer after SIGTERM, while /health/ready returns 503.",
)
def api(run: Run, http: str, names: tuple[str, ...], insecure: bool, linger: float) -> None:
    """Run the API for programs and agents that have keys.

    It has the same REST API, events and /mcp as nacre serve. It is stateless, so you can run any
    number on any number of machines. On SIGTERM, it finishes open requests and ends.
    """
    run.keeps_history = False
    door = replace(daemon_web.Door.of(run.settings, http), unencrypted=insecure, names=names)
    stop = stopped_by_signals()
    with tempfile.TemporaryDirectory(prefix="nacre-api-", ignore_cleanup_errors=True) as folder:
        cluster_api.serve_api(run.settings, Path(folder), door, partial(_tell, run), stop, linger)
    sys.stdout.flush()
    os._exit(0)  # threads that wait for the server would keep the process


@cluster.command("worker", examples=["nacre server cluster worker"])
@click.option(
    "--every",
    type=click.FloatRange(0.1, 3600),
    default=60.0,
    show_default=True,
    help="Seconds between two checks for jobs.",
)
def worker(run: Run, every: float) -> None:
    """Run background work for spaces with changes: learning, vectors, dreams.

    You can run several workers. Each job runs in one of them, and another takes over if it is killed.
    A failed job is repeated after 4, 16, 64 and then every 256 seconds. If the server is
    unreachable, the worker waits. On SIGTERM, it finishes its job and ends.
    """
    run.keeps_history = False
    stop = stopped_by_signals()
    with tempfile.TemporaryDirectory(prefix="nacre-worker-", ignore_cleanup_errors=True) as folder:
        cluster_api.Worker(run.settings, Path(folder), partial(_tell, run)).run(stop, every)
    sys.stdout.flush()
    os._exit(0)  # threads with unfinished work would keep the process


@cluster.command("remove", examples=["nacre server cluster remove ferry-team"])
@click.argument("name")
@flag("--yes", "Do not ask.", "-y")
def remove(run: Run, name: str, yes: bool) -> None:
    """Delete a space with all rows, members and keys for good.

    Only a backup of the server can restore the space. The deletion is verified. The space's audit
    log, which contains ids and no texts, stays.
    """
    if not yes:
        click.confirm(f"Delete {name} for good?", abort=True)
    removed = cluster_api.remove_space(run.settings, name)
    message = f"Deleted {removed.rows:,} rows of {name}. A new count found {removed.left}."
    run.answer(removed, lambda paper: paper.line(message))


def _tell(run: Run, line: str) -> None:
    click.echo(
        printable(f"{ids.utc_now():%Y-%m-%d %H:%M:%S}  {output.redactor_of(run).clean(line)}")
    )
