"""Killed processes lose and duplicate no acknowledged memory on a server behind HTTP."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any

import httpx2 as httpx
import pytest

from nacre.api import open_memory
from tests.storage.server import kill, running, start
from tests.web_server.conftest import Site

_WRITERS = 3
_TIMES = 5
_SYLLABLES = [first + second for first in "bdfgklmnprst" for second in "aeiou"]


@pytest.fixture
def killable_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A killable PostgreSQL server that contains the memory."""
    with running() as server:
        monkeypatch.setenv("NACRE_DB", server.get_uri())
        yield server


class Writers:
    """Clients that store texts until a request fails. Unacknowledged texts are sent again later."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - texts
        self.acknowledged: SimpleQueue[str] = SimpleQueue()
        self.sent: list[str] = []
        self.unanswered: list[str] = []

    def until(self, here: Site, number: int, end: Callable[[], object]) -> None:
        """Store texts and call ``end`` after ``number`` acknowledgements."""
        token = here.token
        with ThreadPoolExecutor(_WRITERS) as threads:
            for _ in range(_WRITERS):
                threads.submit(self._write, here, token)
            for _ in range(number):
                self.sent.append(self.acknowledged.get(timeout=60))
            end()
        self._note()

    def send_again(self, here: Site) -> None:
        """Store the unacknowledged texts."""
        token = here.token
        waiting, self.unanswered = self.unanswered, []
        for text in waiting:
            assert self._store(here, token, text)
        self._note()
        assert not self.unanswered

    def _note(self) -> None:
        while not self.acknowledged.empty():
            self.sent.append(self.acknowledged.get())

    def _write(self, here: Site, token: dict[str, str]) -> None:
        while self._store(here, token, self._text()):
            pass

    def _store(self, here: Site, token: dict[str, str], text: str) -> bool:
        try:
            answer = httpx.post(
                f"{here.base}/api/v1/store",
                json={"content": text},
                headers=token,
                timeout=60,
                trust_env=False,
                verify=False,
            )
        except httpx.HTTPError:
            answer = None
        if answer is None or not answer.is_success:
            self.unanswered.append(text)
            return False
        self.acknowledged.put(text)
        return True

    def _text(self) -> str:
        words = ["".join(self._chance.choices(_SYLLABLES, k=3)) for _ in range(7)]
        return f"{' '.join(words).capitalize()}."


def check(writers: Writers) -> None:
    """Check that exactly the acknowledged texts are stored, each once."""
    with open_memory() as memory:
        contents = Counter(item.content for item in memory.list(limit=10_000))
    assert contents == Counter(writers.sent)
    assert len(writers.sent) > _TIMES * _WRITERS


@pytest.mark.usefixtures("killable_server")
def test_write_acknowledged_by_a_killed_daemon_exists_once(site_apart: Callable[..., Site]) -> None:
    chance, writers = random.Random(5), Writers(1)  # noqa: S311 - moments to kill at
    for _ in range(_TIMES):
        here = site_apart("--http", "0")
        assert here.daemon
        writers.send_again(here)
        writers.until(here, chance.randrange(4, 12), partial(here.daemon.end, signal.SIGKILL))
    writers.send_again(site_apart("--http", "0"))
    check(writers)


def test_acknowledged_writes_exist_once_after_a_server_kill(
    killable_server: Any, site_apart: Callable[..., Site]
) -> None:
    chance, writers = random.Random(6), Writers(2)  # noqa: S311 - moments to kill at
    here = site_apart("--http", "0")
    for _ in range(_TIMES):
        writers.until(here, chance.randrange(4, 12), lambda: kill(killable_server))
        start(killable_server)
        writers.send_again(here)
    check(writers)
