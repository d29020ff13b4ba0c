"""What a proof finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path

from nacre.base.ids import bytes_hash
from nacre.base.text import shorten
from nacre.errors import GitUnavailable, MemoryInvalid, NacreError, StoreUnusable, VaultUnusable
from nacre.home import archive
from nacre.home.change import page_keys, read_pages
from nacre.home.consent import embedder_in_use
from nacre.home.home import Home
from nacre.home.location import redacted
from nacre.home.parsing import opened, parsed
from nacre.learn.discovery import footprint
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.edit import catch_up, scan
from nacre.memories.graph import CODE
from nacre.memories.judge import superseded
from nacre.readers.registry import get_adapter
from nacre.store.maintenance import Soundness
from nacre.store.schema import UNREADABLE, turn_identity
from nacre.values.memory import Memory, Project, SeenMemoryFile
from nacre.values.reports import OK, Check, OnProgress, Progress
from nacre.values.session import SeenFile, Session, Turn
from nacre.vault import files
from nacre.vault.documents import parse
from nacre.vault.files import LEDGER, FileStat

WARNING, FAILURE = "warning", "failure"
REBUILD = "nacre db rebuild; the vault has every memory"

Mend = Callable[[Home], object]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be: how bad it is, a sentence, the command that repairs it.

    ``mend`` does what ``repair`` says, where that cannot lose anything.
    """

    severity: str
    sentence: str
    repair: str
    mend: Mend | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """One part of the home: what was looked at, in words, and what was found."""

    area: str
    looked: str
    findings: list[Finding] = field(default_factory=list)


def told_of(error: Exception) -> NacreError:
    """An error as it is told where rows are read that may be damaged."""
    if isinstance(error, NacreError):
        return error
    told = f"{type(error).__name__}{f': {error}' if str(error) else ''}"
    return StoreUnusable(
        f"the database holds what cannot be read ({shorten(told, 200)})", hint=REBUILD
    )


def deep_repair() -> str:
    """The command that mends what can be mended without a question."""
    return "nacre doctor --deep --repair"


# ----------------------------------------------------------------------------
# The archive against its checksums, and against the index.


def prove_archive(home: Home) -> Proof:
    """Every segment is what it was when it was written; a damaged pack is set aside, and told of as long as it lies."""
    files, problems = archive.verify(home)
    found = [
        Finding(FAILURE, f"{one.path}: {one.message}", one.hint or deep_repair(), archive.mend)
        for one in problems
    ]
    return Proof("archive", f"{files:,} transcripts, every checksum", found)


# ----------------------------------------------------------------------------
# The history: whether git finds its repository whole.


_MOST = 10


def prove_git(home: Home) -> Proof:
    """Git finds every object of the vault's repository."""
    repository = home.repository
    if not repository.exists:
        return Proof("git", "no repository")
    if not repository.is_whole:
        told = f"{repository.git.git_dir} is no whole repository: its making was cut short"
        return Proof("git", "not begun", [Finding(WARNING, told, "nacre commit makes it anew")])
    try:
        damage = repository.damage()
    except GitUnavailable as error:
        return Proof(
            "git", "not looked at", [Finding(WARNING, error.message, error.hint or "git --version")]
        )
    if not damage:
        return Proof("git", "every object is there")
    repair = f"fetch what is missing from a clone or a backup, then: git -C {repository.root} fsck"
    return Proof(
        "git", "damaged", [Finding(FAILURE, f"git: {line}", repair) for line in damage[:_MOST]]
    )


# ----------------------------------------------------------------------------
# The database itself: integrity, full text, vectors.


def prove_database(home: Home) -> Proof:
    """SQLite finds nothing wrong with the file, nor with what refers to what."""
    sound = Soundness(home.database_file)
    found = [
        Finding(FAILURE, f"SQLite: {text}", REBUILD) for text in home.database_file.check()[:20]
    ]
    found += [
        Finding(FAILURE, f"a row of {table} cannot be read", REBUILD)
        for table in sound.unreadable()
    ]
    found += [
        Finding(FAILURE, f"{count} rows of {table} belong to nothing", REBUILD)
        for table, count in sound.strays()
    ]
    return Proof("database", f"{sound.pages():,} pages", found)


