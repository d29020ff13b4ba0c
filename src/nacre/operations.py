"""Operations: functions that nacre's interfaces offer, with the rules for calling them.

Mark a function with :func:`operation`. Its first parameter is the home or the settings. Parameters
with ``Annotated`` bounds and help are the fields of its request. Alternatively, a function can take
the request itself. Other keyword-only parameters are for Python callers.
"""

from __future__ import annotations

import builtins
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import EnumType
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_type_hints

from nacre.base import json, lazy
from nacre.base import request as requests
from nacre.base.frozen import frozen
from nacre.errors import ConflictError, InvalidInputError, NotAllowedError
from nacre.values.memory import Face

if TYPE_CHECKING:
    import msgspec

    from nacre.home.home import Home
    from nacre.settings import Settings
else:
    msgspec = lazy.Module("msgspec")  # a hook cannot afford to load msgspec

Function = TypeVar("Function", bound=Callable[..., Any])


@frozen
class Operation:
    """A function that nacre's interfaces offer, with the rules set by :func:`operation`."""

    name: str
    function: Callable[..., Any]
    writes: bool = False
    takes_long: bool = False
    closed: bool = False
    owners: bool | tuple[str, ...] = False
    by_key: bool = False
    daemon: bool = True
    http: bool = True
    command: str = ""

    @property
    def in_words(self) -> str:
        """The command that runs the operation, as shown in messages."""
        return f"nacre {self.command or self.name.replace('-', ' ')}"

    @property
    def needs_home(self) -> bool:
        """True if the function takes an open home instead of settings."""
        first = next(iter(inspect.signature(self.function).parameters.values()))
        kind = getattr(first.annotation, "__name__", str(first.annotation))
        return kind.rpartition(".")[2] != "Settings"

    @property
    def request(self) -> Any:
        """The type of the operation's request, or ``Request`` if it has no fields."""
        return _types(self.function)[0]

    @property
    def result(self) -> Any:
        return _types(self.function)[1]

    def is_offered(self, face: Face) -> bool:
        """Return True if this interface offers the operation.

        Only the command line offers operations that need a closed home.
        """
        offered = {Face.DAEMON: self.daemon, Face.HTTP: self.http}.get(face, True)
        return offered and not (self.closed and face in (Face.DAEMON, Face.MCP, Face.HTTP))

    def run(
        self,
        target: Home | Settings,
        request: Any,
        on_progress: Callable[[Any], object] | None = None,
    ) -> Any:
        """Run the operation on a home or, if it needs none, on the settings.

        Raises OwnerOnlyError, NotAllowedError, InvalidInputError for too large a number or time,
        and the operation's own errors.
        """
        if target.actor.bearer and not self.by_key:
            raise NotAllowedError(
                f"{self.name} is not available with a key",
                hint="run it on a machine that opens that space directly",
            )
        if self.is_owners(request) or (target.actor.face is Face.HTTP and _names_files(request)):
            options = "" if isinstance(self.owners, bool) else f" with {' or '.join(self.owners)}"
            target.actor.require_owner(self.in_words + options)
        names = _types(self.function)[2]
        fields = {name: getattr(request, name) for name in names}
        arguments = () if names or self.request is requests.Request else (request,)
        if on_progress and "on_progress" in inspect.signature(self.function).parameters:
            fields["on_progress"] = on_progress
        try:
            with self.allowed(target, request):
                return self.function(target, *arguments, **fields)
        except OverflowError as error:
            raise InvalidInputError(
                f"{self.name}: a number or time is too large", hint="use a smaller value"
            ) from error

    def allowed(self, target: Home | Settings, request: Any = None) -> AbstractContextManager[None]:
        """Return a context manager that checks the caller's role and records writes on a server.

        Without a ``request``, fields that only the owner can set are not checked.
        """
        home = cast("Home", target)
        server = home.database.server if self.needs_home else None
        if server is None:
            return nullcontext()
        return server.allowed(home, self.name, writes=self.writes, owners=self.is_owners(request))

    def is_owners(self, request: Any) -> bool:
        """Return True if only the owner can make this request."""
        if isinstance(self.owners, bool):
            return self.owners
        return any(getattr(request, name, False) for name in self.owners)

    def run_in(
        self, home: Home, request: Any, on_progress: Callable[[Any], object] | None = None
    ) -> Any:
        """Run the operation in an open home.

        Raises ConflictError if the operation needs a closed home, and the operation's own errors.
        """
        if self.closed:
            raise ConflictError(
                f"{self.name} needs exclusive use of the home", hint="close it first"
            )
        return self.run(home if self.needs_home else home.settings, request, on_progress)

    def make(self, fields: Mapping[str, Any], *, strict: bool = True) -> Any:
        """Build a request from fields. Unless ``strict``, numbers and booleans can be strings.

        Raises InvalidInputError if a field is out of bounds, missing or unknown.
        """
        try:
            request = json.convert(json.to_plain(fields), self.request, strict=strict)
            if dataclasses.is_dataclass(request):  # msgspec itself ignores its unknown fields
                for name in fields.keys() - {field.name for field in dataclasses.fields(request)}:
                    raise msgspec.ValidationError(f"Object contains unknown field `{name}`")
        except (msgspec.ValidationError, NotImplementedError) as error:
            hint = _choices(self.request, str(error))
            raise InvalidInputError(f"{self.name}: {error}", hint=hint) from error
        return request

    def answer(
        self,
        home: Home,
        data: bytes | msgspec.Raw,
        on_progress: Callable[[Any], object] | None = None,
    ) -> bytes:
        """Run the operation on a JSON request and return the result as JSON.

        Raises InvalidInputError for an invalid request, and the operation's own errors.
        """
        try:
            fields = json.decode(data, dict)
        except msgspec.DecodeError as error:
            raise InvalidInputError(f"{self.name}: {error}") from error
        return json.encode(self.run_in(home, self.make(fields), on_progress))

    def read(self, data: bytes) -> Any:
        """Decode a JSON result."""
        return json.decode(data, self.result)


