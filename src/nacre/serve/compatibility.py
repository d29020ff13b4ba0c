"""What a client of another system asks for, and how it is answered: by operations, in that system's shapes."""

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
from nacre.data.imports_systems import CATEGORIES
from nacre.errors import InvalidInput, NacreError
from nacre.serve.catalogue import CATALOGUE
from nacre.serve.web import Unprocessable, answer_of, json_body, of_error, served_by
from nacre.vault.documents import dump
from nacre.vault.files import slugify

_JSON = "application/json"


class Call:
    """One request of such a client."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.path: dict[str, str] = request.path_params
        self.address = request.url.path

    async def ask(self, operation: str, **fields: Any) -> Any:
        """The result of an operation, as plain values. Raises NacreError."""
        return msgspec.json.decode(
            await answer_of(self._request, operation, json_values.encode(fields))
        )

    async def read(self, operation: str, **fields: Any) -> Any:
        """The result of an operation, as its own type. Raises NacreError."""
        return CATALOGUE[operation].read(
            await answer_of(self._request, operation, json_values.encode(fields))
        )

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
            raise InvalidInput(
                f"{name}: {text[:40]!r} is no number from {least} to {most}",
                hint=f"{name}={default}",
            )
        return max(least, min(most, int(text)))

    async def body(self) -> dict[str, Any]:
        """The body as an object, empty where there is none. Raises InvalidInput."""
        try:
            return json_values.parse_json_values(await json_body(self._request), dict[str, Any])
        except (
            msgspec.DecodeError,
            msgspec.ValidationError,
            RecursionError,
            UnicodeDecodeError,
        ) as error:
            raise InvalidInput(
                f"the body is no JSON object: {error}", hint="send an object"
            ) from error


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


# ----------------------------------------------------------------------------
# Memories as entries of agent-knowledge: files by category, whose names end in eight characters of an
# id.


_BY_KIND = {
    "decision": "decisions",
    "relationship": "people",
    "preference": "people",
    "lesson": "workflows",
}
_ID_CHARACTERS = 8


def category_of(memory: Mapping[str, Any]) -> str:
    """The category of a memory: the one that it is tagged with, else by its kind."""
    tagged = next((tag for tag in memory.get("tags", ()) if tag in CATEGORIES), None)
    by_kind = _BY_KIND.get(memory.get("kind") or "")
    return tagged or by_kind or ("projects" if memory.get("project") else "notes")


def path_of(memory: Mapping[str, Any]) -> str:
    """Where an entry is, for a memory or a node of the graph."""
    name = slugify(memory.get("subject") or "") or "entry"
    return f"{category_of(memory)}/{name}-{memory['id'][-_ID_CHARACTERS:]}.md"


def reference_of(path: str) -> str:
    """The memory that a path names: by the end of its id."""
    return path.rpartition("/")[2].removesuffix(".md")[-_ID_CHARACTERS:]


def entry_of(memory: Mapping[str, Any], *, whole: bool = False) -> dict[str, Any]:
    """A memory as an entry, ``whole`` with its content."""
    found = {
        "path": path_of(memory),
        "title": memory["subject"],
        "tags": memory["tags"],
        "updated": shown_day(datetime.fromisoformat(memory["updated"])),
        "category": category_of(memory),
        "confidence": memory["confidence"],
        "id": memory["id"],
    }
    if memory["confidence_score"] is not None:
        found["confidence_score"] = memory["confidence_score"]
    return found | ({"content": memory["content"]} if whole else {})


def file_of(entry: Mapping[str, Any]) -> str:
    """A whole entry as the file that agent-knowledge would have written."""
    front = {name: entry[name] for name in ("title", "tags", "updated", "confidence")}
    return f"---\n{dump(front)}---\n\n{entry['content']}\n"


def likeness(one: str, other: str) -> float:
    """The share of the words of two texts that both have (Jaccard), to two digits."""
    first, second = set(words(one)), set(words(other))
    return round(len(first & second) / (len(first | second) or 1), 2)
