"""A pending model call does not block other threads of an open home."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from nacre.api import MemoryHome
from nacre.values.models import Prompt
from nacre.values.reports import StoreOutcome
from nacre.values.session import Task
from tests.app.conftest import World, says
from tests.fakes.model import ScriptedModel

PATIENCE = 20.0
"""Seconds to wait for a blocked thread before the test fails."""

OLD = "The nightly export of invoices runs on the machine in the cellar"
NEW = "Invoices are exported every night by the machine in the cellar, and the log is kept"
MERGED = "The nightly export of invoices runs on the machine in the cellar, and the log is kept"


@dataclass
class BlockingModel:
    """A model that sets ``is_asked`` when called and answers after ``may_answer`` is set."""

    answer: Callable[[Prompt], Any]
    is_asked: threading.Event = field(default_factory=threading.Event)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __call__(self, prompt: Prompt) -> Any:
        self.is_asked.set()
        assert self.may_answer.wait(PATIENCE), "may_answer was not set in time"
        return self.answer(prompt)


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def use_blocking_model(
    world: World, answer: Callable[[Prompt], Any], **environ: str
) -> BlockingModel:
    model = BlockingModel(answer)
    world.model = ScriptedModel(model)
    world.environ |= {
        "NACRE_MODELS_BACKGROUND": "true",
        "NACRE_EMBEDDING_MODEL": "minilm",
        "NACRE_MODELS_DEFAULT": "none",
        "NACRE_DEDUP_MODEL_SECONDS": str(PATIENCE),
        **environ,
    }
    return model


def merge(_: Prompt) -> dict[str, Any]:
    return {"action": "UPDATE", "target": 1, "merged": MERGED, "reason": "adds the log"}


def store(memory: MemoryHome, content: str) -> StoreOutcome:
    return memory.store(content, project="acme", dedup_threshold=0.1)


def recall_and_store(memory: MemoryHome) -> None:
    """Recall and store in the current thread."""
    assert [
        hit.memory.content for hit in memory.recall("where does the export of invoices run").hits
    ] == [OLD]
    assert memory.store("The kettle is blue", project="kitchen").action == "stored"


def within_patience(future: Future[Any]) -> Any:
    return future.result(PATIENCE)


def test_other_threads_work_while_a_store_awaits_its_model(
    world: World, thread: ThreadPoolExecutor
) -> None:
    model = use_blocking_model(world, merge, NACRE_MODELS_DEDUP="scripted:1")
    with world.open() as memory:
        store(memory, OLD)
        world.clock.now += timedelta(minutes=1)
        future = thread.submit(store, memory, NEW)
        try:
            assert model.is_asked.wait(PATIENCE)
            with ThreadPoolExecutor(1) as second:
                within_patience(second.submit(recall_and_store, memory))
            assert not future.done()
        finally:
            model.may_answer.set()
        assert within_patience(future).action == "updated"
        assert sorted(item.content for item in memory.list()) == ["The kettle is blue", MERGED]


def test_concurrent_change_is_considered_before_a_model_decision_applies(
    world: World, thread: ThreadPoolExecutor
) -> None:
    model = use_blocking_model(world, merge, NACRE_MODELS_DEDUP="scripted:1")
    with world.open() as memory:
        old = store(memory, OLD).memory_id
        future = thread.submit(store, memory, NEW)
        try:
            assert model.is_asked.wait(PATIENCE)
            memory.retire(old)
        finally:
            model.may_answer.set()
        assert within_patience(future).action == "stored"
        assert [item.content for item in memory.list()] == [NEW]
        assert memory.get(old).content == OLD


def test_other_threads_run_while_a_model_is_loading(
    world: World, thread: ThreadPoolExecutor
) -> None:
    no_memories = {"memories": []}
    model = use_blocking_model(
        world,
        lambda prompt: no_memories if prompt.task is Task.EXTRACTION else {"route": "none"},
        NACRE_MODELS_EXTRACTION="scripted:1",
        NACRE_MODELS_RECALL="scripted:1",
    )
    text = "We decided that the harbour office keeps its ledgers on paper until the spring, whatever the others do."
    world.transcript("one", says("user", text, uuid="u1"))
    with world.open() as memory:
        store(memory, OLD)
        calls: tuple[Callable[[], object], ...] = (
            memory.ingest,
            lambda: memory.deep_recall("where does the export run"),
        )
        for call in calls:
            model.is_asked.clear()
            model.may_answer.clear()
            future = thread.submit(call)
            try:
                assert model.is_asked.wait(PATIENCE)
                with ThreadPoolExecutor(1) as second:
                    assert within_patience(
                        second.submit(memory.recall, "the export of invoices")
                    ).hits
                assert not future.done()
            finally:
                model.may_answer.set()
            within_patience(future)


def test_close_waits_for_a_pending_model_call(world: World, thread: ThreadPoolExecutor) -> None:
    model = use_blocking_model(world, merge, NACRE_MODELS_DEDUP="scripted:1")
    memory = MemoryHome(world.context())
    store(memory, OLD)
    future = thread.submit(store, memory, NEW)
    assert model.is_asked.wait(PATIENCE)
    with ThreadPoolExecutor(1) as second:
        closing = second.submit(memory.close)
        model.may_answer.set()
        within_patience(closing)
    assert within_patience(future).action == "updated"
