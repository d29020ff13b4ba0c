"""Import sources for agents' own memories: Claude Code, Codex, instructions, OpenClaw, account exports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from nacre.base import json
from nacre.base.plain import mapping
from nacre.base.text import one_line
from nacre.data.importers import (
    ImportedMemory,
    ImportSource,
    Item,
    Skipped,
    Transcript,
    Tree,
    from_note,
    front_of,
    imported_id,
    json_of,
    moment,
    notes,
    objects_of,
    project_of,
    read_note,
    readable_front,
    shape,
    tags_of,
    text_of,
    words_hash,
)
from nacre.errors import InvalidMemoryError
from nacre.readers.accounts import ADAPTER as CHATGPT_ADAPTER
from nacre.readers.accounts import ADAPTER_CLAUDE_AI as CLAUDE_AI_ADAPTER
from nacre.readers.adapter import Adapter, Head
from nacre.values.memory import Expiry, Kind, Link
from nacre.vault.documents import Values

# -- Memory of Claude Code and Gemini CLI: ``~/.claude/projects/<folder>/memory/``, ``~/.gemini/tmp/<name>/memory/`` ---
# An index, and one file per fact. A fact has front matter (``name``, ``description``, ``type`` at the top or below
# ``metadata``) and can link to other facts as ``[[name]]``. Statements in the index itself are imported as notes.


NAME_CLAUDE_MEMORY = "claude-memory"

_INDEX = "MEMORY.md"
_KINDS_CLAUDE_MEMORY = {
    "user": Kind.FACT,
    "feedback": Kind.PREFERENCE,
    "project": Kind.FACT,
    "reference": Kind.FACT,
    "preference": Kind.PREFERENCE,
    "decision": Kind.DECISION,
    "lesson": Kind.LESSON,
}
_POINTER = re.compile(r"\[[^\]]*\]\([^)\s]+\.md\)")
_LINK = re.compile(r"\[\[([^\]\n|#]{1,120})")
_DAILY_NOTE = re.compile(r"\d{4}-\d\d-\d\d.*\.md")
_GEMINI_ROOT = ".project_root"
"""Name of the file beside Gemini CLI's memory folder that contains the project's path."""

_KNOWN_KEYS = frozenset(
    {"name", "description", "type", "metadata", "tags", "created", "updated", "modified"}
)


def _folders(tree: Tree) -> list[str]:
    folders = {str(PurePosixPath(name).parent) for name in tree.matching(".md")}
    own = tree.root.name == "memory" or (
        _is_host(tree.root) and "." in folders and _INDEX in tree.leaves
    )
    below = sorted(
        folder for folder in folders if PurePosixPath(folder).name == "memory" and folder != "."
    )
    return [*([""] if own and "." in folders else []), *below]


def _recognise_claude_memory(tree: Tree) -> bool:
    if tree.single:
        return tree.root.parent.name == "memory" and _is_host(tree.root)
    inside = [name for folder in _folders(tree) for name in _files(tree, folder)]
    if any(_DAILY_NOTE.fullmatch(PurePosixPath(name).name) for name in inside):
        return False  # daily notes belong to OpenClaw
    return any(
        _is_fact(tree, name) or _is_index(tree, name) for name in inside or tree.matching(".md")
    )


def _is_host(path: Path) -> bool:
    return not {".claude", ".gemini"}.isdisjoint(path.parts)


def _is_fact(tree: Tree, name: str) -> bool:
    front = readable_front(tree, name)
    kind = text_of(front, "type") or text_of(mapping(front, "metadata"), "type")
    return bool(
        text_of(front, "name")
        and text_of(front, "description")
        and kind in _KINDS_CLAUDE_MEMORY
        and "scope" not in front
    )


def _is_index(tree: Tree, name: str) -> bool:
    return PurePosixPath(name).name == _INDEX and (
        _is_host(tree.path_of(name)) or len(_POINTER.findall(tree.text(name) or "")) >= 2
    )


def _read_claude_memory(tree: Tree) -> Iterator[Item]:
    if tree.single:
        yield from _file(tree, tree.names[0], None, {})
        return
    for folder in _folders(tree) or [""]:
        cwd = _cwd(tree, folder)
        names = list(_files(tree, folder))
        ids = {}
        for name in names:
            front = readable_front(tree, name)
            ids[_name(front, name)] = _id(tree, name, front)
        for name in names:
            yield from _file(tree, name, cwd, ids)


def _files(tree: Tree, folder: str) -> Iterator[str]:
    prefix = f"{folder}/" if folder else ""
    return (
        name
        for name in tree.matching(".md")
        if name.startswith(prefix) and "skills" not in PurePosixPath(name).parts
    )


def _file(tree: Tree, name: str, cwd: str | None, ids: Mapping[str, str]) -> Iterator[Item]:
    note = read_note(tree, name)
    if isinstance(note, Skipped):
        yield note
        return
    front, body = note
    if not front or PurePosixPath(name).name == _INDEX:
        for statement in notes(body):
            if not _POINTER.search(statement.text):
                yield from_note(NAME_CLAUDE_MEMORY, tree, name, statement, Kind.FACT, cwd)
    elif not body and not text_of(front, "description"):
        yield Skipped(name, "empty")
    else:
        yield _fact(tree, name, front, body, cwd, ids)


def _fact(
    tree: Tree,
    name: str,
    front: Values,
    body: str,
    cwd: str | None,
    ids: Mapping[str, str],
) -> Item:
    metadata = mapping(front, "metadata")
    kind = text_of(front, "type") or text_of(metadata, "type") or ""
    description = text_of(front, "description")
    linked = dict.fromkeys(target.strip() for target in _LINK.findall(body))
    own = _id(tree, name, front)
    memory = shape(
        NAME_CLAUDE_MEMORY,
        str(tree.path_of(name)),
        body or description or "",
        modified=tree.leaves[name].modified,
        subject=description
        if description and len(description) <= 120
        else _name(front, name).replace("-", " ").replace("_", " ").capitalize(),
        kind=_KINDS_CLAUDE_MEMORY.get(kind, Kind.FACT),
        date=moment(text_of(front, "created")),
        file=str(tree.path_of(name)),
        tags=tags_of(front.get("tags")),
        links=tuple(
            Link("related_to", ids[other]) for other in linked if other in ids and ids[other] != own
        ),
        extra={key: value for key, value in front.items() if key not in _KNOWN_KEYS},
    )
    return ImportedMemory(memory, cwd=cwd)


def _cwd(tree: Tree, folder: str) -> str | None:
    """Return the working folder named in the transcripts beside a project's memory folder."""
    place = (tree.root / folder).parent
    if not place.is_dir():
        return None
    if (named := place / _GEMINI_ROOT).is_file():
        return tree.clean(named.read_text(encoding="utf-8", errors="replace").strip())
    for transcript in sorted(place.glob("*.jsonl"))[:3]:
        with transcript.open("rb") as file:
            for line in file.read(65_536).split(b"\n"):
                try:
                    cwd = json.parse(line).get("cwd")
                except (ValueError, AttributeError):
                    continue
                if isinstance(cwd, str) and cwd:
                    return tree.clean(cwd)
    return None


