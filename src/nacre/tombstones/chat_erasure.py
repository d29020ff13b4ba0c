"""Forget in the transcripts that nacre itself writes: those of conversations in channels.

Transcripts of other tools are theirs and stay; these would be found again by whoever looks into the home.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from nacre.home.home import Home
from nacre.platform import private_files
from nacre.platform.locks import FileLock
from nacre.storage.gateway import FOLDER, TRANSCRIPTS_LOCK
from nacre.tombstones.affected import Affected
from nacre.tombstones.tombstones import Barred

_TOOL = "nacre-chat:"


def erase_chats(home: Home, found: Affected, barred: Barred) -> None:
    """Take whole conversations with their files away, and from others the messages that are forgotten."""
    gone = [one.id.removeprefix(_TOOL) for one in found.sessions if one.id.startswith(_TOOL)]
    touched = [one.id.removeprefix(_TOOL) for one in found.turns if one.id.startswith(_TOOL)]
    if not gone and not touched:
        return
    folder = home.settings.home / FOLDER
    with FileLock(folder / TRANSCRIPTS_LOCK):
        for session in gone:
            (folder / "sessions" / f"{session}.jsonl").unlink(missing_ok=True)
            shutil.rmtree(folder / "files" / session, ignore_errors=True)
        for session in touched:
            _erase_lines(folder / "sessions" / f"{session}.jsonl", session, barred)


def _erase_lines(path: Path, session: str, barred: Barred) -> None:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    kept = list(_kept(lines, session, barred))
    if len(kept) < len(lines):
        private_files.write_file(path, b"\n".join(kept))


def _kept(lines: Sequence[bytes], session: str, barred: Barred) -> Iterator[bytes]:
    """The lines that stay. A summary goes as well: it may say what is forgotten."""
    gone = {at for at, line in enumerate(lines) if _is_forgotten(_record(line), session, barred)}
    for at, line in enumerate(lines):
        if at not in gone and not (gone and _record(line).get("type") == "compaction"):
            yield line


def _is_forgotten(record: dict[str, Any], session: str, barred: Barred) -> bool:
    if record.get("type") != "message":
        return False
    session_id, one = f"{_TOOL}{session}", str(record.get("id"))
    return any(barred.has_turn(session_id, one, is_shared=shared) for shared in (False, True)) or barred.is_before(
        _time(record), None, session_id
    )


def _time(record: dict[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(record.get("timestamp")))
    except ValueError:
        return None


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
