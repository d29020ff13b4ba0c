"""Stores of vault files, the journal, model calls, traces and tombstones."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from nacre import __version__
from nacre.base import json as json_values
from nacre.base.ids import from_ms
from nacre.base.lazy import Module
from nacre.store.rows import record, records
from nacre.store.schema import Database, Store, fits_index, in_transaction, runs
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
Seen = tuple[Times, Set[str], Mapping[str, str]]


class VaultIndex(Store):
    """Store of the tables ``vault_files``, ``intents`` and ``projects``."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._seen_now: tuple[object, Seen] = None, ({}, set(), {})

    def seen(self) -> dict[str, SeenMemoryFile]:
        """Return the recorded files, keyed by path."""
        return {row[0]: SeenMemoryFile(*row) for row in self._db.all("list_vault_files")}

    def seen_now(self) -> Seen:
        """Return what the index knows about the vault's files.

        The result contains the files' times and sizes, the paths of pending writes, and the reasons why files are not
        memories. The result is cached until the next write, because reading the rows of 10,000 files takes 4 ms.
        """
        # The state is read before the rows, so that a concurrent write invalidates the cache.
        state = self._db.state()
        if state is None or state != self._seen_now[0]:
            rows = self._db.all("list_seen", version=__version__)
            pending = {path for path, _, size, _ in rows if size < 0}
            reasons = {
                path: reason
                for path, _, _, reason in rows
                if reason is not None and path not in pending
            }
            times = {
                path: (mtime_ns, size)
                for path, mtime_ns, size, reason in rows
                if size >= 0 and reason is None
            }
            times |= {
                path: (mtime_ns, size)
                for path, mtime_ns, size, reason in rows
                if reason is not None
            }
            self._seen_now = state, (times, pending, reasons)
        return self._seen_now[1]

    def keep_unreadable(self, present: Set[tuple[str, int, int]]) -> None:
        """Delete entries for unreadable files that were changed or deleted.

        ``present`` has the path, time and size of every existing file.
        """
        for row in self._db.all("list_unreadable"):
            if row not in present:
                self._db.run("delete_unreadable", path=row[0])

    def why_unreadable(self, path: str, mtime_ns: int, size: int) -> str | None:
        """Return the recorded reason why a file is not a memory.

        Returns ``None`` if the file has changed, or was not read by this nacre version.
        """
        return self._db.value(
            "find_unreadable", path=path, mtime_ns=mtime_ns, size=size, version=__version__
        )

    def set_unreadable(self, path: str, mtime_ns: int, size: int, reason: str) -> None:
        """Record why a file is not a memory. The file is read again when it changes."""
        self._db.run(
            "upsert_unreadable",
            path=path,
            mtime_ns=mtime_ns,
            size=size,
            version=__version__,
            reason=reason,
        )

    def file_of(self, memory_id: str) -> SeenMemoryFile | None:
        """Return the recorded file of a memory."""
        row = self._db.one("find_vault_file", memory=memory_id)
        return SeenMemoryFile(row[0], memory_id, *row[1:]) if row else None

    def at(self, path: str) -> SeenMemoryFile | None:
        """Return the recorded file at a path."""
        return record(SeenMemoryFile, self._db.one("find_vault_file_at", path=path))

    def journal_paths(self) -> set[str]:
        """Return the paths of uncommitted writes, including files not written yet."""
        return set(self._db.column("list_journal_paths"))

    def is_taken(self, path: str) -> bool:
        """Return True if a file exists at a path or will be written there."""
        return self._db.one("find_vault_path", path=path) is not None

    def save(self, file: SeenMemoryFile) -> None:
        """Record a file in its current state."""
        self._db.run("upsert_vault_file", **asdict(file))
        self._db.run("delete_unreadable", path=file.path)

    @runs("distrust_vault_file")
    def distrust(self, path: str) -> None:
        """Make the next scan read a file even if its time and size are unchanged."""

    def forget(self, path: str) -> None:
        self._db.run("delete_vault_file", path=path)

    def intend(self, intents: Iterable[Intent], *, applied: bool = False) -> None:
        """Record pending writes. Call this in the transaction that changes the index.

        With ``applied``, the files are already written, so the writes are only added to the
        journal.
        """
        for intent in intents:
            self._db.run("insert_intent", **asdict(intent), applied=applied)

    def has_intents(self) -> bool:
        """Return True if any write is pending."""
        return self._db.one("find_intent") is not None

    def pending_paths(self) -> set[str]:
        """Return the paths that a pending write will create or change."""
        return set(self._db.column("list_pending_paths"))

    def awaited_paths(self) -> set[str]:
        """Return the paths that a pending write will create, change or remove.

        A scan must not mistake these changes for manual edits.
        """
        return set(self._db.column("list_awaited_paths"))

    def pending_document(self, path: str) -> str | None:
        """Return the content that a pending write will store at a path."""
        return self._db.value("find_pending_document", path=path)

    def unfiled(self) -> list[str]:
        """Return the ids of indexed memories that have no file."""
        return self._db.column("list_unfiled_memories")

    def intents(self) -> list[Intent]:
        """Return the pending writes."""
        return records(Intent, self._db.all("list_intents"))

    def done(self, seq: int) -> None:
        """Mark a write as applied. The journal keeps the write if it belongs to an operation."""
        if not self._db.run("apply_intent", seq=seq):
            self.give_up(seq)

    @runs("delete_intent")
    def give_up(self, seq: int) -> None:
        """Delete a pending write."""

    def projects(self) -> list[Project]:
        return records(Project, self._db.all("list_projects"))

    def project_by(self, key: str, value: str) -> str | None:
        """Return the slug of the project with a given remote, root, label or alias (``key``)."""
        return self._db.value("find_project_by_key", key=key, value=value)

    def project_keys(self) -> list[tuple[str, str, str]]:
        """Return (key, value, project slug) of all project keys.

        A key is ``remote``, ``root``, ``label`` or ``alias``.
        """
        return self._db.all("list_project_keys")

    def name_now(self, name: str) -> str:
        """Return a project's current name for a former or alternative name, or ``name`` if unknown."""
        return self._db.value("find_other_name", other=name) or name

    def dependencies(self, project: str | None = None) -> list[tuple[str, str]]:
        """Return (project, dependency) pairs from all project pages or from one project's page."""
        return self._db.all("list_dependencies", project=project)

    def forget_project(self, slug: str, *, unless: str = "") -> None:
        """Delete the project in a folder. A project with the id ``unless`` is kept."""
        if self._db.run("delete_project_at", slug=slug, id=unless):
            self._db.run("delete_orphaned_project_keys")

    def save_project(
        self, project: Project, keys: Iterable[tuple[str, str]], dependencies: Iterable[str] = ()
    ) -> None:
        """Store a project, its keys and the names of its dependencies.

        A project with a different id in the same folder is deleted.
        """
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
        for name in dependencies:
            self._db.run("insert_project_dependency", project=project.id, other=name)


