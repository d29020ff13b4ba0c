"""Memories read like something a person wrote: sentences without labels, names as they are spelled."""

from __future__ import annotations

import pytest

from nacre.values.memory import Kind
from nacre.values.session import Turn
from tests.extract.conftest import agent, memories, only, owner
from tests.extract.test_concluded import PLAN, asked, solved


def lesson(report: str, trouble: str = "can you debug the importer?") -> str:
    return only(*solved(owner("great, commit"), trouble=trouble, report=report)).content


def test_a_cause_has_no_label_before_it() -> None:
    cause = "`drain()` only saw the first batch, because the reader closes the queue after each file."
    assert lesson(f"Bug: {cause}") == cause


def test_all_causes_are_told_before_the_fix() -> None:
    first = "The lost rows stemmed from two writers on one file, and neither of them took the lock."
    second = "The nightly job was started twice because both hosts have the timer."
    fix = "Fixed it by giving the timer to one host only."
    assert lesson(f"{first}\n\n{fix}\n\nCause: {second}") == f"{first} {second} {fix}"


def test_a_function_keeps_its_spelling_where_a_sentence_begins() -> None:
    report = "Done. export() now retries three times by itself instead of asking the user to press the button again."
    found = only(*asked(owner("thanks"), report=report))
    assert found.content.startswith("export() now retries")
    assert found.subject.startswith("export ")


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        (
            "- `export()` - now asks the user only when the third attempt failed, so the button is rarely needed",
            "`export()` now asks the user only when the third attempt failed, so the button is rarely needed",
        ),
        (
            "- `export()` in `export.py` - Falls back to asking the user when the third attempt failed",
            "`export()` in `export.py` falls back to asking the user when the third attempt failed",
        ),
    ],
)
def test_an_item_of_a_list_becomes_a_sentence(item: str, sentence: str) -> None:
    assert only(*asked(owner("thanks"), report=f"Done.\n\n{item}\n")).content == sentence


def test_a_wish_put_as_a_question_is_told_as_a_wish() -> None:
    found = only(owner("can we skip the wizard automatically when there is only one printer?"), agent("Sure."))
    assert found.content == "Skip the wizard automatically when there is only one printer."


def test_what_the_owner_only_asks_to_be_confirmed_is_no_memory() -> None:
    assert memories(owner("We never ship an order without its receipt, right?"), agent("Yes.")) == []


def test_a_question_after_a_rule_is_left_out() -> None:
    said = "Never ship an order without its receipt. That is what the tax office wants, right?"
    assert only(owner(said)).content == "Never ship an order without its receipt."


def test_a_reason_in_a_plan_is_told_under_the_heading_above_it_alone() -> None:
    plan = PLAN.replace("## Change", "## One table for all tenants (by design, worth noting)").replace(
        "Row level security keeps them apart, so a forgotten filter cannot leak a session to another tenant.",
        "This is intentional, so that a forgotten filter cannot leak a session to another tenant.",
    ).replace("Store the sessions of all tenants in one table with a tenant column.\n", "")  # fmt: skip
    assert only(owner(plan), agent("On it.")).content == (
        "One table for all tenants: This is intentional, so that a forgotten filter cannot leak a session to another "
        "tenant."
    )


@pytest.mark.parametrize(
    ("said", "content"),
    [
        (
            "Build a recipe app with SvelteKit, SQLite and full text search over the ingredients.",
            "The project: a recipe app with SvelteKit, SQLite and full text search over the ingredients.",
        ),
        ("Create chat app by Django", "The project: chat app by Django"),
        (
            "帮我做一个记账小程序，用 Taro 和云数据库，支持共享账本。",
            "项目：一个记账小程序，用 Taro 和云数据库，支持共享账本。",
        ),
    ],
)
def test_a_project_is_told_as_what_it_is_not_as_a_request(said: str, content: str) -> None:
    assert only(owner(said), agent("Sure.")).content == content


@pytest.mark.parametrize("text", ["Typing test for the parser: élan, façade, 漢字, 日, ελληνικά, 🎈 and signs ∂ √"])
def test_a_few_foreign_signs_do_not_make_a_text_foreign(text: str) -> None:
    turns: tuple[Turn, ...] = (owner(text), agent("Understood."))
    assert memories(*turns) == []


def test_an_english_sentence_that_quotes_a_foreign_word_is_read_as_english() -> None:
    found = only(owner("Never translate the word 茶 in the menus, our customers know it by that name."))
    assert found.kind is Kind.PREFERENCE


@pytest.mark.parametrize(
    "said",
    [
        "The wholesaler wants all orders by Tuesday evening, so that the van is loaded in time.",
        "The staging mail host is smtp-stage-02, so make sure the config says so.",
    ],
)
def test_how_the_world_is_is_a_fact(said: str) -> None:
    assert only(owner(said)).kind is Kind.FACT
