"""Health checks of the installation and the home, traces, and the status page.

The first checks detect changes in a tool's format: unknown records, and sessions that suddenly lack
user messages.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby, takewhile
from pathlib import Path
from typing import Annotated

from nacre import __version__
from nacre.base import files as private_files
from nacre.base import json, link, plugins
from nacre.base.bounds import bounds
from nacre.base.environment import install_hint
from nacre.base.frozen import frozen
from nacre.base.locks import is_held
from nacre.base.text import count, shorten
from nacre.base.times import shown_day, shown_minute
from nacre.care import autostart
from nacre.care import proofs as prove
from nacre.care.story import Story, latest_memories, story
from nacre.context.effects import Effects, count_effects
from nacre.data import history
from nacre.data import sync as data_sync
from nacre.errors import NacreError, NotFoundError, UnusableStoreError, refuse_several
from nacre.home import archive
from nacre.home.home import Home, open_home, open_to_read
from nacre.home.location import projects
from nacre.home.spending import daily_budget, embedder_of, fold_notes, noted_calls, refusal
from nacre.home.views import Overview, SessionLine
from nacre.hosts import verify
from nacre.hosts.ways import found_hosts, hooks_start_daemon, load
from nacre.llm.credentials import place_for, provider_of
from nacre.memories import edit, usage
from nacre.operations import operation
from nacre.protocols import RemoteEmbedder
from nacre.recall import scoring
from nacre.recall.pins import PinCheck, broken_pins
from nacre.sessions.search import opening_of
from nacre.settings import Settings
from nacre.setup import chores, models
from nacre.store import packs
from nacre.store.schema import UNREADABLE
from nacre.store.sqlite import engine_version
from nacre.values.fields import Limit
from nacre.values.memory import Memory, SessionFilter
from nacre.values.models import Call
from nacre.values.recall import Filter
from nacre.values.reports import FAILURE, OK, WARNING, Check, Following, OnProgress
from nacre.values.session import MainSession, SessionKind, Task
from nacre.vault import files

FEWEST_NEW = 4
"""Minimum number of consecutive sessions without user messages. Fewer can occur by chance."""

FEWEST_BEFORE = 8
"""Minimum number of earlier sessions that show a tool's usual behaviour."""

ODDS = 0.001
"""Maximum probability that sessions lack user messages by chance."""

_COMPARED_SESSIONS = 80
_MAX_LISTED_RECORDS = 8


_REPORTABLE = re.compile(
    r"(?:(?:role|field|block|part|message|content|sender|bubble|response|no) )?[\w./$:-]{1,60}"
)
"""Pattern for names of records, fields and roles that cannot be transcript text."""


def format_checks(home: Home) -> Iterator[Check]:
    """Report unknown records in transcripts, and sessions without user messages.

    The reports contain no transcript text, so that users can copy them into an issue.
    """
    versions = home.sessions.versions()
    counts: dict[tuple[str, str], Counter[str]] = {}
    for file in home.sessions.seen_files():
        version = versions.get(file.path, "")
        shown_version = version if _REPORTABLE.fullmatch(version) else ""
        odd = counts.setdefault((file.tool, shown_version), Counter())
        for name, number in file.unknown.items():
            odd[name if _REPORTABLE.fullmatch(name) else "other"] += number
        odd["unreadable or too long lines"] += file.corrupt
    for (tool, version), odd in sorted(counts.items()):
        listed = [f"{name} ({number})" for name, number in odd.most_common() if number]
        if listed:
            more = len(listed) - _MAX_LISTED_RECORDS
            listed[_MAX_LISTED_RECORDS:] = [f"{more} more kinds"] if more > 0 else []
            label = f"{tool} {version}".strip()
            yield Check(
                f"format {tool}",
                WARNING,
                f"unknown records in {label}: {', '.join(listed)}",
                f"update nacre ({__version__}), or copy this line into an issue",
            )
    yield from _silent_sessions(home.sessions.main_sessions(_COMPARED_SESSIONS))


