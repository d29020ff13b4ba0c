"""Ids and hashes. Time and randomness are injected, so that tests decide them."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from nacre.base.times import UNKNOWN_TIME, is_known

Clock = Callable[[], datetime]
"""Returns the present as aware UTC."""

Ids = Callable[[], str]
"""Returns a new UUIDv7 in canonical form."""


def utc_now() -> datetime:
    """The present as aware UTC."""
    return datetime.now(UTC)


def to_millisecond(moment: datetime) -> datetime:
    """A moment without what is below a millisecond, as nacre writes times."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def uuid7_source(clock: Clock = utc_now, random: Callable[[int], bytes] = os.urandom) -> Ids:
    """Make a source of UUIDv7 (RFC 9562): 48 bits of milliseconds, then a counter seeded at random, then random bits.

    Ids of one source never repeat and never go back, also within a millisecond.
    """
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
            tail = int.from_bytes(random(8)) & 0x3FFF_FFFF_FFFF_FFFF
            value = last_millisecond << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | tail
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    return new_id


def _blake2b(data: bytes, **options: Any) -> hashlib.blake2b:
    return hashlib.blake2b(data, **options)


def turn_hash(role: str, text: str, occurrence: int) -> str:
    """A turn's id where the tool gives none: the same words said again in a session get the next occurrence."""
    body = f"{role}\n{occurrence}\n{text}".encode("utf-8", errors="replace")
    return _blake2b(body, digest_size=8).hexdigest()


def bytes_hash(data: bytes) -> bytes:
    """16 bytes that identify some bytes."""
    return _blake2b(data, digest_size=16).digest()


def content_hash(text: str) -> bytes:
    """16 bytes that identify a text."""
    return bytes_hash(text.encode("utf-8", errors="replace"))


def keyed_hash(key: bytes, *parts: str) -> str:
    """16 hex digits that tell some texts from others, and nothing of them to whoever lacks the key."""
    joined = "\0".join(parts).encode("utf-8", errors="replace")
    return _blake2b(joined, digest_size=8, key=key).hexdigest()


def to_ms(moment: datetime | None) -> int | None:
    """Milliseconds of a time; ``None`` stays ``None``."""
    return None if moment is None else round(moment.timestamp() * 1000)


def from_ms(value: int | None) -> datetime | None:
    """The time, aware UTC; ``None`` where it is unknown."""
    moment = None if value is None else at_ms(value)
    return None if moment == UNKNOWN_TIME and value else moment


def at_ms(value: int) -> datetime:
    """The time, aware UTC; ``UNKNOWN_TIME`` for a value that is no known time."""
    try:
        moment = datetime.fromtimestamp(value / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return UNKNOWN_TIME
    return moment if is_known(moment) else UNKNOWN_TIME


def first_id(millisecond: int) -> str:
    """The least UUIDv7 that was made at a time (epoch milliseconds)."""
    digits = f"{millisecond:012x}"
    return f"{digits[:8]}-{digits[8:]}"
