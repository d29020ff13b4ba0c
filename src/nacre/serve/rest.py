"""Cursors: where a list goes on, in a text that its reader need not understand."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from binascii import Error
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from inspect import getdoc
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import inspect
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from nacre import __version__
from nacre.base import json as json_values
from nacre.base.ids import utc_now
from nacre.base.request import Nothing
from nacre.base.times import parse_moment
from nacre.errors import EditConflict, InvalidInput
from nacre.serve.catalogue import CATALOGUE, offered_by
from nacre.serve.operation import Operation
from nacre.serve.web import answer_of, json_body, problem_response, served_by
from nacre.values.codec import stamp
from nacre.values.memory import Face
from nacre.values.session import Flag

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_MARK_BYTES = 6
_LONGEST = 200


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """A list goes on after ``skip`` items, of which ``last`` is the last one, as :func:`name_of` names it."""

    skip: int
    mark: str
    last: str = ""


class _Record(msgspec.Struct):
    id: str | int | None = None
    memory: msgspec.Raw | None = None


def mark(path: str, asked: Mapping[str, object]) -> str:
    """A short text for what is asked for: a cursor of another question is refused by it."""
    return hashlib.blake2b(
        msgspec.json.encode([path, asked], order="sorted"), digest_size=_MARK_BYTES
    ).hexdigest()


def name_of(record: msgspec.Raw) -> str:
    """A short text for a record: by its id or that of its memory, else by all that it says."""
    key = bytes(record)
    if key.startswith(b"{"):
        found = json_values.parse_json_values(record, _Record)
        if found.id is not None:
            key = msgspec.json.encode(found.id)
        elif found.memory is not None and bytes(found.memory).startswith(b"{"):
            return name_of(found.memory)
    return hashlib.blake2b(key, digest_size=_MARK_BYTES).hexdigest()


def write(cursor: Cursor) -> str:
    """The text of a cursor."""
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def read(cursor: str, marked: str) -> Cursor:
    """What a text says. Raises InvalidInput for what is no cursor, or none of what is marked so."""
    try:
        if len(cursor) > _LONGEST:
            raise ValueError("it is too long")
        found = json_values.parse_json_values(
            base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), Cursor
        )
    except (ValueError, Error, msgspec.DecodeError) as error:
        raise InvalidInput(
            f"{cursor[:40]!r} is no cursor", hint="take the address that Link: rel=next names"
        ) from error
    if found.mark != marked or found.skip < 0:
        raise InvalidInput(
            "this cursor belongs to another question",
            hint="change nothing but the limit between pages",
        )
    return found


# ----------------------------------------------------------------------------
# The routes that a program expects of a server: each is an operation by another name, and the table
# says which.


PREFIX = "/api/v1"
_REFERENCE = "/{reference:path}"


@dataclass(frozen=True, slots=True)
class Resource:
    """One route: a method and a path below ``PREFIX``, and the operation that it runs.

    Parameters of the path and of the query are fields of the request, or of the filter in it. ``names`` says which
    where they are called otherwise, ``given`` holds fields that have another default here: whoever reads by GET uses
    nothing up. ``rows`` is the field of the result that holds a list, and empty where the result is one; ``offset`` is
    the field of the request that skips items of it.
    """

    method: str
    path: str
    operation: str
    names: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, object] = field(default_factory=dict)
    rows: str | None = None
    offset: str = "offset"
    creates: bool = False

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET"


def _get(path: str, operation: str, rows: str | None = None, **names: str) -> Resource:
    return Resource("GET", path, operation, names, rows=rows)


_UNUSED = {"update": False}
_OF_PROJECT = {"name": "project"}
_MEMORIES = "/memories"
_MEMORY = _MEMORIES + _REFERENCE

RESOURCES = (
    _get(_MEMORIES, "list", "memories"),
    Resource("POST", _MEMORIES, "store", creates=True),
    _get(f"{_MEMORIES}/retired", "retired", ""),
    _get(f"{_MEMORY}/history", "history", ""),
    _get(f"{_MEMORY}/links", "graph-list", "links"),
    _get(f"{_MEMORY}/graph", "graph-show"),
    Resource("GET", _MEMORY, "look", given=_UNUSED),
    Resource("PATCH", _MEMORY, "edit"),
    Resource("DELETE", _MEMORY, "retire", {"reference": "references"}),
    Resource("GET", "/search", "recall", {"q": "text"}, _UNUSED, "hits"),
    Resource("GET", "/sessions/search", "search-sessions", {"q": "text"}, _UNUSED, "turns"),
    _get("/sessions/match", "match-sessions", "turns", q="expression"),
    _get("/chats/search", "search-chats", "passages", q="query"),
    _get("/sessions", "sessions", "lines"),
    _get(f"/sessions{_REFERENCE}/summary", "session-summary"),
    Resource("GET", f"/sessions{_REFERENCE}", "session", rows="turns", offset="first"),
    _get("/chats/status", "gateway-status"),
    _get("/chats/pairings", "gateway-pairings", ""),
    Resource("POST", "/chats/pairings", "gateway-pair"),
    Resource("DELETE", "/chats/pairings/{who:path}", "gateway-unpair"),
    _get("/chats", "gateway-sessions", ""),
    Resource("POST", f"/chats{_REFERENCE}/end", "gateway-end"),
    _get(f"/chats{_REFERENCE}", "gateway-session"),
    _get("/files/history", "did", "changes"),
    _get("/fixes", "fix", "troubles", q="error"),
    _get("/projects", "project-list", ""),
    Resource("GET", "/projects/{project}/page", "page-own", given=_OF_PROJECT),
    Resource("PUT", "/projects/{project}/page", "page-write", given=_OF_PROJECT),
    _get("/projects/{project}", "project-show"),
    _get("/pages/{name}", "page-own"),
    Resource("PUT", "/pages/{name}", "page-write"),
    _get("/graph", "graph-list", "links"),
    _get("/graph/map", "graph-map"),
    _get("/graph/central", "graph-central", "found"),
    _get("/graph/gaps", "graph-gaps", "found"),
    _get("/graph/components", "graph-components", "found"),
    _get("/graph/brief", "graph-brief"),
    _get("/graph/stale", "graph-stale", "memories"),
    _get("/review", "review", "items"),
    _get("/unanswered", "unanswered", "questions"),
    _get("/log", "log", ""),
    _get(f"/log{_REFERENCE}", "diff"),
    _get("/traces", "traces", ""),
    _get(f"/traces{_REFERENCE}", "trace"),
    _get("/today", "today"),
    _get("/activity", "activity"),
    _get("/cost", "cost"),
    _get("/overview", "overview"),
    _get("/context", "context"),
    _get("/settings", "config", ""),
    _get("/settings/{key}", "config-get"),
    Resource("PUT", "/settings/{key}", "config-set"),
    _get("/forgotten", "forgotten", ""),
    _get("/archive", "archive-status"),
    _get("/watcher", "watcher"),
)
"""In the order in which they are tried: what is more exact comes first."""


# ----------------------------------------------------------------------------
# Parameters of a path and a query as fields of a request.


EXPECTED = "expected"
"""The field of a request that holds the entity tag of what its sender has read."""

_LISTS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
_OBJECTS = (inspect.StructType, inspect.DataclassType)
_MAPPINGS = (inspect.DictType, *_OBJECTS)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A field that a query can name: where it is in the request, and whether it may be given more than once.

    A moment is given in words, as on the command line: 2026-11-20, 3d, yesterday.
    """

    place: tuple[str, ...]
    many: bool
    required: bool = False
    is_moment: bool = False


