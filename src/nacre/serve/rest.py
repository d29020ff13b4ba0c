"""The REST API: resources with paging and entity tags, and the OpenAPI document."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from inspect import getdoc
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import inspect
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nacre import __version__
from nacre.base import json as json_values
from nacre.base import plugins
from nacre.base import request as base_request
from nacre.base.frozen import frozen
from nacre.base.ids import utc_now
from nacre.base.times import parse_moment
from nacre.errors import InvalidInputError
from nacre.operations import Operation
from nacre.serve.catalogue import CATALOGUE, find_operation, offered_by
from nacre.serve.web import answer_of, served_by
from nacre.values.codec import stamp
from nacre.values.memory import Face
from nacre.values.session import Flag

# -- Table of resources ----------------------------------------------------------------------------


PREFIX = "/api/v1"
_REFERENCE = "/{reference:path}"


@frozen
class Resource:
    """A path below ``PREFIX``, at which an operation answers ``GET`` requests.

    ``names``: parameters named differently from the request's field. ``preset``: fields with fixed
    values. ``rows``: the result's field with the list, or "" if the result is the list. ``offset``:
    the request's field with the number of items to skip.
    """

    path: str
    operation: str
    rows: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)
    offset: str = "offset"


_UNUSED = {"update": False}
_MEMORIES = "/memories"
_MEMORY = _MEMORIES + _REFERENCE

_RESOURCES = (
    Resource(_MEMORIES, "list", "memories"),
    Resource(f"{_MEMORIES}/retired", "retired", ""),
    Resource(f"{_MEMORY}/history", "history", ""),
    Resource(f"{_MEMORY}/links", "graph-list", "links"),
    Resource(f"{_MEMORY}/graph", "graph-show"),
    Resource(_MEMORY, "look", preset=_UNUSED),
    Resource("/search", "recall", "hits", {"q": "text"}, _UNUSED),
    Resource("/sessions/search", "search-sessions", "turns", {"q": "text"}, _UNUSED),
    Resource("/sessions/match", "match-sessions", "turns", {"q": "expression"}),
    Resource("/chats/search", "search-chats", "passages", {"q": "query"}),
    Resource("/sessions", "sessions", "lines"),
    Resource(f"/sessions{_REFERENCE}/summary", "session-summary"),
    Resource(f"/sessions{_REFERENCE}", "session", "turns", offset="first"),
    Resource("/files/history", "did", "changes"),
    Resource("/fixes", "fix", "troubles", {"q": "error"}),
    Resource("/projects", "project-list", ""),
    Resource("/projects/{project}/page", "page-own", preset={"name": "project"}),
    Resource("/projects/{project}", "project-show"),
    Resource("/pages/{name}", "page-own"),
    Resource("/graph", "graph-list", "links"),
    Resource("/graph/map", "graph-map"),
    Resource("/graph/central", "graph-central", "found"),
    Resource("/graph/gaps", "graph-gaps", "found"),
    Resource("/graph/brief", "graph-brief"),
    Resource("/review", "review", "items"),
    Resource("/unanswered", "unanswered", "questions"),
    Resource("/log", "log", ""),
    Resource(f"/log{_REFERENCE}", "diff"),
    Resource("/traces", "traces", ""),
    Resource(f"/traces{_REFERENCE}", "trace"),
    Resource("/today", "today"),
    Resource("/activity", "activity"),
    Resource("/beliefs", "beliefs", "beliefs"),
    Resource("/cost", "cost"),
    Resource("/overview", "overview"),
    Resource("/context", "context"),
    Resource("/settings", "config", ""),
    Resource("/settings/{key}", "config-get"),
    Resource("/forgotten", "forgotten", ""),
    Resource("/archive", "archive-status"),
)
"""Resources in matching order, with more specific paths first."""


@cache
def resources() -> tuple[Resource, ...]:
    """Return all resources, including those of plugins, which cannot replace nacre's."""
    groups = plugins.load_usable_plugins(plugins.RESOURCES, Resource).values()
    paths = {resource.path for resource in _RESOURCES}
    return (
        *_RESOURCES,
        *(
            resource
            for group in groups
            for resource in group
            if resource.path not in paths and find_operation(resource.operation, Face.HTTP)
        ),
    )


