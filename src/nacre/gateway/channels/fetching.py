"""Fetch a file from a URL that a stranger may have written: from public addresses alone, and within bounds."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import httpx2

from nacre.errors import ChannelRefused, ChannelUnavailable
from nacre.llm.providers import is_loopback
from nacre.platform import private_files

_SECONDS = 60.0
_IDLE_SECONDS = 10.0
_AGAIN = frozenset({408, 425, 429})
_GLOBAL_V6 = ipaddress.ip_network("2000::/3")
_HINT = "attachments are fetched from public https addresses"


async def fetch_public(url: str, target: Path, most_bytes: int, *, may_be_private: bool = False) -> None:
    """Write what lies at a URL to a file. Redirects are not followed.

    The name is resolved once, and what it is resolved to is checked and connected to, so that a second answer of its
    name server changes nothing. ``may_be_private`` admits all addresses, and http to this machine.

    Raises ChannelUnavailable, ChannelRefused.
    """
    address = _checked(url, may_be_private)
    try:
        async with asyncio.timeout(_SECONDS):
            host = await _resolved(address, may_be_private)
            await _download(address, host, target, most_bytes)
    except (TimeoutError, httpx2.TransportError) as error:  # its text may name the URL, which may hold a token
        told = f"an attachment cannot be fetched: {type(error).__name__}"
        raise ChannelUnavailable(told, hint="it is tried again") from None


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet, whatever it is wrapped in."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):  # those that hold an IPv4 address are not
        return found in _GLOBAL_V6 and not found.sixtofour and not found.teredo and found.is_global
    return found.is_global and not found.is_multicast


def _checked(url: str, may_be_private: bool) -> SplitResult:
    try:
        address = urlsplit(url)
        host, _ = address.hostname, address.port
    except ValueError:
        host = None
    if not host or address.username is not None:
        raise ChannelRefused("an attachment has no valid URL", hint=_HINT)
    if address.scheme != "https" and not (address.scheme == "http" and may_be_private and is_loopback(host)):
        raise ChannelRefused("an attachment has no https URL", hint=_HINT)
    return address


async def _resolved(address: SplitResult, may_be_private: bool) -> str:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(address.hostname, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ChannelUnavailable("the host of an attachment cannot be found", hint="it is tried again") from None
    hosts = [str(info[4][0]) for info in found]
    if not may_be_private and not all(is_public(host) for host in hosts):
        raise ChannelRefused("an attachment lies at a private address", hint=_HINT)
    return hosts[0]


async def _download(address: SplitResult, host: str, target: Path, most_bytes: int) -> None:
    port = f":{address.port}" if address.port else ""
    shown = f"[{host}]" if ":" in host else host
    pinned = address._replace(netloc=f"{shown}{port}", fragment="").geturl()
    headers = {"host": address.netloc, "accept-encoding": "identity", "user-agent": "nacre"}
    async with (
        httpx2.AsyncClient(timeout=_IDLE_SECONDS, trust_env=False) as client,  # a proxy would resolve the name again
        client.stream("GET", pinned, headers=headers, extensions={"sni_hostname": address.hostname}) as response,
    ):
        status = response.status_code
        if status in _AGAIN or status >= 500:
            raise ChannelUnavailable(f"an attachment cannot be fetched: {status}", hint="it is tried again")
        if status != 200 or "content-encoding" in response.headers:
            raise ChannelRefused(f"an attachment cannot be fetched: {status}", hint="is its URL right?")
        size = 0
        with private_files.new_file(target, overwrite=True) as file:
            async for chunk in response.aiter_raw():
                size += len(chunk)
                if size > most_bytes:
                    raise ChannelRefused(f"an attachment has more than {most_bytes:,} bytes", hint="send a smaller one")
                file.write(chunk)
