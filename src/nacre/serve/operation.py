"""Operations: their names, types, functions and rules, independent of any interface."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from nacre.base import json, lazy
from nacre.base.request import Nothing
from nacre.errors import ConflictError, InvalidInputError
from nacre.values.memory import Face

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.settings import Settings

_LIST, _OPTIONAL = "list[", " | None"
_OWN = {"str": str, "int": int, "bool": bool, "None": type(None), "Path": Path}


class Needs(StrEnum):
    """The first argument of an operation's function.

    ``CLOSED`` operations take the settings and require that no process has the home open.
    """

    HOME = "home"
    SETTINGS = "settings"
    CLOSED = "closed"


@cache
def load(place: str) -> Any:
    """Return the function or type at ``module:name`` of nacre, or a Python type such as ``str``.

    Types may also be written ``list[module:name]`` or ``module:name | None``.
    """
    if place.startswith(_LIST):
        return list[load(place.removeprefix(_LIST).removesuffix("]"))]  # type: ignore[misc] # known only at run time
    if place.endswith(_OPTIONAL):
        return load(place.removesuffix(_OPTIONAL)) | None
    if place in _OWN:
        return _OWN[place]
    return lazy.load(f"nacre.{place}")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation.

    ``place`` is its function. It takes the object that the operation ``needs``, the request (unless
    that is :class:`Nothing`) and, if it ``reports_progress``, ``on_progress``. ``writes``: it
    changes more than usage counts and traces. ``takes_long``: it may take minutes; few of these run
    at once, so that other calls are still answered. ``owners``: it changes rules, privacy or the
    owner's statements, so agents may not call it; either always, or when one of these request
    fields is set. ``not_by`` are the interfaces that do not offer the operation.
    ``command`` is its command line without ``nacre``, if it differs from the name.
    """

    name: str
    place: str | Callable[..., Any]
    asked: str | type
    answered: str | type
    """A type or its place; ``"None"`` for an operation without a result."""

    writes: bool = False
    takes_long: bool = False
    reports_progress: bool = False
    needs: Needs = Needs.HOME
    owners: bool | tuple[str, ...] = False
    not_by: tuple[Face, ...] = ()
    command: str = ""

    @property
    def in_words(self) -> str:
        """Return the command line of the operation."""
        return f"nacre {self.command or self.name.replace('-', ' ')}"

    @property
    def function(self) -> Callable[..., Any]:
        """Load and return the function."""
        return load(self.place) if isinstance(self.place, str) else self.place

    @property
    def request(self) -> Any:
        """Load and return the request type."""
        return load(self.asked) if isinstance(self.asked, str) else self.asked

    @property
    def result(self) -> Any:
        """Load and return the result type."""
        return load(self.answered) if isinstance(self.answered, str) else self.answered

    def run(
        self,
        target: Home | Settings,
        request: Any,
        on_progress: Callable[[Any], object] | None = None,
    ) -> Any:
        """Run the operation with the object that it :class:`needs <Needs>`.

        Raises OwnerOnlyError, InvalidInputError for a number or time that is too large, and the operation's
        own errors.
        """
        if target.actor.bearer:
            lazy.load("nacre.serve.catalogue:require")(self.name)
        if self.is_owners(request) or (target.actor.face is Face.HTTP and _names_files(request)):
            fields = "" if isinstance(self.owners, bool) else f" with {' or '.join(self.owners)}"
            target.actor.require_owner(self.in_words + fields)
        arguments = () if self.request is Nothing else (request,)
        if on_progress is not None and self.reports_progress:
            arguments = (*arguments, on_progress)
        try:
            with self.allowed(target, request):
                return self.function(target, *arguments)
        except OverflowError as error:
            raise InvalidInputError(
                f"{self.name}: a number or time is too large", hint="use a smaller value"
            ) from error

    def allowed(self, target: Home | Settings, request: Any = None) -> AbstractContextManager[None]:
        """Return a context that checks the caller's role and records writes on a server.

        Without a ``request``, the operation does not count as the owner's because of its fields.
        """
        if self.needs is not Needs.HOME or not cast("Home", target).database.is_server:
            return nullcontext()
        allowed: AbstractContextManager[None] = lazy.load("nacre.home.home:allowed")(
            target, self.name, writes=self.writes, owners=self.is_owners(request)
        )
        return allowed

    def is_owners(self, request: Any) -> bool:
        """Return True if only the owner may make this request."""
        if isinstance(self.owners, bool):
            return self.owners
        return any(getattr(request, name, False) for name in self.owners)

    def run_in(
        self, home: Home, request: Any, on_progress: Callable[[Any], object] | None = None
    ) -> Any:
        """Run the operation in an open home.

        Raises ConflictError if the operation needs a closed home, and the operation's own errors.
        """
        if self.needs is Needs.CLOSED:
            raise ConflictError(
                f"{self.name} needs exclusive use of the home", hint="close it first"
            )
        return self.run(home if self.needs is Needs.HOME else home.settings, request, on_progress)

    def make(self, fields: Mapping[str, Any]) -> Any:
        """Build a request from fields.

        Raises InvalidInputError if a field is out of bounds, missing or unknown.
        """
        try:
            request = json.from_plain(json.to_plain(fields), self.request)
            if not isinstance(request, msgspec.Struct):
                _refuse_unknown(request, fields)
        except (msgspec.ValidationError, NotImplementedError) as error:
            raise InvalidInputError(f"{self.name}: {error}") from error
        return request

    def answer(
        self,
        home: Home,
        data: bytes | msgspec.Raw,
        on_progress: Callable[[Any], object] | None = None,
    ) -> bytes:
        """Run the operation on a JSON request and return the result as JSON.

        Raises InvalidInputError and the operation's own errors.
        """
        return json.encode(self.run_in(home, self.decode(data), on_progress))

    def decode(self, data: bytes | msgspec.Raw) -> Any:
        """Decode a JSON request.

        Raises InvalidInputError if it is malformed, out of bounds or has unknown fields.
        """
        try:
            request = json.decode(data, self.request)
            if not isinstance(request, msgspec.Struct):
                _refuse_unknown(request, json.decode(data, dict))
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            raise InvalidInputError(f"{self.name}: {error}") from error
        return request

    def read(self, data: bytes) -> Any:
        """Decode a JSON result."""
        return json.decode(data, self.result)


def _names_files(request: Any) -> bool:
    """Return True if the request names local files, which a remote caller must not read or write."""
    values = (getattr(request, name) for name in getattr(request, "__struct_fields__", ()))
    return any(
        isinstance(item, Path)
        for value in values
        for item in (value if isinstance(value, tuple) else (value,))
    )


def _refuse_unknown(request: Any, fields: Mapping[str, Any]) -> None:
    """Reject unknown fields in requests that are dataclasses, because hooks load them.

    msgspec rejects them only in its own structs.
    """
    field_names = {field.name for field in dataclasses.fields(request)}
    unknown = next((name for name in fields if name not in field_names), None)
    if unknown is not None:
        raise msgspec.ValidationError(f"Object contains unknown field `{unknown}`")


# -- Values shared by the catalogues ---------------------------------------------------------------


NOTHING = "base.request:Nothing"
LONG: Mapping[str, Any] = {"writes": True, "takes_long": True, "reports_progress": True}
