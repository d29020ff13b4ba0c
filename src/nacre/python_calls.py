"""Locking and permission checks for the methods of the Python API."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from nacre.data.sync import embed_new_memories
from nacre.errors import InvalidInputError
from nacre.operations import Operation
from nacre.serve.catalogue import CATALOGUE

Home = TypeVar("Home")

_NAMES = {
    "allow_again": "forget-allow-again",
    "context_told": "context-given",
    "keep": "review-keep",
    "reviews": "review",
    "hand_over": "handoff",
    "judge": "feedback-judge",
    "plan_forgetting": "forget-plan",
}
_WITHOUT_OPERATION = frozenset(("call", "close", "signals"))
"""Methods that do not call a single operation of their own."""


def operation_of(name: str) -> Operation:
    """Return the operation with that name. Raises InvalidInputError."""
    operation = CATALOGUE.get(name)
    if operation is None:
        raise InvalidInputError(
            f"there is no operation {name!r}", hint=f"one of {', '.join(CATALOGUE)}"
        )
    return operation


def one_at_a_time(home: type[Home]) -> type[Home]:
    """Make a class's public methods run one at a time across threads.

    On a server, the caller's role must allow each method, and writes are logged.
    """
    for name, method in list(vars(home).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(home, name, _in_turn(name, method))
    return home


def _in_turn(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    is_checked = name not in _WITHOUT_OPERATION

    @wraps(method)
    def in_turn(self: Any, *given: Any, **named: Any) -> Any:
        with self._home.turn:
            operation = _NAMES.get(name, name.replace("_", "-"))
            with CATALOGUE[operation].allowed(self._home) if is_checked else nullcontext():
                result = method(self, *given, **named)
            if name != "close":
                embed_new_memories(self._home)
            return result

    return in_turn
