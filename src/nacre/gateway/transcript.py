"""Transcripts of conversations: one JSON object a line, only ever added to.

A line is written by way of the database: it is there with the message or answer that it tells of, and leaves when it is
in the file. Whatever a crash interrupts is found by ids: no line is lost, none is there twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from nacre.platform import private_files
from nacre.platform.locks import FileLock
from nacre.storage.gateway import FOLDER, TRANSCRIPTS_LOCK, GatewayStore, Line
from nacre.text.passages import harmless, one_line
from nacre.values.gateway.conversation import ChatSession
from nacre.values.gateway.message import Answer, Received

VERSION = 1
_TAIL_BYTES = 256 * 1024
_MOST_TAIL = 8 * 1024 * 1024
_NAME_CHARACTERS = 80
_NO_MARKS = str.maketrans("():", "[] ")


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a transcript, as far as an answer needs it; of the role ``failure`` where no answer was made, with
    the reason as its text."""

    id: str
    role: str
    text: str
    name: str
    at: str
    is_owner: bool
    files: tuple[tuple[str, str], ...] = ()
    """Names of files that were fetched, each with its place below the gateway's folder."""


@dataclass(frozen=True, slots=True)
class Recent:
    """The end of a conversation: the last messages, the oldest first, and the summary of what was before."""

    messages: Sequence[Said] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Those of a home."""

    home: Path
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", self.home / FOLDER / "sessions")

    def path(self, session: str) -> Path:
        """That of a session."""
        return self.folder / f"{session}.jsonl"

    def write_pending(self, store: GatewayStore, session: str) -> None:
        """Put the lines that wait into the file, and on the disk. Raises OSError."""
        pending = store.pending_lines(session)
        if not pending:
            return
        private_files.make_folder(self.folder)
        with FileLock(self.home / FOLDER / TRANSCRIPTS_LOCK):
            self._append(self.path(session), [line for _, line in pending])
        store.drop_lines(session, pending[-1][0])

    def _append(self, path: Path, lines: Sequence[Line]) -> None:
        """Those that are not there yet; what a crash left half written goes first."""
        descriptor = private_files.open_file(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        with os.fdopen(descriptor, "rb+") as file:
            tail = _tail(file, max(_TAIL_BYTES, 1 + sum(len(line.text.encode()) + 1 for line in lines)))
            torn = len(tail) - (tail.rfind(b"\n") + 1)
            if torn:
                file.truncate(file.seek(0, os.SEEK_END) - torn)
            known = {_id(line) for line in tail.splitlines()[: None if not torn else -1]}
            fresh = [line.text.encode() + b"\n" for line in lines if line.id not in known]
            file.seek(0, os.SEEK_END)
            file.write(b"".join(fresh))
            file.flush()
            os.fsync(file.fileno())

    def recent(self, session: str, limit: int, *, failures: bool = False) -> Recent:
        """The last messages, at most so many, back to the last compaction; also answers that failed, where wanted."""
        messages: list[Said] = []
        summary, kept_from = "", ""
        for record in self._backwards(session):
            if record.get("type") == "compaction":
                if kept_from or summary:
                    break
                summary, kept_from = str(record.get("summary") or ""), str(record.get("keptFrom") or "")
                if not kept_from:
                    break
            elif record.get("type") == "message" and len(messages) < limit:
                messages.append(_said(record))
                if record.get("id") == kept_from:
                    break
            elif failures and record.get("type") == "failure" and len(messages) < limit:
                messages.append(_failed(record))
        messages.reverse()
        return Recent(messages, summary)

    def _backwards(self, session: str) -> Iterator[Mapping[str, Any]]:
        """The records from the end on, as far as a bounded part of the file holds them."""
        try:
            descriptor = private_files.open_file(self.path(session), os.O_RDONLY)
        except OSError:
            return
        with os.fdopen(descriptor, "rb") as file:
            tail = _tail(file, _MOST_TAIL)
        for line in reversed(tail.splitlines()):
            try:
                record = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def told_by(name: str, text: str, *, is_owner: bool, when: str = "") -> str:
    """Somebody's words in a prompt. Whoever chooses a name, and whatever they write, it passes neither for the owner's
    nor for a line of another's: names are marked, and further lines moved in."""
    return said_line(f"{shown_name(name)} ({'the owner' if is_owner else 'not the owner'})", text, when)


def said_line(who: str, text: str, when: str = "") -> str:
    """Words with who said them, and when."""
    words = "\n  ".join(harmless(text).splitlines())
    return f"{who}{f', {when}' * bool(when)}: {words}"


