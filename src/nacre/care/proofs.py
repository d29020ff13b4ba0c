"""Consistency checks of a home ("proofs") for ``doctor --deep``, with safe repairs.

Each proof yields its problems and a summary of the data that it checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash
from nacre.base.text import shorten
from nacre.errors import (
    GitUnavailableError,
    InvalidMemoryError,
    NacreError,
    UnusableStoreError,
    UnusableVaultError,
)
from nacre.home import archive
from nacre.home.change import page_keys, read_pages
from nacre.home.home import Home
from nacre.home.location import redact
from nacre.home.parsing import iter_parsed, open_transcript
from nacre.home.spending import embedder_in_use
from nacre.learn.discovery import footprint
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.edit import catch_up, scan
from nacre.memories.graph import CODE
from nacre.memories.judge import superseded_ids
from nacre.readers.registry import get_adapter
from nacre.store import maintenance
from nacre.store.schema import UNREADABLE, turn_identity
from nacre.values.memory import Memory, Project, SeenMemoryFile
from nacre.values.reports import FAILURE, OK, WARNING, Check, OnProgress, Problem, Progress
from nacre.values.session import SeenFile, Session
from nacre.vault import files
from nacre.vault.documents import parse

REBUILD = "nacre admin db rebuild; the vault has all memories"
DEEP_REPAIR = "nacre admin doctor --deep --repair"
"""Command that makes all repairs that need no decision by the user."""

Mend = Callable[[Home], object]


@frozen
class Finding:
    """A result of a proof: its severity, a description, and the command that repairs it.

    ``mend``: function that makes the same repair, set only if nothing can be lost.
    """

    severity: str
    sentence: str
    repair: str | None = None
    mend: Mend | None = None


Proof = Callable[[Home], Iterator[Finding]]

Proofs = dict[str, list[Finding]]
"""Findings, keyed by area, such as ``vectors``."""


def as_nacre_error(error: Exception) -> NacreError:
    """Convert an error from reading the database to one that users understand."""
    if isinstance(error, NacreError):
        return error
    text = f"{type(error).__name__}{f': {error}' if str(error) else ''}"
    return UnusableStoreError(
        f"the database has unreadable data ({shorten(text, 200)})", hint=REBUILD
    )


# -- The archive -----------------------------------------------------------------------------------


def prove_archive(home: Home) -> Iterator[Finding]:
    """Verify the archive's checksums, and report damaged packs that were set aside."""
    count, problems = archive.verify(home)
    yield Finding(OK, f"{count:,} transcripts, all checksums verified")
    yield from map(_of_problem, problems)


def _of_problem(problem: Problem) -> Finding:
    hint = problem.hint or DEEP_REPAIR
    return Finding(FAILURE, f"{problem.path}: {problem.message}", hint, archive.mend)


# -- Git repository --------------------------------------------------------------------------------


_MAX_FINDINGS = 10


def prove_git(home: Home) -> Iterator[Finding]:
    """Check that git can find every object of the vault's repository."""
    repository = home.repository
    if not repository.exists:
        yield Finding(OK, "no repository")
        return
    if not repository.is_whole:
        sentence = f"{repository.git.git_dir} is incomplete: its creation was interrupted"
        yield Finding(WARNING, sentence, "nacre admin commit creates it again")
        return
    try:
        damage = repository.damage()
    except GitUnavailableError as error:
        yield Finding(WARNING, error.message, error.hint or "git --version")
        return
    yield Finding(OK, "all objects present")
    repair = (
        f"get the missing objects from a clone or a backup, then: git -C {repository.root} fsck"
    )
    for line in damage[:_MAX_FINDINGS]:
        yield Finding(FAILURE, f"git: {line}", repair)


# -- Database: integrity, full text, vectors -------------------------------------------------------


def prove_database(home: Home) -> Iterator[Finding]:
    """Check the database for damage, and for unreadable and orphaned rows."""
    sound = maintenance.Soundness(home.database_file)
    yield Finding(OK, f"{sound.pages():,} pages")
    sentences = [
        *(f"SQLite: {text}" for text in home.database_file.check()[:20]),
        *(f"a row of {table} is not readable" for table in sound.unreadable()),
        *(f"{count} rows of {table} are orphaned" for table, count in sound.strays()),
    ]
    for sentence in sentences:
        yield Finding(FAILURE, sentence, REBUILD)