def _name(front: Values, name: str) -> str:
    return text_of(front, "name") or PurePosixPath(name).stem


def _id(tree: Tree, name: str, front: Values) -> str:
    date = moment(text_of(front, "created"))
    return imported_id(NAME_CLAUDE_MEMORY, str(tree.path_of(name)), date)


SOURCE_CLAUDE_MEMORY = ImportSource(
    NAME_CLAUDE_MEMORY,
    "Claude Code or Gemini CLI memory",
    _recognise_claude_memory,
    _read_claude_memory,
)


# -- Codex's memories: ``~/.codex/memories/`` ------------------------------------------------------
# A handbook grouped by task, a summary, and manually added notes. ``MEMORY.md`` is the consolidated text. Summaries of
# runs and raw extracts are only evidence for it and are skipped.


NAME_CODEX_MEMORIES = "codex-memories"

_HANDBOOK, _SUMMARY_CODEX_MEMORIES = "MEMORY.md", "memory_summary.md"
_GROUP = re.compile(r"^# Task Group:\s*(.+)$", re.MULTILINE)
_APPLIES = re.compile(r"^applies_to:\s*cwd\s*=\s*([^;\n]+)", re.MULTILINE)
_KEYWORDS = re.compile(r"^#{2,4}\s*keywords\s*\n+((?:(?!#).*\n?)+)", re.MULTILINE | re.IGNORECASE)
_EVIDENCE = ("raw_memories.md", "rollout_summaries/", "trace_summaries/", "skills/")
_NO_STATEMENTS = re.compile(
    r"rollout.summary|keywords|what'?s in memory|recent active memory|older memory", re.IGNORECASE
)
_ABOUT_THE_GROUP = re.compile(r"^(?:scope|applies_to|task_?outcome)\s*:", re.IGNORECASE)
_MAX_TAGS = 8


def _recognise_codex_memories(tree: Tree) -> bool:
    handbook = tree.text(_HANDBOOK) if _HANDBOOK in tree.leaves else None
    return bool(handbook and _GROUP.search(handbook)) or any(
        name == _SUMMARY_CODEX_MEMORIES or name.startswith(_EVIDENCE)
        for name in tree.names
        if not name.startswith("skills/")
    )


