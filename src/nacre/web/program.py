"""The one app of a home's port: operations, the dashboard, and MCP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Mount, Route

from nacre.errors import NacreError
from nacre.mcp.guard import LOOPBACK, Guard, Names, shows_token
from nacre.web import operations, pages, problems
from nacre.web.agents import Agents
from nacre.web.compatibility.agent_knowledge import agent_knowledge_routes
from nacre.web.compatibility.clawxmemory import clawxmemory_routes
from nacre.web.idempotency import Once
from nacre.web.rest.page import api_routes
from nacre.web.rest.routes import resource_routes

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from nacre.web.served import Served, Traffic

MCP = "/mcp"


def make_app(served: Served, make_mcp: Callable[[], Starlette]) -> Starlette:
    """The app. ``make_mcp`` makes the one for agents, which is let run without a guard of its own."""
    agents = Agents(make_mcp)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with agents.running():
            yield

    app = Starlette(
        routes=[
            Route(MCP, agents),
            Mount("/api/v1", routes=[
                Route("/me", operations.get_me),
                *resource_routes(),
                Route("/{operation}", operations.post_operation, methods=["POST"]),
            ]),
            *api_routes(),
            *agent_knowledge_routes(), *clawxmemory_routes(),
            Route("/open", pages.get_open),
            Mount("/assets", pages.Assets(directory=pages.STATIC / "assets", check_dir=False)),
            Route("/{page:path}", pages.get_page),
        ],
        middleware=[
            Middleware(_Edge, traffic=served.traffic), _guard(served),
            Middleware(Once, most_body=operations.MOST_BYTES),
        ],
        exception_handlers={
            NacreError: problems.of_nacre, HTTPException: problems.of_http, Exception: problems.of_fault,
        },
        lifespan=lifespan,
    )  # fmt: skip
    app.state.served = served
    return app


def _guard(served: Served) -> Middleware:
    """Agents show the token, programs that or a cookie; whoever asks for the dashboard's files need show nothing."""
    is_agents = shows_token(served.token)

    def shows(scope: Scope) -> bool:
        return is_agents(scope) if scope["path"].startswith(MCP) else served.actor(scope) is not None

    def needs(scope: Scope) -> bool:
        path = scope["path"]
        return served.token is not None and path.startswith((MCP, *pages.API))

    return Middleware(Guard, names=Names.of(LOOPBACK, served.hosts), shows=shows, needs=needs)


class _Edge:
    """Counts who is answered, and puts on every answer what browsers have to know."""

    def __init__(self, app: ASGIApp, traffic: Traffic) -> None:
        self._app = app
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def policed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in pages.POLICY.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith(pages.API):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        with self._traffic.one():
            await self._app(scope, receive, policed if scope["type"] == "http" else send)
