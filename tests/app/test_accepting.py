"""What many store at once: acknowledged when it is on disk, placed in order, found again, told what became of it."""

from __future__ import annotations

import signal
import threading

import pytest

from nacre.errors import NotFound
from nacre.values.reports import StoreOutcome
from tests.app.conftest import World
from tests.app.test_many_processes import is_well


def accepted_while_busy(world: World, *statements: str, **options: object) -> list[StoreOutcome]:
    """Store while somebody else has the vault lock."""
    with world.open() as memory:
        other = world.context()
        with other.vault_lock:
            outcomes = [memory.store(text, **options) for text in statements]  # type: ignore[arg-type]
        other.database.close()
    return outcomes


def test_a_store_while_another_process_writes_is_durable_and_placed_by_the_next_command(world: World) -> None:
    (outcome,) = accepted_while_busy(world, "The lamp is trimmed on Sundays.", tags=["lamp"], importance=9)
    assert outcome.action == "accepted"
    (file,) = (world.home / "accepted").iterdir()
    assert "The lamp is trimmed on Sundays." in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    with world.open() as memory:
        assert [hit.memory.id for hit in memory.recall("when is the lamp trimmed?").hits] == [outcome.memory_id]
        found = memory.get(outcome.memory_id)
        assert (found.tags, found.importance) == (("lamp",), 9)
    assert world.memory_file(outcome.memory_id).exists()
    assert not list((world.home / "accepted").iterdir())
    is_well(world)


def test_an_accepted_memory_can_be_looked_at_and_changed_at_once(world: World) -> None:
    first, second = accepted_while_busy(world, "The bell is rung at noon.", "The rope is new.")
    with world.open() as memory:
        other = world.context()
        with other.vault_lock:
            assert memory.get(first.memory_id).content == "The bell is rung at noon."
            lanes = {lane.name: lane for lane in memory.recall("when is the bell rung?").lanes}
        other.database.close()
        assert (lanes["lexical"].state, lanes["lexical"].note[:10]) == ("partial", "2 memories")  # type: ignore[index]
        assert memory.edit(second.memory_id, add_tags=["rope"]).tags == ("rope",)
        assert {item.id for item in memory.list()} == {first.memory_id, second.memory_id}
    is_well(world)


def test_a_reference_that_leads_to_a_file_elsewhere_is_no_memory(world: World) -> None:
    accepted_while_busy(world, "The bell is rung at noon.")
    elsewhere = world.home.parent / "diary.md"
    elsewhere.write_text("Nobody else reads this.\n", encoding="utf-8")
    with world.open() as memory:
        for name in (str(elsewhere.with_suffix("")), "../../diary", "../vault/memories/x", "a\0b"):
            with pytest.raises(NotFound):
                memory.get(name)
            with pytest.raises(NotFound):
                memory.edit(name, subject="Mine")


def test_an_accepted_memory_keeps_its_project_and_kind(world: World) -> None:
    (outcome,) = accepted_while_busy(world, "The buoy is painted in May.", project="harbour", kind="decision")
    with world.open() as memory:
        memory.recall("when is the buoy painted?")
        found = memory.get(outcome.memory_id)
    assert (found.project, found.kind.value, found.inbox) == ("harbour", "decision", False)
    assert world.memory_file(outcome.memory_id).parent == world.vault / "projects" / "harbour" / "decision"


def test_what_is_accepted_is_compared_in_the_order_in_which_it_was_said(world: World) -> None:
    with world.open() as memory:
        old = memory.store("The depth of the basin is 40 fathoms.", canonical_key="basin.depth")
    again, newer, newest = accepted_while_busy(
        world, "The depth of the basin is 40 fathoms.", "The depth of the basin is 50 fathoms.",
        "The depth of the basin is 60 fathoms.", canonical_key="basin.depth",
    )  # fmt: skip
    with world.open() as memory:
        memory.get(newest.memory_id)  # is answered once it is placed, and all before it; a list goes without the rest
        assert [item.content for item in memory.list()] == ["The depth of the basin is 60 fathoms."]
        assert memory.get(again.memory_id).id == old.memory_id
        assert memory.get(newer.memory_id).superseded_by == newest.memory_id
        assert memory.get(old.memory_id).superseded_by == newer.memory_id
    is_well(world)


