"""Recall keeps silent where nothing answers, and a local reranker may look at what it shows once more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nacre.errors import RerankerUnavailableError
from nacre.home.home import open_home
from nacre.recall.recall import recall, search_sessions
from nacre.values.recall import HitConfidence, LaneState, RecallQuery, RecallResult
from tests.app.conftest import World, says

TRACE = """Traceback (most recent call last):
  File "/srv/x/readings.py", line 88, in main
    read_cone(4711)"""


@pytest.fixture
def pottery(world: World) -> World:
    said = [
        "Please wire the kiln controller to relay four.",
        "The glaze recipe lives in recipes/celadon.toml now.",
        "readings.py fails: read_cone returns nothing when the probe is cold.",
        "The kiln door seal was replaced, and the leak is gone.",
        "Order twenty kilos of stoneware from the usual shop.",
        "窑炉的温度上限改成一千二百八十度。",
    ]
    world.transcript(
        "s1",
        *[says("user", text, uuid=f"u{at}") for at, text in enumerate(said)],
        folder="-work-pottery",
    )
    with world.open() as memory:
        memory.ingest(extract=False, vectors=False)
    return world


def shown(world: World, question: str) -> list[str]:
    with world.open() as memory:
        found = memory.recall(question, mode="lexical").turns
    return [hit.turn.id for hit in found if hit.confidence is not HitConfidence.WEAK]


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
    assert shown(pottery, question) == []


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
    assert shown(pottery, question)[:1] == [turn]


def test_search_shows_weak_hits_with_their_confidence(pottery: World) -> None:
    with pottery.open() as memory:
        found = memory.search_sessions("which Grafana panel shows the kiln?", mode="lexical").turns
    assert found
    assert all(hit.components["sure"] < 0.5 for hit in found)
    assert found[0].components["unknown"] > 0.5


def test_answer_ranks_above_a_turn_that_repeats_the_question(world: World) -> None:
    world.transcript(
        "s1",
        says("user", "Which relay switches the kiln fan?", uuid="asked"),
        says("assistant", "Relay nine switches the kiln fan.", uuid="told"),
    )
    with world.open() as memory:
        memory.ingest(extract=False, vectors=False)
        found = memory.search_sessions("which relay switches the kiln fan", mode="lexical").turns
    assert [hit.turn.id for hit in found] == ["told", "asked"]


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
        found = memory.search_sessions("kiln fan relay zinc", mode="lexical").turns
    assert found[0].turn.id.startswith("copy")
    assert found[1].turn.id == "other"


def test_question_before_an_event_uses_the_time_of_its_mention(world: World) -> None:
    for name, text, at in (
        ("old", "The kiln server listens on port 4000.", "2026-01-05T09:00:00Z"),
        ("move", "The migration starts now.", "2026-03-05T09:00:00Z"),
        ("new", "The kiln server listens on port 5000.", "2026-05-05T09:00:00Z"),
    ):
        world.transcript(name, says("user", text, uuid=name, at=at, session=f"5e55-{name}"))
    with world.open() as memory:
        memory.ingest(extract=False, vectors=False)

        def first(question: str) -> str:
            return memory.search_sessions(question, mode="lexical").turns[0].turn.id

        assert first("on which port did the kiln server listen before the migration?") == "old"
        assert first("on which port does the kiln server listen since the migration?") == "new"


# The slot for a reranker


class Liking:
    """A reranker that likes texts with a word in them."""

    name = "liking"

    def __init__(self, word: str) -> None:
        self.word = word

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        return [float(self.word in text) for text in texts]


class Broken(Liking):
    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        raise RerankerUnavailableError("out of order")


def ask(world: World, reranker: Liking) -> tuple[RecallResult, RecallResult]:
    context = open_home(
        world.settings(),
        clock=world.clock,
        load_embedder=lambda _: world.embedder,
        load_reranker=lambda _: reranker,
    )
    try:
        return search_sessions(context, RecallQuery("kiln zinc")), recall(
            context, RecallQuery("kiln", turns=3)
        )
    finally:
        context.database.close()


def test_reranker_reorders_hits_and_appears_as_a_lane(pottery: World) -> None:
    for word, turn in (("seal", "u3"), ("relay", "u0")):
        searched, recalled = ask(pottery, Liking(word))
        assert searched.turns[0].turn.id == turn
        assert recalled.turns[0].turn.id == turn
        scores = [hit.score for hit in searched.turns]
        assert scores == sorted(scores, reverse=True)
        assert [(lane.name, lane.state) for lane in searched.lanes][-1] == (
            "reranker",
            LaneState.RAN,
        )


def test_failing_reranker_keeps_the_answer_and_is_reported(pottery: World) -> None:
    searched, _ = ask(pottery, Broken("seal"))
    assert {hit.turn.id for hit in searched.turns[:2]} == {"u0", "u3"}
    assert [lane.note for lane in searched.degraded if lane.name == "reranker"] == ["out of order"]


def test_missing_reranker_model_is_reported_and_search_still_works(
    pottery: World, tmp_path: Path
) -> None:
    pottery.environ["NACRE_RECALL_RERANKER"] = str(tmp_path / "nowhere")
    with pottery.open() as memory:
        result = memory.search_sessions("kiln", mode="lexical")
    assert result.turns
    assert [lane.state for lane in result.lanes if lane.name == "reranker"] == [
        LaneState.UNAVAILABLE
    ]