def prove_full_text(home: Home) -> Iterator[Finding]:
    """Check that full-text search covers exactly the stored memories and turns."""
    sound = maintenance.Soundness(home.database_file)
    yield Finding(OK, f"{sound.texts():,} texts")
    if memories := sound.memories_unindexed():
        sentence = f"{len(memories)} memories are missing from the full text index"
        yield Finding(FAILURE, sentence, DEEP_REPAIR, partial(_reindex, memories))
    if turns := sound.turns_unindexed():
        sentence = f"{len(turns)} turns are missing from the full text index"
        yield Finding(FAILURE, sentence, DEEP_REPAIR, lambda home: home.sessions.index_again(turns))
    for table, rows in sound.text_without_rows().items():
        sentence = f"{len(rows)} texts in {table} are orphaned"
        yield Finding(FAILURE, sentence, DEEP_REPAIR, partial(_forget_text, table, rows))


def _reindex(ids: Sequence[str], home: Home) -> None:
    with home.transaction():
        for memory in filter(None, map(home.memories.find, ids)):
            home.memories.put(memory)


def _forget_text(table: str, rows: Sequence[int], home: Home) -> None:
    with home.transaction():
        maintenance.Soundness(home.database_file).forget_text(table, rows)


def prove_vectors(home: Home) -> Iterator[Finding]:
    """Check that every memory and passage has a vector of the configured model."""
    if not home.settings.embeds:
        yield Finding(OK, "off")
        return
    try:
        made_by, embedder = home.vectors.model(), embedder_in_use(home)
        missing = sum(home.vectors.missing())
    except NacreError as error:
        yield Finding(WARNING, error.message, error.hint or "nacre admin doctor")
        return
    counts = f"{home.vectors.count_memories():,} memories, {home.vectors.count():,} passages"
    yield Finding(OK, counts)
    sound = maintenance.Soundness(home.database_file)
    if made_by is not None and made_by != embedder.name:
        sentence = f"the vectors were made by {made_by}, but the model is {embedder.name}"
        yield Finding(FAILURE, sentence, "nacre ingest makes new ones")
    elif missing:
        yield Finding(WARNING, f"{missing:,} texts have no vector yet", "nacre ingest")
    # Some models report their vector size only with an answer.
    wrong = sound.vectors_of_other_size(embedder.dimensions or home.vectors.dimensions())
    unindexed = sound.bits_missing()
    if wrong or unindexed:
        sentence = (
            f"{wrong} vectors have a different size from the model's"
            if wrong
            else f"{unindexed} passages are missing from the quick index"
        )
        yield Finding(FAILURE, sentence, f"{DEEP_REPAIR}, then nacre ingest", _drop_vectors)


def _drop_vectors(home: Home) -> None:
    name, setting = home.vectors.model() or "", home.vectors.setting()
    home.vectors.begin("")
    home.vectors.begin(name, setting or "")


# -- Index against transcripts ---------------------------------------------------------------------


SAMPLE = 20
"""Default number of transcripts that a check reads again, spread evenly over all of them."""


