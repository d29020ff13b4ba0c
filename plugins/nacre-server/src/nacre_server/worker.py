"""A process that learns, computes vectors and consolidates for all spaces.

The audit log and the table ``tended`` show which spaces have changed, so there is no queue. A worker
locks a space while it works on it. The server releases the lock if the worker is killed, and
another worker repeats the work, which is idempotent.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from nacre.errors import MissingStoreError, NacreError, UnavailableError
from nacre.home.spending import fold_notes
from nacre.memories.edit import catch_up
from nacre.memories.vectors import embed_memories, embed_pending
from nacre.review.run import dream_if_due
from nacre.settings import Settings
from nacre.setup.chores import learn_now
from nacre_server.cluster import server_of
from nacre_server.keys import Spaces
from nacre_server.registry import Registry

END_SECONDS = 60.0
"""Time limit for work in progress at the end, in seconds. Another worker repeats unfinished work."""

_MAX_FAILURES = 4
_BACKOFF = 4
"""Pause in seconds after the first failure. Later pauses are its second, third and fourth power."""


class Worker:
    """A worker for the spaces of a server.

    ``folder``: empty folder that can be deleted afterwards.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        tell: Callable[[str], None],
    ) -> None:
        """Create the worker. Raises InvalidInputError if no server is set."""
        self._url = server_of(settings)
        self._spaces = Spaces(
            replace(settings, home=folder, database=folder / "nacre.db", is_temporary=True)
        )
        self._tell = tell
        self._failures: dict[str, tuple[int, float]] = {}

    def run(self, stop: threading.Event, jobs: int, every: float) -> None:
        """Work until ``stop`` is set, on ``jobs`` spaces at a time. Wait while the server is unavailable.

        ``every`` is the interval for finding changed spaces, in seconds. Raises the errors of the
        first connection.
        """
        self._untended()
        self._tell("works")
        is_away = False
        running: dict[str, Future[None]] = {}
        pool = ThreadPoolExecutor(jobs, thread_name_prefix="tending")
        while not stop.is_set():
            running = {space: job for space, job in running.items() if not job.done()}
            try:
                for space in self._untended():
                    _, until = self._failures.get(space, (0, 0.0))
                    if space not in running and until <= time.monotonic():
                        running[space] = pool.submit(self._tend, space)
                if is_away:
                    self._tell("works")
                is_away = False
            except (MissingStoreError, UnavailableError):
                if not is_away:
                    self._tell("the server does not answer; waits for it")
                is_away = True
            except NacreError as error:
                self._tell(f"cannot find changed spaces: {error}")
            stop.wait(every)
        pool.shutdown(wait=False, cancel_futures=True)
        wait([job for job in running.values() if not job.cancelled()], END_SECONDS)
        self._spaces.close()

    def _untended(self) -> list[str]:
        with closing(Registry(self._url)) as registry:
            return [name for (name,) in registry.all("list_untended")]

    def _tend(self, space: str) -> None:
        """Work on a space, unless another worker does."""
        try:
            with closing(Registry(self._url)) as registry:
                [(is_ours,)] = registry.all("hold_space", space=space)
                if not is_ours:
                    return
                self._tend_locked(registry, space)
        except Exception as error:  # noqa: BLE001 - the worker continues with other spaces
            failures = min(self._failures.get(space, (0, 0.0))[0] + 1, _MAX_FAILURES)
            self._failures[space] = failures, time.monotonic() + _BACKOFF**failures
            where = "".join(traceback.format_tb(error.__traceback__))
            # The message of an unexpected error can contain text.
            unexpected = f"{type(error).__name__}\n{where}"
            self._tell(f"{space}: {error.code if isinstance(error, NacreError) else unexpected}")
            return
        self._failures.pop(space, None)
        self._tell(f"{space}: done")

    def _tend_locked(self, registry: Registry, space: str) -> None:
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