# -- Journal: operations and their writes until they are committed to git -----


_MIN_REFERENCE_CHARACTERS = 4


class Journal(Store):
    """Store of operations, of the files that they touched, and of applied writes."""

    @in_transaction
    def record(self, operation: Operation, intents: Iterable[Intent]) -> None:
        """Record an operation, if it is new, and the files that it touches."""
        self._db.run("insert_operation", **asdict(operation))
        self.touch(operation.id, intents)

    def touch(self, operation_id: str, intents: Iterable[Intent]) -> None:
        """Record the files and memories that an operation touched."""
        rows = [
            {"operation": operation_id, "path": intent.path, "memory": intent.memory or ""}
            for intent in intents
            if intent.action != "append"
        ]
        if rows:
            self._db.run_many("insert_touched", rows)

    @runs("explain_operation")
    def explain(self, operation: str, why: str | None) -> None:
        """Set the reason for an operation."""

    def find(self, operation_id: str) -> Operation | None:
        return record(Operation, self._db.one("find_operation", id=operation_id))

    def unfinished(self) -> list[Operation]:
        """Return operations that can still add writes, oldest first."""
        return records(Operation, self._db.all("list_open_operations"))

    def is_in_ledger(self, operation_id: str) -> bool:
        """Return True if the ledger has a line for an operation."""
        return self._db.one("find_ledger_line", operation=operation_id) is not None

    @runs("close_operation")
    def close(self, operation: str, subject: str | None) -> None:
        """Close an operation, so that it can be committed to git."""

    def withdraw(self, path: str) -> None:
        """Delete a file's uncommitted versions that contained a secret.

        Call this after the file has changed.
        """
        if self._db.run("delete_withheld", path=path):
            self._db.run("delete_empty_operations")

    def rename(self, old: str, new: str) -> None:
        """Rename a file in all records, which then do not contain the old name."""
        self._db.run("delete_touched_twice", old=old, new=new)
        self._db.run("rename_touched", old=old, new=new)
        self._db.run("rename_journal", old=old, new=new)

    def touched(self, operation_id: str) -> list[tuple[str, str]]:
        """Return (path, memory id or "") for each file that an operation touched."""
        return self._db.all("list_touched", operation=operation_id)

    def written_by(self, operation_id: str) -> list[Intent]:
        """Return an operation's writes in order, or an empty list if they are committed."""
        return records(Intent, self._db.all("list_journal", operation=operation_id))

    def pending(self, limit: int = 2**31, offset: int = 0) -> list[Operation]:
        """Return closed, uncommitted operations in the order of their first writes."""
        return records(
            Operation, self._db.all("list_pending_operations", limit=limit, offset=offset)
        )

    def without_texts(self) -> list[Operation]:
        """Return closed, uncommitted operations whose text is missing or was forgotten."""
        return records(Operation, self._db.all("list_operations_without_texts"))

    def waiting(self) -> tuple[int, datetime | None]:
        """Return the number of uncommitted operations and the time of the oldest."""
        row = self._db.one("count_pending_operations")
        return (row[0], from_ms(row[1])) if row else (0, None)

    def is_unapplied(self, operation_id: str) -> bool:
        """Return True if any write of an operation is pending."""
        return self._db.one("find_unapplied", operation=operation_id) is not None

    def committed(self, operation_id: str, commit: str) -> None:
        """Record an operation's commit and delete the operation's journal entries."""
        self._db.run("commit_operation", id=operation_id, committed=commit)
        self._db.run("delete_journal", operation=operation_id)

    def drop(self, operation_id: str) -> None:
        """Delete an operation and its writes from the journal."""
        self._db.run("delete_journal", operation=operation_id)
        self._db.run("delete_operation", id=operation_id)

    def add_past(self, operation: Operation, touched: Iterable[tuple[str, str]]) -> None:
        """Record an operation read from the git history. ``touched``: (path, memory) pairs."""
        self._db.run("insert_past_operation", **asdict(operation))
        rows = [
            {"operation": operation.id, "path": path, "memory": memory} for path, memory in touched
        ]
        if rows:
            self._db.run_many("insert_touched", rows)

    @runs("delete_past_operations")
    def forget_past(self) -> None:
        """Delete all operations read from the git history. Call this if the history was rewritten."""

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
        """Return operations that match all given criteria (``since <= time < until``), newest first."""
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
        """Find up to three operations by the start or end of the id (at least four characters)."""
        if len(reference) < _MIN_REFERENCE_CHARACTERS or not set(reference) <= set(
            "0123456789abcdef-"
        ):
            return []
        return records(Operation, self._db.all("find_operations_like", reference=reference))

    def before(self, intent: Intent) -> tuple[str, str | None] | None:
        """Return the action and document of the file's previous journal entry, or ``None``."""
        row = self._db.one("find_journal_before", path=intent.path, seq=intent.seq)
        return (row[0], row[1]) if row else None

    def withheld(self) -> list[str]:
        """Return the paths of files that are not committed because they contain a secret."""
        return self._db.column("list_withheld")

    def keep_last(self, operations: int) -> int:
        """Delete the text of all but the newest operations, and return the number of deleted rows.

        ``operations``: number of operations to keep. Call this only if there is no git history.
        """
        row = self._db.one("find_oldest_kept", operations=operations)
        return self._db.run("delete_journal_before", seq=row[0]) if row and row[0] else 0

    def git_state(self, key: str) -> str | None:
        """Return the commit id stored under ``read`` or ``index``."""
        return self._db.value("find_git_state", key=key)

    @runs("upsert_git_state")
    def set_git_state(self, key: str, value: str) -> None:
        """Store a commit id under ``read`` or ``index``."""

    def ledger_end(self) -> tuple[int, bytes]:
        """Return the number of ledger bytes read, and a hash of the last bytes read."""
        row = self._db.one("find_ledger_end")
        return (int(row[0]), bytes(row[1])) if row else (0, b"")

    @runs("upsert_ledger_end")
    def set_ledger_end(self, size: int, digest: bytes) -> None:
        """Store the number of ledger bytes read, and a hash of the last bytes read."""