def shown_name(name: str) -> str:
    """A name that anybody may have chosen, as one word that ends nothing."""
    return one_line(harmless(name)).translate(_NO_MARKS)[:_NAME_CHARACTERS] or "somebody"


def bounded(text: str, characters: int) -> str:
    """The beginning of a text, with its lines."""
    return text if len(text) <= characters else f"{text[: characters - 1].rstrip()}…"


def session_line(session: ChatSession, previous: str | None) -> Line:
    """The first line of a session's transcript."""
    record = {
        "type": "session", "version": VERSION, "id": session.id, "timestamp": _time(session.created),
        "key": session.key, "channel": session.chat.channel, "account": session.chat.account or None,
        "chatType": session.chat.kind.value, "previous": previous,
    }  # fmt: skip
    return _line(session.id, record)


def message_line(one: str, received: Received, text: str, files: Sequence[Mapping[str, Any]] = ()) -> Line:
    """The line of a message that was received."""
    message = received.message
    said = {
        "role": "user", "content": text, "channel": message.chat.channel,
        "from": f"{message.chat.channel}:{message.sender.id}", "name": message.sender.name or None,
        "owner": received.is_owner or None, "attachments": list(files) or None,
    }  # fmt: skip
    return _line(one, {"type": "message", "id": one, "timestamp": _time(received.received), "message": _full(said)})


def edit_line(one: str, received: Received, edits: str) -> Line:
    """The line of a message whose text replaces that of another line."""
    message = received.message
    said = {
        "role": "user", "content": message.text, "channel": message.chat.channel,
        "from": f"{message.chat.channel}:{message.sender.id}", "name": message.sender.name or None,
        "owner": received.is_owner or None, "edits": edits,
    }  # fmt: skip
    return _line(one, {"type": "message", "id": one, "timestamp": _time(received.received), "message": _full(said)})


def answer_line(one: str, channel: str, answer: Answer, at: datetime) -> Line:
    """The line of an answer."""
    usage = {"input": answer.input_tokens, "output": answer.output_tokens}
    said = {
        "role": "assistant", "content": answer.text, "channel": channel, "model": answer.model or None,
        "usage": usage if any(usage.values()) else None, "cost": answer.cost or None,
    }  # fmt: skip
    return _line(one, {"type": "message", "id": one, "timestamp": _time(at), "message": _full(said)})


def failure_line(one: str, reason: str, at: datetime) -> Line:
    """The line of an answer that failed."""
    return _line(one, {"type": "failure", "id": one, "timestamp": _time(at), "reason": reason})


def compaction_line(one: str, summary: str, removed: int, kept_from: str, by: str, at: datetime) -> Line:
    """The line that sums up what was said before the message ``kept_from``."""
    record = {
        "type": "compaction", "id": one, "timestamp": _time(at), "summary": summary, "removedCount": removed,
        "keptFrom": kept_from or None, "by": by,
    }  # fmt: skip
    return _line(one, record)


def _line(one: str, record: Mapping[str, Any]) -> Line:
    return Line(one, msgspec.json.encode(_full(record)).decode())


def _full(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value is not None}


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _tail(file: Any, most: int) -> bytes:
    """The end of a file, from the beginning of a line on."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - most))
    data: bytes = file.read(most)
    return data if size <= most else data[data.find(b"\n") + 1 :]


def _id(line: bytes) -> str:
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return str(record.get("id")) if isinstance(record, dict) else ""


def _failed(record: Mapping[str, Any]) -> Said:
    reason = str(record.get("reason") or "")
    return Said(str(record.get("id") or ""), "failure", reason, "", str(record.get("timestamp") or ""), False)


def file_note(name: str, media_type: str) -> str:
    """What stands for a file that came with a message."""
    return f"[file: {', '.join(part for part in (one_line(name), one_line(media_type)) if part)}]"


def _said(record: Mapping[str, Any]) -> Said:
    message = record.get("message")
    said = message if isinstance(message, dict) else {}
    files = [one for one in said.get("attachments") or () if isinstance(one, dict)]
    notes = [file_note(str(one.get("name")), str(one.get("mediaType") or "")) for one in files]
    text = "\n".join(filter(None, [str(said.get("content") or ""), *notes]))
    fetched = tuple((str(one.get("name")), str(one["path"])) for one in files if one.get("path"))
    return Said(
        str(record.get("id") or ""), str(said.get("role") or ""), text,
        str(said.get("name") or said.get("from") or ""), str(record.get("timestamp") or ""), said.get("owner") is True,
        fetched,
    )  # fmt: skip
