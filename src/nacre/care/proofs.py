"""Proofs of a home against its sources, for ``doctor --deep``, with safe repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, fields, replace
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
from nacre.home.consent import embedder_in_use
from nacre.home.home import Home
from nacre.home.location import redact
from nacre.home.parsing import iter_parsed, open_transcript
from nacre.learn.discovery import footprint
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.edit import catch_up, scan
from nacre.memories.graph import CODE
from nacre.memories.judge import superseded_ids
from nacre.readers.registry import get_adapter
from nacre.store import maintenance
from nacre.store.schema import UNREADABLE, turn_identity
from nacre.values.memory import Memory, Project, SeenMemoryFile
from nacre.values.reports import OK, Check, OnProgress, Progress
from nacre.values.session import SeenFile, Session
from nacre.vault import files
from nacre.vault.documents import parse
from nacre.vault.files import LEDGER, FileStat

WARNING, FAILURE = "warning", "failure"
REBUILD = "nacre admin db rebuild; the vault has all memories"
DEEP_REPAIR = "nacre admin doctor --deep --repair"
"""Command that makes all repairs that need no decision by the user."""

Mend = Callable[[Home], object]


@frozen
class Finding:
    """A problem: its severity, a description, and the command that repairs it.

    ``mend``: function for the same repair, set only if nothing can be lost.
    """

    severity: str
    sentence: str
    repair: str
    mend: Mend | None = None


@frozen
class Proof:
    """The result of checking one part of the home. ``looked``: description of the checks."""

    area: str
    looked: str
    findings: list[Finding] = field(default_factory=list)


def told_of(error: Exception) -> NacreError:
    """Return the error to show if reading the database has failed with ``error``."""
    if isinstance(error, NacreError):
        return error
    text = f"{type(error).__name__}{f': {error}' if str(error) else ''}"
    return UnusableStoreError(
        f"the database has unreadable data ({shorten(text, 200)})", hint=REBUILD
    )


# -- The archive -----------------------------------------------------------------------------------


def prove_archive(home: Home) -> Proof:
    """Check the archive's checksums. Damaged packs are set aside, and reported until they are deleted."""
    files, problems = archive.verify(home)
    findings = [
        Finding(
            FAILURE, f"{problem.path}: {problem.message}", problem.hint or DEEP_REPAIR, archive.mend
        )
        for problem in problems
    ]
    return Proof("archive", f"{files:,} transcripts, all checksums verified", findings)


# -- Git repository --------------------------------------------------------------------------------


_MAX_FINDINGS = 10


def prove_git(home: Home) -> Proof:
    """Check that git finds every object of the vault's repository."""
    repository = home.repository
    if not repository.exists:
        return Proof("git", "no repository")
    if not repository.is_whole:
        sentence = f"{repository.git.git_dir} is incomplete: its creation was interrupted"
        return Proof(
            "git",
            "not started",
            [Finding(WARNING, sentence, "nacre admin commit creates it again")],
        )
    try:
        damage = repository.damage()
    except GitUnavailableError as error:
        return Proof(
            "git", "not checked", [Finding(WARNING, error.message, error.hint or "git --version")]
        )
    if not damage:
        return Proof("git", "all objects present")
    repair = (
        f"get the missing objects from a clone or a backup, then: git -C {repository.root} fsck"
    )
    return Proof(
        "git",
        "damaged",
        [Finding(FAILURE, f"git: {line}", repair) for line in damage[:_MAX_FINDINGS]],
    )


# -- Database: integrity, full text, vectors -------------------------------------------------------


def prove_database(home: Home) -> Proof:
    """Check for damage, unreadable rows and orphaned rows in the database."""
    sound = maintenance.Soundness(home.database_file)
    findings = [
        Finding(FAILURE, f"SQLite: {text}", REBUILD) for text in home.database_file.check()[:20]
    ]
    findings += [
        Finding(FAILURE, f"a row of {table} is not readable", REBUILD)
        for table in sound.unreadable()
    ]
    findings += [
        Finding(FAILURE, f"{count} rows of {table} are orphaned", REBUILD)
        for table, count in sound.strays()
    ]
    return Proof("database", f"{sound.pages():,} pages", findings)


def prove_full_text(home: Home) -> Proof:
    """Check that the full-text index contains exactly the memories and turns."""
    sound = maintenance.Soundness(home.database_file)
    memories, turns = sound.memories_unindexed(), sound.turns_unindexed()
    findings: list[Finding] = []
    if memories:
        sentence = f"{len(memories)} memories are missing from the full text index"
        findings.append(Finding(FAILURE, sentence, DEEP_REPAIR, partial(_reindex, memories)))
    if turns:
        sentence = f"{len(turns)} turns are missing from the full text index"
        findings.append(
            Finding(FAILURE, sentence, DEEP_REPAIR, lambda home: home.sessions.index_again(turns))
        )
    for table, rows in sound.text_without_rows().items():
        sentence = f"{len(rows)} texts in {table} are orphaned"
        findings.append(Finding(FAILURE, sentence, DEEP_REPAIR, partial(_forget_text, table, rows)))
    return Proof("full text", f"{sound.texts():,} texts", findings)


