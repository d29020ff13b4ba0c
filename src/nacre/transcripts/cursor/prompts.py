"""What Cursor wraps around a person's words in its agent transcripts, and where those lie."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from nacre.transcripts.adapter import Places, Root, Source
from nacre.transcripts.whole_json import beside, modified, string
from nacre.values.session import Session, SessionKind

TOOL = "cursor"

_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_STAMP = re.compile(r"<timestamp>(.*?)</timestamp>", re.DOTALL)
_WRAPPING = re.compile(
    r"<(attached_files|open_and_recently_viewed_files|git_status|git_diff\w*|system_reminder|timestamp|cursor_commands"
    r"|user_info|rules|agent_skills|available_skills|manually_attached_skills|project_layout|additional_data"
    r"|reproduction_steps|image_files|external_links|uploaded_documents|agent_transcripts|mcp_\w+)\b[^>]*>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)
_WRITTEN = re.compile(
    r"(?:\w+, )?(\w+ \d{1,2}, \d{4}),? (?:at )?(\d{1,2}:\d{2}(?::\d{2})? [AP]M)(?: \(UTC([+-]\d{1,2})(?::?(\d{2}))?\))?"
)
_SLUG = re.compile(r"[^A-Za-z0-9]+")
_MOST_FOLDERS = 20_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """A user message taken apart: what was typed, what Cursor put around it, and when, where it says so.

    What was typed stands at the end, between marks. An attached file may hold such marks, too: where there are several,
    nobody can be sure.
    """

    words: str
    context: str = ""
    time: datetime | None = None
    is_sure: bool = True


def read_prompt(text: str) -> Prompt:
    """Take a user message apart."""
    stamp = _STAMP.search(text)
    queries = _QUERY.findall(text)
    words = queries[-1] if queries else _WRAPPING.sub("", text)
    context = _QUERY.sub("", text) if queries else "\n".join(match[0] for match in _WRAPPING.finditer(text))
    return Prompt(words.strip(), context.strip(), _time(stamp[1]) if stamp else None, len(queries) < 2)


def _time(text: str) -> datetime | None:
    """A time as Cursor writes it for the model; only one with its zone says when."""
    found = _WRITTEN.search(text)
    if not found or not found[3]:
        return None
    sign = -1 if found[3].startswith("-") else 1
    zone = timezone(sign * timedelta(hours=min(abs(int(found[3])), 23), minutes=min(int(found[4] or 0), 59)))
    for form in ("%b %d, %Y %I:%M %p", "%B %d, %Y %I:%M %p", "%b %d, %Y %I:%M:%S %p", "%B %d, %Y %I:%M:%S %p"):
        try:
            return datetime.strptime(f"{found[1]} {found[2]}", form).replace(tzinfo=zone).astimezone(UTC)
        except (ValueError, OverflowError):
            continue
    return None


ENVIRONMENT = ("CURSOR_CONFIG_DIR",)
"""The environment's variables that :func:`roots` reads."""


def roots(places: Places, suffix: str) -> Sequence[Root]:
    """The folders of agent transcripts."""
    told = places.environ.get("CURSOR_CONFIG_DIR")
    folders = [places.home / ".cursor", *([Path(told).expanduser()] if told else [])]
    return [Root(folder / "projects", (f"*/agent-transcripts/**/*{suffix}",)) for folder in folders]


def session_of(source: Source) -> Session:
    """The session in a transcript: its name is its id, and its place tells what it belongs to."""
    path = source.path
    is_child = path.parent.name == "subagents"
    folder = next((parent.parent for parent in path.parents if parent.name == "agent-transcripts"), None)
    return Session(
        TOOL, path.stem, cwd=_folder(folder) if folder else None, label=folder.name if folder else None,
        kind=SessionKind.SUBAGENT if is_child else SessionKind.MAIN,
        parent=path.parent.parent.name if is_child else None, started=modified(source),
    )  # fmt: skip


def _folder(project: Path) -> str | None:
    """The folder of a project: Cursor wrote it down, or it is the one folder of this machine with such a name."""
    told = string(beside(project / ".workspace-trusted"), "workspacePath")
    return told or _unslug(Path(project.anchor), project.name.lower())


def _unslug(root: Path, slug: str) -> str | None:
    """Cursor writes a path with dashes for all but letters and digits; only the folders themselves tell it again."""
    open_ends = [(root, slug)]
    looked = 0
    found: list[Path] = []
    while open_ends and looked < _MOST_FOLDERS:
        folder, rest = open_ends.pop()
        for child in _folders(folder):
            looked += 1
            name = _SLUG.sub("-", child.name).strip("-").lower()
            if name and rest == name:
                found.append(child)
            elif name and rest.startswith(f"{name}-"):
                open_ends.append((child, rest[len(name) + 1 :]))
    return str(found[0]) if len(found) == 1 else None


def _folders(folder: Path) -> list[Path]:
    try:
        return [child for child in folder.iterdir() if child.is_dir() and not child.is_symlink()]
    except OSError:
        return []
