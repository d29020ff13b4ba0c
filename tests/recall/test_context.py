"""The pure parts of a context: what is looked for with a prompt, and how memories share a budget."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.context.build import PROMPT_CHARACTERS, RECENT_PROMPTS, add_prompt, query_of
from nacre.context.categories import SHARES, cut_to_fit
from nacre.recall.question import parts_of

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("", "empty"),
        ("/compact keep the plan", "a command of the host"),
        ("!git status", "a command of the host"),
        ("```\nKeyError: 1\n```", "nothing but pasted text"),
        ("npm ERR! code ENOENT\nnpm ERR! syscall open", "nothing but pasted text"),
        ("src/app.ts:12:5 - error TS2304: Cannot find name", "nothing but pasted text"),
        ("Yes please, go ahead!", "nothing in it to look for"),
        ("no problem, keep going", "nothing in it to look for"),
        ("嗯嗯，好的，继续吧", "nothing in it to look for"),
        ("alles klar, mach weiter", "nothing in it to look for"),
        ("1500", "nothing in it to look for"),
        ("🎉🎉", "nothing in it to look for"),
    ],
)
def test_some_prompts_produce_no_query(prompt: str, why: str) -> None:
    assert query_of(prompt) == ("", why)


@pytest.mark.parametrize(
    "prompt",
    [
        "continue with the ledger",
        "no, use the other port",
        "/home/ada/notes.md is outdated",
        "可是数据库呢",
        "why?",
    ],
)
def test_other_prompts_are_queried_verbatim(prompt: str) -> None:
    assert query_of(prompt)[0] == prompt


def test_pasted_text_is_excluded_from_the_query() -> None:
    prompt = 'the import fails:\n```\nTraceback\n```\n  File "ledger.py", line 3\nwhat did we do about it last time?'
    assert query_of(prompt)[0] == "the import fails:\nwhat did we do about it last time?"


def test_prompt_with_a_back_reference_includes_the_previous_prompt() -> None:
    heard = add_prompt((), "which database does billing use?")
    assert query_of("and for the archive?", prompts=heard)[0].endswith(
        "which database does billing use?"
    )
    assert query_of("why?", before=heard[0], prompts=heard)[1] == "asked just now"
    assert (
        query_of("rename the column of the archive to ledger_id", prompts=heard)[0].count("\n") == 0
    )


def test_last_prompts_are_kept_short_and_without_nods() -> None:
    heard: tuple[str, ...] = ()
    for number in range(9):
        heard = add_prompt(heard, f"prompt {number} " + 500 * "x")
        heard = add_prompt(heard, "ok, go on")
    assert len(heard) == RECENT_PROMPTS
    assert heard[-1].startswith("prompt 8")
    assert all(len(said) <= PROMPT_CHARACTERS for said in heard)


def test_long_prompt_is_split_and_keeps_its_ends() -> None:
    assert parts_of("rename the column") == []
    assert parts_of("Write the migration, then run it on staging. Thanks!") == [
        "Write the migration",
        "run it on staging.",
    ]
    many = "\n".join(f"this is sentence {number}" for number in range(30))
    assert [part[-2:].strip() for part in parts_of(many)] == ["0", "1", "2", "28", "29"]


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=400), st.lists(st.text(max_size=60), max_size=3))
def test_any_prompt_yields_a_query_or_a_reason(prompt: str, heard: list[str]) -> None:
    query, why = query_of(prompt, before=heard[0] if heard else "", prompts=heard)
    assert bool(query) != bool(why)
    assert all(part.strip() for part in parts_of(query))


def test_section_shares_sum_to_one() -> None:
    assert sum(SHARES.values()) == pytest.approx(1)


def test_page_is_truncated_at_a_line_or_omitted() -> None:
    lines = [f"> line {number}" for number in range(10)]
    assert cut_to_fit(lines, 1000) == lines
    assert cut_to_fit(lines, 9) == ["> line 0", "> line 1", "> …"]
    assert cut_to_fit(lines, 2) == []
