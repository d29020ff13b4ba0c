"""The browsers in which the home is the owner's: each got a cookie for a code that ``nacre open`` had made."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from nacre.platform import private_files

BROWSERS = "browsers.json"
"""In the home: when each cookie ends, by its hash, so that a restart of the daemon ends none."""

CODE_SECONDS = 60.0
"""So long a code may be turned into a cookie, once."""

COOKIE_SECONDS = 90 * 86_400
_BYTES = 32
_MOST_BYTES = 1_000_000
_MOST = 200
"""So many browsers are kept; of more, those that end first go."""


class _Kept(msgspec.Struct, frozen=True):
    port: int = 0
    cookies: dict[str, float] = {}


class Browsers:
    """Codes, which this process alone knows, and cookies, of which the home keeps hashes."""

    def __init__(self, home: Path) -> None:
        self._file = home / BROWSERS
        self._guard = threading.Lock()
        self._codes: dict[str, float] = {}
        self.cookie = f"nacre_{_hash(os.path.realpath(home))[:8]}"
        """The name of the cookie: browsers send those of all ports of a host."""

    def make_code(self) -> str:
        """What one browser can turn into a cookie, within a minute."""
        code = secrets.token_urlsafe(_BYTES)
        now = time.monotonic()
        with self._guard:
            self._codes = {one: until for one, until in self._codes.items() if until > now}
            self._codes[_hash(code)] = now + CODE_SECONDS
        return code

    def redeem(self, code: str, port: int = 0) -> str | None:
        """The cookie for a code; ``None`` where it is not known, was used or is too old. Raises OSError."""
        with self._guard:
            until = self._codes.pop(_hash(code), 0.0)
            if until <= time.monotonic():
                return None
            made, now = secrets.token_urlsafe(_BYTES), time.time()
            living = sorted((until, name) for name, until in self._kept().cookies.items() if until > now)[-_MOST + 1 :]
            kept = _Kept(port, {name: until for until, name in living} | {_hash(made): now + COOKIE_SECONDS})
            private_files.write_file(self._file, msgspec.json.encode(kept))
            return made

    def knows(self, cookie: str) -> bool:
        """Whether it is the cookie of a browser that was not forgotten."""
        return self._kept().cookies.get(_hash(cookie), 0.0) > time.time()

    @property
    def port(self) -> int | None:
        """The port at which browsers know the home; ``None`` where there are none."""
        kept = self._kept()
        return kept.port if any(until > time.time() for until in kept.cookies.values()) else None

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
            return msgspec.json.decode(file.read(_MOST_BYTES), type=_Kept)
        return _Kept()


def _hash(text: str | bytes) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace") if isinstance(text, str) else text).hexdigest()
