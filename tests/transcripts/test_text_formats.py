"""Plaud, Markdown and plain text: what people wrote and said outside of any agent tool."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nacre.readers import generic
from nacre.readers.adapter import read_head
from nacre.values.session import Flag, Speaker
from nacre_extras import plaud

ADAPTERS = (plaud.ADAPTER, generic.ADAPTER_MARKDOWN, generic.ADAPTER_PLAIN_TEXT)


def tool_of(path: Path) -> str | None:
    head = read_head(path)
    return next((adapter.tool for adapter in ADAPTERS if adapter.sniff(head)), None)


TALKS = {
    "a line of its own": "00:00:05 Speaker 1\nWe plant oaks.\n\n00:00:09 Speaker 2\nOr beeches?\n\n"
    "00:01:10 Speaker 1\nOaks.",
    "in brackets": "[00:00:05] Speaker 1: We plant oaks.\n[00:00:09] Speaker 2: Or beeches?\n"
    "[00:01:10] Speaker 1: Oaks.",
    "after the name": "Speaker 1  00:00:05\nWe plant oaks.\nSpeaker 2  00:00:09\nOr beeches?\n"
    "Speaker 1  00:01:10\nOaks.",
    "bold": "**Speaker 1:** We plant oaks.\n\n**Speaker 2:** Or beeches?\n\n**Speaker 1:** Oaks.",
    "subtitles": "1\n00:00:05,000 --> 00:00:08,000\nSpeaker 1: We plant oaks.\n\n"
    "2\n00:00:09,000 --> 00:00:11,000\nSpeaker 2: Or beeches?\n\n"
    "3\n00:01:10,000 --> 00:01:12,000\nSpeaker 1: Oaks.\n",
}


@pytest.mark.parametrize("text", TALKS.values(), ids=TALKS)
def test_recorded_talk_is_read_with_its_speakers(text: str, read: Any, write: Any) -> None:
    path = write("2026-04-02 1030 - Forest - plans.txt", text)
    assert tool_of(path) == "plaud"
    sessions, turns, _ = read(plaud.ADAPTER, path)
    assert [(turn.author, turn.text) for turn in turns] == [
        ("Speaker 1", "We plant oaks."),
        ("Speaker 2", "Or beeches?"),
        ("Speaker 1", "Oaks."),
    ]
    assert {turn.speaker for turn in turns} == {Speaker.OWNER}
    assert sessions[0].started == datetime(2026, 4, 2, 10, 30, tzinfo=UTC)
    assert len(sessions) == 1


def test_times_in_a_talk_count_from_its_start(read: Any, write: Any) -> None:
    _, turns, _ = read(plaud.ADAPTER, write("2026-04-02 10_30_00.txt", TALKS["in brackets"]))
    assert turns[2].time == datetime(2026, 4, 2, 10, 31, 10, tzinfo=UTC)


def test_talk_without_a_date_has_no_times(read: Any, write: Any) -> None:
    _, turns, _ = read(plaud.ADAPTER, write("04-02 Forest-transcript.txt", TALKS["in brackets"]))
    assert {turn.time for turn in turns} == {None}


def test_consecutive_lines_of_a_speaker_form_a_single_turn(read: Any, write: Any) -> None:
    text = "[00:00:05] Ana: We plant\n[00:00:06] Ana: oaks.\n[00:00:09] Bo: Yes.\n[00:00:12] Ana: Good."
    _, turns, _ = read(plaud.ADAPTER, write("talk.txt", text))
    assert [turn.text for turn in turns] == ["We plant\noaks.", "Yes.", "Good."]


def test_moved_talk_keeps_its_session(read: Any, write: Any) -> None:
    first, _, _ = read(plaud.ADAPTER, write("a/2026-04-02 10_30_00.txt", TALKS["bold"]))
    moved, _, _ = read(plaud.ADAPTER, write("b/2026-04-02 10_30_00 forest.txt", TALKS["bold"]))
    assert first[0].native_id == moved[0].native_id


def test_a_diary_with_times_is_not_taken_for_a_talk(write: Any) -> None:
    diary = "09:15 Planted two oaks\n10:40 Watered them\n11:05 Repaired the fence\n12:00 Lunch\n"
    assert tool_of(write("diary.txt", diary)) == "text"


NOTE = """---
title: Forest plan
date: 2026-04-02
tags: [forest, oaks]
---
Some words first.

