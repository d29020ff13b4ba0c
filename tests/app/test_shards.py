"""The full text of many turns lies in shards: it answers like the database's own, follows what is deleted, and is
made anew when it is lost."""

from __future__ import annotations

import random
import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nacre.forgetting.forget import forget, plan
from nacre.forgetting.requests import ForgetRequest
from nacre.health.checks import doctor
from nacre.health.database import rebuild, reset
from nacre.home.home import Home
from nacre.indexing import shards as sharding
from nacre.ingestion.ingest import ingest
from nacre.ingestion.requests import IngestOptions
from nacre.retrieval.recall import search_sessions
from nacre.values.recall import Filter, LaneState, Mode, RecallQuery, TurnHit
from tests.app.conftest import World, says

SUBJECTS = "billing importer scheduler gateway mailer exporter parser cache".split()
DEEDS = "migrated rewrote measured reverted documented profiled renamed deployed".split()
REASONS = "latency deadlocks memory timeouts duplicates encoding rounding permissions".split()
QUESTIONS = (
    "why was the importer reverted?", "what did we measure about latency?", "deadlocks in the scheduler",
    "read_sheet", "src/acme/mailer_7.py", "who renamed the gateway because of rounding", "缓存 失败",
    "does the parser have timeouts", "ERR_4103", "running the exporters",
)  # fmt: skip


def talk(world: World, sessions: int = 12, exchanges: int = 10) -> None:
    draw = random.Random(7)  # noqa: S311 - a repeatable draw
    for number in range(sessions):
        records = []
        for at in range(exchanges):
            said = f"We {draw.choice(DEEDS)} the {draw.choice(SUBJECTS)} because of {draw.choice(REASONS)}."
            more = f" See src/acme/{draw.choice(SUBJECTS)}_{at}.py, read_sheet() and ERR_{4100 + at}."
            more += " 缓存迁移失败了。" if at == number % exchanges else ""
            role = "assistant" if at % 2 else "user"
            uuid = f"{number:04}-{at:04}"
            at_time = f"2026-{1 + number % 10:02}-18T09:{at:02}:00.000Z"
            cwd = f"/code/{SUBJECTS[number % 3]}"
            said = said + more * (draw.random() < 0.6)
            records.append(says(role, said, uuid=uuid, session=f"5e55-{number:04}", at=at_time, cwd=cwd))
        world.transcript(f"5e55-{number:04}", *records)


def taken_in(world: World, *, fresh: int) -> Home:
    """A home that has read all transcripts; so many turns may stay in the database's full text."""
    world.environ["NACRE_INDEX_FRESH_TURNS"] = str(fresh)
    context = world.context()
    ingest(context, IngestOptions(extract=False, vectors=False))
    return context


def found(context: Home, text: str, limit: int = 8, **wanted: object) -> list[TurnHit]:
    query = RecallQuery(text, mode=Mode.LEXICAL, limit=limit, filter=Filter(**wanted))  # type: ignore[arg-type]
    return list(search_sessions(context, query).turns)


def ids(hits: list[TurnHit]) -> set[str]:
    return {hit.turn.id for hit in hits}


def lane(context: Home) -> LaneState:
    lanes = search_sessions(context, RecallQuery("importer", mode=Mode.LEXICAL)).lanes
    return next(one.state for one in lanes if one.name == "lexical")


def files(context: Home) -> list[Path]:
    return [path for path in context.settings.index.rglob("*") if path.is_file()]


def held(context: Home, stem: str) -> int:
    """Turns of shards that hold a word, also those that are gone from the database."""
    shards, _ = context.shards.open(context.shards.places())
    return sum(shard.frequencies([stem])[0] for shard in shards)


@pytest.fixture
def both(tmp_path: Path) -> tuple[Home, Home]:
    """The same sessions in the database's full text, and in shards."""
    contexts = []
    for name, fresh in (("database", 10_000), ("shards", 1)):
        user_home = tmp_path / name
        user_home.mkdir()
        world = World(user_home)
        talk(world)
        contexts.append(taken_in(world, fresh=fresh))
    assert not contexts[0].shards.places()
    assert contexts[1].shards.places()
    return contexts[0], contexts[1]


