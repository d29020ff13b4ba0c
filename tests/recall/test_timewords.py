"""Times as people say them, read on Friday, 20 November 2026."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from nacre.base.times import find_window, parse_moment
from nacre.errors import InvalidQueryError
from nacre.recall.question import read_question

NOW = datetime(2026, 11, 20, 5, 30, tzinfo=UTC)


@pytest.fixture
def local_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that sets the local time zone, at first to UTC."""

    def set_zone(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    set_zone("UTC")
    yield set_zone
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("local_zone")
@pytest.mark.parametrize(
    ("question", "since", "until"),
    [
        ("what did we decide last week?", "2026-11-09", "2026-11-16"),
        ("what did we do yesterday", "2026-11-19", "2026-11-20"),
        ("anything since monday?", "2026-11-16", None),
        ("what was agreed in March", "2026-03-01", "2026-04-01"),
        ("what happened in July 2023?", "2023-07-01", "2023-08-01"),
        ("who called on May 5, 2023", "2023-05-05", "2023-05-06"),
        ("before 2026-01-02 we had", None, "2026-01-02"),
        ("two weeks ago", "2026-11-02", "2026-11-10"),
        ("between August 3 and August 9 2024", "2024-08-03", "2024-08-10"),
        ("last month", "2026-10-01", "2026-11-01"),
        ("上周决定了什么", "2026-11-09", "2026-11-16"),
        ("昨天", "2026-11-19", "2026-11-20"),
        ("三月做了什么", "2026-03-01", "2026-04-01"),
        ("去年", "2025-01-01", "2026-01-01"),
        ("what changed since last week", "2026-11-09", None),
        ("what did we know before yesterday", None, "2026-11-19"),
        ("since yesterday", "2026-11-19", None),
        ("after last month", "2026-11-01", None),
        ("before last year", None, "2025-01-01"),
        ("since two weeks ago", "2026-11-02", None),
        ("since last monday", "2026-11-16", None),
        ("the day before yesterday", "2026-11-18", "2026-11-19"),
        ("昨天以来", "2026-11-19", None),
        ("上周五说了什么", "2026-11-13", "2026-11-14"),
        ("上周一起讨论了什么", "2026-11-09", "2026-11-16"),
        ("上上周", "2026-11-02", "2026-11-09"),
        ("两三天前我们决定了什么", "2026-11-16", "2026-11-19"),
        ("十天前", "2026-11-09", "2026-11-11"),
        ("十二天前", "2026-11-07", "2026-11-09"),
        ("八个月前", "2026-03-10", "2026-04-10"),
        ("what slowed us down in Q3?", "2026-07-01", "2026-10-01"),
        ("before Q4", None, "2026-10-01"),
        ("Q2 2025 figures", "2025-04-01", "2025-07-01"),
        ("last quarter", "2026-07-01", "2026-10-01"),
        ("第三季度", "2026-07-01", "2026-10-01"),
        ("上个季度", "2026-07-01", "2026-10-01"),
        ("over the weekend", "2026-11-14", "2026-11-16"),
        ("the week before last", "2026-11-02", "2026-11-09"),
        ("in early March", "2026-03-01", "2026-03-11"),
        ("late October 2025", "2025-10-21", "2025-11-01"),
        ("mid-September", "2026-09-11", "2026-09-21"),
        ("三月初", "2026-03-01", "2026-03-11"),
        ("10月15日", "2026-10-15", "2026-10-16"),
        ("in 2026-10", "2026-10-01", "2026-11-01"),
        ("this morning", "2026-11-20", "2026-11-21"),
        ("昨晚", "2026-11-19", "2026-11-20"),
        ("最近三天", "2026-11-17", "2026-11-21"),
        ("a fortnight ago", "2026-11-03", "2026-11-09"),
        ("by March", None, "2027-03-01"),
        ("what is due before December 15?", None, "2026-12-15"),
        ("what did we decide before August 15?", None, "2026-08-15"),
        ("until January 3rd", None, "2027-01-03"),
        ("by Monday", None, "2026-11-23"),
        ("on Monday", "2026-11-16", "2026-11-17"),
        ("before last Friday", None, "2026-11-13"),
        ("before the weekend", None, "2026-11-21"),
        ("on December 15", "2026-12-15", "2026-12-16"),
        ("since December 15", "2025-12-15", None),
        ("after December 15", "2025-12-16", None),
        ("in December", "2025-12-01", "2026-01-01"),
        ("since November 25", "2025-11-25", None),
        ("on February 29", "2024-02-29", "2024-03-01"),
        ("between October 5 and February 3", "2025-10-05", "2026-02-04"),
        ("12月15日之前", None, "2026-12-15"),
        ("三月以来", "2026-03-01", None),
        ("last weekend before May 12, 2024", None, "2024-05-12"),
    ],
)
def test_time_in_a_question_is_a_window(
    question: str, since: str | None, until: str | None
) -> None:
    window = find_window(question, NOW)
    assert window
    assert (
        window.since and window.since.date().isoformat(),
        window.until and window.until.date().isoformat(),
    ) == (since, until)


@pytest.mark.parametrize(
    "question",
    [
        "may we use postgres",
        "the march of progress",
        "we moved from Berlin to Lisbon",
        "second opinion",
        "40 days of rain",
        "zero days ago",
        "last zero weeks",
        "5000 years ago",
        "notes of 9999-12-31",
        "2023年前",
        "目前天气",
        "q1: which port is it",
        "the early bird",
    ],
)
def test_apparent_times_are_not_recognised(question: str) -> None:
    assert find_window(question, NOW) is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("3d", "2026-11-17T05:30"),
        ("2w", "2026-11-06T05:30"),
        ("2026-11-01", "2026-11-01T00:00"),
        ("march", "2026-03-01T00:00"),
        ("monday", "2026-11-16T00:00"),
        ("yesterday", "2026-11-19T00:00"),
    ],
)
def test_option_accepts_time_words_and_short_forms(text: str, moment: str) -> None:
    assert parse_moment(text, NOW).isoformat()[:16] == moment


