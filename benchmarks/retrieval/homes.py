"""Cached homes for benchmarks, filled by nacre ingest.

Ingest takes seconds, but embedding takes minutes. Therefore one file caches the vectors for all
homes by text, and a home is created again when the code that fills homes changes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from secrets import token_hex

import apsw
import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval.suites import BenchSession, Haystack, Suite
from nacre import readers, store
from nacre.base import text
from nacre.base.frozen import frozen
from nacre.errors import UnreadableTranscriptError
from nacre.home import parsing
from nacre.home.home import Home, open_home
from nacre.learn import ingest as ingesting
from nacre.learn.ingest import IngestOptions, ingest
from nacre.llm import local_model
from nacre.memories import vectors as embedding
from nacre.protocols import Embedder
from nacre.redact import redactor
from nacre.settings import Settings, load_settings
from nacre.values.reports import OnProgress

_FILLS_HOMES = (local_model, embedding, ingesting, parsing, redactor, store, text, readers)
"""Modules and packages that determine what a home contains."""

_FILLED = "filled"


@frozen
class Shelf:
    """A folder with homes.

    ``fresh`` creates them again. ``vectors`` says whether they have vectors. With a ``server``
    address, their rows are there, under a new tenant each time.
    """

    folder: Path
    vectors: bool = True
    fresh: bool = False
    server: str = ""


class RememberingEmbedder:
    """An Embedder that caches vectors in a file by model and text."""

    def __init__(self, inner: Embedder, file: Path) -> None:
        self.name = inner.name
        self.dimensions = inner.dimensions
        self._inner = inner
        self._db = apsw.Connection(str(file))
        self._db.set_busy_timeout(60_000)
        self._db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [_digest(f"{self.name}\0{text}") for text in texts]
        vectors = {key: self._known(key) for key in keys}
        missing = [at for at, key in enumerate(keys) if vectors[key] is None]
        if missing:
            made = self._inner.embed([texts[at] for at in missing])
            rows = [
                (keys[at], made[number].astype(np.float32).tobytes())
                for number, at in enumerate(missing)
            ]
            with self._db:
                self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            vectors.update(rows)
        packed = b"".join(vectors[key] or b"" for key in keys)
        return np.frombuffer(packed, np.float32).reshape(len(texts), self.dimensions)

    def _known(self, key: bytes) -> bytes | None:
        row = self._db.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return bytes(row[0]) if row else None


def open_homes(
    suite: Suite, shelf: Shelf, load_embedder: Callable[[], Embedder], notify: OnProgress
) -> Iterator[tuple[Haystack, Home]]:
    """Yield each haystack in a suite with its open home, which is closed before the next one."""
    shelf.folder.mkdir(parents=True, exist_ok=True)
    code = _code_version()
    for haystack in suite.haystacks:
        folder = shelf.folder / f"{haystack.id.replace('/', '-')}-{_version(haystack, code, shelf)}"
        folder = folder.with_name(f"{folder.name}-{token_hex(4)}") if shelf.server else folder
        if shelf.fresh or not (folder / _FILLED).exists():
            shutil.rmtree(folder, ignore_errors=True)
        settings = _settings(folder, shelf)
        context = open_home(
            settings,
            load_embedder=lambda _: RememberingEmbedder(
                load_embedder(), shelf.folder / "vectors.db"
            ),
        )
        try:
            if not (folder / _FILLED).exists():
                _fill(context, haystack, folder, notify)
            yield haystack, context
        finally:
            context.database.close()
            if shelf.server:
                shutil.rmtree(folder)


def _fill(context: Home, haystack: Haystack, folder: Path, notify: OnProgress) -> None:
    transcripts = folder / "transcripts"
    transcripts.mkdir(parents=True)
    for at, session in enumerate(haystack.sessions):
        (transcripts / f"{at:06}.jsonl").write_text(as_jsonl(session), encoding="utf-8")
    report = ingest(
        context, IngestOptions(paths=(transcripts,), extract=False, remember_paths=False), notify
    )
    if report.problems:
        raise UnreadableTranscriptError(f"{report.problems[0].path}: {report.problems[0].message}")
    (folder / _FILLED).touch()


def as_jsonl(session: BenchSession) -> str:
    """Return a session as generic JSON lines."""
    lines = (
        {
            "session_id": session.id,
            "id": turn.id,
            "role": turn.role,
            "name": turn.author,
            "content": turn.text,
            "timestamp": turn.time.isoformat() if turn.time else None,
            "cwd": f"/projects/{session.project}" if session.project else None,
        }
        for turn in session.turns
    )
    return "".join(
        json.dumps(
            {key: value for key, value in line.items() if value is not None}, ensure_ascii=False
        )
        + "\n"
        for line in lines
    )


def _settings(folder: Path, shelf: Shelf) -> Settings:
    home = folder / "home"
    model = {} if shelf.vectors else {"NACRE_EMBEDDING_MODEL": "none"}
    tenant = folder.name.lower()[-64:].strip("._-")
    server = {"NACRE_DB": shelf.server, "NACRE_STORAGE_TENANT": tenant} if shelf.server else {}
    return load_settings(home, {"HOME": str(home), **model, **server})


def _version(haystack: Haystack, code: str, shelf: Shelf) -> str:
    sessions = "".join(as_jsonl(session) for session in haystack.sessions)
    return _digest(f"{code}\0{shelf.vectors}\0{sessions}").hex()[:12]


def _code_version() -> str:
    files = [Path(str(module.__file__)) for module in _FILLS_HOMES]
    packages = [file.parent.rglob("*") for file in files if file.name == "__init__.py"]
    every = {*files, *(path for package in packages for path in package)}
    sources = sorted(path for path in every if path.suffix in (".py", ".sql", ".toml"))
    return _digest("\0".join(path.read_text(encoding="utf-8") for path in sources)).hex()


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
