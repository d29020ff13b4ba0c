"""Bring into the vault what a sync found at the remote, in parts between which others write.

A part is written, each file only where it is still what it was, and read, before anybody else has the vault's lock: a
scan in between finds nothing that it could take for a person's edit. Then the branch moves, in one step, unless
somebody moved it meanwhile. A crash, or an edit, before that leaves parts that the next sync finds on both sides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from nacre.dedup.placement import await_models
from nacre.errors import EditConflict, VaultUnusable
from nacre.git.repository import Head
from nacre.history.commit import step_index
from nacre.history.schedule import COMMIT_LOCK
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.intents import apply_intents
from nacre.home.redaction import without_secrets
from nacre.memories.hand_edits import read_written
from nacre.memories.scan import scan
from nacre.platform.ids import bytes_hash
from nacre.platform.locks import FileLock
from nacre.spending.models import waits_for_models
from nacre.sync.merge import FileChange, Plan, counted
from nacre.tombstones.erasure import apply_tombstones
from nacre.tombstones.tombstones import told_in
from nacre.values.operation import EDIT, SYNC, Intent
from nacre.vault.front_matter import split
from nacre.vault.identity import id_in
from nacre.vault.layout import LEDGER, is_memory_file
from nacre.vault.listing import LISTING, is_derived
from nacre.vault.merge_notes import MergeOutcome, Note
from nacre.vault.merging import merge_ledgers

_FILES_A_PART = 30
_MANY = 100
_MEANWHILE = "the vault changed meanwhile"
_SUPERSEDES = b"supersedes"
_TOKEN = re.compile(r"[^\s\"'#,\[\]{}]+")


@dataclass(slots=True)
class _Part:
    """Files that change together: those of a memory, of what supersedes it, and what lies in the way of another."""

    changes: dict[str, FileChange] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)


def take_in(home: Home, head: Head, plan: Plan, held: Mapping[str, str]) -> str | None:
    """Write what changed and move the branch; returns what stands in the way, if something was edited just now.

    Parts may have been brought in then; the next merge has less to do. Raises EditConflict for a file that waits here
    because it cannot be committed (``held``: path → why).
    """
    assert plan.commit is not None  # noqa: S101 - nothing that was only looked at is brought in
    home.problems.clear()
    with FileLock(home.settings.home / COMMIT_LOCK):
        if home.repository.head() != head:
            return _MEANWHILE
        obstacle = write_plan(home, plan, held)
        if obstacle:
            return obstacle
        if not home.repository.move_head(plan.commit, head.commit, "nacre sync"):
            return "the vault's branch moved meanwhile"
        step_index(home)
        told = [*home.problems]
        scan(home)
        home.problems[:] = dict.fromkeys((*told, *home.problems))
    return None


def forget_first(home: Home, theirs: str) -> tuple[Note, ...]:
    """Carry out what the remote's ledger says is forgotten, before anything is merged: nothing brings it back then.

    Returns a note for each memory that went, without its words. Raises VaultUnusable.
    """
    there = b"".join(home.repository.read([f"{theirs}:{LEDGER}"]).values())
    present = _present(home, LEDGER)
    known = set((present or b"").splitlines())
    lines = b"".join(one.line().encode() + b"\n" for one in told_in(there) if one.line().encode() not in known)
    if not lines:
        return ()
    before = home.memories.all_ids()
    with home.run(SYNC) as run, run.part() as change:
        apply_intents(home)
        _written(change, _Part({LEDGER: FileChange(present, merge_ledgers(present or b"", lines))}))
    apply_tombstones(home)
    return tuple(Note(MergeOutcome.FORGOTTEN, "", memory) for memory in sorted(before - home.memories.all_ids()))


def write_plan(home: Home, plan: Plan, held: Mapping[str, str]) -> str | None:
    """Write what changed, and no commit; returns what stands in the way. Raises EditConflict, VaultUnusable."""
    files = {path: _over_listing(home, path, one) for path, one in plan.changes.items() if path != LEDGER}
    return _edited(home, files, held) or _in_parts(home, plan, files, held)


def _over_listing(home: Home, path: str, change: FileChange) -> FileChange:
    """A listing that nacre derived here gives way to one that the owner has in git elsewhere."""
    present = _present(home, path) if PurePosixPath(path).name == LISTING else None
    return FileChange(present, change.after) if present and is_derived(present) else change


def _in_parts(home: Home, plan: Plan, files: Mapping[str, FileChange], held: Mapping[str, str]) -> str | None:
    """As one operation. First what the ledger says is forgotten goes, as if it came alone: no file brings it back."""
    op, subject = (plan.operation.id, plan.operation.subject) if plan.operation else (None, None)
    with home.run(SYNC, subject=subject or f"{counted(plan.changes)} from the remote", op=op) as run:
        with run.part() as change:
            apply_intents(home)
            if home.files.has_intents():
                return _MEANWHILE
            obstacle = _written(change, _Part(_ledger(home, plan)))
        if obstacle:
            return obstacle
        apply_tombstones(home)
        parts = list(_parts(home, files, plan.given_up))  # nobody is to wait for that
        here = home.memories.all_ids()
        awaits = _new(files) <= max(_MANY, len(here))
        for part in parts:
            with run.part() as change:
                obstacle = _take_part(change, part, held, awaits=awaits)
            if obstacle:
                return obstacle
        if not awaits:
            _await_models(home, here)
    return None


def _new(files: Mapping[str, FileChange]) -> int:
    """How many memories come that are not here."""
    return sum(one.before is None for path, one in files.items() if is_memory_file(path))


def _await_models(home: Home, here: Collection[str]) -> None:
    """So much came that it is cheaper to judge what was here: each of the one is looked at beside the other.

    What came together was judged where it was made.
    """
    with home.database.transaction():
        for memory in home.memories.in_any_state(sorted(here)) if waits_for_models(home) else ():
            await_models(home, memory)


def _take_part(change: Change, part: _Part, held: Mapping[str, str], *, awaits: bool) -> str | None:
    """Write and read a part; returns what stands in the way."""
    home = change.home
    apply_intents(home)
    if home.files.has_intents():
        return _MEANWHILE
    obstacle = _edited(home, part.changes, held) or _written(change, part)
    if not obstacle:
        with home.change(EDIT) as reading:
            read_written(reading, part.changes, awaits=awaits)
    return obstacle


def _written(change: Change, part: _Part) -> str | None:
    """Write a part; returns what somebody edited at that moment. Raises VaultUnusable."""
    home = change.home
    _write(change, part)
    edited = next((path for path, one in part.changes.items() if _present(home, path) != one.after), None)
    if edited and home.files.has_intents():
        raise VaultUnusable(
            next(iter(home.problems[-1:]), f"{edited} cannot be written"),
            hint="free some space, or see to its permissions; then sync again: nothing was lost",
        )
    return f"{edited} was edited meanwhile" if edited else None


def _parts(home: Home, changes: Mapping[str, FileChange], given_up: Collection[str]) -> Iterator[_Part]:
    """What changes, in parts of some thirty files, each whole. ``given_up`` go with their files."""
    going = {file.path: memory for memory in given_up if (file := home.files.file_of(memory))}
    part = _Part(given_up={memory for memory in given_up if memory not in going.values()})
    for group in together(changes):
        part.changes |= {path: changes[path] for path in group}
        part.given_up |= {going.pop(path) for path in group if path in going}
        if len(part.changes) >= _FILES_A_PART:
            yield part
            part = _Part()
    part.given_up |= {*going.values()}
    if part.changes or part.given_up:
        yield part


def together(changes: Mapping[str, FileChange]) -> list[list[str]]:
    """Paths that change at once: what is one memory, what one supersedes, what lies where another has its folder."""
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while above.setdefault(name, name) != name:
            above[name] = name = above[above[name]]
        return name

    places = {path: f"path {path.casefold()}" for path in changes}
    known = {id_in(data) or "" for one in changes.values() for data in (one.before, one.after) if data}
    for path, one in changes.items():
        names = [places[over] for over in _above(path) if over in places]
        names += [f"id {memory}" for data in (one.before, one.after) if data for memory in _ids_in(data, known)]
        for name in names:
            above[top(name)] = top(places[path])
    groups: dict[str, list[str]] = defaultdict(list)
    for path in sorted(changes):
        groups[top(places[path])].append(path)
    return list(groups.values())


def _above(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def _ids_in(data: bytes, known: Collection[str]) -> set[str]:
    """The id of a document, and those that it may say it supersedes."""
    own = id_in(data)
    if own is None or _SUPERSEDES not in data:
        return {own} if own else set()
    front, _ = split(data.decode("utf-8", errors="replace"))
    return {own, *_TOKEN.findall(front or "")} & {own, *known}


def _ledger(home: Home, plan: Plan) -> dict[str, FileChange]:
    """The ledger here may hold lines of operations that no commit has yet: they stay."""
    ledger = plan.changes.get(LEDGER)
    if ledger is None or ledger.after is None:
        return {}
    present = _present(home, LEDGER)
    if present is not None and present != ledger.before:
        return {LEDGER: FileChange(present, merge_ledgers(ledger.after, present))}
    return {LEDGER: ledger}


def _write(change: Change, part: _Part) -> None:
    """First what is new, then what goes; a file with a secret in it does not pass the database."""
    home = change.home
    changes = {path: one for path, one in part.changes.items() if _present(home, path) != one.after}
    intents, direct = [], []
    for path, one in sorted(changes.items(), key=lambda item: item[1].after is None):
        text = _text(one.after)
        base = None if one.before is None else bytes_hash(one.before)
        if one.after is None:
            intents.append(Intent("remove", path, base=base, former=without_secrets(home.redactor, _text(one.before))))
        elif text is None or without_secrets(home.redactor, text) is None:
            direct.append(path)
        else:
            intents.append(Intent("write", path, text, base, former=without_secrets(home.redactor, _text(one.before))))
    with home.database.transaction():
        change.intend(intents)
        if intents:
            home.journal.touch(change.operation_id, [*_named(changes)])
        for memory in part.given_up:
            _forget(home, memory)
    change.apply()
    if home.files.has_intents():
        change.apply()  # a file was in the way of a folder, and is gone now
    for path in direct:
        _write_bytes(home, path, changes[path])


def _forget(home: Home, memory: str) -> None:
    """Take a memory out of the index, so that no scan takes it for one that a person deleted."""
    file = home.files.file_of(memory)
    if file:
        home.files.forget(file.path)
    home.memories.delete(memory)


def _write_bytes(home: Home, path: str, change: FileChange) -> None:
    base = None if change.before is None else bytes_hash(change.before)
    try:
        home.vault.write_bytes(path, change.after or b"", base=base)
    except (EditConflict, VaultUnusable) as error:
        home.problems.append(f"{path}: {error.message}")


def _named(changes: Mapping[str, FileChange]) -> Iterator[Intent]:
    """Which memories the files hold."""
    for path, change in changes.items():
        memory = id_in(change.after or change.before or b"") if is_memory_file(path) else None
        if memory:
            yield Intent("write", path, memory=memory)


def _edited(home: Home, changes: Mapping[str, FileChange], held: Mapping[str, str]) -> str | None:
    """What a person, or another process, did to a file since it was compared. Raises EditConflict."""
    for path, one in changes.items():
        if _present(home, path) in (one.before, one.after):
            continue
        if path in held:
            raise EditConflict(
                f"{path} waits here ({held[path]}), and the remote changed it, too",
                hint="mend the file, or move it out of the vault, then sync again",
            )
        return f"{path} was edited meanwhile"
    return None


def _present(home: Home, path: str) -> bytes | None:
    try:
        return home.vault.read(path, whole=True)
    except FileNotFoundError:
        return None
    except VaultUnusable:
        place = home.vault.root / path
        if place.is_dir() or any(parent.is_file() for parent in place.parents):
            return None
        raise


def _text(data: bytes | None) -> str | None:
    try:
        return data.decode() if data is not None and b"\0" not in data else None
    except UnicodeDecodeError:
        return None
