"""Another embedding model: made beside the one in use, exchanged when it is whole, and back again."""

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
from nacre.data import forget
from nacre.data.forget import ForgetRequest
from nacre.errors import EmbedderUnavailableError, InvalidSettingsError
from nacre.home.home import Home, open_home
from nacre.llm.local_model import load_minilm
from nacre.memories import vectors as model_switch
from nacre.memories.erasure import erase_written_bytes
from nacre.memories.vectors import embed_pending
from nacre.settings import Settings
from nacre.values.recall import RecallResult
from tests.app.conftest import World, says

OLD, NEW, THIRD = "ollama:old", "ollama:new", "ollama:third"
QUESTION = "which harbour crane was painted?"


@dataclass
class Words:
    """An embedder without a model, whose vectors differ from name to name; ``fails`` once so many texts are done."""

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
class Models:
    """The models of a machine, by their names in the settings."""

    found: dict[str, Words] = field(
        default_factory=lambda: {
            "minilm": Words("minilm"),
            OLD: Words("old@128"),
            NEW: Words("new@192", 192),
            THIRD: Words("third@100", 100),
        }
    )

    def __call__(self, settings: Settings) -> Words:
        return self.found[settings["embedding.model"]]


@pytest.fixture
def models() -> Models:
    return Models()


def opened(world: World, models: Models, settings: Settings | None = None) -> Home:
    return open_home(settings or world.settings(), clock=world.clock, load_embedder=models)


def sets(world: World, model: str) -> None:
    world.home.mkdir(mode=0o700, exist_ok=True)
    (world.home / "config.toml").write_text(f'[embedding]\nmodel = "{model}"\n', encoding="utf-8")


def filled(world: World, models: Models, turns: int = 300) -> Home:
    """A home whose vectors the old model made."""
    sets(world, OLD)
    world.transcript(
        "s1",
        *[
            says("user", f"Harbour crane number {n} was painted in colour {n}.", uuid=f"u{n}")
            for n in range(turns)
        ],
    )
    context = opened(world, models)
    with MemoryHome(context) as memory:
        memory.store("The harbour cranes are painted every second spring.")
        memory.store("The ferry office closes at noon on Sundays.")
        memory.ingest()
    return opened(world, models)


def asked(world: World, models: Models) -> RecallResult:
    with MemoryHome(opened(world, models)) as memory:
        return memory.recall(QUESTION, update=False)


def shown(result: RecallResult) -> tuple[object, ...]:
    hits = [(hit.memory.id, hit.score, dict(hit.components)) for hit in result.hits]
    turns = [(hit.turn.id, hit.score, dict(hit.components)) for hit in result.turns]
    return hits, turns, result.lanes


def begun(context: Home, models: Models, *, after: int) -> Home:
    """In the middle of going over to the new model, which stopped answering."""
    models.found[NEW].fails_after = after
    made = model_switch.switch(context, lambda _: None, name=NEW)
    assert made.left
    assert "cannot be reached" in (made.note or "")
    return context


def test_recall_results_are_unchanged_during_a_switch(world: World, models: Models) -> None:
    context = filled(world, models)
    before = shown(asked(world, models))
    begun(context, models, after=150)
    standing = model_switch.status(opened(world, models))
    assert standing.switching
    assert standing.other
    assert standing.other.passages + standing.other.memories >= 100
    assert shown(asked(world, models)) == before


def test_recall_after_a_switch_uses_only_new_vectors(world: World, models: Models) -> None:
    context = filled(world, models)
    before = shown(asked(world, models))
    assert model_switch.switch(context, lambda _: None, name=NEW).left == 0
    asked_before = list(models.found[OLD].embedded)
    after = asked(world, models)
    assert after.lanes[1].state == "ran"
    assert shown(after) != before
    assert models.found[OLD].embedded == asked_before
    assert opened(world, models).vectors.dimensions() == 192


