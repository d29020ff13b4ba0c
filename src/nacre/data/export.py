"""Exports: ClawXMemory snapshots, zips of Markdown files, and JSON lines."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from nacre.base.bounds import bounds
from nacre.base.files import named_file
from nacre.base.frozen import frozen
from nacre.base.request import Request
from nacre.base.text import one_line, shorten, to_bytes, to_text
from nacre.home.home import Home, territory
from nacre.home.location import clean_values, redact
from nacre.memories.edit import catch_up
from nacre.memories.usage import fold_usage
from nacre.operations import operation
from nacre.values import reports
from nacre.values.codec import plain, stamp, with_texts
from nacre.values.fields import OnlyProject
from nacre.values.memory import Kind, Memory, SessionFilter
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
_NOTES = "Notes"
_HEADINGS = {Kind.PREFERENCE: "Rule", Kind.DECISION: "Decisions", Kind.TODO: "Next Steps"}


def write_snapshot(now: datetime, memories: Sequence[Memory], file: BinaryIO) -> int:
    """Write memories in ClawXMemory's JSON format and return the size in bytes.

    A project's preferences become feedback, and its other memories become project files. Memories
    without a project go to the user profile, and retired ones are marked as deprecated.
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
    """Return the id that ClawXMemory uses for a project: ten hexadecimal digits from its slug."""
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
    """Return the path and content of a ClawXMemory file for a memory in a project or the inbox."""
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
    heading = f"## {_HEADINGS.get(memory.kind, _NOTES)}\n\n"
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
    for section in (*_SECTIONS.values(), _NOTES):
        in_section = [
            memory for memory in memories if _SECTIONS.get(memory.kind, _NOTES) == section
        ]
        if in_section:
            items = (f"- {one_line(memory.content)}" for memory in in_section)
            lines += [f"## {section}", "", *items, ""]
    return "\n".join(lines)


# -- Sessions as Markdown --------------------------------------------------------------------------


_HEADING = re.compile(r"^(#{1,6})(?= )")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")


def session_lines(
    stored: StoredSession, turns: Sequence[Turn], *, title: str | None = None
) -> Iterator[str]:
    """Yield the lines of a session in Markdown. Untrusted turns become quotes."""
    session = stored.session
    yield f"# {one_line(session.title or title or session.native_id)}"
    kind = "" if session.kind is SessionKind.MAIN else session.kind.value
    when = stamp(session.started) if session.started else ""
    facts = [session.tool, kind, stored.project, session.branch, session.model, when, session.id]
    yield from ("", f"*{' · '.join(one_line(fact) for fact in facts if fact)}*")
    for turn in turns:
        yield from ("", f"**{one_line(turn.author or turn.speaker.value)}**{_turn_notes(turn)}", "")
        quote = "> " if turn.trust is Trust.UNTRUSTED else ""
        yield from (f"{quote}{line}".rstrip() for line in _below_title(turn.text))
        yield from ([""] if turn.text and turn.tool_calls else [])
        for call in turn.tool_calls:
            yield f"- `{one_line(call.name)}` {one_line(call.input)}{f' → {call.outcome}' if call.outcome else ''}"


def _turn_notes(turn: Turn) -> str:
    at = f" · {stamp(turn.time)}" if turn.time else ""
    notes = [flag.name.lower() for flag in turn.flags if flag.name and flag is not Flag.COMMAND]
    notes += ["untrusted, based on text from outside"] if turn.trust is Trust.UNTRUSTED else []
    return f"{at}{''.join(f' · *{note}*' for note in notes)}"


def _below_title(text: str) -> Iterator[str]:
    is_code = False
    for line in text.splitlines():
        is_code ^= bool(_FENCE.match(line))
        match = None if is_code else _HEADING.match(line)
        yield "#" * min(6, len(match.group(1)) + 1) + line[match.end() :] if match else line


# -- Requests --------------------------------------------------------------------------------------


Overwrite = Annotated[bool, bounds("Overwrite the file.")]