@cache
def parameters_of(request: Any) -> Mapping[str, Parameter]:
    """The fields of a request, and those of the filter in it, by name; a field that holds objects is none."""
    fields = _fields(inspect.type_info(request))
    found: dict[str, Parameter] = {}
    for one in fields:
        kind = _bare(one.type)
        if not _holds_objects(kind):
            found[one.name] = _parameter(kind, one.name, required=one.required)
    for one in fields:
        for inner in _fields(_bare(one.type)):
            kind = _bare(inner.type)
            if not _holds_objects(kind):
                found.setdefault(inner.name, _parameter(kind, one.name, inner.name))
    return found


def _parameter(kind: inspect.Type, *place: str, required: bool = False) -> Parameter:
    return Parameter(
        place, isinstance(kind, _LISTS), required, isinstance(kind, inspect.DateTimeType)
    )


def named(request: Any, name: str) -> Parameter | None:
    """The parameter of a name; a list may be named by one of it, as ``kind`` for ``kinds``."""
    known = parameters_of(request)
    if name in known:
        return known[name]
    plural = known.get(f"{name}s")
    return plural if plural and plural.many else None


def has_pages(resource: Resource) -> bool:
    """Whether a list can be gone on with."""
    return resource.rows is not None and resource.offset in parameters_of(
        CATALOGUE[resource.operation].request
    )


