"""Times as whole milliseconds since 1970, UTC: so the database and its notes hold them."""

from __future__ import annotations

from datetime import UTC, datetime


def to_ms(moment: datetime | None) -> int | None:
    """Milliseconds of a time; ``None`` stays ``None``."""
    return None if moment is None else round(moment.timestamp() * 1000)


def from_ms(value: int | None) -> datetime | None:
    """The time, aware UTC."""
    return None if value is None else at_ms(value)


def at_ms(value: int) -> datetime:
    """The time, aware UTC."""
    return datetime.fromtimestamp(value / 1000, UTC)
