"""The daemon's HTTP server, which runs the app from :mod:`nacre.serve.program` in a thread.

Requires the extra ``web``.
"""

from __future__ import annotations

import math
import secrets
import socket
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.base import files
from nacre.base import listening as http_listening
from nacre.base import serving as serving_guard
from nacre.base.environment import install_hint, is_installed
from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.base.serving import EVERYWHERE, listen_at, names_of, split_place
from nacre.errors import InvalidInputError, UnavailableError, UnusableStoreError
from nacre.serve import homes
from nacre.serve import mcp as mcp_face
from nacre.serve import program as web_program
from nacre.serve import web as web_served

if TYPE_CHECKING:
    import uvicorn

    from nacre.settings import Settings
else:
    uvicorn = Module("uvicorn")

TOKEN = "http.token"  # noqa: S105 - a file name
_MAX_TOKEN_BYTES = 4_000


@frozen
class Door:
    """The address of an HTTP server, and who can connect to it.

    ``place`` is ``[HOST:]PORT``, or empty to serve no HTTP. By default, only this machine can
    connect. ``unencrypted`` allows other machines to connect without TLS.
    """

    place: str = ""
    asks_token: bool = True
    cert: str = ""
    key: str = ""
    unencrypted: bool = False
    names: tuple[str, ...] = ()
    """Additional host names, such as the name of a proxy."""

    room: int = 0
    """Maximum number of simultaneous clients, or 0 for the default."""

    @classmethod
    def of(cls, settings: Settings, place: str, *, asks_token: bool = True) -> Door:
        """Return an address with the access rules in the settings."""
        return cls(
            place,
            asks_token,
            settings.text("web.tls_cert"),
            settings.text("web.tls_key"),
            settings.flag("web.insecure"),
        )

    def check(self) -> None:
        """Raise InvalidInputError if other machines could connect without a token or encryption."""
        if not names_of(split_place(self.place)[0]):
            return
        if not self.asks_token:
            raise InvalidInputError(
                f"other machines can reach {self.place}, so it needs a token",
                hint="start it without --no-token",
            )
        if not self.cert and not self.unencrypted:
            hint = (
                "set web.tls_cert and web.tls_key, or add --insecure behind a proxy that encrypts"
            )
            raise InvalidInputError(
                f"other machines can reach {self.place} and read its traffic", hint=hint
            )


class Web:
    """The HTTP server of a home. Raises InvalidInputError if the access rules are unsafe."""

    def __init__(self, site: homes.Site, door: Door) -> None:
        door.check()
        self._site = site
        self._door = door
        self._host, self._port = split_place(door.place)
        self.asks_token = door.asks_token
        self._served: web_served.Served | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.address = ""
        """URL of the started server. Agents append ``/mcp``."""

    def start(self) -> None:
        """Start the server.

        Raises UnavailableError if the port is in use or a library is missing, and
        UnusableStoreError if the token cannot be stored.
        """
        for library in ("starlette", "uvicorn"):
            if not is_installed(library):
                raise UnavailableError(
                    f"serving HTTP needs a missing library: {library}", hint=install_hint("web")
                )
        site, names = self._site, (*names_of(self._host), *self._door.names)
        self._served = web_served.Served(
            **vars(site),
            token=token_of(site.home) if self.asks_token else None,
            names=serving_guard.Names.of(
                serving_guard.LOOPBACK, names, is_tls=bool(self._door.cert)
            ),
        )
        app = web_program.make_app(
            self._served,
            lambda: mcp_face.Face(homes.calls_of(site.run), everything=site.everything),
        )
        config = http_listening.listening_config(
            app, self._door.cert, self._door.key, room=self._door.room
        )
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            message = f"the certificate {self._door.cert} cannot be used: {error}"
            raise InvalidInputError(
                message, hint="web.tls_cert and web.tls_key must be a matching pair of PEM files"
            ) from error
        listening = listen_at(self._host, self._port, "choose another port: --http PORT")
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.address = (
            f"{'https' if self._door.cert else 'http'}://{host}:{listening.getsockname()[1]}"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, daemon=True, name="http"
        )
        self._thread.start()

    def invite(self) -> str:
        """Return a URL that logs a browser in as the owner. It is valid once and for a minute."""
        base = self.address
        if self._host in EVERYWHERE:
            host = f"[{self._host}]" if ":" in self._host else self._host
            name = socket.gethostname() if self._door.cert else "127.0.0.1"
            base = base.replace(host, name, 1)
        return f"{base}/open?code={self._site.browsers.make_code()}"

    @property
    def rested(self) -> float:
        """Seconds since the last request ended, or 0 while one is in progress."""
        if self._served is None:
            return float("inf")
        traffic = self._served.traffic
        return 0.0 if traffic.at_work else time.monotonic() - traffic.asked_at

    def leave(self) -> None:
        """Tell clients to use another server, in responses and health checks."""
        if self._served:
            self._served.traffic.is_leaving = True

    def drain(self, linger: float, seconds: float) -> bool:
        """Stop listening after ``linger`` seconds, and wait up to ``seconds`` for requests in
        progress. Return True if they have ended.
        """
        if not self._server or not self._thread:
            return True
        self._thread.join(linger)
        self._server.config.timeout_graceful_shutdown = math.ceil(seconds)
        self._server.should_exit = True
        self._thread.join(seconds + 1)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Stop listening. Requests in progress end when the daemon ends."""
        if self._server:
            self._server.should_exit = True


def token_of(home: Path) -> str:
    """Return the token for clients, and create it if necessary. Raises UnusableStoreError on failure."""
    path = home / TOKEN
    try:
        with suppress(FileNotFoundError):
            with files.open_to_read(path) as file:
                stored = file.read(_MAX_TOKEN_BYTES).decode("ascii", "replace").strip()
            if stored:
                return stored
        token = secrets.token_urlsafe(32)
        files.write_file(path, token + "\n")
    except OSError as error:
        raise UnusableStoreError(
            f"cannot use {path}: {error.strerror}", hint="check its permissions"
        ) from error
    return token
