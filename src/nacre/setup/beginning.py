"""Since when a writer is shown sessions: from when it was set, in whatever way."""

from __future__ import annotations

from datetime import datetime

from nacre.extraction.coverage import QUIET
from nacre.settings import Settings
from nacre.spending.models import has_writer
from nacre.values.codec import stamp

SINCE = "writer.since"


def beginning(now: datetime) -> str:
    """The end of sessions that a writer is shown at least, which is set now: what is being worked on is one of them."""
    return stamp(now - QUIET)


def begins(before: Settings, after: Settings, now: datetime) -> dict[str, str]:
    """What a change of settings sets besides, where there is a writer then and was none: since when it is
    shown sessions, unless that is set.

    What is over then is shown to it only where ``writer.since`` is set to an earlier time.
    """
    is_new = has_writer(after) and not has_writer(before)
    return {SINCE: beginning(now)} if is_new and not after.text(SINCE) else {}