# -- Parameters ------------------------------------------------------------------------------------


_LISTS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
_OBJECTS = (inspect.StructType, inspect.DataclassType)
_MAPPINGS = (inspect.DictType, *_OBJECTS)


@frozen
class Parameter:
    """A field of a request that can be set in a URL's query.

    ``place``: the field's path in the request. ``many``: whether it can be repeated. ``is_moment``:
    whether it is a time such as 2026-11-20, 3d or yesterday.
    """

    place: tuple[str, ...]
    many: bool
    required: bool = False
    is_moment: bool = False


@cache
def parameters_of(request: Any) -> Mapping[str, Parameter]:
    """Return the parameters of a request and its filter, by name. Fields with objects are left out."""
    fields = _fields(inspect.type_info(request))
    parameters = {}
    for outer in fields:
        kind = _bare(outer.type)
        if not _holds_objects(kind):
            parameters[outer.name] = _parameter(kind, outer.name, required=outer.required)
    for outer in fields:
        for inner in _fields(_bare(outer.type)):
            kind = _bare(inner.type)
            if not _holds_objects(kind):
                parameters.setdefault(inner.name, _parameter(kind, outer.name, inner.name))
    return parameters


def _parameter(kind: inspect.Type, *place: str, required: bool = False) -> Parameter:
    return Parameter(
        place, isinstance(kind, _LISTS), required, isinstance(kind, inspect.DateTimeType)
    )


def find_parameter(request: Any, name: str) -> Parameter | None:
    """Return a parameter by name or, for a list, its singular, such as ``kind`` for ``kinds``."""
    parameters = parameters_of(request)
    if name in parameters:
        return parameters[name]
    plural = parameters.get(f"{name}s")
    return plural if plural and plural.many else None


def has_pages(resource: Resource) -> bool:
    """Return True if a resource is a list with several pages."""
    return resource.rows is not None and resource.offset in parameters_of(
        CATALOGUE[resource.operation].request
    )


def request_of(resource: Resource, texts: Iterable[tuple[str, str]]) -> _Schema:
    """Convert the parameters in a URL to the fields of a request. Raises InvalidInputError for an
    unknown or wrongly repeated one.
    """
    operation = CATALOGUE[resource.operation]
    fields: _Schema = {**resource.preset}
    for name, text in texts:
        parameter = find_parameter(operation.request, resource.names.get(name, name))
        if parameter is None:
            accepted = ", ".join(sorted(parameters_of(operation.request))) or "it has none"
            raise InvalidInputError(
                f"{operation.name} has no parameter {name!r}", hint=f"parameters: {accepted}"
            )
        *outer, last = parameter.place
        inside = fields
        for step in outer:
            inside = inside.setdefault(step, {})
        if parameter.many:
            inside.setdefault(last, []).append(text)
        elif isinstance(inside.get(last), str):
            raise InvalidInputError(f"the parameter {last!r} takes a single value")
        else:
            inside[last] = stamp(parse_moment(text, utc_now())) if parameter.is_moment else text
    return fields


def _fields(kind: inspect.Type) -> tuple[inspect.Field, ...]:
    return kind.fields if isinstance(kind, _OBJECTS) else ()


def _bare(kind: inspect.Type) -> inspect.Type:
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        members = [member for member in kind.types if not isinstance(member, inspect.NoneType)]
        return _bare(members[0]) if len(members) == 1 else kind
    return kind


def _holds_objects(kind: inspect.Type) -> bool:
    if isinstance(kind, _LISTS):
        return isinstance(_bare(kind.item_type), _MAPPINGS)
    return isinstance(kind, _MAPPINGS)


# -- OpenAPI 3.1 document --------------------------------------------------------------------------
# The document is generated from the catalogue and the types of requests and results.


