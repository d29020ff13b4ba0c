"""How much of what people say is kept, and how much of what they only say on the way: rates over a table of probes."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nacre.embed.onnx import load_minilm
from nacre.extraction import prototypes
from nacre.extraction.reading.meaning import Affinity, Meaning
from tests.extract.conftest import agent, memories, owner

PROBES: dict[str, Any] = tomllib.loads((Path(__file__).parent / "probes.toml").read_text(encoding="utf-8"))


class ModelMeaning:
    """The bundled model and its prototypes, as the service layer puts them together."""

    def __init__(self) -> None:
        self.embedder = load_minilm()

    def affinities(self, texts: Sequence[str], language: str) -> Sequence[Affinity] | None:
        learned = prototypes.load(language, self.embedder.name)
        return learned.affinities(texts, self.embedder.embed(texts)) if learned else None


@pytest.fixture(scope="module")
def meaning() -> Meaning:
    return ModelMeaning()


def kept(texts: Sequence[str], meaning: Meaning | None = None) -> list[str]:
    return [text for text in texts if memories(owner(text), meaning=meaning)]


def every(part: str) -> list[str]:
    return [text for texts in PROBES[part].values() for text in texts]


def test_cues_alone_keep_half_of_what_matters_and_almost_no_junk() -> None:
    matters, junk = every("kept"), every("junk")

    assert len(kept(matters)) >= 0.5 * len(matters)
    assert len(kept(junk)) <= 0.06 * len(junk)


@pytest.mark.embedding
def test_meaning_finds_more_of_what_matters_and_no_more_junk(meaning: Meaning) -> None:
    matters, junk = every("kept"), every("junk")

    assert len(kept(matters, meaning)) >= 0.7 * len(matters)
    assert len(kept(junk, meaning)) <= 0.05 * len(junk)


@pytest.mark.parametrize("kind", [kind for kind in PROBES["kept"] if kind != "chinese"])
@pytest.mark.embedding
def test_most_of_what_is_kept_is_of_its_kind(kind: str, meaning: Meaning) -> None:
    found = [memories(owner(text), meaning=meaning) for text in PROBES["kept"][kind]]
    kinds = [one[0].kind for one in found if one]

    assert kinds.count(kind) >= 0.65 * len(kinds)


@pytest.mark.parametrize("case", PROBES["answers"], ids=lambda case: f"{case['name']}-{case['kept']}")
def test_an_answer_is_kept_with_what_it_answers_or_not_at_all(case: dict[str, Any]) -> None:
    asked = (
        [owner(case["before"][0]), agent(case["before"][1])] if len(case["before"]) > 1 else [agent(*case["before"])]
    )
    found = [memories(*asked, owner(said)) for said in case["said"]]

    assert sum(map(bool, found)) >= 0.9 * len(found) if case["kept"] else not any(found)


def test_no_prototype_is_a_probe() -> None:
    probes = {text.lower() for text in (*every("kept"), *every("junk"))}
    said = {text.lower() for name in prototypes.tables() for text, _ in prototypes.read_table(name).sentences}

    assert not probes & said
