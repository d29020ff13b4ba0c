"""Stores for vault files, the journal, model calls, questions and tombstones."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from nacre import __version__
from nacre.base import json as json_values
from nacre.base.ids import from_ms
from nacre.base.lazy import Module
from nacre.store.schema import (
    Database,
    Row,
    Store,
    encode,
    fits_index,
    in_transaction,
    record,
    records,
    runs,
)
from nacre.values import models
from nacre.values.codec import texts_of
from nacre.values.memory import (
    Intent,
    Operation,
    Project,
    SeenMemoryFile,
    StandingRetirement,
    Tombstone,
)
from nacre.values.session import Task

if TYPE_CHECKING:
    import msgspec
else:
    msgspec = Module("msgspec")

Times = Mapping[str, tuple[int, int]]
FileStates = tuple[Times, Set[str], Mapping[str, str]]


class VaultIndex(Store):
    """The index of the vault's files, pending writes, and projects."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._file_states: tuple[object, FileStates] = None, ({}, set(), {})

    def indexed(self) -> dict[str, SeenMemoryFile]:
        """Return all indexed vault files, keyed by path."""
        return {row[0]: SeenMemoryFile(*row) for row in self._db.all("list_vault_files")}

    def file_states(self) -> FileStates:
        """Return the times and sizes of indexed files, the paths of pending writes, and why some
        files are not memories.
        """
        # The state is read before the rows, so that a concurrent write invalidates the cache.
        state = self._db.state()
        if state is None or state != self._file_states[0]:
            rows = self._db.all("list_seen", version=__version__)
            pending = {path for path, _, size, _ in rows if size < 0}
            reasons = {
                path: reason
                for path, _, _, reason in rows
                if reason is not None and path not in pending
            }
            times = {path: (mtime_ns, size) for path, mtime_ns, size, _ in rows if size >= 0}
            self._file_states = state, (times, pending, reasons)
        return self._file_states[1]

    def keep_unreadable(self, present: Set[tuple[str, int, int]]) -> None:
        """Delete entries for unreadable files that have since changed or disappeared.

        ``present`` contains each existing file's path, time and size.
        """
        for row in self._db.all("list_unreadable"):
            if row not in present:
                self._db.run("delete_unreadable", path=row[0])

    def why_unreadable(self, path: str, mtime_ns: int, size: int) -> str | None:
        """Return why a file is not a memory, if this nacre version has read the current file."""
        return self._db.value(
            "find_unreadable", path=path, mtime_ns=mtime_ns, size=size, version=__version__
        )

    @runs("upsert_unreadable")
    def set_unreadable(
        self, path: str, mtime_ns: int, size: int, reason: str, *, version: str = __version__
    ) -> None:
        """Record why the current version of a file is not a memory."""

    def file_of(self, memory_id: str) -> SeenMemoryFile | None:
        """Return the indexed file of a memory."""
        row = self._db.one("find_vault_file", memory=memory_id)
        return SeenMemoryFile(row[0], memory_id, *row[1:]) if row else None

    def at(self, path: str) -> SeenMemoryFile | None:
        """Return the indexed file at a path."""
        return record(SeenMemoryFile, self._db.one("find_vault_file_at", path=path))

    def journal_paths(self) -> set[str]:
        """Return the paths of all uncommitted writes."""
        return set(self._db.column("list_journal_paths"))

    def is_taken(self, path: str) -> bool:
        """Return True if a path has a file or a pending write will create one."""
        return self._db.one("find_vault_path", path=path) is not None

    def save(self, file: SeenMemoryFile) -> None:
        """Record a file's current version."""
        self._db.run("upsert_vault_file", **asdict(file))
        self._db.run("delete_unreadable", path=file.path)

    @runs("distrust_vault_file")
    def distrust(self, path: str) -> None:
        """Make the next scan reread a file even if it seems unchanged."""

    def forget(self, path: str) -> None:
        self._db.run("delete_vault_file", path=path)

    def intend(self, intents: Iterable[Intent], *, applied: bool = False) -> None:
        """Record pending writes or, if ``applied`` is True, completed ones.

        Call this in the transaction that changes the index.
        """
        for intent in intents:
            self._db.run("insert_intent", **asdict(intent), applied=applied)

    def has_intents(self) -> bool:
        """Return True if any write is pending."""
        return self._db.one("find_intent") is not None

    def pending_paths(self) -> set[str]:
        """Return the paths that pending writes will create or change."""
        return set(self._db.column("list_pending_paths"))

    def awaited_paths(self) -> set[str]:
        """Return the paths that pending writes will create, change or remove."""
        return set(self._db.column("list_awaited_paths"))

    def pending_document(self, path: str) -> str | None:
        """Return the content that a pending write will give to a file."""
        return self._db.value("find_pending_document", path=path)

    def unfiled(self) -> list[str]:
        """Return the ids of indexed memories that have no file."""
        return self._db.column("list_unfiled_memories")

    def intents(self) -> list[Intent]:
        """Return all pending writes."""
        return self._records(Intent, "list_intents")

    def done(self, seq: int) -> None:
        """Mark a pending write as applied, and delete it unless it belongs to an operation."""
        if not self._db.run("apply_intent", seq=seq):
            self.give_up(seq)

    @runs("delete_intent")
    def give_up(self, seq: int) -> None:
        """Delete a pending write."""

    def projects(self) -> list[Project]:
        return self._records(Project, "list_projects")

    def slugs(self) -> set[str]:
        """Return the slugs of all projects."""
        return {project.slug for project in self.projects()}

    def project_by(self, key: str, value: str) -> str | None:
        """Return the slug of the project with this remote, root, label or alias (``key``)."""
        return self._db.value("find_project_by_key", key=key, value=value)

    def project_keys(self) -> list[tuple[str, str, str]]:
        """Return (key, value, slug) for each ``remote``, ``root``, ``label`` and ``alias`` of a
        project.
        """
        return self._db.all("list_project_keys")

    def name_now(self, name: str) -> str:
        """Return a project's current name, given any of its names. Unknown names are returned
        unchanged.
        """
        return self._db.value("find_other_name", other=name) or name

    def dependencies(self, project: str | None = None) -> list[tuple[str, str]]:
        """Return (project, dependency) pairs of one project or of all projects."""
        return self._db.all("list_dependencies", project=project)

    def forget_project(self, slug: str, *, unless: str = "") -> None:
        """Delete the project with this slug, unless its id is ``unless``."""
        if self._db.run("delete_project_at", slug=slug, id=unless):
            self._db.run("delete_orphaned_project_keys")

    def save_project(
        self, project: Project, keys: Iterable[tuple[str, str]], dependencies: Iterable[str] = ()
    ) -> None:
        """Store a project with its keys and dependencies. It replaces any project with its slug."""
        self.forget_project(project.slug, unless=project.id)
        self._db.run("upsert_project", **asdict(project))
        self._db.run("delete_project_keys", project=project.id)
        # Keys left by a deleted project would block other projects with the same keys.
        self._db.run("delete_orphaned_project_keys")
        self._db.run_many(
            "insert_project_key",
            [
                {"key": key, "value": value, "project": project.id}
                for key, value in keys
                if fits_index(value)
            ],
        )
        self._db.run("delete_project_dependencies", project=project.id)
        self._db.run_each("insert_project_dependency", "other", dependencies, project=project.id)