def expects(operation: Operation) -> bool:
    """Whether a request can say what its sender has read: by its entity tag."""
    return EXPECTED in parameters_of(operation.request)


def request_of(
    operation: Operation,
    texts: Iterable[tuple[str, str]],
    names: Mapping[str, str],
    fields: dict[str, Any],
) -> dict[str, Any]:
    """The fields of a request with what a path and a query say of it, which have to be texts.

    Raises InvalidInput for what the operation does not know, or what is given twice and is no list.
    """
    for name, text in texts:
        known = named(operation.request, names.get(name, name))
        if known is None:
            offered = ", ".join(sorted(parameters_of(operation.request))) or "it has none"
            raise InvalidInput(
                f"{operation.name} has no parameter {name!r}", hint=f"parameters: {offered}"
            )
        *outer, last = known.place
        inside = fields
        for one in outer:
            inside = inside.setdefault(one, {})
        if not known.many:
            inside[last] = _once(
                inside, last, stamp(parse_moment(text, utc_now())) if known.is_moment else text
            )
        else:
            inside.setdefault(last, []).append(text)
    return fields


def _once(inside: Mapping[str, Any], name: str, text: str) -> str:
    if isinstance(inside.get(name), str):
        raise InvalidInput(f"{name} is given twice", hint="give it once")
    return text


def converted(operation: Operation, fields: Mapping[str, Any]) -> Any:
    """The request of texts, which stand for numbers and truth values, too. Raises InvalidInput."""
    try:
        return json_values.from_plain(fields, operation.request, strict=False)
    except (msgspec.ValidationError, NotImplementedError) as error:
        raise InvalidInput(
            f"{operation.name}: {error}", hint="/api/docs lists what may be given"
        ) from error


def _fields(kind: inspect.Type) -> tuple[inspect.Field, ...]:
    return kind.fields if isinstance(kind, _OBJECTS) else ()


def _bare(kind: inspect.Type) -> inspect.Type:
    """A type without its notes, and without ``None`` or nothing beside it."""
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        some = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return _bare(some[0]) if len(some) == 1 else kind
    return kind


def _holds_objects(kind: inspect.Type) -> bool:
    if isinstance(kind, _LISTS):
        return isinstance(_bare(kind.item_type), _MAPPINGS)
    return isinstance(kind, _MAPPINGS)


# ----------------------------------------------------------------------------
# The routes as OpenAPI 3.1, made from the catalogue: the requests' bounds and help, the results'
# fields.


_REFERENCES = "#/components/schemas/{name}"
_JSON, _PROBLEM, _NDJSON = "application/json", "application/problem+json", "application/x-ndjson"
_ROLE = re.compile(r":\w+:`(?:~?[\w.]+\.)?(\w+)(?: <[^>]*>)?`")
_NO_WORD = re.compile(r"\W+")
_IN_PATH = re.compile(r"\{(\w+)(?::path)?\}")

_ABOUT = """What nacre remembers, over HTTP. Every operation is `POST /api/v1/<operation>`, with its request as JSON;
what programs expect of resources is there, too. A request shows the token in the home's file `http.token`, or comes
from a browser that `nacre open` opened."""
_OWNERS = "Only for the owner: it needs the cookie that `nacre open` sets, the token does not do."

_Schema = dict[str, Any]


