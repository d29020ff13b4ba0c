"""Changes of the vault. Each is the vault lock, one operation, and what it intends.

One transaction records what is to be written, whole, beside the index rows: from that commit on a memory is durable.
Then the files are written and the intents cleared. What a crash leaves is completed when the home is opened next.

The lock is held from reading what a change builds on until its files are written: another process never sees a row
whose file is still to come. An operation stays in the journal until git has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath

from nacre.errors import EditConflict, MayBeStored, StoreUnusable, Unavailable
from nacre.home.former_names import with_former_names
from nacre.home.home import Home
from nacre.home.intents import apply_intents, new_path, write_memory
from nacre.home.operations import OpenOperation
from nacre.home.redaction import clean_values, without_secrets
from nacre.platform.ids import bytes_hash
from nacre.values.codec import plain
from nacre.values.memory import Memory
from nacre.values.operation import Intent, SeenMemoryFile
from nacre.vault import ledger
from nacre.vault.document import adjust, render, rewrite
from nacre.vault.layout import LEDGER, folder_of

BATCH = 500
"""Memories of one transaction, at most."""

FEW = 20
"""So many memories that are written together are there all or none after a crash, however slow the machine is; more
may stand for a while as some of them."""


class Change:
    """One change of the vault. Its methods write; who has one holds the vault lock.

    Each method is a transaction of its own, or part of the one that is open.
    """

    def __init__(self, home: Home, operation: OpenOperation, *, is_part: bool) -> None:
        self.home = home
        self._operation = operation
        self._is_part = is_part

    @property
    def operation_id(self) -> str:
        """The id of the operation that the change is, or belongs to."""
        return self._operation.operation.id

    @property
    def at(self) -> datetime:
        """When that operation began."""
        return self._operation.operation.at

    def describe(self, *, action: str | None = None, subject: str | None = None, why: str | None = None) -> None:
        """Set what the operation is, what it is about, and its reason, where they are known only under the lock.

        For before the first entry or write. A part of a run is called what the run is.
        """
        if not self._is_part:
            self._operation.describe(action, subject, why)

    def explain(self, why: str | None) -> None:
        """Set the reason of what was written, unless it was given before."""
        self._operation.explain(why)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that the change writes: it is there as a whole or not at all, and the operation ends with it.

        A long one is several transactions (:meth:`yield_locks`).
        """
        with self.home.database.transaction():
            yield
            if not self._is_part:
                self._operation.close()

    def entry(self, action: str, **details: object) -> ledger.Entry:
        """An entry for the ledger, without secrets: its details may quote the owner."""
        values = clean_values(self.home.redactor, details)
        return ledger.Entry(self.operation_id, self.home.now(), action, values)

    def intend(self, intents: Iterable[Intent], *, applied: bool = False) -> None:
        """Record writes of files. ``applied``: they are in their files already, and go to the journal only."""
        self._operation.record(intents, applied=applied)

    def append(self, entries: Iterable[ledger.Entry]) -> None:
        """Append entries to the ledger."""
        self.intend([Intent("append", LEDGER, entry.line()) for entry in entries])

    def put(self, memories: Sequence[Memory], entries: Sequence[ledger.Entry] = ()) -> None:
        """Write memories, new or changed, and ledger entries. Raises EditConflict.

        Up to 20 memories are one transaction; more of them several, each of 500 at most, which let others write. The
        entries go with the last one. EditConflict: a file changed since the index last saw it.
        """
        home = self.home
        for start in range(0, max(1, len(memories)), BATCH):
            with home.database.transaction():
                for memory in memories[start : start + BATCH]:
                    written, intents = self._writes_of(memory)
                    self.intend(intents)
                    home.memories.put(written)
                    if len(memories) > FEW:
                        home.database.yield_write_lock()
                if start + BATCH >= len(memories):
                    self.append(entries)

    def set_importance(self, memory: Memory, note: ledger.Entry) -> None:
        """Write a new importance: the one line of front matter that says it, the index, the ledger.

        The rest of the file stays as it is, also ``updated``. Raises EditConflict.
        """
        with self.home.database.transaction():
            if self._adjust(memory, {"importance": memory.importance}):
                self.append([note])
                self.home.memories.set_importance(memory.id, memory.importance)

    def set_claim(self, memory: Memory) -> None:
        """Write the claim of a memory: its one line of front matter, and the index. Raises EditConflict."""
        with self.home.database.transaction():
            if memory.claim and self._adjust(memory, {"claim": plain(memory.claim)}):
                self.home.memories.set_claim(memory.id, memory.claim)

    def set_links(self, memory: Memory) -> None:
        """Write the links of a memory: the one line of front matter that says them, and the index. Raises EditConflict.

        The rest of the file stays as it is, also ``updated``; the memory keeps its vectors.
        """
        with self.home.database.transaction():
            if self._adjust(memory, {"links": plain(memory.links)}, gives_way=False):
                self.home.memories.set_links(memory)

    def remove(self, memory: Memory) -> None:
        """Delete a memory: its file and its row. Its words stay in the journal and in the history.

        Raises EditConflict.
        """
        home = self.home
        with home.database.transaction():
            file = home.files.file_of(memory.id)
            text = _present_text(home, file) if file else None
            if file:
                home.files.forget(file.path)
                base = file.hash if text is not None else None
                former = without_secrets(home.redactor, text)
                self.intend([Intent("remove", file.path, base=base, memory=memory.id, former=former)])
            home.memories.delete(memory.id)

    def apply(self) -> None:
        """Write the files of what was recorded so far; the change ends with it anyway."""
        self.keep_open()
        apply_intents(self.home)

    def keep_open(self) -> None:
        """Go on while another change ends: what is recorded would count as an operation that a crash left open."""
        if self._operation.is_recorded:
            self._operation.hold()

    def yield_locks(self, first: Callable[[], object] | None = None) -> bool:
        """Between two parts of a long transaction that may each stand alone: let others write.

        Where it lasted long enough, ``first`` completes what was written so far, all of it reaches its files, and
        whoever waits for the database or the vault has a turn; the operation goes on. Returns whether another wrote:
        what was read of the vault may have changed then. Where the transaction is part of another one, nothing happens.
        """

        def between() -> None:
            self.apply()
            self.home.vault_lock.let_others()

        return self.home.database.yield_write_lock(first, between)

    def _adjust(self, memory: Memory, values: dict[str, object], *, gives_way: bool = True) -> bool:
        """Write single values of front matter; ``False`` where the memory has no file.

        Where a person changes the file in that moment, theirs stays; what does not give way is kept beside it.
        """
        home = self.home
        file = home.files.file_of(memory.id)
        text = _present_text(home, file) if file else None
        if file is None or text is None:
            return False
        write = write_memory(home, file.path, adjust(text, values), file.hash, memory)
        action = "adjust" if gives_way else write.action
        self.intend([replace(write, action=action, former=without_secrets(home.redactor, text))])
        return True

    def _writes_of(self, memory: Memory) -> tuple[Memory, list[Intent]]:
        """A memory as it is to be, and the writes that bring its file up to it: none where it says just that; where its
        folder is another one now, the file moves. Names that others link it by stay its names."""
        home = self.home
        file = home.files.file_of(memory.id)
        if file is None:
            return memory, [write_memory(home, new_path(home, memory), render(memory), None, memory)]
        text = _present_text(home, file)
        base = file.hash if text is not None else None
        former = without_secrets(home.redactor, text)
        stays = str(PurePosixPath(file.path).parent) == folder_of(memory)
        path = file.path if stays else new_path(home, memory)
        memory = with_former_names(home, memory, path)
        document = rewrite(text, memory) if text is not None else render(memory)
        if stays and document == text:
            return memory, []
        if stays:
            return memory, [replace(write_memory(home, path, document, base, memory), former=former)]
        home.files.forget(file.path)
        return memory, [
            write_memory(home, path, document, None, memory),
            Intent("remove", file.path, base=base, memory=memory.id, former=former),
        ]