# -- Journal: operations and their writes until they are committed to git -----


_MIN_REFERENCE_CHARACTERS = 4


class Journal(Store):
    """A record of operations on the vault, and of writes until git commits them."""

    @in_transaction
    def record(self, operation: Operation, intents: Iterable[Intent]) -> None:
        """Record an operation and the files that it touches."""
        self._db.run("insert_operation", **asdict(operation))
        written = (intent for intent in intents if intent.action != "append")
        self.touch(operation.id, ((intent.path, intent.memory or "") for intent in written))

    def touch(self, operation_id: str, touched: Iterable[tuple[str, str]]) -> None:
        """Record the files that an operation touched, each with its memory's id or ""."""
        rows = [
            {"operation": operation_id, "path": path, "memory": memory} for path, memory in touched
        ]
        if rows:
            self._db.run_many("insert_touched", rows)

    @runs("explain_operation")
    def explain(self, operation: str, why: str | None) -> None:
        """Set the reason for an operation."""

    def find(self, operation_id: str) -> Operation | None:
        return record(Operation, self._db.one("find_operation", id=operation_id))

    def unfinished(self) -> list[Operation]:
        """Return operations to which writes can still be added, oldest first."""
        return self._records(Operation, "list_open_operations")

    def is_in_ledger(self, operation_id: str) -> bool:
        """Return True if the ledger has a line for an operation."""
        return self._db.one("find_ledger_line", operation=operation_id) is not None

    @runs("close_operation")
    def close(self, operation: str, subject: str | None) -> None:
        """Close an operation, so that it can be committed to git."""

    def withdraw(self, path: str) -> None:
        """Delete a file's uncommitted versions, because they contain a secret."""
        if self._db.run("delete_withheld", path=path):
            self._db.run("delete_empty_operations")

    def rename(self, old: str, new: str) -> None:
        """Replace a file's old path in all records."""
        self._db.run("delete_touched_twice", old=old, new=new)
        self._db.run("rename_touched", old=old, new=new)
        self._db.run("rename_journal", old=old, new=new)

    def touched(self, operation_id: str) -> list[tuple[str, str]]:
        """Return the path of each file that an operation touched, with a memory id or ""."""
        return self._db.all("list_touched", operation=operation_id)

    def written_by(self, operation_id: str) -> list[Intent]:
        """Return an operation's uncommitted writes in order."""
        return self._records(Intent, "list_journal", operation=operation_id)

    def pending(self, limit: int = 2**31) -> list[Operation]:
        """Return closed, uncommitted operations in the order of their writes."""
        return self._records(Operation, "list_pending_operations", limit=limit)

    def without_texts(self) -> list[Operation]:
        """Return closed, uncommitted operations whose text is gone, for example because it was
        forgotten.
        """
        return self._records(Operation, "list_operations_without_texts")

    def count_pending(self) -> tuple[int, datetime | None]:
        """Return how many operations are uncommitted, and the time of the oldest."""
        row = self._db.one("count_pending_operations")
        return (row[0], from_ms(row[1])) if row else (0, None)

    def is_unapplied(self, operation_id: str) -> bool:
        """Return True if an operation has pending writes."""
        return self._db.one("find_unapplied", operation=operation_id) is not None

    def committed(self, operation_id: str, commit: str) -> None:
        """Record the commit of an operation and delete its journal entries."""
        self._db.run("commit_operation", id=operation_id, committed=commit)
        self._db.run("delete_journal", operation=operation_id)

    def drop(self, operation_id: str) -> None:
        """Delete an operation and its journal entries."""
        self._db.run("delete_journal", operation=operation_id)
        self._db.run("delete_operation", id=operation_id)

    def add_past(self, operation: Operation, touched: Iterable[tuple[str, str]]) -> None:
        """Record an operation found in the git history. ``touched`` are (path, memory) pairs."""
        self._db.run("insert_past_operation", **asdict(operation))
        self.touch(operation.id, touched)

    @runs("delete_past_operations")
    def forget_past(self) -> None:
        """Delete all operations read from a git history that was rewritten."""

    def operations(
        self,
        *,
        memory: str | None = None,
        project: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Operation]:
        """Return the operations that match all criteria (``since <= time < until``), newest
        first.
        """
        rows = self._db.all(
            "list_operations",
            memory=memory,
            folder=project,
            action=action,
            since=since,
            until=until,
            limit=limit,
            offset=offset,
        )
        return records(Operation, rows)

    def find_like(self, reference: str) -> list[Operation]:
        """Find up to three operations by four or more characters at either end of the id."""
        if len(reference) < _MIN_REFERENCE_CHARACTERS or not set(reference) <= set(
            "0123456789abcdef-"
        ):
            return []
        return self._records(Operation, "find_operations_like", reference=reference)

    def before(self, intent: Intent) -> tuple[str, str | None] | None:
        """Return the action and document of the previous journal entry for the same file."""
        row = self._db.one("find_journal_before", path=intent.path, seq=intent.seq)
        return (row[0], row[1]) if row else None

    def withheld(self) -> list[str]:
        """Return the paths of files that cannot be committed because they contain a secret."""
        return self._db.column("list_withheld")

    def keep_last(self, operations: int) -> int:
        """Delete the text of all but the newest operations, and return the number of deleted
        entries.

        Call this only if there is no git history.
        """
        row = self._db.one("find_oldest_kept", operations=operations)
        return self._db.run("delete_journal_before", seq=row[0]) if row and row[0] else 0

    def git_state(self, key: str) -> str | None:
        """Return the commit id stored under the key ``read`` or ``index``."""
        return self._db.value("find_git_state", key=key)

    @runs("upsert_git_state")
    def set_git_state(self, key: str, value: str) -> None:
        """Store a commit id under the key ``read`` or ``index``."""

    def ledger_end(self) -> tuple[int, bytes]:
        """Return how many bytes of the ledger were read, and a hash of their end."""
        row = self._db.one("find_ledger_end")
        return (int(row[0]), bytes(row[1])) if row else (0, b"")

    @runs("upsert_ledger_end")
    def set_ledger_end(self, size: int, digest: bytes) -> None:
        """Record how many bytes of the ledger were read, and a hash of their end."""


