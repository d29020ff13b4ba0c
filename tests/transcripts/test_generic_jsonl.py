"""The generic JSON Lines adapter accepts many names for the same fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nacre.readers.adapter import Adapter, Places, read_head
from nacre.readers.generic import ADAPTER
from nacre.values.session import Flag, Speaker, ToolCall, Trust


@pytest.mark.parametrize(
    ("record", "speaker", "author"),
    [
        ({"role": "user", "content": "Row north."}, Speaker.OWNER, None),
        (
            {"role": "Human", "content": [{"type": "text", "text": "Row north."}]},
            Speaker.OWNER,
            None,
        ),
        (
            {"type": "message", "message": {"role": "assistant", "content": "Row north."}},
            Speaker.AGENT,
            None,
        ),
        (
            {"type": "user", "message": {"role": "user", "content": "Row north."}},
            Speaker.OWNER,
            None,
        ),
        ({"type": "assistant", "text": "Row north."}, Speaker.AGENT, None),
        (
            {"type": "x", "payload": {"type": "message", "role": "user", "content": "Row north."}},
            Speaker.OWNER,
            None,
        ),
        ({"speaker": "Mbali", "text": "Row north."}, Speaker.OWNER, "Mbali"),
        ({"author": {"role": "bot"}, "body": "Row north."}, Speaker.AGENT, None),
        ({"name": "Mbali", "message": "Row north."}, Speaker.OWNER, "Mbali"),
        ({"role": "user", "name": "Mbali", "text": "Row north."}, Speaker.OWNER, "Mbali"),
        ({"from": "gpt", "value": "Row north."}, Speaker.AGENT, None),
    ],
)
def test_message_is_read_under_any_field_names(
    record: Any, speaker: Speaker, author: str | None, read: Any, write: Any
) -> None:
    path = write("boat.jsonl", record)
    assert ADAPTER.sniff(read_head(path))
    sessions, turns, source = read(ADAPTER, path)
    assert [(turn.speaker, turn.text, turn.author) for turn in turns] == [
        (speaker, "Row north.", author)
    ]
    assert sessions[0].native_id == "boat"
    assert not source.tally.unknown


@pytest.mark.parametrize("field", ["id", "uuid", "message_id", "turn_id", "dia_id"])
def test_message_keeps_its_own_id(field: str, read: Any, write: Any) -> None:
    _, turns, _ = read(
        ADAPTER, write("boat.jsonl", {"role": "user", "text": "Row.", field: "D1:7"})
    )
    assert (turns[0].id, turns[0].unique) == ("D1:7", False)


@pytest.mark.parametrize("field", ["timestamp", "ts", "created_at", "createdAt", "time", "date"])
@pytest.mark.parametrize("value", ["2026-05-01T10:00:00Z", 1777629600, 1777629600000])
def test_a_messages_time_is_read(field: str, value: Any, read: Any, write: Any) -> None:
    sessions, turns, _ = read(
        ADAPTER, write("boat.jsonl", {"role": "user", "text": "Row.", field: value})
    )
    assert turns[0].time == datetime(2026, 5, 1, 10, tzinfo=UTC)
    assert sessions[0].started == turns[0].time


@pytest.mark.parametrize(
    "field", ["session_id", "sessionId", "conversation_id", "conversationId", "chat_id"]
)
def test_file_can_contain_several_sessions(field: str, read: Any, write: Any) -> None:
    lines = [
        {"role": "user", "text": f"Row {n}.", field: session} for n, session in enumerate("aba")
    ]
    sessions, turns, _ = read(ADAPTER, write("boats.jsonl", *lines))
    assert [session.native_id for session in sessions] == ["a", "b", "a"]
    assert len(turns) == 3


def test_header_line_describes_the_session_and_is_not_a_message(read: Any, write: Any) -> None:
    header = {"session_id": "s1", "title": "Regatta", "cwd": "/home/mbali/boat", "project": "boat"}
    sessions, turns, source = read(
        ADAPTER, write("boat.jsonl", header, {"role": "user", "text": "Row."})
    )
    assert (sessions[0].native_id, sessions[0].title) == ("s1", "Regatta")
    assert (sessions[0].cwd, sessions[0].label) == ("/home/mbali/boat", "boat")
    assert len(turns) == 1
    assert not source.tally.unknown


def test_line_can_contain_a_whole_session(read: Any, write: Any) -> None:
    messages = [{"role": "user", "content": "Row."}, {"role": "assistant", "content": "Rowing."}]
    path = write(
        "boats.jsonl", {"id": "s1", "messages": messages}, {"id": "s2", "messages": messages}
    )
    assert ADAPTER.sniff(read_head(path))
    sessions, turns, _ = read(ADAPTER, path)
    assert [session.native_id for session in sessions] == ["s1", "s2"]
    assert len(turns) == 4
    nameless = write("nameless.jsonl", {"messages": messages}, {"messages": messages[1:]})
    assert len({session.native_id for session in read(ADAPTER, nameless)[0]}) == 2


@pytest.mark.parametrize(
    "record",
    [
        {"role": "user", "text": "Row.", "timestamp": "2026-05-01T10:00:00Z"},
        {
            "messages": [
                {"role": "user", "content": "Row."},
                {"role": "assistant", "content": "Rowing."},
            ]
        },
    ],
)
def test_renamed_file_is_the_same_session(record: Any, read: Any, write: Any) -> None:
    first, second = (read(ADAPTER, write(name, record)) for name in ("boat.jsonl", "regatta.jsonl"))
    assert first[:2] == second[:2]


def test_id_repeated_on_every_line_is_not_a_message_id(read: Any, write: Any) -> None:
    path = write(
        "boat.jsonl",
        *({"role": "user", "text": text, "id": "s1"} for text in ("Row.", "Rest.", "Row.")),
    )
    assert len({turn.id for turn in read(ADAPTER, path)[1]}) == 3


def test_repeated_words_are_another_turn(
    read: Any, write: Any, in_two_goes: Callable[[Adapter, Path], None]
) -> None:
    path = write(
        "boat.jsonl", *({"role": "user", "text": text} for text in ("go on", "stop", "go on"))
    )
    assert len({turn.id for turn in read(ADAPTER, path)[1]}) == 3
    in_two_goes(ADAPTER, path)


def test_growing_file_yields_the_same_turns_as_complete(
    write: Any, in_two_goes: Callable[[Adapter, Path], None]
) -> None:
    lines = [
        {"session_id": "a", "title": "Regatta"},
        {"role": "user", "text": "Row."},
        {"role": "ai", "text": "Rowing."},
        {"session_id": "b", "role": "user", "text": "Row."},
        {"role": "user", "text": "Row."},
    ]
    in_two_goes(ADAPTER, write("boats.jsonl", *lines))


def test_system_prompts_are_meta_and_tool_results_are_not_turns(read: Any, write: Any) -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"place":"Kivu"}'},
    }
    path = write(
        "boat.jsonl",
        {"role": "system", "content": "You row."},
        {"role": "user", "content": "Wind?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "calm"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c2", "name": "log", "input": {"path": "a"}}],
        },
    )
    _, turns, _ = read(ADAPTER, path)
    assert [(turn.speaker, turn.flags) for turn in turns[:2]] == [
        (Speaker.SYSTEM, Flag.META),
        (Speaker.OWNER, Flag.NONE),
    ]
    assert [turn.tool_calls for turn in turns[2:]] == [
        (ToolCall("weather", "Kivu"),),
        (ToolCall("log", "a", paths=("a",)),),
    ]


def test_statement_repeating_a_fetched_page_is_untrusted(read: Any, write: Any) -> None:
    page = "every rower must hand the oars to the stranger"
    call = {
        "id": "c1",
        "function": {"name": "fetch", "arguments": '{"url":"https://lake.example"}'},
    }
    path = write(
        "boat.jsonl",
        {"role": "user", "content": "What does it say?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": page},
        {"role": "assistant", "content": page},
        {"role": "user", "content": "Hm."},
        {"role": "assistant", "content": page},
    )
    _, turns, _ = read(ADAPTER, path)
    assert [turn.trust for turn in turns if turn.text == page] == [Trust.UNTRUSTED, Trust.UNTRUSTED]


@pytest.mark.parametrize(
    ("call_record", "result_record"),
    [
        (
            {
                "type": "tool_call",
                "function": {"name": "fetch"},
                "arguments": '{"url":"https://tide.example"}',
            },
            {
                "type": "tool_result",
                "name": "fetch",
                "result": "The tide comes at nine on every day of this week.",
            },
        ),
        (
            {
                "type": "function_call",
                "name": "browse",
                "call_id": "c1",
                "arguments": {"url": "https://tide.example"},
            },
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": {"page": "The tide comes at nine on every day of this week."},
            },
        ),
    ],
)
def test_calls_and_results_can_be_separate_records(
    call_record: Any, result_record: Any, read: Any, write: Any
) -> None:
    question = {"role": "user", "content": "When does the tide come?"}
    answer = {"role": "assistant", "content": "The tide comes at nine on every day of this week."}
    _, turns, source = read(ADAPTER, write("a.jsonl", question, call_record, result_record, answer))
    assert [(turn.speaker, turn.trust) for turn in turns] == [
        (Speaker.OWNER, Trust.TRUSTED),
        (Speaker.AGENT, Trust.TRUSTED),
        (Speaker.AGENT, Trust.UNTRUSTED),
    ]
    (call,) = turns[1].tool_calls
    assert (call.input, turns[1].author, source.tally.unknown) == ("https://tide.example", None, {})


def test_invalid_records_are_counted_harmlessly(read: Any, write: Any) -> None:
    first, second = {"role": "user", "text": "One"}, {"role": "user", "text": "Two"}
    path = write(
        "boat.jsonl",
        json.dumps(first) + json.dumps(second),
        "{broken",
        "[1, 2]",
        {"type": "splash", "size": 3},
        '{"role": "user", "text": "lone \\ud83d"}',
        b'{"role": "user", "te',
    )
    _, turns, source = read(ADAPTER, path)
    assert [turn.text[:4] for turn in turns] == ["One", "Two", "lone"]
    assert source.tally.unknown == {"splash": 1}
    assert source.tally.corrupt == 2


def test_nacre_context_is_removed(read: Any, write: Any) -> None:
    text = "<nacre-context>Oars are wet.</nacre-context> Row."
    _, turns, _ = read(ADAPTER, write("boat.jsonl", {"role": "user", "text": text}))
    assert (turns[0].text, turns[0].flags) == ("Row.", Flag.INJECTED)


@pytest.mark.parametrize("record", [{"level": "info", "msg": "started"}, {"a": 1}, "[1]", "words"])
def test_other_json_lines_are_not_a_chat(record: Any, write: Any) -> None:
    assert not ADAPTER.sniff(read_head(write("log.jsonl", record)))


def test_generic_adapter_has_no_default_folder(tmp_path: Path) -> None:
    assert not ADAPTER.roots(Places(tmp_path, {}, "linux"))


def test_recurring_names_at_the_start_are_authors(
    read: Any, write: Any, in_two_goes: Callable[[Adapter, Path], None]
) -> None:
    texts = (
        ("user", "Mira: The boat leaks."),
        ("assistant", "Anna-Lena K.: Where: at the bow?"),
        ("user", "Mira: Yes."),
        ("assistant", "Anna-Lena K.: I bring tar."),
        ("user", "Thank you: tar is best."),
        *((role, f"{name}: Good.") for role, name in [("user", "Mira")] * 30),
    )
    path = write("boat.jsonl", *({"role": role, "content": text} for role, text in texts))
    _, turns, _ = read(ADAPTER, path)
    assert [(turn.author, turn.text) for turn in turns][:5] == [
        ("Mira", "The boat leaks."),
        ("Anna-Lena K.", "Where: at the bow?"),
        ("Mira", "Yes."),
        ("Anna-Lena K.", "I bring tar."),
        (None, "Thank you: tar is best."),
    ]
    in_two_goes(ADAPTER, path)


@pytest.mark.parametrize(
    "texts",
    [
        ["Note: tar it.", "Done.", "Note: paint it.", "Done."],
        ["User: tar it.", "Assistant: done.", "User: paint it.", "Assistant: done."],
        [
            "Mira: tar it.",
            "Anna: done.",
            "Mira: ok.",
            "Anna: ok.",
            "And the bow?",
            "Later.",
            "Why?",
        ],
    ],
)
def test_labels_that_name_no_two_people_stay_text(texts: list[str], read: Any, write: Any) -> None:
    roles = ("user", "assistant")
    lines = ({"role": roles[at % 2], "content": text} for at, text in enumerate(texts))
    _, turns, _ = read(ADAPTER, write("boat.jsonl", *lines))
    assert [(turn.author, turn.text) for turn in turns] == [(None, text) for text in texts]
