"""When a session is over, and when a writer is asked about it again."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

from nacre.extraction.coverage import is_agreed, is_quiet
from nacre.extraction.with_model import is_left_alone
from nacre.home.home import Home
from nacre.spending.models import name_for
from nacre.spending.permission import is_set, rests
from nacre.values.model_calls import Task
from nacre.values.session import StoredSession, Unlearned

ASKED_AGAIN = timedelta(hours=1)
"""So long after it could not be asked a writer is asked again, by itself."""

NOT_YET = datetime.fromtimestamp(0, UTC)
"""When a writer was asked about a session that is over, and of which it rested: it is asked as soon as it may."""


def is_over(home: Home, one: Unlearned, stored: StoredSession) -> bool:
    """Whether nobody will answer what was said last in a session: it is quiet, or was over when its end was read."""
    return is_quiet(home, stored) or (one.asked is not None and one.begin >= one.end)


def is_due(home: Home) -> bool:
    """Whether a session is over by now that extraction has not seen to its end, or that a writer may be shown."""
    if not home.settings.flag("extraction.enabled"):
        return False
    now, is_asking = home.now(), is_set(home) and not (rests(home.settings) or is_left_alone(home))
    writer = name_for(home, Task.EXTRACTION)
    for one in home.sessions.to_extract():
        is_left = is_asking and (one.asked is None or now - one.asked >= ASKED_AGAIN)
        if one.begin >= one.end and not is_left:
            continue
        with contextlib.suppress(KeyError):  # forgotten since it was listed
            stored = home.sessions.get(one.row)
            is_its = one.begin < one.end or is_agreed(home.settings, stored, writer)
            if is_its and is_over(home, one, stored):
                return True
    return False