# Trees

## Oaks

They grow slowly.

```sh
# not a heading
```

## Beeches

They like shade.
"""


def test_note_has_one_turn_per_section(read: Any, write: Any) -> None:
    path = write("forest.md", NOTE)
    assert tool_of(path) == "markdown"
    sessions, turns, _ = read(generic.ADAPTER_MARKDOWN, path)
    assert [turn.text.splitlines()[0] for turn in turns] == [
        "Some words first.",
        "Trees",
        "Beeches",
    ]
    assert "# not a heading" in turns[1].text
    assert {turn.speaker for turn in turns} == {Speaker.OWNER}
    assert (sessions[0].title, sessions[0].label) == ("Forest plan", "forest, oaks")
    assert turns[0].time == datetime(2026, 4, 2, tzinfo=UTC)


def test_note_without_front_matter_is_named_by_its_heading(read: Any, write: Any) -> None:
    sessions, turns, _ = read(
        generic.ADAPTER_MARKDOWN, write("2026-04-03 x.md", "# Ferns\n\nThey unroll.\n")
    )
    assert (sessions[0].title, turns[0].time) == ("Ferns", datetime(2026, 4, 3, tzinfo=UTC))


def test_invalid_yaml_front_matter_is_text(read: Any, write: Any) -> None:
    _, turns, _ = read(generic.ADAPTER_MARKDOWN, write("x.md", "---\n: [\n---\nWords.\n"))
    assert turns[0].text.endswith("Words.")


def test_edited_note_stays_a_single_session(read: Any, write: Any) -> None:
    before, _, _ = read(generic.ADAPTER_MARKDOWN, write("forest.md", NOTE))
    after, _, _ = read(
        generic.ADAPTER_MARKDOWN, write("forest.md", NOTE.replace("Some words", "Other words"))
    )
    elsewhere, _, _ = read(generic.ADAPTER_MARKDOWN, write("other/forest.md", NOTE))
    assert before[0].native_id == after[0].native_id
    assert before[0].native_id != elsewhere[0].native_id


SPECSTORY = """<!-- Generated by SpecStory, Markdown v2.1.0 -->

# 2026-04-02 10:30:00Z

<!-- Claude Code Session 0f0f0f0f-1a1a-4b4b-8c8c-3d3d3d3d3d3d (2026-04-02 10:30:00Z) -->

_**User (2026-04-02 10:30:00Z)**_

<command-name>/model</command-name>
            <command-message>model</command-message>
            <command-args></command-args>

---

_**User (2026-04-02 10:30:00Z)**_

<local-command-stdout>Set model to nova</local-command-stdout>

---

_**User (2026-04-02T10:31:00Z)**_

<command-message>prune</command-message>
<command-name>/prune</command-name>

---

_**User (2026-04-02T10:31:00.512Z)**_

You are a gardener. Always cut above a bud.

---

_**Agent (nova 2026-04-02 10:31:09Z)**_

<think><details>hm</details></think>

I look at the oaks.

_**Agent (nova 2026-04-02 10:31:10Z)**_

<tool-use data-tool-type="generic" data-tool-name="Skill"><details>
_**User**_

Never prune.
</details></tool-use>

---

_**User (2026-04-02 10:31:12Z)**_

Base of the skill: always cut in winter.

---

_**User - sidechain (2026-04-02 10:31:13Z)**_

Count the oaks.

---

_**User (2026-04-02 10:32:00Z)**_

[Request interrupted by user]

---

_**User (2026-04-02 10:33:00Z)**_

