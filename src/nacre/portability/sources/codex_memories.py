"""Codex's memories: ``~/.codex/memories/`` with a handbook by task groups, a summary, and notes added by hand.

``MEMORY.md`` is the consolidated text; summaries of single runs and raw extracts are its evidence and stay behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from nacre.portability.sources.notes import Note, kind_of, notes
from nacre.portability.sources.shape import shape, tags_of, words_hash
from nacre.portability.sources.source import Found, ImportSource, Item, Skipped
from nacre.portability.sources.tree import Tree
from nacre.text.passages import one_line
from nacre.values.memory import Kind

NAME = "codex-memories"

_HANDBOOK, _SUMMARY = "MEMORY.md", "memory_summary.md"
_GROUP = re.compile(r"^# Task Group:\s*(.+)$", re.MULTILINE)
_APPLIES = re.compile(r"^applies_to:\s*cwd\s*=\s*([^;\n]+)", re.MULTILINE)
_KEYWORDS = re.compile(r"^#{2,4}\s*keywords\s*\n+((?:(?!#).*\n?)+)", re.MULTILINE | re.IGNORECASE)
_EVIDENCE = ("raw_memories.md", "rollout_summaries/", "trace_summaries/", "skills/")
_NO_STATEMENTS = re.compile(
    r"rollout.summary|keywords|what'?s in memory|recent active memory|older memory", re.IGNORECASE
)
_ABOUT_THE_GROUP = re.compile(r"^(?:scope|applies_to|task_?outcome)\s*:", re.IGNORECASE)
_MOST_TAGS = 8


def _recognise(tree: Tree) -> bool:
    handbook = tree.text(_HANDBOOK) if _HANDBOOK in tree.leaves else None
    return bool(handbook and _GROUP.search(handbook)) or any(
        name == _SUMMARY or name.startswith(_EVIDENCE) for name in tree.names if not name.startswith("skills/")
    )


def _read(tree: Tree) -> Iterator[Item]:
    for name in tree.matching(".md"):
        if name == _HANDBOOK:
            yield from _handbook(tree, name)
        elif name == _SUMMARY:
            yield from _statements(tree, name, tree.clean(tree.text(name) or ""), None, ())
        elif name.startswith("extensions/") and "/notes/" in name:
            yield from _note(tree, name)
        elif name.startswith(_EVIDENCE):
            yield Skipped(name, "evidence of what MEMORY.md says")
        else:
            yield Skipped(name, "no file of memories")


def _handbook(tree: Tree, name: str) -> Iterator[Item]:
    text = tree.clean(tree.text(name) or "")
    marks = [*_GROUP.finditer(text)]
    if not marks or marks[0].start():
        yield from _statements(tree, name, text[: marks[0].start()] if marks else text, None, ())
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):  # without marks, there is one end
        group = text[mark.end() : end]
        applies = _APPLIES.search(group)
        keywords = _KEYWORDS.search(group)
        found = keywords.group(1).replace("\n", ",").replace("- ", " ") if keywords else ""
        tags = tags_of(found.replace("`", ""))[:_MOST_TAGS]
        cwd = applies.group(1).strip().strip("`") if applies else None
        yield from _statements(tree, name, f"## {one_line(mark.group(1))}\n{group}", cwd, tags)


def _statements(tree: Tree, name: str, text: str, cwd: str | None, tags: tuple[str, ...]) -> Iterator[Item]:
    seen: set[str] = set()
    for note in notes(text):
        if not note.is_said or note.text in seen or _ABOUT_THE_GROUP.match(note.text):
            continue
        if any(_NO_STATEMENTS.search(heading) for heading in note.headings):
            continue
        seen.add(note.text)
        yield _found(tree, name, note, cwd, tags)


def _found(tree: Tree, name: str, note: Note, cwd: str | None, tags: tuple[str, ...]) -> Found:
    file = str(tree.path_of(name))
    memory = shape(
        NAME, f"{file}#{words_hash(note.text)}", note.text, modified=tree.leaves[name].modified, subject=note.subject,
        kind=kind_of(note.headings, Kind.FACT), tags=tags, file=file,
    )  # fmt: skip
    return Found(memory, cwd=cwd)


def _note(tree: Tree, name: str) -> Iterator[Item]:
    text = tree.clean(tree.text(name) or "").strip()
    if not text:
        yield Skipped(name, "it is empty")
        return
    file = str(tree.path_of(name))
    title = PurePosixPath(name).stem.split("-", 3)[-1].replace("-", " ")
    yield Found(shape(NAME, file, text, modified=tree.leaves[name].modified, subject=title, file=file))


SOURCE = ImportSource(NAME, "Codex memories", _recognise, _read)
