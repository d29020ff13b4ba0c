"""``Nacre-Signature: t=<unix time>,v1=<HMAC-SHA256>``: a message comes from somebody who knows the secret, just now."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

HEADER = "Nacre-Signature"

WINDOW_SECONDS = 300
"""How far the time of a signature may lie from now, in both directions."""

_FORM = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A signature as it was sent: when it was made (Unix time) and what it is, in hexadecimal."""

    moment: int
    mac: str


class Signatures:
    """Signs with a secret, and checks what others signed with it."""

    def __init__(self, secret: str, clock: Callable[[], float]) -> None:
        self._secret = secret.encode()
        self._clock = clock
        self._began = int(clock())
        self._seen: dict[str, int] = {}

    def header(self, body: bytes) -> str:
        """The value of the header for a body that is sent now."""
        moment = int(self._clock())
        return f"t={moment},v1={self._mac(moment, body)}"

    def is_right(self, stamp: Stamp, message: bytes) -> bool:
        """Whether a message was signed with the secret, within the window."""
        is_now = abs(self._clock() - stamp.moment) <= WINDOW_SECONDS
        return hmac.compare_digest(self._mac(stamp.moment, message).encode(), stamp.mac.encode()) and is_now

    def is_first(self, stamp: Stamp) -> bool:
        """Whether a signature that is right comes for the first time; also not if it was made before the start."""
        now = self._clock()
        while self._seen and (oldest := next(iter(self._seen.items())))[1] < now - WINDOW_SECONDS:
            del self._seen[oldest[0]]
        is_first = stamp.mac not in self._seen and stamp.moment >= self._began
        self._seen.setdefault(stamp.mac, stamp.moment)
        return is_first

    def _mac(self, moment: int, message: bytes) -> str:
        return hmac.digest(self._secret, b"%d.%b" % (moment, message), "sha256").hex()


def stamp_of(headers: Sequence[str]) -> Stamp | None:
    """The one signature among the values of the header; none where there is none, several, or one of another form."""
    match = _FORM.fullmatch(headers[0]) if len(headers) == 1 else None
    return Stamp(int(match[1]), match[2]) if match else None