# -- Model calls: ledger, health and cached answers ---------------------------


MOST_ANSWERS = 2_000
MOST_CHARACTERS = 20_000_000
"""Maximum total number of characters in cached answers."""


class Spending(Store):
    """Ledger of model calls."""

    def add(self, call: models.Call) -> None:
        """Record a call, unless it is already recorded."""
        self._db.run("insert_model_call", **_row(call))

    def finish(self, call: models.Call) -> None:
        """Record the actual usage of a call."""
        self._db.run("finish_model_call", **_row(call))

    def background_cost(self, since: date) -> int:
        """Return the cost of background calls since a given day.

        A call that is still running counts with its maximum cost.
        """
        return self._db.value("sum_background_cost", since=since) or 0

    def tokens_in_background(
        self, day: date, model: str, *, is_chat: bool = False
    ) -> tuple[int, int]:
        """Return the tokens and calls that background work used at a model's provider on a day.

        With ``is_chat``, only chat calls count. Otherwise, only the other calls count.
        """
        provider = model.partition(":")[0]
        row = self._db.one("sum_background_tokens", day=day, provider=provider, is_chat=is_chat)
        return (row[0], row[1]) if row else (0, 0)

    def by_task(self, since: date, today: date) -> list[models.TaskCost]:
        """Return each task's cost since a given day, most expensive first."""
        rows = self._db.all("sum_costs_by_task", since=since, today=today)
        return records(models.TaskCost, rows)

    def health(self, model: str) -> models.Health | None:
        """Return the last failure of a model, or ``None`` if its last call succeeded."""
        return record(models.Health, self._db.one("get_model_health", model=model))

    def fail(self, health: models.Health) -> None:
        """Record that a call to a model failed."""
        self._db.run("set_model_health", **asdict(health))

    @runs("clear_model_health")
    def recover(self, model: str) -> None:
        """Record that a model works again."""

    def answer(self, key: str, since: datetime) -> str | None:
        """Return the cached answer for a prompt, unless it is older than ``since``."""
        return self._db.value("find_model_answer", key=key, since=since)

    def keep_answer(self, key: str, at: datetime, model: str, answer: str) -> None:
        self._db.run("insert_model_answer", key=key, at=at, model=model, answer=answer)

    def drop_answer(self, key: str) -> None:
        self._db.run("delete_model_answer", key=key)

    def clear_answers(self) -> int:
        """Delete all cached answers and return their number."""
        return self._db.run("clear_model_answers")

    @in_transaction
    def prune(self, calls_before: date, answers_since: datetime) -> None:
        """Delete calls and answers before the given times, and the oldest answers above the limits."""
        self._db.run("prune_model_calls", before=calls_before)
        self._db.run(
            "prune_model_answers",
            since=answers_since,
            most=MOST_ANSWERS,
            most_characters=MOST_CHARACTERS,
        )


