"""What a model makes of what was said: twisted answers are not taken, honest ones are, in four languages and more."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from nacre.api import MemoryHome
from nacre.home.home import open_home
from tests.app.conftest import World, says
from tests.fakes.model import ScriptedModel

TABLES = Path(__file__).parent
TWISTS: dict[str, list[dict[str, Any]]] = tomllib.loads((TABLES / "twists.toml").read_text(encoding="utf-8"))
HONEST: dict[str, list[dict[str, Any]]] = tomllib.loads((TABLES / "honest.toml").read_text(encoding="utf-8"))


REASONS = {"asked": "asked", "supposed": "supposed", "of_another": "of another"}
"""Why twists of a table are not taken; all others are "turned round"."""


def taken(world: World, group: str) -> list[str]:
    """The twists of a table that were taken, or dropped for a reason that is not theirs, with that; what stands in
    quotation marks counts as pasted, whoever said it."""
    reason = REASONS.get(group, "turned round")
    found = [(case["content"], *judged(world, f"case-{at}", **case)) for at, case in enumerate(TWISTS[group])]
    return [
        f"{content} {dropped}"
        for content, memories, dropped in found
        if memories or dropped not in ([reason], ["pasted"])
    ]


def judged(
    world: World, name: str, *, said: list[str], quote: str, content: str, kind: str = "preference",
    evidence: list[int] | None = None,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """What is taken of a model's answer about one session, and why the rest is not."""
    for at, text in enumerate(said):
        role = "assistant" if text.startswith("~") else "user"
        path = world.transcript(
            name, says(role, text.lstrip("~"), uuid=f"{name}-{at}", session=name, at=f"2026-11-18T09:00:{at:02}.000Z")
        )
    answer = {
        "kind": kind, "subject": "Matter at hand", "content": content, "importance": 7, "expiry": "permanent",
        "tags": [], "canonical_key": None, "evidence": evidence or list(range(len(said))), "quote": quote,
    }  # fmt: skip
    model = ScriptedModel([{"memories": [answer]}], repeats=True)
    world.environ |= {"NACRE_MODELS_EXTRACTION": "scripted:1", "NACRE_EMBEDDING_MODEL": "none"}
    context = open_home(world.settings(), clock=world.clock, load_model=lambda _, __: model)
    with MemoryHome(context) as memory:
        (proposal,) = memory.extract(path)
    assert proposal.asked is not None
    return [one.content for one in proposal.candidates], list(proposal.asked.dropped)


def test_there_are_as_many_honest_answers_as_twisted_ones() -> None:
    assert sum(map(len, TWISTS.values())) >= 130
    assert sum(map(len, HONEST.values())) >= 120


def test_a_memory_that_says_the_opposite_of_what_was_said_is_not_taken(world: World) -> None:
    assert taken(world, "inverted") == []


def test_a_memory_with_a_word_exchanged_for_its_opposite_is_not_taken(world: World) -> None:
    assert taken(world, "opposite") == []


def test_a_memory_whose_words_have_changed_places_is_not_taken(world: World) -> None:
    assert taken(world, "swapped") == []


def test_what_stands_behind_a_denial_is_denied_however_far_away_that_is(world: World) -> None:
    assert taken(world, "denied") == []


def test_a_question_is_no_evidence_of_what_it_asks(world: World) -> None:
    assert taken(world, "asked") == []


def test_what_only_might_be_done_is_not_what_is_done(world: World) -> None:
    assert taken(world, "supposed") == []


def test_what_others_want_is_not_what_the_owner_wants(world: World) -> None:
    assert taken(world, "of_another") == []


@pytest.mark.parametrize("group", sorted(HONEST))
def test_an_honest_answer_is_taken(world: World, group: str) -> None:
    found = [(case["content"], *judged(world, f"case-{at}", **case)) for at, case in enumerate(HONEST[group])]
    assert [f"{content} {dropped}" for content, memories, dropped in found if not memories] == []
