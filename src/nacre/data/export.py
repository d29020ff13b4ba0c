"""Exports: ClawXMemory snapshots, Markdown pages, zips of Markdown files, and JSON lines."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import to_ms
from nacre.base.named_files import named_file
from nacre.base.request import Request
from nacre.base.text import one_line, shorten, to_bytes, to_text
from nacre.base.times import shown_day
from nacre.home.home import Home, territory
from nacre.home.location import clean_values, redact
from nacre.memories.edit import catch_up
from nacre.memories.store import fold_usage, today
from nacre.sessions.search import clean_turn
from nacre.store.schema import kept_calls
from nacre.values import reports
from nacre.values.codec import stamp
from nacre.values.fields import OnlyProject
from nacre.values.memory import Kind, Memory, Retirement, SessionFilter
from nacre.values.reports import OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.session import Flag, SessionKind, StoredSession, Trust, Turn
from nacre.vault import files
from nacre.vault.documents import dump, to_front
from nacre.vault.files import LEDGER, OWN_PAGES, slugify

FORMAT = "clawxmemory-memory-snapshot.v3"
_TEMPORARY = "_tmp"
_SUBJECT_CHARACTERS, _DESCRIPTION_CHARACTERS = 80, 180
_SECTIONS = {Kind.PREFERENCE: "Preferences", Kind.RELATIONSHIP: "Relationships"}
_REST = "Notes"
_HEADINGS = {Kind.PREFERENCE: "Rule", Kind.DECISION: "Decisions", Kind.TODO: "Next Steps"}


def write_snapshot(now: datetime, memories: Sequence[Memory], file: BinaryIO) -> int:
    """Write memories in ClawXMemory's JSON format and return the size in bytes.

    A project's preferences are written as feedback. The project's other memories are written as
    project files. Memories in the inbox are staged. Memories without a project are listed in the
    user profile. Retired memories are marked as deprecated.
    """
    files = [{"relativePath": path, "content": content} for path, content in _files(now, memories)]
    bundle = {"formatVersion": FORMAT, "exportedAt": stamp(now), "files": files}
    data = to_bytes(json.dumps(bundle, ensure_ascii=False, indent=2)) + b"\n"
    file.write(data)
    return len(data)


def _files(now: datetime, memories: Sequence[Memory]) -> Iterator[tuple[str, str]]:
    for project in sorted({memory.project for memory in memories if memory.project}):
        yield f"projects/{project_id_of(project)}/project.meta.md", _project_page(now, project)
    yield from (entry_file(memory) for memory in memories if memory.project or memory.inbox)
    profile = [
        memory for memory in memories if memory.is_active and not (memory.project or memory.inbox)
    ]
    if profile:
        yield "global/User/user-profile.md", _profile(now, profile)


def project_id_of(project: str) -> str:
    """Return a project's ClawXMemory id: ten hexadecimal digits derived from the slug."""
    return f"project_{hashlib.sha1(project.encode(), usedforsecurity=False).hexdigest()[:10]}"


def _project_page(now: datetime, project: str) -> str:
    front = {
        "project_id": project_id_of(project),
        "project_name": project,
        "description": "",
        "aliases": "[]",
        "status": "active",
        "created_at": stamp(now),
        "updated_at": stamp(now),
    }
    return f"---\n{dump(front)}---\n"


def entry_file(memory: Memory) -> tuple[str, str]:
    """Return the path and text of a memory in a project or the inbox."""
    is_rule = memory.kind is Kind.PREFERENCE
    project = project_id_of(memory.project) if memory.project else _TEMPORARY
    front = {
        "name": shorten(one_line(memory.subject), _SUBJECT_CHARACTERS),
        "description": shorten(one_line(memory.content), _DESCRIPTION_CHARACTERS),
        "type": "feedback" if is_rule else "project",
        "scope": "project",
        "project_id": project,
        "updated_at": stamp(memory.updated),
        "captured_at": stamp(memory.created),
        "source_session_key": memory.source.session or "",
        "deprecated": not memory.is_active,
        "dream_attempts": 0,
    }
    name = f"{slugify(memory.subject)[:60] or memory.kind.value}-{memory.id[-8:]}"
    path = f"projects/{project}/{'Feedback' if is_rule else 'Project'}/{name}.md"
    heading = f"## {_HEADINGS.get(memory.kind, _REST)}\n\n"
    heading = "" if memory.content.startswith("## ") else heading
    return path, f"---\n{dump(front)}---\n{heading}{memory.content}\n"


