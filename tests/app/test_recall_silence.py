"""Unrelated questions get only weak hits."""

from __future__ import annotations

import pytest

from nacre.values.recall import HitConfidence
from tests.app.conftest import World, says

TRACE = """Traceback (most recent call last):
  File "/srv/x/readings.py", line 88, in main
    read_cone(4711)"""


@pytest.fixture
def pottery(world: World) -> World:
    texts = [
        "Please wire the kiln controller to relay four.",
        "The glaze recipe lives in recipes/celadon.toml now.",
        "readings.py fails: read_cone returns nothing when the probe is cold.",
        "The kiln door seal was replaced, and the leak is gone.",
        "Order twenty kilos of stoneware from the usual shop.",
        "窑炉的温度上限改成一千二百八十度。",
    ]
    world.transcript(
        "s1",
        *[says("user", text, uuid=f"u{index}") for index, text in enumerate(texts)],
        folder="-work-pottery",
    )
    with world.open() as memory:
        memory.ingest(extract=False, vectors=False)
    return world


def turn_confidences(world: World, question: str) -> list[str]:
    with world.open() as memory:
        turns = memory.recall(question, mode="lexical").turns
    return [hit.turn.id for hit in turns if hit.confidence is not HitConfidence.WEAK]


@pytest.mark.parametrize(
    "question",
    [
        "Which submarine did the shop rent?",
        "which Grafana panel shows the kiln?",
        "how do we weave linen on the loom?",
        "优惠券怎么核销？",
        "ok, go on",
        "thanks!",
        "好的，继续",
    ],
)
def test_unrelated_question_gets_only_weak_turns(pottery: World, question: str) -> None:
    assert turn_confidences(pottery, question) == []


@pytest.mark.parametrize("question", ["what about 98431?", "////"])
def test_unknown_number_or_punctuation_gets_only_weak_hits(world: World, question: str) -> None:
    with world.open() as memory:
        for number, text in enumerate(
            ("The quarry gate has a green lamp", "Ask Marta what it is about")
        ):
            memory.store(text, project=f"p{number}")
        memory.ingest()
        assert not memory.recall(question).is_answered


@pytest.mark.parametrize(
    ("question", "turn"),
    [
        ("which relay is the kiln controller on?", "u0"),
        ("recipes/celadon.toml", "u1"),
        ("/code/elsewhere/pottery/recipes/celadon.toml:12", "u1"),
        ("readCone returns nothing", "u2"),
        ("read_cone", "u2"),
        (TRACE, "u2"),
        ("窑炉温度的上限是多少？", "u5"),
    ],
)
def test_turn_about_the_subject_is_shown_first(pottery: World, question: str, turn: str) -> None:
    assert turn_confidences(pottery, question)[:1] == [turn]


def test_search_shows_weak_hits_with_their_confidence(pottery: World) -> None:
    with pottery.open() as memory:
        turns = memory.search_sessions("which Grafana panel shows the kiln?", mode="lexical").turns
    assert turns
    assert all(hit.components["sure"] < 0.5 for hit in turns)
    assert turns[0].components["unknown"] > 0.5


def test_answer_ranks_above_a_turn_that_repeats_the_question(world: World) -> None:
    world.transcript(
        "s1",
        says("user", "Which relay switches the kiln fan?", uuid="asked"),
        says("assistant", "Relay nine switches the kiln fan.", uuid="told"),
    )
    with world.open() as memory:
        memory.ingest(extract=False, vectors=False)
        turns = memory.search_sessions("which relay switches the kiln fan", mode="lexical").turns
    assert [hit.turn.id for hit in turns] == ["told", "asked"]


def test_repeated_text_of_several_sessions_is_shown_once_first(world: World) -> None:
    for number in range(4):
        text = "The kiln fan is switched by relay nine, see the wiring plan."
        world.transcript(
            f"s{number}", says("user", text, uuid=f"copy{number}", session=f"5e55-{number}")
        )
    world.transcript(
        "other", says("user", "The kiln fan squeaks in winter.", uuid="other", session="5e55-other")
    )
    with world.open() as memory:
        memory.ingest(extract=False, vectors=False)
        turns = memory.search_sessions("kiln fan relay zinc", mode="lexical").turns
    assert turns[0].turn.id.startswith("copy")
    assert turns[1].turn.id == "other"


def test_question_before_an_event_uses_the_time_of_its_mention(world: World) -> None:
    for name, text, index in (
        ("old", "The kiln server listens on port 4000.", "2026-01-05T09:00:00Z"),
        ("move", "The migration starts now.", "2026-03-05T09:00:00Z"),
        ("new", "The kiln server listens on port 5000.", "2026-05-05T09:00:00Z"),
    ):
        world.transcript(name, says("user", text, uuid=name, at=index, session=f"5e55-{name}"))
    with world.open() as memory:
        memory.ingest(extract=False, vectors=False)

        def first(question: str) -> str:
            return memory.search_sessions(question, mode="lexical").turns[0].turn.id

        assert first("on which port did the kiln server listen before the migration?") == "old"
        assert first("on which port does the kiln server listen since the migration?") == "new"
