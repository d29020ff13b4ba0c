"""Fetch a file from a URL that a stranger may have written: from public addresses alone, and within bounds."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from nacre.errors import ChannelRefused, ChannelUnavailable
from nacre.gateway.channels.web_api import WebApi
from nacre.llm.providers import is_loopback

_RESOLVE_SECONDS = 10.0
_GLOBAL_V6 = ipaddress.ip_network("2000::/3")
_HINT = "attachments are fetched from public https addresses"


async def fetch_public(url: str, target: Path, most_bytes: int, *, may_be_private: bool = False) -> None:
    """Write what lies at a URL to a file. Redirects are not followed.

    The name is resolved once, and what it is resolved to is checked and connected to, so that a second answer of its
    name server changes nothing. ``may_be_private`` admits all addresses, and http to this machine.

    Raises ChannelUnavailable, ChannelRefused.
    """
    address = _checked(url, may_be_private)
    found = await _resolved(address, may_be_private)
    place = f"[{found}]" if ":" in found else found
    pinned = address._replace(netloc=f"{place}:{address.port}" if address.port else place, fragment="").geturl()
    host = WebApi("the attachment's host", pinned, {})
    try:
        await host.download(pinned, target, most_bytes, {"host": address.netloc}, server_name=address.hostname)
    finally:
        await host.close()


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
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(address.hostname, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ChannelUnavailable("the host of an attachment cannot be found", hint="it is tried again") from None
    hosts = [str(info[4][0]) for info in found]
    if not may_be_private and not all(is_public(host) for host in hosts):
        raise ChannelRefused("an attachment lies at a private address", hint=_HINT)
    return hosts[0]