def _silent_sessions(sessions: Sequence[MainSession]) -> Iterator[Check]:
    for tool, group in groupby(sessions, key=lambda session: session.tool):
        listed = list(group)
        silent = list(takewhile(lambda session: not session.owner_spoke, listed))
        before = listed[len(silent) :]
        if not is_sudden(len(silent), len(before), sum(session.owner_spoke for session in before)):
            continue
        versions = sorted({session.version for session in silent if session.version})
        label = f"{tool} {', '.join(versions)}" if versions else tool
        spoke = sum(session.owner_spoke for session in before)
        yield Check(
            f"format {tool}",
            "warning",
            f"the last {len(silent)} sessions of {label} contain none of your messages; {spoke} of {len(before)} "
            "before did",
            f"the format may have changed: inspect a session (nacre sessions list --tool {tool}) and check for a "
            "newer nacre",
        )


def is_sudden(silent: int, before: int, spoke: int) -> bool:
    """Return True if a tool has probably stopped recording user messages.

    ``spoke`` of ``before`` earlier sessions have user messages, but none of the latest ``silent``
    ones. By Laplace's rule, a session has none with the probability ``1 - (spoke + 1) / (before +
    2)``.
    """
    if silent < FEWEST_NEW or before < FEWEST_BEFORE:
        return False
    return float((1 - (spoke + 1) / (before + 2)) ** silent) < ODDS


# -- Sync with git and with a server ---------------------------------------------------------------


def sync(home: Home) -> Iterator[Check]:
    """Report whether the last sync succeeded."""
    last = data_sync.last_sync(home) if home.settings.flag("git.enabled") else None
    if last and last.failing_since:
        yield _warning(f"failing since {last.failing_since}: {last.message}", last.hint)
    elif last:
        yield _ok(f"last {last.succeeded}")


# -- Quick checks of the ledger, the git history and the archive -----------------------------------
# They have a time limit and only sample large data.


_LEDGER_BYTES = 4_000_000
_ARCHIVE_SECONDS = 1.0
_DAY_SECONDS = 86_400


def damaged_ledger(home: Home) -> Iterator[Check]:
    """Report invalid lines in the last part of the ledger."""
    data = home.ledger()
    start = data.find(b"\n", len(data) - _LEDGER_BYTES) + 1 if len(data) > _LEDGER_BYTES else 0
    broken = files.broken_lines(data[start:])
    if broken:
        number = data.count(b"\n", 0, start) + broken[0]
        finding = f"{len(broken):,} of its lines are not entries, first line {number:,}"
        yield _warning(finding, f"correct or remove them in {home.vault.root}/{files.LEDGER}")


def damaged_history(home: Home) -> Iterator[Check]:
    """Report whether git cannot read the latest commits."""
    repository = home.repository
    if not home.settings.flag("git.enabled") or not repository.exists:
        return
    try:
        repository.check()
        damage = (
            repository.recent_damage() if repository.is_whole else "its creation was interrupted"
        )
    except NacreError as error:
        yield _failure(error.message, error.hint)
        return
    if damage:
        finding = f"the git history is damaged: {damage}"
        yield _failure(
            finding,
            "nacre admin doctor --deep shows the missing objects; get them from a clone or a backup",
        )


def damaged_archive(home: Home) -> Iterator[Check]:
    """Report damaged packs. The time is limited, so each day begins with another pack."""
    states = [state for state in home.archive.all() if state.pack]
    first = int(home.clock().timestamp()) // _DAY_SECONDS % max(1, len(states))
    until = time.monotonic() + _ARCHIVE_SECONDS
    damaged = []
    for number, state in enumerate([*states[first:], *states[:first]]):
        if archive.is_cut(home, state) or (
            time.monotonic() < until and archive.damage(home, state)
        ):
            damaged.append(state.path)
        if number % 100 == 0 and time.monotonic() > 2 * _ARCHIVE_SECONDS + until:
            break
    if damaged:
        finding = f"{len(damaged):,} of its packs are damaged, including {damaged[0]}"
        yield Check("archive", FAILURE, finding, "nacre admin doctor --deep --repair")


# -- Readers of sessions ---------------------------------------------------------------------------
# A writer only sees sessions that were read.


NOTHING = "nothing automatically; run nacre ingest, or nacre init to connect your agents"
"""Text shown if sessions are read only on request."""


