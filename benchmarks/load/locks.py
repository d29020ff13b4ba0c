"""Measure how long each long job holds the database's write lock and the vault's lock."""

from __future__ import annotations

import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.figures import Spread, spread
from benchmarks.load.lock_material import (
    PROJECT,
    HashEmbedder,
    change_notes,
    write_notes,
    write_sessions,
)
from nacre.base.frozen import frozen
from nacre.care import database
from nacre.care.proofs import prove
from nacre.data import backup, imports, undo
from nacre.data.export import ExportOptions, ImportOptions, export
from nacre.data.forget import ForgetRequest, forget, prepare
from nacre.data.history import commit_operations
from nacre.data.scrub import ScrubOptions, scrub
from nacre.data.sync import SyncRequest, sync
from nacre.data.undo import log
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.learn.learn import learn
from nacre.memories.edit import scan
from nacre.memories.requests import RetireRequest, StoreRequest
from nacre.memories.retire import choose, retire_chosen
from nacre.memories.store import store
from nacre.memories.usage import fold_usage, spool_use
from nacre.memories.vectors import embed_pending
from nacre.settings import Settings, load_settings
from nacre.values.reports import OnProgress, Progress

_JOBS = 18
_COMMON_WORD = "numbered"


@frozen
class JobHolds:
    """A job's duration in seconds, and how long it held each lock."""

    job: str
    seconds: float
    write: Spread
    vault: Spread


@dataclass
class _Watch:
    folder: Path
    size: int
    notify: OnProgress
    held: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    jobs: list[JobHolds] = field(default_factory=list)

    def run(self, job: str, work: Callable[[], object]) -> None:
        self.notify(Progress("measuring", len(self.jobs), _JOBS, job))
        self.held.clear()
        started = time.perf_counter()
        work()
        seconds = round(time.perf_counter() - started, 2)
        self.jobs.append(
            JobHolds(job, seconds, spread(self.held["write"]), spread(self.held["vault.lock"]))
        )

    def settings(self, home: str, **environ: str) -> Settings:
        return load_settings(
            self.folder / home, {"HOME": str(self.folder), "PATH": os.defpath, **environ}
        )

    def open(self, settings: Settings, *, model: str = "hash-1") -> Home:
        return open_home(
            settings,
            load_embedder=lambda _: HashEmbedder(model),
            observe=lambda name, seconds: self.held[name].append(seconds),
        )

    @contextmanager
    def home(self, name: str, *, model: str = "hash-1", **environ: str) -> Iterator[Home]:
        context = self.open(self.settings(name, **environ), model=model)
        try:
            yield context
        finally:
            context.database.close()


def measure_locks(
    folder: Path, *, size: int = 2000, notify: OnProgress = lambda _: None
) -> tuple[JobHolds, ...]:
    """Run every long job on homes with ``size`` sessions and memories. ``folder`` should be new."""
    watch = _Watch(folder, size, notify)
    with watch.home("first") as context:
        _learn(watch, context)
        _edit_by_hand(watch, context)
        remote = folder / "remote.git"
        subprocess.run(
            ["git", "init", "--quiet", "--bare", str(remote)], check=True, env={"PATH": os.defpath}
        )
        watch.run("commit", lambda: commit_operations(context))
        sync(context, SyncRequest(remote=str(remote)))
        with watch.home("second") as other:
            watch.run("sync, all is new", lambda: sync(other, SyncRequest(remote=str(remote))))
            _retire_and_undo(watch, context)
            sync(context)
            store(other, StoreRequest(content="The second machine has its own word."))
            watch.run("sync, both changed", lambda: sync(other))
        _carry(watch, context)
    with watch.home("first", model="hash-2") as context:
        watch.run("vectors of another model", lambda: embed_pending(context, notify))
        watch.run("doctor --deep", lambda: prove(context))
        watch.run("backup", lambda: backup.create(context, folder / "backup.zip"))
    watch.run(
        "rebuild",
        lambda: database.rebuild(
            watch.settings("first"), open_home=partial(watch.open, model="hash-2")
        ),
    )
    _take_away(watch)
    return tuple(watch.jobs)


def _learn(watch: _Watch, context: Home) -> None:
    folder = write_sessions(watch.folder / "sessions", watch.size)
    options = IngestOptions(paths=(folder,), extract=False, vectors=False)
    watch.run("read sessions", lambda: ingest(context, options))
    watch.run("learn from them", lambda: learn(context, lambda _: None))
    watch.run("make vectors, compare", lambda: embed_pending(context, lambda _: None))
    ids = sorted(context.memories.all_ids())
    for at in range(watch.size):
        spool_use(context, ids[at % 50 :: 97][:8], session=f"s{at % 300}")
    watch.run("count recalls", lambda: fold_usage(context))


def _edit_by_hand(watch: _Watch, context: Home) -> None:
    files = write_notes(context.settings.vault, watch.size * 5 // 2)
    watch.run("scan, new files", lambda: scan(context))
    change_notes(files)
    watch.run("scan, changed files", lambda: scan(context))


def _retire_and_undo(watch: _Watch, context: Home) -> None:
    chosen = choose(context, RetireRequest(references=("note*",)))
    watch.run("retire by pattern", lambda: retire_chosen(context, chosen, "not needed"))
    operation = next(
        entry.operation for entry in log(context) if entry.operation.action == "retire"
    )
    watch.run("undo it", lambda: undo.undo(context, operation.id))


def _carry(watch: _Watch, context: Home) -> None:
    target = watch.folder / "export.jsonl"
    export(context, target, ExportOptions(project=PROJECT))
    with watch.home("third") as other:
        planned = imports.plan_import(other, ImportOptions(path=target, trust=True))
        watch.run("import", lambda: imports.carry_out(other, planned))


def _take_away(watch: _Watch) -> None:
    rule = {"NACRE_REDACTION_PATTERNS": f'["{_COMMON_WORD} 1[0-9]*"]'}
    with watch.home("first", model="hash-2", **rule) as context:
        watch.run("scrub", lambda: scrub(context, ScrubOptions(vectors=False)))
    with watch.home("first", model="hash-2") as context:
        planned = prepare(context, ForgetRequest(project=PROJECT))
        watch.run("forget a project", lambda: forget(context, planned))
