"""A rule and its special case both stay active; only a statement on the same subject ends another."""

from __future__ import annotations

import pytest

from nacre.values.memory import Memory
from tests.app.conftest import World

pytestmark = pytest.mark.usefixtures("_without_vectors")


@pytest.fixture
def _without_vectors(world: World) -> None:
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"


def store_pair(
    world: World, older: str, newer: str, *, kind: str = "fact", then: str | None = None
) -> tuple[Memory, Memory]:
    """Store two memories of one project weeks apart and return their final state."""
    with world.open() as memory:
        first = memory.store(older, project="quarry", kind=kind).memory_id
        world.clock.pass_days(40)
        second = memory.store(newer, project="quarry", kind=then or kind).memory_id
        assert first != second
        return memory.get(first), memory.get(second)


def assert_both_stay(world: World, text: str, other_text: str) -> None:
    """Assert that neither text ends or repeats the other, in either order."""
    for older, newer in ((text, other_text), (other_text, text)):
        first, second = store_pair(world, older, newer)
        assert first.superseded_by is None
        assert not second.retired
        with world.open() as memory:
            memory.retire(first.id, second.id)


def links(memory: Memory) -> list[tuple[str, str]]:
    return [(link.rel, link.to) for link in memory.links]


CASES = [
    ("Carts may carry 10 tons", "Loaded by night, carts may carry 4 tons"),
    ("Photos are limited to 8 MB", "Surveyors may send 90 MB"),
    ("Photos are limited to 8 MB", "Photos of surveyors are limited to 90 MB"),
    ("Blasts need one signature", "Blasts near the road need two signatures"),
    (
        "The gate lets 90 carts an hour through",
        "The gate lets 15 carts an hour through for visitors",
    ),
    ("Maps are kept 7 days", "Old maps are kept 60 days"),
    ("The siren sounds at 8:00", "On Sundays the siren sounds at 9:00"),
    ("Never dig by the river", "Never dig by the river, but students may dig there"),
    ("Use no dynamite", "In the north pit use dynamite"),
    ("地图保留 7 天", "客人的地图保留 60 天"),
    ("每小时放行 90 辆车", "访客每小时放行 15 辆车"),
]


@pytest.mark.parametrize(("general", "special"), CASES)
def test_special_case_neither_ends_nor_contradicts_an_existing_rule(
    world: World, general: str, special: str
) -> None:
    older, newer = store_pair(world, general, special)
    assert (older.superseded_by, older.retired) == (None, None)
    assert "contradicts" not in dict(links(newer))


@pytest.mark.parametrize(("general", "special"), CASES)
def test_rule_neither_ends_nor_contradicts_an_existing_special_case(
    world: World, general: str, special: str
) -> None:
    older, newer = store_pair(world, special, general)
    assert (older.superseded_by, older.retired) == (None, None)
    assert "contradicts" not in dict(links(newer))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Use tabs for indentation.", "Use two spaces for indentation."),
        ("Use two spaces for indentation.", "Use tabs for indentation."),
    ],
)
def test_opposite_statements_about_one_object_are_a_conflict(
    world: World, older: str, newer: str
) -> None:
    first, second = store_pair(world, older, newer, kind="preference")
    assert links(second) == [("contradicts", first.id)]
    with world.open() as memory:
        memory.reviews()
        today = memory.call("today")
        status = memory.call("status")
    assert (today.conflicts, today.doubts) == (1, 0)
    assert (status.conflicts, status.doubts) == (1, 0)


def test_manually_linked_special_case_is_never_ended_by_its_rule(world: World) -> None:
    with world.open() as memory:
        rule = memory.store("The siren sounds at 8:00", project="quarry").memory_id
        case = memory.store("The siren sounds twice", project="quarry").memory_id
    file = world.memory_file(case)
    text = file.read_text(encoding="utf-8").replace(
        "The siren sounds twice", "The siren sounds at 7:00"
    )
    file.write_text(
        text.replace("---\n", f"---\nlinks: [{{rel: specializes, to: {rule}}}]\n", 1),
        encoding="utf-8",
    )
    with world.open() as memory:
        memory.recall("siren")
        assert memory.get(rule).superseded_by is None
        assert links(memory.get(case)) == [("specializes", rule)]


