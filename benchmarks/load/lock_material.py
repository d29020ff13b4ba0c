"""Reproducible sessions, notes and an embedder for measuring long jobs."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from benchmarks.load.statements import PLACES, THINGS, VERBS, statement
from nacre.values.memory import Kind, Memory
from nacre.vault.documents import render

PROJECT = "lighthouse"

_DAY = datetime(2026, 1, 5, 9, tzinfo=UTC)
_REPLIES = 3
_REPLY_WORDS = 80


class HashEmbedder:
    """A fast embedder that hashes words. It is used so that no model is measured."""

    dimensions = 384

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.full((len(texts), self.dimensions), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
                vectors[row, int.from_bytes(digest) % self.dimensions] += 1
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def write_sessions(folder: Path, count: int) -> Path:
    """Write transcripts and return their folder. In each, the user asks to remember one fact."""
    folder.mkdir(parents=True)
    draw = random.Random(1)  # noqa: S311 - the same in every run
    for number in range(count):
        began = _DAY + timedelta(minutes=40 * number)
        turns = [("user", f"Remember that {statement(draw, number)}")]
        for _ in range(_REPLIES):
            turns += [
                ("assistant", _reply(draw)),
                ("user", f"Now look at the {draw.choice(THINGS)}, please."),
            ]
        lines = [
            json.dumps(
                {
                    "session_id": f"session-{number:05}",
                    "id": f"{number:05}-{at}",
                    "role": role,
                    "content": text,
                    "timestamp": (began + timedelta(minutes=at)).isoformat(),
                    "cwd": f"/code/{PROJECT}",
                }
            )
            for at, (role, text) in enumerate(turns)
        ]
        (folder / f"session-{number:05}.jsonl").write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )
    return folder


def write_notes(vault: Path, count: int) -> list[Path]:
    """Write memory files into the vault, like another tool would."""
    draw = random.Random(2)  # noqa: S311 - the same in every run
    folder = vault / "global" / "fact"
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number in range(count):
        memory = Memory(
            str(UUID(int=(7 << 76) + number)), Kind.FACT, f"Note {number}", "", _DAY, _DAY
        )
        path = folder / f"note-{number}.md"
        path.write_text(render(replace(memory, content=statement(draw, number))), encoding="utf-8")
        files.append(path)
    return files


def change_notes(files: Sequence[Path]) -> None:
    """Append a sentence to each file."""
    for path in files:
        with path.open("a", encoding="utf-8") as file:
            file.write("It was looked at again in spring.\n")


def _reply(draw: random.Random) -> str:
    words = (draw.choice((*THINGS, *VERBS, *PLACES)) for _ in range(_REPLY_WORDS))
    return f"I looked at it: {' '.join(words)} {draw.randrange(10**9)}."
