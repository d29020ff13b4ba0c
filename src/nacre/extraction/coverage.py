"""Which sessions and memories a writer may be shown."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from fnmatch import fnmatch

from nacre.errors import ModelRefused
from nacre.home.exclusions import Exclusions
from nacre.home.home import Home
from nacre.llm.providers import is_on_this_machine, provider_of
from nacre.settings import Settings
from nacre.spending.models import has_writer, name_for
from nacre.text.open_weights import OWN, has_open_weights, is_called_local
from nacre.values.filters import SessionFilter
from nacre.values.memory import Memory
from nacre.values.model_calls import Task
from nacre.values.session import SessionKind, StoredSession

SINCE = "writer.since"

QUIET = timedelta(minutes=30)
"""So long after its last turn a session counts as over: before, the owner may yet object to what was reported last."""

_LATELY, _MOST = timedelta(days=7), 1000


def is_covered(settings: Settings, stored: StoredSession, writer: str) -> bool:
    """Whether a session may be shown to a writer, by its name: it is of no tool and no project that is left out, from
    nacre or from writers, and one that the owner had with a model on this machine goes to no other one.
    """
    is_apart = is_of_local_model(settings, stored) and not _runs_here(settings, writer)
    return not is_apart and _is_open(settings, stored)


def _is_open(settings: Settings, stored: StoredSession) -> bool:
    """Whether a session is of no tool and no project that is left out, from nacre or from writers."""
    if Exclusions(settings).leave_out(stored):
        return False
    if stored.session.tool in settings.texts("writer.exclude_tools"):
        return False
    return not any(fnmatch(stored.project or "", pattern) for pattern in settings.texts("writer.exclude_projects"))


def is_quiet(home: Home, stored: StoredSession) -> bool:
    """Whether a session has been quiet so long that nobody will answer what was said last."""
    return stored.ended is None or home.now() - stored.ended >= QUIET


def is_agreed(settings: Settings, stored: StoredSession, writer: str) -> bool:
    """Whether a session is covered, and ended after the owner set a writer."""
    if is_unseen(settings):
        return False
    return _is_after(settings, stored) and is_covered(settings, stored, writer)


def _is_after(settings: Settings, stored: StoredSession) -> bool:
    since = settings.text(SINCE)
    return not since or stored.ended is None or stored.ended >= datetime.fromisoformat(since).astimezone()


def is_unseen(settings: Settings) -> bool:
    """Whether the config file has a writer and does not say since when it is shown sessions, as it was edited by hand:
    that is noted as soon as nacre sees it. Who has one by the environment says nothing of that, and means all.
    """
    is_of_file = settings.values["models.background"].origin == str(settings.config)
    return is_of_file and has_writer(settings) and not settings.text(SINCE)


def awaiting(home: Home) -> int:
    """How many sessions are to be shown to the writer. Of an older one the rest waits until the owner asks for it."""
    writer, count = name_for(home, Task.EXTRACTION), 0
    for one in home.sessions.to_extract():
        with suppress(KeyError):  # forgotten since it was listed
            count += one.unwritten is not None and is_agreed(home.settings, home.sessions.get(one.row), writer)
    return count


def may_be_shown(home: Home, memory: Memory, writer: str) -> bool:
    """Whether a writer may be shown a memory: it is of no project and of no session that is left out."""
    patterns, exclusions = home.settings.texts("writer.exclude_projects"), Exclusions(home.settings)
    if any(fnmatch(memory.project or "", pattern) for pattern in patterns) or exclusions.name(memory.project or ""):
        return False
    named = {one for one in (memory.source.session, *(one.session for one in memory.confirmed)) if one}
    excluded = {*home.settings.texts("writer.exclude_tools"), *exclusions.tools}
    if any(one.partition(":")[0] in excluded for one in named):
        return False
    sessions = [found for one in named for found in home.sessions.find(one)]
    return all(is_covered(home.settings, one, writer) for one in sessions)


def kept_here(home: Home, writer: str) -> list[str]:
    """The models of the last week's sessions that a writer would be shown if it were on the owner's machine, where
    they may run: one a session.
    """
    if _runs_here(home.settings, writer):
        return []
    wanted = SessionFilter(since=home.now() - _LATELY, kind=SessionKind.MAIN)
    latest = home.sessions.newest(wanted, limit=_MOST)
    found = [one for one in latest if _is_open(home.settings, one) and _is_after(home.settings, one)]
    return [(one.session.model or "").removeprefix(OWN) for one in found if is_of_local_model(home.settings, one)]


def is_of_local_model(settings: Settings, stored: StoredSession) -> bool:
    """Whether a model answered in a session that may run on the owner's machine: one whose weights anybody can have, or
    one whose provider is there, or is not known to be elsewhere; where none is named, one whose name says so.
    """
    model = (stored.session.model or "").lower()
    if has_open_weights(model) and not model.startswith(OWN):
        return True
    for sign in (":", "/"):
        provider, _, rest = model.removeprefix(OWN).partition(sign)
        with suppress(ModelRefused):
            if rest:
                return is_on_this_machine(provider_of(settings, provider))
    return is_called_local(model)


def _runs_here(settings: Settings, writer: str) -> bool:
    try:
        return is_on_this_machine(provider_of(settings, writer.partition(":")[0]))
    except ModelRefused:
        return False