WANTED = (
    {}, {"projects": ("importer",), "strict": True}, {"projects": ("importer",)}, {"exclude_projects": ("billing",)},
    {"tools": ("claude-code",)}, {"tools": ("codex",)}, {"owner_only": True}, {"trusted": True},
    {"since": datetime(2026, 4, 1, tzinfo=UTC), "until": datetime(2026, 7, 1, tzinfo=UTC)},
    {"since": datetime(2026, 4, 1, tzinfo=UTC)},
    {"until": datetime(2026, 7, 1, tzinfo=UTC)},
    {"as_of": datetime(2026, 3, 18, tzinfo=UTC).date()},
)  # fmt: skip


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_both_engines_give_the_same_turns_nearly_the_same_score(
    both: tuple[Home, Home], wanted: dict[str, object]
) -> None:
    for question in QUESTIONS:
        plain, sharded = (found(context, question, **wanted) for context in both)
        scores = {hit.turn.id: hit.score for hit in sharded}
        assert len(plain) == len(sharded), question
        worst = min((hit.score for hit in plain), default=0.0)
        for hit in plain:
            if hit.score > 1.03 * worst:  # what shares the last score may be any of several
                assert scores[hit.turn.id] == pytest.approx(hit.score, rel=0.03), question


def test_a_turn_is_found_as_soon_as_it_is_stored(world: World) -> None:
    talk(world)
    taken_in(world, fresh=1).database.close()
    world.transcript("5e55-9999", says("user", "The quokka importer is fast now.", uuid="new", session="5e55-9999"))
    context = taken_in(world, fresh=1000)
    assert ids(found(context, "quokka importer", limit=1)) == {"new"}
    assert len(ids(found(context, "importer"))) == 8, "older ones are found beside it"


def test_what_is_forgotten_leaves_the_shards(world: World) -> None:
    talk(world)
    world.transcript(
        "5e55-9998", says("user", "Call it zyzzogeton, see src/zyzzogeton_map.py.", uuid="z1", session="5e55-9998")
    )
    context = taken_in(world, fresh=1)
    before = {place.name for place in context.shards.places()}
    assert held(context, "zyzzogeton") == 1
    forget(context, plan(context, ForgetRequest(sessions=("claude-code:5e55-9998",))))
    assert held(context, "zyzzogeton") == 0
    assert not any(b"zyzzogeton" in file.read_bytes() for file in context.settings.home.glob("nacre.db*"))
    assert before.isdisjoint(place.name for place in context.shards.places())
    assert found(context, "importer"), "the others are still there"


def test_a_turn_that_grew_is_found_by_its_new_words_alone(world: World) -> None:
    talk(world)
    start = says("assistant", "The wombat", uuid="g1", session="5e55-9997")
    path = world.transcript("5e55-9997", start)
    taken_in(world, fresh=1).database.close()
    path.write_text(path.read_text(encoding="utf-8").replace("The wombat", "The platypus"), encoding="utf-8")
    context = taken_in(world, fresh=1000)
    assert ids(found(context, "platypus", limit=1)) == {"g1"}
    assert "g1" not in ids(found(context, "wombat"))


@pytest.mark.parametrize("damage", ["lost", "cut short", "of another format"])
def test_a_shard_that_cannot_be_read_is_told_and_made_anew(world: World, damage: str) -> None:
    talk(world)
    context = taken_in(world, fresh=1)
    whole = ids(found(context, "why was the importer reverted?"))
    if damage == "lost":
        shutil.rmtree(context.settings.index)
    elif damage == "cut short":
        for file in files(context):
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        with context.database.transaction():
            context.database.rows("UPDATE shards SET identity = '0/other'")
    context.database.close()
    context = world.context()
    assert lane(context) is LaneState.PARTIAL
    assert not found(context, "why was the importer reverted?")
    ingest(context, IngestOptions(extract=False, vectors=False))
    assert lane(context) is LaneState.RAN
    assert ids(found(context, "why was the importer reverted?")) == whole