def _read_codex_memories(tree: Tree) -> Iterator[Item]:
    for name in tree.matching(".md"):
        if name == _HANDBOOK:
            yield from _handbook(tree, name)
        elif name == _SUMMARY_CODEX_MEMORIES:
            yield from _statements(tree, name, tree.clean(tree.text(name) or ""), None, ())
        elif name.startswith("extensions/") and "/notes/" in name:
            text, file = tree.clean(tree.text(name) or "").strip(), str(tree.path_of(name))
            title = PurePosixPath(name).stem.split("-", 3)[-1].replace("-", " ")
            modified = tree.leaves[name].modified
            memory = shape(
                NAME_CODEX_MEMORIES, file, text, modified=modified, subject=title, file=file
            )
            yield ImportedMemory(memory) if text else Skipped(name, "empty")
        elif name.startswith(_EVIDENCE):
            yield Skipped(name, "evidence for MEMORY.md")
        else:
            yield Skipped(name, "not a memory file")


def _handbook(tree: Tree, name: str) -> Iterator[Item]:
    text = tree.clean(tree.text(name) or "")
    marks = [*_GROUP.finditer(text)]
    if not marks or marks[0].start():
        yield from _statements(tree, name, text[: marks[0].start()] if marks else text, None, ())
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):  # without marks, there is a single end
        group = text[mark.end() : end]
        applies = _APPLIES.search(group)
        keywords = _KEYWORDS.search(group)
        keyword_text = keywords.group(1).replace("\n", ",").replace("- ", " ") if keywords else ""
        tags = tags_of(keyword_text.replace("`", ""))[:_MAX_TAGS]
        cwd = applies.group(1).strip().strip("`") if applies else None
        yield from _statements(tree, name, f"## {one_line(mark.group(1))}\n{group}", cwd, tags)


def _statements(
    tree: Tree, name: str, text: str, cwd: str | None, tags: tuple[str, ...]
) -> Iterator[Item]:
    for note in notes(text):
        is_evidence = any(_NO_STATEMENTS.search(heading) for heading in note.headings)
        if not is_evidence and not _ABOUT_THE_GROUP.match(note.text):
            yield from_note(NAME_CODEX_MEMORIES, tree, name, note, Kind.FACT, cwd, tags=tags)


SOURCE_CODEX_MEMORIES = ImportSource(
    NAME_CODEX_MEMORIES, "Codex memories", _recognise_codex_memories, _read_codex_memories
)


# -- Instructions that hosts load: ``CLAUDE.md``, ``AGENTS.md``, ``GEMINI.md`` and similar ---------
# Anyone with access to a repository can write instructions, so they are untrusted unless the user decides otherwise.
# nacre's own blocks are skipped.


NAME_INSTRUCTIONS = "instructions"

_NAMES = frozenset(
    {
        "CLAUDE.md",
        "CLAUDE.local.md",
        "AGENTS.md",
        "GEMINI.md",
        ".cursorrules",
        "copilot-instructions.md",
    }
)
_FOLDERS = frozenset({".", ".claude", ".codex", ".gemini", ".github"})
"""Folders that are searched for instructions. Other subfolders are skipped."""


def _files_instructions(tree: Tree) -> list[str]:
    paths = map(PurePosixPath, tree.names)
    return [str(path) for path in paths if path.name in _NAMES and str(path.parent) in _FOLDERS]


def _read_instructions(tree: Tree) -> Iterator[Item]:
    for name in tree.names if tree.single else _files_instructions(tree):
        text = tree.text(name)
        if text is None:
            yield Skipped(name, "too large or not text")
            continue
        statements = list(notes(tree.clean(text), allow_short=True))
        if not statements:
            yield Skipped(name, "empty")
        # The user's personal instructions are outside repositories.
        above = tree.path_of(name).parents
        cwd = next((str(folder) for folder in above if (folder / ".git").exists()), None)
        for note in statements:
            yield from_note(NAME_INSTRUCTIONS, tree, name, note, Kind.PREFERENCE, cwd)


SOURCE_INSTRUCTIONS = ImportSource(
    NAME_INSTRUCTIONS,
    "Instructions for agents",
    lambda tree: bool(_files_instructions(tree)),
    _read_instructions,
)


# -- OpenClaw's workspace --------------------------------------------------------------------------
# ``MEMORY.md`` and ``USER.md`` are curated and permanent. Entries in the diary (``memory/YYYY-MM-DD.md``) are temporary
# events of that day. If ``USER.md`` has directives with a date and status, only active directives are read.


NAME_OPENCLAW = "openclaw"

_DAY_OPENCLAW = re.compile(r"(\d{4}-\d\d-\d\d)(?:[-_ ].*)?\.md")
_USER = "user.md"
_CURATED = frozenset({"memory.md", _USER})
_DIARY_IMPORTANCE = 5
_DIRECTIVE = re.compile(
    r"^<!--\s*observed:\s*(\d{4}-\d\d-\d\d)\s*\|\s*status:\s*(\w+)\s*-->\s*\n+((?:[-*]\s.*)(?:\n[ \t]+\S.*)*)",
    re.MULTILINE,
)