def _reindex(ids: Sequence[str], home: Home) -> None:
    with home.transaction():
        for memory in filter(None, map(home.memories.find, ids)):
            home.memories.put(memory)


def _forget_text(table: str, rows: Sequence[int], home: Home) -> None:
    with home.transaction():
        maintenance.Soundness(home.database_file).forget_text(table, rows)


def prove_vectors(home: Home) -> Proof:
    """Check that every text has a vector of the right size from the configured model."""
    if home.settings.text("embedding.model") == "none":
        return Proof("vectors", "off")
    try:
        made_by, embedder = home.vectors.model(), embedder_in_use(home)
        waiting = sum(home.vectors.missing())
    except NacreError as error:
        return Proof(
            "vectors",
            "not checked",
            [Finding(WARNING, error.message, error.hint or "nacre admin doctor")],
        )
    sound = maintenance.Soundness(home.database_file)
    findings: list[Finding] = []
    if made_by is not None and made_by != embedder.name:
        sentence = f"the vectors were made by {made_by}, but the model is {embedder.name}"
        findings.append(Finding(FAILURE, sentence, "nacre ingest makes new ones"))
    elif waiting:
        findings.append(Finding(WARNING, f"{waiting:,} texts have no vector yet", "nacre ingest"))
    # Some models report their vector size only with an answer.
    size = embedder.dimensions or home.vectors.dimensions()
    wrong = sound.vectors_of_other_size(size)
    if wrong:
        sentence = f"{wrong} vectors have a different size from the model's"
        findings.append(
            Finding(FAILURE, sentence, f"{DEEP_REPAIR}, then nacre ingest", _drop_vectors)
        )
    elif sound.bits_missing():
        sentence = f"{sound.bits_missing()} passages are missing from the quick index"
        findings.append(
            Finding(FAILURE, sentence, f"{DEEP_REPAIR}, then nacre ingest", _drop_vectors)
        )
    return Proof(
        "vectors",
        f"{home.vectors.count_memories():,} memories, {home.vectors.count():,} passages",
        findings,
    )


def _drop_vectors(home: Home) -> None:
    name, setting = home.vectors.model() or "", home.vectors.setting()
    home.vectors.begin("")
    home.vectors.begin(name, setting)


# -- Index against transcripts ---------------------------------------------------------------------


SAMPLE = 20
"""Number of transcripts that a check reads again by default, spread evenly over all transcripts."""


