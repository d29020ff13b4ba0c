"""Where a server listens: a host and a port, and who can reach it there."""

from __future__ import annotations

import socket
from contextlib import suppress

from nacre.errors import InvalidInput, Unavailable

EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - served only where somebody says so
"""Hosts that stand for all addresses of the machine."""

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_LARGEST_PORT = 65_535


def names_of(host: str) -> tuple[str, ...]:
    """The names by which others may call a server there; none where only this machine can."""
    if host in _LOOPBACK:
        return ()
    if host not in EVERYWHERE:
        return (f"[{host}]" if ":" in host else host,)
    own = socket.gethostname()
    with suppress(OSError):
        found = {str(info[4][0]) for info in socket.getaddrinfo(own, None, socket.AF_INET)}
        return (own, f"{own}.local", *sorted(found))
    return (own, f"{own}.local")


def split_place(place: str) -> tuple[str, int]:
    """The host and the port of ``[HOST:]PORT``. Raises InvalidInput."""
    host, _, port = place.strip().rpartition(":")
    is_clear = ":" not in host or (host.startswith("[") and host.endswith("]"))
    if not is_clear or not port.isascii() or not port.isdigit() or int(port) > _LARGEST_PORT:
        raise InvalidInput(f"{place!r} is no port, nor a host and a port", hint="8765, or 127.0.0.1:8765")
    return host.strip("[]") or "127.0.0.1", int(port)


def listen_at(host: str, port: int, hint: str) -> socket.socket:
    """A socket that listens. Raises Unavailable, with the hint, where that port is taken."""
    listening = None
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # named TCP, as asyncio else leaves Nagle's algorithm on: 40 ms for each answer of a kept connection
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()  # who comes before the server is there waits for it
    except OSError as error:
        if listening:
            listening.close()
        raise Unavailable(f"cannot listen at {host}:{port}: {error.strerror or error}", hint=hint) from error
    return listening