def _profile(now: datetime, memories: Sequence[Memory]) -> str:
    front = {
        "name": "user-profile",
        "description": "",
        "type": "user",
        "scope": "global",
        "updated_at": stamp(now),
        "captured_at": stamp(now),
        "deprecated": False,
    }
    lines = [f"---\n{dump(front)}---"]
    for section in (*_SECTIONS.values(), _REST):
        in_section = [memory for memory in memories if _SECTIONS.get(memory.kind, _REST) == section]
        if in_section:
            items = (f"- {one_line(memory.content)}" for memory in in_section)
            lines += [f"## {section}", "", *items, ""]
    return "\n".join(lines)


# -- Markdown exports ------------------------------------------------------------------------------


Talk = Iterable[tuple[StoredSession, list[Turn]]]

_HEADING = re.compile(r"^(#{1,6})(?= )")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")


def _memories(now: datetime, memories: Sequence[Memory]) -> Iterator[str]:
    yield f"# Memories, {shown_day(now)}"
    subjects = {memory.id: one_line(memory.subject) for memory in memories}
    by_kind = sorted(
        memories,
        key=lambda item: (item.kind.value, bool(item.retired), -item.updated.timestamp()),
    )
    for project in sorted({memory.project or "" for memory in memories}):
        yield from ("", f"## {project or 'Everywhere'}")
        for memory in by_kind:
            if (memory.project or "") == project:
                yield from _memory(memory, subjects)


def _memory(memory: Memory, subjects: Mapping[str, str]) -> Iterator[str]:
    state = "retired" if memory.retired else "superseded" if memory.superseded_by else ""
    facts = [memory.kind.value, f"importance {memory.importance}", shown_day(memory.created), state]
    facts += [
        memory.trust.value if memory.trust.value == "untrusted" else "",
        *(f"#{tag}" for tag in memory.tags),
    ]
    yield from (
        "",
        f"### {one_line(memory.subject)}",
        "",
        f"*{' · '.join(fact for fact in facts if fact)}*",
        "",
    )
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
    """Yield a session as Markdown. Turns with external text are quoted and marked."""
    session = stored.session
    yield f"{'#' * level} {one_line(session.title or title or session.native_id)}"
    kind = "" if session.kind is SessionKind.MAIN else session.kind.value
    when = stamp(session.started) if session.started else ""
    facts = [session.tool, kind, stored.project, session.branch, session.model, when, session.id]
    yield from ("", f"*{' · '.join(one_line(fact) for fact in facts if fact)}*")
    for turn in turns:
        yield from ("", f"**{one_line(turn.author or turn.speaker.value)}**{_turn_notes(turn)}", "")
        quote = "> " if turn.trust is Trust.UNTRUSTED else ""
        yield from (f"{quote}{line}".rstrip() for line in _below(turn.text, level))
        yield from ([""] if turn.text and turn.tool_calls else [])
        for call in turn.tool_calls:
            yield f"- `{one_line(call.name)}` {one_line(call.input)}{f' → {call.outcome}' if call.outcome else ''}"


def _turn_notes(turn: Turn) -> str:
    at = f" · {stamp(turn.time)}" if turn.time else ""
    notes = [flag.name.lower() for flag in turn.flags if flag.name and flag is not Flag.COMMAND]
    notes += ["untrusted, based on text from outside"] if turn.trust is Trust.UNTRUSTED else []
    return f"{at}{''.join(f' · *{note}*' for note in notes)}"


def _below(text: str, level: int) -> Iterator[str]:
    """Yield Markdown lines with headings moved below a level. Code blocks stay unchanged."""
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        match = None if fenced else _HEADING.match(line)
        yield "#" * min(6, len(match.group(1)) + level) + line[match.end() :] if match else line


# -- Requests --------------------------------------------------------------------------------------


Overwrite = Annotated[bool, bounds("Overwrite the file.")]


class ExportOptions(Request):
    """The format of an export, and which content it includes."""

    form: Annotated[
        str,
        bounds(
            "The format of the file: jsonl, markdown, zip or clawxmemory.",
            pattern="^(jsonl|markdown|zip|clawxmemory)$",
        ),
    ] = "jsonl"
    sessions: Annotated[bool, bounds("Include all sessions and their turns.")] = False
    project: OnlyProject = None
    include_retired: Annotated[bool, bounds("Include retired memories.")] = False