def readers(settings: Settings) -> tuple[str, ...]:
    """Return the programs that read sessions: hooks of connected agents, and the running daemon."""
    wired = tuple(dict.fromkeys(wish.host for wish in load(settings.home).wishes))
    names = [f"hooks from nacre init in {', '.join(wired)}"] if wired else []
    try:
        follows = bool(link.ask(settings.home, "hello", {}, seconds=1.0).get("following"))
    except (link.DaemonAwayError, link.DaemonRefusedError):
        follows = is_held(settings.home / link.LOCK)  # a busy daemon
    if follows:
        names.append("the daemon while running")
    return tuple(names)


def in_words(names: Sequence[str]) -> str:
    """Join the names of reading programs into a phrase."""
    return "; ".join(names) or NOTHING


# -- Models in the background ----------------------------------------------------------------------


def writer(home: Home) -> Iterator[Check]:
    """Report the state of the background writer and how many sessions wait for it."""
    state = models.status_writer(home)
    if state.state == "off":
        yield _ok("none: only your explicit statements are stored (nacre writer set)")
        return
    use = (
        f"{state.calls_today} calls today"
        if state.limit is None
        else f"{state.tokens_today:,} of {state.limit:,} tokens today"
    )
    finding = (
        f"{state.writer}, {models.STATES[state.state]}, {use}; sessions waiting: {state.waiting}"
    )
    if state.problem:
        finding += f"; {state.problem}"
    if state.state == "ready":
        finding += f"; sessions are read by {in_words(readers(home.settings))}"
    is_well = state.state == "ready" or not (state.problem or state.waiting)
    yield Check(
        "writer",
        OK if is_well else WARNING,
        finding,
        None if is_well else state.hint or "nacre writer",
    )


# -- Doctor ----------------------------------------------------------------------------------------


_LOW_DISK_BYTES = 500_000_000
_STALE_DAYS = 14
_STALE_TODO = timedelta(days=30)
"""Time after which an open todo is stale, unless it is restated or recalled."""

_EMBED_TIMEOUT_SECONDS = 10.0
_STALE_LOCK_SECONDS = 600
_MAX_NAMED = 5
_RECENT_PERIOD = timedelta(hours=1)
_LATE_CHORE_SECONDS = 3_600.0
_REPORT_CHORE_SECONDS = 7 * 86_400.0


@operation("doctor")
def doctor(
    home: Home, *, repair: Annotated[bool, bounds("Repair permissions.")] = False
) -> list[Check]:
    """Check the installation and the home. Every finding that is not ok has a remedy."""
    return [
        *installation(home, repair=repair),
        *_run_checks(
            home,
            {
                "database": _integrity,
                "vault": _parity,
                "changes": _lost_memories,
                "forgetting": _forgetting,
                "history": _history,
                "sync": sync,
                "chats": _chats,
            },
        ),
        *_plugin_checks(home),
        *contents(home),
    ]


def _chats(home: Home) -> list[Check]:
    senders = home.sessions.unknown_senders() if not home.settings.texts("owner.identities") else []
    if not senders:
        return []
    names = ", ".join(f"{name} ({count:,})" for name, count in senders[:_MAX_NAMED])
    return [
        _warning(
            f"nacre does not learn from messages by: {names}",
            "if one of them is you: nacre config set owner.identities '[\"telegram:ID\"]'; see docs/adapters.md",
        )
    ]


def _plugin_checks(home: Home) -> Iterator[Check]:
    looks = plugins.load_usable_plugins(plugins.CHECKS)
    broken = [error for group in plugins.GROUPS for error in plugins.broken_plugins(group)]
    if broken:
        yield Check("plugins", FAILURE, broken[0].message, broken[0].hint)
    yield from _run_checks(home, looks)
    needed = {
        "gateway": home.settings["gateway.channels"] or home.settings.flag("gateway.enabled"),
        "server": home.settings.text("remote.url"),
    }
    for name, is_needed in needed.items():
        if is_needed and name not in looks:
            yield Check(name, WARNING, "it is not installed", install_hint(name))


_Look = Callable[[Home], Check | Iterable[Check]]


def _ok(detail: str) -> Check:
    return Check("", OK, detail)


def _warning(detail: str, hint: str | None) -> Check:
    return Check("", WARNING, detail, hint)


def _failure(detail: str, hint: str | None) -> Check:
    return Check("", FAILURE, detail, hint)


