"""Concurrent stores wait for the vault lock, and acknowledged memories are never lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from nacre.errors import StoreBusyError
from nacre.settings import load_settings
from tests.app.conftest import World, says
from tests.app.test_many_processes import check_consistent


@contextmanager
def vault_locked_until(world: World, is_enough: Callable[[], object]) -> Iterator[None]:
    """Hold the vault lock in another thread until a condition is true."""
    is_locked = threading.Event()

    def hold() -> None:
        other = world.context()
        with other.vault_lock:
            is_locked.set()
            while not is_enough():
                time.sleep(0.01)
        other.database.close()

    holder = threading.Thread(target=hold)
    holder.start()
    is_locked.wait()
    yield
    holder.join()


def test_waiting_store_logs_a_notice_after_a_second(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with world.open() as memory:
        with vault_locked_until(world, lambda: caplog.records):
            started = time.time()
            outcome = memory.store("The lamp is trimmed on Sundays.", tags=["lamp"])
        (record,) = caplog.records
        assert (
            record.message == f"waiting for another process, which has {world.home / 'vault.lock'}"
        )
        assert record.created - started > 1
        assert outcome.action == "stored"
        assert not world.embedder.embedded
        assert [hit.memory.id for hit in memory.recall("when is the lamp trimmed?").hits] == [
            outcome.memory_id
        ]
    check_consistent(world)


def test_store_that_times_out_writes_nothing(world: World) -> None:
    with world.open() as memory:
        memory._home.vault_lock._patience = 0.1
        errors = []
        with vault_locked_until(world, lambda: errors):
            try:
                memory.store("The lamp is trimmed on Sundays.")
            except StoreBusyError as error:
                errors.append(error)
        assert errors[0].message.startswith("another process has held")
        assert errors[0].hint == "nothing was written: wait for it, or end it, then try again"
        assert memory.list() == []
    check_consistent(world)


def test_recall_does_not_wait_for_a_writer(world: World) -> None:
    with world.open() as memory:
        memory.store("The lamp is trimmed on Sundays.")
        other = world.context()
        with other.vault_lock:
            started = time.monotonic()
            assert memory.recall("when is the lamp trimmed?").hits
            assert time.monotonic() - started < 1
        other.database.close()


def test_thirty_two_writers_succeed_within_half_a_minute(world: World) -> None:
    with world.open():
        pass
    code = (
        "    print('open', flush=True)\n"
        "    input()\n"
        "    print(memory.store(f'Crate {NAME} is in hold {NAME}.').memory_id)\n"
    )
    writers = [world.start(f"    NAME = {number}\n{code}") for number in range(32)]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "open\n"
    started = time.monotonic()
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("\n")
        writer.stdin.flush()
    ids = {writer.communicate(timeout=60)[0].strip() for writer in writers}
    assert time.monotonic() - started < 30
    assert [writer.returncode for writer in writers] == [0] * 32
    with world.open() as memory:
        assert {item.id for item in memory.list(limit=100)} == ids
    check_consistent(world)


def test_store_during_an_ingest_succeeds_within_five_seconds(world: World) -> None:
    for number in range(12):
        texts = (f"Always count the crates of hold {number}-{index} twice." for index in range(15))
        session = f"session-{number}"
        world.transcript(
            session,
            *(
                says("user", text, uuid=f"{number}-{index}", session=session)
                for index, text in enumerate(texts)
            ),
        )
    with world.open():
        pass
    ingesting = world.start("    print('open', flush=True)\n    memory.ingest()\n")
    assert ingesting.stdout
    ingesting.stdout.readline()
    durations = []
    with world.open() as memory:
        while ingesting.poll() is None:
            started = time.monotonic()
            memory.store(f"Buoy {len(durations)} is painted in month {len(durations)}.")
            durations.append(time.monotonic() - started)
            time.sleep(0.1)
    assert ingesting.returncode == 0
    assert len(durations) > 3
    assert max(durations) < 5
    check_consistent(world)


def test_eight_processes_with_threads_neither_lose_nor_duplicate_memories(world: World) -> None:
    with world.open() as memory:
        hot = memory.store("The log names every ship.").memory_id
    code = (
        "    import threading\n"
        "    def work(name, memory):\n"
        "        for number in range(5):\n"
        "            outcome = memory.store(f'Crate {name}{number} is in hold {name}{number}.')\n"
        "            print(outcome.memory_id, flush=True)\n"
        f"            memory.edit('{hot}', add_tags=[f'{{name}}-{{number}}']) if number % 2 else None\n"
        "            memory.store('The crates are counted twice.')\n"
        "            memory.recall(f'crate {name}{number}')\n"
        "    def alone(name):\n"
        "        with nacre.open_memory() as own:\n"
        "            work(name, own)\n"
        "    threads = [threading.Thread(target=alone, args=(NAME + str(at),)) for at in range(2)]\n"
        "    [thread.start() for thread in threads]\n"
        "    work(NAME, memory)\n"
        "    [thread.join() for thread in threads]\n"
    )
    writers = [world.start(f"    NAME = '{name}'\n{code}") for name in "abcdefgh"]
    acknowledged = [
        line for writer in writers for line in writer.communicate(timeout=240)[0].split()
    ]
    assert [writer.returncode for writer in writers] == [0] * 8
    assert len(acknowledged) == 8 * 3 * 5
    with world.open() as memory:
        active = memory.list(limit=1000)
        assert set(acknowledged) <= {item.id for item in active}
        assert len({item.content for item in active}) == len(active)
        assert len(memory.get(hot).tags) == 8 * 3 * 2
    check_consistent(world)


def test_threads_can_share_an_open_home(world: World) -> None:
    errors: list[BaseException] = []
    with world.open() as memory:

        def work(name: int) -> None:
            try:
                for number in range(5):
                    memory.store(f"Buoy {name}-{number} is painted colour {name}-{number}.")
                    memory.recall(f"buoy {name}-{number}")
            except BaseException as error:  # noqa: BLE001 - reported by the test
                errors.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert (
            len(memory.list(limit=100))
            == len({item.content for item in memory.list(limit=100)})
            > 0
        )
    check_consistent(world)


def test_home_finds_its_config_file_in_another_folder(world: World, tmp_path: Path) -> None:
    config = tmp_path / "server.toml"
    config.write_text('[storage]\nurl = "postgresql://memory.example/nacre"\n')
    settings = replace(load_settings(world.home, {"NACRE_CONFIG": str(config)}), environ={})
    assert settings.read_again().server == settings.server == "postgresql://memory.example/nacre"


def test_settings_read_again_inside_an_agent_keep_the_owners_values(world: World) -> None:
    world.home.mkdir(parents=True)
    (world.home / "config.toml").write_text('[ingest]\nroots = ["/notes"]\n')
    settings = load_settings(world.home, {"CLAUDECODE": "1"})
    assert settings.read_again()["ingest.roots"] == settings["ingest.roots"] == ["/notes"]
