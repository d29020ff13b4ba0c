"""A newly started daemon answers hooks before its model is loaded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nacre.base.link import DaemonAwayError, ask
from nacre.home.home import open_home
from nacre.memories.store import get
from nacre.memories.vectors import embed_pending
from nacre.protocols import Embedder
from nacre.serve.server import Daemon, DaemonOptions
from nacre.settings import Settings
from tests.app.conftest import WordEmbedder, World
from tests.processes import wait

CALL = {
    "host": "claude-code",
    "event": "prompt",
    "prompt": "when is the tide gauge of the harbour read?",
}


@contextmanager
def beginning(world: World, may_load: threading.Event) -> Iterator[str]:
    """Run a daemon in this process whose model loads when allowed; yield its home."""

    def load(_: Settings) -> Embedder:
        may_load.wait()
        return WordEmbedder()

    settings, stop = world.settings(), threading.Event()
    daemon = Daemon(
        settings,
        lambda: open_home(settings, load_embedder=load),
        DaemonOptions(watches=False),
        lambda _: None,
    )
    thread = threading.Thread(target=daemon.run, args=(stop,))
    thread.start()
    try:
        yield str(settings.home)
    finally:
        stop.set()
        may_load.set()
        thread.join()


def greeting(home: str) -> dict[str, object]:
    try:
        answer: dict[str, object] = ask(home, "hello", {}, seconds=5)
    except DaemonAwayError:
        return {}
    return answer


@pytest.mark.embedding
def test_hooks_answer_lexically_until_the_model_is_loaded(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.open() as memory:
        memory.store("The tide gauge of the harbour is read at noon.", kind="fact")
    context = world.context()
    embed_pending(context, lambda _: None)
    assert context.vectors.model()
    context.close()
    may_load = threading.Event()
    with beginning(world, may_load) as home:
        wait(lambda: bool(greeting(home)))
        assert "at noon" in ask(home, "hook", CALL, seconds=20)["context"]
        assert not greeting(home)["is_warm"]
        may_load.set()
        wait(lambda: bool(greeting(home)["is_warm"]))


@pytest.mark.embedding
def test_model_is_loaded_for_an_empty_home(tmp_path: Path) -> None:
    may_load = threading.Event()
    with beginning(World(tmp_path), may_load) as home:
        wait(lambda: bool(greeting(home)))
        assert not greeting(home)["is_warm"]
        may_load.set()
        wait(lambda: bool(greeting(home)["is_warm"]))


@pytest.mark.embedding
def test_daemon_embeds_edited_memories(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.open() as memory:
        memory_id = memory.store("The tide gauge of the harbour is read at noon.").memory_id
    context, may_load = world.context(), threading.Event()
    may_load.set()
    with beginning(world, may_load) as home:
        wait(lambda: bool(greeting(home)))
        file = world.memory_file(memory_id)
        file.write_text(file.read_text().replace("read at noon", "read at dusk"))
        wait(
            lambda: (
                "dusk" in get(context, memory_id).content
                and not context.vectors.memories_to_embed(1)
            )
        )
        ask(home, "edit", {"reference": memory_id, "importance": 9}, seconds=20)
        assert not context.vectors.memories_to_embed(1)
    context.close()
