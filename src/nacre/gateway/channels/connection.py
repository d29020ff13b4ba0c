"""HTTP to a platform: every answer is bounded, and no error or log names an address, which may hold a token."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from nacre.errors import ChannelRefused, ChannelUnavailable, SettingsInvalid
from nacre.gateway.channels.channel import ChannelSetup
from nacre.llm.providers import is_loopback
from nacre.platform import json_text
from nacre.platform.private_files import new_file

_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_DOWNLOAD_SECONDS = 300.0
_MOST_BYTES = 32 * 1024 * 1024
"""Of an answer in JSON."""

logging.getLogger("httpx2").setLevel(logging.WARNING)  # below, it logs addresses; Telegram's hold the token


def base_url(setup: ChannelSetup) -> str:
    """The option ``base_url`` without a slash at its end. Raises SettingsInvalid unless it is https, or http of this
    machine."""
    url = str(setup.options["base_url"]).rstrip("/")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not host or not is_safe or parts.username or parts.query or parts.fragment:
        hint = "https://HOST[/PATH]; http only of this machine"
        raise SettingsInvalid(f"gateway.channels.{setup.name}.base_url cannot be {url!r}", hint=hint)
    return url


@dataclass(frozen=True, slots=True)
class Reply:
    """What a platform answered: ``body`` is its JSON, None where it sent none."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def retry_after(self) -> float | None:
        """Seconds that the header of that name asks to wait."""
        try:
            return max(0.0, float(self.headers.get("retry-after", "")))
        except ValueError:
            return None


class Connection:
    """Connections to one platform. Redirects are not followed: a token would go along."""

    def __init__(self, platform: str, base: str, headers: Mapping[str, str] | None = None) -> None:
        self._platform = platform
        self.base = base
        is_here = is_loopback(urlsplit(base).hostname or "")
        sent = {"user-agent": "nacre", "accept-encoding": "identity", **(headers or {})}
        self._client = httpx2.AsyncClient(headers=sent, trust_env=not is_here)

    async def ask(
        self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None,
        seconds: float = _SECONDS,
    ) -> Reply:  # fmt: skip
        """The answer to a request at a path below the base, whatever its status. Raises ChannelUnavailable."""
        async with self._answer(method, self.base + path, seconds, json=body, params=params) as response:
            held = bytearray()
            async for chunk in response.aiter_bytes():
                held += chunk
                if len(held) > _MOST_BYTES:
                    raise ChannelUnavailable(f"{self._platform} answered more than is read")
            try:
                parsed = json_text.parse(bytes(held))
            except ValueError:
                parsed = None
            return Reply(response.status_code, parsed, response.headers)

    async def download(self, url: str, target: Path, most_bytes: int) -> None:
        """Write what lies at an address to a file, whole or not at all. Raises ChannelUnavailable, ChannelRefused."""
        async with self._answer("GET", url, _DOWNLOAD_SECONDS) as response:
            if response.status_code != httpx2.codes.OK:
                said = f"{self._platform} did not give the file: status {response.status_code}"
                is_passing = response.status_code >= 500 or response.status_code == httpx2.codes.TOO_MANY_REQUESTS
                raise (ChannelUnavailable if is_passing else ChannelRefused)(said)
            try:
                with new_file(target, overwrite=True) as file:
                    size = 0
                    async for chunk in response.aiter_bytes():
                        size += len(chunk)
                        if size > most_bytes:
                            raise too_large(most_bytes)
                        file.write(chunk)
            except OSError as error:
                raise ChannelUnavailable(f"the file cannot be written: {error.strerror}") from error

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def _answer(self, method: str, url: str, seconds: float, **options: Any) -> AsyncIterator[httpx2.Response]:
        timeout = httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream(method, url, timeout=timeout, **options) as response,
            ):
                yield response
        except (TimeoutError, httpx2.TimeoutException):
            raise ChannelUnavailable(f"{self._platform} did not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # Neither its text nor the error itself goes on: both know the address.
            raise ChannelUnavailable(f"{self._platform} cannot be reached ({type(error).__name__})") from None


def too_large(most_bytes: int) -> ChannelRefused:
    """The error for a file that is larger than what is fetched."""
    return ChannelRefused(f"the file is larger than {most_bytes:,} bytes")
