"""Leaving: everything that is remembered in one file that others can read.

Whatever goes out passes through redaction once more: the rules may have learned since it was stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from nacre.home.home import Home
from nacre.home.redaction import clean_values, redacted
from nacre.home.territory import territory
from nacre.memories.scan import catch_up
from nacre.memories.usage import fold_usage, today
from nacre.platform.ids import to_ms
from nacre.platform.named_files import named_file
from nacre.portability.clawxmemory_export import write_snapshot
from nacre.portability.readable_export import write_page, write_zip
from nacre.portability.requests import ExportOptions
from nacre.sessions.views import clean_turn
from nacre.storage.turn_rows import kept_calls
from nacre.values import portable
from nacre.values.codec import stamp
from nacre.values.filters import SessionFilter
from nacre.values.memory import Memory, Retirement
from nacre.values.reports import OnProgress, Progress
from nacre.values.review import Usage
from nacre.values.session import StoredSession, Turn
from nacre.vault import ledger
from nacre.vault.document import to_front
from nacre.vault.layout import LEDGER, OWN_PAGES

_ALL = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What went out. ``left_out`` counts retired memories that were not asked for, ``withheld`` those that nobody
    answers for, where whoever reads the file would tell them unasked; ``bytes`` is the file's size."""

    path: str
    form: str
    counts: dict[str, int]
    left_out: int
    bytes: int
    withheld: int = 0


@dataclass(frozen=True, slots=True)
class Parcel:
    """All that goes out, redacted; sessions and their turns are read one at a time."""

    home: Home
    options: ExportOptions
    memories: tuple[tuple[str, Memory], ...]
    pages: tuple[tuple[str, str], ...]
    entries: tuple[ledger.Entry, ...]
    usage: dict[str, Usage]
    sessions: tuple[StoredSession, ...]
    left_out: int
    withheld: int

    def turns(self, stored: StoredSession) -> list[Turn]:
        """The turns of a session."""
        return [clean_turn(turn, self.home.redactor.clean) for turn in self.home.sessions.whole(stored.row)]


