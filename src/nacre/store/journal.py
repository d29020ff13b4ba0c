"""What the index knows of the vault: files as last seen, writes that are pending, projects."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime, timedelta
from typing import Any

import msgspec

from nacre import __version__
from nacre.base import json as json_values
from nacre.base.ids import at_ms, from_ms, to_ms
from nacre.store.schema import Database, Row, fits_index, in_transaction
from nacre.values.memory import (
    Intent,
    Match,
    Operation,
    Project,
    SeenMemoryFile,
    StandingRetirement,
    Tombstone,
    TombstoneKind,
)
from nacre.values.models import (
    NOT_SURE,
    NOTHING_FOUND,
    Call,
    Health,
    Refusal,
    Spent,
    Step,
    Tokens,
    Trace,
    TraceKind,
)

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
        """Forget what was no memory, and changed or is gone; ``present`` are path, time and size of every file."""
        for row in self._db.all("list_unreadable"):
            if row not in present:
                self._db.run("delete_unreadable", path=row[0])

    def why_unreadable(self, path: str, mtime_ns: int, size: int) -> str | None:
        """Why a file is no memory; ``None`` where it is another one now, or this version has not read it."""
        row = self._db.one(
            "find_unreadable", path=path, mtime_ns=mtime_ns, size=size, version=__version__
        )
        return row[0] if row else None

    def set_unreadable(self, path: str, mtime_ns: int, size: int, reason: str) -> None:
        """Remember that a file as it is now is no memory, and why: it is read again when it changes."""
        self._db.run(
            "upsert_unreadable",
            path=path,
            mtime_ns=mtime_ns,
            size=size,
            version=__version__,
            reason=reason,
        )

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
            "upsert_vault_file",
            path=file.path,
            memory=file.memory,
            mtime_ns=file.mtime_ns,
            size=file.size,
            hash=file.hash,
        )
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
                "insert_intent",
                action=intent.action,
                path=intent.path,
                document=intent.document,
                base=intent.base,
                memory=intent.memory,
                operation=intent.operation,
                former=intent.former,
                applied=int(applied),
            )

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
    ) -> None:
        """Remember a project, what resolves to it, and the names of what it depends on.

        A project of another id in the same folder is forgotten.
        """
        self.forget_project(project.slug, unless=project.id)
        self._db.run("upsert_project", id=project.id, slug=project.slug, mtime_ns=project.mtime_ns)
        self._db.run("delete_project_keys", project=project.id)
        self._db.run(
            "delete_orphaned_project_keys"
        )  # or they would stand in the way of whoever claims the same
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


# ----------------------------------------------------------------------------
# The journal: operations, and what each of them wrote, until git has it.


_LEAST_REFERENCE = 4


class Journal:
    """Reads and writes ``operations``, ``touched`` and the intents that are done."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @in_transaction
    def record(self, operation: Operation, intents: Iterable[Intent]) -> None:
        """Record an operation, unless it is there, and what it touches."""
        self._db.run(
            "insert_operation",
            id=operation.id,
            at=to_ms(operation.at),
            action=operation.action,
            subject=operation.subject,
            why=operation.why,
            by=operation.by,
        )
        self.touch(operation.id, intents)

    def touch(self, operation_id: str, intents: Iterable[Intent]) -> None:
        """Note which files and memories an operation touches."""
        rows = [
            {"operation": operation_id, "path": intent.path, "memory": intent.memory or ""}
            for intent in intents
            if intent.action != "append"
        ]
        if rows:
            self._db.run_many("insert_touched", rows)

    def explain(self, operation_id: str, why: str | None) -> None:
        """Say why an operation was done."""
        self._db.run("explain_operation", id=operation_id, why=why)

    def find(self, operation_id: str) -> Operation | None:
        """An operation by its id."""
        row = self._db.one("find_operation", id=operation_id)
        return _operation(row) if row else None

    def unfinished(self) -> list[Operation]:
        """Operations whose last write may be still to come, the oldest first."""
        return [_operation(row) for row in self._db.all("list_open_operations")]

    def is_in_ledger(self, operation_id: str) -> bool:
        """Whether an operation has a line of its own for the ledger."""
        return self._db.one("find_ledger_line", operation=operation_id) is not None

    def close(self, operation_id: str, subject: str | None) -> None:
        """Nothing more belongs to an operation: from now on it may be committed."""
        self._db.run("close_operation", id=operation_id, subject=subject)

    def withdraw(self, path: str) -> None:
        """Forget what was withheld of a file: it says something else now."""
        if self._db.run("delete_withheld", path=path):
            self._db.run("delete_empty_operations")

    def rename(self, old: str, new: str) -> None:
        """Call a file otherwise in all that is remembered of it: its name is not to be told any more."""
        self._db.run("delete_touched_twice", old=old, new=new)
        self._db.run("rename_touched", old=old, new=new)
        self._db.run("rename_journal", old=old, new=new)

    def touched(self, operation_id: str) -> list[tuple[str, str]]:
        """Path and memory of every file an operation touched; a file that holds no memory has an empty one."""
        return [
            (path, memory) for path, memory in self._db.all("list_touched", operation=operation_id)
        ]

    def written_by(self, operation_id: str) -> list[Intent]:
        """What an operation wrote, in order; empty once git has it."""
        return [intent_of(row) for row in self._db.all("list_journal", operation=operation_id)]

    def pending(self, limit: int = 2**31, offset: int = 0) -> list[Operation]:
        """Closed operations that wait for a commit, in the order in which they were written."""
        return [
            _operation(row)
            for row in self._db.all("list_pending_operations", limit=limit, offset=offset)
        ]

    def without_texts(self) -> list[Operation]:
        """Closed operations that no commit holds and nothing waits of: what they wrote is nowhere, or was forgotten."""
        return [_operation(row) for row in self._db.all("list_operations_without_texts")]

    def waiting(self) -> tuple[int, datetime | None]:
        """How many operations in the journal no commit holds, and the time of the oldest."""
        row = self._db.one("count_pending_operations")
        return (row[0], from_ms(row[1])) if row else (0, None)

    def is_unapplied(self, operation_id: str) -> bool:
        """Whether something of an operation is still to reach its file."""
        return self._db.one("find_unapplied", operation=operation_id) is not None

    def committed(self, operation_id: str, commit: str) -> None:
        """History has an operation: its journal goes."""
        self._db.run("commit_operation", id=operation_id, committed=commit)
        self._db.run("delete_journal", operation=operation_id)

    def drop(self, operation_id: str) -> None:
        """Forget an operation that changed nothing after all, or that history tells otherwise."""
        self._db.run("delete_journal", operation=operation_id)
        self._db.run("delete_operation", id=operation_id)

    def add_past(self, operation: Operation, touched: Iterable[tuple[str, str]]) -> None:
        """Record an operation that history tells: what it did to which (path, memory)."""
        self._db.run(
            "insert_past_operation",
            id=operation.id,
            at=to_ms(operation.at),
            action=operation.action,
            subject=operation.subject,
            why=operation.why,
            by=operation.by,
            committed=operation.committed,
        )
        rows = [
            {"operation": operation.id, "path": path, "memory": memory} for path, memory in touched
        ]
        if rows:
            self._db.run_many("insert_touched", rows)

    def forget_past(self) -> None:
        """History was rewritten: what was known of it goes."""
        self._db.run("delete_past_operations")

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
        """Operations, the newest first; those on one memory, in one project, of one action, ``since <= t < until``."""
        rows = self._db.all(
            "list_operations",
            memory=memory,
            folder=project,
            action=action,
            since=to_ms(since),
            until=to_ms(until),
            limit=limit,
            offset=offset,
        )
        return [_operation(row) for row in rows]

    def find_like(self, reference: str) -> list[Operation]:
        """Operations whose id begins or ends so (four characters at least); at most three."""
        if len(reference) < _LEAST_REFERENCE or not set(reference) <= set("0123456789abcdef-"):
            return []
        return [
            _operation(row) for row in self._db.all("find_operations_like", reference=reference)
        ]

    def before(self, intent: Intent) -> tuple[str, str | None] | None:
        """The last thing the journal knows of a file before a row: action and document; ``None`` for nothing."""
        row = self._db.one("find_journal_before", path=intent.path, seq=intent.seq)
        return (row[0], row[1]) if row else None

    def withheld(self) -> list[str]:
        """Paths of files with a secret in them, which no commit takes."""
        return [path for (path,) in self._db.all("list_withheld")]

    def keep_last(self, operations: int) -> int:
        """Without a history: keep the texts of so many operations, drop older ones; returns how many rows went."""
        row = self._db.one("find_oldest_kept", operations=operations)
        return self._db.run("delete_journal_before", seq=row[0]) if row and row[0] else 0

    def git_state(self, key: str) -> str | None:
        """What is known of the repository: ``read`` or ``index``, a commit each."""
        row = self._db.one("find_git_state", key=key)
        return str(row[0]) if row and row[0] else None

    def set_git_state(self, key: str, value: str) -> None:
        """Remember something of the repository."""
        self._db.run("upsert_git_state", key=key, value=value)

    def ledger_end(self) -> tuple[int, bytes]:
        """How many bytes of the ledger are known, and a hash of the last of them."""
        row = self._db.one("find_ledger_end")
        return (int(row[0]), bytes(row[1])) if row else (0, b"")

    def set_ledger_end(self, size: int, digest: bytes) -> None:
        """Remember how far the ledger is known."""
        self._db.run("upsert_ledger_end", size=size, hash=digest)


