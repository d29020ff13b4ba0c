"""When to commit without being asked, and the process that does it. A command pays a look at the clock for it."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta

from nacre.history.preparation import prepare
from nacre.home.home import Home
from nacre.link.start import start_process
from nacre.platform.ids import to_ms
from nacre.settings import Settings
from nacre.spending.models import waits_for_models
from nacre.vault.layout import GIT_FOLDER

COMMIT_LOCK = "commit.lock"
SYNC_LOCK = "sync.lock"
JUDGE_LOCK = "judge.lock"
REMOTE_LOCK = "remote.lock"
_JUDGE_EVERY = timedelta(seconds=20)
KEPT_WITHOUT_GIT = 500
"""Where git is off or missing, the texts of so many operations are kept, at least."""


def is_due(home: Home) -> bool:
    """Whether it is time to commit in the background: something waits long enough, or much does.

    Never more often than once in ``git.commit_after_seconds``, and not where git is off or missing.
    """
    settings = home.settings
    if not settings.flag("git.enabled") or not settings.flag("git.background"):
        return False
    waiting, oldest = home.journal.waiting()
    if not waiting or oldest is None:
        return False
    patience = timedelta(seconds=settings.whole("git.commit_after_seconds"))
    if waiting < settings.whole("git.commit_after_operations") and home.now() - oldest < patience:
        return False
    lock = settings.home / COMMIT_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    return tried is None or home.clock() - tried >= patience


def commit_in_background(home: Home) -> None:
    """Start a process that commits, if it is time. It keeps neither the caller waiting nor its pipes open.

    In a vault without a repository the repository is made here, once. Without git, the journal is kept short instead.
    """
    if not home.settings.flag("git.enabled") or shutil.which("git", path=home.settings.environ.get("PATH")) is None:
        _shorten_journal(home)
        return
    is_new = not home.vault.exists(GIT_FOLDER)
    if is_new and home.settings.flag("git.background") and home.journal.waiting()[0]:
        prepare(home)
    if not is_due(home):
        return
    (home.settings.home / COMMIT_LOCK).touch(mode=0o600)
    _start(home.settings, "commit", "--quiet")


def sync_in_background(home: Home) -> bool:
    """Start a process that syncs, if that is wanted and time; it commits, too. Nobody waits for the network."""
    settings = home.settings
    if not settings.flag("sync.auto") or not settings.flag("git.enabled") or not settings.flag("git.background"):
        return False
    lock = settings.home / SYNC_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    if tried and home.clock() - tried < timedelta(seconds=settings.whole("sync.every_seconds")):
        return False
    lock.touch(mode=0o600)
    _start(settings, "sync", "--quiet")
    return True


def exchange_in_background(home: Home) -> None:
    """Start a process that exchanges with the server that the home is kept in step with, if that is time."""
    settings = home.settings
    if not settings.text("remote.url") or home.database.is_server:
        return
    lock = settings.home / REMOTE_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    if tried is None or abs(home.clock() - tried) >= timedelta(seconds=settings.whole("remote.every_seconds")):
        lock.touch(mode=0o600)
        _start(settings, "remote", "sync", "--quiet")


def judge_in_background(home: Home) -> None:
    """Start a process that has a model judge new memories, if any wait; no more often than every twenty seconds."""
    if not home.settings.flag("contradiction.after_commands") or not waits_for_models(home):
        return
    if not home.claims.due(to_ms(home.now()) or 0, 1):
        return
    lock = home.settings.home / JUDGE_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    if tried is None or abs(home.clock() - tried) >= _JUDGE_EVERY:
        lock.touch(mode=0o600)
        _start(home.settings, "conflicts", "judge", "--quiet", "--background")


def _start(settings: Settings, *arguments: str) -> None:
    start_process(str(settings.home), settings.environ, *arguments)


def _shorten_journal(home: Home) -> None:
    """Without git, keep the texts of the last operations, for undo."""
    if home.journal.waiting()[0] > 2 * KEPT_WITHOUT_GIT:
        with home.database.transaction():
            home.journal.keep_last(KEPT_WITHOUT_GIT)