def _row(call: models.Call) -> dict[str, Any]:
    return asdict(call) | asdict(call.tokens) | {"background": call.is_background}


# -- Traces of calls, and questions --------------------------------------------


QUESTION = "question"
_UNANSWERED = json.dumps(models.UNANSWERED)


class Traces(Store):
    """Store of traces: model calls, and questions asked with recall."""

    def add(self, trace: models.Trace) -> None:
        """Store the trace of a call, unless it is already stored."""
        self._add(trace.id, trace.task.value, trace.at, trace.model, trace)

    def add_question(self, question: models.AskedQuestion) -> None:
        """Store a question, unless it is already stored."""
        self._add(question.id, QUESTION, question.at, question.outcome, question)

    def _add(self, id: str, kind: str, at: datetime, outcome: str, record: object) -> None:  # noqa: A002 - the column
        body = msgspec.json.encode(record).decode()
        self._db.run("insert_trace", id=id, kind=kind, at=at, outcome=outcome, body=body)

    def latest(
        self, task: Task | None = None, since: datetime | None = None, limit: int = 20
    ) -> list[models.Trace]:
        """Return traces of model calls, latest first."""
        rows = self._db.all(
            "list_traces", kind=task.value if task else None, since=since, limit=limit
        )
        return [json_values.parse_json_tree(body, models.Trace) for (body,) in rows]

    def unanswered(self, since: datetime) -> list[models.AskedQuestion]:
        """Return unanswered questions, latest first."""
        return [
            json_values.parse_json_tree(row[0], models.AskedQuestion)
            for row in self._db.all("list_unanswered_questions", since=since, outcomes=_UNANSWERED)
        ]

    def find(self, reference: str) -> list[models.Trace]:
        """Return the traces whose id starts or ends with ``reference``."""
        return [
            json_values.parse_json_tree(body, models.Trace)
            for (body,) in self._db.all("find_traces", reference=reference)
        ]

    def delete_answered(self) -> None:
        """Delete all traces except unanswered questions."""
        self._db.run("delete_answered_traces", unanswered=_UNANSWERED)

    def delete_where(self, matches: Callable[[str], bool]) -> int:
        """Delete the traces and questions whose text matches, and return their number."""
        matching = [trace_id for trace_id, text in self._texts() if matches(text)]
        self._db.run_many("delete_trace", [{"id": trace_id} for trace_id in matching])
        return len(matching)

    def count_where(self, matches: Callable[[str], bool]) -> int:
        """Count the traces and questions whose text matches."""
        return sum(matches(text) for _, text in self._texts())

    @runs("prune_traces")
    def prune(self, before: datetime, traces: int, questions: int) -> None:
        """Delete old traces and questions, and the oldest ones that exceed the limits."""

    def _texts(self) -> Iterator[tuple[str, str]]:
        after = ""
        while rows := self._db.all("list_trace_texts", after=after, limit=500):
            for trace_id, body in rows:
                yield trace_id, "\n".join(texts_of(msgspec.json.decode(body), ()))
            after = rows[-1][0]