@cache
def document(cookie: str) -> bytes:
    """The document, in JSON; ``cookie`` is the name of the owner's."""
    types = [one.request for one in _offered().values()] + [
        one.result for one in _offered().values()
    ]
    schemas, components = msgspec.json.schema_components(
        types, schema_hook=json_values.schema_hook, ref_template=_REFERENCES
    )
    components[Flag.__name__] = _FLAGS
    _correct(components)
    requests = dict(zip(_offered(), schemas, strict=False))
    results = dict(zip(_offered(), schemas[len(requests) :], strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in RESOURCES:
        path = _IN_PATH.sub(r"{\1}", PREFIX + one.path)
        paths.setdefault(path, {})[one.method.lower()] = _resource(
            one, requests, results, components
        )
    for name, operation in _offered().items():
        paths.setdefault(f"{PREFIX}/{name}", {})["post"] = _posted(
            operation, requests[name], results[name]
        )
    return msgspec.json.encode(_whole(cookie, paths, components))


def summary_of(operation: Operation) -> str:
    """What an operation does, in a sentence or two."""
    told = (
        (getdoc(operation.function) or "")
        .partition("\n\n")[0]
        .replace("\n", " ")
        .partition(" Raises ")[0]
    )
    return _ROLE.sub(r"`\1`", told).removesuffix(".")


def _correct(schema: Any) -> None:
    """Durations may have a fraction of a second, which JSON Schema's format of that name does not know."""
    if isinstance(schema, dict) and schema.get("format") == "duration":
        del schema["format"]
        schema["description"] = "A duration in seconds, by ISO 8601: PT12.5S"
    for one in (
        schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    ):
        _correct(one)


def help_of(schema: _Schema) -> str:
    """What a schema says of itself, or one of those of which it may be any."""
    return str(
        next(
            (
                one["description"]
                for one in (schema, *schema.get("anyOf", ()))
                if one.get("description")
            ),
            "",
        )
    )


@cache
def _offered() -> Mapping[str, Operation]:
    return offered_by(Face.HTTP)


def _whole(cookie: str, paths: Mapping[str, Any], components: Mapping[str, Any]) -> _Schema:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nacre",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"cookie": []}],
        "tags": [{"name": "resources"}, {"name": "operations"}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM_SCHEMA},
            "responses": _RESPONSES,
            "parameters": _PARAMETERS,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The home's file http.token.",
                },
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": cookie,
                    "description": "Set by nacre open. Whatever changes something sends the browser's key beside "
                    "it, as X-Nacre.",
                },
            },
        },
    }


