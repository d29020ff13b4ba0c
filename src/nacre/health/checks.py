"""Is everything well? The installation, what is remembered and how it is used, what waits, what was not understood."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta

from nacre.archive.retention import leaving
from nacre.chores.queue import given_up, waiting
from nacre.context import hold_out
from nacre.errors import NacreError, StoreUnusable
from nacre.health.format_drift import format_checks
from nacre.health.gateway_at_work import gateway
from nacre.health.in_step import remote, sync
from nacre.health.kept_files import damaged_archive, damaged_history, damaged_ledger
from nacre.health.models_at_work import judging, writer
from nacre.health.proofs.finding import told_of
from nacre.health.upkeep import upkeep
from nacre.history.preparation import fit_to_commit
from nacre.home.home import Home
from nacre.indexing.vectors import is_switching
from nacre.link.address import LOCK
from nacre.link.client import Away, Refused, ask
from nacre.llm.credentials.keys import place_for
from nacre.memories.scan import catch_up
from nacre.memories.usage import fold_usage, queue_reviews, today
from nacre.packs.zstd import is_installed
from nacre.platform import private_files
from nacre.platform.days import shown_day, shown_minute
from nacre.platform.locks import is_held
from nacre.protocols import RemoteEmbedder
from nacre.retrieval.scoring import days_between
from nacre.setup import credentials
from nacre.spending.embedders import configured_embedder
from nacre.spending.embedding_consent import hold
from nacre.storage.co_recall import STEP
from nacre.storage.database import UNREADABLE
from nacre.storage.sqlite.database import engine_version
from nacre.text.passages import count, shorten
from nacre.values.reports import FAILURE, OK, WARNING, Check
from nacre.watching.status import standing
from nacre.wiring.prove import hosts_in_a_line
from nacre.wiring.record import hooks_start_daemon

_LOW_DISK_BYTES = 500_000_000
_STALE_DAYS = 14
_PATIENCE_SECONDS = 10.0
_STALE_LOCK_SECONDS = 600
_TOP_EDGES = 5
_MOST_NAMED = 5
_RECENT = timedelta(hours=1)
_LATE_CHORE_SECONDS = 3_600.0
_TOLD_CHORE_SECONDS = 7 * 86_400.0


def doctor(home: Home, *, repair: bool = False) -> list[Check]:
    """Check everything; every finding that is not ok says what to do.

    With ``repair`` what can be mended without a choice is mended: permissions.
    """
    return [
        *installation(home, repair=repair),
        *_checked(home, {"database": _integrity, "vault": _parity, "changes": _lost}),
        *_checked(home, {"forgetting": _forgetting, "history": _history, "sync": sync, "remote": remote}),
        *_checked(home, {"chats": _chats, "gateway": gateway}),
        *contents(home),
    ]


def _chats(home: Home) -> list[Check]:
    """Messages of chats with an agent that may be the owner's, while no setting tells who that is."""
    senders = home.sessions.unknown_senders() if not home.settings.texts("owner.identities") else []
    if not senders:
        return []
    told = ", ".join(f"{name} ({count:,})" for name, count in senders[:_MOST_NAMED])
    return [
        Check(
            "chats", WARNING, f"nothing is learned from what these wrote to your agents: {told}",
            'if one is you: nacre config set owner.identities \'["telegram:ID"]\'; docs/adapters.md tells more',
        )
    ]  # fmt: skip


_Look = Callable[[Home], Check | Iterable[Check]]


def _checked(home: Home, looks: Mapping[str, _Look]) -> Iterator[Check]:
    """Checks; what cannot be read is one that failed, and keeps no other from being made."""
    for name, look in looks.items():
        try:
            found = look(home)
            yield from [found] if isinstance(found, Check) else list(found)
        except (StoreUnusable, *UNREADABLE) as error:
            told = told_of(error)
            yield Check(name, FAILURE, told.message, told.hint)


