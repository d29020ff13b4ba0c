"""The browsers in which the home is the owner's: each got a cookie for a code that ``nacre open`` had made."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nacre.platform import json_values, private_files

BROWSERS = "browsers.json"
"""In the home: when each cookie ends, by its hash, so that a restart of the daemon ends none."""

CODE_SECONDS = 60.0
"""So long a code may be turned into a cookie, once."""

COOKIE_SECONDS = 90 * 86_400
_BYTES = 32
_MOST_BYTES = 1_000_000
_MOST = 200
"""So many browsers are kept; of more, those that end first go."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a browser gets: a cookie, which it sends to every port of this machine, and a key, which the dashboard keeps
    for the origin and sends with what changes something. So another server here that sees the cookie can only read."""

    cookie: str
    key: str


class _Browser(msgspec.Struct, frozen=True):
    until: float
    key: str


class _Kept(msgspec.Struct, frozen=True):
    port: int = 0
    cookies: dict[str, _Browser] = {}

    def living(self) -> dict[str, _Browser]:
        now = time.time()
        return {name: one for name, one in self.cookies.items() if one.until > now}


class Browsers:
    """Codes, which this process alone knows, and cookies, of which the home keeps hashes."""

    def __init__(self, home: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._file = home / BROWSERS
        self._guard = threading.Lock()
        self._codes: dict[str, float] = {}
        self.cookie = f"nacre_{_hash(os.path.realpath(home))[:8]}"
        """The name of the cookie: browsers send those of all ports of a host."""

    def make_code(self) -> str:
        """What one browser can turn into a cookie, within a minute."""
        code = secrets.token_urlsafe(_BYTES)
        now = self._clock()
        with self._guard:
            self._codes = {one: until for one, until in self._codes.items() if until > now}
            self._codes[_hash(code)] = now + CODE_SECONDS
        return code

    def redeem(self, code: str, port: int = 0) -> Entry | None:
        """Cookie and key for a code; ``None`` where it is not known, was used or is too old. Raises OSError."""
        with self._guard:
            until = self._codes.pop(_hash(code), 0.0)
            if until <= self._clock():
                return None
            made = Entry(secrets.token_urlsafe(_BYTES), secrets.token_urlsafe(_BYTES))
            living = sorted(self._kept().living().items(), key=lambda one: one[1].until)[1 - _MOST :]
            known = _Browser(time.time() + COOKIE_SECONDS, _hash(made.key))
            kept = _Kept(port, {**dict(living), _hash(made.cookie): known})
            private_files.write_file(self._file, msgspec.json.encode(kept))
            return made

    def knows(self, cookie: str, key: str | None = None) -> bool:
        """Whether it is the cookie of a browser that was not forgotten, and the key, if one is given, the one to it."""
        found = self._kept().living().get(_hash(cookie))
        return found is not None and (key is None or hmac.compare_digest(found.key, _hash(key)))

    @property
    def port(self) -> int | None:
        """The port at which browsers know the home; ``None`` where there are none."""
        kept = self._kept()
        return kept.port if kept.living() else None

    def forget(self) -> bool:
        """End all cookies; returns whether there were any."""
        with self._guard:
            self._codes.clear()
            were = bool(self._kept().cookies)
            self._file.unlink(missing_ok=True)
        return were

    def _kept(self) -> _Kept:
        with (
            suppress(OSError, msgspec.MsgspecError),
            os.fdopen(private_files.open_file(self._file, os.O_RDONLY), "rb") as file,
        ):
            return json_values.parse(file.read(_MOST_BYTES), _Kept)
        return _Kept()


def _hash(text: str | bytes) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace") if isinstance(text, str) else text).hexdigest()