_FLAGS: _Schema = {
    "type": "integer",
    "minimum": 0,
    "title": Flag.__name__,
    "description": "What a turn is besides plain talk, added up: "
    + ", ".join(f"{one.value} {(one.name or '').lower()}" for one in Flag)
    + ".",
}
_PROBLEM_SCHEMA: _Schema = {
    "type": "object",
    "description": "What is wrong, and what to do (RFC 9457).",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "The kind of error, for programs."},
        "hint": {"type": ["string", "null"], "description": "What to do."},
    },
    "required": ["type", "title", "status", "detail", "code", "hint"],
}
_FAILURES = {
    "400": "What was asked makes no sense as it stands.",
    "401": "Neither the token nor the cookie was shown.",
    "403": "This is the owner's alone, or a page of another origin asks.",
    "404": "Nothing has that id or name.",
    "409": "Two writers disagree.",
    "412": "It changed since it was read: nothing was overwritten.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "421": "The server is not called that.",
    "422": "It holds what looks like a secret.",
    "429": "Too many requests; Retry-After says when to come again.",
    "502": "A language model or the remote refuses, or answers what it was not asked.",
    "503": "It cannot be done now; Retry-After says when to try again.",
}
_RESPONSES: _Schema = {
    f"Problem{status}": {
        "description": told,
        "content": {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, told in _FAILURES.items()
}
_PARAMETERS: _Schema = {
    "IfMatch": {
        "name": "If-Match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "The entity tag that was read: where the thing is another by now, nothing is overwritten (412).",
    },
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "An entity tag: 304 where the answer has it still.",
    },
    "Cursor": {
        "name": "cursor",
        "in": "query",
        "schema": {"type": "string"},
        "description": "Where the list goes on, from the address that Link: rel=next names.",
    },
}


def _posted(operation: Operation, request: _Schema, result: _Schema) -> _Schema:
    described: _Schema = {
        "operationId": operation.name,
        "tags": ["operations"],
        "summary": summary_of(operation),
        "description": " ".join(_notes(operation)),
        "responses": _answers(result),
    }
    if operation.request is not Nothing:
        described["requestBody"] = {"content": {_JSON: {"schema": request}}, "required": True}
    if operation.owners is True:
        described["security"] = [{"cookie": []}]
    return described


def _notes(operation: Operation) -> Iterator[str]:
    if operation.takes_long:
        yield "It may take minutes."
    if operation.owners is True:
        yield _OWNERS
    elif operation.owners:
        yield f"With {', '.join(operation.owners)} only for the owner, by the cookie."


def _answers(result: _Schema, rows: _Schema | None = None) -> _Schema:
    content: _Schema = {_JSON: {"schema": result}}
    if rows is not None:
        content[_NDJSON] = {"schema": rows}
    statuses = [one for one in _FAILURES if one != "412"]
    failures: _Schema = {one: {"$ref": f"#/components/responses/Problem{one}"} for one in statuses}
    return {"200": {"description": "The result.", "content": content}, **failures}


def _resource(
    one: Resource,
    requests: Mapping[str, _Schema],
    results: Mapping[str, _Schema],
    components: _Schema,
) -> _Schema:
    operation = CATALOGUE[one.operation]
    answers = _answers(results[one.operation], {} if one.rows is not None else None)
    name = one.method.lower() + _NO_WORD.sub("-", one.path.replace(":path", "")).rstrip("-")
    described: _Schema = {
        "operationId": name,
        "tags": ["resources"],
        "summary": summary_of(operation),
        "description": " ".join(_notes(operation)),
        "responses": answers,
        "parameters": list(_parameters(one, requests[one.operation], components)),
    }
    if one.creates:
        answers["201"] = {
            **answers["200"],
            "description": "It was stored; Location says where it is.",
        }
    if one.reads:
        answers["304"] = {"description": "It has the entity tag still."}
    elif one.method != "DELETE":
        described["requestBody"] = {
            "content": {_JSON: {"schema": _body(one, requests[one.operation], components)}},
            "required": True,
        }
    if not one.reads:
        answers["412"] = {"$ref": "#/components/responses/Problem412"}
    if operation.owners is True:
        described["security"] = [{"cookie": []}]
    return described


def _parameters(one: Resource, request: _Schema, components: _Schema) -> Iterator[_Schema]:
    """Those of the path, those of the query, and headers."""
    in_path = _IN_PATH.findall(one.path)
    for name in in_path:
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
        }
    if one.reads or one.method == "DELETE":
        yield from _queried(
            one, {one.names.get(name, name) for name in in_path}, request, components
        )
    if one.reads:
        yield {"$ref": "#/components/parameters/IfNoneMatch"}
        if has_pages(one):
            yield {"$ref": "#/components/parameters/Cursor"}
        return
    if expects(CATALOGUE[one.operation]):
        yield {"$ref": "#/components/parameters/IfMatch"}


def _queried(
    one: Resource, besides: set[str], request: _Schema, components: _Schema
) -> Iterator[_Schema]:
    shown = {field: name for name, field in one.names.items()}
    for name, known in parameters_of(CATALOGUE[one.operation].request).items():
        if name in besides:
            continue
        schema = request
        for step in known.place:
            schema = _followed(schema, components)["properties"][step]
        described = {
            key: value for key, value in schema.items() if key not in ("description", "default")
        }
        default = one.given.get(name, schema.get("default"))
        if default is not None:
            described["default"] = default
        yield {
            "name": shown.get(name, name),
            "in": "query",
            "required": known.required,
            "description": help_of(schema),
            "schema": described,
        }


def _followed(schema: _Schema, components: _Schema) -> _Schema:
    some = [schema, *schema.get("anyOf", ())]
    name = next((one["$ref"].rpartition("/")[2] for one in some if "$ref" in one), None)
    found: _Schema = components[name] if name else schema
    return found


def _body(one: Resource, request: _Schema, components: _Schema) -> _Schema:
    """The request without what the path says."""
    whole = _followed(request, components)
    besides = {one.names.get(name, name) for name in _IN_PATH.findall(one.path)}
    if not besides:
        return request
    left = {name: schema for name, schema in whole["properties"].items() if name not in besides}
    return {
        **whole,
        "properties": left,
        "required": [name for name in whole["required"] if name not in besides],
    }