def installation(home: Home, *, repair: bool = False) -> list[Check]:
    """Check what nacre runs on: Python, SQLite, the home's folder and its permissions, the models."""
    return [
        Check("python", OK, f"{platform.python_version()} on {platform.system()}"),
        Check("sqlite", OK, engine_version()),
        _home(home),
        _permissions(home, repair),
        _disk(home),
        _model(home),
        *_reranker(home),
        *_credentials(home),
    ]


def contents(home: Home) -> list[Check]:
    """What is remembered and how it is used, what waits, what was not understood."""
    return [
        *_checked(home, {"edits": _caught_up, "memories": _memories, "usage": _usage, "upkeep": upkeep}),
        *_at_work(home),
        *_checked(home, {"ledger": damaged_ledger, "history": damaged_history, "archive": damaged_archive}),
    ]


def _caught_up(home: Home) -> Iterator[Check]:
    catch_up(home)
    fold_usage(home)
    yield from ()


def problems(home: Home) -> list[Check]:
    """What is amiss, without what waits for review, and without upkeep, which looks at every memory."""
    return [one for one in (*_checked(home, {"memories": _memories}), *_at_work(home)) if one.state != OK]


def _at_work(home: Home) -> list[Check]:
    return [
        *_checked(home, {"sessions": _sessions, "vectors": _vectors}),
        *_checked(home, {"writer": writer, "contradictions": judging, "archive": _archive}),
        *_held_out(home),
        *_daemon(home),
        *_watcher(home),
        *_chores(home),
        *hosts_in_a_line(home.settings),
        *_checked(home, {"formats": format_checks}),
        *_problems(home),
    ]


def _home(home: Home) -> Check:
    home_path = home.settings.home
    if not os.access(home_path, os.W_OK):
        return Check("home", FAILURE, f"{home_path} is not writable", "change its permissions or set NACRE_HOME")
    return Check("home", OK, str(home_path))


def _permissions(home: Home, repair: bool) -> Check:
    """What others may read or change, of the home and of what lies elsewhere by configuration."""
    settings = home.settings
    outside = [settings.config, *settings.database.parent.glob(f"{settings.database.name}*")]
    found = list(
        private_files.shared([settings.home, *(path for path in outside if settings.home not in path.parents)])
    )
    if settings.vault.is_symlink():
        found += private_files.shared([settings.vault.resolve()])
    if not found:
        return Check("permissions", OK, "yours alone")
    path, mode = found[0]
    if repair:
        for path, mode in found:
            path.chmod(mode)
        return Check("permissions", OK, f"made yours alone: {len(found):,} of the files and folders")
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    told = f"{path}{more} can be used by others ({path.stat().st_mode & 0o777:o}, not {mode:o})"
    return Check("permissions", WARNING, told, "nacre doctor --repair")


def _disk(home: Home) -> Check:
    free = shutil.disk_usage(home.settings.home).free
    if free < _LOW_DISK_BYTES:
        return Check("disk", WARNING, f"{free / 1e6:,.0f} MB free", "free some space")
    return Check("disk", OK, f"{free / 1e9:,.1f} GB free")


def _integrity(home: Home) -> Check:
    if home.database.is_server:
        return Check("database", OK, home.settings.where)
    found = home.database_file.check()
    if found:
        return Check("database", FAILURE, found[0], "nacre db rebuild; the vault has every memory")
    size = home.settings.database.stat().st_size
    return Check("database", OK, f"{home.settings.database} ({size / 1e6:,.1f} MB)")


def _parity(home: Home) -> Check:
    """Every file has its index row and every row its file."""
    catch_up(home)
    files = {file.memory for file in home.files.seen().values()}
    rows = home.memories.all_ids()
    if files != rows:
        lost = len(files ^ rows)
        return Check("vault", FAILURE, f"{lost} memories differ between vault and index", "nacre db rebuild")
    return Check("vault", OK, f"{len(files)} memory files in {home.settings.where_documents}")


