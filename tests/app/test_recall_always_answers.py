"""Recall returns the best hits there are, each with its confidence; unsolicited context is as strict as before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nacre.values.context import Part
from nacre.values.memory import HeldCandidate, Kind, Source, Why
from nacre.values.recall import Filter, HitConfidence, RecallResult
from nacre.values.session import Speaker
from tests.app.conftest import World, calls, says

SURE, LIKELY, WEAK = HitConfidence.SURE, HitConfidence.LIKELY, HitConfidence.WEAK


@pytest.fixture
def bakery(world: World) -> World:
    said = (
        "The sourdough proofs at 26 degrees in the walnut cabinet.",
        "Please list the suppliers of rye.",
        "Let's look at the oven log.",
        "Fine, the oven log can wait.",
        "Flour is ordered on Thursdays.",
    )
    world.transcript("s1", *(says("user", text, uuid=f"u{at}") for at, text in enumerate(said)))
    with world.open() as memory:
        memory.ingest(extract=False)
        kept = memory.get(memory.store("Deliveries leave from the north gate.").memory_id or "")
    home = world.context()
    words = "The walnut cabinet proofs sourdough at 26 degrees."
    said = Source(session="claude-code:5e55-0001", turns=("u0",))
    candidate = replace(kept, id=home.ids(), subject="Sourdough", content=words, source=said)
    with home.database.transaction():
        home.candidates.add([HeldCandidate(candidate, Why.FOUND, None, 0.5, home.now())])
    home.close()
    return world


def recalled(world: World, question: str, **options: object) -> RecallResult:
    with world.open() as memory:
        return memory.call("recall", text=question, **options)


def test_pending_candidate_is_returned_and_marked(bakery: World) -> None:
    found = recalled(bakery, "at how many degrees does the sourdough proof?")
    (hit,) = [hit for hit in found.hits if hit.candidate]
    assert hit.confidence is SURE
    assert "26 degrees" in hit.memory.content
    assert [
        hit for hit in recalled(bakery, "sourdough degrees", confident=True).hits if hit.candidate
    ] == []
    assert recalled(bakery, "sourdough degrees", filter=Filter(kinds=(Kind.TODO,))).hits == ()


def test_recall_returns_turns_without_being_asked_for_turns(bakery: World) -> None:
    found = recalled(bakery, "when is flour ordered?")
    assert (found.turns[0].turn.id, found.turns[0].confidence) == ("u4", SURE)


def test_hits_show_what_follows_them_and_no_turn_twice(world: World) -> None:
    talk = (
        ("user", "how long does the sourdough proof in the walnut cabinet?"),
        ("assistant", "I look it up."),
        ("assistant", "Nine hours."),
        ("user", "and the rye: on the stone or on steel?"),
        ("assistant", "On stone, rye gets the better crust; on steel it is faster."),
        ("user", "stone then"),
    )
    world.transcript(
        "s2", *(says(role, text, uuid=f"v{at}") for at, (role, text) in enumerate(talk))
    )
    with world.open() as memory:
        memory.ingest(extract=False)
    (question,) = recalled(world, "sourdough walnut cabinet", turns=1).turns
    assert (question.then_by, question.then) == (Speaker.AGENT, "Nine hours.")
    (answer,) = recalled(world, "rye better crust faster", turns=1).turns
    assert (answer.then_by, answer.then) == (Speaker.OWNER, "stone then")
    shown = recalled(world, "rye on the stone or on steel", turns=5).turns
    texts = [hit.turn.text for hit in shown] + [hit.then for hit in shown if hit.then]
    assert len(texts) == len(set(texts))


def test_results_of_all_kinds_are_ranked_by_confidence(bakery: World) -> None:
    with bakery.open() as memory:
        memory.store("The walnut cabinet came from an auction.")
    found = recalled(bakery, "at how many degrees does the sourdough proof?")
    levels = [tuple(HitConfidence).index(hit.confidence) for hit in found.ranked]
    assert levels == sorted(levels)
    sure = [hit for hit in found.ranked if hit.confidence is SURE]
    assert sure == [*(hit for hit in found.turns if hit.confidence is SURE), found.hits[0]]
    assert found.hits[0].candidate
    assert len(found.ranked) == len(found.hits) + len(found.turns)


def test_comments_on_tool_calls_rank_below_answers(world: World) -> None:
    comment, *results = calls("Bash", "26", uuid="c1", session="5e55-0001", command="cat oven.log")
    said = {"type": "text", "text": "Let me read how many degrees the oven needs for rye."}
    comment["message"]["content"].insert(0, said)
    world.transcript(
        "s1",
        says("user", "I bake tomorrow.", uuid="u1"),
        comment,
        *results,
        says("assistant", "For rye, the oven needs 230 degrees.", uuid="a1"),
    )
    with world.open() as memory:
        memory.ingest(extract=False)
    turns = recalled(world, "how many degrees does the oven need for rye?").turns
    assert [hit.turn.id for hit in turns].index("a1") == 0
    assert "narration" in next(hit for hit in turns if hit.turn.text.startswith("Let")).components


def test_memory_with_all_common_words_is_found(world: World) -> None:
    with world.open() as memory:
        for number in range(12):
            memory.store(f"Use the crate number {number} for parcel {number * 7}.", force=True)
        memory.store("We use wicker.", force=True)
    for asked in ("use", "we use wicker"):
        found = recalled(world, asked, limit=40)
        assert "We use wicker." in {hit.memory.content for hit in found.hits}, asked


@pytest.mark.parametrize(
    "question", ["which violin strings do we buy?", "who painted the harbour?", "ok, go on"]
)
def test_unrelated_questions_get_only_weak_hits(bakery: World, question: str) -> None:
    found = recalled(bakery, question)
    assert not found.is_answered
    assert {hit.confidence for hit in found.hits} <= {WEAK}
    assert {hit.confidence for hit in found.turns} <= {WEAK}


def test_recall_without_any_match_returns_nothing(bakery: World) -> None:
    found = recalled(bakery, "quantum chromodynamics", mode="lexical")
    assert (found.hits, found.turns) == ((), ())


def test_weak_hits_are_not_counted_as_used(bakery: World) -> None:
    with bakery.open() as memory:
        hits = memory.recall("which painter has a gate of rosewood?", mode="lexical").hits
        assert {hit.confidence for hit in hits} == {WEAK}
        assert memory.call("look", reference=hits[0].memory.id).usage.recall_count == 0


def test_prompt_context_contains_no_candidates_or_weak_hits(bakery: World) -> None:
    with bakery.open() as memory:
        for prompt in (
            "At how many degrees does the sourdough proof?",
            "Which painter has a gate of rosewood?",
        ):
            items = memory.context(prompt, folder="/code/acme-billing").items
            assert {item.part for item in items} <= {Part.POINTER}


@pytest.mark.parametrize(
    ("words", "turns"),
    [("oven", {"u2", "u3"}), ("oven wait", {"u3"}), ("ordered flour", {"u4"}), ("rye", {"u1"})],
)
def test_word_search_returns_turns_with_all_words(
    bakery: World, words: str, turns: set[str]
) -> None:
    with bakery.open() as memory:
        assert {hit.turn.id for hit in memory.search_sessions(words).turns} == turns


def test_search_without_a_full_match_returns_partial_matches(
    bakery: World,
) -> None:
    with bakery.open() as memory:
        assert memory.search_sessions("rye thursdays").turns


def test_turn_repeating_the_question_does_not_hide_its_answer(world: World) -> None:
    world.transcript(
        "s1",
        says("user", "Which valve feeds the boiler?", uuid="asked"),
        says("assistant", "Valve nine does.", uuid="told"),
    )
    with world.open() as memory:
        memory.ingest(extract=False)
        assert "told" in {
            hit.turn.id for hit in memory.search_sessions("which valve feeds the boiler").turns
        }
