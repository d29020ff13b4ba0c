"""What the owner is asked about memories that nothing connects, and what becomes of the answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nacre.data.undo import log, undo
from nacre.errors import ConflictError, InvalidInputError, NotFoundError
from nacre.home.views import Choice
from nacre.memories.decision import StoreRequest
from nacre.memories.store import get, store
from nacre.review.contradictions import list_pending
from nacre.review.queue import answer, reflect
from nacre.values.memory import Kind, Link, Memory
from nacre.values.review import Question, Reflected, Relates
from nacre.values.session import Trust
from tests.app.conftest import World
from tests.app.test_syncing import converge, machine, remote

__all__ = ["remote"]

OLD, NEW = "Uploads may be 10 MB", "Uploads have changed to 25 MB"


def stored(world: World, content: str, **more: Any) -> str:
    world.clock.pass_days(1 / 24)
    values = {"project": "hive", **more}
    return store(world.context(), StoreRequest(content=content, **values)).memory_id


def asked(world: World, **more: Any) -> tuple[Question, ...]:
    return reflect(world.context(), **more).questions


def answered(world: World, *references: str, **given: Any) -> Reflected:
    world.clock.pass_days(1 / 24)
    return answer(world.context(), reference="+".join(references), **given)


def pairs(questions: tuple[Question, ...]) -> list[set[str]]:
    return [{one.first.id, one.second.id} for one in questions]


def found(world: World, memory_id: str) -> Memory:
    return get(world.context(), memory_id)


@pytest.fixture
def scale(world: World) -> tuple[str, str]:
    """Two memories that name the same file, and nothing else that is alike."""
    read = stored(world, "The scale is read by tools/read_scale.py every ten minutes.")
    return read, stored(
        world, "Since the move tools/read_scale.py wants the serial port as an argument."
    )


def test_memories_naming_one_file_are_asked_about_newest_first(
    world: World, scale: tuple[str, str]
) -> None:
    stored(world, "The honey is sold on Saturdays.")
    (question,) = asked(world)
    assert (question.second.id, question.first.id) == scale
    assert question.why == "both name tools/read_scale.py; not linked"
    assert question.id == f"{scale[1][-8:]}+{scale[0][-8:]}"


def test_similar_memories_without_a_common_name_are_asked_about(world: World) -> None:
    first = stored(
        world,
        "In spring the smoker of the upper stand burns dried grass, which Mara cuts in the orchard.",
    )
    second = stored(
        world,
        "The dried grass for the smoker of the upper stand lies in the barn, and Mara cuts it in spring.",
    )
    (question,) = asked(world)
    assert pairs((question,)) == [{first, second}]
    assert question.why == "similar in meaning; not linked"


@pytest.mark.parametrize("more", [{"project": "mill"}, {"trust": Trust.UNTRUSTED}])
def test_other_projects_and_untrusted_memories_are_not_asked_about(
    world: World, more: dict[str, Any]
) -> None:
    stored(world, "The scale is read by tools/read_scale.py every ten minutes.")
    stored(
        world, "Since the move tools/read_scale.py wants the serial port as an argument.", **more
    )
    assert asked(world) == ()


def test_contradictions_precede_frequently_used_pairs(world: World, scale: tuple[str, str]) -> None:
    stored(world, "bin/feed weighs the sugar before it pours.")
    recalled = stored(world, "Nobody but Mara may change bin/feed in winter.")
    stored(world, "Since May bin/feed also logs what it pours.")
    older, newer = stored(world, OLD), stored(world, NEW)
    with world.open() as memory:
        assert recalled in {
            hit.memory.id
            for hit in memory.recall("who may change bin/feed in winter", limit=1).hits
        }
    questions = asked(world)
    assert [one.contradicts for one in questions] == [True, False, False]
    assert (questions[0].second.id, questions[0].first.id) == (older, newer)
    assert recalled in pairs(questions)[1]
    assert pairs(questions)[2] == set(scale)
    assert reflect(world.context(), limit=1).total > 1
    assert asked(world, project="mill") == ()


def test_reflection_link_stores_its_origin_in_the_file(
    world: World, scale: tuple[str, str]
) -> None:
    done = answered(world, scale[1][-8:], scale[0][-8:], link=Relates.DEPENDS_ON)
    link = Link("depends_on", scale[0], origin="reflect")
    assert done.action == "linked"
    assert found(world, scale[1]).links == (link,)
    assert "origin: reflect" in world.memory_file(scale[1]).read_text(encoding="utf-8")
    assert asked(world) == ()
    world.rebuild()
    assert found(world, scale[1]).links == (link,)
    assert asked(world) == ()


def test_undo_of_an_answer_restores_the_exact_file(world: World, scale: tuple[str, str]) -> None:
    before = world.memory_file(scale[1]).read_bytes()
    answered(world, *reversed(scale), link=Relates.PART_OF)
    world.clock.pass_days(1)
    home = world.context()
    undo(home, log(home)[0].operation.id)
    assert world.memory_file(scale[1]).read_bytes() == before
    assert len(asked(world)) == 1


def test_later_edit_preserves_the_reflection_link(world: World, scale: tuple[str, str]) -> None:
    answered(world, *scale, link=Relates.RELATED_TO)
    with world.open() as memory:
        memory.edit(scale[0], importance=9)
    assert found(world, scale[0]).links == (Link("related_to", scale[1], origin="reflect"),)


def test_forgetting_removes_links_from_answers(world: World, scale: tuple[str, str]) -> None:
    answered(world, *scale, link=Relates.RELATED_TO)
    with world.open() as memory:
        memory.call("forget", memories=[scale[1]])
    assert scale[1] not in world.memory_file(scale[0]).read_text(encoding="utf-8")


def test_reflection_link_takes_precedence_over_a_text_mention(world: World) -> None:
    scale = stored(world, "The scale hangs by tools/read_scale.py.", subject="Scale")
    named = stored(
        world, "Since the move tools/read_scale.py wants a port, see [[Scale]].", subject="Port"
    )
    assert asked(world) == ()
    answered(world, named, scale, link=Relates.PART_OF)
    with world.open() as memory:
        memory.edit(
            named, content="Since the move tools/read_scale.py wants a serial port, see [[Scale]]."
        )
        links = memory.call("look", reference=named).links
    assert [(link.rel, link.origin) for link in links] == [("part_of", "reflect")]


def test_reflection_answer_syncs_to_another_machine(tmp_path: Path, remote: Path) -> None:
    one, other = machine(tmp_path, remote, "one"), machine(tmp_path, remote, "other")
    first = one.store("The scale is read by tools/read_scale.py every ten minutes.", project="hive")
    second = one.store(
        "Since the move tools/read_scale.py wants the serial port as an argument.", project="hive"
    )
    one.sync(remote=str(remote))
    other.sync(remote=str(remote))
    one.do(answer, reference=f"{first}+{second}", link=Relates.BUILDS_ON)
    other.store("Mara reads the scale by hand in winter.", project="hive")
    converge(one, other)
    assert other.do(get, first).links == (Link("builds_on", second, origin="reflect"),)


def test_export_carries_reflection_links_to_another_home(
    world: World, scale: tuple[str, str], tmp_path: Path
) -> None:
    answered(world, *scale, link=Relates.ELABORATES)
    with world.open() as memory:
        memory.call("export", target=str(tmp_path / "all.jsonl"))
    (tmp_path / "there").mkdir()
    there = World(tmp_path / "there", environ={"PATH": os.environ["PATH"]})
    with there.open() as memory:
        memory.call("import", path=str(tmp_path / "all.jsonl"), trust=True)
    assert found(there, scale[0]).links == (Link("elaborates", scale[1], origin="reflect"),)


def test_reflection_answer_is_an_owners_memory_with_two_links(
    world: World, scale: tuple[str, str]
) -> None:
    done = answered(
        world,
        *scale,
        text="The port is an argument since the scale hangs on the second computer.",
        lesson=True,
    )
    assert done.stored
    memory = found(world, done.stored.id)
    assert (memory.kind, memory.project, memory.is_vouched) == (Kind.LESSON, "hive", True)
    assert {(link.rel, link.to, link.origin) for link in memory.links} == {
        ("related_to", one, "reflect") for one in scale
    }


def test_known_reflection_answer_gets_links_without_a_copy(
    world: World, scale: tuple[str, str]
) -> None:
    known = stored(world, "The scale hangs on the second computer.")
    done = answered(world, *scale, text="The scale hangs on the second computer.")
    assert done.stored
    assert done.stored.id == known
    assert {link.to for link in found(world, known).links} == set(scale)


def test_skipped_question_is_not_asked_again(world: World, scale: tuple[str, str]) -> None:
    assert answered(world, *scale, skip=True).action == "skipped"
    assert asked(world) == ()
    assert found(world, scale[0]).links == ()


@pytest.mark.parametrize(("keep", "left"), [(Choice.KEEP_NEW, 1), (Choice.KEEP_OLD, 0)])
def test_keep_choice_settles_a_contradiction(world: World, keep: Choice, left: int) -> None:
    both = stored(world, OLD), stored(world, NEW)
    assert answered(world, *both, keep=keep).action == "settled"
    gone = found(world, both[1 - left])
    assert gone.superseded_by or gone.retired
    assert asked(world) == ()


def test_linking_contradicting_memories_keeps_both(world: World) -> None:
    both = stored(world, OLD), stored(world, NEW)
    answered(world, *both, link=Relates.SPECIALIZES)
    home = world.context()
    assert list_pending(home) == []
    assert [(link.rel, link.origin) for link in found(world, both[0]).links] == [
        ("alternative_to", None),
        ("specializes", "reflect"),
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_contradicts_answer_creates_a_contradiction_question(
    world: World, scale: tuple[str, str], order: int
) -> None:
    answered(world, *scale[::order], link=Relates.CONTRADICTS)
    (question,) = asked(world)
    with pytest.raises(ConflictError):
        answered(world, *scale, link=Relates.CONTRADICTS)
    assert question.contradicts
    assert (question.second.id, question.first.id) == scale


def test_invalid_reflection_answers_are_refused(world: World, scale: tuple[str, str]) -> None:
    elsewhere = stored(world, "The mill has two wheels.", project="mill")
    with pytest.raises(InvalidInputError):
        answered(world, *scale)
    with pytest.raises(InvalidInputError):
        answered(world, *scale, skip=True, text="both of it")
    with pytest.raises(InvalidInputError):
        answered(world, scale[0], skip=True)
    with pytest.raises(NotFoundError):
        answered(world, scale[0], "ffffffff", skip=True)
    for other in (scale[0], elsewhere):
        with pytest.raises(ConflictError):
            answered(world, scale[0], other, link=Relates.RELATED_TO)
    with pytest.raises(ConflictError):
        answered(world, *scale, keep=Choice.KEEP_NEW)
    with world.open() as memory:
        memory.retire(scale[1])
    with pytest.raises(ConflictError):
        answered(world, *scale, link=Relates.RELATED_TO)
