"""Real transcripts next to the checkout are recognised and read completely."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nacre.readers.adapter import read_head
from nacre.readers.registry import find_adapter, get_adapter
from nacre.values.session import Speaker

DATA = Path(__file__).parents[3] / "shared" / "data" / "transcripts"

TOOLS = ("claude-code", "codex", "openclaw")

GENERIC = ("session_branch", "session_simple", "session_toolcall", "codex_schema_drift")
"""A viewer's fixtures in Codex's folder that are plain role-and-content lines."""

FILES = [
    path for tool in TOOLS for path in sorted((DATA / tool).glob("**/*.json*")) if path.is_file()
]


@pytest.mark.skipif(not FILES, reason="no real transcripts next to this checkout")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_real_transcript_is_recognised_and_read_completely(path: Path, read: Any) -> None:
    tool = path.relative_to(DATA).parts[0]
    adapter = find_adapter(read_head(path))
    if path.name.endswith(".meta.json"):
        assert adapter is None
        return
    expected = "jsonl" if any(name in path.name for name in GENERIC) else tool
    assert adapter is get_adapter(expected)
    _, turns, source = read(adapter, path)
    if tool != "claude-code":
        assert source.tally.corrupt == 0
        assert len({turn.id for turn in turns}) == len(turns)


SMALL = {
    "aider": ("*.md", "*.history"),
    "continue": ("*.json",),
    "copilot-cli": ("*.jsonl",),
    "cursor": ("*.jsonl",),
    "gemini-cli": ("*.json*",),
}
NO_SESSION = ("sessions.json", "gemini_schema_drift.json")
"""An index of sessions, and a fixture in a format that the tool never wrote."""

SMALL_FILES = [
    path
    for tool, names in SMALL.items()
    for name in names
    for path in sorted((DATA / tool).glob(name))
]


@pytest.mark.skipif(not SMALL_FILES, reason="no real transcripts next to this checkout")
@pytest.mark.parametrize("path", SMALL_FILES, ids=lambda path: path.name)
def test_real_transcript_of_a_smaller_tool_is_read_completely(path: Path, read: Any) -> None:
    adapter = find_adapter(read_head(path))
    if path.name.endswith(NO_SESSION):
        assert adapter is None
        return
    assert adapter
    assert adapter.tool == path.relative_to(DATA).parts[0]
    sessions, turns, source = read(adapter, path)
    assert source.tally.corrupt == 0
    assert set(source.tally.unknown) <= {"block custom_block"}
    real = [
        turn for turn in turns if "trimmed" not in turn.id
    ]  # some records of a viewer's fixture have no ids
    assert len({turn.id for turn in real}) == len(real)
    assert {session.tool for session in sessions} <= {adapter.tool}
    assert not [
        turn for turn in turns if turn.speaker is Speaker.OWNER and "<user_query>" in turn.text
    ]
