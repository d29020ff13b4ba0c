"""How methods of the Python API are called: in turn, and as the operations that they are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from nacre.data.sync import embed_new_memories
from nacre.errors import InvalidInput
from nacre.serve.catalogue import CATALOGUE
from nacre.serve.operation import Operation

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
_BY_THEMSELVES = frozenset(("call", "close"))
"""Methods that are no operation, or find out by themselves which one."""


def operation_of(name: str) -> Operation:
    """The operation of a name. Raises InvalidInput."""
    found = CATALOGUE.get(name)
    if found is None:
        raise InvalidInput(f"there is no operation {name!r}", hint=f"one of {', '.join(CATALOGUE)}")
    return found


def one_at_a_time(home: type[Home]) -> type[Home]:
    """Let threads that share a home take turns: a call that another thread is in the middle of is waited for.

    Where the memory is on a server, a method does what the role of who asks allows, and what writes is in the log.
    """
    for name, method in list(vars(home).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(home, name, _in_turn(name, method))
    return home


def _in_turn(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    operation = (
        None if name in _BY_THEMSELVES else CATALOGUE.get(_NAMES.get(name, name.replace("_", "-")))
    )

    @wraps(method)
    def in_turn(self: Any, *given: Any, **named: Any) -> Any:
        with self._home.turn:
            with operation.allowed(self._home) if operation else nullcontext():
                result = method(self, *given, **named)
            if name != "close":
                embed_new_memories(self._home)
            return result

    return in_turn
