"""An export that ClawXMemory imports: the files of its memory folder, in one JSON bundle (seed facts 3.1, 3.6)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import BinaryIO

from nacre.text.passages import one_line, shorten
from nacre.values.codec import stamp
from nacre.values.memory import Kind, Memory
from nacre.vault.front_matter import dump
from nacre.vault.layout import slugify

FORMAT = "clawxmemory-memory-snapshot.v3"
_TEMPORARY = "_tmp"
_SUBJECT_CHARACTERS, _DESCRIPTION_CHARACTERS = 80, 180
_SECTIONS = {Kind.PREFERENCE: "Preferences", Kind.RELATIONSHIP: "Relationships"}
_REST = "Notes"
_HEADINGS = {Kind.PREFERENCE: "Rule", Kind.DECISION: "Decisions", Kind.TODO: "Next Steps"}


def write_snapshot(now: datetime, memories: Sequence[Memory], file: BinaryIO) -> int:
    """Write the bundle; returns its size in bytes.

    A project's preferences are feedback, its other memories project files; what waits in the inbox is staged; what
    holds everywhere is the user's profile, a bullet each. What is retired is marked as deprecated.
    """
    files = [{"relativePath": path, "content": content} for path, content in _files(now, memories)]
    bundle = {"formatVersion": FORMAT, "exportedAt": stamp(now), "files": files}
    data = json.dumps(bundle, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"
    file.write(data)
    return len(data)


def _files(now: datetime, memories: Sequence[Memory]) -> Iterator[tuple[str, str]]:
    for project in sorted({one.project for one in memories if one.project}):
        yield f"projects/{project_id_of(project)}/project.meta.md", _project_page(now, project)
    yield from (entry_file(one) for one in memories if one.project or one.inbox)
    profile = [one for one in memories if one.is_active and not (one.project or one.inbox)]
    if profile:
        yield "global/User/user-profile.md", _profile(now, profile)


def project_id_of(project: str) -> str:
    """A project's id as ClawXMemory makes them: ten hexadecimal digits; here always the same for a slug."""
    return f"project_{hashlib.sha1(project.encode(), usedforsecurity=False).hexdigest()[:10]}"


def _project_page(now: datetime, project: str) -> str:
    front = {
        "project_id": project_id_of(project), "project_name": project, "description": "", "aliases": "[]",
        "status": "active", "created_at": stamp(now), "updated_at": stamp(now),
    }  # fmt: skip
    return f"---\n{dump(front)}---\n"


def entry_file(memory: Memory) -> tuple[str, str]:
    """The path of a memory of a project, or in the inbox, and what its file says."""
    is_rule = memory.kind is Kind.PREFERENCE
    project = project_id_of(memory.project) if memory.project else _TEMPORARY
    front = {
        "name": shorten(one_line(memory.subject), _SUBJECT_CHARACTERS),
        "description": shorten(one_line(memory.content), _DESCRIPTION_CHARACTERS),
        "type": "feedback" if is_rule else "project", "scope": "project", "project_id": project,
        "updated_at": stamp(memory.updated), "captured_at": stamp(memory.created),
        "source_session_key": memory.source.session or "",
        "deprecated": not memory.is_active, "dream_attempts": 0,
    }  # fmt: skip
    name = f"{slugify(memory.subject)[:60] or memory.kind.value}-{memory.id[-8:]}"
    path = f"projects/{project}/{'Feedback' if is_rule else 'Project'}/{name}.md"
    heading = "" if memory.content.startswith("## ") else f"## {_HEADINGS.get(memory.kind, _REST)}\n\n"
    return path, f"---\n{dump(front)}---\n{heading}{memory.content}\n"


def _profile(now: datetime, memories: Sequence[Memory]) -> str:
    front = {
        "name": "user-profile", "description": "", "type": "user", "scope": "global", "updated_at": stamp(now),
        "captured_at": stamp(now), "deprecated": False,
    }  # fmt: skip
    lines = [f"---\n{dump(front)}---"]
    for section in (*_SECTIONS.values(), _REST):
        found = [one for one in memories if _SECTIONS.get(one.kind, _REST) == section]
        if found:
            lines += [f"## {section}", "", *(f"- {one_line(one.content)}" for one in found), ""]
    return "\n".join(lines)