def prove_full_text(home: Home) -> Proof:
    """Every memory and every turn is in the full text, and nothing else is."""
    sound = Soundness(home.database_file)
    memories, turns = sound.memories_unindexed(), sound.turns_unindexed()
    found: list[Finding] = []
    if memories:
        told = f"{len(memories)} memories cannot be found by their words"
        found.append(Finding(FAILURE, told, deep_repair(), _reindex_memories(memories)))
    if turns:
        told = f"{len(turns)} turns cannot be found by their words"
        found.append(
            Finding(FAILURE, told, deep_repair(), lambda home: home.sessions.index_again(turns))
        )
    for table, rows in sound.text_without_rows().items():
        told = f"{len(rows)} texts in {table} belong to nothing"
        found.append(Finding(FAILURE, told, deep_repair(), _forget_text(table, rows)))
    return Proof("full text", f"{sound.texts():,} texts", found)


def _reindex_memories(ids: Sequence[str]) -> Callable[[Home], None]:
    def mend(home: Home) -> None:
        with home.database.transaction():
            for memory in filter(None, map(home.memories.find, ids)):
                home.memories.put(memory)

    return mend


def _forget_text(table: str, rows: Sequence[int]) -> Callable[[Home], None]:
    def mend(home: Home) -> None:
        with home.database.transaction():
            Soundness(home.database_file).forget_text(table, rows)

    return mend


def prove_vectors(home: Home) -> Proof:
    """Every text has a vector, all of one size and of the model that is set."""
    if home.settings.text("embedding.model") == "none":
        return Proof("vectors", "off")
    try:
        made_by, embedder = home.vectors.model(), embedder_in_use(home)
        waiting = sum(home.vectors.missing())
    except NacreError as error:
        return Proof(
            "vectors",
            "not looked at",
            [Finding(WARNING, error.message, error.hint or "nacre doctor")],
        )
    sound = Soundness(home.database_file)
    found: list[Finding] = []
    if made_by is not None and made_by != embedder.name:
        told = f"the vectors were made by {made_by}, and the model is {embedder.name}"
        found.append(Finding(FAILURE, told, "nacre ingest makes them anew"))
    elif waiting:
        found.append(Finding(WARNING, f"{waiting:,} texts have no vector yet", "nacre ingest"))
    size = embedder.dimensions or home.vectors.dimensions()  # some models tell only with an answer
    wrong = sound.vectors_of_other_size(size)
    if wrong:
        told = f"{wrong} vectors are not of the model's size"
        found.append(Finding(FAILURE, told, f"{deep_repair()}, then nacre ingest", _drop_vectors))
    elif sound.bits_missing():
        told = f"the quick index of passages lacks {sound.bits_missing()} of them"
        found.append(Finding(FAILURE, told, f"{deep_repair()}, then nacre ingest", _drop_vectors))
    return Proof(
        "vectors",
        f"{home.vectors.count_memories():,} memories, {home.vectors.count():,} passages",
        found,
    )


def _drop_vectors(home: Home) -> None:
    """Vectors are derived: the next ingest makes them again."""
    name, setting = home.vectors.model() or "", home.vectors.setting()
    home.vectors.begin("")
    home.vectors.begin(name, setting)


# ----------------------------------------------------------------------------
# Index against transcripts: what is read again must be there.


SAMPLE = 20
"""So many transcripts are read again unless all are asked for: evenly spread over those that still exist."""


def prove_transcripts(home: Home, *, everything: bool, notify: OnProgress) -> Proof:
    """Every turn of the transcripts that still exist, as far as they were read, is in the index."""
    sound = Soundness(home.database_file)
    found = [
        Finding(
            FAILURE, f"session {name} counts other turns than it has", deep_repair(), _counter(row)
        )
        for row, name in sound.sessions_miscounted()
    ]
    seen = home.sessions.seen_files()
    present = [file for file in seen if Path(file.path).is_file()]
    unchanged = [file for file in present if _is_unchanged(file)]
    chosen = unchanged if everything else _spread(unchanged)
    for done, file in enumerate(chosen):
        found += _read_again(home, sound, file)
        notify(Progress("proving", done + 1, len(chosen), Path(file.path).name))
    if len(unchanged) < len(present):
        told = f"{len(present) - len(unchanged)} transcripts changed since they were read"
        found.append(Finding(WARNING, told, "nacre ingest"))
    looked = f"{len(chosen):,} of {len(present):,} transcripts read again, {len(seen) - len(present):,} are gone"
    return Proof("transcripts", looked, found)


def _is_unchanged(file: SeenFile) -> bool:
    try:
        return footprint(Path(file.path)) == (file.size, file.mtime_ns)
    except OSError:
        return False