def prove_transcripts(home: Home, *, everything: bool, notify: OnProgress) -> Iterator[Finding]:
    """Check that the index contains every turn that was read from transcripts that still exist."""
    sound = maintenance.Soundness(home.database_file)
    for row, name in sound.sessions_miscounted():
        sentence = f"session {name} has a wrong count of turns"
        yield Finding(FAILURE, sentence, DEEP_REPAIR, partial(_count_again, row))
    read_files = home.sessions.seen_files()
    present = [file for file in read_files if Path(file.path).is_file()]
    unchanged = [file for file in present if _is_unchanged(file)]
    chosen = unchanged if everything else unchanged[:: max(1, -(-len(unchanged) // SAMPLE))]
    for index, file in enumerate(chosen):
        yield from _read_again(home, sound, file)
        notify(Progress("proving", index + 1, len(chosen), Path(file.path).name))
    if len(unchanged) < len(present):
        sentence = f"{len(present) - len(unchanged)} transcripts changed since the last read"
        yield Finding(WARNING, sentence, "nacre ingest")
    missing = len(read_files) - len(present)
    yield Finding(
        OK, f"{len(chosen):,} of {len(present):,} transcripts reread, {missing:,} are gone"
    )


def _is_unchanged(file: SeenFile) -> bool:
    try:
        return footprint(Path(file.path)) == (file.size, file.mtime_ns)
    except OSError:
        return False


def _read_again(home: Home, sound: maintenance.Soundness, file: SeenFile) -> Iterator[Finding]:
    path = Path(file.path)
    command = f"nacre ingest --force {path}"
    try:
        missing, total = _count_missing(home, sound, path, file.tool)
    except (NacreError, OSError, ValueError) as error:
        yield Finding(WARNING, f"{path} cannot be reread: {error}", command)
        return
    if missing:
        sentence = f"{missing} of {total} turns of {path} are missing from the index"
        yield Finding(FAILURE, sentence, command, partial(_ingest, path))


def _count_missing(
    home: Home, sound: maintenance.Soundness, path: Path, tool: str
) -> tuple[int, int]:
    turns: dict[bytes, None] = {}
    unknown = 0
    row = None
    session = None
    identities = tuple(home.settings.texts("owner.identities"))
    with open_transcript(path, tool, identities=identities) as (adapter, source):
        for item in iter_parsed(adapter or get_adapter(tool), source):
            if isinstance(item, Session):
                session = item
                row = next((stored.row for stored in home.sessions.find(item.id)), None)
            elif session is None or (row is None and not item.unique):
                unknown += 1
            else:
                turns[turn_identity(session.tool, row or 0, item)] = None
    identifiers = list(turns)
    present = sum(
        sound.known_turns(identifiers[at : at + 500]) for at in range(0, len(identifiers), 500)
    )
    return len(identifiers) - present + unknown, len(identifiers) + unknown


def _count_again(row: int, home: Home) -> None:
    with home.transaction():
        home.sessions.refresh([row])


def _ingest(path: Path, home: Home) -> None:
    options = IngestOptions(
        paths=(path,), extract=False, vectors=False, force=True, remember_paths=False
    )
    ingest(home, options)


# -- Vault against index ---------------------------------------------------------------------------
# Files and rows, links, project pages, pending writes, and the ledger.


_RETIREMENT_ACTIONS = frozenset({"retire", "restore", "unretire", "import", "undo"})
_UNORDERED = frozenset({"tags", "links"})


def prove_writes(home: Home) -> Iterator[Finding]:
    """Check that all changes have been written to the vault."""
    yield Finding(OK, "none pending")
    for intent in home.files.intents():
        sentence = f"a {intent.action} of {intent.path} is pending"
        yield Finding(FAILURE, sentence, "nacre admin doctor shows why; any command then writes it")


def prove_files(home: Home) -> Iterator[Finding]:
    """Check that memory files and index rows correspond and have the same fields."""
    indexed = home.files.indexed()
    stats = {stat.path: stat for stat in home.vault.scan()}
    yield Finding(OK, f"{len(stats):,} files")
    broken = {problem.partition(": ")[0]: problem for problem in home.problems}
    for path, stat in stats.items():
        if path in broken:
            yield Finding(
                FAILURE,
                broken[path],
                "correct the file; until then recall uses its last good version",
            )
        elif path not in indexed:
            sentence = f"{path} is missing from the index"
            yield Finding(FAILURE, sentence, "nacre admin db rebuild")
        else:
            yield from _compare_file(home, stat, indexed[path])
    for path in indexed.keys() - stats.keys() - home.files.pending_paths():
        sentence = f"{path} is in the index but not in the vault"
        yield Finding(FAILURE, sentence, "nacre admin db rebuild")
    for memory in filter(None, map(home.memories.find, home.files.unfiled())):
        sentence = f"{_label(memory)} is in the index but has no file"
        yield Finding(FAILURE, sentence, DEEP_REPAIR, partial(_write_file_again, memory))


def _compare_file(home: Home, stat: files.FileStat, seen_file: SeenMemoryFile) -> Iterator[Finding]:
    row = home.memories.find(seen_file.memory)
    # If the file has no date, only the index knows the date.
    modified = row.created if row else home.now()
    try:
        data = home.vault.read(stat.path)
        written = redact(
            home.redactor,
            parse(
                data.decode("utf-8"), stat.path, new_id=lambda: seen_file.memory, modified=modified
            ),
        )
    except (FileNotFoundError, UnicodeDecodeError, InvalidMemoryError, UnusableVaultError) as error:
        yield Finding(FAILURE, f"{stat.path} cannot be read: {error}", "correct the file")
        return
    differing = row and [
        column.name
        for column in fields(Memory)
        if _value(written, column.name) != _value(row, column.name)
    ]
    sentence = ""
    if bytes_hash(data) != seen_file.hash:
        sentence = "changed without a new modification time, so the index has its old text"
    elif row is None:
        sentence = "has no row in the index"
    elif differing:
        sentence = f"and its row have different {', '.join(differing)}"
    if sentence:
        mend = partial(_read_file_again, seen_file)
        yield Finding(FAILURE, f"{stat.path} {sentence}", DEEP_REPAIR, mend)


def _value(memory: Memory, name: str) -> object:
    value = getattr(memory, name)
    return sorted(set(value), key=repr) if name in _UNORDERED else value


def _read_file_again(seen_file: SeenMemoryFile, home: Home) -> None:
    home.files.save(replace(seen_file, mtime_ns=0, hash=b""))
    scan(home)


def _write_file_again(memory: Memory, home: Home) -> None:
    with home.change("update", subject=memory.subject) as change:
        change.put([memory])


def prove_links(home: Home) -> Iterator[Finding]:
    """Check that every link leads to a memory, and that replaced memories and their successors match."""
    memories = {memory.id: memory for memory in home.memories.everything()}
    links = sum(len(memory.links) for memory in memories.values())
    yield Finding(OK, f"{links:,} in the front matter of {len(memories):,} memories")
    for memory in memories.values():
        label, short_id = _label(memory), memory.id[-8:]
        for link in memory.links:
            if link.to not in memories and not link.to.startswith(CODE):
                sentence = f"{label}: dangling link {link.rel} {link.to}"
                yield Finding(WARNING, sentence, f"nacre edit {short_id}")
        newer = memory.superseded_by
        compare = f"nacre show {short_id} --history; edit the wrong one"
        if newer and newer not in memories:
            sentence = f"{label}: dangling link superseded_by {newer}"
            yield Finding(WARNING, sentence, f"nacre retire --restore {short_id}")
        elif newer and not memory.retired and memory.id not in superseded_ids(memories[newer]):
            sentence = f"{label} names {_label(memories[newer])} as its successor, which does not confirm it"
            yield Finding(WARNING, sentence, compare)
        for old in superseded_ids(memory):
            older = memories.get(old)
            if older and older.is_active and not memory.retired:
                sentence = f"{label} claims to supersede {_label(older)}, which is still active"
                yield Finding(WARNING, sentence, compare)


def prove_projects(home: Home) -> Iterator[Finding]:
    """Check that the index has the same aliases, folders and remotes as the project pages."""
    projects = home.files.projects()
    yield Finding(OK, f"{len(projects):,} pages")
    keys = home.files.project_keys()
    claimed = {(kind, value) for kind, value, _ in keys}
    for project in projects:
        try:
            expected = page_keys(home, project.slug)
        except (FileNotFoundError, InvalidMemoryError, UnusableVaultError):
            continue  # the scan reports unreadable pages
        own = {(kind, value) for kind, value, slug in keys if slug == project.slug}
        if differing := sorted((expected - claimed) | (own - expected)):
            sentence = f"the index has other aliases, folders or remotes for project {project.slug} than its page: "
            named = shorten(", ".join(f"{kind} {value}" for kind, value in differing), 200)
            mend = partial(_read_page_again, project)
            yield Finding(FAILURE, sentence + named, DEEP_REPAIR, mend)


def _read_page_again(project: Project, home: Home) -> None:
    with home.transaction():
        home.files.save_project(replace(project, mtime_ns=-1), [])
    read_pages(home)


def prove_ledger(home: Home) -> Iterator[Finding]:
    """Check that the ledger and the files list the same memories as retired."""
    data = home.ledger()
    entries = list(files.read(data))
    yield Finding(OK, f"{len(entries):,} entries")
    for number in files.broken_lines(data):
        sentence = f"line {number} of ledger.jsonl is not an entry"
        yield Finding(
            WARNING, sentence, f"correct or remove it in {home.vault.root}/{files.LEDGER}"
        )
    last_actions: dict[object, str] = {}
    for entry in entries:
        if entry.action in _RETIREMENT_ACTIONS:
            listed = entry.details.get("memories")
            ids = listed if isinstance(listed, list) else [entry.details.get("memory")]
            last_actions |= {str(memory_id): entry.action for memory_id in ids}
    for memory in home.memories.everything():
        last = last_actions.get(memory.id)
        if memory.retired and last not in ("retire", "import", "undo"):
            sentence = f"{_label(memory)} is retired, but not in the ledger"
            yield Finding(WARNING, sentence, DEEP_REPAIR, partial(_record, memory))
        elif not memory.retired and last == "retire":
            sentence = f"{_label(memory)} is active, but retired in the ledger"
            repair = f"nacre retire {memory.id[-8:]}, unless it should be active"
            yield Finding(WARNING, sentence, repair)


def _record(memory: Memory, home: Home) -> None:
    reason = memory.retired.reason if memory.retired else None
    with home.change("retire", why=reason) as change:
        change.note("retire", memory=memory.id, reason=reason)


def _label(memory: Memory) -> str:
    return f"{shorten(memory.subject, 50)!r} ({memory.id[-8:]})"


# -- All proofs and repairs ------------------------------------------------------------------------


def prove(
    home: Home,
    *,
    everything: bool = False,
    transcripts: bool = True,
    on_progress: OnProgress = lambda _: None,
) -> Proofs:
    """Check that the home's data is consistent.

    Manual edits are indexed first, because they are not errors. Unless ``everything`` is set, only
    a sample of the transcripts is checked.
    """
    proofs = {
        "edits": _catch_up,
        "database": prove_database,
        "writes": prove_writes,
        "vault": prove_files,
        "links": prove_links,
        "full text": prove_full_text,
        "vectors": prove_vectors,
        "projects": prove_projects,
        "ledger": prove_ledger,
        "archive": prove_archive,
    }
    if transcripts:
        proofs["transcripts"] = partial(
            prove_transcripts, everything=everything, notify=on_progress
        )
    proofs["git"] = prove_git
    return {area: list(_readable(proof, home)) for area, proof in proofs.items()}


def _catch_up(home: Home) -> Iterator[Finding]:
    catch_up(home)
    yield from ()


def _readable(proof: Proof, home: Home) -> Iterator[Finding]:
    try:
        yield from proof(home)
    except (UnusableStoreError, *UNREADABLE) as error:
        problem = as_nacre_error(error)
        yield Finding(FAILURE, problem.message, problem.hint or REBUILD)


def repair(home: Home, proofs: Proofs) -> int:
    """Make all repairs that the proofs offer, and return their number."""
    mends = [finding.mend for findings in proofs.values() for finding in findings if finding.mend]
    for mend in mends:
        mend(home)
    return len(mends)


def archive_again(home: Home, proofs: Proofs) -> None:
    """Archive pending transcripts, and add any failures to the archive's findings."""
    proofs["archive"] += map(_of_problem, archive.archive(home).problems)


def as_checks(proofs: Proofs) -> Iterator[Check]:
    """Convert findings to checks. If an area has problems, include only its problems."""
    for area, findings in proofs.items():
        problems = [finding for finding in findings if finding.severity != OK]
        for finding in problems or findings:
            yield Check(area, finding.severity, finding.sentence, finding.repair)
