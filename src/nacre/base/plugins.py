"""Plugins: installed distributions that register objects through entry points.

Reading entry points takes milliseconds, so a group is read only when needed.
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
    """Return a group's entry points by name, sorted and not yet loaded.

    If two packages use the same name, the second key also contains the target.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and most commands need no plugins

    loaded = {}
    for point in sorted(entry_points(group=group)):
        loaded[point.name if point.name not in loaded else f"{point.name} ({point.value})"] = point
    return loaded


def load_plugin(point: EntryPoint, kind: type[T]) -> T:
    """Load the object, or tuple of objects, to which an entry point refers.

    Raises UnavailableError if loading fails or a type is wrong.
    """
    hint = "fix or uninstall the package that provides it"
    try:
        loaded = point.load()
    except Exception as error:  # a plugin for another nacre version can raise anything
        raise UnavailableError(
            f"the plugin {point.name!r} ({point.value}) cannot be loaded: {error}", hint=hint
        ) from error
    if not all(
        isinstance(item, kind) for item in (loaded if isinstance(loaded, tuple) else [loaded])
    ):
        raise UnavailableError(
            f"{point.value} is not registered correctly in {point.group}: {kind.__name__} expected",
            hint=hint,
        )
    plugin: T = loaded
    return plugin


@cache
def _load(group: str, kind: Any) -> tuple[Mapping[str, Any], list[UnavailableError]]:
    loaded: dict[str, Any] = {}
    broken = []
    for name, point in find_plugins(group).items():
        try:
            loaded[name] = load_plugin(point, kind)
        except UnavailableError as error:
            broken.append(error)
    return loaded, broken


def load_plugins(group: str, kind: Any) -> Mapping[str, Any]:
    """Return a group's plugins by name. Raises UnavailableError if one is broken."""
    loaded, broken = _load(group, kind)
    for error in broken:
        raise error
    return loaded


def load_usable_plugins(group: str, kind: Any = object) -> Mapping[str, Any]:
    """Return a group's plugins by name, without the broken ones."""
    return _load(group, kind)[0]


def broken_plugins(group: str) -> list[UnavailableError]:
    """Return the error of each plugin in a group that cannot be loaded."""
    return _load(group, object)[1]


def load_engine(address: str) -> Engine:
    """Return the database class for a server's address.

    Raises UnavailableError if the required plugin is missing.
    """
    scheme = address.partition("://")[0]
    point = find_plugins(ENGINES).get(scheme)
    if point is None:
        raise UnavailableError(
            f"a memory at {scheme}:// needs nacre-server", hint=install_hint("server")
        )
    return cast("Engine", load_plugin(point, type))