def _run_checks(home: Home, looks: Mapping[str, _Look]) -> Iterator[Check]:
    # An error that a check raises becomes its result.
    for name, look in looks.items():
        try:
            result = look(home)
            checks = [result] if isinstance(result, Check) else list(result)
        except (UnusableStoreError, *UNREADABLE) as error:
            problem = prove.as_nacre_error(error)
            checks = [_failure(problem.message, problem.hint)]
        except NacreError as error:
            checks = [_warning(error.message, error.hint)]
        yield from (replace(check, name=check.name or name) for check in checks)


def installation(home: Home, *, repair: bool = False) -> list[Check]:
    """Check Python, SQLite, the home's folder and its permissions, and the models."""
    return [
        Check("python", OK, f"{platform.python_version()} on {platform.system()}"),
        Check("sqlite", OK, engine_version()),
        *_run_checks(
            home,
            {
                "home": _home,
                "permissions": partial(_permissions, repair),
                "disk": _disk,
                "model": _model,
                "credentials": _credentials,
            },
        ),
    ]


def contents(home: Home) -> list[Check]:
    """Check the memories and their use, pending work, and unknown records in transcripts."""
    return [
        *_run_checks(
            home,
            {
                "edits": _caught_up,
                "memories": _memories,
                "usage": _usage,
                "todos": _stale_todos,
                **_ACTIVITY,
                "ledger": damaged_ledger,
                "history": damaged_history,
                "packs": damaged_archive,
            },
        )
    ]


def _caught_up(home: Home) -> Sequence[Check]:
    edit.catch_up(home)
    usage.fold_usage(home)
    return ()


def problems(home: Home) -> list[Check]:
    """Return the checks that failed, without running those that read every memory."""
    return [
        finding
        for finding in _run_checks(home, {"memories": _memories, **_ACTIVITY})
        if finding.state != OK
    ]


def _home(home: Home) -> Check:
    home_path = home.settings.home
    if not os.access(home_path, os.W_OK):
        return _failure(f"{home_path} is not writable", "change its permissions or set NACRE_HOME")
    return _ok(str(home_path))


def _permissions(repair: bool, home: Home) -> Check:
    settings = home.settings
    outside = [settings.config, *settings.database.parent.glob(f"{settings.database.name}*")]
    shared = list(
        private_files.shared(
            [settings.home, *(path for path in outside if settings.home not in path.parents)]
        )
    )
    if settings.vault.is_symlink():
        shared += private_files.shared([settings.vault.resolve()])
    if not shared:
        return _ok("private")
    path, mode = shared[0]
    if repair:
        for path, mode in shared:
            path.chmod(mode)
        return _ok(f"made private: {len(shared):,} files and folders")
    more = f" and {len(shared) - 1:,} more" if len(shared) > 1 else ""
    finding = (
        f"{path}{more} can be accessed by others ({path.stat().st_mode & 0o777:o}, not {mode:o})"
    )
    return _warning(finding, "nacre admin doctor --repair")


def _disk(home: Home) -> Check:
    free = shutil.disk_usage(home.settings.home).free
    if free < _LOW_DISK_BYTES:
        return _warning(f"{free / 1e6:,.0f} MB free", "free some space")
    return _ok(f"{free / 1e9:,.1f} GB free")


def _integrity(home: Home) -> Check:
    if home.database.server:
        return _ok(home.settings.where)
    errors = home.database_file.check()
    if errors:
        return _failure(errors[0], "nacre admin db rebuild; the vault has all memories")
    size = home.settings.database.stat().st_size
    return _ok(f"{home.settings.database} ({size / 1e6:,.1f} MB)")


def _parity(home: Home) -> Check:
    edit.catch_up(home)
    files = {file.memory for file in home.files.indexed().values()}
    rows = home.memories.all_ids()
    if files != rows:
        lost = len(files ^ rows)
        return _failure(f"{lost} memories differ between vault and index", "nacre admin db rebuild")
    return _ok(f"{len(files)} memory files in {home.settings.where_documents}")


def _forgetting(home: Home) -> Iterator[Check]:
    # Forgotten data can remain in the database while another process reads it.
    if home.tombstones.due() or home.tombstones.value("erase"):
        yield _warning("the database still contains bytes of forgotten data", "nacre ingest")