def export(
    home: Home, target: Path | BinaryIO, options: ExportOptions | None = None, *, overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> ExportReport:  # fmt: skip
    """Write everything to a file, or to a stream. The home is read as it is at one moment.

    Raises Conflict when the file exists and is not to be overwritten.
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
    wanted = [
        memory for memory in home.memories.everything() if options.project is None or memory.project == options.project
    ]
    asked = [memory for memory in wanted if options.include_retired or not memory.retired]
    kept = [_clean(home, memory) for memory in asked if memory.is_vouched or options.form not in _WITHOUT_TRUST]
    ids = {memory.id for memory in kept}
    paths = {seen.memory: seen.path for seen in home.files.seen().values()}
    sessions: list[StoredSession] = []
    if options.sessions:
        sessions = home.sessions.newest(SessionFilter(project=options.project, subagents=True), limit=-1)
    return Parcel(
        home, options, tuple((paths.get(memory.id, ""), memory) for memory in kept),
        tuple(_pages(home, options)),
        tuple(entry for entry in _entries(home) if _concerns(entry, ids, options)),
        home.usage.of(list(ids)), tuple(reversed(sessions)), len(wanted) - len(asked),
        len(asked) - len(kept),
    )  # fmt: skip


def _clean(home: Home, memory: Memory) -> Memory:
    clean = home.redactor.clean
    retired = memory.retired
    return replace(
        redacted(home.redactor, memory),
        source=replace(memory.source, file=clean(memory.source.file) if memory.source.file else None),
        links=tuple(replace(link, reason=clean(link.reason) if link.reason else None) for link in memory.links),
        retired=retired and Retirement(retired.at, clean(retired.reason) if retired.reason else None),
    )


def _pages(home: Home, options: ExportOptions) -> Iterator[tuple[str, str]]:
    """Project pages and the owner's own: (path, text)."""
    slugs = [project.slug for project in home.files.projects()]
    wanted = [f"projects/{slug}/project.md" for slug in slugs if options.project in (None, slug)]
    for path in (*([*sorted(OWN_PAGES), "profile.md"] if options.project is None else []), *wanted):
        with contextlib.suppress(FileNotFoundError):
            clean = home.redactor.clean
            yield clean(path), clean(home.vault.read(path).decode("utf-8", "replace"))


def _entries(home: Home) -> Iterator[ledger.Entry]:
    with contextlib.suppress(FileNotFoundError):
        for entry in ledger.read(home.vault.read(LEDGER)):
            yield replace(entry, details=clean_values(home.redactor, entry.details))


def _concerns(entry: ledger.Entry, ids: set[str], options: ExportOptions) -> bool:
    return options.project is None or entry.details.get("memory") in ids


class _Lines:
    """Writes JSON lines, and the trailer that proves them."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.size = 0

    def put(self, kind: str, values: dict[str, Any]) -> None:
        line = json.dumps({"type": kind, **values}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        self.file.write(line)
        self.digest.update(line)
        self.size += len(line)
        self.counts[kind] += 1

    def close(self) -> None:
        digest, lines = self.digest.hexdigest(), sum(self.counts.values())
        counts = {name: number for name, number in self.counts.items() if name != portable.HEADER}
        self.put(portable.TRAILER, {"lines": lines, "sha256": digest, "counts": counts})


def _write_lines(parcel: Parcel, file: BinaryIO, notify: OnProgress) -> tuple[dict[str, int], int]:
    lines, clean = _Lines(file), parcel.home.redactor.clean
    lines.put(portable.HEADER, _header(parcel))
    for path, document in parcel.pages:
        lines.put(portable.PAGE, {"path": path, "document": document})
    for done, (path, memory) in enumerate(parcel.memories):
        lines.put(portable.MEMORY, memory_record(clean(path), memory, parcel.usage.get(memory.id)))
        notify(Progress("exporting", done + 1, len(parcel.memories), "memories"))
    for values in _links(parcel):
        lines.put(portable.LINK, values)
    for entry in parcel.entries:
        lines.put(portable.LEDGER_ENTRY, {"entry": json.loads(entry.line())})
    for done, stored in enumerate(parcel.sessions):
        lines.put(portable.SESSION, _session_record(parcel.home, stored))
        for turn in parcel.turns(stored):
            lines.put(portable.TURN, _turn_record(turn))
        notify(Progress("exporting", done + 1, len(parcel.sessions), "sessions"))
    lines.close()
    return _told(lines.counts), lines.size


def _header(parcel: Parcel) -> dict[str, Any]:
    counts = {
        portable.PAGE: len(parcel.pages), portable.MEMORY: len(parcel.memories),
        portable.LEDGER_ENTRY: len(parcel.entries), portable.SESSION: len(parcel.sessions),
    }  # fmt: skip
    return {
        "format": portable.FORMAT, "version": portable.VERSION,
        "exported": stamp(parcel.home.now()), "project": parcel.options.project, "counts": counts,
    }  # fmt: skip


def memory_record(path: str, memory: Memory, usage: Usage | None) -> dict[str, Any]:
    """A memory as its line: where its file lies, its front matter with every key, its body, how it was used."""
    used = usage and {
        "recall_count": usage.recall_count, "last_recalled": to_ms(usage.last_recalled),
        "recall_intervals": list(usage.intervals), "contradictions": usage.contradictions, "quality": usage.quality,
        "access_count": usage.access_count,
    }  # fmt: skip
    return {"path": path, "front": {**to_front(memory), **memory.extra}, "content": memory.content, "usage": used}


def _links(parcel: Parcel) -> Iterator[dict[str, Any]]:
    """Edges that no front matter holds: likeness, and use together."""
    ids = {memory.id for _, memory in parcel.memories}
    for link in parcel.home.links.alike():
        if link.source in ids and link.target in ids:
            yield {
                "from": link.source, "rel": link.rel, "to": link.target, "origin": link.origin,
                "strength": link.strength, "reason": link.reason,
            }  # fmt: skip
    for edge in parcel.home.co_recall.strongest(today(parcel.home), _ALL):
        if edge.memory in ids and edge.other in ids:
            yield {
                "from": edge.memory, "rel": "related_to", "to": edge.other, "origin": "co-recall",
                "strength": round(edge.weight, 4), "sessions": edge.sessions,
            }  # fmt: skip


def _session_record(home: Home, stored: StoredSession) -> dict[str, Any]:
    session = stored.session
    values = {
        "tool": session.tool, "id": session.native_id, "title": session.title, "cwd": session.cwd,
        "branch": session.branch, "kind": session.kind.value, "parent": session.parent, "project": stored.project,
        "started": to_ms(session.started), "tool_version": session.tool_version, "model": session.model,
        "tokens": session.tokens and [session.tokens.input, session.tokens.cached, session.tokens.output],
        "file": stored.file,
    }  # fmt: skip
    return {key: clean_values(home.redactor, value) for key, value in values.items() if value is not None}


def _turn_record(turn: Turn) -> dict[str, Any]:
    values = {
        "id": turn.id, "speaker": turn.speaker.value, "text": turn.text, "time": to_ms(turn.time),
        "tools": kept_calls(turn.tool_calls) or None,
        "flags": int(turn.flags) or None, "trust": turn.trust.value, "author": turn.author,
        "unique": turn.unique or None,
    }  # fmt: skip
    return {key: value for key, value in values.items() if value is not None}


def _told(counts: Counter[str]) -> dict[str, int]:
    names = (portable.MEMORY, portable.PAGE, portable.LINK, portable.LEDGER_ENTRY, portable.SESSION, portable.TURN)
    return {name: counts[name] for name in names}


def _write_markdown(parcel: Parcel, file: BinaryIO, notify: OnProgress) -> tuple[dict[str, int], int]:
    size = write_page(parcel.home.now(), parcel.memories, _talk(parcel, notify), file)
    return _told(_counted(parcel, ledger_entries=False)), size


def _write_archive(parcel: Parcel, file: BinaryIO, notify: OnProgress) -> tuple[dict[str, int], int]:
    documents = [*parcel.pages, *_documents(parcel)]
    documents.append((LEDGER, "".join(f"{entry.line()}\n" for entry in parcel.entries)))
    size = write_zip(documents, _talk(parcel, notify), file)
    return _told(_counted(parcel, ledger_entries=True)), size


def _documents(parcel: Parcel) -> Iterator[tuple[str, str]]:
    """The memories' files, as they are but for secrets."""
    clean = parcel.home.redactor.clean
    for path, _ in parcel.memories:
        with contextlib.suppress(FileNotFoundError):
            text = parcel.home.vault.read(path).decode("utf-8", "replace") if path else ""
            if text:
                yield clean(path), clean(text)


def _talk(parcel: Parcel, notify: OnProgress) -> Iterator[tuple[StoredSession, list[Turn]]]:
    for done, stored in enumerate(parcel.sessions):
        yield stored, parcel.turns(stored)
        notify(Progress("exporting", done + 1, len(parcel.sessions), "sessions"))


def _counted(parcel: Parcel, *, ledger_entries: bool) -> Counter[str]:
    return Counter({
        portable.MEMORY: len(parcel.memories), portable.PAGE: len(parcel.pages) if ledger_entries else 0,
        portable.LEDGER_ENTRY: len(parcel.entries) if ledger_entries else 0, portable.SESSION: len(parcel.sessions),
        portable.TURN: sum(stored.turns for stored in parcel.sessions),
    })  # fmt: skip


def _write_clawxmemory(parcel: Parcel, file: BinaryIO, _: OnProgress) -> tuple[dict[str, int], int]:
    size = write_snapshot(parcel.home.now(), [memory for _, memory in parcel.memories], file)
    return {**_told(Counter()), portable.MEMORY: len(parcel.memories)}, size


_FORMS = {
    "jsonl": _write_lines, "markdown": _write_markdown, "zip": _write_archive, "clawxmemory": _write_clawxmemory,
}  # fmt: skip
_WITHOUT_TRUST = ("clawxmemory",)
"""Forms that say of no memory whether it may be trusted: who imports them tells all of it unasked."""

FORMS = tuple(_FORMS)
"""The forms of an export: ``zip`` is Markdown as the vault's own files, ``clawxmemory`` a snapshot that it imports."""