# -- Model calls, and questions asked with recall ------------------------------


class Spending(Store):
    """A record of model calls. Only the latest calls keep their prompts and answers."""

    def add(self, call: models.Call) -> None:
        """Record a call, unless it is already recorded."""
        self._db.run("insert_model_call", **_call_row(call))

    def finish(self, call: models.Call) -> None:
        """Record a call's actual usage, outcome, prompt and answer."""
        self._db.run("finish_model_call", **_call_row(call))

    def background_cost(self, since: date) -> int:
        """Return the cost of background calls since a day. Running calls count with their maximum
        cost.
        """
        return self._db.value("sum_background_cost", since=since) or 0

    def tokens_in_background(
        self, day: date, model: str, *, is_chat: bool = False
    ) -> tuple[int, int]:
        """Return how many of a provider's tokens and calls background work used on a day, for chats
        or everything else.
        """
        provider = model.partition(":")[0]
        row = self._db.one("sum_background_tokens", day=day, provider=provider, is_chat=is_chat)
        return (row[0], row[1]) if row else (0, 0)

    def by_task(self, since: date, today: date) -> list[models.TaskCost]:
        """Return the cost of each task since a given day, highest first."""
        rows = self._db.all("sum_costs_by_task", since=since, today=today)
        return records(models.TaskCost, rows)

    def health(self, model: str) -> models.Health | None:
        """Return the failure of a model's last call, or ``None`` if it succeeded."""
        return record(models.Health, self._db.one("get_model_health", model=model))

    def fail(self, health: models.Health) -> None:
        """Record that a call to a model failed."""
        self._db.run("set_model_health", **asdict(health))

    @runs("clear_model_health")
    def recover(self, model: str) -> None:
        """Record that a model works again."""

    def answer(self, key: str, since: datetime) -> str | None:
        """Return the latest stored answer to a prompt, unless it is older than ``since``."""
        return self._db.value("find_model_answer", key=key, since=since)

    @runs("drop_model_answer")
    def drop_answer(self, key: str) -> None:
        """Prevent reuse of a stored answer."""

    def traces(
        self, task: Task | None = None, since: datetime | None = None, limit: int = 20
    ) -> list[models.Call]:
        """Return the calls whose prompts are still stored, latest first."""
        kind = task.value if task else None
        return [*map(_call, self._db.all("list_traces", task=kind, since=since, limit=limit))]

    def find(self, reference: str) -> list[models.Call]:
        """Find the calls with a stored prompt whose id starts or ends with ``reference``."""
        return [*map(_call, self._db.all("find_traces", reference=reference))]

    def texts(self) -> list[str]:
        """Return the stored prompts, answers and errors of all calls."""
        return self._db.column("list_call_texts")

    @runs("clear_call_texts")
    def clear_texts(self) -> None:
        """Delete the stored prompts, answers and errors of all calls."""

    @in_transaction
    def prune(
        self, before: date, texts_since: datetime, answers_since: datetime, texts: int
    ) -> None:
        """Delete calls older than ``before``, and text older than ``texts_since`` or beyond the
        latest ``texts`` calls.

        Answers older than ``answers_since`` are shortened and no longer reused.
        """
        self._db.run("prune_model_calls", before=before)
        self._db.run("prune_call_texts", since=texts_since, most=texts)
        self._db.run("prune_call_answers", since=answers_since, characters=TRACE_CHARACTERS)


