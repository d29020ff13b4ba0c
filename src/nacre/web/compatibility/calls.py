"""What a client of another system asks for, and how it is answered: by operations, in that system's shapes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nacre.catalogue import CATALOGUE
from nacre.errors import InvalidInput, NacreError
from nacre.platform import json_values
from nacre.web.operations import answer_of, json_body, served_by
from nacre.web.problems import Unprocessable, of_error

_JSON = "application/json"


class Call:
    """One request of such a client."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.path: dict[str, str] = request.path_params
        self.address = request.url.path

    async def ask(self, operation: str, **fields: Any) -> Any:
        """The result of an operation, as plain values. Raises NacreError."""
        return msgspec.json.decode(await answer_of(self._request, operation, json_values.encode(fields)))

    async def read(self, operation: str, **fields: Any) -> Any:
        """The result of an operation, as its own type. Raises NacreError."""
        return CATALOGUE[operation].read(await answer_of(self._request, operation, json_values.encode(fields)))

    def publish(self, kind: str, **fields: Any) -> None:
        """Tell whoever follows the home's events."""
        served_by(self._request).live.bus.publish(kind, **fields)

    @property
    def home(self) -> Path:
        """The folder of the home that is served."""
        return served_by(self._request).home

    @property
    def is_known(self) -> bool:
        """Whether the request shows who asks: by the token, or a cookie."""
        return served_by(self._request).actor(self._request.scope) is not None

    def has(self, name: str) -> bool:
        """Whether the query names it."""
        return name in self._request.query_params

    def text(self, name: str, default: str = "") -> str:
        """A word of the query."""
        return self._request.query_params.get(name, "").strip() or default

    def flag(self, name: str, *, default: bool) -> bool:
        """A truth value of the query."""
        return self.text(name, str(default)).lower() == "true"

    def number(self, name: str, default: int, most: int, least: int = 1) -> int:
        """A whole number of the query, within bounds. Raises InvalidInput for what is none."""
        text = self.text(name, str(default))
        if not text.isdecimal() or not text.isascii() or len(text) > len(str(most)) + 1:
            raise InvalidInput(f"{name}: {text[:40]!r} is no number from {least} to {most}", hint=f"{name}={default}")
        return max(least, min(most, int(text)))

    async def body(self) -> dict[str, Any]:
        """The body as an object, empty where there is none. Raises InvalidInput."""
        try:
            return json_values.parse(await json_body(self._request), dict[str, Any])
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the body is no JSON object: {error}", hint="send an object") from error


Handler = Callable[[Call], Awaitable[Any]]


class Incomplete(Unprocessable):
    """A write lacks a field, or has one that cannot be."""

    code = "incomplete"


def route(method: str, path: str, handler: Handler, status: int = 200) -> Route:
    """A route that a handler answers: with JSON, and errors as such clients read them, in ``error`` beside the rest."""

    async def answer(request: Request) -> Response:
        try:
            found = await handler(Call(request))
        except NacreError as error:
            return _refused(error)
        return Response(json_values.encode(found), status, media_type=_JSON)

    return Route(path, answer, methods=[method])


def _refused(error: NacreError) -> Response:
    problem = of_error(error)
    told = json.loads(bytes(problem.body))
    headers = {name: value for name, value in problem.headers.items() if name == "retry-after"}
    content = json.dumps({**told, "error": error.message})
    return Response(content, problem.status_code, headers, problem.headers["content-type"])
