"""The bundled example sessions have real formats, are read completely, and yield their statements."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from nacre.learn.extract import extract
from nacre.readers.adapter import read_head
from nacre.readers.registry import find_adapter, get_adapter
from nacre.setup.examples import ExampleFile, example_files
from nacre.values.memory import Kind
from nacre.values.session import Action, Flag, SessionKind, Speaker, ToolCall, Trust

EXAMPLES = tuple(example_files())

STATEMENTS = [
    ("use SQLite for the readings, not PostgreSQL", Kind.DECISION),
    ("Always store timestamps in UTC", Kind.PREFERENCE),
    ("integers in grams, never floats", None),
    ("inserting a reading has to be idempotent", None),
    ("go with Pagefind instead of a hosted search", Kind.DECISION),
    ("run `npm run check` before every commit", Kind.PREFERENCE),
    ("the voicing to the 43 scores", Kind.TODO),
    ("modems of all gateways are off from 23:00 to 05:00", Kind.FACT),
    ("more than 1500 g within an hour", Kind.DECISION),
    ("alert me about a single missing reading", Kind.PREFERENCE),
    ("Never commit rendered PDFs", Kind.PREFERENCE),
    ("commit hash in the key of the LilyPond cache", None),
    ("I prefer one topic each", Kind.PREFERENCE),
    ("section leaders about larger print", Kind.TODO),
    ("moving from SQLite to PostgreSQL", Kind.DECISION),
    ("no ORM", None),
    ("Never run a migration", Kind.PREFERENCE),
    ("标题保存中文原文", Kind.DECISION),
    ("一律用思源宋体排版", Kind.PREFERENCE),
    ("拼音都要标声调", Kind.PREFERENCE),
    ("always put the English text first", Kind.PREFERENCE),
    ("授权书扫描归档", Kind.TODO),
]
"""The statements of the examples' owner, with their kinds if these are certain."""


def example_id(example: ExampleFile) -> str:
    return example.name


@pytest.fixture
def put(tmp_path: Path) -> Callable[[ExampleFile], Path]:
    def write(example: ExampleFile) -> Path:
        path = tmp_path / example.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(example.data)
        return path

    return write


def test_three_tools_have_two_example_sessions_each() -> None:
    tools = Counter(example.name.partition("/")[0] for example in EXAMPLES)
    assert tools == {"claude-code": 2, "codex": 2, "openclaw": 2}


@pytest.mark.parametrize("example", EXAMPLES, ids=example_id)
def test_example_is_read_completely_by_its_tools_adapter(
    example: ExampleFile, put: Any, read: Any
) -> None:
    path = put(example)
    adapter = find_adapter(read_head(path))
    assert adapter is get_adapter(example.name.partition("/")[0])
    sessions, turns, source = read(adapter, path)
    assert (dict(source.tally.unknown), source.tally.corrupt, source.tally.oversized) == ({}, 0, 0)
    assert {session.kind for session in sessions} == {SessionKind.MAIN}
    assert {session.id for session in sessions} == {sessions[-1].id}
    assert len({turn.id for turn in turns}) == len(turns)
    assert all(turn.trust is Trust.TRUSTED for turn in turns)
    assert {turn.time.year for turn in turns if turn.time} == {2026}
    assert {turn.time.month for turn in turns if turn.time} <= {10, 11}


@pytest.mark.parametrize("example", EXAMPLES, ids=example_id)
def test_example_is_short_and_has_a_tool_conforming_file_name(example: ExampleFile) -> None:
    records = [json.loads(line) for line in example.data.splitlines()]
    assert 10 <= len(records) <= 40
    stem = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=\.jsonl\Z)", example.name)
    assert stem
    assert UUID(stem[0]).version == 4
    assert {
        value
        for line in example.data.splitlines()
        for value in re.findall(rb'"cwd":"([^"]*)"', line)
    } <= {
        b"/home/me/hivelog",
        b"/home/me/choirbook",
    }


def test_harness_noise_is_not_attributed_to_the_owner(put: Any, read: Any) -> None:
    words, flags = [], Flag.NONE
    for example in EXAMPLES:
        adapter = get_adapter(example.name.partition("/")[0])
        _, turns, _ = read(adapter, put(example))
        words += [turn.text for turn in turns if turn.speaker is Speaker.OWNER]
        for turn in turns:
            flags |= turn.flags
    noise = re.compile(
        r"system-reminder|<command|HEARTBEAT|untrusted metadata|message_id|environment_context|\[Tele"
    )
    assert [text for text in words if noise.search(text)] == []
    assert len(words) == len(set(words))
    assert flags == Flag.META | Flag.SIDECHAIN


def test_failed_command_keeps_its_outcome(put: Any, read: Any) -> None:
    calls: list[ToolCall] = []
    for example in EXAMPLES:
        _, turns, _ = read(get_adapter(example.name.partition("/")[0]), put(example))
        calls += [call for turn in turns for call in turn.tool_calls]
    failed = [
        call for call in calls if call.failed and call.input == "npm run build 2>&1 | tail -3"
    ]
    assert [(call.action, call.outcome) for call in failed] == [(Action.RUN, "exit 1")]
    assert all(call.error for call in failed)
    assert {call.outcome for call in calls} == {"ok", "exit 1"}


def test_example_sessions_yield_only_the_owners_statements(put: Any, read: Any) -> None:
    contents = []
    for example in EXAMPLES:
        sessions, turns, _ = read(get_adapter(example.name.partition("/")[0]), put(example))
        contents += extract(sessions[-1], turns)
    matching = {
        words: [item for item in contents if words in item.content] for words, _ in STATEMENTS
    }
    assert [words for words, memories in matching.items() if not memories] == []
    kinds = {words: kind for words, kind in STATEMENTS if kind}
    assert {words: matching[words][0].kind for words in kinds} == kinds
    expected = [memory for memories in matching.values() for memory in memories]
    assert [item.content for item in contents if item not in expected] == []
