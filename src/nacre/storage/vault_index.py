"""What the index knows of the vault: files as last seen, writes that are pending, projects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from nacre import __version__
from nacre.storage.database import Database, Row, fits_index
from nacre.values.operation import Intent, Project, SeenMemoryFile

Times = Mapping[str, tuple[int, int]]
Seen = tuple[Times, Set[str], Mapping[str, str]]


def intent_of(row: Row) -> Intent:
    """An intent from its columns."""
    seq, action, path, document, base, memory, operation, former = row
    return Intent(action, path, document, base, memory, operation, former, seq)


class VaultIndex:
    """Reads and writes ``vault_files``, ``intents`` and ``projects``."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._seen_now: tuple[object, Seen] = None, ({}, set(), {})

    def seen(self) -> dict[str, SeenMemoryFile]:
        """Every file, by path."""
        return {row[0]: SeenMemoryFile(*row) for row in self._db.all("list_vault_files")}

    def seen_now(self) -> Seen:
        """Time and size of every file by path, the paths of pending writes, why files are no memories: at one moment.

        They are read once until somebody writes: of 10,000 files that takes 4 ms.
        """
        state = self._db.state()  # before the rows: what is written in between is read twice
        if state is None or state != self._seen_now[0]:
            rows = self._db.all("list_seen", version=__version__)
            pending = {path for path, _, size, _ in rows if size < 0}
            reasons = {path: reason for path, _, _, reason in rows if reason is not None and path not in pending}
            times = {path: (mtime_ns, size) for path, mtime_ns, size, reason in rows if size >= 0 and reason is None}
            times |= {path: (mtime_ns, size) for path, mtime_ns, size, reason in rows if reason is not None}
            self._seen_now = state, (times, pending, reasons)
        return self._seen_now[1]

    def keep_unreadable(self, present: Set[tuple[str, int, int]]) -> None:
        """Forget what was no memory, and changed or is gone; ``present`` are path, time and size of every file."""
        for row in self._db.all("list_unreadable"):
            if row not in present:
                self._db.run("delete_unreadable", path=row[0])

    def why_unreadable(self, path: str, mtime_ns: int, size: int) -> str | None:
        """Why a file is no memory; ``None`` where it is another one now, or this version has not read it."""
        row = self._db.one("find_unreadable", path=path, mtime_ns=mtime_ns, size=size, version=__version__)
        return row[0] if row else None

    def set_unreadable(self, path: str, mtime_ns: int, size: int, reason: str) -> None:
        """Remember that a file as it is now is no memory, and why: it is read again when it changes."""
        self._db.run(
            "upsert_unreadable", path=path, mtime_ns=mtime_ns, size=size, version=__version__, reason=reason
        )  # fmt: skip

    def file_of(self, memory_id: str) -> SeenMemoryFile | None:
        """The file of a memory."""
        row = self._db.one("find_vault_file", memory=memory_id)
        return SeenMemoryFile(row[0], memory_id, *row[1:]) if row else None

    def at(self, path: str) -> SeenMemoryFile | None:
        """A file by its path."""
        row = self._db.one("find_vault_file_at", path=path)
        return SeenMemoryFile(*row) if row else None

    def journal_paths(self) -> set[str]:
        """Paths that are in the journal, done or not: a commit is still to take them."""
        return {path for (path,) in self._db.all("list_journal_paths")}

    def is_taken(self, path: str) -> bool:
        """Whether a file has that path, also one that is still to be written."""
        return self._db.one("find_vault_path", path=path) is not None

    def save(self, file: SeenMemoryFile) -> None:
        """Remember a file as it is now."""
        self._db.run(
            "upsert_vault_file", path=file.path, memory=file.memory, mtime_ns=file.mtime_ns, size=file.size,
            hash=file.hash,
        )  # fmt: skip
        self._db.run("delete_unreadable", path=file.path)

    def distrust(self, path: str) -> None:
        """Have the next scan read a file again, although it looks as it was last seen."""
        self._db.run("distrust_vault_file", path=path)

    def forget(self, path: str) -> None:
        """A file is gone."""
        self._db.run("delete_vault_file", path=path)

    def intend(self, intents: Iterable[Intent], *, applied: bool = False) -> None:
        """Record writes to the vault, in order. Call inside the transaction that changes the index.

        ``applied`` ones are in their files already: they go to the journal only.
        """
        for intent in intents:
            self._db.run(
                "insert_intent", action=intent.action, path=intent.path, document=intent.document, base=intent.base,
                memory=intent.memory, operation=intent.operation, former=intent.former, applied=int(applied),
            )  # fmt: skip

    def has_intents(self) -> bool:
        """Whether any write is pending."""
        return self._db.one("find_intent") is not None

    def pending_paths(self) -> set[str]:
        """Paths that a pending write will make or change."""
        return {path for (path,) in self._db.all("list_pending_paths")}

    def awaited_paths(self) -> set[str]:
        """Paths at which a pending write makes, changes or removes a file: no person did what differs there."""
        return {path for (path,) in self._db.all("list_awaited_paths")}

    def pending_document(self, path: str) -> str | None:
        """What a pending write will put at a path."""
        row = self._db.one("find_pending_document", path=path)
        return row[0] if row else None

    def unfiled(self) -> list[str]:
        """Memories in the index that have no file."""
        return [memory for (memory,) in self._db.all("list_unfiled_memories")]

    def intents(self) -> list[Intent]:
        """Writes that are not done yet."""
        return [intent_of(row) for row in self._db.all("list_intents")]

    def done(self, seq: int) -> None:
        """A write reached its file; it stays in the journal if it belongs to an operation."""
        if not self._db.run("apply_intent", seq=seq):
            self.give_up(seq)

    def give_up(self, seq: int) -> None:
        """A write is not to be done any more."""
        self._db.run("delete_intent", seq=seq)

    def projects(self) -> list[Project]:
        """Every project."""
        return [Project(*row) for row in self._db.all("list_projects")]

    def project_by(self, key: str, value: str) -> str | None:
        """The slug of the project that a remote, root, label or alias resolves to."""
        row = self._db.one("find_project_by_key", key=key, value=value)
        return row[0] if row else None

    def project_keys(self) -> list[tuple[str, str, str]]:
        """What resolves to projects: (``remote``, ``root``, ``label`` or ``alias``, its value, the project's slug)."""
        return [(key, value, slug) for key, value, slug in self._db.all("list_project_keys")]

    def name_now(self, name: str) -> str:
        """What a project is called that had a name, or that a page gives it; the name itself where no page does."""
        row = self._db.one("find_other_name", other=name)
        return row[0] if row else name

    def dependencies(self, project: str | None = None) -> list[tuple[str, str]]:
        """Which projects depend on which, as their pages say: all of them, or those of one."""
        return [(slug, other) for slug, other in self._db.all("list_dependencies", project=project)]

    def forget_project(self, slug: str, *, unless: str = "") -> None:
        """The page of a project is gone, or has another id now."""
        if self._db.run("delete_project_at", slug=slug, id=unless):
            self._db.run("delete_orphaned_project_keys")

    def save_project(
        self, project: Project, keys: Iterable[tuple[str, str]], dependencies: Iterable[str] = ()
    ) -> None:  # fmt: skip
        """Remember a project, what resolves to it, and the names of what it depends on.

        A project of another id in the same folder is forgotten.
        """
        self.forget_project(project.slug, unless=project.id)
        self._db.run("upsert_project", id=project.id, slug=project.slug, mtime_ns=project.mtime_ns)
        self._db.run("delete_project_keys", project=project.id)
        self._db.run("delete_orphaned_project_keys")  # or they would stand in the way of whoever claims the same
        self._db.run_many(
            "insert_project_key",
            [{"key": key, "value": value, "project": project.id} for key, value in keys if fits_index(value)],
        )
        self._db.run("delete_project_dependencies", project=project.id)
        for name in dependencies:
            self._db.run("insert_project_dependency", project=project.id, other=name)