def test_memory_stored_during_a_switch_is_found_immediately(world: World, models: Models) -> None:
    context = filled(world, models)
    begun(context, models, after=150)
    with MemoryHome(opened(world, models)) as memory:
        stored = memory.store("A seagull stole the crane driver's sandwich.")
        found = memory.recall("seagull sandwich", mode="vector").hits
    assert found[0].memory.id == stored.memory_id
    models.found[NEW].fails_after = None
    assert model_switch.resume(opened(world, models), lambda _: None).left == 0
    with MemoryHome(opened(world, models)) as memory:
        assert (
            memory.recall("seagull sandwich", mode="vector").hits[0].memory.id == stored.memory_id
        )


def test_interrupted_switch_resumes(world: World, models: Models) -> None:
    context = filled(world, models)
    begun(context, models, after=150)
    done = len(models.found[NEW].embedded)
    models.found[NEW].fails_after = None
    with MemoryHome(opened(world, models)) as memory:
        memory.ingest()
    assert model_switch.status(opened(world, models)).in_use.setting == NEW  # type: ignore[union-attr]
    assert len(models.found[NEW].embedded) == 302
    assert done >= 100


def test_switch_completes_without_the_old_model(world: World, models: Models) -> None:
    context = filled(world, models)
    begun(context, models, after=150)
    models.found[OLD].fails_after = 0
    models.found[NEW].fails_after = None
    with MemoryHome(opened(world, models)) as memory:
        memory.store("The lighthouse keeper retired.")
        result = memory.recall("lighthouse keeper")
        assert result.hits
        assert "cannot be reached" in (result.lanes[1].note or "")
    assert model_switch.resume(opened(world, models), lambda _: None).left == 0
    assert asked(world, models).lanes[1].state == "ran"


def test_abandoned_switch_leaves_recall_unchanged(world: World, models: Models) -> None:
    context = filled(world, models)
    before = shown(asked(world, models))
    begun(context, models, after=150)
    assert model_switch.switch(opened(world, models), lambda _: None, name=OLD).made == 0
    standing = model_switch.status(opened(world, models))
    assert (standing.switching, standing.other) == (False, None)
    assert shown(asked(world, models)) == before


def test_old_vectors_are_removed_after_a_switch(world: World, models: Models) -> None:
    model_switch.switch(filled(world, models), lambda _: None, name=NEW)
    assert model_switch.status(opened(world, models)).other is None
    model_switch.switch(opened(world, models), lambda _: None, name=THIRD)
    standing = model_switch.status(opened(world, models))
    assert [lot and lot.setting for lot in (standing.in_use, standing.other)] == [THIRD, None]
    assert asked(world, models).lanes[1].state == "ran"  # 100 numbers are no whole words of bits


def test_switch_estimate_counts_each_missing_text_once(world: World, models: Models) -> None:
    context = filled(world, models)
    world.transcript(
        "s2",
        says("user", "Harbour crane number 7 was painted in colour 7.", uuid="again", session="s2"),
    )
    with MemoryHome(opened(world, models)) as memory:
        memory.ingest()
    assert model_switch.plan(context, name=NEW).texts == 302
    assert not models.found[NEW].embedded
    begun(opened(world, models), models, after=150)
    assert model_switch.plan(opened(world, models), name=NEW).texts == 302 - len(
        models.found[NEW].embedded
    )


def test_question_embedded_before_a_switch_matches_no_new_vectors(
    world: World, models: Models
) -> None:
    context = filled(world, models)
    vectors = context.vectors.of("old@128")
    query = models.found[OLD].embed([QUESTION])[0]
    assert vectors.nearest_turns(query, limit=5)
    model_switch.switch(opened(world, models), lambda _: None, name=NEW)  # another process
    assert vectors.nearest_turns(query, limit=5) == []
    assert vectors.memory_cosines(query) == {}
    assert vectors.cosines_of_turns(query, [1, 2, 3]) == {}


