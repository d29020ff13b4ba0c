"""Subjects and tags as a person would write them: a clean noun phrase, else the head of the statement."""

from __future__ import annotations

import pytest

from nacre.extraction.reading.cues import language_of
from nacre.extraction.rules.subject import MAX_CHARACTERS, subject_of
from nacre.values.memory import Kind
from tests.extract.conftest import agent, only, owner


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        # what a choice, a rule or a fact is about
        ("Let's use DuckDB for the reports, not pandas.", "DuckDB for the reports"),
        ("Let's go with Hugo instead of a hosted blog: it works offline.", "Hugo instead of a hosted blog"),
        ("We're moving the ledger from SQLite to PostgreSQL.", "Move the ledger from SQLite to PostgreSQL"),
        ("We're moving from Jest to Vitest, because it is faster.", "Move from Jest to Vitest"),
        ("Always store amounts in cents; euros belong in the views only.", "Amounts in cents"),
        ("Uploads should be stored in the object store, not on disk.", "Uploads in the object store"),
        ("Remember that the pumps of all cellars are off from midnight to five.", "Pumps of all cellars"),
        ("I don't want any default exports in the widgets.", "No default exports in the widgets"),
        # the head of the statement, where there is no such phrase
        ("Never commit rendered slides: they are build output.", "Never commit rendered slides"),
        ("Remember that lengths are integers in millimetres, never floats.", "Lengths are integers in millimetres"),
        ("Make sure all public functions have docstrings.", "Docstrings for all public functions"),
        ("From now on run `make lint` before each commit.", "Run make lint before each commit"),
        ("Don't alert me about a single late train.", "Don't alert me about a single late train"),
        ("We should not use eval in the templates.", "Don't use eval in the templates"),
        ("Tokens should not be stored in localStorage.", "Tokens should not be stored in localStorage"),
        ("After each port is added, update the list.", "Update the list after each port is added"),
        ("Before committing, always run the formatter.", "Run the formatter before committing"),
        # cue words say what kind it is
        ("Todo: rotate the signing keys of the webhook.", "Rotate the signing keys of the webhook"),
        ("Remind me to ask the tenors about louder shoes.", "Ask the tenors about louder shoes"),
        ("Remember that the demo key expires in March.", "Demo key expires in March"),
        ("The root cause of the flaky upload test was a shared folder.", "Flaky upload test: shared folder"),
        # a topic that goes before
        ("For code reviews I prefer one topic each.", "Code reviews: one topic each"),
        ("Frost alerts: let's use a drop of five degrees an hour.", "Frost alerts: drop of five degrees an hour"),
    ],
)  # fmt: skip
def test_a_subject_is_what_a_person_would_write(said: str, subject: str) -> None:
    assert only(owner(said)).subject == subject


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        # where it was is left out when something is said about it, and named when nothing is
        (
            "The root cause is in `basket.py` - both `Save` and `Load` use `DefaultName`.",
            "Save and Load use DefaultName",
        ),
        ("On 3.9 in source mode, importing `seed_shop` behaved oddly.", "Importing seed_shop behaved oddly"),
        (
            "In `load_cart()` at cart.js, when the fetch failed, it printed nil.",
            "load_cart at cart.js when the fetch failed",
        ),
        # a label is none
        ("Bug: `ListCarts()` only used `cart.Owner`.", "ListCarts only used cart.Owner"),
        # what it came from
        ("The red builds stemmed from two parsers of one name.", "Red builds: two parsers of one name"),
        (
            "The flicker is caused by two timers that fight over the lamp.",
            "Flicker: two timers that fight over the lamp",
        ),
        # what cannot begin or end it
        (
            "If removed, we quietly fall back to the plain skin.",
            "Quietly fall back to the plain skin if removed",
        ),
        ("Slicing the label by octet can tear wide signs apart everywhere.", "Slicing the label by octet"),
        (
            "When the sync fails, the errors are now shown to the owner via `notify`.",
            "Errors shown to the owner via notify when the sync fails",
        ),
        ("Your proposed scripts and they both stop instantly.", "Proposed scripts stop instantly"),
        # what a question asks about
        ("Which linters should we set up? Ruff + mypy", "Linters: Ruff + mypy"),
        ("What's the map source — the city or the county? The city.", "Map source: The city"),
        ("Should the rounding be half-even or half-up? Half even, the bank wants it.", "Rounding: Half even"),
        # what is to be made, what is denied, what is turned around
        (
            "Add a `due_at` column and an index to the invoices: the reminders need them.",
            "due_at column and an index to the invoices",
        ),
        ("Idle sign is not correct, that is at the far door.", "Idle sign: far door"),
        ("Those that need a paid licence we must omit.", "Omit those that need a paid licence"),
        # names and acronyms
        ("Rgb values in the palettes, no names!", "RGB values in the palettes"),
        ("main() now prints the platform when DEBUG is set.", "main prints the platform when DEBUG is set"),
        ("`setPalette()` returns `{ ok: boolean }` so the caller can show the error.", "setPalette"),
    ],
)
def test_a_subject_names_the_thing(text: str, subject: str) -> None:
    kind = Kind.LESSON if text.startswith(("The r", "The f", "On", "In `", "Bug", "Your")) else Kind.DECISION

    assert subject_of(text, language_of(text), kind) == subject


def test_a_subject_is_never_cut_within_a_word() -> None:
    text = "我们的测试集 characterisationsoftheimporter 一律先跑"

    assert subject_of(text, language_of(text), Kind.LESSON) == "的测试集"


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        ("以后中文界面的按钮都要用动词开头。", "中文界面的按钮"),
        ("文中的引文一律用仿宋体排版。", "文中的引文"),
        ("我们决定标题只保存中文原文，另外加一个拼音字段。", "标题只保存中文原文"),
        ("提醒我下周三之前把三份合同扫描归档。", "三份合同扫描归档"),
        ("我们把日志存在对象存储里，而不是本地磁盘。", "日志存在对象存储里"),
        ("我们决定用 PostgreSQL 存储账单数据,而不是 MongoDB。", "PostgreSQL 存储账单数据"),
    ],
)
def test_a_chinese_subject_keeps_its_words_whole(said: str, subject: str) -> None:
    assert only(owner(said)).subject == subject


def test_a_long_head_is_cut_where_a_phrase_begins() -> None:
    said = "TODO: add the opening hours to the forty branches that lack them before the long weekend in autumn."
    subject = only(owner(said)).subject

    assert subject == "Add the opening hours to the forty branches that lack them"
    assert len(subject) <= MAX_CHARACTERS


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        ("I'd like to support FreeBSD.", "Support FreeBSD"),
        ("When I work on web projects I always use bun.", "Bun when I work on web projects"),
        ("We should have backups, because disks fail.", "Backups, because disks fail"),
    ],
)
def test_one_ordinary_word_is_no_subject(said: str, subject: str) -> None:
    assert only(owner(said)).subject == subject


def test_the_subject_of_an_answered_question_is_its_topic_with_the_answer() -> None:
    question = "Where should the uploads be stored?\n\nA) On the local disk\nB) In an S3 bucket"

    assert only(agent(question), owner("B")).subject == "Uploads: S3 bucket"


@pytest.mark.parametrize(
    ("said", "tags"),
    [
        ("Todo: water the plants of the office before the holidays.", ()),
        ("Please always put the English text first.", ()),
        ("Never run a migration on the PostgreSQL server without a dump.", ("database", "postgres")),
    ],
)
def test_tags_are_topics_or_nothing(said: str, tags: tuple[str, ...]) -> None:
    assert only(owner(said)).tags == tags