class ExportRequest(ExportOptions):
    """Write everything into one file that others can read."""

    target: Annotated[Path, bounds("The file to write.")]
    overwrite: Overwrite = False


class ImportOptions(Request):
    """Import memories from another system or an account's export."""

    path: Annotated[Path, bounds("A file or folder.")]
    source: Annotated[
        str, bounds("The program that wrote it; auto detects it from the content.")
    ] = "auto"
    trust: Annotated[bool, bounds("Trust the data like your own statements.")] = False
    project: Annotated[str | None, bounds("Import everything into this project.")] = None
    vectors: Annotated[bool, bounds("If false, the next ingest computes the vectors.")] = True


# -- Export ----------------------------------------------------------------------------------------
# All output is redacted again, because the rules might have improved since the data was stored.


_ALL_SESSIONS = 1_000_000_000


@frozen
class ExportReport:
    """The contents of an export.

    ``left_out``: number of retired memories that were not requested. ``withheld``: number of unconfirmed memories that
    are left out, because an importer of this format would trust them. ``bytes``: size of the file.
    """

    path: str
    form: str
    counts: dict[str, int]
    left_out: int
    bytes: int
    withheld: int = 0


@frozen
class Parcel:
    """The redacted contents of an export. Sessions are read one at a time."""

    home: Home
    options: ExportOptions
    memories: tuple[tuple[str, Memory], ...]
    pages: tuple[tuple[str, str], ...]
    entries: tuple[files.LedgerEntry, ...]
    usage: dict[str, Usage]
    sessions: tuple[StoredSession, ...]
    left_out: int
    withheld: int

    def turns(self, stored: StoredSession) -> list[Turn]:
        """Return the turns of a session."""
        return [
            clean_turn(turn, self.home.redactor.clean)
            for turn in self.home.sessions.whole(stored.row)
        ]


