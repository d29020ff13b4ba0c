"""Other spaces of the server that a home is on: opened for who asks, beside the own one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from nacre.errors import NacreError, NotAllowed, Unavailable
from nacre.home.home import Home
from nacre.home.standing import require_server, standing
from nacre.platform.lazy import load


def open_space(home: Home, space: str, unwritable: NacreError | None = None) -> Home:
    """Another space of the same server, in the name of the same account; the models are shared. ``unwritable``: why
    nothing may be written there.

    Raises NotAllowed where the account does not belong to it.
    """
    require_server(home)
    account = home.settings.text("storage.account") or home.settings.text("storage.tenant")
    settings = (
        home.settings.having("storage.tenant", space).having("storage.account", account).having("storage.spaces", [])
    )
    database = load("nacre.storage.postgres.database:PostgresDatabase")(settings.server, space, account, unwritable)
    other = replace(home, settings=settings, database=database, problems=[], earlier=None)
    try:
        if standing(other).kind is None:
            raise NotAllowed(f"{space} is nobody's space", hint="nacre spaces list shows yours")
    except BaseException:
        other.database.close()
        raise
    return other


@contextmanager
def opened_space(home: Home, space: str) -> Iterator[Home]:
    """The same, for the block."""
    other = open_space(home, space)
    try:
        yield other
    finally:
        other.database.close()


class FurtherSpaces:
    """The spaces that recall reads beside the own one, opened when they are first needed. Nothing writes to them."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._open: dict[str, Home] = {}

    def homes(self) -> Mapping[str, Home | NacreError]:
        """By name; where one cannot be read, why."""
        own, named = self._home.settings.text("storage.tenant"), self._home.settings.texts("storage.spaces")
        return {name: self._read(name) for name in dict.fromkeys(named) if name != own}

    def close(self) -> None:
        """Close what is open."""
        for one in self._open.values():
            one.database.close()
        self._open.clear()

    def _read(self, name: str) -> Home | NacreError:
        try:
            if name in self._open:
                standing(self._open[name])  # they may have been shown the door meanwhile
            else:
                unwritable = Unavailable(f"{name} is read beside another space, and not written")
                self._open[name] = open_space(self._home, name, unwritable)
        except NacreError as error:
            if name in self._open:
                self._open.pop(name).database.close()
            return error
        return self._open[name]