def _forgetting(home: Home) -> Iterator[Check]:
    """Forgetting that was cut short, or that waits for another process to stop reading."""
    if home.tombstones.due() or home.tombstones.value("erase"):
        yield Check("forgetting", WARNING, "bytes of what was forgotten are still in the database", "nacre ingest")


def _lost(home: Home) -> Iterator[Check]:
    """Memories that nobody meant to lose: what should have taken their place does not hold."""
    lost = home.memories.lost()
    if lost:
        named = "; ".join(f"{shorten(subject, 40)} ({memory[-8:]})" for memory, subject in lost[:_MOST_NAMED])
        more = f" and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else ""
        detail = f"superseded by nothing that holds, so never recalled: {named}{more}"
        yield Check("changes", WARNING, detail, f"nacre unretire {lost[0][0][-8:]}")


def _history(home: Home) -> Iterator[Check]:
    """Whether git keeps the history, and what it is not given."""
    if not home.settings.flag("git.enabled"):
        yield Check("history", OK, "off (git.enabled = false)")
        return
    try:
        yield _repository(home)
    except NacreError as error:
        yield Check("history", WARNING, error.message, error.hint)
    for path in home.journal.withheld():
        hint = "take it out of the file; if it is no secret: nacre config set redaction.allow '[\"the text\"]'"
        yield Check("history", WARNING, f"{path} holds what looks like a secret, so it is not committed", hint)


def _repository(home: Home) -> Check:
    """Raises GitUnavailable, RepositoryUnusable."""
    waiting, oldest = home.journal.waiting()
    if not home.repository.exists:
        home.repository.git.version()
        return Check("history", OK, "begins with the next operation")
    head = fit_to_commit(home)
    lock = home.repository.git.git_dir / "index.lock"
    if lock.exists() and home.clock().timestamp() - lock.stat().st_mtime > _STALE_LOCK_SECONDS:
        return Check("history", WARNING, "a git that was cut short left its lock: git status lags behind", f"rm {lock}")
    since = f" since {shown_minute(oldest)}" if waiting and oldest else ""
    return Check("history", OK, f"git, branch {head.branch}; {_waiting(waiting, 'operation')} for a commit{since}")


def _reranker(home: Home) -> Iterator[Check]:
    if not home.settings.text("recall.reranker"):
        return
    try:
        loaded = home.reranker
    except NacreError as error:
        yield Check("reranker", WARNING, error.message, error.hint or "recall works without it")
        return
    if loaded:
        yield Check("reranker", OK, str(home.settings.text("recall.reranker")))


def _credentials(home: Home) -> Iterator[Check]:
    """Whether nacre can sign in to the models that are set, and where a credential should not lie as it does."""
    settings = home.settings
    own = settings["models.providers"]
    for provider in sorted(credentials.in_use(settings) | {name for name in own if "api_key" in own[name]}):
        try:
            yield _credential(home, provider)
        except NacreError as error:
            yield Check("credentials", WARNING, error.message, error.hint)


def _credential(home: Home, provider: str) -> Check:
    """Raises ModelRefused."""
    place = place_for(home.settings, provider, clock=home.clock)
    if place is None and credentials.expects_key(home.settings, provider):
        return Check("credentials", WARNING, f"no key of {provider} is found", f"nacre setup --provider {provider}")
    if place is None or place.credential is None:
        return Check("credentials", OK, f"{provider} needs none from nacre")
    told = f"{provider}: {place.credential.masked} from {place.origin}"
    return Check("credentials", WARNING, place.warning, place.hint) if place.warning else Check("credentials", OK, told)


def _model(home: Home) -> Check:
    if home.settings.text("embedding.model") == "none":
        return Check("model", OK, "off; the lexical lanes answer")
    try:
        embedder = configured_embedder(home)
        if isinstance(embedder, RemoteEmbedder):
            embedder = embedder.within(_PATIENCE_SECONDS)
        vector = embedder.embed(["a test"])
    except NacreError as error:
        return Check("model", WARNING, error.message, error.hint or "lexical recall works without it")
    return Check("model", OK, f"{embedder.name}, {vector.shape[1]} dimensions")