def test_an_older_database_put_back_is_searched_whole(world: World, tmp_path: Path) -> None:
    talk(world, sessions=4)
    context = taken_in(world, fresh=1)
    context.database.backup(tmp_path / "older.db")
    talk(world, sessions=8)
    monkeyed = sharding._SMALL_KEPT
    sharding._SMALL_KEPT = 1
    try:
        taken_in(world, fresh=1).database.close()
    finally:
        sharding._SMALL_KEPT = monkeyed
    context.database.close()
    for file in world.home.glob("nacre.db*"):
        file.unlink()
    shutil.copy(tmp_path / "older.db", world.home / "nacre.db")
    context = taken_in(world, fresh=1)
    hits = found(context, "importer", limit=100)
    assert lane(context) is LaneState.RAN
    world.environ["NACRE_INDEX_FRESH_TURNS"] = "10000"
    fresh = World(tmp_path / "again")
    fresh.user_home.mkdir()
    talk(fresh, sessions=8)
    assert len(hits) == len(found(taken_in(fresh, fresh=10_000), "importer", limit=100))


def test_small_shards_become_one(world: World) -> None:
    for number in range(1, 10):
        talk(world, sessions=number)
        taken_in(world, fresh=1).database.close()
    context = world.context()
    places = context.shards.places()
    assert len(places) <= 7
    assert sum(place.rows for place in places) == 90
    assert {path.name for path in context.settings.index.iterdir()} == {place.name for place in places}


def test_what_a_crash_left_is_swept(world: World) -> None:
    talk(world)
    context = taken_in(world, fresh=1)
    (place,) = context.shards.places()
    stray = context.settings.index / f"{place.name.partition('-')[0]}-0123456789ab"
    shutil.copytree(context.settings.index / place.name, stray)
    own = context.settings.index / "notes"
    own.mkdir()
    talk(world, sessions=14)
    taken_in(world, fresh=1)
    assert not stray.exists()
    assert own.exists(), "what nacre did not make it leaves alone"


def test_what_a_crash_left_of_the_first_shard_is_swept(world: World) -> None:
    talk(world)
    context = taken_in(world, fresh=10_000)
    left = context.shards.write(context.shards.new_name(), [])
    assert left.is_dir()
    context.database.close()
    context = taken_in(world, fresh=1)
    assert not left.exists()
    assert [path.name for path in context.settings.index.iterdir()] == [place.name for place in context.shards.places()]


def test_only_one_process_makes_shards(world: World) -> None:
    talk(world)
    context = taken_in(world, fresh=10_000)
    world.environ["NACRE_INDEX_FRESH_TURNS"] = "1"
    other = world.context()
    with sharding.index_lock(context):
        assert sharding.fill_shards(other) == 0
    assert sharding.fill_shards(other) == 1


def test_a_session_whose_project_is_learned_later_is_found_by_it(world: World) -> None:
    talk(world, sessions=3)
    context = taken_in(world, fresh=1)
    with context.database.transaction():
        context.database.rows("UPDATE sessions SET project = 'late' WHERE native_id = '5e55-0001'")
    hits = found(context, "importer", limit=50, projects=("late",), strict=True)
    assert {hit.session.id for hit in hits} <= {"claude-code:5e55-0001"}
    others = [hit for hit in found(context, "importer", limit=50) if hit.session.native_id == "5e55-0001"]
    assert ids(hits) == ids(others)
    assert hits


def test_shards_are_the_owners_alone(world: World) -> None:
    talk(world)
    context = taken_in(world, fresh=1)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files(context))
    folders = [context.settings.index, *(path.parent for path in files(context))]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in folders)


def test_a_rebuild_makes_its_own_shards_and_a_reset_leaves_none(world: World) -> None:
    talk(world)
    context = taken_in(world, fresh=1)
    before = {place.name for place in context.shards.places()}
    whole = ids(found(context, "importer"))
    context.database.close()
    rebuild(world.settings(), world.context, vectors=False)
    context = world.context()
    now = {path.name for path in context.settings.index.iterdir()}
    assert now == {place.name for place in context.shards.places()}
    assert before.isdisjoint(now)
    assert ids(found(context, "importer")) == whole
    context.database.close()
    reset(world.settings(), world.context)
    assert not world.settings().index.exists()


def test_doctor_knows_the_home(world: World) -> None:
    talk(world)
    context = taken_in(world, fresh=1)
    wrong = [check for check in doctor(context) if check.state == "failure"]
    assert not wrong, wrong