# ----------------------------------------------------------------------------
# ``/api/docs``: all routes on a page of nacre's own, without a script and without anything from a
# network.


_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 0.875rem/1.5 ui-monospace, monospace; }
pre { padding: 0.75rem; overflow-x: auto; background: color-mix(in srgb, CanvasText 7%, Canvas); border-radius: 6px; }
details { border-bottom: 1px solid color-mix(in srgb, CanvasText 18%, Canvas); }
summary { padding: 0.5rem 0; cursor: pointer; }
details > :not(summary) { margin-inline: 1rem; }
table { border-collapse: collapse; width: 100%; margin-block: 0.75rem; }
th, td { text-align: start; vertical-align: top; padding: 0.25rem 1rem 0.25rem 0; }
th { font-weight: 600; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 600; }
.quiet { color: color-mix(in srgb, CanvasText 70%, Canvas); }
"""
_CODE = re.compile("`([^`]+)`")
_BOUNDS = {
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "to",
    "maxLength": "at most",
    "minItems": "least",
}
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>nacre: the API</title><link rel="stylesheet" href="/api/docs.css"></head><body>
<h1>nacre: the API</h1>
"""


def api_routes() -> list[Route]:
    """The document, and the page that is made from it."""
    return [
        Route("/api/openapi.json", _answer(document, "application/json")),
        Route("/api/docs", _answer(page, "text/html")),
        Route("/api/docs.css", _answer(lambda _: _STYLE.encode(), "text/css")),
    ]


@cache
def page(cookie: str) -> bytes:
    """The page; ``cookie`` is the name of the owner's."""
    known = msgspec.json.decode(document(cookie))
    about = "".join(f"<p>{_text(one)}</p>" for one in known["info"]["description"].split("\n\n"))
    parts = [_HEAD, about, '<p>As a document: <a href="/api/openapi.json">OpenAPI 3.1</a>.</p>']
    for tag, heading in (("resources", "Resources"), ("operations", "Operations")):
        parts.append(f"<h2>{heading}</h2>")
        parts += [
            _route(path, method, one, known["components"])
            for path, methods in known["paths"].items()
            for method, one in methods.items()
            if tag in one["tags"]
        ]
    return "\n".join([*parts, "</body></html>"]).encode()


