"""The Starlette app that serves the operations, the dashboard and MCP."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from itertools import chain
from typing import TYPE_CHECKING

import anyio.to_thread
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Mount, Route

from nacre.base.plugins import SERVICES, load_usable_plugins
from nacre.base.serving import Guard, Refusal, shows_token
from nacre.errors import NacreError
from nacre.serve import mcp_http, web
from nacre.serve.rest import get_document, resource_routes
from nacre.values.memory import Actor, Face, acting

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from nacre.serve import mcp as mcp_face

MCP = "/mcp"
EVENTS = "/api/v1/events"


def make_app(served: web.Served, make_face: Callable[[], mcp_face.Face]) -> Starlette:
    """Build the web application. Its first MCP request calls ``make_face`` to load the tools."""
    app = Starlette(
        routes=[
            Route(MCP, mcp_http.endpoint(make_face), methods=["GET", "POST", "DELETE"]),
            Mount(
                "/api/v1",
                routes=[
                    Route("/me", web.get_me),
                    Route("/events", web.get_events),
                    *resource_routes(),
                    Route("/{operation}", web.post_operation, methods=["POST"]),
                ],
            ),
            Route("/api/openapi.json", get_document),
            *chain.from_iterable(load_usable_plugins(SERVICES, list).values()),
            Route("/health/live", web.get_live),
            Route("/health/ready", web.get_ready),
            Route("/open", web.get_open),
            Mount("/assets", web.Assets(directory=web.STATIC / "assets", check_dir=False)),
            Route("/{page:path}", web.get_page),
        ],
        middleware=[
            Middleware(_Edge, served=served),
            Middleware(_Bearers, served=served),
            _guard(served),
        ],
        exception_handlers={
            NacreError: web.of_nacre,
            HTTPException: web.of_http,
            Exception: web.of_fault,
        },
    )
    app.state.served = served
    return app


def _guard(served: web.Served) -> Middleware:
    has_token = shows_token(served.token)

    def shows(scope: Scope) -> bool:
        if scope["path"].startswith(MCP):
            return has_token(scope) or web.BEARER in scope.get("state", {})
        return served.actor(scope) is not None

    def lacks(scope: Scope) -> Refusal | None:
        is_open = served.token is None and not served.given_key(
            scope
        )  # a request with an invalid key is rejected
        is_public = not (scope["path"].startswith(MCP) or web.API.match(scope["path"]))
        return None if is_open or is_public else served.lacks(scope)

    return Middleware(Guard, names=served.names, shows=shows, lacks=lacks)


class _Middleware:
    def __init__(self, app: ASGIApp, served: web.Served) -> None:
        self._app = app
        self._served = served


class _Bearers(_Middleware):
    """Middleware that looks up the holder of a request's key, which gives access to a space but not to the home."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        spaces = self._served.spaces
        key = self._served.given_key(scope) if scope["type"] == "http" else ""
        path = scope["path"]
        is_of_a_space = path.startswith(("/api/v1/", MCP)) and not path.startswith("/api/v1/me")
        if key and spaces and is_of_a_space:
            try:
                bearer = await anyio.to_thread.run_sync(spaces.bearer, key)
            except NacreError as error:  # the key cannot be looked up
                await web.of_error(error)(scope, receive, send)
                return
            if bearer:
                scope = {**scope, "state": {**scope.get("state", {}), web.BEARER: bearer}}
                with acting(
                    Actor(Face.MCP, web.program_of(bearer), bearer)
                ):  # the agents' tools read the actor
                    await self._app(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Edge(_Middleware):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if self._served.traffic.is_leaving:
                    headers["Connection"] = "close"
                for name, value in web.POLICY.items():
                    headers.setdefault(name, value)
                if web.API.match(scope["path"]):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        listens = scope["path"].startswith(EVENTS)  # an idle page must not count as a request
        with nullcontext() if listens else self._served.traffic.counted():
            await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
