"""Ids, hashes and epoch milliseconds. Time and randomness can be injected for tests."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from nacre.base.times import UNKNOWN_TIME, is_known

Clock = Callable[[], datetime]
"""A function that returns the current time as aware UTC."""

Ids = Callable[[], str]
"""A function that returns a new UUIDv7 in canonical form."""


def utc_now() -> datetime:
    """Return the current time as an aware datetime in UTC."""
    return datetime.now(UTC)


def to_millisecond(moment: datetime) -> datetime:
    """Truncate a time to milliseconds, the resolution of stored times."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def uuid7_source(clock: Clock = utc_now, random: Callable[[int], bytes] = os.urandom) -> Ids:
    """Return a function for new UUIDv7 ids (RFC 9562), which ascend even within a millisecond."""
    lock = threading.Lock()
    last_millisecond = -1
    counter = 0

    def new_id() -> str:
        nonlocal last_millisecond, counter
        with lock:
            millisecond = int(clock().timestamp() * 1000)
            if millisecond > last_millisecond:
                last_millisecond = millisecond
                counter = int.from_bytes(random(2)) & 0x3FF
            else:
                counter += 1
                if counter > 0xFFF:
                    last_millisecond, counter = last_millisecond + 1, 0
            return uuid7(last_millisecond, counter << 64 | int.from_bytes(random(8)))

    return new_id


def uuid7(millisecond: int, bits: int) -> str:
    """Return a UUIDv7 for a time in epoch milliseconds and random ``bits``."""
    tail = (bits >> 64 & 0xFFF) << 64 | 0b10 << 62 | bits & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{millisecond << 80 | 0x7 << 76 | tail:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def turn_hash(role: str, text: str, occurrence: int) -> str:
    """Return an id for a turn without one. ``occurrence`` distinguishes identical turns."""
    body = f"{role}\n{occurrence}\n{text}".encode("utf-8", errors="replace")
    return hashlib.blake2b(body, digest_size=8).hexdigest()


def bytes_hash(data: bytes) -> bytes:
    """Return a 16-byte hash of binary data."""
    return hashlib.blake2b(data, digest_size=16).digest()


def content_hash(text: str) -> bytes:
    """Return a 16-byte hash of a text."""
    return bytes_hash(text.encode("utf-8", errors="replace"))


def short_hash(*parts: str) -> str:
    """Return a hash of strings as 16 hex digits."""
    return content_hash("\0".join(parts)).hex()[:16]


def keyed_hash(key: bytes, *parts: str) -> str:
    """Return a hash of strings as 16 hex digits, which reveal nothing without the key."""
    joined = "\0".join(parts).encode("utf-8", errors="replace")
    return hashlib.blake2b(joined, digest_size=8, key=key).hexdigest()


def to_ms(moment: datetime | None) -> int | None:
    """Convert a time to epoch milliseconds, or ``None`` to ``None``."""
    return None if moment is None else round(moment.timestamp() * 1000)


def from_ms(value: int | None) -> datetime | None:
    """Convert epoch milliseconds to a UTC time, or to ``None`` if unknown."""
    moment = None if value is None else at_ms(value)
    return None if moment == UNKNOWN_TIME and value else moment


def at_ms(value: int) -> datetime:
    """Convert epoch milliseconds to a UTC time, or to ``UNKNOWN_TIME`` if out of range."""
    try:
        moment = datetime.fromtimestamp(value / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return UNKNOWN_TIME
    return moment if is_known(moment) else UNKNOWN_TIME


def first_id(millisecond: int) -> str:
    """Return the lowest possible UUIDv7 for a time in epoch milliseconds."""
    digits = f"{millisecond:012x}"
    return f"{digits[:8]}-{digits[8:]}"