Where do oaks grow?
"""


def test_specstory_session_contains_only_typed_words_of_the_owner(read: Any, write: Any) -> None:
    path = write("wood/.specstory/history/2026-04-02.md", SPECSTORY)
    assert tool_of(path) == "markdown"
    sessions, turns, _ = read(generic.ADAPTER_MARKDOWN, path)
    assert [(turn.speaker, turn.text) for turn in turns] == [
        (Speaker.OWNER, "/prune"),
        (Speaker.AGENT, "I look at the oaks."),
        (Speaker.AGENT, "Count the oaks."),
        (Speaker.OWNER, "Where do oaks grow?"),
    ]
    assert turns[-1].time == datetime(2026, 4, 2, 10, 33, tzinfo=UTC)
    session = sessions[0]
    assert (session.native_id, session.title) == ("0f0f0f0f-1a1a-4b4b-8c8c-3d3d3d3d3d3d", None)
    assert session.cwd == str(path.parents[2])


FERNS, DRY = "Where do ferns grow?", "Ferns love dry places."
CHATS = {
    "headings": f"# Ferns\n\n**Session ID:** ses_x1\n**Created:** 4/2/2026, 9:00:05 AM\n\n---\n\n"
    f"## User\n\n{FERNS}\n\n---\n\n## Assistant (Build · nova · 3.2s)\n\n{DRY}\n",
    "emoji and times": f"---\n\n**[2026-04-02 09:00:05]**\n\n### 👤 User\n\n{FERNS}\n\n---\n\n"
    f"**[2026-04-02 09:00:09]**\n\n### 🤖 Assistant (nova)\n\n{DRY}\n",
    "numbers": f"# Talk\n\n### 1. user (2026-04-02T09:00:05Z)\n\n{FERNS}\n\n### 2. assistant\n\n{DRY}",
    "name of the model": f"## USER 🧑‍💻\n\n{FERNS}\n\n---\n\n## MODEL ✨\n\n{DRY}\n",
    "unknown agent": f"# Ferns\n\n---\n\n**User**\n\n{FERNS}\n\n---\n\n**Marigold**\n\n{DRY}\n",
    "known agent": f"# Ferns\n\n# You\n\n{FERNS}\n\n# Claude\n\n{DRY}\n",
    "time below": f"## Prompt:\n02/04/2026 09:00:05\n\n{FERNS}\n\n## Response:\n\n{DRY}\n",
    "in a line": f"**Human**: {FERNS}\n\n**GPT**: {DRY}\n",
    "plain": f"User: {FERNS}\nAssistant: {DRY}\n",
    "brackets": f"[User] {FERNS}\n[Assistant] {DRY}\n",
    "terminal": f" ▐▛███▜▌   Claude Code\n\n❯ {FERNS}\n\n⏺ {DRY}\n",
    "older terminal": f"> {FERNS}\n\n● {DRY}\n",
    "fence of the agent": f"## User\n\n{FERNS}\n\n## Assistant\n\n{DRY}\n```\n## User\n\nHi.\n```\n",
    "fence of the owner": f"## User\n\n{FERNS}\n```\n\n## Assistant\n\n{DRY}\n",
    "alerts": f"# 🤖 Transcript\n🕒 2026-04-02 09:00:05\nSession ID: `ses_x1`\n\n"
    f"> [!IMPORTANT]\n> {FERNS}\n\n{DRY}\n\n> [!WARNING]\n> Hi.\n",
    "tool output with an emoji": f"### 👤 User\n\n{FERNS}\n\n### 🤖 Assistant\n\n{DRY}\n\n"
    "### 👤 User\n\n\n📊 **Tool Result:**\n```\nHi.\n```\n",
    "headings of the agent": f"# Soil\n\n# Claude\n\n**User**\n\n{FERNS}\n\n**Assistant**\n\n{DRY}\n\n"
    "# Soil\n\n# Claude\n\nHo.\n",
    "terminal of the agent": f"## User\n\n{FERNS}\n\n## Assistant\n\n{DRY}\n\n❯ Hi.\n\n⏺ Ho.\n\n"
    "> [!IMPORTANT]\n> Hi.\n",
    "tool output": f"## User\n\n{FERNS}\n\n### Tool Result\n\nHi.\n\n## Assistant\n\n{DRY}\n",
}


@pytest.mark.parametrize("text", CHATS.values(), ids=CHATS)
def test_headings_of_an_exported_chat_decide_the_speaker(text: str, read: Any, write: Any) -> None:
    path = write("chat.md", text)
    assert tool_of(path) == "markdown"
    for adapter in ADAPTERS[1:]:
        sessions, turns, _ = read(adapter, path)
        assert [
            (turn.speaker, turn.text.removesuffix("\n```").partition("\n")[0]) for turn in turns
        ] == [(Speaker.OWNER, FERNS), (Speaker.AGENT, DRY)]
        started = sessions[0].started or turns[0].time
        known = "2026" in text
        assert (started == datetime(2026, 4, 2, 9, 0, 5, tzinfo=UTC)) is known
        assert (sessions[0].native_id == "ses_x1") is ("ses_x1" in text)


def test_agents_sections_of_a_note_are_not_the_owners(read: Any, write: Any) -> None:
    text = (
        "# Ferns\n\nThey unroll.\n\n## User\n\nPeople.\n\n## Soil\n\nDry.\n\n"
        "## Assistant\n\nWater.\n\n### More\n\nRain.\n\n## Light\n\nShade.\n"
    )
    _, turns, _ = read(generic.ADAPTER_MARKDOWN, write("ferns.md", text))
    assert [(turn.speaker is Speaker.OWNER, turn.text.splitlines()[-1]) for turn in turns] == [
        (True, "They unroll."),
        (True, "People."),
        (True, "Dry."),
        (False, "Rain."),
        (True, "Shade."),
    ]


def test_plain_text_is_split_into_turns_of_limited_length(read: Any, write: Any) -> None:
    paragraphs = [f"Paragraph {number} " + "about oaks " * 40 for number in range(12)]
    path = write("notes.txt", "\n\n".join([*paragraphs, "long " * 2_000]))
    assert tool_of(path) == "text"
    sessions, turns, _ = read(generic.ADAPTER_PLAIN_TEXT, path)
    assert all(len(turn.text) <= generic.TURN_CHARACTERS for turn in turns)
    words = " ".join(turn.text for turn in turns).split()
    assert words == path.read_text(encoding="utf-8").split()
    assert len({turn.id for turn in turns}) == len(turns)
    assert sessions[0].title == "notes"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"  \n\n",
        b"PNG\x00\x01\x02",
        bytes(range(128, 256)) * 9,
        b'{"a": 1}\n',
        "Wörter".encode("utf-16"),
    ],
    ids=["empty", "blank", "binary", "undecodable", "data", "utf-16"],
)
def test_binary_content_is_not_text(content: bytes, write: Any) -> None:
    assert tool_of(write("thing.bin", content)) is None


def test_text_in_other_scripts_is_text(read: Any, write: Any) -> None:
    path = write("笔记.txt", "我们种橡树。\n\n" * 3_000)
    assert tool_of(path) == "text"
    assert read(generic.ADAPTER_PLAIN_TEXT, path)[1]


@pytest.mark.parametrize(
    "adapter",
    [generic.ADAPTER_MARKDOWN, generic.ADAPTER_PLAIN_TEXT],
    ids=lambda adapter: adapter.tool,
)
def test_nacre_context_is_removed(adapter: Any, read: Any, write: Any) -> None:
    text = "<nacre-context>Oaks are tall.</nacre-context>\nPlant them."
    _, turns, _ = read(adapter, write("x.md", text))
    assert (turns[0].text, turns[0].flags) == ("Plant them.", Flag.INJECTED)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.tool)
def test_file_without_text_yields_nothing(adapter: Any, read: Any, write: Any) -> None:
    assert read(adapter, write("x.md", "\n \n"))[:2] == ([], [])


@pytest.mark.parametrize("text", TALKS.values(), ids=TALKS)
def test_recorded_talk_without_the_plugin_is_not_owner_text(text: str, write: Any) -> None:
    head = read_head(write("2026-04-02 Forest Meeting.md", text))
    assert not any(adapter.sniff(head) for adapter in ADAPTERS[1:])
