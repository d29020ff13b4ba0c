"""Answer requests from clients of other systems in the formats of these systems."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
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
from nacre.vault.documents import dump
from nacre.vault.files import slugify
from nacre_extras.imports_systems import CATEGORIES

Record = dict[str, Any]


class Call:
    """A request from another memory system's client."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.path: dict[str, str] = request.path_params
        self.address = request.url.path

    async def ask(self, operation: str, **fields: Any) -> Any:
        """Return the result of an operation as plain values. Raises NacreError."""
        return msgspec.json.decode(
            await answer_of(self._request, operation, json_values.encode(fields))
        )

    async def read(self, operation: str, **fields: Any) -> Any:
        """Return the result of an operation as an instance of its type. Raises NacreError."""
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
        """Return a query parameter as an integer within the bounds. Raises InvalidInputError."""
        text = self.text(name, str(default))
        if not text.isdecimal() or not text.isascii() or len(text) > len(str(most)) + 1:
            raise InvalidInputError(
                f"{name}: {text[:40]!r} is not a number from {least} to {most}",
                hint=f"{name}={default}",
            )
        return max(least, min(most, int(text)))

    def page(self, items: list[Any], most: int) -> list[Any]:
        """Return ``limit`` items from ``offset`` on. Raises InvalidInputError."""
        offset = self.number("offset", 0, 100_000, least=0)
        return items[offset : offset + self.number("limit", 20, most)]

    async def body(self) -> Record:
        """Return the body as an object, by default empty. Raises InvalidInputError."""
        try:
            return json_values.parse_json_tree(await json_body(self._request), Record)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InvalidInputError(
                f"the body is not a JSON object: {error}", hint="send an object"
            ) from error


Handler = Callable[[Call], Awaitable[Any]]


class IncompleteError(UnprocessableError):
    """A write has a missing or invalid field."""

    code = "incomplete"


class Routes(list[Route]):
    """Routes with JSON answers. Errors are also in the field ``error``. More specific paths come first."""

    def __call__(self, method: str, path: str, status: int = 200) -> Callable[[Handler], Handler]:
        """Return a decorator that adds a route to a handler."""

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


# A memory is a file in a category's folder. The file's name ends in eight characters of the id.


_BY_KIND = {
    "decision": "decisions",
    "relationship": "people",
    "preference": "people",
    "lesson": "workflows",
}
_ID_CHARACTERS = 8


def category_of(memory: Mapping[str, Any]) -> str:
    """Return the category of a memory, which is a tag or, without one, the category of its kind."""
    tagged = next((tag for tag in memory.get("tags", ()) if tag in CATEGORIES), None)
    by_kind = _BY_KIND.get(memory.get("kind") or "")
    return tagged or by_kind or ("projects" if memory.get("project") else "notes")


def path_of(memory: Mapping[str, Any]) -> str:
    """Return the path of the entry for a memory or a node of the graph."""
    name = slugify(memory.get("subject") or "") or "entry"
    return f"{category_of(memory)}/{name}-{memory['id'][-_ID_CHARACTERS:]}.md"


def reference_of(path: str) -> str:
    """Return the part of the memory's id at the end of a path."""
    return path.rpartition("/")[2].removesuffix(".md")[-_ID_CHARACTERS:]


def entry_of(memory: Mapping[str, Any], *, whole: bool = False) -> Record:
    """Return a memory as an entry, with its content if ``whole``."""
    entry = {
        "path": path_of(memory),
        "title": memory["subject"],
        "tags": memory["tags"],
        "updated": shown_day(datetime.fromisoformat(memory["updated"])),
        "category": category_of(memory),
        "confidence": memory["confidence"],
        "id": memory["id"],
    }
    if memory["confidence_score"] is not None:
        entry["confidence_score"] = memory["confidence_score"]
    return entry | ({"content": memory["content"]} if whole else {})


def file_of(entry: Mapping[str, Any]) -> str:
    """Return an entry with content as a file of agent-knowledge."""
    front = {name: entry[name] for name in ("title", "tags", "updated", "confidence")}
    return f"---\n{dump(front)}---\n\n{entry['content']}\n"


def likeness(text: str, other_text: str) -> float:
    """Return the share of words that two texts have in common."""
    first, second = set(words(text)), set(words(other_text))
    return round(len(first & second) / (len(first | second) or 1), 2)