def _operation(row: Row) -> Operation:
    at = from_ms(row[1])
    assert at is not None  # noqa: S101 - the column is never null
    return Operation(row[0], at, *row[2:])


# ----------------------------------------------------------------------------
# What models were asked and what that cost, how they fare, and what they answered: state.


MOST_ANSWERS = 2_000
MOST_CHARACTERS = 20_000_000
"""Of all answers together that are kept."""


class Spending:
    """Reads and writes the ledger of calls."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, call: Call) -> None:
        """Note a call; one that is noted already stays as it is."""
        self._db.run("insert_model_call", **_row(call))

    def finish(self, call: Call) -> None:
        """Note what a call really took."""
        self._db.run(
            "finish_model_call",
            id=call.id,
            input=call.tokens.input,
            output=call.tokens.output,
            cached=call.tokens.cached,
            written=call.tokens.written,
            cost=call.cost,
            seconds=call.seconds,
            outcome=call.outcome,
        )

    def in_background(
        self, day: date, task: str, is_priced: Callable[[str], bool] = lambda _: True
    ) -> tuple[int, int]:
        """What background calls of a day cost so far, of models that have a price in all, and of any for a task; those
        that run, what they may cost.
        """
        rows = self._db.all("sum_background_cost", day=day.isoformat(), task=task)
        return sum(cost for model, cost, _ in rows if is_priced(model)), sum(
            of_task for _, _, of_task in rows
        )

    def tokens_in_background(
        self, day: date, model: str, *, is_chat: bool = False
    ) -> tuple[int, int]:
        """Tokens that background calls of a day took so far of a model and of others of its provider, and how many
        calls that were: those that answered in conversations, or all others."""
        provider = model.partition(":")[0]
        row = self._db.one(
            "sum_background_tokens", day=day.isoformat(), provider=provider, is_chat=is_chat
        )
        return (row[0], row[1]) if row else (0, 0)

    def since(self, day: date) -> list[Spent]:
        """Calls since a day, by day, task, model, and whether they were background work."""
        return [
            Spent(
                date.fromisoformat(on),
                task,
                model,
                bool(background),
                calls,
                failed,
                Tokens(read, written, from_cache, to_cache),
                *sums,
            )
            for on, task, model, background, calls, failed, read, written, from_cache, to_cache, *sums in self._db.all(
                "sum_model_calls", since=day.isoformat()
            )
        ]

    def usual(self, task: str, model: str) -> tuple[int, float, float, float]:
        """Of the last calls of a task: how many, and the mean of tokens read, tokens written and seconds."""
        count, read, written, seconds = self._db.one(
            "mean_model_calls", task=task, model=model
        ) or (0, 0, 0, 0)
        return count, read or 0.0, written or 0.0, seconds or 0.0

    def refuse(self, day: date, task: str, model: str, reason: str) -> None:
        """Count a call that is not made."""
        self._db.run(
            "count_model_refusal", day=day.isoformat(), task=task, model=model, reason=reason
        )

    def refusals(self, day: date) -> list[Refusal]:
        """Calls that were not made since a day."""
        return [
            Refusal(date.fromisoformat(on), task, model, reason, times)
            for on, task, model, reason, times in self._db.all(
                "list_model_refusals", since=day.isoformat()
            )
        ]

    def health(self, model: str) -> Health | None:
        """How a model that failed last fares."""
        row = self._db.one("get_model_health", model=model)
        return Health(row[0], at_ms(row[1]), row[2]) if row else None

    def fail(self, health: Health) -> None:
        """A model failed."""
        self._db.run(
            "set_model_health", model=health.model, until=to_ms(health.until), told=health.told
        )

    def recover(self, model: str) -> None:
        """A model answers."""
        self._db.run("clear_model_health", model=model)

    def answer(self, key: str, since: datetime) -> str | None:
        """What was answered to a prompt, if that is not older."""
        row = self._db.one("find_model_answer", key=key, since=to_ms(since))
        return row[0] if row else None

    def keep_answer(self, key: str, at: datetime, model: str, answer: str) -> None:
        """Keep an answer."""
        self._db.run("insert_model_answer", key=key, at=to_ms(at), model=model, answer=answer)

    def drop_answer(self, key: str) -> None:
        """Keep an answer no longer."""
        self._db.run("delete_model_answer", key=key)

    def clear_answers(self) -> int:
        """Keep no answer; returns how many there were."""
        return self._db.run("clear_model_answers")

    @in_transaction
    def prune(self, calls_before: date, answers_since: datetime) -> None:
        """Delete calls of before a day, older answers, and the oldest of too many."""
        self._db.run("prune_model_calls", before=calls_before.isoformat())
        self._db.run("prune_model_refusals", before=calls_before.isoformat())
        self._db.run(
            "prune_model_answers",
            since=to_ms(answers_since),
            most=MOST_ANSWERS,
            most_characters=MOST_CHARACTERS,
        )


def _row(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "at": to_ms(call.at),
        "day": call.day.isoformat(),
        "task": call.task,
        "model": call.model,
        "background": int(call.is_background),
        "input": call.tokens.input,
        "output": call.tokens.output,
        "cached": call.tokens.cached,
        "written": call.tokens.written,
        "cost": call.cost,
        "seconds": call.seconds,
        "outcome": call.outcome,
        "trace": call.trace,
    }


# ----------------------------------------------------------------------------
# Traces of runs and of answered questions: state.


_STEP = 500


class Traces:
    """Reads and writes traces."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, trace: Trace) -> None:
        """Keep a trace; one that is kept already stays as it is."""
        seconds = (trace.ended - trace.began).total_seconds() if trace.ended else 0.0
        self._db.run(
            "insert_trace",
            id=trace.id,
            kind=trace.kind.value,
            subject=trace.subject,
            session=trace.session or None,
            began=to_ms(trace.began),
            seconds=seconds,
            outcome=trace.outcome,
            steps=_encoded(trace.steps),
        )

    def latest(
        self, kind: TraceKind | None = None, since: datetime | None = None, limit: int = 20
    ) -> list[Trace]:
        """The latest first."""
        rows = self._db.all(
            "list_traces", kind=kind.value if kind else None, since=to_ms(since), limit=limit
        )
        return [_trace(row) for row in rows]

    def unanswered(self, since: datetime) -> list[Trace]:
        """Questions that nothing was shown for, the latest first."""
        outcomes = json.dumps([NOTHING_FOUND, NOT_SURE])
        rows = self._db.all("list_unanswered_cases", since=to_ms(since), outcomes=outcomes)
        return [_trace(row) for row in rows]

    def find(self, reference: str) -> list[Trace]:
        """Those of an id, or of its beginning or end."""
        return [_trace(row) for row in self._db.all("find_traces", reference=reference)]

    def case_of(self, memory: str, session: str | None, since: datetime) -> str | None:
        """The latest question that a memory was shown for."""
        row = self._db.one("list_cases_of", memory=memory, session=session, since=to_ms(since))
        return row[0] if row else None

    @in_transaction
    def add_step(self, trace_id: str, step: Step, outcome: str) -> None:
        """Say what became of it later."""
        for trace in self.find(trace_id):
            steps = _encoded((*trace.steps, step))
            self._db.run("update_trace_steps", id=trace.id, steps=steps, outcome=outcome)

    def delete_where(self, tells: Callable[[str], bool]) -> int:
        """Delete traces in whose texts something is told; returns how many."""
        gone = [trace_id for trace_id, said in self._texts() if tells(said)]
        self._db.run_many("delete_trace", [{"id": trace_id} for trace_id in gone])
        return len(gone)

    def count_where(self, tells: Callable[[str], bool]) -> int:
        """How many traces there are in whose texts something is told."""
        return sum(1 for _, said in self._texts() if tells(said))

    def prune(self, before: datetime, most: int) -> None:
        """Delete the old ones, and the oldest of too many."""
        self._db.run("prune_traces", before=to_ms(before), most=most)

    def _texts(self) -> Iterator[tuple[str, str]]:
        """What each says, its steps as they are and not as JSON writes them."""
        after = ""
        while rows := self._db.all("list_trace_texts", after=after, limit=_STEP):
            for trace_id, subject, outcome, steps in rows:
                yield trace_id, "\n".join((subject, outcome, *_strings(msgspec.json.decode(steps))))
            after = rows[-1][0]


