"""A coordinator and two nodes with Citus, on loopback: for ``make test-cluster``, which builds the server with it."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from nacre_server.connection import connect, migrate
from nacre_server.postgres import distribute
from tests.storage.server import folder, user_of_servers

SERVER = os.environ.get("CITUS_SERVER", "")
"""The folder of a PostgreSQL with Citus; nothing where tests run without it."""

_SHARDS = 8
_SETTINGS = """
shared_preload_libraries = 'citus'
citus.node_conninfo = 'sslmode=disable'
listen_addresses = '127.0.0.1'
citus.enable_stat_counters = on
wal_level = logical
fsync = off
max_connections = 200
max_worker_processes = 24
shared_buffers = 64MB
log_min_messages = fatal
"""


@dataclass(frozen=True)
class Node:
    """A server of the cluster."""

    port: int
    data: Path

    def start(self) -> None:
        """Start it, and wait until it answers."""
        _run("pg_ctl", "-D", self.data, "-l", self.data / "log", "-w", "start")

    def kill(self) -> None:
        """End it as a power cut does."""
        _run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def address(self, database: str = "postgres") -> str:
        """Of a superuser there."""
        return f"postgresql://postgres:@/{database}?port={self.port}&host={self.data}"


@dataclass(frozen=True)
class Cluster:
    """The first node is the coordinator, which holds no rows of tenants."""

    nodes: Sequence[Node]

    @property
    def url(self) -> str:
        """The address of the database."""
        return self.nodes[0].address()

    def add(self, node: Node) -> None:
        """Let a node hold rows."""
        _extend(node)
        with connect(self.url) as coordinator:
            coordinator.execute("SELECT citus_add_node('127.0.0.1', %s)", (node.port,))


@contextmanager
def running() -> Iterator[Cluster]:
    """A cluster whose rows are distributed."""
    with folder() as place, ExitStack() as stack:
        cluster = Cluster(
            [stack.enter_context(node(place / f"node{number}")) for number in range(3)]
        )
        coordinator, *others = cluster.nodes
        _extend(coordinator)
        with connect(cluster.url) as admin:
            admin.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", (coordinator.port,))
            for other in others:
                cluster.add(other)
            migrate(admin)
            distribute(admin, _SHARDS)
        yield cluster


@contextmanager
def node(data: Path) -> Iterator[Node]:
    """A server without anything in it."""
    data.mkdir()
    user = user_of_servers()
    if user:
        found = pwd.getpwnam(user)
        os.chown(data, found.pw_uid, found.pw_gid)
    _run(
        "initdb",
        "-D",
        data,
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale",
        "C.UTF-8",
        "-U",
        "postgres",
        "--no-sync",
    )
    made = Node(_free_port(), data)
    with (data / "postgresql.conf").open("a") as settings:
        settings.write(f"{_SETTINGS}port = {made.port}\nunix_socket_directories = '{data}'\n")
    made.start()
    try:
        yield made
    finally:
        made.kill()


def _extend(node: Node) -> None:
    with connect(node.address()) as admin:
        admin.execute("CREATE EXTENSION citus")
        admin.execute("CREATE EXTENSION vector")


def _run(program: str, *arguments: object) -> None:
    command = [f"{SERVER}/bin/{program}", *map(str, arguments)]
    subprocess.run(command, user=user_of_servers(), cwd="/", check=True, stdout=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