def _memories(home: Home) -> Check:
    counts = home.memories.counts()
    inactive = counts.pop("superseded") + counts.pop("retired")
    if not counts:
        return Check("memories", WARNING, "none yet", "nacre ingest reads the transcripts on this machine")
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    active = f"{sum(counts.values())} active" + (f" ({kinds})" if kinds else "")
    return Check("memories", OK, f"{active}; {inactive} superseded or retired")


def _usage(home: Home) -> Iterator[Check]:
    """How much of it is used, how good it turned out to be, what is used together, what waits for review."""
    used = home.usage.buckets()
    if not used.never + used.some + used.often:
        return
    recalled = f"{used.never} never recalled, {used.some} recalled up to 5 times, {used.often} more often"
    yield Check("usage", OK, recalled)
    if used.good + used.poor:
        yield Check("quality", OK, f"{used.good} good (from .7), {used.fair} fair, {used.poor} poor (below .3)")
    edges = [edge for edge in home.co_recall.strongest(today(home), _TOP_EDGES) if edge.weight > STEP]
    if edges:
        ids = [memory for edge in edges for memory in (edge.memory, edge.other)]
        subjects = {memory.id: shorten(memory.subject, 40) for memory in home.memories.rows_of(ids).values()}
        pairs = (f"{subjects[edge.memory]} + {subjects[edge.other]} ({edge.weight:.2f})" for edge in edges)
        yield Check("together", OK, "; ".join(pairs))
    queue_reviews(home)
    _, doubts, conflicts = home.reviews.waiting()
    waiting = doubts + conflicts
    if waiting:
        yield Check("review", WARNING, f"{waiting} waiting", "nacre review shows each, and why it waits")


def _sessions(home: Home) -> Check:
    counts = home.sessions.counts()
    if not counts:
        return Check("sessions", WARNING, "none yet", "nacre ingest")
    turns = sum(row[2] or 0 for row in counts)
    tools = ", ".join(f"{row[1]} {row[0]}" for row in counts)
    last = home.sessions.last_ingest()
    if last and days_between(last, home.now()) > _STALE_DAYS:
        return Check("sessions", WARNING, f"last read {shown_day(last)}", "nacre ingest")
    return Check("sessions", OK, f"{tools}; {turns:,} turns" + (f"; last read {shown_minute(last)}" if last else ""))


def _held_out(home: Home) -> Iterator[Check]:
    """Whether a share of sessions is told nothing."""
    if share := home.settings.number(hold_out.SHARE):
        told = f"{share:.0%} of sessions are told nothing, to see what telling does"
        yield Check("held out", OK, f"{told}; nacre usefulness tells what that shows")


def _daemon(home: Home) -> Iterator[Check]:
    """Whether the daemon answers, where one ever ran."""
    home_path = home.settings.home
    if not (home_path / LOCK).exists():
        return
    try:
        told = ask(str(home_path), "hello", {}, seconds=1.0)
    except (Away, Refused) as error:
        if is_held(home_path / LOCK):
            yield Check("daemon", WARNING, f"runs, and does not answer: {error}", "nacre serve logs; nacre serve stop")
        else:
            does_start = hooks_start_daemon(home.settings)
            yield Check("daemon", OK, "none runs now; hooks start one" if does_start else "none runs now")
        return
    memory = f", {told['memory_mb']:,.0f} MB" if told.get("memory_mb") else ""
    yield Check("daemon", OK, f"process {told['pid']}, {told['answered']:,} questions answered{memory}")
    for problem in told.get("problems", ()):
        yield Check("daemon", WARNING, problem, "nacre serve logs tells more")