def test_a_store_that_places_what_was_accepted_makes_the_vectors_of_both(world: World) -> None:
    accepted_while_busy(world, "The bell is rung at noon.")
    assert not world.embedder.embedded
    with world.open() as memory:
        assert memory.store("The rope is new.").action == "stored"
    home = world.context()
    assert len(home.vectors.memories_to_embed(9)) == 0
    home.database.close()


def test_accepted_with_force_it_lies_beside_what_says_the_same(world: World) -> None:
    with world.open() as memory:
        memory.store("The stairs are slippery.")
    accepted_while_busy(world, "The stairs are slippery.", force=True)
    with world.open() as memory:
        assert len(memory.list()) == 2
    is_well(world)


def test_what_was_placed_before_a_crash_is_not_placed_again(world: World) -> None:
    (outcome,) = accepted_while_busy(world, "The well is deep.")
    (file,) = (world.home / "accepted").iterdir()
    document = file.read_text()
    with world.open() as memory:
        assert len(memory.list()) == 1
        memory.retire(outcome.memory_id)
    file.write_text(document)
    with world.open() as memory:
        assert memory.list() == []
    assert not file.exists()
    is_well(world)


def test_a_secret_is_redacted_before_it_is_accepted(world: World) -> None:
    accepted_while_busy(world, "The token is ghp_" + "a8f3K2mQ9xZt4LpV7sWc1RbN6yHd0EgJuTiO.")
    (file,) = (world.home / "accepted").iterdir()
    assert "ghp_" not in file.read_text()


def test_accepted_memories_survive_a_lost_database(world: World) -> None:
    (outcome,) = accepted_while_busy(world, "The cellar is dry.")
    for file in world.home.glob("nacre.db*"):
        file.unlink()
    with world.open() as memory:
        assert [item.id for item in memory.list()] == [outcome.memory_id]
    is_well(world)


def test_a_file_that_makes_no_sense_is_told_and_holds_nothing_up(world: World) -> None:
    (outcome,) = accepted_while_busy(world, "The door is oak.")
    broken = world.home / "accepted" / "0000.md"
    broken.write_bytes(b"\xff\xfe")
    context = world.context()
    from nacre.memories.scan import catch_up

    catch_up(context)
    assert context.memories.find(outcome.memory_id)
    assert any("0000.md" in problem for problem in context.problems)
    context.database.close()


def test_eight_processes_and_threads_lose_nothing_and_double_nothing(world: World) -> None:
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
    acknowledged = [line for writer in writers for line in writer.communicate(timeout=240)[0].split()]
    assert [writer.returncode for writer in writers] == [0] * 8
    assert len(acknowledged) == 8 * 3 * 5
    with world.open() as memory:
        for _ in range(100):
            active = memory.list(limit=1000)
            if not list((world.home / "accepted").glob("*.md")):
                break
        assert {memory.get(one).id for one in acknowledged} <= {item.id for item in memory.list(limit=1000)}
        assert len({item.content for item in active}) == len(active)
        assert len(memory.get(hot).tags) == 8 * 3 * 2
    is_well(world)


def test_a_writer_killed_while_it_places_for_others_loses_nothing_acknowledged(world: World) -> None:
    accepted = accepted_while_busy(world, *(f"Barrel {number} holds sort {number * 7}." for number in range(12)))
    for _ in range(4):
        victim = world.start("    print('open', flush=True)\n    memory.list()\n")
        assert victim.stdout
        victim.stdout.readline()
        victim.send_signal(signal.SIGKILL)
        victim.communicate(timeout=60)
    with world.open() as memory:
        assert {memory.get(one.memory_id).content for one in accepted} >= {item.content for item in memory.list()}
        assert all(memory.get(one.memory_id) for one in accepted)
        assert len({item.content for item in memory.list()}) == len(memory.list())
    is_well(world)


def test_threads_that_share_an_open_home_take_turns(world: World) -> None:
    failed: list[BaseException] = []
    with world.open() as memory:

        def work(name: int) -> None:
            try:
                for number in range(5):
                    memory.store(f"Buoy {name}-{number} is painted colour {name}-{number}.")
                    memory.recall(f"buoy {name}-{number}")
            except BaseException as error:  # noqa: BLE001 - told by the test
                failed.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert len(memory.list(limit=100)) == len({item.content for item in memory.list(limit=100)}) > 0
    is_well(world)
