"""The job queue of a cluster: procrastinate's tables in a separate schema on the same server."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import conninfo_to_dict

from nacre.base.environment import install_hint, is_installed
from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.errors import MissingStoreError, NotFoundError, UnavailableError
from nacre_server.registry import Registry

if TYPE_CHECKING:
    import procrastinate
else:
    procrastinate = Module("procrastinate")

QUEUE = "nacre"
TEND = "tend"
MOST_TRIES = 5
AWAY = (MissingStoreError, UnavailableError)
"""Errors of an unavailable server, node or model. Jobs with these errors are retried without limit."""

_SCHEMA = "nacre_jobs"


@frozen
class Job:
    """A job for a space.

    ``state`` is ``todo``, ``doing`` or, after the last try, ``failed``. ``tries`` is the number of
    unfinished attempts.
    """

    id: int
    space: str
    state: str
    tries: int
    due: datetime | None


def queue_of(
    url: str, tend: Callable[[str], None] = lambda _: None, backoff: int = 4, patience: float = 10.0
) -> procrastinate.App:
    """Return the queue. ``tend`` runs the job of a space.

    A failed job is retried after ``backoff`` seconds, then after its second, third and fourth
    power. ``patience`` is the timeout in seconds for connections to the queue's server. Raises
    UnavailableError if the library is missing.
    """
    if not is_installed("procrastinate"):
        raise UnavailableError(
            "a cluster's jobs need a library: procrastinate", hint=install_hint("cluster")
        )

    class Retries(procrastinate.BaseRetryStrategy):
        def get_retry_decision(
            self, *, exception: BaseException, job: procrastinate.jobs.Job
        ) -> procrastinate.RetryDecision | None:
            tried = job.attempts + 1
            if tried >= MOST_TRIES and not isinstance(exception, AWAY):
                return None
            return procrastinate.RetryDecision(
                retry_in={"seconds": backoff ** min(tried, MOST_TRIES - 1)}
            )

    for name in ("procrastinate", "psycopg.pool"):
        # The logs can contain addresses and texts.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    options = f"{conninfo_to_dict(url).get('options') or ''} -c search_path={_SCHEMA}"
    app = procrastinate.App(
        connector=procrastinate.PsycopgConnector(
            conninfo=url, kwargs={"options": options}, min_size=1, max_size=4, timeout=patience
        )
    )
    app.task(name=TEND, queue=QUEUE, retry=Retries())(tend)
    return app


def prepare_queue(url: str) -> None:
    """Create the queue's tables if they are missing. Raises UnavailableError, NotAllowedError."""
    app = queue_of(url)
    with closing(Registry(url)) as registry:
        if registry.all("has_queue"):
            return
        registry.run("create_queue")
    with app.open():
        app.schema_manager.apply_schema()


def list_jobs(url: str) -> list[Job]:
    """Return the pending, running and failed jobs."""
    with queue_of(url).open() as app:
        return [
            Job(job.id or 0, job.lock or "", str(job.status), job.attempts, job.scheduled_at)
            for job in app.job_manager.list_jobs(queue=QUEUE)
            if job.status != "succeeded"
        ]


def retry_failed(url: str, number: int | None) -> int:
    """Retry a failed job, or all failed jobs. Return their number. Raises NotFoundError for an unknown job."""
    with queue_of(url).open() as app:
        failed = [
            job.id or 0
            for job in app.job_manager.list_jobs(id=number, queue=QUEUE, status="failed")
        ]
        if not failed and number is not None:
            raise NotFoundError(
                f"no job {number} has failed", hint="nacre server cluster jobs lists them"
            )
        for item in failed:
            app.job_manager.retry_job_by_id(item, datetime.now(UTC))
        return len(failed)


def deferred(app: procrastinate.App) -> Callable[[str], Any]:
    """Return a function that adds a job for a space.

    At most one job per space is running, and at most one is pending.
    """

    async def defer(space: str) -> bool:
        job = app.configure_task(TEND, queue=QUEUE, lock=space, queueing_lock=space)
        try:
            await job.defer_async(space=space)
        except procrastinate.exceptions.AlreadyEnqueued:
            return False
        return True

    return defer