TRACE_CHARACTERS = 400
"""Maximum number of characters of a prompt, an error, or an answer that is not reused."""


def _call_row(call: models.Call) -> dict[str, Any]:
    return asdict(call) | asdict(call.tokens) | {"background": call.is_background}


def _call(row: Row) -> models.Call:
    (call,) = records(models.Call, [(*row[:6], None, *row[10:])])
    return replace(call, tokens=models.Tokens(*row[6:10]))


class Questions(Store):
    """A record of questions asked with recall."""

    def add(self, question: models.AskedQuestion) -> None:
        """Store a question unless it is already stored."""
        body = encode(question)
        self._db.run(
            "insert_question", id=question.id, at=question.at, outcome=question.outcome, body=body
        )

    def unanswered(self, since: datetime) -> list[models.AskedQuestion]:
        """Return unanswered questions, latest first."""
        return [
            json_values.decode(row[0], models.AskedQuestion)
            for row in self._db.all(
                "list_unanswered_questions", since=since, outcomes=models.UNANSWERED
            )
        ]

    def delete_answered(self) -> None:
        """Delete the questions that were answered."""
        self._db.run("delete_answered_questions", unanswered=models.UNANSWERED)

    def matching(self, matches: Callable[[str], bool]) -> list[str]:
        """Return the ids of the questions whose text ``matches`` accepts."""
        return [
            question
            for question, body in self._db.all("list_question_texts")
            if matches("\n".join(texts_of(msgspec.json.decode(body), ())))
        ]

    def delete(self, questions: Iterable[str]) -> None:
        """Delete questions by id."""
        self._db.run_each("delete_question", "id", questions)

    @runs("prune_questions")
    def prune(self, before: datetime, most: int) -> None:
        """Delete questions older than a given time, and all but the latest ``most`` questions."""