def prove_transcripts(home: Home, *, everything: bool, notify: OnProgress) -> Proof:
    """Check that the index contains every turn that was read from the existing transcripts."""
    sound = maintenance.Soundness(home.database_file)
    findings = [
        Finding(
            FAILURE,
            f"session {name} has a wrong count of turns",
            DEEP_REPAIR,
            partial(_count_again, row),
        )
        for row, name in sound.sessions_miscounted()
    ]
    seen_files = home.sessions.seen_files()
    present = [file for file in seen_files if Path(file.path).is_file()]
    unchanged = [file for file in present if _is_unchanged(file)]
    chosen = unchanged if everything else unchanged[:: max(1, -(-len(unchanged) // SAMPLE))]
    for index, file in enumerate(chosen):
        findings += _read_again(home, sound, file)
        notify(Progress("proving", index + 1, len(chosen), Path(file.path).name))
    if len(unchanged) < len(present):
        sentence = f"{len(present) - len(unchanged)} transcripts changed since the last read"
        findings.append(Finding(WARNING, sentence, "nacre ingest"))
    looked = f"{len(chosen):,} of {len(present):,} transcripts reread, {len(seen_files) - len(present):,} are gone"
    return Proof("transcripts", looked, findings)


def _is_unchanged(file: SeenFile) -> bool:
    try:
        return footprint(Path(file.path)) == (file.size, file.mtime_ns)
    except OSError:
        return False


def _read_again(home: Home, sound: maintenance.Soundness, file: SeenFile) -> list[Finding]:
    path = Path(file.path)
    try:
        lacking, total = _count_missing(home, sound, path, file.tool)
    except (NacreError, OSError, ValueError) as error:
        return [
            Finding(WARNING, f"{path} cannot be reread: {error}", f"nacre ingest --force {path}")
        ]
    if not lacking:
        return []
    sentence = f"{lacking} of {total} turns of {path} are missing from the index"
    return [Finding(FAILURE, sentence, f"nacre ingest --force {path}", partial(_ingest, path))]


def _count_missing(
    home: Home, sound: maintenance.Soundness, path: Path, tool: str
) -> tuple[int, int]:
    """Return the number of turns missing from the index, and the number of turns in the file."""
    turns: dict[bytes, None] = {}
    unknown = 0
    row: int | None = None
    session: Session | None = None
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


def prove_writes(home: Home) -> Proof:
    """Check that no write to the vault is pending."""
    waiting = home.files.intents()
    findings = [
        Finding(
            FAILURE,
            f"a {intent.action} of {intent.path} is pending",
            "nacre admin doctor shows why; any command then writes it",
        )
        for intent in waiting
    ]
    return Proof("writes", "none pending" if not waiting else f"{len(waiting)} pending", findings)


def prove_files(home: Home) -> Proof:
    """Check that every memory file has a row in the index with the same fields, and that every row has a file."""
    seen_files = home.files.seen()
    stats = {stat.path: stat for stat in home.vault.scan()}
    broken = {problem.partition(": ")[0]: problem for problem in home.problems}
    findings: list[Finding] = []
    for path, stat in stats.items():
        if path in broken:
            findings.append(
                Finding(
                    FAILURE,
                    broken[path],
                    "correct the file; until then recall uses its last good version",
                )
            )
        elif path not in seen_files:
            findings.append(
                Finding(FAILURE, f"{path} is missing from the index", "nacre admin db rebuild")
            )
        else:
            findings += _compare_file(home, stat, seen_files[path])
    for path in seen_files.keys() - stats.keys() - home.files.pending_paths():
        findings.append(
            Finding(
                FAILURE, f"{path} is in the index but not in the vault", "nacre admin db rebuild"
            )
        )
    for memory in filter(None, map(home.memories.find, home.files.unfiled())):
        sentence = f"{_label(memory)} is in the index but has no file"
        findings.append(Finding(FAILURE, sentence, DEEP_REPAIR, partial(_write_file_again, memory)))
    return Proof("vault", f"{len(stats):,} files", findings)


def _compare_file(home: Home, stat: FileStat, seen_file: SeenMemoryFile) -> Iterator[Finding]:
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


def prove_links(home: Home) -> Proof:
    """Check that links lead to existing memories. Superseded memories and their successors must name each other."""
    memories = {memory.id: memory for memory in home.memories.everything()}
    findings: list[Finding] = []
    links = 0
    for memory in memories.values():
        links += len(memory.links)
        for link in memory.links:
            if link.to not in memories and not link.to.startswith(CODE):
                sentence = f"{_label(memory)}: dangling link {link.rel} {link.to}"
                findings.append(Finding(WARNING, sentence, f"nacre edit {memory.id[-8:]}"))
        newer = memory.superseded_by
        compare = f"nacre show {memory.id[-8:]} --history; edit the wrong one"
        if newer and newer not in memories:
            sentence = f"{_label(memory)}: dangling link superseded_by {newer}"
            findings.append(Finding(WARNING, sentence, f"nacre retire --restore {memory.id[-8:]}"))
        elif newer and not memory.retired and memory.id not in superseded_ids(memories[newer]):
            sentence = f"{_label(memory)} names {_label(memories[newer])} as its successor, which does not confirm it"
            findings.append(Finding(WARNING, sentence, compare))
        for old in superseded_ids(memory):
            successor = memories.get(old)
            if successor and successor.is_active and not memory.retired:
                sentence = f"{_label(memory)} claims to supersede {_label(successor)}, which is still active"
                findings.append(Finding(WARNING, sentence, compare))
    return Proof("links", f"{links:,} in the front matter of {len(memories):,} memories", findings)


def prove_projects(home: Home) -> Proof:
    """Check that the index has the same aliases, folders and remotes as the project pages."""
    keys_by_slug: dict[str, set[tuple[str, str]]] = {}
    for key, value, slug in home.files.project_keys():
        keys_by_slug.setdefault(slug, set()).add((key, value))
    claimed = set().union(*keys_by_slug.values()) if keys_by_slug else set()
    findings: list[Finding] = []
    projects = home.files.projects()
    for project in projects:
        try:
            expected = page_keys(home, project.slug)
        except (FileNotFoundError, InvalidMemoryError, UnusableVaultError):
            continue  # the scan reports unreadable pages
        lacking, extra = expected - claimed, keys_by_slug.get(project.slug, set()) - expected
        if lacking or extra:
            sentence = f"the index has other aliases, folders or remotes for project {project.slug} than its page: "
            named = ", ".join(f"{key} {value}" for key, value in sorted(lacking | extra))
            mend = partial(_read_page_again, project)
            findings.append(Finding(FAILURE, sentence + shorten(named, 200), DEEP_REPAIR, mend))
    return Proof("projects", f"{len(projects):,} pages", findings)


def _read_page_again(project: Project, home: Home) -> None:
    with home.transaction():
        home.files.save_project(replace(project, mtime_ns=-1), [])
    read_pages(home)


def prove_ledger(home: Home) -> Proof:
    """Check that the same memories are retired in the ledger and in the files."""
    try:
        data = home.vault.read(LEDGER)
    except FileNotFoundError:
        return Proof("ledger", "none yet")
    entries = list(files.read(data))
    findings = [
        Finding(
            WARNING,
            f"line {number} of ledger.jsonl is not an entry",
            f"correct or remove it in {home.vault.root}/{LEDGER}",
        )
        for number in files.broken_lines(data)
    ]
    last_actions: dict[str, str] = {}
    for entry in entries:
        listed = entry.details.get("memories")
        for memory_id in [
            *(listed if isinstance(listed, list) else ()),
            entry.details.get("memory"),
        ]:
            if entry.action in _RETIREMENT_ACTIONS and isinstance(memory_id, str):
                last_actions[memory_id] = entry.action
    for memory in home.memories.everything():
        last = last_actions.get(memory.id)
        if memory.retired and last not in ("retire", "import", "undo"):
            sentence = f"{_label(memory)} is retired, but not in the ledger"
            findings.append(Finding(WARNING, sentence, DEEP_REPAIR, partial(_record, memory)))
        elif not memory.retired and last == "retire":
            sentence = f"{_label(memory)} is active, but retired in the ledger"
            findings.append(
                Finding(
                    WARNING, sentence, f"nacre retire {memory.id[-8:]}, unless it should be active"
                )
            )
    return Proof("ledger", f"{len(entries):,} entries", findings)


def _record(memory: Memory, home: Home) -> None:
    reason = memory.retired.reason if memory.retired else None
    with home.change("retire", why=reason) as change:
        change.note("retire", memory=memory.id, reason=reason)


def _label(memory: Memory) -> str:
    return f"{shorten(memory.subject, 50)!r} ({memory.id[-8:]})"


# -- All proofs and repairs ------------------------------------------------------------------------


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
    """Check that the home's data is consistent. Manual edits are read first and do not count as findings.

    Unless ``everything`` is set, only a sample of the transcripts is read again.
    """
    notify = on_progress or (lambda _: None)
    parts: list[Callable[[Home], Proof]] = list(_PROOFS)
    if transcripts:
        parts.append(partial(prove_transcripts, everything=everything, notify=notify))
    return [*_caught_up(home), *(_proof(part, home) for part in (*parts, prove_git))]


def _caught_up(home: Home) -> list[Proof]:
    """Read manual edits. Return a failed proof if the database is unreadable."""
    try:
        catch_up(home)
    except (UnusableStoreError, *UNREADABLE) as error:
        return [Proof("edits", "not included", [_unreadable(error)])]
    return []


def _proof(part: Callable[[Home], Proof], home: Home) -> Proof:
    """Run a check. If its data is unreadable, report this as a finding."""
    try:
        return part(home)
    except (UnusableStoreError, *UNREADABLE) as error:
        name = getattr(part, "func", part).__name__.removeprefix("prove_").replace("_", " ")
        return Proof(name, "not checked", [_unreadable(error)])


def _unreadable(error: Exception) -> Finding:
    problem = told_of(error)
    return Finding(FAILURE, problem.message, problem.hint or REBUILD)


def repair(home: Home, proofs: Sequence[Proof]) -> int:
    """Repair all findings for which a safe repair exists. Return the number of repairs."""
    mends = [finding.mend for proof in proofs for finding in proof.findings if finding.mend]
    for mend in mends:
        mend(home)
    return len(mends)


def archive_again(home: Home, proofs: Sequence[Proof]) -> None:
    """Archive pending transcripts. Failures become findings of the check of the archive."""
    failures = [
        Finding(FAILURE, f"{problem.path}: {problem.message}", problem.hint or DEEP_REPAIR)
        for problem in archive.archive(home).problems
    ]
    for proof in proofs:
        if proof.area == "archive":
            proof.findings.extend(failures)


def as_check(proof: Proof) -> Check:
    """Convert a proof to a check with its worst finding."""
    worst = next((finding for finding in proof.findings if finding.severity == FAILURE), None)
    worst = worst or next(iter(proof.findings), None)
    if worst is None:
        return Check(proof.area, OK, proof.looked)
    more = f" (and {len(proof.findings) - 1} more)" if len(proof.findings) > 1 else ""
    state = FAILURE if worst.severity == FAILURE else WARNING
    return Check(proof.area, state, f"{worst.sentence}{more}", worst.repair)
