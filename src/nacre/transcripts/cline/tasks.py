"""Where Cline and Roo Code keep their tasks, and what lies beside a task's messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nacre.text.open_weights import answered_by
from nacre.transcripts.adapter import Places, Root, Source
from nacre.transcripts.editors import ENVIRONMENT, user_folders
from nacre.transcripts.objects import parse_time
from nacre.transcripts.whole_json import beside, mapping, string
from nacre.values.session import Session

CLINE, ROO = "cline", "roo-code"

FOLDERS = {CLINE: ("saoudrizwan.claude-dev",), ROO: ("rooveterinaryinc.roo-cline",)}
MESSAGES = ("ui_messages.json", "claude_messages.json")

_DIRECTORY = re.compile(r"# Current (?:Working|Workspace) Directory \(([^)\n]+)\)")


CLINE_ENVIRONMENT = (*ENVIRONMENT, "CLINE_DATA_DIR", "CLINE_DIR")
"""The environment's variables that :func:`roots` reads for Cline; for Roo Code it reads those of editors."""


def roots(places: Places, tool: str, names: Sequence[str]) -> list[Root]:
    """The folders of tasks: of the extension in each editor, and of Cline's own programs."""
    patterns = tuple(f"*/{name}" for name in names)
    users = user_folders(places)
    found = [Root(user / "globalStorage" / name / "tasks", patterns) for user in users for name in FOLDERS[tool]]
    if tool == CLINE:
        told = places.environ.get("CLINE_DATA_DIR") or places.environ.get("CLINE_DIR")
        home = Path(told).expanduser() if told else places.home / ".cline"
        found += [Root(home / "data" / "tasks", patterns), Root(home / "tasks", patterns)]
    return found


def is_roo(path: Path) -> bool:
    """Whether a task is one of Roo Code: the messages are alike, the places are not."""
    folders = {part.lower() for part in path.parts}
    return not folders.isdisjoint(FOLDERS[ROO]) or (path.parent / "history_item.json").is_file()


def session_of(source: Source, tool: str) -> Session:
    """The session of a task: its id is the name of its folder, and the tool's own list knows where it worked."""
    path = source.path
    native_id = path.parent.name if path.name in (*MESSAGES, "api_conversation_history.json") else path.stem
    item = mapping(beside(path.parent / "history_item.json"))
    if not item and len(path.parents) > 2:
        listed = beside(path.parents[2] / "state" / "taskHistory.json")
        for one in listed if isinstance(listed, list) else ():
            item = mapping(one) if mapping(one).get("id") == native_id else item
    started = parse_time(native_id) if len(native_id) == 13 and native_id.isdigit() else None
    return Session(
        tool, native_id, started=started, cwd=string(item, "workspace", "cwdOnTaskInitialization"),
        model=string(item, "modelId"),
    )  # fmt: skip


def folder_in(text: str) -> str | None:
    """The working directory that the tool told its model."""
    found = _DIRECTORY.search(text)
    return found[1] if found else None


def model_of(message: Mapping[str, Any]) -> str | None:
    """Which model a message names, with its provider where that may be the owner's own: what both tools call
    ``openai`` is any server that speaks OpenAI's language, and OpenAI itself is ``openai-native``.
    """
    told = mapping(message, "modelInfo")
    provider = string(told, "providerId")
    return answered_by(string(told, "modelId"), "openai-compatible" if provider == "openai" else provider)