class Run:
    """A long operation in parts, between which others write."""

    def __init__(self, home: Home, operation: OpenOperation) -> None:
        self._home = home
        self._operation = operation

    @contextmanager
    def part(self) -> Iterator[Change]:
        """A change that belongs to the run; whoever waits for the vault lock goes first."""
        self._home.vault_lock.give_way()
        with self._home.vault_lock:
            yield Change(self._home, self._operation, is_part=True)
            _apply_outside_transaction(self._home)


@contextmanager
def change(home: Home, action: str, *, subject: str | None = None, why: str | None = None) -> Iterator[Change]:
    """See :meth:`nacre.home.home.Home.change`."""
    operation = OpenOperation(home, action, subject=subject, why=why, op=None, is_long=False)
    with home.vault_lock:
        try:
            yield Change(home, operation, is_part=False)
            operation.close()
            _apply_outside_transaction(home)
        except (Unavailable, StoreUnusable) as error:
            if _is_durable(home, operation):
                hint = "free some space; look whether it is there before you repeat it"
                raise MayBeStored(f"it may have been stored, although {error.message}", hint=hint) from error
            raise
        finally:
            operation.release()


def _is_durable(home: Home, operation: OpenOperation) -> bool:
    """Tell whether a failed operation is in the journal: then the next command writes its files."""
    if not operation.is_recorded or home.database.is_in_transaction:
        return False
    try:
        return home.journal.find(operation.operation.id) is not None
    except (Unavailable, StoreUnusable):
        return True


@contextmanager
def run(
    home: Home, action: str, *, subject: str | None = None, why: str | None = None, op: str | None = None
) -> Iterator[Run]:  # fmt: skip
    """See :meth:`nacre.home.home.Home.run`."""
    operation = OpenOperation(home, action, subject=subject, why=why, op=op, is_long=True)
    try:
        yield Run(home, operation)
        if operation.is_recorded:
            with home.vault_lock:
                operation.close()
                apply_intents(home)
    finally:
        operation.release()


def part_of(
    home: Home, run: Run | None, action: str, *, subject: str | None = None, why: str | None = None
) -> AbstractContextManager[Change]:  # fmt: skip
    """A part of a run; a change of its own where there is none."""
    return run.part() if run else change(home, action, subject=subject, why=why)


def _apply_outside_transaction(home: Home) -> None:
    """No file is written while a transaction is open: whoever opened it applies what was intended."""
    if not home.database.is_in_transaction:
        apply_intents(home)


def _present_text(home: Home, file: SeenMemoryFile) -> str | None:
    """What a memory's file says now; a write that is still pending counts as done."""
    pending = home.files.pending_document(file.path)
    if pending is not None:
        return pending
    try:
        data = home.vault.read(file.path)
    except FileNotFoundError:
        return None
    if bytes_hash(data) != file.hash:
        raise EditConflict(
            f"{file.path} was changed while nacre worked on it", hint="repeat the command: it reads the new version"
        )
    return data.decode("utf-8", errors="replace")
