"""The system's keyring, where there is one that works.

Importing the library takes 70 ms, and a keyring that is locked may wait for a person: both only where a key is needed,
and never for longer than a few seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from nacre.errors import Unavailable
from nacre.platform.distribution import install_hint

SERVICE = "nacre"
_PATIENCE_SECONDS = 5.0
_PATIENCE_WRITING_SECONDS = 60.0
"""A desktop asks its owner whether to unlock it."""

A = TypeVar("A")


def why_not() -> str:
    """Why no keyring can be used; empty where one can."""
    try:
        found = _bounded(lambda: _library().get_keyring(), _PATIENCE_SECONDS)
    except Unavailable as error:
        return error.message
    return "" if found.priority > 0 else "no keyring works on this machine"


def name() -> str:
    """What the keyring in use is called."""
    return str(_bounded(lambda: _library().get_keyring().name, _PATIENCE_SECONDS))


def read(user: str) -> str | None:
    """The key kept for a provider; ``None`` without one. Raises Unavailable where no keyring works."""
    _refuse_none()
    found: str | None = _bounded(lambda: _library().get_password(SERVICE, user), _PATIENCE_SECONDS)
    return found


def keep(user: str, secret: str) -> None:
    """Keep a provider's key, and see that it is there. Raises Unavailable where it is not."""
    _refuse_none()
    _bounded(lambda: _library().set_password(SERVICE, user, secret), _PATIENCE_WRITING_SECONDS)
    if read(user) != secret:
        raise Unavailable("the keyring did not keep the key")


def drop(user: str) -> bool:
    """Delete a provider's key; whether there was one. Raises Unavailable where no keyring works."""
    if read(user) is None:
        return False
    _bounded(lambda: _library().delete_password(SERVICE, user), _PATIENCE_WRITING_SECONDS)
    return True


def _refuse_none() -> None:
    if why := why_not():
        raise Unavailable(why)


def _library() -> Any:
    import keyring  # noqa: PLC0415 - 130 ms, and an error where no backend works

    return keyring


def _bounded(work: Callable[[], A], seconds: float) -> A:
    """What the work returns. Raises Unavailable where it takes too long, or fails.

    Backends raise whatever their system does. Of that only its kind is passed on: what it says may hold the key.
    """
    done: SimpleQueue[tuple[A | None, Exception | None]] = SimpleQueue()

    def run() -> None:
        try:
            done.put((work(), None))
        except Exception as error:  # noqa: BLE001 - whatever a backend raises is told by its kind
            done.put((None, error))

    Thread(target=run, daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except Empty:
        raise Unavailable("the keyring does not answer", hint="unlock it, and repeat") from None
    if isinstance(error, ImportError):
        raise Unavailable("the library keyring is not installed", hint=install_hint("keyring")) from None
    if error is not None:
        raise Unavailable(f"the keyring cannot be used ({type(error).__name__})") from None
    return result  # type: ignore[return-value]