_JSON, _PROBLEM = "application/json", "application/problem+json"
_ROLE = re.compile(r":\w+:`(?:~?[\w.]+\.)?(\w+)(?: <[^>]*>)?`")
_NOT_WORD = re.compile(r"\W+")
_IN_PATH = re.compile(r"\{(\w+)(?::path)?\}")

_ABOUT = """Access to nacre's memory over HTTP. Every operation is `POST /api/v1/<operation>` with its
request as JSON; the common ones that only read are also resources. A request needs the token in the home's file
`http.token`, or the cookie of a browser that `nacre open` opened."""
_OWNERS = (
    "Only for the owner: it needs the cookie that `nacre open` sets; the token is not sufficient."
)

_Schema = dict[str, Any]


@cache
def document(cookie: str) -> bytes:
    """Return the OpenAPI document as JSON. ``cookie`` is the name of the owner's cookie."""
    offered = offered_by(Face.HTTP)
    types = [kind for item in offered.values() for kind in (item.request, item.result)]
    schemas, components = msgspec.json.schema_components(
        types, schema_hook=json_values.schema_hook, ref_template="#/components/schemas/{name}"
    )
    components[Flag.__name__] = _FLAGS
    _correct(components)
    requests = dict(zip(offered, schemas[::2], strict=True))
    results = dict(zip(offered, schemas[1::2], strict=True))
    paths = {}
    for resource in resources():
        path, name = _IN_PATH.sub(r"{\1}", resource.path), resource.operation
        answers = _answers(results[name])
        answers["304"] = {"description": "Unchanged since the entity tag."}
        operation_id = "get" + _NOT_WORD.sub("-", path).rstrip("-")
        described = _described(CATALOGUE[name], operation_id, "resources", answers, None)
        described["parameters"] = list(_parameters(resource, requests[name], components))
        paths[PREFIX + path] = {"get": described}
    for name, operation in offered.items():
        body = None if operation.request is base_request.Request else requests[name]
        paths.setdefault(f"{PREFIX}/{name}", {})["post"] = _described(
            operation, name, "operations", _answers(results[name]), body
        )
    openapi = {
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
                    "description": "Set by nacre open. Requests that change something also send "
                    "the browser's key in X-Nacre.",
                },
            },
        },
    }
    return msgspec.json.encode(openapi)


def summary_of(operation: Operation) -> str:
    """Return the first paragraph of an operation's docstring, without the errors."""
    summary = (
        (getdoc(operation.function) or "")
        .partition("\n\n")[0]
        .replace("\n", " ")
        .partition(" Raises ")[0]
    )
    return _ROLE.sub(r"`\1`", summary).removesuffix(".")


def _correct(schema: Any) -> None:
    """Remove the format ``duration``, which does not allow fractional seconds."""
    if isinstance(schema, dict) and schema.get("format") == "duration":
        del schema["format"]
        schema["description"] = "A duration in seconds, by ISO 8601: PT12.5S"
    if isinstance(schema, dict | list):
        for value in schema.values() if isinstance(schema, dict) else schema:
            _correct(value)


def help_of(schema: _Schema) -> str:
    """Return the first description in a schema or its alternatives."""
    options = (schema, *schema.get("anyOf", ()))
    return next((words for option in options if (words := option.get("description"))), "")


