"""Since when a writer is shown sessions: from when it was set, in whatever way."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from nacre.errors import SettingsInvalid
from nacre.extraction.coverage import QUIET, SINCE, is_unseen
from nacre.home.home import Home
from nacre.settings import Settings, write_setting
from nacre.spending.models import has_writer
from nacre.values.codec import stamp


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


def since_of(home: Home) -> str:
    """Since when the writer that is set is shown sessions: where nothing says so, from now on, and what waits for it is
    of that.
    """
    ends = [beginning(home.now())]
    for one in home.sessions.to_extract():
        with suppress(KeyError):  # forgotten since it was listed
            ended = home.sessions.get(one.row).ended if one.unwritten is not None else None
            ends += [stamp(ended)] if ended else []
    return home.settings.text(SINCE) or min(ends)


def begun(home: Home) -> Home:
    """The same home, where a writer of which its config file does not say so is shown sessions from now on."""
    if not is_unseen(home.settings):
        return home
    since = since_of(home)
    with suppress(OSError, SettingsInvalid):  # then it begins anew the next time
        write_setting(home.settings.config, SINCE, since)
    return replace(home, settings=home.settings.having(SINCE, since))