def _lost_memories(home: Home) -> Iterator[Check]:
    lost = home.memories.lost()
    if lost:
        named = "; ".join(
            f"{shorten(subject, 40)} ({memory[-8:]})" for memory, subject in lost[:_MAX_NAMED]
        )
        more = f" and {len(lost) - _MAX_NAMED} more" if len(lost) > _MAX_NAMED else ""
        detail = f"superseded by memories that are no longer true, so never recalled: {named}{more}"
        yield _warning(detail, f"nacre retire --restore {lost[0][0][-8:]}")


def _history(home: Home) -> Iterator[Check]:
    if not home.settings.flag("git.enabled"):
        yield _ok("off (git.enabled = false)")
        return
    try:
        yield _repository(home)
    except NacreError as error:
        yield _warning(error.message, error.hint)
    for path in home.journal.withheld():
        hint = "remove it from the file; if it is not a secret: nacre config set redaction.allow '[\"the text\"]'"
        yield _warning(f"{path} seems to contain a secret, so it is not committed", hint)


def _repository(home: Home) -> Check:
    pending, oldest = home.journal.count_pending()
    if not home.repository.exists:
        home.repository.git.version()
        return _ok("starts with the next operation")
    head = history.fit_to_commit(home)
    lock = home.repository.git.git_dir / "index.lock"
    if lock.exists() and home.clock().timestamp() - lock.stat().st_mtime > _STALE_LOCK_SECONDS:
        return _warning(
            "an interrupted git command left a lock, so git status is out of date", f"rm {lock}"
        )
    since = f" since {shown_minute(oldest)}" if pending and oldest else ""
    return _ok(
        f"git, branch {head.branch}; {count(pending, 'operation')} waiting for a commit{since}"
    )


def _credentials(home: Home) -> Iterator[Check]:
    settings = home.settings
    own = settings["models.providers"]
    for provider in sorted(
        models.in_use(settings) | {name for name in own if "api_key" in own[name]}
    ):
        try:
            yield _credential(home, provider)
        except NacreError as error:
            yield _warning(error.message, error.hint)


def _credential(home: Home, provider: str) -> Check:
    place = place_for(home.settings, provider, clock=home.clock)
    if place is None and provider_of(home.settings, provider).needs_key:
        return _warning(f"no key for {provider} found", f"nacre writer keys {provider}")
    if place is None or place.credential is None:
        return _ok(f"{provider} needs no key from nacre")
    finding = f"{provider}: {place.credential.masked} from {place.origin}"
    return _warning(place.warning, place.hint) if place.warning else _ok(finding)


def _model(home: Home) -> Check:
    if not home.settings.embeds:
        return _ok("off; recall searches by words")
    try:
        embedder = embedder_of(home)
        if isinstance(embedder, RemoteEmbedder):
            embedder = embedder.within(_EMBED_TIMEOUT_SECONDS)
        vector = embedder.embed(["a test"])
    except NacreError as error:
        return _warning(error.message, error.hint or "search by words works without it")
    return _ok(f"{embedder.name}, {vector.shape[1]} dimensions")


def _memories(home: Home) -> Check:
    counts = home.memories.counts()
    inactive = counts.pop("superseded") + counts.pop("retired")
    if not counts:
        return _warning("none yet", "nacre ingest reads the transcripts on this machine")
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    active = f"{sum(counts.values())} active" + (f" ({kinds})" if kinds else "")
    return _ok(f"{active}; {inactive} superseded or retired")


def _usage(home: Home) -> Iterator[Check]:
    used = home.usage.buckets()
    if used.never + used.some + used.often:
        yield _ok(
            f"{used.never} never recalled, {used.some} recalled up to 5 times, {used.often} more often"
        )
    usage.queue_reviews(home)
    candidates, doubts, conflicts = home.reviews.counts()
    if pending := candidates + doubts + conflicts:
        yield Check(
            "review",
            WARNING if doubts or conflicts else OK,
            f"{pending:,} to review",
            "nacre review shows each one",
        )


