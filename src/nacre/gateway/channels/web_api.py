"""A platform's HTTP interface: bounded answers, no redirects, and errors that name no address and no secret."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx2

from nacre.errors import ChannelRefused, ChannelUnavailable, SettingsInvalid
from nacre.gateway.channels.untrusted import decode
from nacre.llm.providers import is_loopback
from nacre.platform.private_files import new_file

_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_DOWNLOAD_SECONDS = 300.0
_MOST_ANSWER = 8 << 20
"""Bytes of an answer: a hundred of the longest messages with room."""

logging.getLogger("httpx2").setLevel(logging.WARNING)  # below that it logs addresses, and some hold a token


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its status, its headers (names in lower case), and its JSON, wrapped where that is a list.

    ``body`` is empty where it was no JSON; ``rows`` holds the objects of a list.
    """

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...] = ()

    @property
    def retry_after(self) -> float | None:
        """Seconds that the header of that name asks to wait."""
        try:
            return min(max(0.0, float(self.headers.get("retry-after", ""))), 86_400.0)
        except ValueError:
            return None


class WebApi:
    """Requests to one platform. Connections are made with the first request."""

    def __init__(self, platform: str, address: str, headers: Mapping[str, str]) -> None:
        """``address`` is the base of all paths; plain http is for loopback only. Raises SettingsInvalid."""
        check_address(platform, address)
        self.platform = platform
        self._address = address.rstrip("/")
        self._headers = dict(headers)
        self._client: httpx2.AsyncClient | None = None

    @property
    def place(self) -> str:
        """Host and port of the address."""
        return urlsplit(self._address).netloc

    async def ask(
        self, method: str, path: str, *, json: Any = None, content: bytes | None = None,
        params: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None, seconds: float = _SECONDS,
    ) -> Reply:  # fmt: skip
        """The answer, whatever its status. ``content`` is sent as it is, ``json`` is encoded first.

        Raises ChannelUnavailable where there is none within ``seconds``.
        """
        sent = {**self._headers, **(headers or {})}
        async with self._stream(
            method, f"{self._address}{path}", seconds, json=json, content=content, params=params, headers=sent
        ) as response:
            data = bytearray()
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > _MOST_ANSWER:
                    raise ChannelUnavailable(f"{self.platform} answers with more than {_MOST_ANSWER >> 20} MB")
            return _reply(response.status_code, {k.lower(): v for k, v in response.headers.items()}, bytes(data))

    async def download(
        self, url: str, target: Path, most_bytes: int, headers: Mapping[str, str], server_name: str | None = None
    ) -> None:  # fmt: skip
        """Write what is at an address into a file, ``most_bytes`` at most. The caller has judged the address.

        ``server_name`` is whom the certificate must name, where that is not the host of the address. Raises
        ChannelUnavailable, and ChannelRefused where there is no such file, or a larger one.
        """
        plain = {"accept-encoding": "identity", **headers}  # a few bytes may expand to more than there is memory
        more = {"extensions": {"sni_hostname": server_name}} if server_name else {}
        async with self._stream("GET", url, _DOWNLOAD_SECONDS, headers=plain, **more) as response:
            if response.status_code >= 500 or response.status_code == 429:
                raise ChannelUnavailable(f"{self.platform} does not give the file now (status {response.status_code})")
            if response.status_code != 200 or response.headers.get("content-encoding", "identity") != "identity":
                raise ChannelRefused(f"{self.platform} does not give the file (status {response.status_code})")
            with new_file(target, overwrite=True) as file:
                size = 0
                async for piece in response.aiter_raw():
                    size += len(piece)
                    if size > most_bytes:
                        raise ChannelRefused(f"the file is larger than {most_bytes} bytes")
                    file.write(piece)

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _stream(self, method: str, url: str, seconds: float, **more: Any) -> AsyncIterator[httpx2.Response]:
        if self._client is None:
            # no proxy stands between nacre and this very machine
            here = is_loopback(urlsplit(self._address).hostname or "")
            self._client = httpx2.AsyncClient(trust_env=not here, follow_redirects=False)
        timeout = httpx2.Timeout(seconds, connect=_CONNECT_SECONDS)
        try:
            # a byte now and then would keep an answer open for ever, but for the time of it all
            async with (
                asyncio.timeout(seconds),
                self._client.stream(method, url, timeout=timeout, **more) as response,
            ):
                yield response
        except (TimeoutError, httpx2.TimeoutException):
            raise ChannelUnavailable(f"{self.platform} did not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            # the library's own words may name the address, and with it a secret
            raise ChannelUnavailable(f"{self.platform} cannot be reached ({type(error).__name__})") from None


def split_address(address: str) -> SplitResult:
    """The parts of an address that a platform sent. Raises ChannelRefused where it is none."""
    try:
        return urlsplit(address)
    except ValueError:
        raise ChannelRefused("the address of a file is malformed") from None


def check_address(platform: str, address: str) -> None:
    """Raise SettingsInvalid unless the address is encrypted, or on this machine."""
    try:
        scheme, host = urlsplit(address).scheme, urlsplit(address).hostname or ""
    except ValueError:
        scheme, host = "", ""
    if scheme in ("https", "wss") and host:
        return
    if scheme not in ("http", "ws") or not is_loopback(host):
        hint = "https, or http on this machine"
        raise SettingsInvalid(f"{platform} cannot be reached safely at the address it is given", hint=hint)


def _reply(status: int, headers: Mapping[str, str], data: bytes) -> Reply:
    try:
        found = decode(data)
    except ValueError:
        found = {}
    if isinstance(found, list):
        return Reply(status, headers, {}, tuple(one for one in found if isinstance(one, dict)))
    return Reply(status, headers, found if isinstance(found, dict) else {})
