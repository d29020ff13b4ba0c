"""What an operation is: its name, where its request, result and function are, and how it behaves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from nacre.base import json, lazy
from nacre.base.request import Nothing
from nacre.errors import Conflict, InvalidInput
from nacre.values.memory import Face

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.settings import Settings

_LIST, _OPTIONAL = "list[", " | None"
_OWN = {"str": str, "int": int, "bool": bool, "None": type(None), "Path": Path}


class Needs(StrEnum):
    """What a function takes first: an open home, or the settings; ``closed``: while nobody has the home open."""

    HOME = "home"
    SETTINGS = "settings"
    CLOSED = "closed"


@cache
def load(place: str) -> Any:
    """A function or type, by the lazy door: what is at ``module:name`` of nacre, or one of Python's, as ``str``.

    Types may be ``list[module:name]`` or ``module:name | None``.
    """
    if place.startswith(_LIST):
        return list[load(place.removeprefix(_LIST).removesuffix("]"))]  # type: ignore[misc] # known at run time alone
    if place.endswith(_OPTIONAL):
        return load(place.removesuffix(_OPTIONAL)) | None
    if place in _OWN:
        return _OWN[place]
    return lazy.load(f"nacre.{place}")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    ``place`` is its function, which takes what it ``needs``, its request unless that is :class:`Nothing`, and
    ``on_progress`` if it ``reports_progress``. ``writes`` says that it changes more than usage and traces,
    ``takes_long`` that it may take minutes: few of those run side by side, so that others are answered meanwhile.
    ``owners`` says that it changes rules, privacy or the owner's words, which no agent may: always, or where one of
    these fields of the request is set.
    ``not_by`` are faces that do not offer it, each with the reason. ``command`` is what a person types for it, without
    ``nacre``, where that is not its name.
    """

    name: str
    place: str | Callable[..., Any]
    asked: str | type
    answered: str | type
    """A type, or where it is; ``None`` for an operation that answers nothing is ``"None"``."""

    writes: bool = False
    takes_long: bool = False
    reports_progress: bool = False
    needs: Needs = Needs.HOME
    owners: bool | tuple[str, ...] = False
    not_by: Mapping[Face, str] = field(default_factory=dict)
    command: str = ""

    @property
    def in_words(self) -> str:
        """What a person types for it."""
        return f"nacre {self.command or self.name.replace('-', ' ')}"

    @property
    def function(self) -> Callable[..., Any]:
        """The function; loaded with the first use."""
        return load(self.place) if isinstance(self.place, str) else self.place

    @property
    def request(self) -> Any:
        """The type of its request."""
        return load(self.asked) if isinstance(self.asked, str) else self.asked

    @property
    def result(self) -> Any:
        """The type of its result."""
        return load(self.answered) if isinstance(self.answered, str) else self.answered

    def run(
        self,
        opened: Home | Settings,
        request: Any,
        on_progress: Callable[[Any], object] | None = None,
    ) -> Any:
        """Run it, in what it :class:`needs <Needs>`.

        Raises OwnerOnly, InvalidInput for a number or a time that is too large, and what the operation raises.
        """
        if opened.actor.bearer:
            lazy.load("nacre.serve.catalogue:require")(self.name)
        if self.is_owners(request) or (opened.actor.face is Face.HTTP and _names_files(request)):
            fields = "" if isinstance(self.owners, bool) else f" with {' or '.join(self.owners)}"
            opened.actor.require_owner(self.in_words + fields)
        given = () if self.request is Nothing else (request,)
        if on_progress is not None and self.reports_progress:
            given = (*given, on_progress)
        try:
            with self.allowed(opened, request):
                return self.function(opened, *given)
        except OverflowError as error:
            raise InvalidInput(
                f"{self.name}: a number or a time is too large", hint="ask for less"
            ) from error

    def allowed(self, opened: Home | Settings, request: Any = None) -> AbstractContextManager[None]:
        """Refuses what the role of who asks does not allow, where the memory is on a server, and notes what writes.

        Without a ``request`` it is none of those that only some fields make the owner's.
        """
        if self.needs is not Needs.HOME or not cast("Home", opened).database.is_server:
            return nullcontext()
        allowed: AbstractContextManager[None] = lazy.load("nacre.home.home:allowed")(
            opened, self.name, writes=self.writes, owners=self.is_owners(request)
        )
        return allowed

    def is_owners(self, request: Any) -> bool:
        """Whether a request is for the owner alone."""
        if isinstance(self.owners, bool):
            return self.owners
        return any(getattr(request, name, False) for name in self.owners)

    def run_in(
        self, home: Home, request: Any, on_progress: Callable[[Any], object] | None = None
    ) -> Any:
        """Run it where a home is open. Raises Conflict where none may be, and what the operation raises."""
        if self.needs is Needs.CLOSED:
            raise Conflict(f"{self.name} needs the home to itself", hint="close it first")
        return self.run(home if self.needs is Needs.HOME else home.settings, request, on_progress)

    def make(self, fields: Mapping[str, Any]) -> Any:
        """A request of these fields. Raises InvalidInput where one is out of bounds, missing or unknown."""
        try:
            request = json.from_plain(json.to_plain(fields), self.request)
            if not isinstance(request, msgspec.Struct):
                _refuse_unknown(request, fields)
        except (msgspec.ValidationError, NotImplementedError) as error:
            raise InvalidInput(f"{self.name}: {error}") from error
        return request

    def answer(
        self,
        home: Home,
        asked: bytes | msgspec.Raw,
        on_progress: Callable[[Any], object] | None = None,
    ) -> bytes:
        """Run it on a request in JSON; the result in JSON. Raises InvalidInput and what the operation raises."""
        return json.encode(self.run_in(home, self.decode(asked), on_progress))

    def decode(self, asked: bytes | msgspec.Raw) -> Any:
        """A request from JSON. Raises InvalidInput where it is none, is out of bounds, or names what there is not."""
        try:
            request = json.decode(asked, self.request)
            if not isinstance(request, msgspec.Struct):
                _refuse_unknown(request, json.decode(asked, dict))
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            raise InvalidInput(f"{self.name}: {error}") from error
        return request

    def read(self, answered: bytes) -> Any:
        """What an answer in JSON holds."""
        return json.decode(answered, self.result)


def _names_files(request: Any) -> bool:
    """Whether it names files of this machine, which whoever has the token from afar must not read or write."""
    values = (getattr(request, name) for name in getattr(request, "__struct_fields__", ()))
    return any(
        isinstance(one, Path)
        for value in values
        for one in (value if isinstance(value, tuple) else (value,))
    )


def _refuse_unknown(request: Any, given: Mapping[str, Any]) -> None:
    """As msgspec does for its own structs: those requests are dataclasses that a hook loads."""
    known = {one.name for one in dataclasses.fields(request)}
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise msgspec.ValidationError(f"Object contains unknown field `{unknown}`")


# ----------------------------------------------------------------------------
# What several operations have in common.


NOTHING = "base.request:Nothing"
LONG: Mapping[str, Any] = {"writes": True, "takes_long": True, "reports_progress": True}
