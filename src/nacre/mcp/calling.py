"""Operations for tools: by the daemon where it is up, else in this process, by the same catalogue."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

from nacre import catalogue, settings
from nacre.errors import NacreError
from nacre.home import home
from nacre.link.client import Away, Refused, ask_whole
from nacre.mcp.offers import offered
from nacre.platform import json_values
from nacre.sync import follow_up
from nacre.values.actor import AN_AGENT, Actor, Face, acting

if TYPE_CHECKING:
    from nacre.home.home import Home, ModelLoader
    from nacre.operation import Operation

LONG_SECONDS = 600.0
_WRITING_SECONDS = 30.0
_READING_SECONDS = 1.0
"""A daemon that takes longer hangs: this process reads itself."""


class Call(Protocol):
    """Runs an operation of the catalogue by its name, from any thread. Raises NacreError."""

    def __call__(self, operation: str, request: Any) -> Any:
        """The operation's result."""
        ...


class ToldError(NacreError):
    """What the daemon could not do, in its own words."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message") or "it failed"), hint=error.get("hint"))
        self.code = str(error.get("code") or "failed")


class HomeCalls:
    """Calls about one home. Implements :class:`Call`.

    Where no daemon answers, the home is opened in this process, and ``start`` is called once: it may start the daemon.
    """

    def __init__(self, home: Path, *, agent: str = AN_AGENT, start: Callable[[], None] | None = None) -> None:
        self._home_path = home
        self._actor = Actor(Face.MCP, agent)
        self._start = start
        self._home: Home | None = None
        self._turn = RLock()

    def __call__(self, operation: str, request: Any, *, load_model: ModelLoader | None = None) -> Any:
        """Run an operation; with ``load_model``, which opens language models, in this process. Raises NacreError."""

        entry = catalogue.CATALOGUE[operation]
        if load_model is None:
            try:
                return self._by_daemon(entry, request)
            except Away:
                self._begin()
        if entry.takes_long:  # with a home opened for it, so that no other waits
            with contextlib.closing(self._open(load_model)) as home, acting(self._actor):
                return _run(home, entry, request)
        with self._turn, acting(self._actor):
            if self._home is None:
                self._home = self._open()
            return _run(self._home, entry, request)

    def is_set_to(self, provider: str) -> bool:
        """Whether some task is set to a model of a provider."""
        chosen = settings.load_settings(self._home_path)
        names = (str(chosen[key]) for key in chosen.values if key.startswith("models.") and key != "models.auth")
        return any(name.partition(":")[0] == provider for name in names)

    def _begin(self) -> None:
        if self._start and self._home_path.is_dir():
            start, self._start = self._start, None
            with contextlib.suppress(OSError, NacreError):
                start()

    def close(self) -> None:
        """Close the home if it was opened."""
        with self._turn:
            if self._home:
                self._home.close()
                self._home = None

    def _by_daemon(self, entry: Operation, request: Any) -> Any:
        seconds = LONG_SECONDS if entry.takes_long else _WRITING_SECONDS if entry.writes else _READING_SECONDS
        try:
            answer = ask_whole(
                str(self._home_path), entry.name, json_values.to_plain(request), seconds=seconds,
                agent=self._actor.agent,
            )  # fmt: skip
        except Refused as refused:
            raise ToldError(refused.error) from None
        return json_values.from_plain(answer.get("result"), entry.result)

    def _open(self, load_model: ModelLoader | None = None) -> Home:
        return home.open_home(settings.load_settings(self._home_path), load_model=load_model)


def load_operations(*, everything: bool) -> None:
    """Load what the tools' operations are asked and answer, before somebody waits for it."""
    for offer in offered(everything=everything):
        for name in offer.operations:
            _ = catalogue.CATALOGUE[name].request, catalogue.CATALOGUE[name].result


def _run(home: Home, entry: Operation, request: Any) -> Any:
    """Run it, and let what it wrote be put into the history in the background, as at the end of a command."""
    result = entry.run(home, request)
    if entry.writes:
        with contextlib.suppress(NacreError, OSError):
            follow_up.keep_history(home)
    return result