def _stale_todos(home: Home) -> Iterator[Check]:
    stale = home.usage.idle_todos(home.now() - _STALE_TODO)
    if stale:
        named = "; ".join(
            f"{shorten(subject, 40)} ({memory[-8:]}, {shown_day(last)})"
            for memory, subject, last in stale[:_MAX_NAMED]
        )
        more = f"; and {len(stale) - _MAX_NAMED:,} more" if len(stale) > _MAX_NAMED else ""
        finding = f"{len(stale):,} open, neither stated nor recalled for {_STALE_TODO.days} days: {named}{more}"
        yield _warning(finding, f"nacre retire {stale[0][0][-8:]}, if it is done or obsolete")


def _sessions(home: Home) -> Check:
    counts = home.sessions.counts()
    if not counts:
        return _warning("none yet", "nacre ingest")
    turns = sum(row[2] or 0 for row in counts)
    tools = ", ".join(f"{row[1]} {row[0]}" for row in counts)
    last = home.sessions.last_ingest()
    if last and scoring.days_between(last, home.now()) > _STALE_DAYS:
        return _warning(f"last read {shown_day(last)}", "nacre ingest")
    return _ok(f"{tools}; {turns:,} turns" + (f"; last read {shown_minute(last)}" if last else ""))


def _pinned(home: Home) -> Iterator[Check]:
    for pin in broken_pins(home):
        finding = f"{pin.question} {pin.answer}; now: {pin.first or 'no answer'}"
        yield _warning(finding, f'nacre recall "{pin.question}" --pin accepts the new answer')


def _daemon(home: Home) -> Iterator[Check]:
    home_path = home.settings.home
    if not (home_path / link.LOCK).exists():
        return
    try:
        answer = link.ask(home_path, "hello", {}, seconds=1.0)
    except (link.DaemonAwayError, link.DaemonRefusedError) as error:
        if is_held(home_path / link.LOCK) and home.settings.platform == "win32":
            yield _ok("running; commands cannot reach it on Windows")
        elif is_held(home_path / link.LOCK):
            yield _warning(
                f"running but not responding: {error}", "nacre serve logs; nacre serve stop"
            )
        elif autostart.installation(home.settings).is_installed:
            yield _warning("installed, but not running", "nacre serve start")
        else:
            does_start = hooks_start_daemon(home.settings)
            yield _ok("not running; hooks start it" if does_start else "not running")
        return
    memory = f", {answer['memory_mb']:,.0f} MB" if answer.get("memory_mb") else ""
    yield _ok(f"process {answer['pid']}, {answer['answered']:,} questions answered{memory}")
    if answer.get("following"):
        yield from _following(home, json.convert(answer["following"], Following))
    for problem in answer.get("problems", ()):
        yield _warning(problem, "see nacre serve logs")


_STALE = timedelta(minutes=5)
"""Maximum age of the last heartbeat while the daemon follows sessions."""


def _following(home: Home, state: Following) -> Iterator[Check]:
    now = home.clock()
    if now - state.heartbeat > _STALE:
        finding = f"silent since {shown_minute(state.heartbeat)}"
        yield Check("following", WARNING, finding, "nacre serve stop; nacre serve start")
    else:
        polling_note = f" by polling: {state.why_polling}" if state.why_polling else ""
        finding = f"{state.folders} folders since {shown_minute(state.started)}{polling_note}"
        yield Check("following", OK, finding)
    if state.last_error and state.last_error_at and now - state.last_error_at < _RECENT_PERIOD:
        yield Check("following", WARNING, state.last_error, "see nacre serve logs")


def _chores(home: Home) -> Iterator[Check]:
    pending, lost = (
        chores.pending_chores(home.settings.home),
        chores.abandoned_chores(home.settings.home),
    )
    now = home.clock().timestamp()
    late = [chore for chore in pending if now - chore.at > _LATE_CHORE_SECONDS]
    recent = [chore for chore in lost if now - chore.at < _REPORT_CHORE_SECONDS]
    if recent:
        finding = f"{len(recent)} abandoned; the last one, {recent[-1].kind}: {recent[-1].note or 'unknown reason'}"
        yield _warning(finding, f"see {home.settings.home}/run/chores/given-up")
    elif late:
        yield _warning(f"{len(late)} waiting for a long time", "nacre chores runs them")
    elif pending:
        yield _ok(f"{len(pending)} waiting")


