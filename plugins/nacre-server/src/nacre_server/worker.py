"""A process that learns, computes vectors and consolidates for all spaces.

Jobs are idempotent. If a worker is killed, its heartbeat stops and another worker repeats its job.
"""

from __future__ import annotations

import asyncio
import signal
import traceback
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.errors import NacreError
from nacre.home.spending import fold_notes
from nacre.memories.edit import catch_up
from nacre.memories.vectors import embed_memories, embed_pending
from nacre.review.run import dream_if_due
from nacre.settings import Settings
from nacre.setup.chores import learn_now
from nacre_server.cluster import Metrics, server_of
from nacre_server.keys import Spaces
from nacre_server.queue import AWAY, QUEUE, TEND, deferred, queue_of
from nacre_server.registry import Registry

if TYPE_CHECKING:
    import procrastinate
else:
    procrastinate = Module("procrastinate")

_AWAY_SECONDS = 2.0
"""Pause between attempts to reach an unavailable server, in seconds."""

END_SECONDS = 60.0
"""Time limit for jobs in progress at the end, in seconds. Another worker repeats unfinished jobs."""


@frozen
class WorkerOptions:
    """Options of a worker.

    ``jobs`` is the maximum number of simultaneous jobs. ``every`` is the interval for finding
    changed spaces, in seconds. A worker without a heartbeat for ``lease`` seconds counts as dead.
    """

    jobs: int = 1
    every: float = 60.0
    lease: float = 30.0
    backoff: int = 4


class Worker:
    """A worker that runs until SIGTERM. ``folder`` is empty and can be deleted afterwards."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        options: WorkerOptions,
        tell: Callable[[str], None],
        metrics: Metrics | None = None,
    ) -> None:
        """Create the worker.

        Raises InvalidInputError if no server is set, and UnavailableError if a library is missing.
        """
        self._url = server_of(settings)
        self._spaces = Spaces(
            replace(settings, home=folder, database=folder / "nacre.db", is_temporary=True)
        )
        self._options = options
        self._tell = tell
        self._metrics = metrics
        self._app = queue_of(self._url, self._tend, options.backoff, patience=options.lease / 3)
        self._is_away = False

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT. Wait while the server is unavailable.

        Raises the errors of the first connection.
        """
        await asyncio.to_thread(self._untended)
        asyncio.get_running_loop().set_exception_handler(_unless_away)
        is_over = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, is_over.set)
        while not is_over.is_set():
            with suppress(
                *AWAY, procrastinate.exceptions.ConnectorException, psycopg.OperationalError
            ):
                await asyncio.to_thread(
                    self._untended
                )  # this notices immediately, while the queue's pool tries for half a minute
                try:
                    lease = self._options.lease
                    await self._app.open_async()
                    self._is_away = False
                    self._tell("works")
                    working = asyncio.create_task(
                        self._app.run_worker_async(
                            queues=[QUEUE],
                            concurrency=self._options.jobs,
                            shutdown_graceful_timeout=END_SECONDS,
                            fetch_job_polling_interval=min(5.0, self._options.every),
                            delete_jobs="successful",
                            update_heartbeat_interval=lease / 3,
                            stalled_worker_timeout=lease,
                            install_signal_handlers=False,
                        )
                    )
                    beside = [
                        asyncio.create_task(self._look_on()),
                        asyncio.create_task(is_over.wait()),
                    ]
                    ended, _ = await asyncio.wait(
                        [working, *beside], return_when=asyncio.FIRST_COMPLETED
                    )
                    for task in (*beside, working):
                        task.cancel()
                    with suppress(asyncio.CancelledError):
                        await working
                    for task in ended:
                        task.result()
                finally:
                    await (
                        self._app.close_async()
                    )  # close it even if it was not opened, or its pool stays closed
            if not is_over.is_set() and not self._is_away:
                self._is_away = True
                self._tell("the server does not answer; waits for it")
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(is_over.wait(), _AWAY_SECONDS)
        self._spaces.close()

    async def _look_on(self) -> None:
        while True:
            try:
                manager, defer = self._app.job_manager, deferred(self._app)
                for job in await manager.get_stalled_jobs(
                    queue=QUEUE, seconds_since_heartbeat=self._options.lease
                ):
                    self._tell(f"repeats: {job.lock}")
                    await manager.retry_job(job)
                known = {job.lock for job in await manager.list_jobs_async(queue=QUEUE)}
                for space in await asyncio.to_thread(self._untended):
                    if space not in known:
                        await defer(space)
            except (*AWAY, procrastinate.exceptions.ConnectorException):
                return
            except (NacreError, OSError) as error:
                self._tell(f"cannot find changed spaces: {error}")
            await asyncio.sleep(self._options.every)

    def _untended(self) -> list[str]:
        with closing(Registry(self._url)) as registry:
            return [name for (name,) in registry.all("list_untended")]

    def _tend(self, space: str) -> None:
        try:
            counted = self._metrics.counted(TEND) if self._metrics else nullcontext()
            with counted, closing(Registry(self._url)) as registry:
                [(number,)] = registry.all("read_last_note", space=space)
                with self._spaces.homes(self._spaces.owner_of(space)).lent() as home:
                    catch_up(home)
                    learn_now(home, None)
                    embed_memories(home, begins=True)
                    embed_pending(home, lambda _: None)
                    dream_if_due(home)
                    with suppress(OSError):
                        fold_notes(home)
                registry.run("set_tended", space=space, number=number)
        except NacreError as error:
            self._tell(f"{space}: {error.code}")
            raise
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__))
            self._tell(
                f"{space}: {type(error).__name__}\n{where}"
            )  # not the message, which can contain text
            raise
        self._tell(f"{space}: done")


def _unless_away(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore errors of the queue's tasks if the server is unavailable, because the worker reports this once."""
    away = (*AWAY, procrastinate.exceptions.ConnectorException, psycopg.OperationalError)
    if not isinstance(context.get("exception"), away):
        loop.default_exception_handler(context)
