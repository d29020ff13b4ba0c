"""Exports for people: one readable page, or a zip of Markdown files."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import BinaryIO

from nacre.platform.days import shown_day
from nacre.text.passages import one_line
from nacre.values.codec import stamp
from nacre.values.memory import Memory
from nacre.values.session import Flag, SessionKind, StoredSession, Trust, Turn
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
            page = "\n".join(session_lines(stored, turns, level=1))
            archive.writestr(f"sessions/{slugify(stored.session.tool)}/{name}.md", page.encode("utf-8", "replace"))
    return file.tell()


def _memories(now: datetime, memories: Sequence[Memory]) -> Iterator[str]:
    yield f"# Memories, {shown_day(now)}"
    subjects = {memory.id: one_line(memory.subject) for memory in memories}
    places = sorted({memory.project or "" for memory in memories})
    for project in places:
        yield from ("", f"## {project or 'Everywhere'}")
        own = [memory for memory in memories if (memory.project or "") == project]
        for memory in sorted(own, key=lambda one: (one.kind.value, bool(one.retired), -one.updated.timestamp())):
            yield from _memory(memory, subjects)


def _memory(memory: Memory, subjects: Mapping[str, str]) -> Iterator[str]:
    state = "retired" if memory.retired else "superseded" if memory.superseded_by else ""
    facts = [memory.kind.value, f"importance {memory.importance}", shown_day(memory.created), state]
    facts += [memory.trust.value if memory.trust.value == "untrusted" else "", *(f"#{tag}" for tag in memory.tags)]
    yield from ("", f"### {one_line(memory.subject)}", "", f"*{' · '.join(fact for fact in facts if fact)}*", "")
    yield from _below(memory.content, 3)
    for link in memory.links:
        to = f"[[{subjects[link.to]}]]" if link.to in subjects else link.to
        yield f"\n{link.rel.replace('_', ' ')} {to}{f' ({link.reason})' if link.reason else ''}"
    yield f"\n<!-- {memory.id} -->"


def _sessions(talk: Talk) -> Iterator[str]:
    for number, (stored, turns) in enumerate(talk):
        if number == 0:
            yield from ("", "## Sessions")
        yield ""
        yield from session_lines(stored, turns, level=3)


def session_lines(
    stored: StoredSession, turns: Sequence[Turn], *, level: int = 1, title: str | None = None
) -> Iterator[str]:
    """One session as Markdown; what draws on text from outside is a quotation and says so."""
    session = stored.session
    yield f"{'#' * level} {one_line(session.title or title or session.native_id)}"
    kind = "" if session.kind is SessionKind.MAIN else session.kind.value
    when = stamp(session.started) if session.started else ""
    facts = [session.tool, kind, stored.project or "", session.branch or "", session.model or "", when, session.id]
    yield from ("", f"*{' · '.join(one_line(fact) for fact in facts if fact)}*")
    for turn in turns:
        yield from ("", f"**{one_line(turn.author or turn.speaker.value)}**{_told(turn)}", "")
        quote = "> " if turn.trust is Trust.UNTRUSTED else ""
        yield from (f"{quote}{line}".rstrip() for line in _below(turn.text, level))
        yield from ([""] if turn.text and turn.tool_calls else [])
        for call in turn.tool_calls:
            yield f"- `{one_line(call.name)}` {one_line(call.input)}{f' → {call.outcome}' if call.outcome else ''}"


def _told(turn: Turn) -> str:
    """When a turn was said, and what it is besides plain talk."""
    at = f" · {stamp(turn.time)}" if turn.time else ""
    notes = [flag.name.lower() for flag in turn.flags if flag.name and flag is not Flag.COMMAND]
    notes += ["untrusted, draws on text from outside"] if turn.trust is Trust.UNTRUSTED else []
    return f"{at}{''.join(f' · *{note}*' for note in notes)}"


def _below(text: str, level: int) -> Iterator[str]:
    """A text whose headings stand below a level; what is in a code block stays as it is."""
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        match = None if fenced else _HEADING.match(line)
        yield "#" * min(6, len(match.group(1)) + level) + line[match.end() :] if match else line
