"""Simulate a day of many agents whose transcripts grow, break and move while nacre watches.

The test compares the final home with a fresh home that reads the same files, including the deleted files.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.app.shapes import SHAPES, Agent, Owner, Step, Tool

_PATIENCE_SECONDS = 120.0
_GLANCE_SECONDS = 0.05
_NOTES = "notes"
_THINGS = (
    "sluice",
    "millstone",
    "hopper",
    "bell",
    "gear train",
    "weir",
    "granary",
    "wheel pit",
    "flour chute",
)
_DEEDS = (
    "is dressed in March",
    "runs dry by noon",
    "was moved to the north side",
    "needs oil twice a week",
)


@dataclass
class Scribe:
    """A writer of one transcript in pieces. ``ends`` names the final state of the file."""

    path: Path
    pieces: list[bytes]
    ends: str = "stays"
    is_whole: bool = False
    written: bytes = b""

    @property
    def is_done(self) -> bool:
        return not self.pieces

    def write(self) -> None:
        """Write the next piece; some formats are rewritten completely each time."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        piece = self.pieces.pop(0)
        self.written += piece
        if self.is_whole:
            draft = self.path.with_suffix(".draft")
            draft.write_bytes(self.written)
            draft.replace(self.path)
        else:
            with self.path.open("ab") as file:
                file.write(piece)


@dataclass
class Clerk:
    """A writer of sessions into a tool's database, which stays open all day."""

    path: Path
    number: int
    messages: list[str]

    def open(self) -> None:
        from tests.stores import OpenCode

        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.book = OpenCode(self.path)
        self.names = [self.book.session(f"ses_{number:03d}") for number in range(self.number)]

    def write(self, chance: random.Random) -> None:
        """Add a message to one of the sessions."""
        text = self.messages.pop(0)
        role = "user" if len(self.messages) % 2 else "assistant"
        self.book.message(chance.choice(self.names), role, {"text": text})