def _vectors(home: Home) -> Check:
    if not home.settings.embeds:
        return _ok("off")
    turns, memories = home.vectors.missing()
    passages, memories_made = home.vectors.count(), home.vectors.count_memories()
    model = home.settings.text("embedding.model")
    used = refusal(home, model)
    why = f": {used.message}" if used else ""
    if home.vectors.setting() not in (None, model):
        finding = f"{passages:,} passages of {home.vectors.model()}, not of {model}{why}"
        return _warning(finding, used.hint if used else "nacre writer embedding --resume continues")
    if turns + memories:
        finding = (
            f"{passages + memories_made:,} made, {count(turns + memories, 'text')} waiting{why}"
        )
        return _warning(finding, used.hint if used else "nacre ingest continues")
    finding = (
        f"for {count(memories_made, 'memory', 'memories')} and {passages:,} passages of sessions"
    )
    return _ok(finding)


def _archive(home: Home) -> Iterator[Check]:
    states = [state for state in home.archive.all() if state.pack]
    is_wanted = home.settings.flag("archive.enabled")
    raw, stored = sum(state.raw for state in states), sum(state.size for state in states)
    if is_wanted and not packs.is_installed():
        yield _warning("Zstandard is missing", "pip install backports.zstd")
    elif not is_wanted:
        yield _ok(f"off; contains {len(states):,} transcripts")
    else:
        yield _ok(f"{len(states):,} transcripts, {raw / 1e6:,.1f} MB in {stored / 1e6:,.1f} MB")


def _problems(home: Home) -> Iterator[Check]:
    if why := home.database.unwritable:
        yield Check("home", FAILURE, why.message, why.hint)
    for problem in home.problems:
        yield Check(
            "vault",
            FAILURE,
            problem,
            "correct the file; until then recall uses its last good version",
        )


_ACTIVITY: Mapping[str, _Look] = {
    "sessions": _sessions,
    "vectors": _vectors,
    "writer": writer,
    "archive": _archive,
    "pinned": _pinned,
    "daemon": _daemon,
    "chores": _chores,
    "hosts": lambda home: verify.hosts_in_a_line(home.settings),
    "formats": format_checks,
    "problems": _problems,
}


# -- Operations -----------------------------------------------------------------------------------


@operation("overview")
def overview(home: Home) -> Overview:
    """Return the contents and the state of the home."""
    findings = tuple(contents(home))
    counts = home.memories.counts()
    for state in ("superseded", "retired"):
        counts.pop(state, None)
    return Overview(counts, tuple(projects(home)), findings, home.links.count(home.today()))


@operation("doctor-deep", writes=True, takes_long=True)
def prove_home(
    home: Home,
    on_progress: OnProgress = lambda _: None,
    *,
    everything: Annotated[bool, bounds("Reread all transcripts, not a sample.")] = False,
    repair: Annotated[bool, bounds("Repair findings where no data can be lost.")] = False,
) -> list[Check]:
    """Check every part of the home against its sources."""
    proofs = prove.prove(home, everything=everything, on_progress=on_progress)
    repaired = prove.repair(home, proofs) if repair else 0
    if repaired:
        proofs = prove.prove(home, everything=everything, on_progress=on_progress)
    if repair:
        prove.archive_again(home, proofs)
    done = [Check("repair", OK, f"{count(repaired, 'finding')} repaired")] if repaired else []
    return [*done, *prove.as_checks(proofs)]


@operation("traces")
def list_traces(
    home: Home,
    *,
    task: Annotated[Task | None, bounds("Only calls for this task.")] = None,
    since: Annotated[datetime | None, bounds("Only traces from this time on.")] = None,
    limit: Limit = 20,
) -> list[Call]:
    """Return the traces of model calls, the latest first."""
    fold_notes(home)
    return home.spending.traces(task, since, limit)


@operation("trace")
def show_trace(
    home: Home, reference: Annotated[str, bounds("The id, or its start or end.")]
) -> Call:
    """Return the trace of a call. Raises NotFoundError, ConflictError."""
    fold_notes(home)
    traces = home.spending.find(reference.strip())
    if not traces:
        raise NotFoundError(
            f"there is no trace {reference!r}", hint="nacre writer traces shows ids"
        )
    refuse_several((trace.id for trace in traces), reference, "traces")
    return traces[0]