@pytest.mark.parametrize(
    ("general", "special"),
    [
        ("Maps are kept 7 days", "Maps of visitors are kept 7 days"),
        ("Blasts need a signature", "Road blasts need a signature"),
    ],
)
def test_special_case_with_the_rules_value_is_not_a_duplicate(
    world: World, general: str, special: str
) -> None:
    assert_both_stay(world, general, special)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The siren sounds at 8:00", "The siren now sounds at 9:00"),
        ("The default pit is north", "The default pit is no longer north"),
        ("Deploys happen on Fridays", "Deploys now happen on Mondays"),
        ("Carts are hired from Brandt", "Carts are hired from Keller instead of Brandt"),
        (
            "Run the linter before every commit",
            "Do not run the linter before every commit any more, CI does it",
        ),
    ],
)
def test_new_value_of_the_same_statement_ends_the_older_memory(
    world: World, older: str, newer: str
) -> None:
    first, second = store_pair(world, older, newer)
    assert first.superseded_by == second.id


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The north pit closes at 18:00", "The south pit closes at 20:00"),
        ("Weekly maps are kept 30 days", "Yearly maps are kept 900 days"),
        ("Crane A stops at 110 degrees", "Crane B stops at 140 degrees"),
        ("The left conveyor runs at 3 m/s", "The right conveyor runs at 4 m/s"),
        ("We order from Stripe", "We order from Twilio"),
        (
            "The ledger keeps its rows in PostgreSQL",
            "We looked at moving from PostgreSQL to CockroachDB",
        ),
        ("左边的传送带限速 3 米", "右边的传送带限速 4 米"),
    ],
)
def test_similar_statements_about_different_subjects_raise_no_doubt(
    world: World, older: str, newer: str
) -> None:
    first, second = store_pair(world, older, newer)
    assert first.superseded_by is None
    assert not {"contradicts", "supersedes"} & set(dict(links(second)))


COMPATIBLE_RULES = [
    "Never write drillers' names into any map",
    "We use Go for maps",
    "Never keep global state in maps",
    "Use tabs in Go files",
    "Use UTF-8 for all files",
    "Never use spaces in file names",
    "Maps are printed on Mondays",
    "Never print on Fridays",
    "Do not edit printed maps",
    "Printed maps live in the tower",
    "Orders for the printed maps need two signatures",
    "The tower has no lamp",
    "We're dropping Windows support for the tower",
    "Tests of the tower crane run on real steel",
    "Do not run the crane tests at night",
    "Use pnpm for the planner",
    "Never use npm in the planner",
    "地图用 Go 画",
    "不要在地图里写姓名",
    "地图保留三十天",
]


def test_compatible_rules_are_neither_doubted_nor_special_cases(
    world: World,
) -> None:
    with world.open() as memory:
        for rules in (COMPATIBLE_RULES, COMPATIBLE_RULES[::-1]):
            ids = [
                memory.store(rule, project="quarry", kind="preference").memory_id for rule in rules
            ]
            memories = [memory.get(item) for item in ids]
            assert [(item.content, links(item), item.superseded_by) for item in memories] == [
                (item, [], None) for item in rules
            ]
            memory.retire(*ids)


@pytest.mark.parametrize("then", ["fact", "decision", "preference", "event"])
@pytest.mark.parametrize("kind", ["fact", "decision", "preference"])
def test_statement_naming_the_old_value_supersedes_memories_of_any_kind(
    world: World, kind: str, then: str
) -> None:
    newer = "We moved from PostgreSQL to CockroachDB last week"
    first, second = store_pair(
        world, "The ledger keeps its rows in PostgreSQL", newer, kind=kind, then=then
    )
    assert first.superseded_by == second.id
    assert links(second) == [("supersedes", first.id)]


def test_event_without_the_old_value_ends_nothing(world: World) -> None:
    first, _ = store_pair(
        world, "The siren sounds at 8:00", "The siren sounds at 9:00", then="event"
    )
    assert first.superseded_by is None


def test_new_date_contradicts_only_the_todo_with_the_same_task(world: World) -> None:
    first, second = store_pair(
        world, "Order new carts by March 3", "Order new carts by March 10", kind="todo"
    )
    assert links(second) == [("contradicts", first.id)]
    other, third = store_pair(
        world,
        "Call the drillers on March 3",
        "Call the painters of the north pit on March 5",
        kind="todo",
    )
    assert (other.superseded_by, links(third)) == (None, [])


