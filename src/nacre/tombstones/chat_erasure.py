"""Forget in what nacre itself keeps of conversations in channels: transcripts, files, the gateway's database.

Transcripts of other tools are theirs and stay; these would be found again by whoever looks into the home.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from nacre.home.home import Home
from nacre.platform import private_files
from nacre.platform.locks import FileLock
from nacre.storage.gateway import DATABASE, FOLDER, TRANSCRIPTS_LOCK
from nacre.storage.maintenance.gateway_erasure import GatewayErasure, Held
from nacre.tombstones.affected import Affected
from nacre.tombstones.text_search import Pattern, excerpt_of
from nacre.tombstones.tombstones import Barred

_TOOL = "nacre-chat:"


def held(home: Home, barred: Barred, match: Pattern | None = None) -> int:
    """How many messages, parts of answers and names go that only the gateway's database has."""
    if not (home.settings.home / DATABASE).exists():
        return 0
    with closing(GatewayErasure.open(home.settings.home)) as store:
        return len(_held(store, barred, match)) + len(_names(store, match))


def erase_matching(home: Home, match: Pattern) -> None:
    """Take away what says something, of what only the gateway's database has."""
    if (home.settings.home / DATABASE).exists():
        with closing(GatewayErasure.open(home.settings.home)) as store:
            store.erase_held(_held(store, Barred(), match), _names(store, match))


def erase_chats(home: Home, found: Affected, barred: Barred) -> None:
    """Take whole conversations with their files away, and from others the messages that are forgotten; also what is not
    in a transcript yet."""
    gone = [one.id.removeprefix(_TOOL) for one in found.sessions if one.id.startswith(_TOOL)]
    touched = [one.id.removeprefix(_TOOL) for one in found.turns if one.id.startswith(_TOOL)]
    if not (home.settings.home / DATABASE).exists():
        return
    folder = home.settings.home / FOLDER
    with FileLock(folder / TRANSCRIPTS_LOCK), closing(GatewayErasure.open(home.settings.home)) as store:
        store.erase_held(_held(store, barred, None))
        for session in touched:
            _Chat(folder, session, store).erase(barred)
        for session in gone:
            _Chat(folder, session, store).erase(None)


def erase_bytes(home: Home) -> bool:
    """Leave no byte of what was forgotten in the gateway's database; whether none is left. Raises StoreBusy."""
    if not (home.settings.home / DATABASE).exists():
        return True
    with closing(GatewayErasure.open(home.settings.home)) as store:
        return store.compact()


@dataclass(frozen=True, slots=True)
class _Chat:
    """One conversation, in all places."""

    folder: Path
    session: str
    store: GatewayErasure

    @property
    def path(self) -> Path:
        return self.folder / "sessions" / f"{self.session}.jsonl"

    @property
    def files(self) -> Path:
        return self.folder / "files" / self.session

    def erase(self, barred: Barred | None) -> None:
        """Take away what is barred, or all of it. A summary goes with any message: it may say what is forgotten."""
        lines = [(line, _record(line)) for line in self._lines()]
        waiting = [(seq, _record(line.text.encode())) for seq, line in self.store.pending_lines(self.session)]
        late = {seq: one for seq, one in waiting if self._is_gone(one, barred)}
        gone = [*(one for _, one in lines if self._is_gone(one, barred)), *late.values()]
        self.store.erase([str(one.get("id")) for one in gone], late)
        if barred is None:
            self.store.delete_session(self.session)
            self.path.unlink(missing_ok=True)
            shutil.rmtree(self.files, ignore_errors=True)
        elif gone:
            for place in (place for record in gone for place in _places(record)):
                (self.files / place).unlink(missing_ok=True)
            kept = [line for line, one in lines if one.get("type") != "compaction" and not self._is_gone(one, barred)]
            private_files.write_file(self.path, b"\n".join(kept))

    def _lines(self) -> Sequence[bytes]:
        try:
            return self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ()

    def _is_gone(self, record: dict[str, Any], barred: Barred | None) -> bool:
        """Whether a line is forgotten: by its own id, or as the new text of one that is."""
        if barred is None or record.get("type") != "message":
            return barred is None
        session, ids = f"{_TOOL}{self.session}", (record.get("id"), _said(record).get("edits"))
        barred_by_id = any(
            barred.has_turn(session, str(one), is_shared=shared) for one in ids if one for shared in (False, True)
        )
        return barred_by_id or barred.is_before(_time(record), None, session)


def _held(store: GatewayErasure, barred: Barred, match: Pattern | None) -> list[Held]:
    """What is forgotten of it: by its words, its time, or with its whole conversation."""
    return [
        one for one in store.held()
        if (match and excerpt_of(match, one.texts) is not None) or _is_barred(one, barred)
    ]  # fmt: skip


def _is_barred(one: Held, barred: Barred) -> bool:
    session = f"{_TOOL}{one.session}"
    if barred.before:  # it bars whole sessions, too, and what came into them later stays
        return barred.is_before(one.at, None, session)
    return barred.has_session(session)


def _names(store: GatewayErasure, match: Pattern | None) -> list[str]:
    return [name for name in store.names() if match and match.search(name)]


def _said(record: dict[str, Any]) -> dict[str, Any]:
    said = record.get("message")
    return said if isinstance(said, dict) else {}


def _places(record: dict[str, Any]) -> Sequence[str]:
    """The names under which files of a message lie in the folder of its conversation."""
    files = [one for one in _said(record).get("attachments") or () if isinstance(one, dict)]
    return [Path(str(one["path"])).name for one in files if one.get("path")]


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
