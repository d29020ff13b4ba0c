"""Login codes and cookies for browsers that open the dashboard."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from nacre.base import files, json
from nacre.base.frozen import frozen

# -- Browser sessions ------------------------------------------------------------


BROWSERS = "browsers.json"
"""File in the home with hashes and expiry times of cookies."""

CODE_SECONDS = 60.0
"""Lifetime of a login code in seconds. Each code can be used only once."""

COOKIE_SECONDS = 90 * 86_400
_SECRET_BYTES = 32
_MAX_BROWSERS = 200
"""Maximum number of browsers. Those with the oldest cookies are removed first."""


@frozen
class Entry:
    """The secrets of a logged-in browser.

    Browsers send the cookie to all ports, so other servers on this machine can see it. Changes
    therefore also require the key, which only the dashboard knows.
    """

    cookie: str
    key: str


class _Browser(msgspec.Struct, frozen=True):
    until: float
    key: str


class _StoredBrowsers(msgspec.Struct, frozen=True):
    port: int = 0
    cookies: dict[str, _Browser] = {}

    def living(self) -> dict[str, _Browser]:
        now = time.time()
        return {name: browser for name, browser in self.cookies.items() if browser.until > now}


class Browsers:
    """The logins of browsers. Codes are kept in memory, and hashes of cookies in the home."""

    def __init__(self, home: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._file = home / BROWSERS
        self._guard = threading.Lock()
        self._codes: dict[str, float] = {}
        self.cookie = f"nacre_{_hash(os.path.realpath(home))[:8]}"
        """Name of the cookie. It depends on the home, because all ports on a machine share cookies."""

    def make_code(self) -> str:
        """Return a login code, which is valid only once and for a minute."""
        code = secrets.token_urlsafe(_SECRET_BYTES)
        now = self._clock()
        with self._guard:
            self._codes = {stored: until for stored, until in self._codes.items() if until > now}
            self._codes[_hash(code)] = now + CODE_SECONDS
        return code

    def redeem(self, code: str, port: int = 0) -> Entry | None:
        """Exchange a login code for a cookie and a key. Return ``None`` if the code is invalid."""
        with self._guard:
            until = self._codes.pop(_hash(code), 0.0)
            if until <= self._clock():
                return None
            entry = Entry(
                secrets.token_urlsafe(_SECRET_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
            )
            living = sorted(self._load().living().items(), key=lambda item: item[1].until)[
                1 - _MAX_BROWSERS :
            ]
            browser = _Browser(time.time() + COOKIE_SECONDS, _hash(entry.key))
            stored = _StoredBrowsers(port, {**dict(living), _hash(entry.cookie): browser})
            files.write_file(self._file, msgspec.json.encode(stored))
            return entry

    def is_valid(self, cookie: str, key: str | None = None) -> bool:
        """Return True if a browser's cookie is valid and, if given, its key too."""
        browser = self._load().living().get(_hash(cookie))
        return browser is not None and (key is None or hmac.compare_digest(browser.key, _hash(key)))

    @property
    def port(self) -> int | None:
        """The port at which browsers last logged in, or ``None`` if no login is valid."""
        stored = self._load()
        return stored.port if stored.living() else None

    def forget(self) -> bool:
        """Log out all browsers and invalidate all codes. Return True if a browser was logged in."""
        with self._guard:
            self._codes.clear()
            had_any = bool(self._load().cookies)
            self._file.unlink(missing_ok=True)
        return had_any

    def _load(self) -> _StoredBrowsers:
        with (
            suppress(OSError, msgspec.MsgspecError),
            files.open_to_read(self._file) as file,
        ):
            return json.decode(file.read(1_000_000), _StoredBrowsers)
        return _StoredBrowsers()


def _hash(text: str | bytes) -> str:
    return hashlib.sha256(
        text.encode("utf-8", "replace") if isinstance(text, str) else text
    ).hexdigest()
