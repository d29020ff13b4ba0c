"""Keep the vault in step with a remote: fetch, merge by memory and field, look for secrets, push."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from nacre.errors import (
    HistoryRewritten,
    InvalidInput,
    NacreError,
    RemoteMoved,
    RepositoryBusy,
    RepositoryUnusable,
    SecretFound,
    StoreBusy,
)
from nacre.git.remote import Remote, check_url
from nacre.git.repository import Head, PastCommit
from nacre.history.commit import UNWRITTEN, Committed, Held, commit_operations
from nacre.history.preparation import prepare, settled_head
from nacre.history.schedule import SYNC_LOCK
from nacre.home.home import Home
from nacre.home.redaction import clean_values
from nacre.memories.listing import write_listings
from nacre.memories.scan import catch_up
from nacre.platform.locks import FileLock
from nacre.sync.import_remote import forget_first, take_in
from nacre.sync.merge import Plan, operations_in, plan_join
from nacre.sync.requests import SyncRequest
from nacre.tombstones.erasure import erase_bytes
from nacre.values.codec import stamp
from nacre.vault.merge_notes import Note

TIMEOUT_SECONDS = 60.0

_TRIES = 5
_MOST_FINDS = 5
_READ_AT_ONCE = 500
_STATE = "sync"
_LONG = timedelta(days=1)


class State(StrEnum):
    """How a sync ended."""

    NO_REMOTE = "no_remote"
    UP_TO_DATE = "up_to_date"
    SYNCED = "synced"
    PLANNED = "planned"


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync did: operations sent and received, what was merged, what could not be committed here."""

    state: State
    remote: str | None = None
    url: str | None = None
    branch: str | None = None
    sent: int = 0
    received: int = 0
    notes: tuple[Note, ...] = ()
    held: tuple[Held, ...] = ()
    left_out: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LastSync:
    """How the last sync ended: when, and since when it fails with which words."""

    at: str
    succeeded: str | None = None
    failing_since: str | None = None
    message: str | None = None
    hint: str | None = None
    told: bool = False


def sync(home: Home, wanted: SyncRequest | None = None) -> Synced:
    """Commit what is pending, bring in what the remote has, send what it has not.

    Raises RemoteUnreachable, RemoteRefused, HistoryRewritten, SecretFound, RepositoryUnusable, GitUnavailable,
    EditConflict, StoreBusy. Nothing is lost then: the next sync goes on.
    """
    wanted = wanted or SyncRequest()
    if not home.settings.flag("git.enabled"):
        raise RepositoryUnusable("git is off, so there is nothing to sync", hint="nacre config set git.enabled true")
    with FileLock(home.settings.home / SYNC_LOCK, wanted.patience_seconds), _outcome_kept(home, wanted):
        committed = _commit(home, wanted)
        local = settled_head(home).branch or ""
        remote = _remote(home, wanted, local)
        if remote is None:
            return Synced(State.NO_REMOTE, held=committed.held, problems=tuple(home.problems))
        branch = remote.branch(local)
        done = Synced(State.UP_TO_DATE, remote.name, remote.url(), branch, held=committed.held)
        if wanted.dry_run:
            return _plan(home, remote, done, wanted)
        remote.follow(local, branch)
        done = _exchange(home, remote, done, wanted)
        write_listings(home)
        erase_bytes(home)
        return done


def sync_quietly(home: Home) -> None:
    """What runs in the background: how it ends is kept for ``nacre doctor``."""
    with contextlib.suppress(NacreError):
        sync(home, SyncRequest(timeout_seconds=TIMEOUT_SECONDS, patience_seconds=0))


def last_sync(home: Home) -> LastSync | None:
    """How the last sync ended, ``None`` before the first."""
    text = home.journal.git_state(_STATE)
    try:
        return LastSync(**json.loads(text)) if text else None
    except (ValueError, TypeError):  # the next one notes it anew
        return None


