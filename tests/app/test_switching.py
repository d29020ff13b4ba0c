"""Switching the embedding model replaces all vectors, can be resumed and can be reversed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from nacre.api import MemoryHome
from nacre.base.text import words
from nacre.care import database
from nacre.errors import EmbedderUnavailableError, InvalidSettingsError
from nacre.home.home import Home, open_home
from nacre.llm.local_model import load_minilm
from nacre.memories import vectors as model_switch
from nacre.memories.vectors import embed_pending
from nacre.settings import Settings
from nacre.values.recall import RecallResult
from tests.app.conftest import World, says

OLD, NEW, THIRD = "ollama:old", "ollama:new", "ollama:third"
QUESTION = "which harbour crane was painted?"


@dataclass
class HashingEmbedder:
    """A hashing embedder whose vectors depend on its name; it fails after ``fails_after`` texts."""

    name: str
    dimensions: int = 128
    fails_after: int | None = None
    embedded: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.fails_after is not None and len(self.embedded) >= self.fails_after:
            raise EmbedderUnavailableError(f"{self.name} cannot be reached")
        self.embedded += texts
        vectors = np.full((len(texts), self.dimensions), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for word in words(text):
                digest = hashlib.blake2b(f"{self.name} {word}".encode(), digest_size=4).digest()
                vectors[row, int.from_bytes(digest) % self.dimensions] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@dataclass
class InstalledModels:
    """The embedders of a machine by the name of the model in the settings."""

    embedders: dict[str, HashingEmbedder] = field(
        default_factory=lambda: {
            "minilm": HashingEmbedder("minilm"),
            OLD: HashingEmbedder("old@128"),
            NEW: HashingEmbedder("new@192", 192),
            THIRD: HashingEmbedder("third@100", 100),
        }
    )

    def __call__(self, settings: Settings) -> HashingEmbedder:
        return self.embedders[settings["embedding.model"]]


@pytest.fixture
def models() -> InstalledModels:
    return InstalledModels()


def open_with(world: World, models: InstalledModels, settings: Settings | None = None) -> Home:
    return open_home(settings or world.settings(), clock=world.clock, load_embedder=models)


def set_model(world: World, model: str) -> None:
    world.home.mkdir(mode=0o700, exist_ok=True)
    (world.home / "config.toml").write_text(f'[embedding]\nmodel = "{model}"\n', encoding="utf-8")


def home_with_old_vectors(world: World, models: InstalledModels, turns: int = 300) -> Home:
    """Return a home with vectors of the old model."""
    set_model(world, OLD)
    world.transcript(
        "s1",
        *[
            says("user", f"Harbour crane number {n} was painted in colour {n}.", uuid=f"u{n}")
            for n in range(turns)
        ],
    )
    context = open_with(world, models)
    with MemoryHome(context) as memory:
        memory.store("The harbour cranes are painted every second spring.")
        memory.store("The ferry office closes at noon on Sundays.")
        memory.ingest()
    return open_with(world, models)


def recall_question(world: World, models: InstalledModels) -> RecallResult:
    with MemoryHome(open_with(world, models)) as memory:
        return memory.recall(QUESTION, update=False)


def ranking(result: RecallResult) -> tuple[object, ...]:
    hits = [(hit.memory.id, hit.score, dict(hit.components)) for hit in result.hits]
    turns = [(hit.turn.id, hit.score, dict(hit.components)) for hit in result.turns]
    return hits, turns, result.lanes


def begin_switch(context: Home, models: InstalledModels, *, after: int) -> Home:
    """Begin a switch to the new model, which fails before it is finished."""
    models.embedders[NEW].fails_after = after
    report = model_switch.switch(context, lambda _: None, name=NEW)
    assert report.left
    assert "cannot be reached" in (report.note or "")
    return context


def test_recall_finds_memories_by_their_new_vectors_during_a_switch(
    world: World, models: InstalledModels
) -> None:
    begin_switch(home_with_old_vectors(world, models), models, after=150)
    status = model_switch.status(open_with(world, models))
    assert status.in_use
    assert (status.in_use.setting, status.in_use.memories) == (NEW, 2)
    assert 0 < status.in_use.waiting < 300
    models.embedders[NEW].fails_after = None
    result = recall_question(world, models)
    assert result.lanes[1].state == "partial"
    assert result.hits[0].memory.subject.startswith("The harbour cranes")


def test_model_that_does_not_answer_replaces_no_vectors(
    world: World, models: InstalledModels
) -> None:
    context = home_with_old_vectors(world, models, turns=3)
    before = ranking(recall_question(world, models))
    models.embedders[NEW].fails_after = 0
    report = model_switch.switch(context, lambda _: None, name=NEW)
    assert "cannot be reached" in (report.note or "")
    assert ranking(recall_question(world, models)) == before
    with MemoryHome(open_with(world, models)) as memory:
        memory.store("A seagull stole the crane driver's sandwich.")
        memory.ingest()
    status = model_switch.status(open_with(world, models))
    assert status.in_use
    assert (status.wanted, status.in_use.setting) == (NEW, OLD)
    assert (status.in_use.memories, status.in_use.waiting) == (3, 0)


def test_recall_after_a_switch_uses_only_new_vectors(world: World, models: InstalledModels) -> None:
    context = home_with_old_vectors(world, models)
    before = ranking(recall_question(world, models))
    assert model_switch.switch(context, lambda _: None, name=NEW).left == 0
    embedded_before = list(models.embedders[OLD].embedded)
    after = recall_question(world, models)
    assert after.lanes[1].state == "ran"
    assert ranking(after) != before
    assert models.embedders[OLD].embedded == embedded_before
    assert open_with(world, models).vectors.dimensions() == 192


def test_interrupted_switch_resumes(world: World, models: InstalledModels) -> None:
    context = home_with_old_vectors(world, models)
    begin_switch(context, models, after=150)
    embedded_count = len(models.embedders[NEW].embedded)
    models.embedders[NEW].fails_after = None
    with MemoryHome(open_with(world, models)) as memory:
        memory.ingest()
    assert model_switch.status(open_with(world, models)).in_use.setting == NEW  # type: ignore[union-attr]
    assert len(models.embedders[NEW].embedded) == 303, "includes the text of the trial call"
    assert embedded_count >= 100


def test_switch_and_its_reversal_work_without_the_old_model(
    world: World, models: InstalledModels
) -> None:
    context = home_with_old_vectors(world, models, turns=3)
    before = ranking(recall_question(world, models))
    models.embedders[OLD].fails_after = 0
    assert model_switch.switch(context, lambda _: None, name=NEW).left == 0
    assert recall_question(world, models).lanes[1].state == "ran"
    model_switch.switch(open_with(world, models), lambda _: None, name=THIRD)
    assert (
        recall_question(world, models).lanes[1].state == "ran"
    )  # 100 is not a multiple of the word size
    models.embedders[OLD].fails_after = None
    model_switch.switch(open_with(world, models), lambda _: None, name=OLD)
    assert ranking(recall_question(world, models)) == before


def test_switch_estimate_counts_each_missing_text_once(
    world: World, models: InstalledModels
) -> None:
    context = home_with_old_vectors(world, models)
    world.transcript(
        "s2",
        says("user", "Harbour crane number 7 was painted in colour 7.", uuid="again", session="s2"),
    )
    with MemoryHome(open_with(world, models)) as memory:
        memory.ingest()
    assert model_switch.plan(context, name=NEW).texts == 302
    assert not models.embedders[NEW].embedded
    begin_switch(open_with(world, models), models, after=150)
    embedded_count = len(models.embedders[NEW].embedded) - 1  # without the text of the trial call
    assert model_switch.plan(open_with(world, models), name=NEW).texts == 302 - embedded_count


def test_question_embedded_before_a_switch_matches_no_new_vectors(
    world: World, models: InstalledModels
) -> None:
    context = home_with_old_vectors(world, models)
    vectors = context.vectors.of("old@128")
    query = models.embedders[OLD].embed([QUESTION])[0]
    assert vectors.nearest_turns(query, limit=5)
    model_switch.switch(open_with(world, models), lambda _: None, name=NEW)  # another process
    assert vectors.nearest_turns(query, limit=5) == []
    assert vectors.memory_cosines(query) == {}
    assert vectors.cosines_of_turns(query, [1, 2, 3]) == {}


def test_open_home_searches_the_new_vectors_after_a_switch(
    world: World, models: InstalledModels
) -> None:
    with MemoryHome(home_with_old_vectors(world, models)) as memory:
        memory.recall(QUESTION, update=False)
        model_switch.switch(open_with(world, models), lambda _: None, name=NEW)  # another process
        result = ranking(memory.recall(QUESTION, update=False))
        assert result == ranking(recall_question(world, models))


def test_model_returning_another_vector_size_does_not_corrupt_the_index(
    world: World, models: InstalledModels
) -> None:
    context = home_with_old_vectors(world, models)
    models.embedders[OLD].dimensions = 96
    with MemoryHome(open_with(world, models)) as memory:
        memory.store("The crane driver has a parrot.")
        result = memory.recall("painted crane")
        assert result.hits
        assert "96 dimensions" in (result.lanes[1].note or "")
    assert "96 dimensions" in (embed_pending(open_with(world, models), lambda _: None).note or "")
    assert context.vectors.dimensions() == 128


def test_environment_variable_for_the_model_prevents_a_switch(
    world: World, models: InstalledModels
) -> None:
    context = home_with_old_vectors(world, models)
    world.environ["NACRE_EMBEDDING_MODEL"] = OLD
    with pytest.raises(InvalidSettingsError, match="NACRE_EMBEDDING_MODEL"):
        model_switch.switch(open_with(world, models), lambda _: None, name=NEW)
    assert model_switch.status(context).wanted == OLD


def test_rebuild_does_not_embed_session_texts_again(world: World, models: InstalledModels) -> None:
    context = home_with_old_vectors(world, models)
    before = ranking(recall_question(world, models))
    context.close()
    models.embedders[OLD].embedded.clear()
    database.rebuild(
        world.settings(), open_home=lambda settings: open_with(world, models, settings)
    )
    assert len(models.embedders[OLD].embedded) == 2  # only the two memories
    assert ranking(recall_question(world, models))[1:] == before[1:]


class SimilarEmbedder(HashingEmbedder):
    """The bundled model with a shared component added, so that no cosine is below 0.6."""

    step = 128
    tokens = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        alike = np.full((len(texts), 1), 0.7**0.5, np.float32)
        return np.hstack([load_minilm(threads=1).embed(texts) * 0.3**0.5, alike])

    def within(self, seconds: float, *, question: bool = False) -> SimilarEmbedder:
        return self

    def close(self) -> None:
        """Do nothing."""


def test_model_with_high_cosines_cannot_make_recall_weak(
    world: World, models: InstalledModels
) -> None:
    set_model(world, OLD)
    models.embedders[OLD] = SimilarEmbedder("near", 385)
    with MemoryHome(open_with(world, models)) as memory:
        outcome = memory.store("Purchases are settled on the last day of each month.")
        memory.store("The ferry office closes at noon on Sundays.")
        memory.ingest()
        unrelated = memory.recall("who wrote the violin concerto?", mode="vector").hits
        assert {hit.confidence for hit in unrelated} <= {"weak"}
        hits = memory.recall("when do we pay for what we bought?", mode="vector").hits
        assert hits[0].memory.id == outcome.memory_id