def test_open_home_searches_the_new_vectors_after_a_switch(world: World, models: Models) -> None:
    with MemoryHome(filled(world, models)) as memory:
        memory.recall(QUESTION, update=False)
        model_switch.switch(opened(world, models), lambda _: None, name=NEW)  # another process
        here = shown(memory.recall(QUESTION, update=False))
        assert here == shown(asked(world, models))


def test_forgetting_also_erases_vectors_of_an_unfinished_switch(
    world: World, models: Models
) -> None:
    context = begun(filled(world, models), models, after=150)
    request = ForgetRequest(match="crane number 77")
    forget.forget(context, forget.prepare(context, request))
    erase_written_bytes(context)
    gone = "SELECT count(*) FROM passages WHERE vector = zeroblob(length(vector))"
    assert context.database.rows(gone) == [(1,)]
    assert context.database.rows(gone.replace("passages", "other_passages")) == [(1,)]


def test_model_returning_another_vector_size_does_not_corrupt_the_index(
    world: World, models: Models
) -> None:
    context = filled(world, models)
    models.found[OLD].dimensions = 96
    with MemoryHome(opened(world, models)) as memory:
        memory.store("The crane driver has a parrot.")
        result = memory.recall("painted crane")
        assert result.hits
        assert "96 dimensions" in (result.lanes[1].note or "")
    assert "96 dimensions" in (embed_pending(opened(world, models), lambda _: None).note or "")
    assert context.vectors.dimensions() == 128


def test_environment_variable_for_the_model_prevents_a_switch(world: World, models: Models) -> None:
    context = filled(world, models)
    world.environ["NACRE_EMBEDDING_MODEL"] = OLD
    with pytest.raises(InvalidSettingsError, match="NACRE_EMBEDDING_MODEL"):
        model_switch.switch(opened(world, models), lambda _: None, name=NEW)
    assert not model_switch.status(context).switching


def test_rebuild_does_not_embed_session_texts_again(world: World, models: Models) -> None:
    context = filled(world, models)
    before = shown(asked(world, models))
    context.close()
    models.found[OLD].embedded.clear()
    database.rebuild(world.settings(), lambda settings: opened(world, models, settings))
    assert len(models.found[OLD].embedded) == 2  # its memories are few
    assert shown(asked(world, models))[1:] == before[1:]


def test_rebuild_during_a_switch_keeps_the_current_vectors(world: World, models: Models) -> None:
    context = begun(filled(world, models), models, after=150)
    before = shown(asked(world, models))
    context.close()
    models.found[OLD].embedded.clear()
    database.rebuild(world.settings(), lambda settings: opened(world, models, settings))
    standing = model_switch.status(opened(world, models))
    assert (standing.in_use and standing.in_use.setting, standing.switching) == (OLD, True)
    assert len(models.found[OLD].embedded) == 2  # its memories are few
    assert shown(asked(world, models))[1:] == before[1:]


class AllNear(Words):
    """The bundled model with what all texts have in common added: no cosine is below .6."""

    step = 128
    tokens = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        alike = np.full((len(texts), 1), 0.7**0.5, np.float32)
        return np.hstack([load_minilm(threads=1).embed(texts) * 0.3**0.5, alike])

    def within(self, seconds: float, *, question: bool = False) -> AllNear:
        return self

    def close(self) -> None:
        """Nothing is held."""


def test_model_with_high_cosines_cannot_make_recall_weak(world: World, models: Models) -> None:
    sets(world, OLD)
    models.found[OLD] = AllNear("near", 385)
    with MemoryHome(opened(world, models)) as memory:
        stored = memory.store("Purchases are settled on the last day of each month.")
        memory.store("The ferry office closes at noon on Sundays.")
        memory.ingest()
        unrelated = memory.recall("who wrote the violin concerto?", mode="vector").hits
        assert {hit.confidence for hit in unrelated} <= {"weak"}
        found = memory.recall("when do we pay for what we bought?", mode="vector").hits
        assert found[0].memory.id == stored.memory_id
