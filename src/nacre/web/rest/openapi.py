"""The routes as OpenAPI 3.1, made from the catalogue: the requests' bounds and help, the results' fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import getdoc
from typing import Any

import msgspec

from nacre import __version__
from nacre.catalogue import CATALOGUE, offered_by
from nacre.operation import Operation
from nacre.platform import json_values
from nacre.platform.request import Nothing
from nacre.values.actor import Face
from nacre.values.session import Flag
from nacre.web.rest.parameters import expects, has_pages, parameters_of
from nacre.web.rest.resources import PREFIX, RESOURCES, Resource

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
    types = [one.request for one in _offered().values()] + [one.result for one in _offered().values()]
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
        paths.setdefault(path, {})[one.method.lower()] = _resource(one, requests, results, components)
    for name, operation in _offered().items():
        paths.setdefault(f"{PREFIX}/{name}", {})["post"] = _posted(operation, requests[name], results[name])
    return msgspec.json.encode(_whole(cookie, paths, components))


def summary_of(operation: Operation) -> str:
    """What an operation does, in a sentence or two."""
    told = (getdoc(operation.function) or "").partition("\n\n")[0].replace("\n", " ").partition(" Raises ")[0]
    return _ROLE.sub(r"`\1`", told).removesuffix(".")


def _correct(schema: Any) -> None:
    """Durations may have a fraction of a second, which JSON Schema's format of that name does not know."""
    if isinstance(schema, dict) and schema.get("format") == "duration":
        del schema["format"]
        schema["description"] = "A duration in seconds, by ISO 8601: PT12.5S"
    for one in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _correct(one)


def help_of(schema: _Schema) -> str:
    """What a schema says of itself, or one of those of which it may be any."""
    return str(next((one["description"] for one in (schema, *schema.get("anyOf", ())) if one.get("description")), ""))


@cache
def _offered() -> Mapping[str, Operation]:
    return offered_by(Face.HTTP)


def _whole(cookie: str, paths: Mapping[str, Any], components: Mapping[str, Any]) -> _Schema:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nacre", "version": __version__, "description": _ABOUT,
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
                "token": {"type": "http", "scheme": "bearer", "description": "The home's file http.token."},
                "cookie": {
                    "type": "apiKey", "in": "cookie", "name": cookie,
                    "description": "Set by nacre open. Whatever changes something sends the browser's key beside "
                    "it, as X-Nacre.",
                },
            },
        },
    }  # fmt: skip


_FLAGS: _Schema = {
    "type": "integer", "minimum": 0, "title": Flag.__name__,
    "description": "What a turn is besides plain talk, added up: "
    + ", ".join(f"{one.value} {(one.name or '').lower()}" for one in Flag) + ".",
}  # fmt: skip
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
        "description": told, "content": {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    }
    for status, told in _FAILURES.items()
}  # fmt: skip
_PARAMETERS: _Schema = {
    "IfMatch": {
        "name": "If-Match", "in": "header", "schema": {"type": "string"},
        "description": "The entity tag that was read: where the thing is another by now, nothing is overwritten (412).",
    },
    "IfNoneMatch": {
        "name": "If-None-Match", "in": "header", "schema": {"type": "string"},
        "description": "An entity tag: 304 where the answer has it still.",
    },
    "Cursor": {
        "name": "cursor", "in": "query", "schema": {"type": "string"},
        "description": "Where the list goes on, from the address that Link: rel=next names.",
    },
}  # fmt: skip


def _posted(operation: Operation, request: _Schema, result: _Schema) -> _Schema:
    described: _Schema = {
        "operationId": operation.name, "tags": ["operations"], "summary": summary_of(operation),
        "description": " ".join(_notes(operation)), "responses": _answers(result),
    }  # fmt: skip
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
    one: Resource, requests: Mapping[str, _Schema], results: Mapping[str, _Schema], components: _Schema
) -> _Schema:
    operation = CATALOGUE[one.operation]
    answers = _answers(results[one.operation], {} if one.rows is not None else None)
    name = one.method.lower() + _NO_WORD.sub("-", one.path.replace(":path", "")).rstrip("-")
    described: _Schema = {
        "operationId": name, "tags": ["resources"],
        "summary": summary_of(operation), "description": " ".join(_notes(operation)), "responses": answers,
        "parameters": list(_parameters(one, requests[one.operation], components)),
    }  # fmt: skip
    if one.creates:
        answers["201"] = {**answers["200"], "description": "It was stored; Location says where it is."}
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
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    if one.reads or one.method == "DELETE":
        yield from _queried(one, {one.names.get(name, name) for name in in_path}, request, components)
    if one.reads:
        yield {"$ref": "#/components/parameters/IfNoneMatch"}
        if has_pages(one):
            yield {"$ref": "#/components/parameters/Cursor"}
        return
    if expects(CATALOGUE[one.operation]):
        yield {"$ref": "#/components/parameters/IfMatch"}


def _queried(one: Resource, besides: set[str], request: _Schema, components: _Schema) -> Iterator[_Schema]:
    shown = {field: name for name, field in one.names.items()}
    for name, known in parameters_of(CATALOGUE[one.operation].request).items():
        if name in besides:
            continue
        schema = request
        for step in known.place:
            schema = _followed(schema, components)["properties"][step]
        described = {key: value for key, value in schema.items() if key not in ("description", "default")}
        default = one.given.get(name, schema.get("default"))
        if default is not None:
            described["default"] = default
        yield {
            "name": shown.get(name, name), "in": "query", "required": known.required,
            "description": help_of(schema), "schema": described,
        }  # fmt: skip


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
    return {**whole, "properties": left, "required": [name for name in whole["required"] if name not in besides]}
