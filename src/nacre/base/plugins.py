"""Plugins: installed distributions that register objects through entry points.

Reading entry points takes milliseconds, so a group is read only when used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from nacre.base.environment import install_hint
from nacre.errors import UnavailableError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from nacre.store.schema import Engine

T = TypeVar("T")

COMMANDS = "nacre.commands"
OPERATIONS = "nacre.operations"
RESOURCES = "nacre.resources"
DAEMON = "nacre.daemon"
CHECKS = "nacre.checks"
TOOLS = "nacre.tools"
STALE = "nacre.stale"
ENGINES = "nacre.engines"
SERVICES = "nacre.services"
READERS = "nacre.readers"
IMPORTERS = "nacre.importers"
GROUPS = (
    COMMANDS,
    OPERATIONS,
    RESOURCES,
    SERVICES,
    DAEMON,
    CHECKS,
    TOOLS,
    STALE,
    ENGINES,
    READERS,
    IMPORTERS,
)


@cache
def find_plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return a group's entry points by name, in order, without loading them.

    If two distributions use the same name, the second key also contains the entry point's value.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and most commands need no plugins

    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group)):
        found[point.name if point.name not in found else f"{point.name} ({point.value})"] = point
    return found


def load_plugin(point: EntryPoint, kind: type[T]) -> T:
    """Load the object or objects of an entry point.

    Raises UnavailableError if loading fails or the type is wrong.
    """
    hint = "fix or uninstall the package that provides it"
    try:
        found = point.load()
    except Exception as error:  # a plugin for another nacre version can raise anything
        raise UnavailableError(
            f"the plugin {point.name!r} ({point.value}) cannot be loaded: {error}", hint=hint
        ) from error
    if not all(isinstance(item, kind) for item in (found if isinstance(found, tuple) else [found])):
        raise UnavailableError(
            f"{point.value} is not registered correctly in {point.group}: {kind.__name__} expected",
            hint=hint,
        )
    loaded: T = found
    return loaded


@cache
def _load(group: str, kind: Any) -> Mapping[str, Any]:
    """Return a mapping from plugin names to loaded objects.

    If a plugin cannot be loaded, its value is the UnavailableError.
    """
    found: dict[str, Any] = {}
    for name, point in find_plugins(group).items():
        try:
            found[name] = load_plugin(point, kind)
        except UnavailableError as error:
            found[name] = error
    return found


def load_plugins(group: str, kind: Any = object) -> Mapping[str, Any]:
    """Return a group's objects by name. Raises UnavailableError if a plugin is broken."""
    for error in broken_plugins(group, kind):
        raise error
    return _load(group, kind)


def load_usable_plugins(group: str, kind: Any = object) -> Mapping[str, Any]:
    """Return a group's objects by name, without broken plugins."""
    return {
        name: found
        for name, found in _load(group, kind).items()
        if not isinstance(found, UnavailableError)
    }


def broken_plugins(group: str, kind: Any = object) -> list[UnavailableError]:
    """Return the errors of a group's broken plugins."""
    return [found for found in _load(group, kind).values() if isinstance(found, UnavailableError)]


def load_engine(address: str) -> Engine:
    """Return the database class for a server's address.

    Raises UnavailableError if the plugin for the server is missing.
    """
    scheme = address.partition("://")[0]
    point = find_plugins(ENGINES).get(scheme)
    if point is None:
        raise UnavailableError(
            f"a memory at {scheme}:// needs nacre-server", hint=install_hint("server")
        )
    return cast("Engine", load_plugin(point, type))