def _pages(tree: Tree) -> list[str]:
    return [
        str(path)
        for path in map(PurePosixPath, tree.matching(".md"))
        if str(path).lower() in _CURATED
        or (_DAY_OPENCLAW.fullmatch(path.name) and str(path.parent) in (".", "memory"))
    ]


def _read_openclaw(tree: Tree) -> Iterator[Item]:
    pages = _pages(tree)
    for name in tree.matching(".md"):
        if name in pages:
            yield from _file_openclaw(tree, name)
        elif PurePosixPath(name).parts[0] == "memory":
            yield Skipped(name, "not MEMORY.md, USER.md or a daily note")


def _file_openclaw(tree: Tree, name: str) -> Iterator[Item]:
    text = tree.text(name)
    if text is None:
        yield Skipped(name, "too large or not text")
        return
    try:
        _, body = front_of(tree, name)
    except InvalidMemoryError:
        body = tree.clean(text)
    file = PurePosixPath(name).name
    is_curated, is_user = file.lower() in _CURATED, file.lower() == _USER
    default = Kind.PREFERENCE if is_user else Kind.FACT if is_curated else Kind.EVENT
    if is_user and (directives := _DIRECTIVE.findall(body)):
        parts = [(text, moment(day)) for day, status, text in directives if status == "active"]
    else:
        day = _DAY_OPENCLAW.fullmatch(file)
        parts = [(body, moment(day.group(1)) if day else None)]
    is_empty = True
    for part, date in parts:
        more: Values = {"date": date}
        if not is_curated:
            date = date or tree.leaves[name].modified
            more = {"date": date, "modified": date, "importance": _DIARY_IMPORTANCE}
            more["expiry"] = Expiry.TEMPORARY
        for note in notes(part):
            is_empty = False
            yield from_note(NAME_OPENCLAW, tree, name, note, default, **more)
    if is_empty:
        yield Skipped(name, "empty")


SOURCE_OPENCLAW = ImportSource(
    NAME_OPENCLAW, "OpenClaw notes", lambda tree: bool(_pages(tree)), _read_openclaw
)


# -- Account exports of ChatGPT and Claude.ai ------------------------------------------------------
# Ingest reads the conversations as transcripts. Claude.ai's own memories (``memories.json``) are imported.


_CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
_MEMORIES = re.compile(r"(?:.*/)?memories(?:/[^/]+)?\.json")


def _transcripts(tree: Tree, adapter: Adapter) -> Iterator[Path]:
    if tree.root.is_file():
        data = tree.head(tree.names[0]) if tree.single else b"PK\x03\x04"
        if adapter.sniff(Head(tree.root, data)):
            yield tree.root
        return
    for name in tree.names:
        if _CONVERSATIONS.fullmatch(name) and adapter.sniff(
            Head(tree.path_of(name), tree.head(name))
        ):
            yield tree.path_of(name)


def _source(adapter: Adapter) -> ImportSource:
    def recognise(tree: Tree) -> bool:
        return next(_transcripts(tree, adapter), None) is not None

    def read(tree: Tree) -> Iterator[Item]:
        yield from (Transcript(path) for path in _transcripts(tree, adapter))
        if adapter is CLAUDE_AI_ADAPTER:
            yield from _own_memories(tree)

    return ImportSource(adapter.tool, adapter.label, recognise, read)


def _own_memories(tree: Tree) -> Iterator[Item]:
    names = {
        str(project.get("uuid")): str(project.get("name") or "")
        for name in tree.names
        if name.endswith("projects.json") or re.fullmatch(r"(?:.*/)?projects/[^/]+\.json", name)
        for project in _each(json_of(tree, name))
    }
    for name in tree.names:
        if not _MEMORIES.fullmatch(name):
            continue
        content = json_of(tree, name)
        if content is None:
            yield Skipped(name, "not JSON")
        for account in _each(content):
            yield from _memories(tree, name, str(account.get("conversations_memory") or ""), None)
            projects = account.get("project_memories")
            for uuid, text in projects.items() if isinstance(projects, dict) else ():
                yield from _memories(tree, name, str(text), project_of(names.get(str(uuid))))


def _memories(tree: Tree, name: str, text: str, project: str | None) -> Iterator[Item]:
    for note in notes(text):
        more = {"key": words_hash(f"{project}\n{note.text}"), "project": project}
        yield from_note(CLAUDE_AI_ADAPTER.tool, tree, name, note, Kind.FACT, **more)


def _each(content: object) -> list[Values]:
    return objects_of(content if isinstance(content, list) else [content])


CHATGPT = _source(CHATGPT_ADAPTER)
CLAUDE_AI = _source(CLAUDE_AI_ADAPTER)
