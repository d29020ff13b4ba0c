"""When to commit without being asked, and the process that does it. A command pays a look at the clock for it."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta

from nacre.app.context import Context
from nacre.app.models import waits_for_models
from nacre.link.starting import start_process
from nacre.settings import Settings
from nacre.storage.times import to_ms
from nacre.vault.layout import GIT_FOLDER

COMMIT_LOCK = "commit.lock"
SYNC_LOCK = "sync.lock"
JUDGE_LOCK = "judge.lock"
_JUDGE_EVERY = timedelta(seconds=20)
KEPT_WITHOUT_GIT = 500
"""Where git is off or missing, the texts of so many operations are kept, at least."""


def is_due(context: Context) -> bool:
    """Whether it is time to commit in the background: something waits long enough, or much does.

    Never more often than once in ``git.commit_after_seconds``, and not where git is off or missing.
    """
    settings = context.settings
    if not settings["git.enabled"] or not settings["git.background"]:
        return False
    waiting, oldest = context.journal.waiting()
    if not waiting or oldest is None:
        return False
    patience = timedelta(seconds=settings["git.commit_after_seconds"])
    if waiting < settings["git.commit_after_operations"] and context.now() - oldest < patience:
        return False
    lock = settings.home / COMMIT_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    return tried is None or context.clock() - tried >= patience


def commit_in_background(context: Context) -> None:
    """Start a process that commits, if it is time. It keeps neither the caller waiting nor its pipes open.

    In a vault without a repository the repository is made here, once. Without git, the journal is kept short instead.
    """
    if not context.settings["git.enabled"] or shutil.which("git", path=context.settings.environ.get("PATH")) is None:
        _shorten_journal(context)
        return
    is_new = not context.vault.exists(GIT_FOLDER)
    if is_new and context.settings["git.background"] and context.journal.waiting()[0]:
        from nacre.app.committing import prepare  # once in the life of a home

        prepare(context)
    if not is_due(context):
        return
    (context.settings.home / COMMIT_LOCK).touch(mode=0o600)
    _start(context.settings, "commit", "--quiet")


def sync_in_background(context: Context) -> bool:
    """Start a process that syncs, if that is wanted and time; it commits, too. Nobody waits for the network."""
    settings = context.settings
    if not settings["sync.auto"] or not settings["git.enabled"] or not settings["git.background"]:
        return False
    lock = settings.home / SYNC_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    if tried and context.clock() - tried < timedelta(seconds=settings["sync.every_seconds"]):
        return False
    lock.touch(mode=0o600)
    _start(settings, "sync", "--quiet")
    return True


def judge_in_background(context: Context) -> None:
    """Start a process that has a model judge new memories, if any wait; no more often than every twenty seconds."""
    if not context.settings["contradiction.after_commands"] or not waits_for_models(context):
        return
    if not context.claims.due(to_ms(context.now()) or 0, 1):
        return
    lock = context.settings.home / JUDGE_LOCK
    tried = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else None
    if tried is None or abs(context.clock() - tried) >= _JUDGE_EVERY:
        lock.touch(mode=0o600)
        _start(context.settings, "conflicts", "judge", "--quiet", "--background")


def _start(settings: Settings, *arguments: str) -> None:
    start_process(str(settings.home), settings.environ, *arguments)


def _shorten_journal(context: Context) -> None:
    """Without git, keep the texts of the last operations, for undo."""
    if context.journal.waiting()[0] > 2 * KEPT_WITHOUT_GIT:
        with context.database.transaction():
            context.journal.keep_last(KEPT_WITHOUT_GIT)