def export(
    home: Home,
    target: Path | BinaryIO,
    options: ExportOptions | None = None,
    *,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> ExportReport:
    """Export a consistent snapshot of the home to a file or a stream.

    Raises ConflictError if the file exists and ``overwrite`` is False.
    """
    options = options or ExportOptions()
    notify = on_progress or (lambda _: None)
    catch_up(home)
    fold_usage(home)
    with contextlib.ExitStack() as stack:
        path, file = "-", target
        if isinstance(file, Path):
            file = file.expanduser().absolute()
            written = named_file(file, territory(home.settings), overwrite=overwrite)
            path, file = str(file), stack.enter_context(written)
        stack.enter_context(home.database.reading())
        parcel = _pack(home, options)
        counts, size = _FORMS[options.form](parcel, file, notify)
    return ExportReport(path, options.form, dict(counts), parcel.left_out, size, parcel.withheld)


def _pack(home: Home, options: ExportOptions) -> Parcel:
    in_project = [
        memory
        for memory in home.memories.everything()
        if options.project is None or memory.project == options.project
    ]
    selected = [memory for memory in in_project if options.include_retired or not memory.retired]
    cleaned = [
        _clean(home, memory)
        for memory in selected
        if memory.is_vouched or options.form not in _WITHOUT_TRUST
    ]
    ids = {memory.id for memory in cleaned}
    paths = {file.memory: file.path for file in home.files.seen().values()}
    sessions: list[StoredSession] = []
    if options.sessions:
        sessions = home.sessions.newest(
            SessionFilter(project=options.project, subagents=True), limit=-1
        )
    return Parcel(
        home,
        options,
        tuple((paths.get(memory.id, ""), memory) for memory in cleaned),
        tuple(_pages(home, options)),
        tuple(
            replace(entry, details=clean_values(home.redactor, entry.details))
            for entry in files.read(home.ledger())
            if options.project is None or entry.details.get("memory") in ids
        ),
        home.usage.of(list(ids)),
        tuple(reversed(sessions)),
        len(in_project) - len(selected),
        len(selected) - len(cleaned),
    )


def _clean(home: Home, memory: Memory) -> Memory:
    clean = home.redactor.clean
    retired = memory.retired
    return replace(
        redact(home.redactor, memory),
        source=replace(
            memory.source, file=clean(memory.source.file) if memory.source.file else None
        ),
        links=tuple(
            replace(link, reason=clean(link.reason) if link.reason else None)
            for link in memory.links
        ),
        retired=retired
        and Retirement(retired.at, clean(retired.reason) if retired.reason else None),
    )


def _pages(home: Home, options: ExportOptions) -> Iterator[tuple[str, str]]:
    clean, paths = home.redactor.clean, []
    if options.project is None:
        paths = [*sorted(OWN_PAGES), "profile.md"]
    slugs = (project.slug for project in home.files.projects())
    paths += [f"projects/{slug}/project.md" for slug in slugs if options.project in (None, slug)]
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            yield clean(path), clean(to_text(home.vault.read(path)))


class _Lines:
    """A writer of JSON lines with a checksum at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.size = 0

    def put(self, kind: str, values: dict[str, Any]) -> None:
        text = json.dumps({"type": kind, **values}, ensure_ascii=False)
        line = to_bytes(text) + b"\n"
        self.file.write(line)
        self.digest.update(line)
        self.size += len(line)
        self.counts[kind] += 1

    def close(self) -> None:
        digest, lines = self.digest.hexdigest(), sum(self.counts.values())
        counts = {name: number for name, number in self.counts.items() if name != reports.HEADER}
        self.put(reports.TRAILER, {"lines": lines, "sha256": digest, "counts": counts})


def _write_lines(parcel: Parcel, file: BinaryIO, notify: OnProgress) -> tuple[dict[str, int], int]:
    lines, clean = _Lines(file), parcel.home.redactor.clean
    counts = {
        reports.PAGE: len(parcel.pages),
        reports.MEMORY: len(parcel.memories),
        reports.LEDGER_ENTRY: len(parcel.entries),
        reports.SESSION: len(parcel.sessions),
    }
    header = {
        "format": reports.FORMAT,
        "version": reports.VERSION,
        "exported": stamp(parcel.home.now()),
        "project": parcel.options.project,
        "counts": counts,
    }
    lines.put(reports.HEADER, header)
    for path, document in parcel.pages:
        lines.put(reports.PAGE, {"path": path, "document": document})
    for done, (path, memory) in enumerate(parcel.memories):
        lines.put(reports.MEMORY, memory_record(clean(path), memory, parcel.usage.get(memory.id)))
        notify(Progress("exporting", done + 1, len(parcel.memories), "memories"))
    for values in _links(parcel):
        lines.put(reports.LINK, values)
    for entry in parcel.entries:
        lines.put(reports.LEDGER_ENTRY, {"entry": json.loads(entry.line())})
    for done, stored in enumerate(parcel.sessions):
        lines.put(reports.SESSION, _session_record(parcel.home, stored))
        for turn in parcel.turns(stored):
            lines.put(reports.TURN, _turn_record(turn))
        notify(Progress("exporting", done + 1, len(parcel.sessions), "sessions"))
    lines.close()
    return {name: lines.counts[name] for name in _counted(parcel, 0, 0)}, lines.size


def memory_record(path: str, memory: Memory, usage: Usage | None) -> dict[str, Any]:
    """Return a memory's record: path, complete front matter, body and usage."""
    used = usage and {
        "recall_count": usage.recall_count,
        "last_recalled": to_ms(usage.last_recalled),
        "recall_intervals": list(usage.intervals),
        "contradictions": usage.contradictions,
        "quality": usage.quality,
        "access_count": usage.access_count,
    }
    return {
        "path": path,
        "front": {**to_front(memory), **memory.extra},
        "content": memory.content,
        "usage": used,
    }


def _links(parcel: Parcel) -> Iterator[dict[str, Any]]:
    """Yield links between similar memories and between memories that are often recalled together."""
    ids = {memory.id for _, memory in parcel.memories}
    for link in parcel.home.links.alike():
        if link.source in ids and link.target in ids:
            yield {
                "from": link.source,
                "rel": link.rel,
                "to": link.target,
                "origin": link.origin,
                "strength": link.strength,
                "reason": link.reason,
            }
    for edge in parcel.home.co_recall.strongest(today(parcel.home), _ALL_SESSIONS):
        if edge.memory in ids and edge.other in ids:
            yield {
                "from": edge.memory,
                "rel": "related_to",
                "to": edge.other,
                "origin": "co-recall",
                "strength": round(edge.weight, 4),
                "sessions": edge.sessions,
            }


def _session_record(home: Home, stored: StoredSession) -> dict[str, Any]:
    session = stored.session
    values = {
        "tool": session.tool,
        "id": session.native_id,
        "title": session.title,
        "cwd": session.cwd,
        "branch": session.branch,
        "kind": session.kind.value,
        "parent": session.parent,
        "project": stored.project,
        "started": to_ms(session.started),
        "tool_version": session.tool_version,
        "model": session.model,
        "tokens": session.tokens
        and [session.tokens.input, session.tokens.cached, session.tokens.output],
        "file": stored.file,
    }
    return {
        key: clean_values(home.redactor, value)
        for key, value in values.items()
        if value is not None
    }


def _turn_record(turn: Turn) -> dict[str, Any]:
    values = {
        "id": turn.id,
        "speaker": turn.speaker.value,
        "text": turn.text,
        "time": to_ms(turn.time),
        "tools": kept_calls(turn.tool_calls) or None,
        "flags": int(turn.flags) or None,
        "trust": turn.trust.value,
        "author": turn.author,
        "unique": turn.unique or None,
    }
    return {key: value for key, value in values.items() if value is not None}


def _write_markdown(
    parcel: Parcel, file: BinaryIO, notify: OnProgress
) -> tuple[dict[str, int], int]:
    """Write a page with the memories, grouped by project and kind, followed by sessions."""
    memories, size = [memory for _, memory in parcel.memories], 0
    for line in (*_memories(parcel.home.now(), memories), *_sessions(_talk(parcel, notify))):
        data = to_bytes(f"{line}\n")
        file.write(data)
        size += len(data)
    return _counted(parcel, 0, 0), size


def _write_archive(
    parcel: Parcel, file: BinaryIO, notify: OnProgress
) -> tuple[dict[str, int], int]:
    documents, clean = [*parcel.pages], parcel.home.redactor.clean
    for path, _ in parcel.memories:
        with contextlib.suppress(FileNotFoundError):
            text = to_text(parcel.home.vault.read(path)) if path else ""
            if text:
                documents.append((clean(path), clean(text)))
    documents.append((LEDGER, "".join(f"{entry.line()}\n" for entry in parcel.entries)))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in documents:
            archive.writestr(path, to_bytes(text))
        for stored, turns in _talk(parcel, notify):
            name = slugify(stored.session.native_id) or str(stored.row)
            page = "\n".join(session_lines(stored, turns, level=1))
            path = f"sessions/{slugify(stored.session.tool)}/{name}.md"
            archive.writestr(path, to_bytes(page))
    return _counted(parcel, len(parcel.pages), len(parcel.entries)), file.tell()


def _talk(parcel: Parcel, notify: OnProgress) -> Iterator[tuple[StoredSession, list[Turn]]]:
    for done, stored in enumerate(parcel.sessions):
        yield stored, parcel.turns(stored)
        notify(Progress("exporting", done + 1, len(parcel.sessions), "sessions"))


def _counted(parcel: Parcel, pages: int, entries: int) -> dict[str, int]:
    return {
        reports.MEMORY: len(parcel.memories),
        reports.PAGE: pages,
        reports.LINK: 0,
        reports.LEDGER_ENTRY: entries,
        reports.SESSION: len(parcel.sessions),
        reports.TURN: sum(stored.turns for stored in parcel.sessions),
    }


def _write_clawxmemory(parcel: Parcel, file: BinaryIO, _: OnProgress) -> tuple[dict[str, int], int]:
    size = write_snapshot(parcel.home.now(), [memory for _, memory in parcel.memories], file)
    counts = dict.fromkeys(_counted(parcel, 0, 0), 0)
    return counts | {reports.MEMORY: len(parcel.memories)}, size


_FORMS = {
    "jsonl": _write_lines,
    "markdown": _write_markdown,
    "zip": _write_archive,
    "clawxmemory": _write_clawxmemory,
}
_WITHOUT_TRUST = ("clawxmemory",)
"""Export formats without trust levels. Importers trust all memories in such a file."""

FORMS = tuple(_FORMS)
"""Export formats. ``zip`` contains the vault's Markdown files, and ``clawxmemory`` is a ClawXMemory snapshot."""
