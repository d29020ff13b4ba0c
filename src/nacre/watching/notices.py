"""What the system tells of changed files, gathered in threads. It may tell late, twice or nothing: it only hints."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import watchfiles

from nacre.watching.territory import Territory

GATHER_MS = 500
"""So long, at most, changes are gathered before they are told."""

_STEP_MS = 150

Tell = Callable[[frozenset[Path]], None]


class Notices:
    """Listens for changes in a territory's folders, and tells of paths. Use ``listen`` again when folders appear."""

    def __init__(self, tell: Tell, *, polling: bool) -> None:
        self._tell = tell
        self._polling = polling
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failed: queue.Queue[str] = queue.Queue()
        self._heard: list[tuple[Path, int]] = []
        self.why_not: str | None = "watch.polling is on" if polling else None

    @property
    def mode(self) -> str:
        """``events``, or ``polling`` where the system tells nothing; then ``why_not`` says why."""
        return "polling" if self.why_not else "events"

    def listen(self, territory: Territory) -> None:
        """Listen to the folders that are there now; nothing happens where they are the same as before."""
        while not self._failed.empty():
            self.why_not = self._failed.get()
        folders = (territory.deep(), territory.flat())
        there = [(path, _inode(path)) for paths in folders for path in paths]
        if self.why_not or (there == self._heard and all(thread.is_alive() for thread in self._threads)):
            return
        self.close()
        self._stop = threading.Event()
        self._heard = there
        for paths, deep in zip(folders, (True, False), strict=True):
            if paths:
                thread = threading.Thread(
                    target=self._gather, args=(paths, deep, self._stop), name="nacre-notices", daemon=True
                )
                thread.start()
                self._threads.append(thread)

    def close(self) -> None:
        """Listen no more."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5)
        self._threads = []

    def _gather(self, paths: Sequence[Path], deep: bool, stop: threading.Event) -> None:
        try:
            for found in _changes(paths, deep, stop):
                self._tell(found)
        except ImportError:
            self._failed.put("the library watchfiles is not installed")
        except FileNotFoundError:
            pass  # a folder went away just now: who listens next hears of those that are left
        except (OSError, RuntimeError) as error:
            self._failed.put(f"the system cannot tell of changes: {error}")
        if not stop.is_set():
            self._tell(frozenset())


def _inode(path: Path) -> int:
    """Which folder it is: one that is made anew under its name is another one."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _changes(paths: Sequence[Path], deep: bool, stop: threading.Event) -> Iterator[frozenset[Path]]:
    """Raises ImportError without the library; OSError or RuntimeError where the system's limits are reached."""

    for changes in watchfiles.watch(
        *paths, watch_filter=None, debounce=GATHER_MS, step=_STEP_MS, stop_event=stop, recursive=deep,
        ignore_permission_denied=True, raise_interrupt=False, force_polling=False,
    ):  # fmt: skip
        yield frozenset(Path(path) for _, path in changes)
