"""What all records share: times, and ids of sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

Record = dict[str, Any]


def stamp(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC; milliseconds only where there are any."""
    if moment is None:
        return None
    moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds") + "Z"


def split_session(session: str | None) -> tuple[str | None, str | None]:
    """The tool and its own id of ``<tool>:<id>``."""
    if not session:
        return None, None
    tool, _, native_id = session.partition(":")
    return tool, native_id
