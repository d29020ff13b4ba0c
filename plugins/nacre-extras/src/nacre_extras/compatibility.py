"""REST requests and responses in the formats of other memory systems."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nacre.base import json as json_values
from nacre.base.text import words
from nacre.base.times import shown_day
from nacre.errors import InvalidInputError, NacreError
from nacre.serve.catalogue import CATALOGUE
from nacre.serve.web import UnprocessableError, answer_of, json_body, of_error, served_by
from nacre.values.memory import Memory
from nacre.vault.documents import dump
from nacre.vault.files import slugify
from nacre_extras.imports_systems import CATEGORIES

Record = dict[str, Any]


class Call:
    """A request from another memory system's client."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.path: dict[str, str] = request.path_params

    async def ask(self, operation: str, **fields: Any) -> Any:
        """Run an operation of nacre and return its result. Raises NacreError."""
        return CATALOGUE[operation].read(
            await answer_of(self._request, operation, json_values.encode(fields))
        )

    def publish(self, kind: str, **fields: Any) -> None:
        served_by(self._request).live.bus.publish(kind, **fields)

    @property
    def home(self) -> Path:
        return served_by(self._request).home

    @property
    def is_known(self) -> bool:
        """True if the request has a valid token or cookie."""
        return served_by(self._request).actor(self._request.scope) is not None

    def text(self, name: str, default: str = "") -> str:
        return self._request.query_params.get(name, "").strip() or default

    def flag(self, name: str, *, default: bool) -> bool:
        return self.text(name, str(default)).lower() == "true"

    def number(self, name: str, default: int, most: int, least: int = 1) -> int:
        """Return an integer query parameter. Raises InvalidInputError if it is not a number."""
        text = self.text(name, str(default))
        if not text.isdecimal() or not text.isascii() or len(text) > len(str(most)) + 1:
            raise InvalidInputError(
                f"{name}: {text[:40]!r} is not a number from {least} to {most}",
                hint=f"for example {name}={default}",
            )
        return max(least, min(most, int(text)))

    def page(self, items: list[Any], most: int) -> list[Any]:
        """Return the page that the query parameters ``offset`` and ``limit`` select."""
        offset = self.number("offset", 0, 100_000, least=0)
        return items[offset : offset + self.number("limit", 20, most)]

    async def body(self) -> Record:
        """Return the JSON object in the request's body. Raises InvalidInputError for other bodies."""
        try:
            return json_values.decode(await json_body(self._request), Record)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InvalidInputError(
                f"the body is not a JSON object: {error}", hint="send a JSON object"
            ) from error


Handler = Callable[[Call], Awaitable[Any]]


class IncompleteError(UnprocessableError):
    """A field of a write is missing or invalid."""

    code = "incomplete"


class Routes(list[Route]):
    """Routes that return JSON, with specific paths first. Errors have an additional field
    ``error``.
    """

    def __call__(self, method: str, path: str, status: int = 200) -> Callable[[Handler], Handler]:
        """Return a decorator that registers a function as a route's handler."""

        def add(handler: Handler) -> Handler:
            async def answer(request: Request) -> Response:
                try:
                    result = await handler(Call(request))
                except NacreError as error:
                    response = of_error(error)
                    fields = {**json.loads(bytes(response.body)), "error": error.message}
                    response.body = json.dumps(fields).encode()
                    response.headers["content-length"] = str(len(response.body))
                    return response
                return Response(json_values.encode(result), status, media_type="application/json")

            self.append(Route(path, answer, methods=[method]))
            return handler

        return add


# Clients see a memory as a file in its category's folder. The file's name ends with the end of the id.


_BY_KIND = {
    "decision": "decisions",
    "relationship": "people",
    "preference": "people",
    "lesson": "workflows",
}
_ID_CHARACTERS = 8


def category_of(memory: Any) -> str:
    """Return the category that a memory's tags name, or else the one of its kind."""
    tagged = next((tag for tag in getattr(memory, "tags", ()) if tag in CATEGORIES), None)
    by_kind = _BY_KIND.get(memory.kind or "")
    return tagged or by_kind or ("projects" if memory.project else "notes")


def path_of(memory: Any) -> str:
    """Return the path by which clients know a memory or a node of the graph."""
    name = slugify(memory.subject or "") or "entry"
    return f"{category_of(memory)}/{name}-{memory.id[-_ID_CHARACTERS:]}.md"


def reference_of(path: str) -> str:
    """Return the end of a memory's id from the path of its entry."""
    return path.rpartition("/")[2].removesuffix(".md")[-_ID_CHARACTERS:]


def entry_of(memory: Memory, *, with_content: bool = False) -> Record:
    """Convert a memory to an entry of agent-knowledge."""
    entry: Record = {
        "path": path_of(memory),
        "title": memory.subject,
        "tags": memory.tags,
        "updated": shown_day(memory.updated),
        "category": category_of(memory),
        "confidence": memory.confidence,
        "id": memory.id,
    }
    if memory.confidence_score is not None:
        entry["confidence_score"] = memory.confidence_score
    return entry | ({"content": memory.content} if with_content else {})


def file_of(entry: Mapping[str, Any]) -> str:
    """Format an entry and its content as a file of agent-knowledge."""
    front = {name: entry[name] for name in ("title", "tags", "updated", "confidence")}
    return f"---\n{dump(front)}---\n\n{entry['content']}\n"


def likeness(text: str, other_text: str) -> float:
    """Return the share of words that two texts have in common."""
    first, second = set(words(text)), set(words(other_text))
    return round(len(first & second) / (len(first | second) or 1), 2)
