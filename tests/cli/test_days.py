"""Days in questions, filters and lists follow the owner's clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import apsw
import pytest

from tests.cli.conftest import SESSION, Nacre, said, write_transcript


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "minutes"),
    [("Asia/Kathmandu", 10), ("America/Los_Angeles", 24 * 60 - 10)],
    indirect=["zone"],
)
def test_yesterday_is_the_local_day_before_today(
    nacre: Nacre, user_home: Path, zone: str, minutes: int
) -> None:
    midnight = datetime.now(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight - timedelta(days=1) + timedelta(minutes=minutes)
    text = "We decided to paint the gate blue, because green fades in the sun."
    record = said("user", text, 1) | {"timestamp": at.astimezone(UTC).isoformat()}
    write_transcript(user_home / ".claude" / "projects" / "-code-acme" / "s.jsonl", [record])
    nacre("ingest")
    day, after = at.date().isoformat(), midnight.date().isoformat()
    assert day in nacre("list").out
    for words, key in (
        (("list", "--since", day), "memories"),
        (("list", "--until", after), "memories"),
        (("sessions", "list", "--since", "yesterday"), "lines"),
        (("recall", "gate", "--since", "yesterday", "--until", "today"), "hits"),
        (("recall", "what did we decide yesterday?"), "hits"),
        (("recall", "what did we decide yesterday?"), "turns"),
        (("recall", "gate", "--as-of", day), "hits"),
    ):
        assert nacre(*words, "--json").json[key], words
    for words, key in (
        (("list", "--since", after), "memories"),
        (("list", "--until", day), "memories"),
        (("sessions", "list", "--since", "today"), "lines"),
        (("recall", "gate", "--since", "today"), "hits"),
    ):
        assert not nacre(*words, "--json").json[key], words


@pytest.mark.parametrize(
    "question",
    [
        "what did we do yesterday?",
        "What happened yesterday?",
        "show me yesterday's work",
        "what did the agents work on yesterday?",
        "summarize yesterday",
        "昨天我们做了什么",
    ],
)
def test_question_of_only_a_time_lists_only_that_time(
    nacre: Nacre, user_home: Path, question: str
) -> None:
    now = datetime.now(UTC)
    folder = user_home / ".claude" / "projects" / "-code-acme"
    for days, words in enumerate(("Look at the mast.", "Look at the gate.", "Look at the keel.")):
        session = f"{days}f3a1c2d-0000-4000-8000-00000000000{days}"
        at = (now - timedelta(days=days)).isoformat()
        record = said("user", words, 1, session=session) | {"timestamp": at}
        decided = "We decided to paint the gate blue, because green fades in the sun."
        more = said("user", decided, 2, session=session) | {"timestamp": at}
        write_transcript(folder / f"{session}.jsonl", [record, more] if days == 1 else [record])
    nacre("ingest")
    nacre("store", "The ferry leaves at nine in the morning")
    answer = nacre("recall", question, "--json").json
    assert [hit["turn"]["text"] for hit in answer["turns"]] == ["Look at the gate."]
    assert [hit["memory"]["content"] for hit in answer["hits"]] == [decided]
    output = nacre("recall", question).out
    assert output.index("1f3a1c2d#0") < output.index("decision")
    assert "Only results from" in output
    nothing = nacre("recall", question, "--tool", "codex").out
    assert "Nothing matches." in nothing
    assert "Only results from" in nothing


@pytest.mark.parametrize("milliseconds", [253_402_300_799_000, 2**60, -62_135_596_800_000])
@pytest.mark.parametrize("zone", ["Asia/Kathmandu"], indirect=True)
@pytest.mark.usefixtures("zone", "learned")
def test_unreadable_stored_time_is_shown_as_unknown(
    nacre: Nacre, user_home: Path, milliseconds: int
) -> None:
    database = apsw.Connection(str(user_home / ".nacre" / "nacre.db"))
    for statement in (
        "UPDATE sessions SET started = ?1, ended = ?1",
        "UPDATE turns SET time = ?1",
        "UPDATE memories SET created = ?1, updated = ?1",
    ):
        database.execute(statement, (milliseconds,))
    database.close()
    assert "unknown" in nacre("list").out
    for words in (
        ("sessions", "list"),
        ("sessions", "show", SESSION[:8]),
        ("recall", "which database?", "--turns", "3"),
        ("context", "--folder", "/code/acme-billing"),
        ("recall", "--browse"),
        ("list", "--json"),
        (),
    ):
        nacre(*words)
