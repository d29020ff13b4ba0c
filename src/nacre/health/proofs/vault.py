"""Vault against index: files and rows, links at both ends, project pages, pending writes, the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from nacre.dedup.supersession import superseded
from nacre.errors import MemoryInvalid, VaultUnusable
from nacre.graph.nodes import CODE
from nacre.health.proofs.finding import FAILURE, WARNING, Finding, Mend, Proof, deep_repair
from nacre.home.home import Home
from nacre.home.projects import page_keys, read_pages
from nacre.home.redaction import redacted
from nacre.memories.scan import scan
from nacre.platform.ids import bytes_hash
from nacre.text.passages import shorten
from nacre.values.memory import Memory
from nacre.values.operation import Project, SeenMemoryFile
from nacre.vault import ledger
from nacre.vault.document import parse
from nacre.vault.files import FileStat
from nacre.vault.layout import LEDGER

_TELLING = frozenset({"retire", "restore", "unretire", "import", "undo"})
_UNORDERED = frozenset({"tags", "links"})


def prove_writes(home: Home) -> Proof:
    """No write to the vault is pending."""
    waiting = home.files.intents()
    found = [
        Finding(
            FAILURE, f"a {intent.action} of {intent.path} waits", "nacre doctor tells why; then any command writes it"
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
            found.append(Finding(FAILURE, broken[path], "mend the file; its last good version is recalled until then"))
        elif path not in seen:
            found.append(Finding(FAILURE, f"{path} is not in the index", "nacre db rebuild"))
        else:
            found += _compared(home, stat, seen[path])
    for path in seen.keys() - stats.keys() - home.files.pending_paths():
        found.append(Finding(FAILURE, f"{path} is in the index and not in the vault", "nacre db rebuild"))
    for memory in filter(None, map(home.memories.find, home.files.unfiled())):
        sentence = f"{_named(memory)} is in the index and has no file"
        found.append(Finding(FAILURE, sentence, deep_repair(), _writer(memory)))
    return Proof("vault", f"{len(stats):,} files", found)


def _compared(home: Home, stat: FileStat, seen: SeenMemoryFile) -> Iterator[Finding]:
    row = home.memories.find(seen.memory)
    modified = row.created if row else home.now()  # of a file that does not say so, the index alone knows
    try:
        data = home.vault.read(stat.path)
        written = redacted(
            home.redactor, parse(data.decode("utf-8"), stat.path, new_id=lambda: seen.memory, modified=modified)
        )
    except (FileNotFoundError, UnicodeDecodeError, MemoryInvalid, VaultUnusable) as error:
        yield Finding(FAILURE, f"{stat.path} cannot be read: {error}", "mend the file")
        return
    if bytes_hash(data) != seen.hash:
        told = f"{stat.path} was changed without a new time, so the index has other words"
        yield Finding(FAILURE, told, deep_repair(), _reader(seen))
    elif row is None:
        yield Finding(FAILURE, f"{stat.path} has no row in the index", deep_repair(), _reader(seen))
    elif differing := _differences(written, row):
        told = f"{stat.path} and its row differ in {', '.join(differing)}"
        yield Finding(FAILURE, told, deep_repair(), _reader(seen))


def _differences(written: Memory, row: Memory) -> list[str]:
    return [one.name for one in fields(Memory) if _value(written, one.name) != _value(row, one.name)]


def _value(memory: Memory, name: str) -> object:
    value = getattr(memory, name)
    return sorted(set(value), key=repr) if name in _UNORDERED else value


def _reader(seen: SeenMemoryFile) -> Mend:
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
                found.append(_dangling(memory, f"{link.rel} {link.to}", f"nacre edit {memory.id[-8:]}"))
        newer = memory.superseded_by
        if newer and newer not in memories:
            found.append(_dangling(memory, f"superseded_by {newer}", f"nacre unretire {memory.id[-8:]}"))
        elif newer and not memory.retired and memory.id not in superseded(memories[newer]):
            told = f"{_named(memory)} says that {_named(memories[newer])} superseded it, which does not say so"
            found.append(Finding(WARNING, told, f"nacre show {memory.id[-8:]} --history; edit the one that is wrong"))
        for old in superseded(memory):
            one = memories.get(old)
            if one and one.is_active and not memory.retired:
                told = f"{_named(memory)} says that it superseded {_named(one)}, which still holds"
                found.append(
                    Finding(WARNING, told, f"nacre show {memory.id[-8:]} --history; edit the one that is wrong")
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
            told = f"the index resolves other things to project {project.slug} than its page lists: "
            named = ", ".join(f"{key} {value}" for key, value in sorted(lacking | extra))
            found.append(Finding(FAILURE, told + shorten(named, 200), deep_repair(), _page_reader(project)))
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
    entries = list(ledger.read(data))
    found = [
        Finding(
            WARNING, f"line {number} of ledger.jsonl is no entry", f"mend or remove it in {home.vault.root}/{LEDGER}"
        )
        for number in ledger.broken_lines(data)
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
            found.append(Finding(WARNING, told, f"nacre retire {memory.id[-8:]}, unless it is meant to hold"))
    return Proof("ledger", f"{len(entries):,} entries", found)


def _teller(memory: Memory) -> Mend:
    def mend(home: Home) -> None:
        reason = memory.retired.reason if memory.retired else None
        with home.change("retire", why=reason) as change:
            change.append([change.entry("retire", memory=memory.id, **({"reason": reason} if reason else {}))])

    return mend


def _named(memory: Memory) -> str:
    return f"{shorten(memory.subject, 50)!r} ({memory.id[-8:]})"
