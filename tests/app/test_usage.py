"""Recalls strengthen memories, common use pairs them, and feedback changes their quality."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from datetime import timedelta

import pytest

from nacre.care import database as maintenance
from nacre.care.health import contents
from nacre.errors import InvalidQueryError, NotFoundError
from nacre.home.home import open_home
from nacre.home.views import MemoryView
from nacre.memories import store as remembering
from nacre.memories.history import look_at
from nacre.memories.requests import GetRequest
from nacre.memories.usage import fold_usage
from nacre.recall.recall import recall as answer
from nacre.recall.scoring import FACTOR_RANGE, spacing_factor
from nacre.values.memory import Kind
from nacre.values.recall import Filter, RecallQuery
from nacre.values.review import Reason, Usage
from tests.app.conftest import NOON, World, says
from tests.app.test_many_processes import check_consistent

FALCON = "The falcon lands on the north tower."
KETTLE = "The kettle in the kitchen is called heron."
FALCON_QUESTION = "where does the falcon land?"
KETTLE_QUESTION = "what is the kettle called?"


@pytest.fixture
def plain(world: World) -> World:
    """Return a world without vectors, in which memories are found by words."""
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    return world


def store(world: World, *contents: str, **more: object) -> list[str]:
    with world.open() as memory:
        return [memory.store(content, **more).memory_id for content in contents]  # type: ignore[arg-type]


def recall(world: World, question: str, times: int = 1, **more: object) -> None:
    with world.open() as memory:
        for _ in range(times):
            assert memory.recall(question, **more).hits  # type: ignore[arg-type]


def recall_in_new_sessions(world: World, question: str, times: int = 1) -> None:
    """Recall a number of times, each time in a new session."""
    for _ in range(times):
        recall(world, question, session=f"alone-{next(_NUMBERS)}")


_NUMBERS = itertools.count()


def fold(world: World) -> int:
    with world.open() as memory:
        return fold_usage(memory._home)


def view(world: World, memory_id: str) -> MemoryView:
    fold(world)
    return look_at(world.context(), GetRequest(reference=memory_id, update=False))


def paired_memories(world: World, memory_id: str) -> dict[str, float]:
    return {item.memory.id: round(item.weight, 4) for item in view(world, memory_id).together}


def rebuild(world: World) -> None:
    maintenance.rebuild(
        world.settings(),
        open_home=lambda settings: open_home(
            settings, clock=world.clock, load_embedder=lambda _: world.embedder
        ),
        vectors=False,
    )


# Uses that are counted


def test_recall_increments_the_recall_count_and_get_the_access_count(plain: World) -> None:
    (falcon,) = store(plain, FALCON)
    recall(plain, FALCON_QUESTION)
    with plain.open() as memory:
        memory.get(falcon)
        memory.get(falcon, update=False)
    used = view(plain, falcon).usage
    assert (used.recall_count, used.access_count, used.last_recalled) == (1, 2, NOON)


def test_browse_list_and_recall_without_update_record_no_use(plain: World) -> None:
    (falcon,) = store(plain, FALCON)
    with plain.open() as memory:
        memory.recall("", mode="browse")
        memory.list()
        memory.recall(FALCON_QUESTION, update=False)
    assert not (plain.home / "usage.jsonl").exists()
    assert view(plain, falcon).usage == Usage()


def test_times_of_the_last_hundred_recalls_are_kept(plain: World) -> None:
    (falcon,) = store(plain, FALCON)
    for _ in range(4):
        recall_in_new_sessions(plain, FALCON_QUESTION, 30)
        plain.clock.pass_days(1)
    used = view(plain, falcon).usage
    assert used.recall_count == 120
    assert len(used.intervals) == 100
    assert min(used.intervals) == int(NOON.timestamp() * 1000)
    assert sum(time == min(used.intervals) for time in used.intervals) == 10


def test_recalls_of_a_session_or_sitting_count_once_daily(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE, importance=5)
    counts = []
    for session, wait in (
        (None, 0),
        (None, 1 / 1440),
        ("s1", 0),
        ("s1", 0.5),
        ("s1", 0.5),
        (None, 0),
    ):
        plain.clock.pass_days(wait)
        recall(plain, FALCON_QUESTION, 10, session=session)
        counts.append(view(plain, falcon).usage.recall_count)
    assert counts == [1, 1, 2, 2, 3, 4]
    used = view(plain, falcon).usage
    assert (used.access_count, len(used.intervals), used.last_recalled) == (60, 4, plain.clock.now)
    assert view(plain, kettle).usage.recall_count == 0
    assert importance(plain, falcon)[0] == 6


def test_opened_memory_can_still_be_recalled(
    plain: World,
) -> None:
    (falcon,) = store(plain, FALCON)
    with plain.open() as memory:
        memory.get(falcon, session="s1")
    recall(plain, FALCON_QUESTION, session="s1")
    assert view(plain, falcon).usage.recall_count == 1


def test_crash_during_folding_loses_and_repeats_nothing(plain: World) -> None:
    (falcon,) = store(plain, FALCON)
    recall_in_new_sessions(plain, FALCON_QUESTION, 2)
    (plain.home / "usage.jsonl").rename(
        plain.home / "usage.0000.taken"
    )  # killed before the spool was counted
    recall_in_new_sessions(plain, FALCON_QUESTION)
    spool_text = (plain.home / "usage.jsonl").read_text(encoding="utf-8")
    assert view(plain, falcon).usage.recall_count == 3
    folded_name = plain.context().usage.value("folded")
    assert folded_name
    (plain.home / folded_name).write_text(
        spool_text, encoding="utf-8"
    )  # killed after the spool was counted
    assert view(plain, falcon).usage.recall_count == 3
    assert not list(plain.home.glob("usage.*.taken"))


def test_small_spools_are_folded_in_order_and_once(
    plain: World,
) -> None:
    (falcon,) = store(plain, FALCON)
    for number in range(3):
        recall_in_new_sessions(plain, FALCON_QUESTION, 3)
        (plain.home / "usage.jsonl").rename(plain.home / f"usage.000{number}.taken")
    recall_in_new_sessions(plain, FALCON_QUESTION, 2)
    counts = []
    with plain.open() as memory:
        for _ in range(12):
            fold_usage(memory._home, 0)
            counts.append(
                look_at(memory._home, GetRequest(reference=falcon, update=False)).usage.recall_count
            )
    assert counts == [*range(1, 12), 11]
    assert not list(plain.home.glob("usage.*.taken"))


def test_torn_spool_line_does_not_affect_other_lines(plain: World) -> None:
    (falcon,) = store(plain, FALCON)
    recall_in_new_sessions(plain, FALCON_QUESTION)
    with (plain.home / "usage.jsonl").open("a", encoding="utf-8") as spool:
        spool.write('\n{"at": 17, "ids": ["019')
    recall_in_new_sessions(plain, FALCON_QUESTION)
    assert view(plain, falcon).usage.recall_count == 2


@pytest.mark.parametrize(
    "line",
    [
        '{"at": 1e400, "ids": ["ID"]}',
        '{"at": -1e30, "ids": ["ID"]}',
        '{"at": 17, "ids": ["ID"], "session": ["s"]}',
        '{"at": 17, "ids": ["ID"], "session": "\\ud800"}',
        '{"at": 17, "ids": ["\\ud800"]}',
        '{"at": 17, "ids": [["ID"]]}',
        "[" * 100_000,
        "null",
        "\0\0",
    ],
)
def test_invalid_spool_line_does_not_stop_writing_commands(plain: World, line: str) -> None:
    (falcon,) = store(plain, FALCON)
    recall_in_new_sessions(plain, FALCON_QUESTION)
    with (plain.home / "usage.jsonl").open("a", encoding="utf-8") as spool:
        spool.write("\n" + line.replace("ID", falcon))
    recall_in_new_sessions(plain, FALCON_QUESTION)
    assert view(plain, falcon).usage.recall_count == 2
    assert not list(plain.home.glob("usage.*.taken"))


def test_session_name_from_a_host_is_not_stored(plain: World) -> None:
    (falcon,) = store(plain, FALCON)
    name = "ghp_" + "a1B2" * 9
    for folded in (False, True):
        recall(plain, FALCON_QUESTION, session=name)
        if folded:
            assert view(plain, falcon).usage.recall_count == 1
        for file in plain.home.rglob("*"):
            assert file.is_dir() or name.encode() not in file.read_bytes()
    with plain.open() as memory:
        assert [item.memory_id for item in memory.feedback(REPLY, session=f" {name} ").judged] == [
            falcon
        ]


def test_session_name_can_contain_invalid_unicode(plain: World) -> None:
    (falcon,) = store(plain, FALCON)
    recall(plain, FALCON_QUESTION, session="torn \udcff name")
    assert view(plain, falcon).usage.recall_count == 1


def test_unreadable_spool_does_not_stop_commands(plain: World) -> None:
    store(plain, FALCON)
    (plain.home / "usage.jsonl").mkdir()
    recall(plain, FALCON_QUESTION)
    (kettle,) = store(plain, KETTLE)
    assert view(plain, kettle).memory.content == KETTLE


def test_concurrent_folding_loses_no_recall(plain: World) -> None:
    store(plain, FALCON)
    readers = [
        plain.start(
            "    for _ in range(25):\n        assert memory.recall('where does the falcon land?').hits\n"
        )
        for _ in range(3)
    ]
    writers = [
        plain.start(
            f"    for n in range(20):\n        memory.store(f'Note {{n}} of writer {name} on bread.')\n"
        )
        for name in "ab"
    ]
    for process in [*readers, *writers]:
        process.communicate(timeout=120)
        assert process.returncode == 0
    with plain.open() as memory:
        falcon = memory.recall(FALCON_QUESTION, update=False).hits[0].memory.id
    assert view(plain, falcon).usage.access_count == 75
    check_consistent(plain)


# Spaced repetition


def strength(world: World, question: str) -> float:
    with world.open() as memory:
        return memory.recall(question, update=False).hits[0].components["x_strength"]


def test_spaced_recalls_strengthen_more_than_consecutive_recalls(plain: World) -> None:
    store(plain, FALCON, KETTLE, importance=1)
    recall_in_new_sessions(plain, KETTLE_QUESTION, 7)
    for _ in range(2):
        recall_in_new_sessions(plain, FALCON_QUESTION)
        plain.clock.pass_days(6)
    plain.clock.pass_days(-6)
    fold(plain)
    expected = 2**0.7 / 5 * math.log1p(6 + 1)
    assert strength(plain, FALCON_QUESTION) == pytest.approx(expected, abs=1e-3)
    faded = 7**0.7 / 5 * (1 + 19 / 81 * 6 / 365) ** -0.5
    assert strength(plain, KETTLE_QUESTION) == pytest.approx(faded, abs=1e-3)


def test_rarely_recalled_memory_is_weighted_by_importance(plain: World) -> None:
    (falcon,) = store(plain, FALCON, importance=4)
    recall(plain, FALCON_QUESTION)
    fold(plain)
    assert strength(plain, FALCON_QUESTION) == pytest.approx(0.55 + 3 / 9 * 0.45, abs=1e-3)
    with plain.open() as memory:
        memory.edit(falcon, expiry="core")
        assert "x_strength" not in memory.recall(FALCON_QUESTION, update=False).hits[0].components


def test_recalls_without_known_times_count_as_evenly_spaced() -> None:
    def factor(count: int, days: float, *intervals: int) -> float:
        return spacing_factor(Usage(count, NOON + timedelta(days=days), intervals), NOON)

    assert factor(4, 40) == pytest.approx(math.log1p(10 + 1))
    assert factor(1, 3) == pytest.approx(math.log1p(3 + 1))
    assert factor(3, 0) == 1.0
    assert factor(1, 40, 5) == 1.0
    assert spacing_factor(Usage(), NOON) == 1.0


# Importance steps


def importance(world: World, memory_id: str) -> tuple[int, str]:
    """Return the importance in the database and its line in the file."""
    value = view(world, memory_id).memory.importance
    text = world.memory_file(memory_id).read_text(encoding="utf-8")
    return value, next(line for line in text.splitlines() if line.startswith("importance"))


def test_importance_grows_at_three_ten_and_twenty_five_recalls(plain: World) -> None:
    (falcon,) = store(plain, FALCON, importance=5)
    before = plain.memory_file(falcon).read_text(encoding="utf-8")
    grown = []
    for times in (2, 1, 6, 1, 14, 1, 30):
        recall_in_new_sessions(plain, FALCON_QUESTION, times)
        plain.clock.pass_days(1)
        grown.append(view(plain, falcon).memory.importance)
    assert grown == [5, 6, 6, 7, 7, 8, 8]
    after = plain.memory_file(falcon).read_text(encoding="utf-8")
    assert after == before.replace("importance: 5", "importance: 8")
    assert view(plain, falcon).memory.updated == NOON
    lines = [
        json.loads(line)
        for line in (plain.vault / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    steps = [
        (line["memory"], line["was"], line["now"])
        for line in lines
        if line["action"] == "importance"
    ]
    assert steps == [(falcon, 5, 6), (falcon, 6, 7), (falcon, 7, 8)]
    check_consistent(plain)


@pytest.mark.parametrize(("start", "grown"), [(7, 9), (8, 9), (9, 9), (10, 10)])
def test_importance_grows_up_to_nine_and_never_falls(plain: World, start: int, grown: int) -> None:
    (falcon,) = store(plain, FALCON, importance=start)
    recall_in_new_sessions(plain, FALCON_QUESTION, 25)
    assert importance(plain, falcon) == (grown, f"importance: {grown}")


def test_vectors_survive_an_importance_step(world: World) -> None:
    (falcon,) = store(world, FALCON)
    with world.open() as memory:
        memory.ingest()
    recall_in_new_sessions(world, FALCON_QUESTION, 3)
    assert importance(world, falcon)[0] == 8
    assert world.context().vectors.missing() == (0, 0)


def test_importance_step_preserves_handwritten_front_matter(plain: World) -> None:
    path = plain.write(
        "global/fact/falcon.md", f"---\nimportance: 4   # my guess\nmood: calm\n---\n{FALCON}\n"
    )
    recall_in_new_sessions(plain, FALCON_QUESTION, 3)
    fold(plain)
    text = path.read_text(encoding="utf-8")
    assert text.split("\n", 3)[3] == f"importance: 5   # my guess\nmood: calm\n---\n{FALCON}\n"


def test_manually_set_importance_is_kept_until_the_next_step(plain: World) -> None:
    (falcon,) = store(plain, FALCON, importance=5)
    recall_in_new_sessions(plain, FALCON_QUESTION, 5)
    assert importance(plain, falcon)[0] == 6
    file = plain.memory_file(falcon)
    file.write_text(
        file.read_text(encoding="utf-8").replace("importance: 6", "importance: 3"), encoding="utf-8"
    )
    recall_in_new_sessions(plain, FALCON_QUESTION, 4)
    assert importance(plain, falcon)[0] == 3
    recall_in_new_sessions(plain, FALCON_QUESTION)
    assert importance(plain, falcon)[0] == 4


def test_file_being_edited_delays_the_importance_step(
    plain: World,
) -> None:
    (falcon,) = store(plain, FALCON, importance=5)
    recall_in_new_sessions(plain, FALCON_QUESTION, 3)
    file = plain.memory_file(falcon)
    edited_text = file.read_text(encoding="utf-8").replace("north tower", "south tower")
    file.write_text(edited_text, encoding="utf-8")
    fold_usage(plain.context())
    assert file.read_text(encoding="utf-8") == edited_text
    recall_in_new_sessions(plain, FALCON_QUESTION)
    assert file.read_text(encoding="utf-8") == edited_text, "recall writes nothing"
    fold(plain)
    assert file.read_text(encoding="utf-8") == edited_text.replace("importance: 5", "importance: 6")
    assert len(list(plain.vault.rglob("*.md"))) == 1


def test_importance_steps_survive_a_rebuild_without_repetition(plain: World) -> None:
    (falcon,) = store(plain, FALCON, importance=5)
    recall_in_new_sessions(plain, FALCON_QUESTION, 10)
    assert importance(plain, falcon)[0] == 7
    used = view(plain, falcon).usage
    rebuild(plain)
    assert view(plain, falcon).usage == used
    recall_in_new_sessions(plain, FALCON_QUESTION, 10)
    assert importance(plain, falcon)[0] == 7
    recall_in_new_sessions(plain, FALCON_QUESTION, 15)
    assert importance(plain, falcon)[0] == 8


# Pairs of memories


def test_memories_used_in_one_session_are_paired_once(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    for session in ("s1", "s1", "s2"):
        recall(plain, FALCON_QUESTION, session=session)
        recall(plain, KETTLE_QUESTION, session=session)
    assert paired_memories(plain, falcon) == {kettle: 0.2}
    recall(plain, FALCON_QUESTION, session="s1")
    assert paired_memories(plain, kettle) == {falcon: 0.2}, (
        "another use in the same session does not count again"
    )
    assert view(plain, falcon).together[0].sessions == 2


def test_uses_close_in_time_without_a_session_are_paired(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    recall(plain, FALCON_QUESTION)
    plain.clock.pass_days(25 / 1440)
    fold(plain)
    with plain.open() as memory:
        memory.get(kettle)
    assert paired_memories(plain, falcon) == {kettle: 0.1}
    plain.clock.pass_days(31 / 1440)
    recall(plain, FALCON_QUESTION)
    plain.clock.pass_days(31 / 1440)
    recall(plain, KETTLE_QUESTION)
    assert paired_memories(plain, falcon) == {kettle: 0.1}


def test_pair_strength_is_capped_fades_daily_and_expires(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    for session in range(12):
        recall(plain, FALCON_QUESTION, session=str(session))
        recall(plain, KETTLE_QUESTION, session=str(session))
    assert paired_memories(plain, falcon) == {kettle: 1.0}
    plain.clock.pass_days(1)
    assert paired_memories(plain, falcon) == {kettle: 0.95}
    plain.clock.pass_days(57)
    assert paired_memories(plain, falcon) == {kettle: round(0.95**58, 4)}
    plain.clock.pass_days(1)
    recall(plain, FALCON_QUESTION)
    assert paired_memories(plain, falcon) == {}
    assert plain.context().database.rows("SELECT count(*) FROM co_recall") == [(0,)]


def test_pair_strength_fades_from_the_day_of_use(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    recall(plain, FALCON_QUESTION, session="s1")
    recall(plain, KETTLE_QUESTION, session="s1")
    plain.clock.pass_days(10)
    assert paired_memories(plain, falcon) == {kettle: round(0.1 * 0.95**10, 4)}


def test_session_pairs_at_most_twenty_memories(plain: World) -> None:
    ids = store(
        plain, *(f"Drawer {n} holds the tool called {name}." for n, name in enumerate(NAMES))
    )
    with plain.open() as memory:
        for memory_id in ids:
            memory.get(memory_id, session="s1")
    fold(plain)
    assert len(plain.context().co_recall.of(ids, 0)) == 20 * 19
    assert len(look_at(plain.context(), GetRequest(reference=ids[0], update=False)).together) == 10
    assert paired_memories(plain, ids[-1]) == {}


NAMES = (
    "adze auger awl axe bevel brace burin chisel clamp file froe gimlet gouge hammer jointer knife level mallet maul "
    "pick plane punch rasp reamer"
).split()


def test_retired_and_superseded_memories_lose_their_pairs(plain: World) -> None:
    falcon, kettle, bread = store(plain, FALCON, KETTLE, "The bread rises under a blue cloth.")
    with plain.open() as memory:
        for memory_id in (falcon, kettle, bread):
            memory.get(memory_id, session="s1")
    assert set(paired_memories(plain, falcon)) == {kettle, bread}
    with plain.open() as memory:
        memory.retire(kettle)
    assert set(paired_memories(plain, falcon)) == {bread}
    remembering.edit(plain.context(), bread, superseded_by=falcon)
    assert paired_memories(plain, falcon) == {}
    assert plain.context().database.rows("SELECT count(*) FROM co_recall") == [(0,)]


def test_memories_learned_from_one_session_are_paired(plain: World) -> None:
    plain.transcript(
        "s1",
        says("user", "Remember that the staging cluster is rebuilt on Sundays.", uuid="u1"),
        says("assistant", "Noted.", uuid="a1"),
        says("user", "Always run the linter before you commit.", uuid="u2"),
    )
    with plain.open() as memory:
        memory.ingest()
        first, second = memory.list()
    assert paired_memories(plain, first.id) == {second.id: 0.1}
    plain.transcript(
        "s1", says("user", "Remember that the backups of billing are kept for a month.", uuid="u3")
    )
    with plain.open() as memory:
        (later,) = memory.ingest().memories
    assert paired_memories(plain, later) == {first.id: 0.1, second.id: 0.1}
    assert paired_memories(plain, first.id) == {second.id: 0.1, later: 0.1}
    rebuild(plain)
    assert paired_memories(plain, first.id) == {second.id: 0.1, later: 0.1}, (
        "a rebuild changes no pairs"
    )


def use_together(world: World, *ids: str, sessions: int) -> None:
    with world.open() as memory:
        for session in range(sessions):
            for memory_id in ids:
                memory.get(memory_id, session=f"{ids[0]}-{session}")
    fold(world)


def hits(world: World, question: str, **more: object) -> list[tuple[str, float, float]]:
    with world.open() as memory:
        scored = memory.recall(question, update=False, **more).hits  # type: ignore[arg-type]
    return [(hit.memory.id, hit.score, hit.components.get("co_recall", 0.0)) for hit in scored]


def test_paired_hits_raise_the_score_of_each_other(plain: World) -> None:
    north, south = store(
        plain, FALCON, "The falcon lands on the south tower of the old harbour at dusk."
    )
    before = hits(plain, FALCON_QUESTION)
    assert [item[0] for item in before] == [north, south]
    use_together(plain, north, south, sessions=4)
    after = hits(plain, FALCON_QUESTION)
    assert [item[2] for item in after] == [0.06, 0.06]
    assert [item[1] for item in after] == [
        pytest.approx(min(1, item[1] + 0.06), abs=0.02) for item in before
    ]
    assert [item[2] for item in hits(plain, FALCON_QUESTION, boost=False)] == [0, 0]


def test_paired_memory_without_other_evidence_ranks_last_and_unused(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    use_together(plain, falcon, kettle, sessions=1)
    assert [item[0] for item in hits(plain, FALCON_QUESTION)] == [falcon], (
        "a single common use does not pair memories"
    )
    use_together(plain, kettle, falcon, sessions=6)
    result = hits(plain, FALCON_QUESTION)
    assert [(item[0], item[2]) for item in result] == [(falcon, 0), (kettle, pytest.approx(0.105))]
    assert result[1][1] <= result[0][1]
    assert [item[0] for item in hits(plain, FALCON_QUESTION, limit=1)] == [falcon]
    before = view(plain, kettle).usage
    recall(plain, FALCON_QUESTION, 3)
    assert view(plain, kettle).usage == before


def test_paired_memory_never_ranks_above_matching_hits(world: World) -> None:
    contents = [f"The falcon lands on the tower of {name}." for name in NAMES[:6]]
    *towers, kettle = store(world, *contents, KETTLE)
    with world.open() as memory:
        memory.ingest()
    for tower in towers[:3]:
        use_together(world, tower, kettle, sessions=10)
    memory_ids = [item[0] for item in hits(world, "on which tower does the falcon land?")]
    assert set(towers) <= set(memory_ids[:-1])
    assert memory_ids[-1] == kettle


def test_filter_also_excludes_paired_memories(plain: World) -> None:
    (falcon,) = store(plain, FALCON, project="aviary")
    (kettle,) = store(plain, KETTLE, project="kitchen")
    use_together(plain, falcon, kettle, sessions=5)
    with plain.open() as memory:
        hits = memory.recall(
            FALCON_QUESTION, filter=Filter(projects=("aviary",)), update=False
        ).hits
    assert [hit.memory.id for hit in hits] == [falcon]


def test_recall_without_co_recall_adds_no_paired_memories(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    use_together(plain, falcon, kettle, sessions=5)
    with plain.open() as memory:
        hits = answer(
            memory._home, RecallQuery(FALCON_QUESTION, update=False, co_recall=False)
        ).hits
    assert [hit.memory.id for hit in hits] == [falcon]


def test_unrelated_question_returns_no_paired_memories(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    use_together(plain, falcon, kettle, sessions=5)
    assert hits(plain, "what is the capital of Bolivia?") == []


# Feedback

REPLY = "I looked it up: the falcon lands on the north tower, so the camera has to point there, not at the gate."


def test_feedback_raises_used_memories_and_lowers_unused_memories(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    with plain.open() as memory:
        report = memory.feedback(REPLY, falcon, kettle)
    assert [(item.verdict.value, item.before, round(item.after, 4)) for item in report.judged] == [
        ("used", 0.5, 0.6),
        ("unused", 0.5, 0.48),
    ]
    assert report.by == "words"
    assert view(plain, falcon).usage.quality == pytest.approx(0.6)


def test_feedback_uses_vectors_if_available(world: World) -> None:
    falcon, bread = store(world, FALCON, "Bread rises under blue cloth.")
    with world.open() as memory:
        report = memory.feedback(REPLY, falcon, bread)
    assert [item.verdict.value for item in report.judged] == ["used", "unused"]
    assert report.by == "cosine"


def test_memory_corrected_by_a_new_store_loses_quality(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    (corrected,) = store(plain, "The falcon lands on the south tower, not the north tower.")
    with plain.open() as memory:
        report = memory.feedback(REPLY, falcon, kettle, stored=[corrected])
    assert [item.verdict.value for item in report.judged] == ["corrected", "unused"]
    assert report.judged[0].after == pytest.approx(0.4)


def test_feedback_judges_the_recalls_of_a_session_once(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    recall(plain, FALCON_QUESTION, session="s1")
    recall(plain, KETTLE_QUESTION, session="s2")
    with plain.open() as memory:
        assert [item.memory_id for item in memory.feedback(REPLY, session="s1").judged] == [falcon]
        second = memory.feedback(REPLY, session="s1")
        assert (second.judged, bool(second.note)) == ((), True)
        assert memory.feedback(REPLY, session="never seen").note
        memory.recall(FALCON_QUESTION, session="s1")
        assert len(memory.feedback(REPLY, session="s1").judged) == 1
    assert view(plain, kettle).usage.quality == 0.5


def test_feedback_ignores_short_replies_and_truncates_long_replies(plain: World) -> None:
    (falcon,) = store(plain, FALCON)
    with plain.open() as memory:
        assert "50 characters" in str(memory.feedback("ok", falcon).note)
        late = "word " * 1600 + REPLY
        assert memory.feedback(late, falcon).judged[0].verdict.value == "unused"
        with pytest.raises(InvalidQueryError, match="no memories were given to judge"):
            memory.feedback(REPLY)
        with pytest.raises(NotFoundError):
            memory.feedback(REPLY, "nope-nope")


@pytest.mark.parametrize(
    ("kind", "lowest"),
    [(Kind.FACT, 0.35), (Kind.PREFERENCE, 0.35), (Kind.LESSON, 0.1), (Kind.DECISION, 0.1)],
)
def test_quality_has_a_floor_and_a_ceiling(plain: World, kind: Kind, lowest: float) -> None:
    (falcon,) = store(plain, FALCON, kind=kind)
    with plain.open() as memory:
        for _ in range(8):
            memory.judge(falcon, good=False)
        assert view(plain, falcon).usage.quality == pytest.approx(lowest)
        for _ in range(20):
            memory.judge(falcon, good=True)
    assert view(plain, falcon).usage.quality == pytest.approx(1.0, abs=1e-3)


def test_owners_judgement_counts_more_than_automatic_feedback(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    with plain.open() as memory:
        assert memory.judge(falcon, good=True).judged[0].after == pytest.approx(0.75)
        assert memory.judge(kettle, good=False).judged[0].after == pytest.approx(0.35)
        assert [review.memory.id for review in memory.reviews()] == [kettle]


def test_good_memories_rank_above_poor_memories_within_the_clamp(plain: World) -> None:
    north, south = store(
        plain, "The falcon lands on tower north.", "The falcon lands on tower south.", kind="lesson"
    )
    with plain.open() as memory:
        for _ in range(6):
            memory.judge(south, good=True)
            memory.judge(north, good=False)
        hits = memory.recall(FALCON_QUESTION, update=False).hits
    assert [hit.memory.id for hit in hits] == [south, north]
    assert hits[0].components["x_quality"] == pytest.approx(1.3, abs=0.01)
    assert FACTOR_RANGE[0] <= hits[1].score


def test_feedback_stores_no_text_of_the_reply(plain: World) -> None:
    (falcon,) = store(plain, FALCON)
    with plain.open() as memory:
        memory.feedback(f"{REPLY} Xylophone-{'q' * 30}", falcon)
    for file in plain.home.rglob("*"):
        assert file.is_dir() or b"Xylophone" not in file.read_bytes()


# Maturity


def test_use_makes_a_memory_established_and_then_proven(plain: World) -> None:
    (falcon,) = store(plain, FALCON)
    stages = []
    for times in (0, 4, 1, 14, 1):
        if times:
            recall(plain, FALCON_QUESTION, times)
        factor = None
        memory_view = view(plain, falcon)
        with plain.open() as memory:
            factor = (
                memory.recall(FALCON_QUESTION, update=False)
                .hits[0]
                .components.get("x_maturity", 1.0)
            )
        stages.append((memory_view.maturity.value, factor))
    assert stages == [
        ("candidate", 1.0),
        ("candidate", 1.0),
        ("established", 1.1),
        ("established", 1.1),
        ("proven", 1.2),
    ]


# Review


def store_low_quality(world: World, content: str, question: str) -> str:
    """Store a memory that is often recalled and contradicted each time; return its id."""
    (memory_id,) = store(world, content, kind="lesson")
    recall_in_new_sessions(world, question, 10)
    with world.open() as memory:
        for _ in range(8):
            memory.feedback(
                REPLY,
                memory_id,
                stored=[memory.store(f"{content} Not so.", kind="event").memory_id],
            )
    return memory_id


def reviews(world: World) -> Sequence[tuple[str, Reason]]:
    with world.open() as memory:
        return [(item.memory.id, item.why) for item in memory.reviews()]


def test_low_quality_memory_waits_for_review_once(plain: World) -> None:
    kettle = store_low_quality(plain, KETTLE, KETTLE_QUESTION)
    assert reviews(plain) == [(kettle, Reason.LOW_QUALITY)]
    recall(plain, KETTLE_QUESTION)
    assert reviews(plain) == [(kettle, Reason.LOW_QUALITY)]
    with plain.open() as memory:
        assert [item.id for item in memory.keep(kettle)] == [kettle]
        with pytest.raises(NotFoundError, match="has no pending review"):
            memory.keep(kettle)
    assert view(plain, kettle).usage.quality == pytest.approx(0.3)
    assert reviews(plain) == []


def test_retired_or_deleted_memory_leaves_the_review_queue(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    with plain.open() as memory:
        memory.judge(falcon, kettle, good=False)
        memory.retire(falcon)
    plain.memory_file(kettle).unlink()
    assert reviews(plain) == []


def test_health_shows_usage_of_memories(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    recall_in_new_sessions(plain, FALCON_QUESTION, 6)
    use_together(plain, falcon, kettle, sessions=3)
    with plain.open() as memory:
        memory.judge(falcon, good=True)
        memory.judge(kettle, good=False)
    checks = contents(plain.context())
    details = {check.name: check.detail for check in checks}
    assert details["usage"] == "1 never recalled, 0 recalled up to 5 times, 1 more often"
    assert details["review"] == "1 to review"
    assert [check.hint for check in checks if check.name == "review"] == [
        "nacre review shows each one"
    ]


def test_rebuild_preserves_usage(plain: World) -> None:
    falcon, kettle = store(plain, FALCON, KETTLE)
    use_together(plain, falcon, kettle, sessions=3)
    recall(plain, FALCON_QUESTION, 2)
    with plain.open() as memory:
        memory.judge(falcon, good=False)
    before = [view(plain, item) for item in (falcon, kettle)]
    waiting = reviews(plain)
    assert before[0].usage.quality < 0.5
    assert paired_memories(plain, falcon)
    rebuild(plain)
    assert [view(plain, item) for item in (falcon, kettle)] == before
    assert reviews(plain) == waiting
    check_consistent(plain)
