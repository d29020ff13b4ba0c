"""The time zone of this process, in words of a server."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from nacre.platform.environment import environment


def local_zone() -> str:
    """Its name, by which a server knows its summers; where it has none, how far it is from UTC now."""
    now = datetime.now(UTC)
    offset = now.astimezone().utcoffset() or timedelta()
    for name in (
        environment().get("TZ", "").removeprefix(":"),
        os.path.realpath("/etc/localtime").partition("zoneinfo/")[2],
    ):
        try:
            if name and now.astimezone(ZoneInfo(name)).utcoffset() == offset:
                return name
        except (ValueError, LookupError, OSError):
            continue
    minutes = offset // timedelta(minutes=1)
    told = f"{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    return f"<local>{'-' if minutes >= 0 else '+'}{told}"