@pytest.mark.parametrize(
    ("text", "other_text"),
    [
        ("Health files are burnt at once", "Files are burnt after 30 days"),
        ("Broken carts are sold any day", "Carts are sold on Tuesdays"),
        ("Foreign stones are weighed every day", "Stones are weighed on Fridays"),
        ("New maps are drawn each day", "Maps are drawn on Mondays"),
        ("Premium visitors can see all pits", "Visitors can see pits"),
        ("Senior drillers may open any gate", "Drillers may open gates"),
        ("Visitors may bring dogs", "Only visitors may bring dogs"),
        ("Carts are washed before the shift", "Carts are washed after the shift"),
        ("The lamp of the gate is off by default", "The lamp of the gate is on by default"),
        (
            "Lifting loads larger than 2 tons fails",
            "Lifting loads larger than 2 tons works since 3.4",
        ),
        ("Drillers can order tools", "Drillers can order steel tools"),
        ("The foreman pays the driller", "A driller pays the foreman"),
        ("Plan the shift with -v", "Plan the shift with -V"),
        ("Carts need tyres >= 3.10", "Carts need tyres <= 3.10"),
        (
            "The north pit was closed because the crane broke",
            "The north pit was closed because it was flooded",
        ),
        ("Blasts need a signature and a witness", "Blasts need a signature or a witness"),
        ("大于 2 吨的石头装车失败", "大于 2 吨的石头装车成功"),
        ("小李向老王汇报", "老王向小李汇报了"),
        ("先排水再爆破", "先爆破再排水"),
        ("小李和老王都要签字", "小李或老王要签字"),
    ],
)
def test_different_word_number_or_order_is_not_a_duplicate(
    world: World, text: str, other_text: str
) -> None:
    assert_both_stay(world, text, other_text)


@pytest.mark.parametrize(
    ("text", "respelled"),
    [
        ("The quarry has seven cranes", "The quarry has 7 cranes"),
    ],
)
def test_same_words_in_another_spelling_are_a_duplicate(
    world: World, text: str, respelled: str
) -> None:
    with world.open() as memory:
        first = memory.store(text, project="quarry").memory_id
        outcome = memory.store(respelled, project="quarry")
    assert (outcome.action, outcome.memory_id) == ("known", first)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Not all blasts need a witness", "All blasts need a witness"),
        ("Dig on Fridays", "Don't dig on Fridays"),
        ("The foreman's dog is called biscuit", "The foreman's dog is now called pebble"),
        ("Always answer in German", "From now on answer in English"),
        ("From now on use tabs for indentation", "From now on use spaces for indentation"),
        ("永远不要直接炸北坑", "以后可以直接炸北坑了"),
        ("访客不得进入北坑", "现在访客可以进入北坑了"),
    ],
)
def test_opposite_or_another_object_of_the_same_verb_raises_doubt(
    world: World, older: str, newer: str
) -> None:
    old, new = store_pair(world, older, newer)
    assert old.superseded_by is None
    assert links(new) == [("contradicts", old.id)]


def test_statement_about_images_does_not_link_to_videos(world: World) -> None:
    first, second = store_pair(world, "Images are packed with WebP", "Videos are packed with AV1")
    assert (links(first), links(second)) == ([], [])


VERSION = (
    "The Quarry planner writes its own version (`planner_version`) into the `plan.json` of each map and into the state "
    "of the shift, with both engines. Version and number are kept in a package of their own, planinfo, to break the "
    "import cycle, and the build sets them there with ldflags."
)
UNRELATED = [
    "`plan reset` of the Quarry planner intentionally does not check whether Quarry is switched off: it is a "
    "maintenance operation that should work regardless of that.",
    "The setting `push_maps` of the Quarry planner (under `engine_options`) is a real boolean, not `on` or `off` and "
    "not the string `false`. `false` disables it; `true` or not set means enabled, which is the default.",
]


@pytest.mark.parametrize("other", UNRELATED)
def test_negation_of_the_same_subject_is_not_a_special_case(world: World, other: str) -> None:
    for item in store_pair(world, other, VERSION, kind="decision"):
        assert links(item) == []