def _encoded(steps: tuple[Step, ...]) -> str:
    return msgspec.json.encode(steps).decode()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _trace(row: tuple[Any, ...]) -> Trace:
    trace_id, kind, subject, session, began, seconds, outcome, steps = row
    start = at_ms(began)
    told = json_values.parse_json_values(steps, tuple[Step, ...])
    return Trace(
        trace_id,
        TraceKind(kind),
        subject,
        start,
        start + timedelta(seconds=seconds),
        outcome,
        told,
        session=session or "",
    )


# ----------------------------------------------------------------------------
# Tombstones and standing retirements, as the ledger tells them, and what forgetting has left to do.


class Tombstones:
    """Reads and writes ``tombstones``, ``standing_retirements`` and ``forgetting_values``."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def all(self) -> list[Tombstone]:
        """Every tombstone that holds."""
        found = self._db.all("list_tombstones")
        return [
            Tombstone(TombstoneKind(kind), value, run, owner) for kind, value, run, owner in found
        ]

    def standing(self) -> list[StandingRetirement]:
        """Every standing retirement, the oldest first."""
        found = []
        for rule, pattern, match, key, reason, contexts, at in self._db.all(
            "list_standing_retirements"
        ):
            moment = from_ms(at)
            if moment:
                contexts = tuple(json.loads(contexts))
                found.append(
                    StandingRetirement(rule, pattern, Match(match), moment, key, reason, contexts)
                )
        return found

    @in_transaction
    def add(self, tombstones: Iterable[Tombstone]) -> None:
        """Let tombstones hold from this transaction on."""
        self._db.run_many(
            "insert_tombstone", [{**_row_tombstones(one), "owner": one.owner} for one in tombstones]
        )
        self.set("edition", str(int(self.value("edition") or 0) + 1))

    def add_standing(self, rules: Iterable[StandingRetirement]) -> None:
        """Let standing retirements hold from this transaction on."""
        rows: list[dict[str, object]] = [
            {
                "id": one.id,
                "pattern": one.pattern,
                "match": one.match.value,
                "canonical_key": one.canonical_key,
                "reason": one.reason,
                "contexts": json.dumps(one.contexts),
                "at": to_ms(one.at),
            }
            for one in rules
        ]
        self._db.run_many("insert_standing_retirement", rows)

    @in_transaction
    def change(self, more: Collection[Tombstone], fewer: Collection[Tombstone]) -> None:
        """Let some hold, and others no longer."""
        self._db.run_many("delete_tombstone", [_row_tombstones(one) for one in fewer])
        if more or fewer:
            self.add(more)

    @in_transaction
    def replace_standing(self, rules: Sequence[StandingRetirement]) -> None:
        """All standing retirements anew."""
        self._db.run("clear_standing_retirements")
        self.add_standing(rules)

    def edition(self) -> str:
        """Changes whenever tombstones do; empty as long as there was none."""
        return self.value("edition") or ""

    def due(self) -> set[str]:
        """The runs that are not carried out yet."""
        return set(json.loads(self.value("due") or "[]"))

    def set_due(self, runs: Iterable[str]) -> None:
        """What is left to carry out."""
        self.set("due", json.dumps(sorted(runs)))

    def arrived(self) -> list[str]:
        """Ids of memories that were here when a standing retirement for them arrived."""
        return list(json.loads(self.value("arrived") or "[]"))

    def set_arrived(self, memories: Iterable[str]) -> None:
        """Which of them are still to be looked after."""
        self.set("arrived", json.dumps(sorted(memories)))

    def value(self, key: str) -> str | None:
        """A value: ``ledger`` (its time and size when read), ``told``, ``due``, ``arrived``, ``erase``, ``edition``."""
        row = self._db.one("get_forgetting_value", key=key)
        return row[0] if row else None

    def set(self, key: str, value: str) -> None:
        """Set a value."""
        self._db.run("set_forgetting_value", key=key, value=value)


def _row_tombstones(one: Tombstone) -> dict[str, object]:
    return {"kind": one.kind.value, "value": one.value, "run": one.run}
