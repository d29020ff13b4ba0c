"""``/api/docs``: all routes on a page of nacre's own, without a script and without anything from a network."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nacre.web.operations import served_by
from nacre.web.rest import openapi

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
_BOUNDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "maxLength": "at most", "minItems": "least"}
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>nacre: the API</title><link rel="stylesheet" href="/api/docs.css"></head><body>
<h1>nacre: the API</h1>
"""


def api_routes() -> list[Route]:
    """The document, and the page that is made from it."""
    return [
        Route("/api/openapi.json", _answer(openapi.document, "application/json")),
        Route("/api/docs", _answer(page, "text/html")),
        Route("/api/docs.css", _answer(lambda _: _STYLE.encode(), "text/css")),
    ]


@cache
def page(cookie: str) -> bytes:
    """The page; ``cookie`` is the name of the owner's."""
    known = msgspec.json.decode(openapi.document(cookie))
    about = "".join(f"<p>{_text(one)}</p>" for one in known["info"]["description"].split("\n\n"))
    parts = [_HEAD, about, '<p>As a document: <a href="/api/openapi.json">OpenAPI 3.1</a>.</p>']
    for tag, heading in (("resources", "Resources"), ("operations", "Operations")):
        parts.append(f"<h2>{heading}</h2>")
        parts += [
            _route(path, method, one, known["components"])
            for path, methods in known["paths"].items() for method, one in methods.items() if tag in one["tags"]
        ]  # fmt: skip
    return "\n".join([*parts, "</body></html>"]).encode()


def _answer(make: Callable[[str], bytes], kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(make(served_by(request).browsers.cookie), media_type=kind)

    return answer


def _route(path: str, method: str, one: dict[str, Any], components: dict[str, Any]) -> str:
    fields = _fields(one, components)
    rows = "".join(
        f"<tr><td><code>{_text(name)}</code></td><td>{_text(kind)}</td><td>{_text(told)}</td></tr>"
        for name, kind, told in fields
    )
    table = f"<table><tr><th>Field</th><th>Type</th><th>Meaning</th></tr>{rows}</table>" if rows else ""
    return (
        f'<details><summary><span class="method">{method.upper()}</span> <code>{_text(path)}</code> '
        f'<span class="quiet">{_text(one["summary"])}</span></summary>'
        f"<p>{_text(one['description'])}</p>{table}"
        f"<pre>{_text(_example(path, method, one, components))}</pre></details>"
    )


def _fields(one: dict[str, Any], components: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Of the parameters and the body: each with its type and its help."""
    found = [
        (known["name"], _kind(known["schema"], components, needed=known["required"]), known.get("description", ""))
        for known in one.get("parameters", ()) if known.get("in") in ("path", "query")
    ]  # fmt: skip
    body = _body(one, components)
    for name, schema in body.get("properties", {}).items():
        kind = _kind(schema, components, needed=name in body["required"])
        found.append((name, kind, openapi.help_of(schema)))
    return found


def _body(one: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    schema = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    return _followed(schema, components)


def _followed(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
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
    schema = _followed(schema, components)
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
    needed = [known["name"] for known in one.get("parameters", ()) if known.get("in") == "query" and known["required"]]
    if needed:
        address += "?" + "&".join(f"{name}=…" for name in needed)
    lines = ['curl -H "Authorization: Bearer $(cat ~/.nacre/http.token)"']
    if method != "get":
        lines[0] += f" -X {method.upper()}"
    if "requestBody" in one:
        body = dict.fromkeys(_body(one, components).get("required", ()), "…")
        lines += ["  -H 'Content-Type: application/json'", f"  -d '{json.dumps(body, ensure_ascii=False)}'"]
    return " \\\n".join([*lines, f"  '{address}'"])


def _text(text: str) -> str:
    """A text as HTML; what stands between backquotes is code."""
    return _CODE.sub(r"<code>\1</code>", html.escape(text))
