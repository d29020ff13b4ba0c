"""The REST API: resources with paging and entity tags, and the OpenAPI document."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from inspect import getdoc
from typing import TYPE_CHECKING, Any
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
from nacre.base.plain import Values
from nacre.base.times import parse_moment
from nacre.errors import EditConflictError, InvalidInputError
from nacre.operations import Operation
from nacre.serve.catalogue import CATALOGUE, find_operation, offered_by
from nacre.serve.web import answer_of, json_body, problem_response, served_by
from nacre.values.codec import stamp
from nacre.values.memory import Face
from nacre.values.session import Flag

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

# -- Table of resources ----------------------------------------------------------------------------


PREFIX = "/api/v1"
_REFERENCE = "/{reference:path}"


@frozen
class Resource:
    """A route (method and path below ``PREFIX``) and the operation that it runs.

    Parameters in the path and query set fields of the operation's request or its filter. ``names``:
    mapping from parameters to fields with a different name. ``given``: preset fields. ``rows``:
    name of the result's field with the list, or empty if the result is the list. ``offset``: name
    of the request's field for the number of skipped items.
    """

    method: str
    path: str
    operation: str
    names: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    rows: str | None = None
    offset: str = "offset"
    creates: bool = False

    @property
    def reads(self) -> bool:
        """True if the route changes nothing."""
        return self.method == "GET"


def _get(path: str, operation: str, rows: str | None = None, **names: str) -> Resource:
    return Resource("GET", path, operation, names, rows=rows)


_UNUSED = {"update": False}
_OF_PROJECT = {"name": "project"}
_MEMORIES = "/memories"
_MEMORY = _MEMORIES + _REFERENCE

_RESOURCES = (
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
)
"""Resources in the order of matching, with more specific paths first."""


@cache
def resources() -> tuple[Resource, ...]:
    """Return nacre's resources, followed by those of plugins, which cannot replace nacre's."""
    groups = plugins.load_usable_plugins(plugins.RESOURCES, Resource).values()
    routes = {(resource.method, resource.path) for resource in _RESOURCES}
    return (
        *_RESOURCES,
        *(
            resource
            for group in groups
            for resource in group
            if (resource.method, resource.path) not in routes
            and find_operation(resource.operation, Face.HTTP)
        ),
    )


# -- Parameters ------------------------------------------------------------------------------------


EXPECTED = "expected"
"""Request field for the entity tag of the version that the client has read."""

_LISTS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
_OBJECTS = (inspect.StructType, inspect.DataclassType)
_MAPPINGS = (inspect.DictType, *_OBJECTS)


@frozen
class Parameter:
    """A request field that can be set in a URL's query.

    ``place``: path of the field in the request. ``many``: True if the parameter can be repeated.
    ``is_moment``: True if the value is a time, such as 2026-11-20, 3d or yesterday.
    """

    place: tuple[str, ...]
    many: bool
    required: bool = False
    is_moment: bool = False


@cache
def parameters_of(request: Any) -> Mapping[str, Parameter]:
    """Return a mapping from names to the parameters for a request and its filter.

    Fields that contain objects have no parameter.
    """
    fields = _fields(inspect.type_info(request))
    parameters: dict[str, Parameter] = {}
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


def named(request: Any, name: str) -> Parameter | None:
    """Return a parameter by name. The name of a list can be singular: ``kind`` for ``kinds``."""
    parameters = parameters_of(request)
    if name in parameters:
        return parameters[name]
    plural = parameters.get(f"{name}s")
    return plural if plural and plural.many else None


def has_pages(resource: Resource) -> bool:
    """Return True if a resource is a list that is returned in pages."""
    return resource.rows is not None and resource.offset in parameters_of(
        CATALOGUE[resource.operation].request
    )


def expects(operation: Operation) -> bool:
    """Return True if an operation supports the header ``If-Match``."""
    return EXPECTED in parameters_of(operation.request)


def request_of(
    operation: Operation,
    texts: Iterable[tuple[str, str]],
    names: Mapping[str, str],
    fields: _Schema,
) -> _Schema:
    """Add parameters from a path and query to a request's fields.

    Raises InvalidInputError if a parameter is unknown, or if a parameter for a single value is
    repeated.
    """
    for name, text in texts:
        parameter = named(operation.request, names.get(name, name))
        if parameter is None:
            offered = ", ".join(sorted(parameters_of(operation.request))) or "it has none"
            raise InvalidInputError(
                f"{operation.name} has no parameter {name!r}", hint=f"parameters: {offered}"
            )
        *outer, last = parameter.place
        inside = fields
        for step in outer:
            inside = inside.setdefault(step, {})
        if parameter.many:
            inside.setdefault(last, []).append(text)
        elif isinstance(inside.get(last), str):
            raise InvalidInputError(f"{last} is set twice", hint="use it once")
        else:
            inside[last] = stamp(parse_moment(text, utc_now())) if parameter.is_moment else text
    return fields


def converted(operation: Operation, fields: Values) -> Any:
    """Build the request, converting strings to numbers and booleans. Raises InvalidInputError."""
    try:
        return json_values.from_plain(fields, operation.request, strict=False)
    except (msgspec.ValidationError, NotImplementedError) as error:
        raise InvalidInputError(
            f"{operation.name}: {error}", hint="/api/openapi.json lists the fields"
        ) from error


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


_REFERENCES = "#/components/schemas/{name}"
_JSON, _PROBLEM = "application/json", "application/problem+json"
_ROLE = re.compile(r":\w+:`(?:~?[\w.]+\.)?(\w+)(?: <[^>]*>)?`")
_NOT_WORD = re.compile(r"\W+")
_IN_PATH = re.compile(r"\{(\w+)(?::path)?\}")

_ABOUT = """Access to nacre's memory over HTTP. Every operation is `POST /api/v1/<operation>` with its
request as JSON; the common ones are also resources. A request needs the token in the home's file
`http.token`, or the cookie of a browser that `nacre open` opened."""
_OWNERS = (
    "Only for the owner: it needs the cookie that `nacre open` sets; the token is not sufficient."
)

_Schema = dict[str, Any]


@cache
def document(cookie: str) -> bytes:
    """Return the OpenAPI document as JSON. ``cookie`` is the name of the owner's cookie."""
    types = [resource.request for resource in _offered().values()] + [
        resource.result for resource in _offered().values()
    ]
    schemas, components = msgspec.json.schema_components(
        types, schema_hook=json_values.schema_hook, ref_template=_REFERENCES
    )
    components[Flag.__name__] = _FLAGS
    _correct(components)
    requests = dict(zip(_offered(), schemas, strict=False))
    results = dict(zip(_offered(), schemas[len(requests) :], strict=True))
    paths: dict[str, _Schema] = {}
    for resource in resources():
        path = _IN_PATH.sub(r"{\1}", PREFIX + resource.path)
        paths.setdefault(path, {})[resource.method.lower()] = _resource(
            resource, requests, results, components
        )
    for name, operation in _offered().items():
        body = None if operation.request is base_request.Request else requests[name]
        paths.setdefault(f"{PREFIX}/{name}", {})["post"] = _described(
            operation, name, "operations", _answers(results[name]), body
        )
    whole = {
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
    return msgspec.json.encode(whole)


def summary_of(operation: Operation) -> str:
    """Return an operation's summary from its docstring."""
    summary = (
        (getdoc(operation.function) or "")
        .partition("\n\n")[0]
        .replace("\n", " ")
        .partition(" Raises ")[0]
    )
    return _ROLE.sub(r"`\1`", summary).removesuffix(".")


def _correct(schema: Any) -> None:
    """Remove the format ``duration`` from a schema, because the format excludes fractional seconds."""
    if isinstance(schema, dict) and schema.get("format") == "duration":
        del schema["format"]
        schema["description"] = "A duration in seconds, by ISO 8601: PT12.5S"
    for value in (
        schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    ):
        _correct(value)


def help_of(schema: _Schema) -> str:
    """Return the first description found in a schema or in its alternatives."""
    return str(
        next(
            (
                option["description"]
                for option in (schema, *schema.get("anyOf", ()))
                if option.get("description")
            ),
            "",
        )
    )


@cache
def _offered() -> Mapping[str, Operation]:
    return offered_by(Face.HTTP)


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
_FAILURES = {
    "400": "The request is invalid.",
    "401": "There is no valid token or cookie.",
    "403": "Only the owner may do this, or the request comes from a page of another origin.",
    "404": "There is nothing with that id or name.",
    "409": "The request conflicts with another write.",
    "412": "It has changed since it was read; nothing was overwritten.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "421": "The request names another host.",
    "422": "It contains a possible secret.",
    "502": "A language model or remote server refused or gave an unusable answer.",
    "503": "Temporarily unavailable; see Retry-After.",
}
_RESPONSES: _Schema = {
    f"Problem{status}": {
        "description": description,
        "content": {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, description in _FAILURES.items()
}
_PARAMETERS: _Schema = {
    "IfMatch": {
        "name": "If-Match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "The entity tag of the version that was read; if it has changed, nothing "
        "is overwritten (412).",
    },
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "An entity tag; the response is 304 if it is still current.",
    },
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
    statuses = [status for status in _FAILURES if status != "412"]
    failures: _Schema = {
        status: {"$ref": f"#/components/responses/Problem{status}"} for status in statuses
    }
    return {"200": {"description": "The result.", "content": content}, **failures}


def _resource(
    resource: Resource,
    requests: Mapping[str, _Schema],
    results: Mapping[str, _Schema],
    components: _Schema,
) -> _Schema:
    request = requests[resource.operation]
    answers = _answers(results[resource.operation])
    path = _NOT_WORD.sub("-", resource.path.replace(":path", "")).rstrip("-")
    if resource.creates:
        answers["201"] = {
            **answers["200"],
            "description": "Stored; Location is its address.",
        }
    if resource.reads:
        answers["304"] = {"description": "Unchanged since the entity tag."}
    else:
        answers["412"] = {"$ref": "#/components/responses/Problem412"}
    has_body = not resource.reads and resource.method != "DELETE"
    return {
        **_described(
            CATALOGUE[resource.operation],
            resource.method.lower() + path,
            "resources",
            answers,
            _body(resource, request, components) if has_body else None,
        ),
        "parameters": list(_parameters(resource, request, components)),
    }


def _parameters(resource: Resource, request: _Schema, components: _Schema) -> Iterator[_Schema]:
    in_path = _IN_PATH.findall(resource.path)
    for name in in_path:
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
        }
    if resource.reads or resource.method == "DELETE":
        yield from _queried(
            resource, {resource.names.get(name, name) for name in in_path}, request, components
        )
    if resource.reads:
        yield {"$ref": "#/components/parameters/IfNoneMatch"}
        return
    if expects(CATALOGUE[resource.operation]):
        yield {"$ref": "#/components/parameters/IfMatch"}


def _queried(
    resource: Resource, excluded: set[str], request: _Schema, components: _Schema
) -> Iterator[_Schema]:
    query_names = {field: name for name, field in resource.names.items()}
    for name, parameter in parameters_of(CATALOGUE[resource.operation].request).items():
        if name in excluded:
            continue
        schema = request
        for step in parameter.place:
            schema = _followed(schema, components)["properties"][step]
        described = {
            key: value for key, value in schema.items() if key not in ("description", "default")
        }
        default = resource.given.get(name, schema.get("default"))
        if default is not None:
            described["default"] = default
        yield {
            "name": query_names.get(name, name),
            "in": "query",
            "required": parameter.required,
            "description": help_of(schema),
            "schema": described,
        }


def _followed(schema: _Schema, components: _Schema) -> _Schema:
    options = [schema, *schema.get("anyOf", ())]
    name = next((option["$ref"].rpartition("/")[2] for option in options if "$ref" in option), None)
    target: _Schema = components[name] if name else schema
    return target


def _body(resource: Resource, request: _Schema, components: _Schema) -> _Schema:
    whole = _followed(request, components)
    path_fields = {resource.names.get(name, name) for name in _IN_PATH.findall(resource.path)}
    if not path_fields:
        return request
    remaining = {
        name: schema for name, schema in whole["properties"].items() if name not in path_fields
    }
    return {
        **whole,
        "properties": remaining,
        "required": [name for name in whole["required"] if name not in path_fields],
    }


def api_routes() -> list[Route]:
    """Return the route of the OpenAPI document."""
    return [Route("/api/openapi.json", _answer_document)]


async def _answer_document(request: Request) -> Response:
    return Response(document(served_by(request).browsers.cookie), media_type=_JSON)


# -- Resources -------------------------------------------------------------------------------------
# Responses can have entity tags and links to the next page.


_TAG_BYTES = 12
_EMPTY = msgspec.Raw(b"[]")


def resource_routes() -> list[Route]:
    """Return a route for each path, in matching order. A route handles all methods of its path."""
    routes: dict[str, dict[str, Resource]] = {}
    for resource in resources():
        routes.setdefault(resource.path, {})[resource.method] = resource
    return [
        Route(path, _Endpoint(methods), methods=list(methods)) for path, methods in routes.items()
    ]


class _Endpoint:
    """The ASGI app for a path. Starlette also sends ``HEAD`` requests to ``GET`` routes."""

    def __init__(self, methods: Mapping[str, Resource]) -> None:
        self._methods = methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        resource = self._methods["GET" if scope["method"] == "HEAD" else scope["method"]]
        request = Request(scope, receive)
        answer = await (_read(resource, request) if resource.reads else _write(resource, request))
        await answer(scope, receive, send)


async def _read(resource: Resource, request: Request) -> Response:
    operation = CATALOGUE[resource.operation]
    texts = [*request.path_params.items(), *request.query_params.multi_items()]
    fields = {**resource.given} | request_of(operation, texts, resource.names, {})
    call = converted(operation, fields)
    result = await answer_of(request, resource.operation, json_values.encode(call))
    tag = entity_tag(result)
    if _is_named(tag, request.headers.get("if-none-match")):
        return Response(status_code=304, headers={"ETag": tag})
    headers = {"ETag": tag}
    if has_pages(resource) and not {"at_end", "around"} & fields.keys():
        headers |= _next_page(resource, call, request, result)
    return Response(result, 200, headers, _JSON)


def _next_page(resource: Resource, call: Any, request: Request, result: bytes) -> dict[str, str]:
    count = len(_rows(resource, result))
    seen = (getattr(call, resource.offset) or 0) + count
    size = _parsed(result)
    is_last = size.more is False or (size.total is not None and seen >= size.total)
    if not count or count < (getattr(call, "limit", None) or 0) or is_last:
        return {}
    query = [pair for pair in request.query_params.multi_items() if pair[0] != resource.offset]
    address = f"{quote(request.url.path)}?{urlencode([*query, (resource.offset, seen)])}"
    return {"Link": f'<{address}>; rel="next"'}


class _Result(msgspec.Struct):
    more: bool | None = None
    total: int | None = None
    etag: str | None = None
    action: str = ""
    memory_id: str = ""


def _parsed(result: bytes) -> _Result:
    return json_values.parse_json_tree(result if result.startswith(b"{") else b"{}", _Result)


def _rows(resource: Resource, result: bytes) -> list[msgspec.Raw]:
    listed = (
        json_values.parse_json_tree(result, dict[str, msgspec.Raw]).get(resource.rows, _EMPTY)
        if resource.rows
        else msgspec.Raw(result)
    )
    return json_values.parse_json_tree(listed, list[msgspec.Raw])


async def _write(resource: Resource, request: Request) -> Response:
    operation = CATALOGUE[resource.operation]
    fields = {**resource.given, **_object(await json_body(request))}
    query = request.query_params.multi_items() if resource.method == "DELETE" else []
    fields = request_of(operation, [*request.path_params.items(), *query], resource.names, fields)
    expected = request.headers.get("if-match")
    if expected and expected.strip() != "*":
        if not expects(operation):
            raise InvalidInputError(
                f"{resource.method} {request.url.path} does not support If-Match", hint="omit it"
            )
        fields[EXPECTED] = expected.strip().removeprefix("W/").strip('"').partition(".")[0]
    try:
        result = await answer_of(
            request, resource.operation, json_values.encode(operation.make(fields))
        )
    except EditConflictError as error:
        if EXPECTED not in fields:
            raise
        return problem_response(412, error.code, error.message, error.hint)
    if not resource.creates:
        return Response(
            result, 200, {"ETag": entity_tag(result)} if _parsed(result).etag else None, _JSON
        )
    stored = _parsed(result)
    place = {"Location": f"{PREFIX}{resource.path}/{stored.memory_id}"}
    return Response(result, 201 if stored.action == "stored" else 200, place, _JSON)


def _object(body: bytes) -> _Schema:
    try:
        return json_values.parse_json_tree(body, _Schema)
    except (
        msgspec.DecodeError,
        msgspec.ValidationError,
        RecursionError,
        UnicodeDecodeError,
    ) as error:
        raise InvalidInputError(
            f"the body is not a JSON object: {error}", hint="see the examples in docs/rest.md"
        ) from error


def entity_tag(result: bytes) -> str:
    """Return a result's entity tag: the tag of its file, if any, and a hash."""
    own = _parsed(result).etag
    whole = hashlib.blake2b(result, digest_size=_TAG_BYTES).hexdigest()
    return f'"{own}.{whole}"' if own else f'"{whole}"'


def _is_named(tag: str, header: str | None) -> bool:
    """Return True if an ``If-None-Match`` header contains the tag (weak comparison, RFC 9110 13.1.2)."""
    tags = [name.strip().removeprefix("W/") for name in (header or "").split(",")]
    return tag in tags or tags == ["*"]
