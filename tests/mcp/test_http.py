"""Over HTTP any replica answers any request, and only authorised callers are served."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.client.client import Client
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from nacre.base.listening import Bounded, listening_config
from nacre.base.serving import LOOPBACK, NO_TOKEN, Guard, Names, shows_token
from nacre.serve.mcp import Face, HomeCalls
from nacre.serve.mcp_http import endpoint
from nacre.serve.web import MOST_BYTES
from tests.mcp.conftest import FOLDER, tool_answer

TOKEN = "a-token-for-tests"
GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def app(face: Face, *, token: str | None = None, hosts: Sequence[str] = ()) -> Starlette:
    """An app with only this server, behind the common guard."""
    names, lacks = Names.of(LOOPBACK, hosts), NO_TOKEN if token else None
    guard = Middleware(Guard, names=names, shows=shows_token(token), lacks=lambda _: lacks)
    return Starlette(
        routes=[Route("/mcp", endpoint(lambda: face), methods=["GET", "POST"])], middleware=[guard]
    )


@contextmanager
def served(application: ASGIApp) -> Iterator[int]:
    """Serve an app on a free port of loopback."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(listening_config(application, "", "", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = server.force_exit = True
            thread.join(timeout=30)


@dataclass
class Site:
    """A listening server, and raw requests to it."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def post(self, body: bytes | Mapping[str, Any] = GREETING, **headers: str) -> tuple[int, str]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers_by_name = {name.replace("_", "-"): value for name, value in headers.items()}
        link.request("POST", "/mcp", data, {**ACCEPT, **headers_by_name})
        answer = link.getresponse()
        result = answer.status, answer.read().decode()
        link.close()
        return result


@pytest.fixture
def face(home: Path) -> Iterator[Face]:
    calls = HomeCalls(home)
    yield Face(calls, everything=True, folder=FOLDER)
    calls.close()


@pytest.fixture
def site(face: Face) -> Callable[..., Any]:
    @contextmanager
    def serve(**options: Any) -> Iterator[Site]:
        with served(app(face, **options)) as port:
            yield Site(port)

    return serve


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_official_client_works_in_every_mode(mode: str, site: Callable[..., Any]) -> None:
    with site() as running:
        async with Client(running.url, mode=mode) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            assert len((await client.list_tools()).tools) == 10
            answer = tool_answer(
                await client.call_tool(
                    "memory_search", {"query": "which database does billing use?"}
                )
            )
            assert "PostgreSQL" in answer.text


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_requests_of_a_client_can_reach_different_replicas(mode: str, face: Face) -> None:
    applications = [app(face), app(face)]
    turn = iter(range(1_000))

    async def balancer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            async with AsyncExitStack() as running:
                for application in applications:
                    await running.enter_async_context(
                        application.router.lifespan_context(application)
                    )
                await receive()
                await send({"type": "lifespan.startup.complete"})
                await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await applications[next(turn) % 2](scope, receive, send)

    with served(balancer) as port:
        async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
            for _ in range(3):
                assert len((await client.list_tools()).tools) == 10
                assert not (await client.call_tool("memory_list", {})).is_error
    assert next(turn) >= 6


LOCAL = "127.0.0.1:9"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:99"}, 200),
        ({"Host": "[::1]:99"}, 200),
        ({"Host": "LOCALHOST"}, 200),
        ({"Host": "attacker.example"}, 421),
        ({"Host": "127.0.0.1.attacker.example:80"}, 421),
        ({"Host": "localhost:80@attacker.example"}, 421),
        ({"Host": "attacker.example@localhost:80"}, 421),
        ({"Host": "localhost:secret@127.0.0.1"}, 421),
        ({"Host": "localhost."}, 421),
        ({"Host": "localhost.:80"}, 421),
        ({"Host": "localhost:"}, 421),
        ({"Host": "localhost:0"}, 421),
        ({"Host": "localhost:65536"}, 421),
        ({"Host": "localhost:+80"}, 421),
        ({"Host": "localhost:080"}, 421),
        ({"Host": "localhost:80:80"}, 421),
        ({"Host": "localhost:80/mcp"}, 421),
        ({"Host": "localhost:evil.example"}, 421),
        ({"Host": "::1"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": "[::1]evil.example:80"}, 421),
        ({"Host": "[::1%25lo]"}, 421),
        ({"Host": "[::ffff:127.0.0.1]"}, 421),
        ({"Host": "2130706433"}, 421),
        ({"Host": "127.1"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://attacker.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://localhost.attacker.example"}, 403),
        ({"Host": LOCAL, "Origin": f"http://{LOCAL}"}, 200),
        ({"Host": "localhost:80", "Origin": "http://localhost"}, 200),
        ({"Host": "localhost:9", "Origin": "http://localhost:3000"}, 403),
        ({"Host": LOCAL, "Origin": "http://localhost:9"}, 403),
        ({"Host": LOCAL, "Origin": f"https://{LOCAL}"}, 403),
        ({"Host": LOCAL, "Origin": f"ftp://{LOCAL}"}, 403),
        ({"Host": LOCAL, "Origin": LOCAL}, 403),
        ({"Host": LOCAL, "Origin": f"http://me@{LOCAL}"}, 403),
        ({"Host": LOCAL, "Origin": f"http://{LOCAL}/"}, 403),
    ],
)
def test_foreign_origins_and_host_names_are_refused(
    headers: dict[str, str], status: int, site: Callable[..., Any]
) -> None:
    with site() as running:
        assert running.post(**headers)[0] == status


def test_request_without_the_token_is_refused(site: Callable[..., Any]) -> None:
    with site(token=TOKEN) as running:
        for wrong in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": TOKEN},
            {"Authorization": "Bearer "},
        ):
            status, body = running.post(**wrong)
            assert status == 401
            assert json.loads(body)["hint"]
            assert "nacre" not in json.loads(body)["detail"]
        assert running.post(Authorization=f"Bearer {TOKEN}")[0] == 200
        assert running.post(Authorization=f"bearer {TOKEN}")[0] == 200


def response_to(port: int, data: bytes) -> bytes:
    """Return the response on a connection until the server ends it."""
    response = b""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as link,
        suppress(ConnectionError),
    ):
        link.sendall(data)
        while part := link.recv(65_536):
            response += part
    return response


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_incomplete_request_times_out(
    begun: bytes, site: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bounded, "patience_seconds", 0.1)
    with site() as running:
        assert b"200" not in response_to(running.port, begun)
        assert running.post()[0] == 200


@pytest.mark.parametrize(
    "further",
    [
        "Host: attacker.example",
        "Host: 127.0.0.1",
        "Origin: http://127.0.0.1\r\nOrigin: http://attacker.example",
    ],
)
def test_duplicate_host_or_origin_header_is_refused(further: str, site: Callable[..., Any]) -> None:
    head = f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n{further}\r\nConnection: close\r\n\r\n"
    with site() as running:
        assert response_to(running.port, head.encode()).split()[1] in {b"400", b"403"}
        assert response_to(running.port, b"GET /mcp HTTP/1.0\r\n\r\n").split()[1] == b"421"


HALF = b"POST /mcp HTTP/1.1\r\nHost: 127.0."


def begin(
    port: int, stack: ExitStack, data: bytes = HALF, address: str = "127.0.0.1"
) -> socket.socket:
    """Open a connection and send only the beginning of a request."""
    link = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30, (address, 0)))
    link.sendall(data)
    return link


def test_slow_strangers_do_not_block_token_holders(
    site: Callable[..., Any],
) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    with site(token=TOKEN) as running, ExitStack() as stack:
        client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
        stack.callback(client.close)
        for begun in range(200):
            if begun % 50 == 0:
                client.request("POST", "/mcp", json.dumps(GREETING), {**ACCEPT, **bearer})
                assert client.getresponse().read()
            begin(running.port, stack)
            if begun % 20 == 0:
                assert running.post(**bearer)[0] == 200
        assert running.post(**bearer)[0] == 200


def test_longest_waiting_connection_is_closed_when_many_are_open(
    site: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bounded, "most", 2)
    with site(token=TOKEN) as running, ExitStack() as stack:
        links = [begin(running.port, stack) for _ in range(3)]
        with suppress(ConnectionError):
            assert links[0].makefile("rb").read() == b""
        for link in links[1:]:
            link.sendall(b"0.1\r\nConnection: close\r\n\r\n")
            assert link.makefile("rb").read().startswith(b"HTTP/1.1 401 ")


def send_on(link: socket.socket, data: bytes) -> None:
    """Send repeatedly without reading any answer."""
    while True:
        link.sendall(data)


def test_client_that_reads_no_answer_is_disconnected(
    site: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bounded, "patience_seconds", 0.1)
    asking = b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100
    with site(token=TOKEN) as running, ExitStack() as stack:
        link = begin(running.port, stack, b"")
        with pytest.raises(ConnectionError):
            send_on(link, asking)


def test_oversized_body_is_refused(site: Callable[..., Any]) -> None:
    with site() as running:
        large = json.dumps(
            {**GREETING, "params": {**GREETING["params"], "x": "y" * MOST_BYTES}}
        ).encode()
        assert running.post(large)[0] == 413
        assert running.post()[0] == 200


def test_invalid_json_is_refused_and_the_server_continues(site: Callable[..., Any]) -> None:
    with site() as running:
        assert running.post(b"{nonsense")[0] == 400
        assert running.post(b"[]")[0] == 400
        assert running.post(Content_Type="text/plain")[0] == 400
        assert running.post()[0] == 200


def test_server_keeps_no_session(site: Callable[..., Any]) -> None:
    with site() as running:
        link = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
        link.request("POST", "/mcp", json.dumps(GREETING), ACCEPT)
        assert "mcp-session-id" not in {name.lower() for name, _ in link.getresponse().getheaders()}
        link.close()


def test_additional_hosts_are_served_to_token_holders(face: Face) -> None:
    with served(app(face, hosts=("memory.example",), token=TOKEN)) as port:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert (
            Site(port).post(Host="memory.example:443", Origin="https://memory.example", **bearer)[0]
            == 200
        )
        assert Site(port).post(Host="memory.example", **bearer)[0] == 200
        assert (
            Site(port).post(Host="memory.example", Origin="https://other.example", **bearer)[0]
            == 403
        )
        assert Site(port).post(Host="other.example", **bearer)[0] == 421
