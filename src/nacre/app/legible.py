"""Exports for people: one readable page, or a zip of Markdown files."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import BinaryIO

from nacre.model.memory import Memory
from nacre.model.session import Turn
from nacre.storage.sessions import StoredSession
from nacre.text import one_line
from nacre.vault.document import stamp
from nacre.vault.layout import slugify

Talk = Iterable[tuple[StoredSession, list[Turn]]]

_HEADING = re.compile(r"^(#{1,6})(?= )")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")


def write_page(now: datetime, memories: Sequence[tuple[str, Memory]], talk: Talk, file: BinaryIO) -> int:
    """One Markdown page: memories by project and kind, then sessions. Returns its size in bytes."""
    size = 0
    for line in (*_memories(now, [memory for _, memory in memories]), *_sessions(talk)):
        data = f"{line}\n".encode("utf-8", "replace")
        file.write(data)
        size += len(data)
    return size


def write_zip(documents: Iterable[tuple[str, str]], talk: Talk, file: BinaryIO) -> int:
    """The vault's files as a zip, sessions as pages below ``sessions/``. Returns its size in bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in documents:
            archive.writestr(path, text.encode("utf-8", "replace"))
        for stored, turns in talk:
            name = slugify(stored.session.native_id) or str(stored.row)
            page = "\n".join(_session(stored, turns, level=1))
            archive.writestr(f"sessions/{slugify(stored.session.tool)}/{name}.md", page.encode("utf-8", "replace"))
    return file.tell()


def _memories(now: datetime, memories: Sequence[Memory]) -> Iterator[str]:
    yield f"# Memories, {now:%Y-%m-%d}"
    places = sorted({memory.project or "" for memory in memories})
    for project in places:
        yield from ("", f"## {project or 'Everywhere'}")
        own = [memory for memory in memories if (memory.project or "") == project]
        for memory in sorted(own, key=lambda one: (one.kind.value, bool(one.retired), -one.updated.timestamp())):
            yield from _memory(memory)


def _memory(memory: Memory) -> Iterator[str]:
    state = "retired" if memory.retired else "superseded" if memory.superseded_by else ""
    facts = [memory.kind.value, f"importance {memory.importance}", memory.created.strftime("%Y-%m-%d"), state]
    facts += [memory.trust.value if memory.trust.value == "untrusted" else "", *(f"#{tag}" for tag in memory.tags)]
    yield from ("", f"### {one_line(memory.subject)}", "", f"*{' · '.join(fact for fact in facts if fact)}*", "")
    yield from _below(memory.content, 3)
    for link in memory.links:
        yield f"\n{link.rel.replace('_', ' ')} {link.to}{f' ({link.reason})' if link.reason else ''}"
    yield f"\n<!-- {memory.id} -->"


def _sessions(talk: Talk) -> Iterator[str]:
    for number, (stored, turns) in enumerate(talk):
        if number == 0:
            yield from ("", "## Sessions")
        yield ""
        yield from _session(stored, turns, level=3)


def _session(stored: StoredSession, turns: Sequence[Turn], *, level: int) -> Iterator[str]:
    session = stored.session
    yield f"{'#' * level} {one_line(session.title or session.native_id)}"
    facts = [session.tool, stored.project or "", stamp(session.started) if session.started else "", session.id]
    yield from ("", f"*{' · '.join(fact for fact in facts if fact)}*")
    for turn in turns:
        at = f" · {stamp(turn.time)}" if turn.time else ""
        yield from ("", f"**{one_line(turn.author or turn.speaker.value)}**{at}", "")
        yield from _below(turn.text, level)
        for call in turn.tool_calls:
            yield f"- `{one_line(call.name)}` {one_line(call.input)}{f' → {call.outcome}' if call.outcome else ''}"


def _below(text: str, level: int) -> Iterator[str]:
    """A text whose headings stand below a level; what is in a code block stays as it is."""
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        match = None if fenced else _HEADING.match(line)
        yield "#" * min(6, len(match.group(1)) + level) + line[match.end() :] if match else line