def _spread(files: Sequence[SeenFile]) -> list[SeenFile]:
    step = max(1, -(-len(files) // SAMPLE))
    return list(files[::step])


def _read_again(home: Home, sound: Soundness, file: SeenFile) -> list[Finding]:
    path = Path(file.path)
    try:
        lacking, total = _lacking(home, sound, path, file.tool)
    except (NacreError, OSError, ValueError) as error:
        return [
            Finding(
                WARNING, f"{path} cannot be read again: {error}", f"nacre ingest --force {path}"
            )
        ]
    if not lacking:
        return []
    told = f"{lacking} of {total} turns of {path} are not in the index"
    return [Finding(FAILURE, told, f"nacre ingest --force {path}", _reader(path))]


def _lacking(home: Home, sound: Soundness, path: Path, tool: str) -> tuple[int, int]:
    """Turns that the index lacks, and how many the file has."""
    turns: dict[bytes, None] = {}
    unknown = 0
    row: int | None = None
    session: Session | None = None
    identities = tuple(home.settings.texts("owner.identities"))
    with opened(path, tool, identities=identities) as (adapter, source):
        for item in parsed(adapter or get_adapter(tool), source):
            if isinstance(item, Session):
                session = item
                row = next((one.row for one in home.sessions.find(item.id)), None)
            elif session is None or (row is None and not item.unique):
                unknown += 1
            else:
                turns[_identity(session, row, item)] = None
    wanted = list(turns)
    known = sum(sound.known_turns(wanted[at : at + 500]) for at in range(0, len(wanted), 500))
    return len(wanted) - known + unknown, len(wanted) + unknown


def _identity(session: Session, row: int | None, turn: Turn) -> bytes:
    return turn_identity(session.tool, row or 0, turn)


def _counter(row: int) -> Mend:
    def mend(home: Home) -> None:
        with home.database.transaction():
            home.sessions.refresh([row])

    return mend


def _reader(path: Path) -> Mend:
    def mend(home: Home) -> None:
        again = IngestOptions(
            paths=(path,), extract=False, vectors=False, force=True, remember_paths=False
        )
        ingest(home, again)

    return mend


# ----------------------------------------------------------------------------
# Vault against index: files and rows, links at both ends, project pages, pending writes, the ledger.


_TELLING = frozenset({"retire", "restore", "unretire", "import", "undo"})
_UNORDERED = frozenset({"tags", "links"})


def prove_writes(home: Home) -> Proof:
    """No write to the vault is pending."""
    waiting = home.files.intents()
    found = [
        Finding(
            FAILURE,
            f"a {intent.action} of {intent.path} waits",
            "nacre doctor tells why; then any command writes it",
        )
        for intent in waiting
    ]
    return Proof("writes", "none pending" if not waiting else f"{len(waiting)} pending", found)


def prove_files(home: Home) -> Proof:
    """Every file has its row and every row its file, and both say the same in every field."""
    seen = home.files.seen()
    stats = {stat.path: stat for stat in home.vault.scan()}
    broken = {problem.partition(": ")[0]: problem for problem in home.problems}
    found: list[Finding] = []
    for path, stat in stats.items():
        if path in broken:
            found.append(
                Finding(
                    FAILURE,
                    broken[path],
                    "mend the file; its last good version is recalled until then",
                )
            )
        elif path not in seen:
            found.append(Finding(FAILURE, f"{path} is not in the index", "nacre db rebuild"))
        else:
            found += _compared(home, stat, seen[path])
    for path in seen.keys() - stats.keys() - home.files.pending_paths():
        found.append(
            Finding(FAILURE, f"{path} is in the index and not in the vault", "nacre db rebuild")
        )
    for memory in filter(None, map(home.memories.find, home.files.unfiled())):
        sentence = f"{_named(memory)} is in the index and has no file"
        found.append(Finding(FAILURE, sentence, deep_repair(), _writer(memory)))
    return Proof("vault", f"{len(stats):,} files", found)


def _compared(home: Home, stat: FileStat, seen: SeenMemoryFile) -> Iterator[Finding]:
    row = home.memories.find(seen.memory)
    modified = (
        row.created if row else home.now()
    )  # of a file that does not say so, the index alone knows
    try:
        data = home.vault.read(stat.path)
        written = redacted(
            home.redactor,
            parse(data.decode("utf-8"), stat.path, new_id=lambda: seen.memory, modified=modified),
        )
    except (FileNotFoundError, UnicodeDecodeError, MemoryInvalid, VaultUnusable) as error:
        yield Finding(FAILURE, f"{stat.path} cannot be read: {error}", "mend the file")
        return
    if bytes_hash(data) != seen.hash:
        told = f"{stat.path} was changed without a new time, so the index has other words"
        yield Finding(FAILURE, told, deep_repair(), _reader_vault(seen))
    elif row is None:
        yield Finding(
            FAILURE, f"{stat.path} has no row in the index", deep_repair(), _reader_vault(seen)
        )
    elif differing := _differences(written, row):
        told = f"{stat.path} and its row differ in {', '.join(differing)}"
        yield Finding(FAILURE, told, deep_repair(), _reader_vault(seen))


def _differences(written: Memory, row: Memory) -> list[str]:
    return [
        one.name for one in fields(Memory) if _value(written, one.name) != _value(row, one.name)
    ]


def _value(memory: Memory, name: str) -> object:
    value = getattr(memory, name)
    return sorted(set(value), key=repr) if name in _UNORDERED else value


def _reader_vault(seen: SeenMemoryFile) -> Mend:
    """Has the next scan read a file anew."""

    def mend(home: Home) -> None:
        home.files.save(replace(seen, mtime_ns=0, hash=b""))
        scan(home)

    return mend


def _writer(memory: Memory) -> Mend:
    """Writes a row's file anew."""

    def mend(home: Home) -> None:
        with home.change("update", subject=memory.subject) as change:
            change.put([memory])

    return mend


def prove_links(home: Home) -> Proof:
    """Every link leads to a memory, and both sides of a succession say so."""
    memories = {memory.id: memory for memory in home.memories.everything()}
    found: list[Finding] = []
    links = 0
    for memory in memories.values():
        links += len(memory.links)
        for link in memory.links:
            if link.to not in memories and not link.to.startswith(CODE):
                found.append(
                    _dangling(memory, f"{link.rel} {link.to}", f"nacre edit {memory.id[-8:]}")
                )
        newer = memory.superseded_by
        if newer and newer not in memories:
            found.append(
                _dangling(memory, f"superseded_by {newer}", f"nacre unretire {memory.id[-8:]}")
            )
        elif newer and not memory.retired and memory.id not in superseded(memories[newer]):
            told = f"{_named(memory)} says that {_named(memories[newer])} superseded it, which does not say so"
            found.append(
                Finding(
                    WARNING,
                    told,
                    f"nacre show {memory.id[-8:]} --history; edit the one that is wrong",
                )
            )
        for old in superseded(memory):
            one = memories.get(old)
            if one and one.is_active and not memory.retired:
                told = f"{_named(memory)} says that it superseded {_named(one)}, which still holds"
                found.append(
                    Finding(
                        WARNING,
                        told,
                        f"nacre show {memory.id[-8:]} --history; edit the one that is wrong",
                    )
                )
    return Proof("links", f"{links:,} in the front matter of {len(memories):,} memories", found)


def _dangling(memory: Memory, link: str, repair: str) -> Finding:
    return Finding(WARNING, f"{_named(memory)}: nothing is at the end of its link {link}", repair)


def prove_projects(home: Home) -> Proof:
    """The index resolves what the pages list, and nothing else."""
    known: dict[str, set[tuple[str, str]]] = {}
    for key, value, slug in home.files.project_keys():
        known.setdefault(slug, set()).add((key, value))
    claimed = set().union(*known.values()) if known else set()
    found: list[Finding] = []
    projects = home.files.projects()
    for project in projects:
        try:
            wanted = page_keys(home, project.slug)
        except (FileNotFoundError, MemoryInvalid, VaultUnusable):
            continue  # a page that cannot be read is among the problems of the scan
        lacking, extra = wanted - claimed, known.get(project.slug, set()) - wanted
        if lacking or extra:
            told = (
                f"the index resolves other things to project {project.slug} than its page lists: "
            )
            named = ", ".join(f"{key} {value}" for key, value in sorted(lacking | extra))
            found.append(
                Finding(FAILURE, told + shorten(named, 200), deep_repair(), _page_reader(project))
            )
    return Proof("projects", f"{len(projects):,} pages", found)


def _page_reader(project: Project) -> Mend:
    def mend(home: Home) -> None:
        with home.database.transaction():
            home.files.save_project(replace(project, mtime_ns=-1), [])
        read_pages(home)

    return mend


def prove_ledger(home: Home) -> Proof:
    """What the ledger says of retirements is what the files say."""
    try:
        data = home.vault.read(LEDGER)
    except FileNotFoundError:
        return Proof("ledger", "none yet")
    entries = list(files.read(data))
    found = [
        Finding(
            WARNING,
            f"line {number} of ledger.jsonl is no entry",
            f"mend or remove it in {home.vault.root}/{LEDGER}",
        )
        for number in files.broken_lines(data)
    ]
    said: dict[str, str] = {}
    for one in entries:
        listed = one.details.get("memories")
        for memory_id in [*(listed if isinstance(listed, list) else ()), one.details.get("memory")]:
            if one.action in _TELLING and isinstance(memory_id, str):
                said[memory_id] = one.action
    for memory in home.memories.everything():
        last = said.get(memory.id)
        if memory.retired and last not in ("retire", "import", "undo"):
            told = f"{_named(memory)} is retired, and the ledger does not say so"
            found.append(Finding(WARNING, told, deep_repair(), _teller(memory)))
        elif not memory.retired and last == "retire":
            told = f"{_named(memory)} holds, and the ledger says that it was retired"
            found.append(
                Finding(WARNING, told, f"nacre retire {memory.id[-8:]}, unless it is meant to hold")
            )
    return Proof("ledger", f"{len(entries):,} entries", found)


def _teller(memory: Memory) -> Mend:
    def mend(home: Home) -> None:
        reason = memory.retired.reason if memory.retired else None
        with home.change("retire", why=reason) as change:
            change.append(
                [change.entry("retire", memory=memory.id, **({"reason": reason} if reason else {}))]
            )

    return mend


def _named(memory: Memory) -> str:
    return f"{shorten(memory.subject, 50)!r} ({memory.id[-8:]})"


# ----------------------------------------------------------------------------
# ``doctor --deep``: every part of the home is proved against what it was made from; what is safe is
# mended.


_PROOFS = (
    prove_database,
    prove_writes,
    prove_files,
    prove_links,
    prove_full_text,
    prove_vectors,
    prove_projects,
    prove_ledger,
    prove_archive,
)


def prove(
    home: Home,
    *,
    everything: bool = False,
    transcripts: bool = True,
    on_progress: OnProgress | None = None,
) -> list[Proof]:
    """Prove the home. What people edited is taken in first, as by any command: that is no finding.

    ``everything`` reads all transcripts again instead of a sample.
    """
    notify = on_progress or (lambda _: None)
    parts: list[Callable[[Home], Proof]] = list(_PROOFS)
    if transcripts:
        parts.append(partial(prove_transcripts, everything=everything, notify=notify))
    return [*_caught_up(home), *(_proof(part, home) for part in (*parts, prove_git))]


def _caught_up(home: Home) -> list[Proof]:
    """What people edited is taken in; a proof that it could not be where the database is damaged."""
    try:
        catch_up(home)
    except (StoreUnusable, *UNREADABLE) as error:
        return [Proof("edits", "not taken in", [_unreadable(error)])]
    return []


def _proof(part: Callable[[Home], Proof], home: Home) -> Proof:
    """One part; what cannot be read does not keep the others from being looked at."""
    try:
        return part(home)
    except (StoreUnusable, *UNREADABLE) as error:
        name = getattr(part, "func", part).__name__.removeprefix("prove_").replace("_", " ")
        return Proof(name, "not looked at", [_unreadable(error)])


def _unreadable(error: Exception) -> Finding:
    found = told_of(error)
    return Finding(FAILURE, found.message, found.hint or REBUILD)


def repair(home: Home, proofs: Sequence[Proof]) -> int:
    """Mend what can be mended without losing anything; returns how many findings that were."""
    mends = [finding.mend for proof in proofs for finding in proof.findings if finding.mend]
    for mend in mends:
        mend(home)
    return len(mends)


def as_check(proof: Proof) -> Check:
    """A proof in one line: the worst of its findings."""
    worst = next((one for one in proof.findings if one.severity == FAILURE), None)
    worst = worst or next(iter(proof.findings), None)
    if worst is None:
        return Check(proof.area, OK, proof.looked)
    more = f" (and {len(proof.findings) - 1} more)" if len(proof.findings) > 1 else ""
    state = FAILURE if worst.severity == FAILURE else WARNING
    return Check(proof.area, state, f"{worst.sentence}{more}", worst.repair)
