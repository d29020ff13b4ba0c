"""A memory whose files changed since is shown with a doubt and waits for review."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from nacre.base.ids import to_ms
from nacre.context.build import build
from nacre.memories.store import edit
from nacre.setup.chores import do_waiting
from nacre.values.context import ContextBlock, ContextRequest, Moment, Part
from nacre.values.memory import Kind, Memory
from nacre.values.review import Reason
from tests.app.conftest import World, doubts, says
from tests.app.test_dreams import store_memory
from tests.app.test_handing_over import queue_chore

FOLDER = "/code/acme-billing"
OVEN = "The oven is heated in src/oven.py, to 220 degrees."
DOOR = "The door is shut in src/door.py, by itself."
DOUBT = "may be out of date: src/oven.py changed 5 times since"


@pytest.fixture
def stale_world(world: World) -> World:
    """Return a home with two old decisions and five sessions that changed the file of one."""
    return change_oven_file(world, days=90)


def change_oven_file(world: World, days: int) -> World:
    for text in (OVEN, DOOR):
        store_memory(
            world, text, days=days, kind=Kind.DECISION, importance=8, project="acme-billing"
        )
    for number in range(5):
        world.transcript(f"5e55-000{number}", *edit_session(world, f"5e55-000{number}"))
    with world.open() as memory:
        memory.ingest()
    return world


def edit_session(world: World, session: str) -> list[dict[str, object]]:
    """Return the records of a session that edits the oven's file."""
    time = f"{world.clock() - timedelta(hours=3):%Y-%m-%dT%H:%M:%S.000Z}"
    ask = says(
        "user", "Mend the oven please.", uuid=f"{session}-u", session=session, at=time, cwd=FOLDER
    )
    edit_call = says("assistant", "", uuid=f"{session}-a", session=session, at=time, cwd=FOLDER)
    arguments = {"file_path": f"{FOLDER}/src/oven.py", "old_string": "a", "new_string": "b"}
    edit_call["message"]["content"] = [
        {"type": "tool_use", "id": f"{session}-t", "name": "Edit", "input": arguments}
    ]
    return [ask, edit_call]


def finish_session(world: World) -> None:
    """Run the chores of a finished session."""
    queue_chore(
        world,
        "session-end",
        "claude-code:5e55-0004",
        world.user_home / ".claude/projects/-work-acme/5e55-0004.jsonl",
    )
    do_waiting(world.context())


def start_context(world: World) -> ContextBlock:
    return build(world.context(), ContextRequest(Moment.START, folder=FOLDER, parts=(Part.RULES,)))


def oven(world: World) -> Memory:
    (memory,) = [item for item in world.context().memories.everything() if "oven" in item.content]
    return memory


def prompt_text(world: World) -> str:
    prompt = "How hot is the oven heated in src/oven.py?"
    return build(world.context(), ContextRequest(Moment.PROMPT, prompt=prompt, folder=FOLDER)).text


def rule_texts(block: ContextBlock) -> list[str]:
    return [item.text for item in block.items if item.part is Part.RULES]


def test_session_start_omits_a_stale_memory_with_a_reason(stale_world: World) -> None:
    assert len(rule_texts(start_context(stale_world))) == 2
    finish_session(stale_world)
    block = start_context(stale_world)
    (line,) = rule_texts(block)
    assert line.startswith(f"- {DOOR}")
    assert "out of date: " not in block.text
    assert [item.why for item in block.left_out if item.ref == oven(stale_world).id] == [
        "it may be out of date"
    ]


def test_start_shows_an_uncertain_doubt_directly(
    world: World,
) -> None:
    finish_session(change_oven_file(world, days=14))
    assert doubts(world.context()) == ()
    (line,) = [item for item in rule_texts(start_context(world)) if "oven" in item]
    assert DOUBT in line


def test_prompt_context_shows_the_doubt(stale_world: World) -> None:
    finish_session(stale_world)
    assert DOUBT in prompt_text(stale_world)


@pytest.mark.parametrize(
    "change", [{"importance": 6}, {"add_tags": ("oven",)}], ids=["importance", "tags"]
)
def test_doubt_remains_after_metadata_edits(stale_world: World, change: dict[str, Any]) -> None:
    finish_session(stale_world)
    edit(stale_world.context(), oven(stale_world).id, **change)
    assert DOUBT in prompt_text(stale_world)
    assert len(rule_texts(start_context(stale_world))) == 1


def test_certain_file_change_waits_for_review_until_kept(
    stale_world: World,
) -> None:
    (doubt,) = doubts(stale_world.context())
    assert (doubt.memory.content, doubt.why) == (OVEN, Reason.STALE)
    assert (doubt.detail or "") == "src/oven.py changed 5 times since"
    with stale_world.open() as memory:
        memory.keep(doubt.memory.id)
    assert doubts(stale_world.context()) == ()
    assert DOUBT not in prompt_text(stale_world)
    assert len(rule_texts(start_context(stale_world))) == 2


def test_another_doubt_applies_after_the_file_doubt_is_settled(stale_world: World) -> None:
    (doubt,) = doubts(stale_world.context())
    with stale_world.open() as memory:
        memory.keep(doubt.memory.id)
    stale_world.context().reviews.doubt(
        doubt.memory.id, "the oven was sold", to_ms(stale_world.clock()) or 0, ()
    )
    assert "may be out of date: the oven was sold" in prompt_text(stale_world)
    assert len(rule_texts(start_context(stale_world))) == 1


def test_restated_memory_loses_its_doubt_until_undo(
    stale_world: World,
) -> None:
    finish_session(stale_world)
    stale_world.clock.pass_days(1 / 1440)  # gives the edit a later time than the ingest
    edit(
        stale_world.context(),
        oven(stale_world).id,
        content="The oven is heated in src/oven.py, to 230 degrees.",
    )
    assert DOUBT not in prompt_text(stale_world)
    assert not stale_world.context().reviews.pending()
    with stale_world.open() as memory:
        memory.undo()
    assert DOUBT in prompt_text(stale_world)
    assert [item.memory for item in stale_world.context().reviews.pending()] == [
        oven(stale_world).id
    ]
