"""What a statement means, beside the words it is said with."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import numpy as np
import pytest

from nacre.embed.minilm import MODEL_NAME
from nacre.extraction import prototypes
from nacre.extraction.reading.meaning import Affinity
from nacre.values.memory import Kind
from nacre.values.session import Speaker
from tests.extract.conftest import agent, memories, only, owner


class Believes:
    """Takes every statement for what it was told, and counts what it is asked."""

    def __init__(self, worth: float, kind: Kind = Kind.PREFERENCE) -> None:
        self.affinity = Affinity(worth, kind, 1.0, Kind.FACT, weight=2.0, alone=0.9)
        self.asked: list[str] = []

    def affinities(self, texts: Sequence[str], language: str) -> Sequence[Affinity]:
        self.asked += texts
        return [self.affinity] * len(texts)


class Ignorant:
    """Knows no language."""

    def affinities(self, texts: Sequence[str], language: str) -> None:
        return None


RULE = "single quotes in all the templates"


def test_a_rule_without_a_cue_is_kept_for_its_meaning_alone() -> None:
    assert memories(owner(RULE)) == []
    assert memories(owner(RULE), meaning=Believes(0.5)) == []

    found = memories(owner(RULE), meaning=Believes(0.97))

    assert [(one.kind, one.content) for one in found] == [(Kind.PREFERENCE, "Single quotes in all the templates")]


@pytest.mark.parametrize(
    "said",
    [
        "I think the parser is a bit slow",
        "the invoice page is broken again",
        "we will also need a second list",
        "run the importer with the other file",
        "which of the parsers do we use",
        "how about another name for the field",
        "maybe a list would be better there",
    ],
)
def test_no_meaning_makes_an_opinion_trouble_or_an_order_worth_keeping(said: str) -> None:
    assert memories(owner(said), meaning=Believes(0.99)) == []


def test_what_sounds_like_junk_needs_more_than_a_light_cue() -> None:
    said = "Amounts should be stored in the database as whole cents, so that sums are exact."

    assert memories(owner(said), meaning=Believes(0.5))
    assert memories(owner(said), meaning=Believes(0.0)) == []


def test_what_is_to_be_remembered_is_kept_whatever_it_means() -> None:
    assert memories(owner("Remember that the cellar key hangs behind the door."), meaning=Believes(0.0))


def test_only_statements_that_could_matter_are_judged() -> None:
    believes = Believes(0.97)
    pasted = "\n".join(f"- point {number} of the list of the vendor" for number in range(20))

    memories(
        owner("ok"),
        owner("can you look at the parser?"),
        owner("run the tests again please"),
        owner(pasted),
        owner(RULE),
        agent("We always use double quotes in the templates."),
        meaning=believes,
    )

    assert believes.asked == [RULE]


def test_a_meaning_that_knows_nothing_of_the_language_changes_nothing() -> None:
    turns = (owner("Never push directly to the main branch."), owner(RULE))

    assert memories(*turns, meaning=Ignorant()) == memories(*turns)


# --- accepted conclusions ---

_ADVICE = "I looked at both. I'd recommend one connection per tenant, since a shared pool mixes up the search paths."


def test_a_conclusion_the_owner_accepted_is_the_agents_memory() -> None:
    found = only(agent(_ADVICE), owner("makes sense, do that"))

    assert found.content == "I'd recommend one connection per tenant, since a shared pool mixes up the search paths."
    assert (found.speaker, found.importance, found.turns) == (Speaker.AGENT, 6, ("t0", "t1"))


def test_what_the_owner_adds_makes_it_the_owners() -> None:
    found = only(agent(_ADVICE), owner("good idea, but at most fifty of them"))

    assert found.content.endswith("search paths. But at most fifty of them")
    assert found.speaker is Speaker.OWNER


def test_an_accepted_conclusion_that_sounds_like_junk_is_not_kept() -> None:
    assert memories(agent(_ADVICE), owner("makes sense"), meaning=Believes(0.1)) == []


# --- the tables ---


@pytest.mark.parametrize("language", prototypes.tables())
def test_what_was_learned_belongs_to_the_table_as_it_is(language: str) -> None:
    table = prototypes.read_table(language)
    with files(prototypes).joinpath(f"{language}.npz").open("rb") as file:
        digest = str(np.load(file)["digest"])

    assert digest == table.digest, "run scripts/learn_prototypes.py"
    assert {Kind(name) for name in table.kinds} == set(Kind)
    assert len({text for text, _ in table.sentences}) == len(table.sentences)


def test_vectors_of_another_model_are_not_judged() -> None:
    assert prototypes.load("en", MODEL_NAME)
    assert prototypes.load("en", "another-model") is None