def operation(name: str, **rules: Any) -> Callable[[Function], Function]:
    """Return a decorator that makes a function available as an operation.

    ``writes``: the operation changes more than usage counts and traces. ``takes_long``: it can take
    minutes, so only a few run concurrently. ``closed``: no process may have the home open, so the
    function receives the settings. ``owners``: True if agents cannot call the operation, or the
    request fields that they cannot set. ``by_key``: holders of a key for a space can call it for
    the data of that space. ``daemon``, ``http``: whether this interface offers it. ``command``: its
    command without ``nacre``, if different from the name.
    """

    def mark(function: Function) -> Function:
        vars(function)["operation"] = Operation(name, function, **rules)
        return function

    return mark


def operation_of(function: Callable[..., Any]) -> Operation:
    """Return the :class:`Operation` of a function.

    Raises KeyError if the function is not an operation.
    """
    marked: Operation = vars(function)["operation"]
    return marked


@cache
def _types(function: Callable[..., Any]) -> tuple[Any, Any, tuple[str, ...]]:
    own = inspect.unwrap(getattr(function, "__func__", function))
    hints = get_type_hints(own, localns=_Names(own.__globals__), include_extras=True)
    parameters = inspect.signature(function).parameters
    fields = tuple(name for name in parameters if "Annotated[" in str(hints.get(name)))
    if fields:
        defaults = [(name, parameters[name].default) for name in fields]
        request = requests.RequestType(
            operation_of(own).name.title().replace("-", "") + "Request",
            (requests.Request,),
            {
                "__module__": own.__module__,
                "__doc__": own.__doc__,
                "__annotations__": {name: hints[name] for name in fields},
                **{name: value for name, value in defaults if value is not inspect.Parameter.empty},
            },
        )
        return request, hints["return"], fields
    passed = [
        hints[item.name]
        for item in [*parameters.values()][1:]
        if item.kind is item.POSITIONAL_OR_KEYWORD and item.name != "on_progress"
    ]
    request = passed[0] if passed else requests.Request
    optional = [item for item in get_args(request) if item is not type(None)]
    return optional[0] if optional else request, hints["return"], ()


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        # Names imported only for type checking are unknown at run time.
        return vars(builtins).get(name, Any)


def _names_files(request: Any) -> bool:
    values = [getattr(request, name) for name in getattr(request, "__struct_fields__", ())]
    items = [item for value in values if isinstance(value, tuple) for item in value]
    return any(isinstance(item, Path) for item in [*values, *items])


def _choices(request: type, error: str) -> str | None:
    kind = get_type_hints(request).get(error.rpartition("$.")[2].rstrip("`"))
    enums = [item for item in (kind, *get_args(kind)) if isinstance(item, EnumType)]
    return f"one of {', '.join(enums[0])}" if enums else None