@dataclass
class Day:
    """All events in a user's home. ``attic`` gets a copy of each deleted file."""

    home: Path
    attic: Path
    seed: int = 1
    sessions: int = 100
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - to be repeated, not to be secret
        self.scribes = [self._scribe(number) for number in range(self.sessions)]
        self.clerk = self._clerk() if find_spec("tests.stores") else None
        self.total = sum(len(scribe.pieces) for scribe in self.scribes)

    def live(self, pause_seconds: float, at: dict[float, Callable[[], None]] | None = None) -> None:
        """Write everything; ``at`` maps a written share to a function to call at that point."""
        written = 0
        if self.clerk:
            self.clerk.open()
        events = sorted((at or {}).items())
        while any(not scribe.is_done for scribe in self.scribes):
            self._random.choice([scribe for scribe in self.scribes if not scribe.is_done]).write()
            written += 1
            self._happen()
            if self.clerk and self.clerk.messages and self._random.random() < 0.3:
                self.clerk.write(self._random)
            while events and written / self.total >= events[0][0]:
                events.pop(0)[1]()
            time.sleep(pause_seconds)
        for scribe in self.scribes:
            self._end(scribe)
        if self.clerk:
            self.clerk.book.close()

    def bring_back(self) -> None:
        """Restore the deleted files so that a fresh home can read all of them."""
        shutil.copytree(self.attic, self.home, dirs_exist_ok=True)

    def _happen(self) -> None:
        """Occasionally rename, cut or copy a transcript."""
        scribe = self._random.choice(self.scribes)
        chance = self._random.random()
        if not scribe.written or scribe.is_whole or scribe.ends == "deleted":
            return
        if chance < 0.02 and scribe.path.suffix == ".jsonl" and ".openclaw" in scribe.path.parts:
            renamed = scribe.path.with_name(f"{scribe.path.name}.reset.2026-11-20T10-00-00.000Z")
            scribe.path.replace(renamed)
            scribe.path = renamed
            self.notes.append("renamed")
        elif chance < 0.03:
            scribe.path.write_bytes(scribe.written[: len(scribe.written) // 2])
            time.sleep(0.2)
            scribe.path.write_bytes(scribe.written)
            self.notes.append("cut and restored")
        elif chance < 0.04 and ".claude" in scribe.path.parts and scribe.is_done:
            copy = (
                scribe.path.parent.with_name(f"{scribe.path.parent.name}-copy") / scribe.path.name
            )
            copy.parent.mkdir(exist_ok=True)
            shutil.copy2(scribe.path, copy)
            self.notes.append("copied")

    def _end(self, scribe: Scribe) -> None:
        if scribe.ends != "deleted":
            return
        self._wait_until_read(scribe.path)
        backup = self.attic / scribe.path.relative_to(self.home)
        backup.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(scribe.path, backup)
        scribe.path.unlink()
        self.notes.append("deleted")

    def _wait_until_read(self, path: Path) -> None:
        """Wait until a file is read, because nacre cannot recover a file deleted before."""
        size = path.stat().st_size
        until = time.monotonic() + _PATIENCE_SECONDS
        while read_size(self.home / ".nacre" / "nacre.db", path) < size:
            assert time.monotonic() < until, (
                f"{path.name} was not read for {_PATIENCE_SECONDS:.0f} s"
            )
            time.sleep(_GLANCE_SECONDS)

    def _clerk(self) -> Clerk:
        words = [
            f"Entry {number}: the {self._random.choice(_THINGS)} was seen to"
            for number in range(self.sessions)
        ]
        return Clerk(self.home / ".local" / "share" / "opencode" / "opencode.db", 5, words)

    def _scribe(self, number: int) -> Scribe:
        tool = ("claude-code", "codex", "openclaw", "claude-code", "markdown")[number % 5]
        path, rendered = self._transcript(tool, number)
        if tool == "markdown":
            parts = [f"{part}---\n" for part in rendered.split("---\n") if part.strip()]
            return Scribe(path, [part.encode() for part in parts], is_whole=True)
        ends = "deleted" if number % 10 == 3 else "stays"
        return Scribe(path, list(_split_randomly(rendered.encode(), self._random)), ends)

    def _transcript(self, tool: str, number: int) -> tuple[Path, str]:
        _, render = SHAPES[tool]
        rendered = render(list(self._steps(number)))
        text = rendered if isinstance(rendered, str) else self._lines(rendered)
        now = datetime.now(UTC)
        text = text.replace("2026-11-18T09:", f"{now:%Y-%m-%dT%H}:")
        own = {
            "5e55-0001": f"5e55{number:04d}-0000-4000-8000-000000000000",
            "00000000-0000": f"{number:08x}-0000",
            '"msg_': f'"msg_{number}_',
            "019fa000-1111-7222-8333-444455556666": f"019fa000-1111-7222-8333-{number:012d}",
            "7d9c1a00-aaaa-4bbb-8ccc-dddd00001111": f"7d9c1a00-aaaa-4bbb-8ccc-{number:012d}",
            '"call_id": "c': f'"call_id": "c{number}_',
            "# Acme": f"# Acme {number}",
        }
        for before, after in own.items():
            text = text.replace(before, after)
        return self.home / _place(tool, number, now), text

    def _lines(self, records: Sequence[dict[str, Any]]) -> str:
        """Return lines, some with two objects joined as interrupted tools leave them."""
        glue = (["\n"] * 15) + [""]
        parts = [
            json.dumps(record, ensure_ascii=False) + self._random.choice(glue) for record in records
        ]
        return "".join(parts).rstrip("\n") + "\n"

    def _steps(self, number: int) -> Iterator[Step]:
        for place in range(self._random.randint(2, 8)):
            thing, deed = self._random.choice(_THINGS), self._random.choice(_DEEDS)
            yield Owner(
                f"In mill {number} the {thing} {deed}, and that makes {place} – süß, 水車 №{place}."
            )
            if self._random.random() < 0.5:
                yield Tool(
                    "Bash", f"make check-{place}", "\n".join(["ok"] * self._random.randint(1, 40))
                )
            yield Agent(f"Noted for mill {number}: the {thing} {deed} ({place}).")
        if number % 4 == 0:
            yield Owner(
                f"We decided to use cast iron for mill {number} instead of oak because oak rots."
            )
            yield Agent(f"Done: mill {number} is of cast iron.")


def _place(tool: str, number: int, now: datetime) -> Path:
    if tool == "claude-code":
        return Path(
            f".claude/projects/-code-mill-{number}/deep/er/5e55{number:04d}-0000-4000-8000-000000000000.jsonl"
        )
    if tool == "codex":
        name = f"rollout-{now:%Y-%m-%dT%H-%M-%S}-019fa000-1111-7222-8333-{number:012d}.jsonl"
        return Path(f".codex/sessions/{now:%Y/%m}/{number % 28 + 1:02d}/{name}")
    if tool == "openclaw":
        return Path(
            f".openclaw/agents/miller{number % 3}/sessions/7d9c1a00-aaaa-4bbb-8ccc-{number:012d}.jsonl"
        )
    return Path(f"{_NOTES}/{number}/2026-11-18_talk.md")


def _split_randomly(data: bytes, chance: random.Random) -> Iterator[bytes]:
    cuts = sorted(chance.sample(range(1, len(data)), min(chance.randint(4, 14), len(data) - 1)))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        yield data[start:end]


def roots(home: Path) -> str:
    """Return the value of ``ingest.roots`` for the notes of a home."""
    return json.dumps([str(home / _NOTES)])


def read_size(database: Path, path: Path) -> int:
    """Return the size of a transcript when a home last read it."""
    if not database.exists():
        return 0
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)
    try:
        row = connection.execute(
            "SELECT size FROM transcript_cursors WHERE path = ?", (str(path),)
        ).fetchone()
    except sqlite3.OperationalError:
        return 0  # the database is being created
    finally:
        connection.close()
    return int(row[0]) if row else 0


def stored_turns(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the turns of every session of a home, in order."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        rows = connection.execute(
            "SELECT s.tool || ':' || s.native_id, t.seq, t.native_id, t.speaker, t.trust, t.flags, t.text, t.tools"
            " FROM sessions s LEFT JOIN turns t ON t.session = s.row ORDER BY 1, 2"
        )
        turns: dict[str, list[tuple[Any, ...]]] = {}
        for session, _, *turn in rows:
            turns.setdefault(session, []).append(tuple(turn))
        return turns
    finally:
        connection.close()


def differences(
    watched: dict[str, list[tuple[Any, ...]]], fresh: dict[str, list[tuple[Any, ...]]]
) -> list[str]:
    """Describe missing, repeated and different sessions."""
    messages = [f"{session} is missing" for session in fresh.keys() - watched.keys()]
    messages += [f"{session} is too much" for session in watched.keys() - fresh.keys()]
    for session in sorted(fresh.keys() & watched.keys()):
        ours, theirs = watched[session], fresh[session]
        if ours == theirs:
            continue
        ids = [turn[0] for turn in ours]
        missing = [turn[0] for turn in theirs if turn[0] not in ids]
        extra = [name for name in ids if name not in [turn[0] for turn in theirs]]
        changed = [mine for mine, other in zip(ours, theirs, strict=False) if mine != other]
        messages.append(
            f"{session}: {len(missing)} lost {missing[:2]}, {len(extra)} too many {extra[:2]}, else {changed[:1]}"
        )
    return messages