class ExportOptions(Request):
    """The format of an export, and which content it includes."""

    form: Annotated[
        str,
        bounds(
            "The format of the file: jsonl, zip or clawxmemory.",
            pattern="^(jsonl|zip|clawxmemory)$",
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


@frozen
class ExportReport:
    """The result of an export.

    ``left_out`` counts retired memories that were not requested. ``withheld`` counts unconfirmed
    memories, which other programs would trust.
    """

    path: str
    form: str
    counts: dict[str, int]
    left_out: int
    bytes: int
    withheld: int = 0


@frozen
class Parcel:
    """The data to export, with secrets removed."""

    home: Home
    options: ExportOptions
    memories: tuple[tuple[str, Memory], ...]
    pages: tuple[tuple[str, str], ...] = ()
    entries: tuple[files.LedgerEntry, ...] = ()
    usage: Mapping[str, Usage] = field(default_factory=dict)
    sessions: tuple[StoredSession, ...] = ()
    left_out: int = 0
    withheld: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The number of exported records of each type."""
        return {
            reports.MEMORY: len(self.memories),
            reports.PAGE: len(self.pages),
            reports.LEDGER_ENTRY: len(self.entries),
            reports.SESSION: len(self.sessions),
            reports.TURN: sum(stored.turns for stored in self.sessions),
        }


def export(
    home: Home,
    target: Path | BinaryIO,
    options: ExportOptions | None = None,
    *,
    overwrite: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> ExportReport:
    """Export the home to a file or a stream.

    Raises ConflictError if the file exists and ``overwrite`` is False.
    """
    options = options or ExportOptions()
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
        size = _FORMS[options.form](parcel, file, on_progress)
    return ExportReport(path, options.form, parcel.counts, parcel.left_out, size, parcel.withheld)


@operation("export", takes_long=True)
def export_file(
    home: Home, request: ExportRequest, on_progress: OnProgress = lambda _: None
) -> ExportReport:
    """Write all data to one readable file. Raises ConflictError if it exists."""
    return export(
        home, request.target, request, overwrite=request.overwrite, on_progress=on_progress
    )


def _pack(home: Home, options: ExportOptions) -> Parcel:
    is_snapshot = options.form == "clawxmemory"
    in_project = [
        memory
        for memory in home.memories.everything()
        if options.project is None or memory.project == options.project
    ]
    selected = [memory for memory in in_project if options.include_retired or not memory.retired]
    # The importers of snapshots trust all memories.
    exported = [memory for memory in selected if memory.is_vouched or not is_snapshot]
    ids = {memory.id for memory in exported}
    paths = {file.memory: file.path for file in home.files.indexed().values()}
    parcel = Parcel(
        home,
        options,
        tuple((paths.get(memory.id, ""), redact(home.redactor, memory)) for memory in exported),
        left_out=len(in_project) - len(selected),
        withheld=len(selected) - len(exported),
    )
    if is_snapshot:
        return parcel
    sessions = []
    if options.sessions:
        sessions = home.sessions.newest(
            SessionFilter(project=options.project, subagents=True), limit=-1
        )
    return replace(
        parcel,
        pages=tuple(_pages(home, options)),
        entries=tuple(
            replace(entry, details=clean_values(home.redactor, entry.details))
            for entry in files.read(home.ledger())
            if options.project is None or entry.details.get("memory") in ids
        ),
        usage=home.usage.of(list(ids)),
        sessions=tuple(reversed(sessions)),
    )


def _pages(home: Home, options: ExportOptions) -> Iterator[tuple[str, str]]:
    clean, paths = home.redactor.clean, []
    if options.project is None:
        paths = [*sorted(OWN_PAGES), "profile.md"]
    slugs = sorted(home.files.slugs())
    paths += [f"projects/{slug}/project.md" for slug in slugs if options.project in (None, slug)]
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            yield clean(path), clean(to_text(home.vault.read(path)))


def _write_lines(parcel: Parcel, file: BinaryIO, notify: OnProgress) -> int:
    digest, size = hashlib.sha256(), 0
    clean, counts = parcel.home.redactor.clean, parcel.counts

    def put(kind: str, values: dict[str, Any]) -> None:
        nonlocal size
        line = to_bytes(json.dumps({"type": kind, **values}, ensure_ascii=False)) + b"\n"
        file.write(line)
        digest.update(line)
        size += len(line)

    header = {
        "format": reports.FORMAT,
        "version": reports.VERSION,
        "exported": stamp(parcel.home.now()),
        "project": parcel.options.project,
        "counts": counts,
    }
    put(reports.HEADER, header)
    for path, document in parcel.pages:
        put(reports.PAGE, {"path": path, "document": document})
    for done, (path, memory) in enumerate(parcel.memories, 1):
        values = {
            "path": clean(path),
            "front": {**to_front(memory), **memory.extra},
            "content": memory.content,
            "usage": plain(parcel.usage.get(memory.id)),
        }
        put(reports.MEMORY, values)
        notify(Progress("exporting", done, len(parcel.memories), "memories"))
    for entry in parcel.entries:
        put(reports.LEDGER_ENTRY, {"entry": json.loads(entry.line())})
    for stored, turns in _conversations(parcel, notify):
        session = {
            "session": plain(stored.session),
            "project": stored.project,
            "file": stored.file,
        }
        put(reports.SESSION, clean_values(parcel.home.redactor, session))
        for turn in turns:
            put(reports.TURN, {"turn": plain(turn)})
    put(reports.TRAILER, {"lines": 1 + sum(counts.values()), "sha256": digest.hexdigest()})
    return size


def _write_archive(parcel: Parcel, file: BinaryIO, notify: OnProgress) -> int:
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
        for stored, turns in _conversations(parcel, notify):
            name = slugify(stored.session.native_id) or str(stored.row)
            page = "\n".join(session_lines(stored, turns))
            path = f"sessions/{slugify(stored.session.tool)}/{name}.md"
            archive.writestr(path, to_bytes(page))
    return file.tell()


def _conversations(
    parcel: Parcel, notify: OnProgress
) -> Iterator[tuple[StoredSession, list[Turn]]]:
    home = parcel.home
    for done, stored in enumerate(parcel.sessions, 1):
        turns = home.sessions.all_turns(stored.row)
        yield stored, [with_texts(turn, home.redactor.clean, ("id",)) for turn in turns]
        notify(Progress("exporting", done, len(parcel.sessions), "sessions"))


_FORMS: dict[str, Callable[[Parcel, BinaryIO, OnProgress], int]] = {
    "jsonl": _write_lines,
    "zip": _write_archive,
    "clawxmemory": lambda parcel, file, _: write_snapshot(
        parcel.home.now(), [memory for _, memory in parcel.memories], file
    ),
}