# -- Tombstones and standing retirements from the ledger ----------------------


class Tombstones(Store):
    """Store of the tables ``tombstones``, ``standing_retirements`` and ``forgetting_values``."""

    def all(self) -> list[Tombstone]:
        """Return all tombstones in effect."""
        return records(Tombstone, self._db.all("list_tombstones"))

    def standing(self) -> list[StandingRetirement]:
        """Return all standing retirements, oldest first."""
        return records(StandingRetirement, self._db.all("list_standing_retirements"))

    @in_transaction
    def add(self, tombstones: Iterable[Tombstone]) -> None:
        """Add tombstones. They apply when the transaction commits."""
        self._db.run_many(
            "insert_tombstone",
            [asdict(tombstone) for tombstone in tombstones],
        )
        self.set("edition", str(int(self.value("edition") or 0) + 1))

    def add_standing(self, rules: Iterable[StandingRetirement]) -> None:
        """Add standing retirements. They apply when the transaction commits."""
        self._db.run_many("insert_standing_retirement", [asdict(rule) for rule in rules])

    @in_transaction
    def change(self, more: Collection[Tombstone], fewer: Collection[Tombstone]) -> None:
        """Add the tombstones in ``more`` and remove those in ``fewer``."""
        self._db.run_many("delete_tombstone", [asdict(tombstone) for tombstone in fewer])
        if more or fewer:
            self.add(more)

    @in_transaction
    def replace_standing(self, rules: Sequence[StandingRetirement]) -> None:
        """Replace all standing retirements."""
        self._db.run("clear_standing_retirements")
        self.add_standing(rules)

    def edition(self) -> str:
        """Return a value that changes with every new tombstone.

        The value is empty before the first tombstone.
        """
        return self.value("edition") or ""

    def due(self) -> set[str]:
        """Return the ids of runs of ``forget`` that are not finished."""
        return set(json.loads(self.value("due") or "[]"))

    def set_due(self, runs: Iterable[str]) -> None:
        """Store the ids of runs of ``forget`` that are not finished."""
        self.set("due", json.dumps(sorted(runs)))

    def arrived(self) -> list[str]:
        """Return the memories that standing retirements from the last sync affect."""
        return list(json.loads(self.value("arrived") or "[]"))

    def set_arrived(self, memories: Iterable[str]) -> None:
        """Store the memories that standing retirements from the last sync affect."""
        self.set("arrived", json.dumps(sorted(memories)))

    def value(self, key: str) -> str | None:
        """Return the value stored under a key, or ``None``."""
        return self._db.value("get_forgetting_value", key=key)

    def set(self, key: str, value: str) -> None:
        self._db.run("set_forgetting_value", key=key, value=value)
