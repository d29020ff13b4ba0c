"""How resources are answered: entity tags, pages with a cursor, and lists as one record a line."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from nacre.catalogue import CATALOGUE
from nacre.errors import EditConflict, InvalidInput
from nacre.operation import Operation
from nacre.platform import json_values
from nacre.web.operations import answer_of, json_body
from nacre.web.problems import problem_response
from nacre.web.rest import cursors
from nacre.web.rest.cursors import Cursor
from nacre.web.rest.parameters import EXPECTED, converted, expects, has_pages, request_of
from nacre.web.rest.resources import PREFIX, RESOURCES, Resource

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

NDJSON = "application/x-ndjson"
_JSON = "application/json"
_PAGE = 200
"""Items that are read at once where all of them are asked for."""

_NEAR = 25
"""Places before and after its own at which the last item of a page is looked for."""

_TAG_BYTES = 12
_EMPTY = msgspec.Raw(b"[]")


def resource_routes() -> list[Route]:
    """The routes of the table, in its order; a path is one route with all of its methods."""
    found: dict[str, dict[str, Resource]] = {}
    for one in RESOURCES:
        found.setdefault(one.path, {})[one.method] = one
    return [Route(path, _Endpoint(methods), methods=list(methods)) for path, methods in found.items()]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request for a resource: the fields of the operation's request, some of them still texts."""

    resource: Resource
    fields: dict[str, Any]

    @property
    def operation(self) -> Operation:
        return CATALOGUE[self.resource.operation]

    def encoded(self, **further: Any) -> bytes:
        """The operation's request in JSON. Raises InvalidInput."""
        return json_values.encode(converted(self.operation, {**self.resource.given, **self.fields, **further}))

    def number(self, name: str) -> int:
        """A whole number of the request, as it is given or by default. Raises InvalidInput."""
        found = getattr(converted(self.operation, {**self.resource.given, **self.fields}), name, None)
        return found or 0


class _Endpoint:
    """Answers at one path; an ASGI app, of which Starlette asks for these methods, and ``HEAD`` for ``GET``."""

    def __init__(self, methods: Mapping[str, Resource]) -> None:
        self._methods = methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        resource = self._methods["GET" if scope["method"] == "HEAD" else scope["method"]]
        request = Request(scope, receive)
        answer = await (_read(resource, request) if resource.reads else _write(resource, request))
        await answer(scope, receive, send)


async def _read(resource: Resource, request: Request) -> Response:
    asked, cursor = _asked(resource, request)
    wants_lines = resource.rows is not None and NDJSON in request.headers.get("accept", "")
    if wants_lines and "limit" not in asked.fields:
        return await _all_lines(asked, request)
    skipped = await _place(asked, request, cursor) if cursor else 0
    further = {resource.offset: skipped} if cursor else {}
    result = await answer_of(request, resource.operation, asked.encoded(**further))
    headers = _next_page(asked, request, result, skipped)
    if wants_lines:
        return Response(b"".join(bytes(one) + b"\n" for one in _rows(resource, result)), 200, headers, NDJSON)
    tag = entity_tag(result)
    if _is_named(tag, request.headers.get("if-none-match")):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(result, 200, headers | {"ETag": tag}, _JSON)


async def _place(asked: _Asked, request: Request, cursor: Cursor) -> int:
    """How many items come up to the one with which the page before ended: what was stored or deleted since moved it.

    It is looked for where it was, then near by; what is gone, or ranked for a question, has the place that it had.
    """
    if asked.operation.name == "recall" or not cursor.last:
        return cursor.skip
    near = max(0, cursor.skip - 1 - _NEAR)
    for start, limit in ((cursor.skip - 1, 1), (near, 2 * _NEAR)):
        rows = await _page(asked, request, {asked.resource.offset: start, "limit": limit})
        names = [cursors.name_of(row) for row in rows]
        if cursor.last in names:
            return start + names.index(cursor.last) + 1
    return cursor.skip


def _asked(resource: Resource, request: Request) -> tuple[_Asked, Cursor | None]:
    """What is asked for, and where it goes on. Raises InvalidInput."""
    query = list(request.query_params.multi_items())
    cursor = next((text for name, text in query if name == "cursor"), None)
    if cursor is not None and not has_pages(resource):
        raise InvalidInput(f"{request.url.path} has no pages", hint="leave cursor out")
    texts = [*request.path_params.items(), *((name, text) for name, text in query if name != "cursor")]
    asked = _Asked(resource, request_of(CATALOGUE[resource.operation], texts, resource.names, {}))
    return asked, cursors.read(cursor, _mark(asked)) if cursor else None


def _mark(asked: _Asked) -> str:
    """What a cursor belongs to: all that is asked for but how many at once."""
    return cursors.mark(asked.resource.path, {**asked.fields, "limit": None})


