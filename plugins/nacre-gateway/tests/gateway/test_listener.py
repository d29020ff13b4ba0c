"""The gateway's server: what channels serve, and nothing else."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from gateway.sites import Routes, client_of, hello, listening, run, signed, webhook
from nacre.base.listening import Bounded
from nacre.errors import InvalidInputError, UnavailableError
from nacre_gateway.listener import Listener


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/hook"),
        ("HEAD", "/hook"),
        ("PUT", "/hook"),
        ("OPTIONS", "/hook"),
        ("POST", "/hook/"),
        ("POST", "/hook/ws"),
        ("POST", "/"),
        ("GET", "/api/v1/memories"),
        ("GET", "/open"),
        ("POST", "/mcp"),
        ("GET", "/static/index.html"),
        ("POST", "//hook"),
        ("POST", "/%2e%2e/hook"),
        ("GET", "/hook/ws"),
    ],
)
def test_unknown_routes_return_an_empty_404(tmp_path: Path, method: str, path: str) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            headers = {"Origin": "https://evil.example", "Cookie": "a=b", "Host": "tunnel.example"}
            answer = await site.client.request(method, site.address + path, headers=headers)
            assert (answer.status_code, answer.content) == (404, b"")
            assert not {"server", "set-cookie", "location"} & set(answer.headers)
            assert not [name for name in answer.headers if name.startswith("access-control")]

    run(work())


def test_any_host_name_is_served_behind_tunnels(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            assert (await site.post(hello(), Host="some.tunnel.example")).status_code == 202

    run(work())


def test_body_that_does_not_arrive_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bounded, "patience_seconds", 0.2)

    async def work() -> None:
        async with webhook(tmp_path) as site:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", int(site.address.rpartition(":")[2])
            )
            head = "POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
            writer.write(
                f"{head}Nacre-Signature: {signed(b'')['Nacre-Signature']}\r\n\r\nabc".encode()
            )
            with suppress(ConnectionResetError):  # it may also be told like this
                assert await reader.read() == b""
            writer.close()
            assert (await site.post(hello())).status_code == 202

    run(work())


def test_headers_are_bounded(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", int(site.address.rpartition(":")[2])
            )
            with suppress(ConnectionError):  # it may end while more is written
                writer.write(b"POST /hook HTTP/1.1\r\nX: " + b"x" * 10_000_000)
                await writer.drain()
            with suppress(ConnectionError):
                assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
            writer.close()

    run(work())


def test_channel_failure_is_reported_without_message_content(tmp_path: Path) -> None:
    told: list[str] = []

    async def fail(_: Request) -> Response:
        raise ValueError("private")

    async def work() -> None:
        async with listening([Routes("/odd", fail)], told) as address, client_of("") as client:
            answer = await client.get(f"{address}/odd")
            assert (answer.status_code, answer.content) == (500, b"")

    run(work())
    assert told == ["a webhook failed: ValueError"]


def test_cancelled_listener_stops_and_preserves_signal_handlers(tmp_path: Path) -> None:
    async def work() -> None:
        before = signal.getsignal(signal.SIGINT)
        async with webhook(tmp_path) as site:
            assert (await site.post(hello())).status_code == 202
            assert signal.getsignal(signal.SIGINT) is before
            asked = asyncio.create_task(site.post(hello(id="m2"), Prefer="wait=100"))
            await site.until_kept("m2")
            address = site.address
        assert (await asyncio.gather(asked, return_exceptions=True))[0] is not None
        with pytest.raises(httpx2.ConnectError):
            async with client_of("") as client:
                await client.get(address)

    run(work())


def test_listener_without_host_binds_to_loopback() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told: list[str] = []

    async def work(place: str) -> None:
        listener = Listener(place, {}, told.append)
        assert listener.open() == f"http://127.0.0.1:{port}"
        serving = asyncio.create_task(listener.run())
        await asyncio.sleep(0)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    run(work(str(port)))
    run(work(f":{port}"))
    assert told == []


def test_listener_beyond_loopback_warns_about_missing_encryption() -> None:
    told: list[str] = []

    async def work() -> None:
        listener = Listener("0.0.0.0:0", {}, told.append)
        listener.open()
        serving = asyncio.create_task(listener.run())
        await asyncio.sleep(0)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    run(work())
    assert len(told) == 1
    assert "without encryption" in told[0]


def test_used_port_and_invalid_address_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        Listener("127.0.0.1:http", {})

    async def work() -> None:
        async with webhook(tmp_path) as site:
            with pytest.raises(UnavailableError) as raised:
                Listener(site.address.removeprefix("http://"), {}).open()
            assert "gateway.listen" in str(raised.value.hint)

    run(work())


def test_client_that_reads_nothing_does_not_delay_others(tmp_path: Path) -> None:
    async def work() -> None:
        async with webhook(tmp_path) as site:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", int(site.address.rpartition(":")[2])
            )
            body = json.dumps(hello(id="m2")).encode()
            head = f"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
            writer.write(
                f"{head}Nacre-Signature: {signed(body)['Nacre-Signature']}\r\n\r\n".encode() + body
            )
            assert (await site.post(hello())).status_code == 202
            await site.until_kept("m2")
            writer.close()

    run(work())
