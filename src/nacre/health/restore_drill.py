"""The restore drill: a backup is brought back into a folder of its own, opened, and proved as a home is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from nacre.errors import NacreError
from nacre.health.prove import as_check, prove
from nacre.home.home import Home
from nacre.portability.backup import Manifest, unpack
from nacre.retrieval.recall import recall
from nacre.settings import Settings, load_settings
from nacre.values.recall import Mode, RecallQuery
from nacre.values.reports import FAILURE, OK, WARNING, Check, OnProgress

_COUNTED = ("memories", "projects", "sessions", "turns")


def verify(
    backup: Path, settings: Settings, open_home: Callable[[Settings], Home], on_progress: OnProgress | None = None
) -> list[Check]:
    """Restore a backup for a moment and prove it: hashes, database, counts, index against vault, git, a recall.

    Raises NotFound, InvalidInput for what is no backup or is damaged. The home is not touched.
    """
    folder = Path(tempfile.mkdtemp(prefix="nacre-drill-"))
    home_path = folder / "home"
    try:
        manifest = unpack(backup.expanduser().absolute(), home_path, on_progress or (lambda _: None))
        size = f"{manifest.bytes / 1e6:,.1f} MB"
        hashes = Check(
            "archive", OK, f"{len(manifest.files):,} files, {size}, every hash agrees; made {manifest.created}"
        )
        try:
            home = open_home(_settings(home_path, settings))
        except NacreError as error:
            return [hashes, Check("database", FAILURE, error.message, "take another backup")]
        try:
            return [hashes, *_proofs(home, manifest)]
        finally:
            home.database.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _settings(home: Path, settings: Settings) -> Settings:
    """The home on its own: no file of this machine stands in for one of the backup's, and no model is loaded."""
    own = {name: value for name, value in settings.environ.items() if not name.startswith("NACRE_")}
    return load_settings(home, own | {"NACRE_EMBEDDING_MODEL": "none", "NACRE_RECALL_RERANKER": "none"})


def _proofs(home: Home, manifest: Manifest) -> Iterator[Check]:
    checks = [as_check(proof) for proof in prove(home, transcripts=False)]
    yield from checks
    yield _counts(home, manifest)
    yield _recall(home)
    for note in manifest.notes:
        yield Check("note", WARNING, note, "it is not in the backup")


def _counts(home: Home, manifest: Manifest) -> Check:
    sessions = home.sessions.counts()
    present = {
        "memories": len(home.memories.all_ids()), "projects": len(home.files.projects()),
        "sessions": sum(row[1] for row in sessions), "turns": sum(row[2] or 0 for row in sessions),
    }  # fmt: skip
    differing = [
        f"{name} {present[name]:,} instead of {manifest.counts.get(name, 0):,}"
        for name in _COUNTED
        if present[name] < manifest.counts.get(name, 0)
    ]
    if differing:
        return Check("counts", FAILURE, ", ".join(differing), "take another backup")
    return Check("counts", OK, ", ".join(f"{present[name]:,} {name}" for name in _COUNTED))


def _recall(home: Home) -> Check:
    """One memory, asked for by its own words, is among the answers."""
    memory = next((one for one in home.memories.everything() if one.is_active), None)
    if memory is None:
        return Check("recall", OK, "there is no memory to ask for")
    question = f"{memory.subject} {memory.content}"[:300]
    found = recall(home, RecallQuery(text=question, mode=Mode.LEXICAL, turns=0, update=False))
    if any(hit.memory.id == memory.id for hit in found.hits):
        return Check("recall", OK, f"{memory.subject!r} is found")
    return Check("recall", WARNING, f"{memory.subject!r} is not among the answers to its own words", "nacre db rebuild")
