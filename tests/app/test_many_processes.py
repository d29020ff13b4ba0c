"""Concurrent processes on one home lose no acknowledged memory and store nothing twice."""

from __future__ import annotations

import signal

from nacre.care.health import doctor
from nacre.memories.edit import scan
from tests.app.conftest import World, says


def writer_source(name: str, count: int) -> str:
    return (
        f"    for number in range({count}):\n"
        f"        outcome = memory.store(f'Writer {name} says thing number {{number}}.')\n"
        "        print(outcome.memory_id, flush=True)\n"
    )


def check_consistent(world: World) -> None:
    context = world.context()
    scan(context)
    findings = {check.name: check for check in doctor(context)}
    assert findings["vault"].state == "ok", findings["vault"]
    assert findings["database"].state == "ok"
    assert context.files.intents() == []
    context.database.close()


def test_concurrent_writers_store_everything_during_reads_and_scans(world: World) -> None:
    with world.open():
        pass
    writers = [world.start(writer_source(name, 15)) for name in "abcd"]
    readers = [
        world.start("    for _ in range(25):\n        memory.recall('thing number')\n")
        for _ in range(2)
    ]
    acknowledged = [
        line for writer in writers for line in writer.communicate(timeout=120)[0].split()
    ]
    for process in [*writers, *readers]:
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert len(acknowledged) == 60
    with world.open() as memory:
        ids = {memory.get(entry).id for entry in acknowledged}
        assert {item.id for item in memory.list(limit=100)} == ids
    assert not (world.vault / "retired").exists()
    check_consistent(world)


def test_concurrently_stored_identical_texts_become_one_memory(world: World) -> None:
    with world.open():
        pass
    code = (
        "    for number in range(10):\n        memory.store(f'The same thing number {number}.')\n"
    )
    for process in [world.start(code) for _ in range(3)]:
        process.communicate(timeout=120)
        assert process.returncode == 0
    with world.open() as memory:
        assert len(memory.list(limit=100)) == 10
    check_consistent(world)


def test_concurrent_readers_import_handwritten_files_once(world: World) -> None:
    for number in range(25):
        world.write(
            f"global/fact/note-{number}.md", f"By hand: note number {number} is about turtles.\n"
        )
    with world.open():
        pass
    for process in [world.start("    memory.recall('turtles')\n") for _ in range(4)]:
        process.communicate(timeout=120)
        assert process.returncode == 0
    with world.open() as memory:
        assert len(memory.list(limit=100)) == 25
    assert len(list(world.vault.rglob("*.md"))) == 25
    check_consistent(world)


def test_frequent_lock_release_imports_handwritten_files_once(world: World) -> None:
    for number in range(25):
        world.write(
            f"global/fact/note-{number}.md", f"By hand: note number {number} is about turtles.\n"
        )
    with world.open():
        pass
    code = (
        "    import nacre.store.sqlite as database\n"
        "    database._MIN_LOCK_SECONDS = 0.0\n"
        "    memory.recall('turtles')\n"
        "    memory.list()\n"
    )
    for process in [world.start(code) for _ in range(5)]:
        process.communicate(timeout=120)
        assert process.returncode == 0
    with world.open() as memory:
        assert len(memory.list(limit=100)) == 25
    assert len(list(world.vault.rglob("*.md"))) == 25
    check_consistent(world)


def test_concurrent_processes_can_create_one_home(world: World) -> None:
    code = (
        "    import os, pathlib\n"
        "    for number in range(15):\n"
        f"        here = pathlib.Path(f'{world.home}-{{number}}')\n"
        "        here.mkdir(exist_ok=True)\n"
        "        (here / str(os.getpid())).touch()\n"
        "        while len(list(here.iterdir())) < 4:\n"
        "            pass\n"
        "        nacre.open_memory(here / 'home').close()\n"
    )
    for process in [world.start(code) for _ in range(4)]:
        process.communicate(timeout=120)
        assert process.returncode == 0


def test_concurrent_ingests_learn_everything_once(world: World) -> None:
    for number in range(12):
        statement = f"Remember that press number {number} is oiled on the first of every month."
        world.transcript(
            f"s{number}", says("user", statement, uuid=f"u{number}", session=f"5e55-{number:04}")
        )
    for process in [world.start("    memory.ingest()\n") for _ in range(3)]:
        process.communicate(timeout=120)
        assert process.returncode == 0
    with world.open() as memory:
        memories = memory.list(limit=100)
        assert len(memories) == len({item.content for item in memories}) == 12
        assert len(memory.search_sessions("press oiled", limit=50).turns) == 12
    check_consistent(world)


def test_killed_writer_loses_no_acknowledged_memory(world: World) -> None:
    with world.open():
        pass
    acknowledged: list[str] = []
    for attempt in range(6):
        writer = world.start(writer_source(f"w{attempt}", 200))
        assert writer.stdout
        lines = [writer.stdout.readline() for _ in range(3 + 4 * attempt)]
        writer.send_signal(signal.SIGKILL)
        rest, _ = writer.communicate(timeout=60)
        acknowledged += [
            line.strip()
            for line in [*lines, *rest.splitlines(keepends=True)]
            if line.endswith("\n")
        ]
        with world.open() as memory:
            assert {memory.get(entry).id for entry in acknowledged} <= {
                item.id for item in memory.list(limit=1000)
            }
    check_consistent(world)
    with world.open() as memory:
        contents = [item.content for item in memory.list(limit=1000)]
    assert len(contents) == len(set(contents))


def test_next_ingest_finishes_a_killed_ingest(world: World) -> None:
    for number in range(40):
        words = f"Remember that barrel number {number} is rolled on the last day of the week."
        world.transcript(
            f"s{number}",
            *[
                says(
                    "user",
                    f"{words} Part {part}.",
                    uuid=f"u{number}-{part}",
                    session=f"5e55-{number:04}",
                )
                for part in range(3)
            ],
        )
    undisturbed = World(world.user_home, environ={"NACRE_HOME": ""})
    for _ in range(4):
        victim = world.start(
            "    print('open', flush=True)\n    memory.ingest(on_progress=lambda p: print(p.stage, flush=True))\n",
        )
        assert victim.stdout
        victim.stdout.readline()
        victim.stdout.readline()
        victim.send_signal(signal.SIGKILL)
        victim.communicate(timeout=60)
    with world.open() as memory:
        memory.ingest()
        contents = sorted(item.content for item in memory.list(limit=1000))
        turns = len(memory.search_sessions("barrel", limit=500).turns)
    check_consistent(world)
    for path in world.home.rglob("*"):
        if path.is_file():
            path.unlink()
    with undisturbed.open() as memory:
        memory.ingest()
        assert contents == sorted(item.content for item in memory.list(limit=1000))
        assert turns == len(memory.search_sessions("barrel", limit=500).turns)