_FLAGS: _Schema = {
    "type": "integer",
    "minimum": 0,
    "title": Flag.__name__,
    "description": "Sum of the flags of a turn: "
    + ", ".join(f"{flag.value} {(flag.name or '').lower()}" for flag in Flag)
    + ".",
}
_PROBLEM_SCHEMA: _Schema = {
    "type": "object",
    "description": "An error with a remedy (RFC 9457).",
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
_RESPONSES: _Schema = {
    "Problem": {
        "description": "An error. docs/rest.md lists the status codes.",
        "content": {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
_PARAMETERS: _Schema = {
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "An entity tag; the response is 304 if it is still current.",
    }
}


def _described(
    operation: Operation, operation_id: str, tag: str, answers: _Schema, body: _Schema | None
) -> _Schema:
    notes = ["It may take minutes."] if operation.takes_long else []
    if operation.owners is True:
        notes.append(_OWNERS)
    elif operation.owners:
        notes.append(f"With {', '.join(operation.owners)}, only for the owner (cookie).")
    described: _Schema = {
        "operationId": operation_id,
        "tags": [tag],
        "summary": summary_of(operation),
        "description": " ".join(notes),
        "responses": answers,
    }
    if body is not None:
        described["requestBody"] = {"content": {_JSON: {"schema": body}}, "required": True}
    if operation.owners is True:
        described["security"] = [{"cookie": []}]
    return described


def _answers(result: _Schema) -> _Schema:
    content = {_JSON: {"schema": result}}
    failure = {"$ref": "#/components/responses/Problem"}
    return {"200": {"description": "The result.", "content": content}, "default": failure}


def _parameters(resource: Resource, request: _Schema, components: _Schema) -> Iterator[_Schema]:
    in_path = _IN_PATH.findall(resource.path)
    for name in in_path:
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
        }
    path_fields = {resource.names.get(name, name) for name in in_path}
    query_names = {field: name for name, field in resource.names.items()}
    for name, parameter in parameters_of(CATALOGUE[resource.operation].request).items():
        if name in path_fields:
            continue
        schema = request
        for step in parameter.place:
            for option in (schema, *schema.get("anyOf", ())):
                if "$ref" in option:
                    schema = components[option["$ref"].rpartition("/")[2]]
            schema = schema["properties"][step]
        described = {
            key: value for key, value in schema.items() if key not in ("description", "default")
        }
        default = resource.preset.get(name, schema.get("default"))
        if default is not None:
            described["default"] = default
        yield {
            "name": query_names.get(name, name),
            "in": "query",
            "required": parameter.required,
            "description": help_of(schema),
            "schema": described,
        }
    yield {"$ref": "#/components/parameters/IfNoneMatch"}


async def get_document(request: Request) -> Response:
    """``GET /api/openapi.json``."""
    return Response(document(served_by(request).browsers.cookie), media_type=_JSON)


# -- Resources -------------------------------------------------------------------------------------
# Responses have entity tags, and links to the next page.


def resource_routes() -> list[Route]:
    """Return the routes of all resources in matching order."""
    return [Route(resource.path, partial(_read, resource)) for resource in resources()]


async def _read(resource: Resource, request: Request) -> Response:
    texts = [*request.path_params.items(), *request.query_params.multi_items()]
    fields = request_of(resource, texts)
    call = CATALOGUE[resource.operation].make(fields, strict=False)
    result = await answer_of(request, resource.operation, json_values.encode(call))
    headers = {"ETag": f'"{hashlib.blake2b(result, digest_size=12).hexdigest()}"'}
    known = request.headers.get("if-none-match", "").split(",")  # weak comparison (RFC 9110 13.1.2)
    if {headers["ETag"], "*"} & {tag.strip().removeprefix("W/") for tag in known}:
        return Response(status_code=304, headers=headers)
    if has_pages(resource) and not {"at_end", "around"} & fields.keys():
        headers |= _next_page(resource, call, request, result)
    return Response(result, 200, headers, _JSON)


class _Size(msgspec.Struct):
    more: bool | None = None
    total: int | None = None


def _next_page(resource: Resource, call: Any, request: Request, result: bytes) -> dict[str, str]:
    size, rows = _Size(), msgspec.Raw(result)
    if resource.rows:
        size = json_values.decode(result, _Size)
        rows = json_values.decode(result, dict[str, msgspec.Raw]).get(
            resource.rows, msgspec.Raw(b"[]")
        )
    count = len(json_values.decode(rows, list[msgspec.Raw]))
    end = (getattr(call, resource.offset) or 0) + count
    is_last = size.more is False or (size.total is not None and end >= size.total)
    if not count or count < (getattr(call, "limit", None) or 0) or is_last:
        return {}
    query = [pair for pair in request.query_params.multi_items() if pair[0] != resource.offset]
    address = f"{quote(request.url.path)}?{urlencode([*query, (resource.offset, end)])}"
    return {"Link": f'<{address}>; rel="next"'}
