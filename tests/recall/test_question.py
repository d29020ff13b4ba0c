"""What a question is taken apart into: what it is recognised by, names in any spelling, times told by events."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nacre.recall.question import Question, only_asks, read_question, resolve_anchor

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)


def read(text: str) -> Question:
    return read_question(text, now=NOW, authors={"Mara"}, projects={"shop-api"})


def test_people_projects_and_question_words_are_not_distinctive() -> None:
    assert read("What kind of cache does Mara use in shop-api?").telling == ("cache",)


@pytest.mark.parametrize("text", ["ok, go on", "thanks!", "好的，继续", "yes please"])
def test_filler_words_alone_say_nothing(text: str) -> None:
    assert read(text).says_nothing


def test_name_or_time_makes_a_question_meaningful() -> None:
    assert not read("What about Mara?").says_nothing
    assert not read("what happened yesterday").says_nothing


@pytest.mark.parametrize(
    "text", ["what did I say yesterday?", "what did we tell them last week", "昨天我说了什么？"]
)
def test_question_with_only_a_time_is_recognised(text: str) -> None:
    assert read(text).is_only_time
    assert not read("what did I say about the cache yesterday?").is_only_time


def test_identifier_is_searched_in_both_spellings() -> None:
    for text in ("readLine fails", "read_line fails"):
        assert ("readline", ("read", "line")) in read(text).spellings
        assert {"readline", "read", "line"} <= set(read(text).words)


def test_long_path_is_also_searched_by_its_end() -> None:
    assert read("/code/elsewhere/shop/src/cart/total.py:42").names == (
        "/code/elsewhere/shop/src/cart/total.py",
        "cart/total.py",
    )


def test_named_project_is_not_an_identifier() -> None:
    assert read("shop-api cache").names == ()
    assert read("shop-api cache").projects == ("shop-api",)


def test_capitalised_words_are_names_and_hyphenated_words_are_not() -> None:
    assert read("Which Grafana panel shows the load?").proper == {"grafana"}
    assert read("Which non-critical panel is it?").proper == frozenset()
    assert read("WHY IS IT LOUD").proper == frozenset()


def test_chinese_question_words_leave_no_bigrams() -> None:
    assert read("数据库用什么密码？").words == ("数据", "据库", "库用", "密码")


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("which port did we use before the migration?", "before"),
        ("what broke after our switch to UTC?", "after"),
        ("迁移之前用什么端口？", "之前"),
    ],
)
def test_event_defines_a_time_window(text: str, side: str) -> None:
    window = resolve_anchor(read(text), lambda _: datetime(2026, 3, 16, tzinfo=UTC)).window
    assert window
    assert (window.since is None) == (side in ("before", "之前"))


def test_unknown_event_leaves_the_question_unchanged() -> None:
    question = read("which port did we use before the migration?")
    assert resolve_anchor(question, lambda _: None) is question
    dated = read("what did we do before march?")
    assert resolve_anchor(dated, lambda _: NOW) is dated


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("Why is it slow?", True),
        ("Why is it slow? Since when?", True),
        ("It is slow. Why?", False),
        ("It is slow.", False),
        ("为什么慢？什么时候开始的？", True),
        ("很慢。为什么？", False),
        ("", False),
    ],
)
def test_text_of_only_questions_is_recognised(text: str, only: bool) -> None:
    assert only_asks(text) is only