# -- Tombstones and standing retirements from the ledger ----------------------


class Tombstones(Store):
    """Records of forgotten memories, and of standing retirements, which also affect later memories."""

    def all(self) -> list[Tombstone]:
        """Return all tombstones in effect."""
        return self._records(Tombstone, "list_tombstones")

    def standing(self) -> list[StandingRetirement]:
        """Return all standing retirements, oldest first."""
        return self._records(StandingRetirement, "list_standing_retirements")

    @in_transaction
    def add(self, tombstones: Iterable[Tombstone]) -> None:
        """Add tombstones, which apply once the transaction commits."""
        self._db.run_many(
            "insert_tombstone",
            [asdict(tombstone) for tombstone in tombstones],
        )
        self.set("edition", str(int(self.value("edition") or 0) + 1))

    def add_standing(self, rules: Iterable[StandingRetirement]) -> None:
        """Add standing retirements, which apply once the transaction commits."""
        self._db.run_many("insert_standing_retirement", [asdict(rule) for rule in rules])

    @in_transaction
    def change(self, more: Collection[Tombstone], fewer: Collection[Tombstone]) -> None:
        """Add the tombstones in ``more`` and delete those in ``fewer``."""
        self._db.run_many("delete_tombstone", [asdict(tombstone) for tombstone in fewer])
        if more or fewer:
            self.add(more)

    @in_transaction
    def replace_standing(self, rules: Sequence[StandingRetirement]) -> None:
        """Replace all standing retirements."""
        self._db.run("clear_standing_retirements")
        self.add_standing(rules)

    def edition(self) -> str:
        """Return a token that changes with every new tombstone, or "" if none exist."""
        return self.value("edition") or ""

    def due(self) -> set[str]:
        """Return the ids of unfinished ``forget`` runs."""
        return set(json.loads(self.value("due") or "[]"))

    def set_due(self, runs: Iterable[str]) -> None:
        """Store the ids of unfinished ``forget`` runs."""
        self.set("due", json.dumps(sorted(runs)))

    def value(self, key: str) -> str | None:
        """Return the value stored under a key, if any."""
        return self._db.value("get_forgetting_value", key=key)

    def set(self, key: str, value: str) -> None:
        self._db.run("set_forgetting_value", key=key, value=value)
