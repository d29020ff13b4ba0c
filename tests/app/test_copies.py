"""A session in several files or in a rewritten file is stored once, with each turn once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nacre.home.home import Home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.values.session import Speaker
from tests.app.conftest import World
from tests.app.shapes import Agent, Owner, Step, write

TALK: tuple[Step, ...] = (
    Owner("When do the boats leave?"),
    Agent("At nine."),
    Owner("Then we row at eight."),
    Agent("Good."),
)


@pytest.fixture
def home(world: World) -> Iterator[Home]:
    context = world.context()
    yield context
    context.database.close()


def turns(context: Home) -> list[tuple[Speaker, str]]:
    lines = context.sessions.newest(limit=50)
    return [
        (row.turn.speaker, row.turn.text)
        for line in lines
        for row in context.sessions.turns_of(line.row)
    ]


def ingest_path(context: Home, path: Path) -> None:
    ingest(context, IngestOptions(paths=(path,), vectors=False))


TURNS = [(Speaker.OWNER if isinstance(step, Owner) else Speaker.AGENT, step.text) for step in TALK]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "shapes",
    [
        ("cline", "cline/history"),
        ("cline/history", "cline"),
        ("gemini-cli", "gemini-cli/log"),
        ("gemini-cli/log", "gemini-cli"),
    ],
)
def test_session_in_two_files_is_stored_once(
    shapes: tuple[str, str], home: Home, tmp_path: Path
) -> None:
    for shape in shapes:
        transcript = write(tmp_path, shape, TALK)
        ingest_path(home, transcript)
    folder = transcript.parent
    for path in sorted(folder.iterdir()):
        os.utime(path, (1, 1))
        ingest_path(home, folder)
    assert turns(home) == TURNS


@pytest.mark.parametrize("shape", ["copilot-chat", "gemini-cli", "cline", "continue"])
def test_torn_document_keeps_the_turns_read_before(shape: str, home: Home, tmp_path: Path) -> None:
    path = write(tmp_path, shape, TALK[:2])
    ingest_path(home, path)
    whole = write(tmp_path, shape, TALK).read_bytes()
    for torn in (whole[:-9], whole[: len(whole) // 2], b""):
        path.write_bytes(torn)
        report = ingest(home, IngestOptions(paths=(path,), vectors=False))
        assert [problem.path for problem in report.problems] == [str(path)]
        assert turns(home) == TURNS[:2]
    path.write_bytes(whole)
    ingest_path(home, path)
    assert turns(home) == TURNS


@pytest.mark.parametrize("shape", ["copilot-cli", "cursor-transcripts", "aider"])
def test_file_growing_by_partial_lines_yields_each_turn_once(
    shape: str, home: Home, tmp_path: Path
) -> None:
    whole = write(tmp_path, shape, TALK).read_bytes()
    path = write(tmp_path / "live", shape, TALK[:1])
    for end in (*range(len(whole) // 3, len(whole), 97), len(whole)):
        path.write_bytes(whole[:end])
        ingest_path(home, path)
    assert turns(home) == TURNS


def test_restarted_chat_history_keeps_earlier_turns(home: Home, tmp_path: Path) -> None:
    path = write(tmp_path, "aider", TALK)
    ingest_path(home, path)
    restart = "# aider chat started at 2026-11-19 09:00:00\n\n#### Hello again  \n\nHi.\n"
    path.write_text(restart, encoding="utf-8")
    ingest_path(home, path)
    assert sorted(turns(home)) == sorted(
        [*TURNS, (Speaker.OWNER, "Hello again"), (Speaker.AGENT, "Hi.")]
    )


HISTORY = (
    "# aider chat started at 2026-11-18 09:00:00\n\n#### When do the boats leave?  \n\nAt nine.\n\n"
    "#### Then we row at eight.  \n\nGood.\n"
)
EXPORT = (
    '{"role":"user","content":"When do the boats leave?","timestamp":"2026-11-18T09:00:00.000Z"}\n',
    '{"timestamp":"2026-11-18T09:00:00.000Z","type":"session_meta","payload":{"id":"5e55","cwd":"/code/boats"}}\n'
    '{"timestamp":"2026-11-18T09:00:01.000Z","type":"event_msg","payload":'
    '{"type":"user_message","message":"When do the boats leave?"}}\n',
)


@pytest.mark.parametrize(
    ("name", "early", "late", "tools"),
    [
        ("chat.md", HISTORY[:20], HISTORY, ("markdown", "aider")),
        ("notes", "When do", HISTORY, ("text", "aider")),
        ("notes.txt", "Row, row.", "---\ntitle: Boats\n---\n\nRow, row.\n", ("text", "markdown")),
        ("log.jsonl", EXPORT[0], EXPORT[1], ("jsonl", "codex")),
    ],
)
def test_detected_tool_is_corrected_as_the_file_grows(
    name: str, early: str, late: str, tools: tuple[str, str], home: Home, tmp_path: Path
) -> None:
    path = tmp_path / name
    for text, tool in zip((early, late, late + late[-20:]), (*tools, tools[1]), strict=True):
        path.write_text(text, encoding="utf-8")
        ingest_path(home, path)
        assert {line.session.tool for line in home.sessions.newest(limit=50)} == {tool}


LONG_TALK: tuple[Step, ...] = (*TALK, Owner("Bring the red oars."), Agent("I will."))
LONG_TURNS = [
    (Speaker.OWNER if isinstance(step, Owner) else Speaker.AGENT, step.text) for step in LONG_TALK
]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "shape", ["gemini-cli", "gemini-cli/log", "cline", "cline/history", "continue", "claude-code"]
)
@pytest.mark.parametrize("longer_first", [True, False])
def test_two_copies_of_a_session_are_merged(
    shape: str, longer_first: bool, home: Home, tmp_path: Path
) -> None:
    old = write(tmp_path / "old" / "tasks", shape, TALK)
    new = write(tmp_path / "new" / "tasks", shape, LONG_TALK)
    for path in (new, old) if longer_first else (old, new):
        ingest_path(home, path)
    for path in (old, new, old):
        os.utime(path, (1, 1))
        ingest(home, IngestOptions(paths=(path,), vectors=False, force=True))
        assert turns(home) == LONG_TURNS
    assert len(home.sessions.newest()) == 1
    new.unlink()
    os.utime(old, (2, 2))
    ingest_path(home, old)
    assert turns(home) == LONG_TURNS


def test_turns_disappear_only_after_removal_from_every_copy(home: Home, tmp_path: Path) -> None:
    first = write(tmp_path / "a", "gemini-cli", LONG_TALK)
    second = write(tmp_path / "b", "gemini-cli", LONG_TALK)
    ingest_path(home, first)
    ingest_path(home, second)
    write(tmp_path / "b", "gemini-cli", TALK)
    ingest_path(home, second)
    assert turns(home) == LONG_TURNS
    write(tmp_path / "a", "gemini-cli", TALK)
    ingest_path(home, first)
    assert turns(home) == TURNS


@pytest.mark.parametrize("shape", ["gemini-cli", "claude-code"])
def test_old_copy_does_not_shorten_a_longer_message(shape: str, home: Home, tmp_path: Path) -> None:
    new = write(tmp_path / "new", shape, (*TALK[:1], Agent("At nine, when the tide is in.")))
    old = write(tmp_path / "old", shape, (*TALK[:1], Agent("At nine")))
    for path in (old, new, old):
        ingest(home, IngestOptions(paths=(path,), vectors=False, force=True))
    assert turns(home)[1] == (Speaker.AGENT, "At nine, when the tide is in.")