def _answer(make: Callable[[str], bytes], kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(make(served_by(request).browsers.cookie), media_type=kind)

    return answer


def _route(path: str, method: str, one: dict[str, Any], components: dict[str, Any]) -> str:
    fields = _fields_page(one, components)
    rows = "".join(
        f"<tr><td><code>{_text(name)}</code></td><td>{_text(kind)}</td><td>{_text(told)}</td></tr>"
        for name, kind, told in fields
    )
    table = (
        f"<table><tr><th>Field</th><th>Type</th><th>Meaning</th></tr>{rows}</table>" if rows else ""
    )
    return (
        f'<details><summary><span class="method">{method.upper()}</span> <code>{_text(path)}</code> '
        f'<span class="quiet">{_text(one["summary"])}</span></summary>'
        f"<p>{_text(one['description'])}</p>{table}"
        f"<pre>{_text(_example(path, method, one, components))}</pre></details>"
    )


def _fields_page(one: dict[str, Any], components: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Of the parameters and the body: each with its type and its help."""
    found = [
        (
            known["name"],
            _kind(known["schema"], components, needed=known["required"]),
            known.get("description", ""),
        )
        for known in one.get("parameters", ())
        if known.get("in") in ("path", "query")
    ]
    body = _body_page(one, components)
    for name, schema in body.get("properties", {}).items():
        kind = _kind(schema, components, needed=name in body["required"])
        found.append((name, kind, help_of(schema)))
    return found


def _body_page(one: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    schema = (
        one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    )
    return _followed_page(schema, components)


def _followed_page(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = components["schemas"][name] if name else schema
    return found


def _kind(schema: dict[str, Any], components: dict[str, Any], *, needed: bool) -> str:
    options = [one for one in schema.get("anyOf", [schema]) if one != {"type": "null"}]
    told = " or ".join(dict.fromkeys(_one_kind(one, components) for one in options))
    default = schema.get("default")
    if needed:
        return f"{told}, required"
    return f"{told}, default {json.dumps(default)}" if default not in (None, [], "", {}) else told


def _one_kind(schema: dict[str, Any], components: dict[str, Any]) -> str:
    schema = _followed_page(schema, components)
    if "enum" in schema:
        return ", ".join(str(one) for one in schema["enum"])
    if schema.get("type") == "array":
        items = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
        return f"list of {_one_kind(items, components)}" if items else "list"
    if schema.get("type") == "object" and schema.get("properties"):
        return "{" + ", ".join(schema["properties"]) + "}"
    bounds = [f"{word} {schema[name]:,}" for name, word in _BOUNDS.items() if name in schema]
    return " ".join([str(schema.get("format") or schema.get("type", "any value")), *bounds])


def _example(path: str, method: str, one: dict[str, Any], components: dict[str, Any]) -> str:
    """A call from a shell, with what has to be there."""
    address = f"http://127.0.0.1:7077{path}"
    needed = [
        known["name"]
        for known in one.get("parameters", ())
        if known.get("in") == "query" and known["required"]
    ]
    if needed:
        address += "?" + "&".join(f"{name}=…" for name in needed)
    lines = ['curl -H "Authorization: Bearer $(cat ~/.nacre/http.token)"']
    if method != "get":
        lines[0] += f" -X {method.upper()}"
    if "requestBody" in one:
        body = dict.fromkeys(_body_page(one, components).get("required", ()), "…")
        lines += [
            "  -H 'Content-Type: application/json'",
            f"  -d '{json.dumps(body, ensure_ascii=False)}'",
        ]
    return " \\\n".join([*lines, f"  '{address}'"])


def _text(text: str) -> str:
    """A text as HTML; what stands between backquotes is code."""
    return _CODE.sub(r"<code>\1</code>", html.escape(text))


# ----------------------------------------------------------------------------
# How resources are answered: entity tags, pages with a cursor, and lists as one record a line.


NDJSON = "application/x-ndjson"
_JSON_ROUTES = "application/json"
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
    return [
        Route(path, _Endpoint(methods), methods=list(methods)) for path, methods in found.items()
    ]


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
        return json_values.encode(
            converted(self.operation, {**self.resource.given, **self.fields, **further})
        )

    def number(self, name: str) -> int:
        """A whole number of the request, as it is given or by default. Raises InvalidInput."""
        found = getattr(
            converted(self.operation, {**self.resource.given, **self.fields}), name, None
        )
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
        return Response(
            b"".join(bytes(one) + b"\n" for one in _rows(resource, result)), 200, headers, NDJSON
        )
    tag = entity_tag(result)
    if _is_named(tag, request.headers.get("if-none-match")):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(result, 200, headers | {"ETag": tag}, _JSON_ROUTES)


async def _place(asked: _Asked, request: Request, cursor: Cursor) -> int:
    """How many items come up to the one with which the page before ended: what was stored or deleted since moved it.

    It is looked for where it was, then near by; what is gone, or ranked for a question, has the place that it had.
    """
    if asked.operation.name == "recall" or not cursor.last:
        return cursor.skip
    near = max(0, cursor.skip - 1 - _NEAR)
    for start, limit in ((cursor.skip - 1, 1), (near, 2 * _NEAR)):
        rows = await _page(asked, request, {asked.resource.offset: start, "limit": limit})
        names = [name_of(row) for row in rows]
        if cursor.last in names:
            return start + names.index(cursor.last) + 1
    return cursor.skip


def _asked(resource: Resource, request: Request) -> tuple[_Asked, Cursor | None]:
    """What is asked for, and where it goes on. Raises InvalidInput."""
    query = list(request.query_params.multi_items())
    cursor = next((text for name, text in query if name == "cursor"), None)
    if cursor is not None and not has_pages(resource):
        raise InvalidInput(f"{request.url.path} has no pages", hint="leave cursor out")
    texts = [
        *request.path_params.items(),
        *((name, text) for name, text in query if name != "cursor"),
    ]
    asked = _Asked(resource, request_of(CATALOGUE[resource.operation], texts, resource.names, {}))
    return asked, read(cursor, _mark(asked)) if cursor else None


def _mark(asked: _Asked) -> str:
    """What a cursor belongs to: all that is asked for but how many at once."""
    return mark(asked.resource.path, {**asked.fields, "limit": None})


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
    query = [
        one
        for one in request.query_params.multi_items()
        if one[0] not in ("cursor", asked.resource.offset)
    ]
    cursor = Cursor(skipped + found, _mark(_without_offset(asked)), name_of(rows[-1]))
    return {
        "Link": f'<{quote(request.url.path)}?{urlencode([*query, ("cursor", write(cursor))])}>; rel="next"'
    }


def _without_offset(asked: _Asked) -> _Asked:
    return replace(
        asked,
        fields={name: one for name, one in asked.fields.items() if name != asked.resource.offset},
    )


def _is_last(result: bytes, seen: int) -> bool:
    """Whether the result itself says that nothing follows."""
    told = json_values.parse_json_values(result, _Told) if result.startswith(b"{") else _Told()
    return told.more is False or (told.total is not None and seen >= told.total)


class _Told(msgspec.Struct):
    """What results say of how much there is."""

    more: bool | None = None
    total: int | None = None


def _rows(resource: Resource, result: bytes) -> list[msgspec.Raw]:
    assert resource.rows is not None  # noqa: S101 - only lists have rows
    whole = msgspec.Raw(result)
    listed = (
        json_values.parse_json_values(result, dict[str, msgspec.Raw]).get(resource.rows, _EMPTY)
        if resource.rows
        else whole
    )
    return json_values.parse_json_values(listed, list[msgspec.Raw])


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
    return _rows(
        asked.resource, await answer_of(request, asked.resource.operation, asked.encoded(**further))
    )


async def _write(resource: Resource, request: Request) -> Response:
    operation = CATALOGUE[resource.operation]
    fields = {**resource.given, **_object(await json_body(request))}
    query = request.query_params.multi_items() if resource.method == "DELETE" else []
    fields = request_of(operation, [*request.path_params.items(), *query], resource.names, fields)
    expected = request.headers.get("if-match")
    if expected and expected.strip() != "*":
        if not expects(operation):
            raise InvalidInput(
                f"{resource.method} {request.url.path} knows no If-Match", hint="leave it out"
            )
        fields[EXPECTED] = _expected(expected)
    try:
        result = await answer_of(
            request, resource.operation, json_values.encode(operation.make(fields))
        )
    except EditConflict as error:
        if EXPECTED not in fields:
            raise
        return problem_response(412, error.code, error.message, error.hint)
    if not resource.creates:
        return Response(
            result, 200, {"ETag": entity_tag(result)} if _own_tag(result) else None, _JSON_ROUTES
        )
    made = json_values.parse_json_values(result, _Made)
    place = {"Location": f"{PREFIX}{resource.path}/{made.memory_id}"}
    return Response(result, 201 if made.action == "stored" else 200, place, _JSON_ROUTES)


class _Made(msgspec.Struct):
    action: str
    memory_id: str


def _object(body: bytes) -> dict[str, Any]:
    try:
        return json_values.parse_json_values(body, dict[str, Any])
    except (
        msgspec.DecodeError,
        msgspec.ValidationError,
        RecursionError,
        UnicodeDecodeError,
    ) as error:
        raise InvalidInput(
            f"the body is no JSON object: {error}", hint="docs/rest.md shows some"
        ) from error


def entity_tag(result: bytes) -> str:
    """The entity tag of a result: of its bytes, and before them, if there is one, that of the file it tells of."""
    own = _own_tag(result)
    whole = hashlib.blake2b(result, digest_size=_TAG_BYTES).hexdigest()
    return f'"{own}.{whole}"' if own else f'"{whole}"'


def _own_tag(result: bytes) -> str | None:
    return json_values.parse_json_values(result, _Tagged).etag if result.startswith(b"{") else None


def _expected(tag: str) -> str:
    """What an ``If-Match`` says of the file."""
    return tag.strip().removeprefix("W/").strip('"').partition(".")[0]


class _Tagged(msgspec.Struct):
    etag: str | None = None


def _is_named(tag: str, header: str | None) -> bool:
    """Whether an ``If-None-Match`` names a tag (RFC 9110 13.1.2: weakly compared)."""
    named = [one.strip().removeprefix("W/") for one in (header or "").split(",")]
    return tag in named or named == ["*"]
