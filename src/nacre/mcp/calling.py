"""Operations for tools: by the daemon where it is up, else in this process, by the same catalogue."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from nacre.errors import NacreError
from nacre.link.client import Away, Refused, ask

if TYPE_CHECKING:
    from nacre.app.catalogue import Entry
    from nacre.app.context import Context, ModelLoader

LONG_SECONDS = 600.0
_SECONDS = 30.0


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

    Where no daemon answers, the home is opened in this process, with the first call that needs it, and ``start`` is
    called once: it may start the daemon for the calls to come.
    """

    def __init__(self, home: Path, *, start: Callable[[], None] | None = None) -> None:
        self._home = home
        self._start = start
        self._context: Context | None = None
        self._turn = RLock()

    def __call__(self, operation: str, request: Any, *, load_model: ModelLoader | None = None) -> Any:
        """Run an operation; with ``load_model``, which opens language models, in this process. Raises NacreError."""
        from nacre.app.catalogue import CATALOGUE  # 0.3 s, for which no host waits before its first call

        entry = CATALOGUE[operation]
        if load_model is None:
            try:
                return self._by_daemon(entry, request)
            except Away:
                self._begin()
        if entry.takes_long:  # with a home opened for it, so that no other waits
            with contextlib.closing(self._open(load_model)) as context:
                return _run(context, entry, request)
        with self._turn:
            if self._context is None:
                self._context = self._open()
            return _run(self._context, entry, request)

    def is_set_to(self, provider: str) -> bool:
        """Whether some task is set to a model of a provider."""
        from nacre.settings import load_settings

        settings = load_settings(self._home)
        names = (str(settings[key]) for key in settings.values if key.startswith("models.") and key != "models.auth")
        return any(name.partition(":")[0] == provider for name in names)

    def _begin(self) -> None:
        if self._start and self._home.is_dir():
            start, self._start = self._start, None
            with contextlib.suppress(OSError, NacreError):
                start()

    def close(self) -> None:
        """Close the home if it was opened."""
        with self._turn:
            if self._context:
                self._context.close()
                self._context = None

    def _by_daemon(self, entry: Entry[Any, Any], request: Any) -> Any:
        seconds = LONG_SECONDS if entry.takes_long else _SECONDS
        try:
            answer = ask(str(self._home), entry.name, msgspec.to_builtins(request), seconds=seconds)
        except Refused as refused:
            raise ToldError(refused.error) from None
        return msgspec.convert(answer, entry.result)

    def _open(self, load_model: ModelLoader | None = None) -> Context:
        from nacre.app.context import open_context
        from nacre.settings import load_settings

        return open_context(load_settings(self._home), load_model=load_model)


def _run(context: Context, entry: Entry[Any, Any], request: Any) -> Any:
    """Run it, and let what it wrote be put into the history in the background, as at the end of a command."""
    result = entry.run(context, request)
    if entry.writes:
        from nacre.app.afterwards import keep_history

        with contextlib.suppress(NacreError, OSError):
            keep_history(context)
    return result