def long_failing(home: Home) -> LastSync | None:
    """A sync that has failed for a day, to be told once; ``None`` where there is nothing to tell."""
    last = last_sync(home)
    if last is None or last.told or not last.failing_since:
        return None
    if home.clock() - datetime.fromisoformat(last.failing_since) < _LONG:
        return None
    _keep(home, replace(last, told=True))
    return last


def _commit(home: Home, wanted: SyncRequest) -> Committed:
    if wanted.dry_run:
        prepare(home)
        return Committed(waiting=home.journal.waiting()[0])
    catch_up(home)
    return commit_operations(home)


def _remote(home: Home, wanted: SyncRequest, branch: str) -> Remote | None:
    """The remote that is set up, or the one that was asked for, which is set up now.

    Raises InvalidInput, RemoteRefused, RemoteUnreachable.
    """
    known = Remote(home.repository, home.settings.text("git.remote"), wanted.timeout_seconds)
    if wanted.remote is None:
        return known if known.url() else None
    named = replace(known, name=wanted.remote)
    if wanted.remote.replace("-", "").replace("_", "").isalnum() and named.url():
        return named
    url = check_url(wanted.remote, Path.cwd())
    if Path(url) == home.vault.root or home.vault.root in Path(url).parents:
        raise InvalidInput("the remote lies in the vault itself", hint="take a folder elsewhere")
    asked = replace(known, name=url)
    if wanted.dry_run:
        return asked
    if url != known.url():
        found = asked.branch(branch)  # an address that nobody answers at does not replace one that works
        known.set_url(url)
        if not known.followed(branch):
            known.follow(branch, found)
    return known


def _exchange(home: Home, remote: Remote, done: Synced, wanted: SyncRequest) -> Synced:
    """Bring in and send, again where somebody else was quicker."""
    reason = "the remote keeps moving"
    for _ in range(_TRIES):
        head = home.repository.head()
        theirs = remote.fetch(done.branch or "")
        rewritten_from = _rewritten_from(home, remote, theirs, wanted)
        if theirs and (rewritten_from or not home.repository.is_ancestor(theirs, head.commit)):
            if forgotten := forget_first(home, theirs):
                done = replace(done, notes=(*done.notes, *forgotten), held=_commit(home, wanted).held)
                head = home.repository.head()
            plan = plan_join(home, head, theirs, rewritten_from=rewritten_from, dry_run=False)
            waiting = {held.path: held.reason for held in done.held if held.reason != UNWRITTEN}
            obstacle = take_in(home, head, plan, waiting)
            done = _with_problems(done, home)
            done = replace(done, held=_commit(home, wanted).held)
            if obstacle:
                reason = obstacle
                continue
            done = _received(home, done, plan, head, theirs)
        done = _with_problems(done, home)
        try:
            return _send(home, remote, done, theirs)
        except RemoteMoved:
            _commit(home, wanted)
    raise RepositoryBusy(reason, hint="sync again in a moment; nothing was lost")


def _plan(home: Home, remote: Remote, done: Synced, wanted: SyncRequest) -> Synced:
    """What a sync would do now."""
    head = home.repository.head()
    theirs = remote.fetch(done.branch or "")
    waiting = home.journal.waiting()[0]
    rewritten_from = _rewritten_from(home, remote, theirs, wanted)
    if theirs and (rewritten_from or not home.repository.is_ancestor(theirs, head.commit)):
        plan = plan_join(home, head, theirs, rewritten_from=rewritten_from, dry_run=True)
        done = _received(home, done, plan, head, theirs)
    sent = len(operations_in(home.repository.history(theirs, head.commit))) if head.commit else 0
    return replace(done, state=State.PLANNED, sent=sent + waiting, problems=tuple(home.problems))


