"""Local days and moments. ``zone`` is the machine's own where none is given."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta, tzinfo

UNKNOWN = "unknown"
_DAY_LENGTH = len("2026-11-20")
UNKNOWN_TIME = datetime.fromtimestamp(0, UTC)


def day_interval(first: date, last: date | None = None, zone: tzinfo | None = None) -> tuple[datetime, datetime]:
    """Return the half-open interval in UTC of a local day, or of all days from ``first`` to ``last``.

    A day lasts 23 or 25 hours where the clocks change. Raises OverflowError outside the calendar.
    """
    following = (last or first) + timedelta(days=1)
    return in_utc(datetime.combine(first, time()), zone), in_utc(datetime.combine(following, time()), zone)


def day_of(moment: datetime, zone: tzinfo | None = None) -> date:
    """Return the local day of a moment."""
    return (localised(moment, zone) or moment).date()


def in_utc(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """Return a moment in UTC; one without a zone is local. Raises OverflowError outside the calendar."""
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    return moment.astimezone(UTC)


def parsed(text: str) -> datetime | None:
    """Return an ISO 8601 time that a program wrote, in UTC; ``None`` if it is none, or unknown.

    A time without a zone is in UTC, a day begins at the local midnight.
    """
    try:
        moment = datetime.fromisoformat(text)
        if not is_known(moment):
            return None
        return in_utc(moment.replace(tzinfo=UTC) if moment.tzinfo is None and len(text) > _DAY_LENGTH else moment)
    except (OverflowError, ValueError):
        return None


def localised(moment: datetime, zone: tzinfo | None = None) -> datetime | None:
    """Return a moment in local time, or ``None`` where it is unknown, or is not a time that can be shown."""
    try:
        return moment.astimezone(zone) if is_known(moment) else None
    except (OverflowError, OSError, ValueError):  # the system knows no local time for it
        return None


def is_known(moment: datetime) -> bool:
    """Return False for the values that programs write instead of a time that they do not know."""
    return MINYEAR < moment.year < MAXYEAR and moment != UNKNOWN_TIME


def shown(moment: date, form: str) -> str:
    """Return a day, or a moment in local time, for a reader."""
    local = localised(moment) if isinstance(moment, datetime) else moment
    return local.strftime(form) if local else UNKNOWN


def shown_day(moment: date) -> str:
    """Return a day, or the local day of a moment, for a reader."""
    return shown(moment, "%Y-%m-%d")


def shown_minute(moment: datetime) -> str:
    """Return a moment for a reader, in local time."""
    return shown(moment, "%Y-%m-%d %H:%M")
