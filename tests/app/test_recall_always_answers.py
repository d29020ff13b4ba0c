"""Recall returns weak hits with their confidence, and prompt context contains none of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nacre.values.context import Part
from nacre.values.memory import HeldCandidate, Kind, Source, Why
from nacre.values.recall import Filter, HitConfidence, RecallResult
from tests.app.conftest import World, calls, says

SURE, LIKELY, WEAK = HitConfidence.SURE, HitConfidence.LIKELY, HitConfidence.WEAK


@pytest.fixture
def bakery(world: World) -> World:
    texts = (
        "The sourdough proofs at 26 degrees in the walnut cabinet.",
        "Please list the suppliers of rye.",
        "Let's look at the oven log.",
        "Fine, the oven log can wait.",
        "Flour is ordered on Thursdays.",
    )
    world.transcript(
        "s1", *(says("user", text, uuid=f"u{index}") for index, text in enumerate(texts))
    )
    with world.open() as memory:
        memory.ingest(extract=False)
        delivery = memory.get(memory.store("Deliveries leave from the north gate.").memory_id or "")
    home = world.context()
    words = "The walnut cabinet proofs sourdough at 26 degrees."
    source = Source(session="claude-code:5e55-0001", turns=("u0",))
    candidate = replace(delivery, id=home.ids(), subject="Sourdough", content=words, source=source)
    with home.database.transaction():
        home.candidates.add([HeldCandidate(candidate, Why.FOUND, None, 0.5, home.now())])
    home.close()
    return world


def recall(world: World, question: str, **options: object) -> RecallResult:
    with world.open() as memory:
        return memory.call("recall", text=question, **options)


def test_pending_candidate_is_returned_and_marked(bakery: World) -> None:
    result = recall(bakery, "at how many degrees does the sourdough proof in the cabinet?")
    (hit,) = [hit for hit in result.hits if hit.candidate]
    assert hit.confidence is SURE
    assert "26 degrees" in hit.memory.content
    assert [
        hit for hit in recall(bakery, "sourdough degrees", confident=True).hits if hit.candidate
    ] == []
    assert recall(bakery, "sourdough degrees", filter=Filter(kinds=(Kind.TODO,))).hits == ()


def test_recall_returns_turns_without_being_asked_for_turns(bakery: World) -> None:
    result = recall(bakery, "when is flour ordered?")
    assert (result.turns[0].turn.id, result.turns[0].confidence) == ("u4", SURE)


def test_hit_quotes_the_turns_that_settle_the_question(world: World) -> None:
    talk = (
        ("user", "how long does the sourdough proof in the walnut cabinet?"),
        ("assistant", "I look it up."),
        ("assistant", "Nine hours."),
        ("user", "and the rye: on the stone or on steel?"),
        ("assistant", "On stone, rye gets the better crust; on steel it is faster."),
        ("user", "stone then"),
    )
    world.transcript(
        "s2", *(says(role, text, uuid=f"v{index}") for index, (role, text) in enumerate(talk))
    )
    with world.open() as memory:
        memory.ingest(extract=False)
    (hit,) = recall(world, "rye on the stone or on steel", turns=5).turns
    texts = [hit.excerpt, *(quote.excerpt for quote in hit.quotes)]
    assert {"On stone, rye gets the better crust; on steel it is faster.", "stone then"} < {*texts}
    assert len(texts) == len(set(texts))
    (hit,) = recall(world, "how long does sourdough proof in the cabinet?").turns
    assert "Nine hours." in (quote.excerpt for quote in hit.quotes)


def test_quoted_request_is_followed_by_the_agents_answer(world: World) -> None:
    talk = (
        ("user", "the loaves at the north oven come out pale, have a look"),
        ("assistant", "Its thermostat reads twelve degrees too high."),
        ("user", "compare the loaves with those of the south oven"),
        ("assistant", "They are as dark as usual, and no thermostat was changed there."),
        ("user", "never bake pale loaves for the market"),
        ("assistant", "Noted."),
        ("user", "the north oven stays off until Monday"),
        ("assistant", "Switched off."),
        ("user", "loaves for the market come from the south oven, always"),
        ("assistant", "Planned."),
    )
    world.transcript(
        "s2", *(says(role, text, uuid=f"v{index}") for index, (role, text) in enumerate(talk))
    )
    with world.open() as memory:
        memory.ingest(extract=False)
    hit = recall(world, "why were the loaves of the north oven pale", turns=5).turns[0]
    quotes = [quote.excerpt for quote in hit.quotes]
    request = quotes.index("compare the loaves with those of the south oven")
    assert quotes[request + 1].startswith("They are as dark as usual")


def test_hit_quotes_the_next_best_match_among_later_statements(world: World) -> None:
    match = "Rye burns on steel."
    talk = (
        ("assistant", match),
        ("assistant", "I wrote that down."),
        ("user", "rye on the stone or on steel in the oven?"),
        ("user", "stone it is"),
        *(("user", f"shelf {number} is free now") for number in range(9)),
    )
    world.transcript(
        "s2", *(says(role, text, uuid=f"v{index}") for index, (role, text) in enumerate(talk))
    )
    with world.open() as memory:
        memory.ingest(extract=False)
    (hit,) = recall(world, "rye on the stone or on steel in the oven").turns
    assert hit.turn.id == "v2"
    assert match in (quote.excerpt for quote in hit.quotes)


def test_results_of_all_kinds_are_ranked_by_confidence(bakery: World) -> None:
    with bakery.open() as memory:
        memory.store("The walnut cabinet came from an auction.")
    result = recall(bakery, "at how many degrees does the sourdough proof in the cabinet?")
    levels = [tuple(HitConfidence).index(hit.confidence) for hit in result.ranked]
    assert levels == sorted(levels)
    sure = [hit for hit in result.ranked if hit.confidence is SURE]
    assert sure == [*(hit for hit in result.turns if hit.confidence is SURE), result.hits[0]]
    assert result.hits[0].candidate
    assert len(result.ranked) == len(result.hits) + len(result.turns)


def test_comments_on_tool_calls_rank_below_answers(world: World) -> None:
    comment, *results = calls("Bash", "26", uuid="c1", session="5e55-0001", command="cat oven.log")
    narration = {"type": "text", "text": "Let me read how many degrees the oven needs for rye."}
    comment["message"]["content"].insert(0, narration)
    world.transcript(
        "s1",
        says("user", "I bake tomorrow.", uuid="u1"),
        comment,
        *results,
        says("assistant", "For rye, the oven needs 230 degrees.", uuid="a1"),
    )
    with world.open() as memory:
        memory.ingest(extract=False)
        question = "how many degrees does the oven need for rye?"
        first, second = memory.call("search-sessions", text="degrees oven rye").turns
        (hit,) = memory.call("recall", text=question).turns
    assert first.turn.id == hit.turn.id == "a1"
    assert "narration" in second.components
    assert not [quote for quote in hit.quotes if "Let" in quote.excerpt]


def test_memory_with_all_common_words_is_found(world: World) -> None:
    with world.open() as memory:
        for number in range(12):
            memory.store(f"Use the crate number {number} for parcel {number * 7}.", force=True)
        memory.store("We use wicker.", force=True)
    for question in ("use", "we use wicker"):
        result = recall(world, question, limit=40)
        assert "We use wicker." in {hit.memory.content for hit in result.hits}, question


@pytest.mark.parametrize(
    "question", ["which violin strings do we buy?", "who painted the harbour?", "ok, go on"]
)
def test_unrelated_questions_get_only_weak_hits(bakery: World, question: str) -> None:
    result = recall(bakery, question)
    assert not result.is_answered
    assert {hit.confidence for hit in result.hits} <= {WEAK}
    assert {hit.confidence for hit in result.turns} <= {WEAK}


def test_recall_without_any_match_returns_nothing(bakery: World) -> None:
    result = recall(bakery, "quantum chromodynamics", mode="lexical")
    assert (result.hits, result.turns) == ((), ())


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


# Ranking of statements by the owner and of later statements


def talk_about(world: World, session: str, day: int, *talk: tuple[str, str]) -> None:
    records = (
        says(
            role,
            text,
            uuid=f"{session}{index}",
            session=session,
            at=f"2026-11-{day:02}T09:{index:02}:00Z",
        )
        for index, (role, text) in enumerate(talk)
    )
    world.transcript(session, *records)
    with world.open() as memory:
        memory.ingest(extract=False)


def ranked_texts(result: RecallResult) -> list[str]:
    return [hit.turn.text for hit in result.ranked if not hasattr(hit, "memory")]


def test_later_statement_ranks_first_and_marks_the_older(world: World) -> None:
    old, new = (
        "The oven log is kept for 14 days.",
        "Make it 90 days for which the oven log is kept.",
    )
    talk_about(world, "5e55-0001", 3, ("user", old), ("assistant", "Noted."))
    talk_about(world, "5e55-0002", 10, ("user", new), ("assistant", "Done."))
    result = recall(world, "how many days is the oven log kept?")
    first, second = result.ranked[:2]
    assert ranked_texts(result)[:2] == [new, old]
    assert (first.doubt, second.doubt) == (None, "the owner said more on 2026-11-10")
    assert second.confidence is not SURE


def test_owners_statement_ranks_before_the_agents_comment(world: World) -> None:
    rule = "Sourdough proofs in the walnut cabinet."
    comment = "Sourdough proofs well in a cabinet near the oven."
    talk_about(world, "5e55-0001", 3, ("user", rule), ("assistant", comment), ("user", "bake"))
    result = recall(world, "in which cabinet does sourdough proof?")
    assert ranked_texts(result)[0] == rule


def test_agents_answer_is_first_if_only_the_agent_answers(world: World) -> None:
    answer = "The oven failed because its door sensor was wet."
    talk_about(world, "5e55-0001", 3, ("user", "look at the bakery"), ("assistant", answer))
    assert ranked_texts(recall(world, "why did the oven fail?"))[0] == answer


def test_equal_hits_of_two_sessions_are_not_sure(world: World) -> None:
    words = "Flour is ordered on Thursdays"
    talk_about(world, "5e55-0001", 3, ("assistant", f"{words}, says the north mill."))
    assert recall(world, "when is flour ordered on Thursdays?").ranked[0].confidence is SURE
    talk_about(world, "5e55-0002", 4, ("assistant", f"{words}, says the south mill."))
    assert recall(world, "when is flour ordered on Thursdays?").ranked[0].confidence is LIKELY