def _next_page(asked: _Asked, request: Request, result: bytes, skipped: int) -> dict[str, str]:
    """Where the next page is, if there may be one."""
    if not has_pages(asked.resource):
        return {}
    rows = _rows(asked.resource, result)
    found = len(rows)
    limit = asked.number("limit")
    skipped = skipped or asked.number(asked.resource.offset)
    if not found or found < limit or _is_last(result, skipped + found):
        return {}
    query = [one for one in request.query_params.multi_items() if one[0] not in ("cursor", asked.resource.offset)]
    cursor = Cursor(skipped + found, _mark(_without_offset(asked)), cursors.name_of(rows[-1]))
    return {"Link": f'<{quote(request.url.path)}?{urlencode([*query, ("cursor", cursors.write(cursor))])}>; rel="next"'}


def _without_offset(asked: _Asked) -> _Asked:
    return replace(asked, fields={name: one for name, one in asked.fields.items() if name != asked.resource.offset})


def _is_last(result: bytes, seen: int) -> bool:
    """Whether the result itself says that nothing follows."""
    told = json_values.parse(result, _Told) if result.startswith(b"{") else _Told()
    return told.more is False or (told.total is not None and seen >= told.total)


class _Told(msgspec.Struct):
    """What results say of how much there is."""

    more: bool | None = None
    total: int | None = None


def _rows(resource: Resource, result: bytes) -> list[msgspec.Raw]:
    assert resource.rows is not None  # noqa: S101 - only lists have rows
    whole = msgspec.Raw(result)
    listed = json_values.parse(result, dict[str, msgspec.Raw]).get(resource.rows, _EMPTY) if resource.rows else whole
    return json_values.parse(listed, list[msgspec.Raw])


async def _all_lines(asked: _Asked, request: Request) -> Response:
    """All records, one page of them after the other; the first is read before anything is answered."""
    goes_on = has_pages(asked.resource)
    further = {"limit": _PAGE} if goes_on else {}
    first = await _page(asked, request, further)

    async def lines() -> AsyncIterator[bytes]:
        page, seen = first, 0
        while page:
            yield b"".join(bytes(one) + b"\n" for one in page)
            seen += len(page)
            further[asked.resource.offset] = seen
            page = await _page(asked, request, further) if goes_on and len(page) == _PAGE else []

    return StreamingResponse(lines(), media_type=NDJSON)


async def _page(asked: _Asked, request: Request, further: dict[str, int]) -> list[msgspec.Raw]:
    return _rows(asked.resource, await answer_of(request, asked.resource.operation, asked.encoded(**further)))


async def _write(resource: Resource, request: Request) -> Response:
    operation = CATALOGUE[resource.operation]
    fields = {**resource.given, **_object(await json_body(request))}
    query = request.query_params.multi_items() if resource.method == "DELETE" else []
    fields = request_of(operation, [*request.path_params.items(), *query], resource.names, fields)
    expected = request.headers.get("if-match")
    if expected and expected.strip() != "*":
        if not expects(operation):
            raise InvalidInput(f"{resource.method} {request.url.path} knows no If-Match", hint="leave it out")
        fields[EXPECTED] = _expected(expected)
    try:
        result = await answer_of(request, resource.operation, json_values.encode(operation.make(fields)))
    except EditConflict as error:
        if EXPECTED not in fields:
            raise
        return problem_response(412, error.code, error.message, error.hint)
    if not resource.creates:
        return Response(result, 200, {"ETag": entity_tag(result)} if _own_tag(result) else None, _JSON)
    made = json_values.parse(result, _Made)
    place = {"Location": f"{PREFIX}{resource.path}/{made.memory_id}"}
    return Response(result, 201 if made.action == "stored" else 200, place, _JSON)


class _Made(msgspec.Struct):
    action: str
    memory_id: str


def _object(body: bytes) -> dict[str, Any]:
    try:
        return json_values.parse(body, dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the body is no JSON object: {error}", hint="docs/rest.md shows some") from error


def entity_tag(result: bytes) -> str:
    """The entity tag of a result: of its bytes, and before them, if there is one, that of the file it tells of."""
    own = _own_tag(result)
    whole = hashlib.blake2b(result, digest_size=_TAG_BYTES).hexdigest()
    return f'"{own}.{whole}"' if own else f'"{whole}"'


def _own_tag(result: bytes) -> str | None:
    return json_values.parse(result, _Tagged).etag if result.startswith(b"{") else None


def _expected(tag: str) -> str:
    """What an ``If-Match`` says of the file."""
    return tag.strip().removeprefix("W/").strip('"').partition(".")[0]


class _Tagged(msgspec.Struct):
    etag: str | None = None


def _is_named(tag: str, header: str | None) -> bool:
    """Whether an ``If-None-Match`` names a tag (RFC 9110 13.1.2: weakly compared)."""
    named = [one.strip().removeprefix("W/") for one in (header or "").split(",")]
    return tag in named or named == ["*"]