@pytest.mark.parametrize(
    ("zone", "now", "question", "since", "hours"),
    [
        ("Asia/Shanghai", "2026-11-27T20:00Z", "today", "2026-11-27T16:00Z", 24),
        ("Asia/Shanghai", "2026-11-27T20:00Z", "on friday", "2026-11-26T16:00Z", 24),
        ("America/Los_Angeles", "2026-11-28T02:35Z", "yesterday", "2026-11-26T08:00Z", 24),
        ("Asia/Kathmandu", "2026-11-20T18:20Z", "today", "2026-11-20T18:15Z", 24),
        ("Europe/Berlin", "2026-10-26T08:00Z", "yesterday", "2026-10-24T22:00Z", 25),
        ("Europe/Berlin", "2026-03-30T08:00Z", "2026-03-29", "2026-03-28T23:00Z", 23),
        ("Africa/Cairo", "2026-04-24T08:00Z", "today", "2026-04-23T21:00Z", 24),  # no midnight
        ("America/New_York", "2026-03-09T12:00Z", "last week", "2026-03-02T05:00Z", 7 * 24 - 1),
        ("Pacific/Apia", "2026-11-20T10:30Z", "3月2日", "2026-03-01T11:00Z", 24),
    ],
)
def test_days_follow_the_time_zone(
    local_zone: Callable[[str], None], zone: str, now: str, question: str, since: str, hours: int
) -> None:
    local_zone(zone)
    found = find_window(question, datetime.fromisoformat(now))
    assert found
    assert found.since
    assert found.until
    assert (found.since, found.until - found.since) == (
        datetime.fromisoformat(since),
        timedelta(hours=hours),
    )
    assert parse_moment(question.removeprefix("on "), datetime.fromisoformat(now)) == found.since


@pytest.mark.parametrize(
    "text", ["soon", "2026-13-45", "", "the day after", "99999y", "9" * 5000 + "d"]
)
def test_invalid_date_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidQueryError) as caught:
        parse_moment(text, NOW)
    assert "3d" in str(caught.value.hint)


def test_question_about_only_a_time_is_recognised() -> None:
    assert read_question("what did we decide yesterday?", now=NOW).is_only_time
    assert not read_question("what did we decide about caching yesterday?", now=NOW).is_only_time


def test_people_are_recognised_by_their_written_names() -> None:
    people = ["Will", "Mara"]
    assert read_question("What did Mara say?", now=NOW, authors=people).authors == ("Mara",)
    assert read_question("When will Mara come?", now=NOW, authors=people).authors == ("Mara",)
    assert read_question("what did mara say?", now=NOW, authors=people).authors == ("Mara",)
    assert (
        read_question("What did Mara say about tea?", now=NOW, authors=people).semantic
        == "What did say about tea?"
    )
