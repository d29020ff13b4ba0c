"""Plugins: installed distributions that register objects through entry points.

Reading the entry points takes milliseconds, so nothing is read before a group is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from nacre.errors import UnavailableError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

COMMANDS = "nacre.commands"
OPERATIONS = "nacre.operations"
RESOURCES = "nacre.resources"
DAEMON = "nacre.daemon"
CHECKS = "nacre.checks"


@cache
def find_plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, without loading them."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and most commands need none

    return {point.name: point for point in entry_points(group=group)}


def load_plugin(point: EntryPoint, kind: type[T]) -> T:
    """Load the object of an entry point.

    Raises UnavailableError if it cannot be loaded or is not of the kind.
    """
    hint = "fix or uninstall the package that provides it"
    try:
        found = point.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise UnavailableError(
            f"the plugin {point.name!r} ({point.value}) cannot be loaded: {error}", hint=hint
        ) from error
    if not isinstance(found, kind):
        raise UnavailableError(
            f"{point.value} is not registered correctly in {point.group}: {kind.__name__} expected",
            hint=hint,
        )
    return found


@cache
def load_plugins(group: str, kind: type[Any] = object) -> Mapping[str, Any]:
    """Return the objects of a group by name. Raises UnavailableError; see :func:`load_plugin`."""
    return {name: load_plugin(point, kind) for name, point in find_plugins(group).items()}