def _received(home: Home, done: Synced, plan: Plan, head: Head, theirs: str) -> Synced:
    received = len(operations_in(home.repository.history(head.commit, theirs)))
    return replace(
        done, state=State.SYNCED, received=done.received + received, notes=(*done.notes, *plan.notes),
        left_out=plan.left_out,
    )  # fmt: skip


def _with_problems(done: Synced, home: Home) -> Synced:
    return replace(done, problems=tuple(dict.fromkeys((*done.problems, *home.problems))))


def _send(home: Home, remote: Remote, done: Synced, theirs: str | None) -> Synced:
    """Push what the remote has not. Raises RemoteMoved, SecretFound, RemoteRefused, RemoteUnreachable."""
    head, branch = home.repository.head().commit, done.branch or ""
    if head is None:
        return done
    if head == theirs:
        remote.remember(head, branch)
        return done
    commits = list(home.repository.history(theirs, head))
    _refuse_secrets(home, commits, home.repository.new_blobs(head, theirs))
    sent = len(operations_in(commits))
    remote.push(head, branch)
    return replace(done, state=State.SYNCED, sent=sent)


def _rewritten_from(home: Home, remote: Remote, theirs: str | None, wanted: SyncRequest) -> str | None:
    """The commit the remote was at when somebody rewrote its history since. Raises HistoryRewritten."""
    synced = remote.synced() if theirs else None
    if synced is None or theirs is None or home.repository.is_ancestor(synced, theirs):
        return None
    if wanted.accept_rewritten:
        return synced
    raise HistoryRewritten(
        f"somebody rewrote the history at the remote: commit {synced[:8]}, which it had at the last sync, is gone",
        hint="nothing was changed. Look at it (git fetch, git log), then take it as it is and put what is new here on "
        "top: nacre sync --accept-rewritten",
    )


def _refuse_secrets(home: Home, commits: Sequence[PastCommit], blobs: Mapping[str, str]) -> None:
    """Look at everything that would be sent for the first time: files and messages. Raises SecretFound."""
    names = sorted(blobs)
    found: dict[str, str] = {}
    for start in range(0, len(names), _READ_AT_ONCE):
        for blob, data in home.repository.read(names[start : start + _READ_AT_ONCE]).items():
            rules = _secrets(home, data.decode("utf-8", "replace")) if b"\0" not in data[:8192] else ""
            if rules:
                found[blobs[blob]] = rules
    for path in set(blobs.values()):
        if rules := _secrets(home, path):
            found[home.redactor.clean(path)] = f"its name: {rules}"
    for past in commits:
        if rules := _secrets(home, past.message):
            found[f"the message of commit {past.id[:8]}"] = rules
    if found:
        told = "; ".join(f"{path} ({rules})" for path, rules in sorted(found.items())[:_MOST_FINDS])
        more = f" and {len(found) - _MOST_FINDS} more" if len(found) > _MOST_FINDS else ""
        raise SecretFound(
            f"nothing was sent, because what looks like a secret is in {told}{more}",
            hint="take it out, also of the history: nacre scrub; or say that it is none: redaction.allow",
        )


def _secrets(home: Home, text: str) -> str:
    return ", ".join(sorted(home.redactor.redact(text).found))


@contextlib.contextmanager
def _outcome_kept(home: Home, wanted: SyncRequest) -> Iterator[None]:
    """Remember how a sync ends, for ``nacre doctor`` and the next command."""
    if wanted.dry_run:
        yield
        return
    before = last_sync(home) or LastSync("")
    now = stamp(home.now())
    try:
        yield
    except NacreError as error:
        since = before.failing_since or now
        _keep(home, replace(before, at=now, failing_since=since, message=error.message, hint=error.hint))
        raise
    _keep(home, LastSync(now, now))


def _keep(home: Home, last: LastSync) -> None:
    values = clean_values(home.redactor, {name: getattr(last, name) for name in LastSync.__slots__})
    with contextlib.suppress(StoreBusy), home.database.transaction():
        home.journal.set_git_state(_STATE, json.dumps(values))