def _watcher(home: Home) -> Iterator[Check]:
    """Whether the watcher works, where one ever did."""
    found = standing(home.settings.home, home.clock())
    health = found.health
    if health is None or found.state == "never":
        return
    at = shown_minute(health.heartbeat)
    if found.state in ("running", "starting"):
        how = f" by polling: {health.why_polling}" if health.why_polling else ""
        yield Check("watcher", OK, f"runs since {shown_minute(health.started)}, follows {health.folders} folders{how}")
    elif found.state == "stale":
        yield Check("watcher", WARNING, f"runs, and has said nothing since {at}", "nacre watcher restart")
    elif found.state == "died":
        yield Check("watcher", WARNING, f"ended without saying so; last heard of {at}", "nacre watcher start")
    else:
        yield Check("watcher", OK, f"stopped {at}")
    if health.last_error and health.last_error_at and home.clock() - health.last_error_at < _RECENT:
        yield Check("watcher", WARNING, health.last_error, "nacre watcher logs tells more")


def _chores(home: Home) -> Iterator[Check]:
    """What hooks left to be done, where anything waits long, and what was given up lately."""
    there, lost = waiting(home.settings.home), given_up(home.settings.home)
    now = home.clock().timestamp()
    late = [one for one in there if now - one.at > _LATE_CHORE_SECONDS]
    recent = [one for one in lost if now - one.at < _TOLD_CHORE_SECONDS]
    if recent:
        told = f"{len(recent)} given up; the last one, {recent[-1].kind}: {recent[-1].note or 'nobody knows why'}"
        yield Check("chores", WARNING, told, f"they lie in {home.settings.home}/run/chores/given-up")
    elif late:
        yield Check("chores", WARNING, f"{len(late)} wait for long", "nacre chores does them")
    elif there:
        yield Check("chores", OK, f"{len(there)} wait")


def _vectors(home: Home) -> Check:
    if home.settings.text("embedding.model") == "none":
        return Check("vectors", OK, "off")
    try:
        turns, memories = home.vectors.missing()
        made, memories_made = home.vectors.count(), home.vectors.count_memories()
    except NacreError as error:
        return Check("vectors", WARNING, error.message, error.hint)
    wanted = home.settings.text("embedding.model")
    held = hold(home, wanted)
    why = f": {held.message}" if held else ""
    if is_switching(home):
        told = f"{made:,} passages of {home.vectors.model()}, until those of {wanted} are whole{why}"
        return Check("vectors", WARNING, told, held.hint if held else "nacre embed resume goes on with them")
    if turns + memories:
        told = f"{made + memories_made:,} made, {_waiting(turns + memories, 'text')}{why}"
        return Check("vectors", WARNING, told, held.hint if held else "nacre ingest goes on")
    told = f"of {count(memories_made, 'memory', 'memories')} and {made:,} passages of sessions"
    return Check("vectors", OK, told)


def _archive(home: Home) -> Iterator[Check]:
    """What is kept of transcripts, and what their tools are about to delete."""
    states = [state for state in home.archive.all() if state.pack]
    is_wanted = home.settings.flag("archive.enabled")
    raw, stored = sum(state.raw for state in states), sum(state.size for state in states)
    if is_wanted and not is_installed():
        yield Check("archive", WARNING, "Zstandard is missing", "pip install backports.zstd")
    elif not is_wanted:
        yield Check("archive", OK, f"off; {len(states):,} transcripts in it")
    else:
        yield Check("archive", OK, f"{len(states):,} transcripts, {raw / 1e6:,.1f} MB in {stored / 1e6:,.1f} MB")
    for one in leaving(home):
        hint = None if one.is_kept else "nacre ingest" if is_wanted else "nacre config set archive.enabled true"
        yield Check(f"retention {one.retention.tool}", OK if one.is_kept else WARNING, one.in_words(), hint)


def _problems(home: Home) -> Iterator[Check]:
    if why := home.database.unwritable:
        yield Check("home", FAILURE, why.message, why.hint)
    for problem in home.problems:
        yield Check("vault", FAILURE, problem, "mend the file; its last good version is still recalled")


def _waiting(number: int, what: str) -> str:
    return f"{number:,} {what} waits" if number == 1 else f"{number:,} {what}s wait"