# -- Status page -----------------------------------------------------------------------------------
# It appears immediately, because it takes no locks, reads no new files and calls no models.


_BUSY_TIMEOUT_MS = 100
_SHOWN_SESSIONS = 5
_SHOWN_MEMORIES = 5
_FEW_MEMORIES = 20


@frozen
class Status:
    """An overview of a home's state.

    ``wired``: connected hosts.
    ``not_wired``: other installed hosts.
    ``read``: when transcripts were last read.
    ``sources``: number of sessions per tool.
    ``learned``: latest memories.
    ``story``: highlights, only if there are few memories.
    ``candidates``, ``doubts``, ``conflicts``: numbers of pending reviews.
    ``broken_pins``: pinned questions without the expected answer.
    ``cost``, ``budget``: today's cost and its limit for background work, in millionths of a US
        dollar and without subscriptions.
    ``effects``: effects of context given to agents.
    ``faults``: failed checks.
    """

    wired: tuple[str, ...] = ()
    not_wired: tuple[str, ...] = ()
    memories: int = 0
    sessions: int = 0
    latest: tuple[SessionLine, ...] = ()
    read: datetime | None = None
    sources: Mapping[str, int] = field(default_factory=dict)
    learned: tuple[Memory, ...] = ()
    story: Story | None = None
    candidates: int = 0
    doubts: int = 0
    conflicts: int = 0
    broken_pins: tuple[PinCheck, ...] = ()
    writer: models.WriterStatus = models.WriterStatus()
    cost: int = 0
    budget: int = 0
    effects: Effects = Effects()
    faults: tuple[Check, ...] = ()


@operation("status")
def status(settings: Settings) -> Status:
    """Return the status. Do not create a missing home. Raises UnusableStoreError and its subclasses."""
    if not (settings.server or settings.database.is_file()):
        return Status(*_hosts(settings))
    try:
        opened = open_to_read(settings, patience_ms=_BUSY_TIMEOUT_MS)
    except UnusableStoreError:  # an older nacre created the home
        opened = open_home(settings)
    with closing(opened) as home:
        return status_of(home)


def _hosts(settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    wired = dict.fromkeys(wish.host for wish in load(settings.home).wishes)
    installed = (item.host.name for item in found_hosts(settings))
    return tuple(wired), tuple(name for name in installed if name not in wired)


def status_of(home: Home, *, with_story: bool = False) -> Status:
    """Return the status of a home that is already open."""
    day = home.today()
    counts = home.memories.counts()
    latest = home.sessions.newest(SessionFilter(kind=SessionKind.MAIN), limit=_SHOWN_SESSIONS)
    candidates, doubts, conflicts = home.reviews.counts()
    spent = sum(entry.cost for entry in home.spending.by_task(day, day))
    noted = sum(entry.cost or 0 for entry in noted_calls(home) if entry.day == day)
    memories = sum(counts.values()) - counts["superseded"] - counts["retired"]
    sources = {row[0]: row[1] for row in home.sessions.counts()}
    sessions = sum(sources.values())
    return Status(
        *_hosts(home.settings),
        memories=memories,
        sessions=sessions,
        latest=tuple(SessionLine(stored, opening_of(home, stored)) for stored in latest),
        read=home.sessions.last_ingest(),
        sources=sources,
        story=story(home) if with_story or memories < min(sessions, _FEW_MEMORIES) else None,
        learned=tuple(latest_memories(home, Filter(), _SHOWN_MEMORIES)[0]),
        candidates=candidates,
        doubts=doubts,
        conflicts=conflicts,
        broken_pins=tuple(broken_pins(home)),
        writer=models.read_writer_status(home),
        cost=spent + noted,
        budget=daily_budget(home).most,
        effects=count_effects(home),
        faults=tuple(check for check in _run_checks(home, _faults(home)) if check.state != OK),
    )


def _faults(home: Home) -> dict[str, _Look]:
    looks: dict[str, _Look] = {"archive": _archive}
    if home.journal.git_state("sync"):
        looks["sync"] = sync
    if any(Path(link.chores_folder(home.settings.home)).glob("*/*")):  # abandoned chores
        looks["chores"] = _chores
    return looks
