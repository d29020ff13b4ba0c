"""Provide a home for every test, a clock that the test sets, and writers of transcripts."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nacre.api import MemoryHome
from nacre.base.text import words
from nacre.care.database import rebuild
from nacre.home.home import Home, open_home
from nacre.home.views import Pending, PendingKind
from nacre.protocols import LanguageModel
from nacre.review.queue import list_items
from nacre.settings import Settings, load_settings
from nacre.store.sqlite import open_database
from nacre.values.memory import Memory
from tests.processes import Processes

SOURCE = str(Path(__file__).parents[2] / "src")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class WordEmbedder:
    """An embedder without a model: texts that share words have similar vectors. Counts its texts."""

    def __init__(self, name: str = "words-1") -> None:
        self.name = name
        self.dimensions = 384
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        vectors = np.full((len(texts), self.dimensions), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for word in words(text):
                digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
                vectors[row, int.from_bytes(digest) % self.dimensions] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


@dataclass
class Clock:
    """A clock that the test sets."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += timedelta(days=days)


@cache
def _empty_database() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "nacre.db")
        open_database(path).close()
        return path.read_bytes()


def _place_empty_database(path: Path) -> None:
    """Copy an empty database, created once per process, to a new home."""
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(_empty_database())


class _CrashError(Exception):
    """Error that a test raises where a process would die."""


def leave_pending(home: Home, memories: Sequence[Memory]) -> None:
    """Write memories up to a crash right after the commit, before their files are written."""
    with suppress(_CrashError), home.change("store") as change:
        with change.transaction():
            change.put(memories)
        raise _CrashError


@dataclass
class World:
    """A user's machine: a home folder with transcripts, a nacre home, a clock."""

    user_home: Path
    clock: Clock = field(default_factory=Clock)
    embedder: WordEmbedder = field(default_factory=WordEmbedder)
    environ: dict[str, str] = field(default_factory=dict)
    model: LanguageModel | None = None
    """The language model that the settings name."""
    processes: Processes = field(default_factory=Processes)
    has_database: bool = True
    """True if a new home gets an empty database, so that nacre does not create it."""

    @property
    def home(self) -> Path:
        return self.user_home / ".nacre"

    @property
    def vault(self) -> Path:
        return self.home / "vault"

    def settings(self) -> Settings:
        return load_settings(self.home, {"HOME": str(self.user_home), **self.environ})

    def context(self, settings: Settings | None = None) -> Home:
        if self.has_database and not self.environ.get("NACRE_DB"):
            _place_empty_database(self.home / "nacre.db")
        return open_home(
            settings or self.settings(),
            clock=self.clock,
            load_embedder=lambda _: self.embedder,
            load_model=(lambda _, __: self.model) if self.model else None,
        )

    @contextmanager
    def open(self) -> Iterator[MemoryHome]:
        with MemoryHome(self.context()) as memory:
            yield memory

    def rebuild(self) -> None:
        """Rebuild the database without vectors."""
        rebuild(self.settings(), open_home=self.context, vectors=False)

    def start(self, code: str) -> subprocess.Popen[str]:
        """Start a program that runs the indented ``code`` with the open home as ``memory``."""
        environ = {
            "HOME": str(self.user_home),
            "NACRE_HOME": str(self.home),
            "PYTHONPATH": SOURCE,
            "PATH": os.environ["PATH"],
            "NACRE_EMBEDDING_MODEL": "none",
            **self.environ,
        }
        return self.processes.start(
            [sys.executable, "-c", f"import nacre\nwith nacre.open_memory() as memory:\n{code}"],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def write(self, path: str, text: str) -> Path:
        """Write a file of the vault like a person with an editor."""
        target = self.vault / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def memory_file(self, memory_id: str) -> Path:
        """Return the file with a memory's id."""
        paths = [
            path
            for path in self.vault.rglob("*.md")
            if f"id: {memory_id}" in path.read_text(encoding="utf-8")
        ]
        assert len(paths) == 1, paths
        return paths[0]

    def transcript(self, name: str, *records: dict[str, Any], folder: str = "-work-acme") -> Path:
        """Append records to a Claude Code transcript."""
        path = self.user_home / ".claude" / "projects" / folder / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        return path


@pytest.fixture
def world(tmp_path: Path, processes: Processes) -> World:
    user_home = tmp_path / "user"
    user_home.mkdir()
    return World(user_home, processes=processes)


def calls(
    name: str, answer: str, *, uuid: str, session: str, beside: Any = None, **arguments: Any
) -> list[dict[str, Any]]:
    """Return Claude Code's records of an agent's call and its result."""
    call = {"type": "tool_use", "id": f"t-{uuid}", "name": name, "input": arguments}
    result = {"type": "tool_result", "tool_use_id": f"t-{uuid}", "content": answer}
    request = {"role": "assistant", "id": f"msg_{uuid}", "model": "model-1", "content": [call]}
    response = {"role": "user", "content": [result]}
    return [
        says("assistant", "", uuid=uuid, session=session, message=request),
        says("user", "", uuid=f"{uuid}-r", session=session, message=response, toolUseResult=beside),
    ]


def asks(
    question: str, *options: str, answer: str, uuid: str, session: str
) -> list[dict[str, Any]]:
    """Return Claude Code's records of a form with one question and its answer."""
    questions = [{"question": question, "options": [{"label": option} for option in options]}]
    return calls(
        "AskUserQuestion",
        "Answered.",
        uuid=uuid,
        session=session,
        questions=questions,
        beside={"questions": questions, "answers": {question: answer}},
    )


def says(
    role: str,
    text: str,
    *,
    uuid: str,
    session: str = "5e55-0001",
    at: str = "2026-11-18T09:00:00.000Z",
    cwd: str = "/code/acme-billing",
    **more: Any,
) -> dict[str, Any]:
    """Return a Claude Code record of a message with ``role`` user or assistant."""
    content: Any = text if role == "user" else [{"type": "text", "text": text}]
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{uuid}", "model": "model-1"}
    return {
        "type": role,
        "uuid": uuid,
        "parentUuid": None,
        "sessionId": session,
        "timestamp": at,
        "cwd": cwd,
        "version": "2.1.0",
        "gitBranch": "main",
        "isSidechain": False,
        "message": message,
        **more,
    }


def doubts(home: Home) -> tuple[Pending, ...]:
    """Return the doubted memories that wait for review."""
    return list_items(home, only=PendingKind.DOUBT, limit=0).items
