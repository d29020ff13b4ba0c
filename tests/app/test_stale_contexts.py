"""A memory whose files sessions changed since is told where it is asked for, with a doubt, and waits for a look."""

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
from tests.app.test_dreams import kept
from tests.app.test_handing_over import left

FOLDER = "/code/acme-billing"
OVEN = "The oven is heated in src/oven.py, to 220 degrees."
DOOR = "The door is shut in src/door.py, by itself."
DOUBT = "may be out of date: src/oven.py changed 5 times since"


@pytest.fixture
def changed(world: World) -> World:
    """Two decisions of long ago, and five sessions since that changed the file of one."""
    return changed_after(world, days=90)


def changed_after(world: World, days: int) -> World:
    for text in (OVEN, DOOR):
        kept(world, text, days=days, kind=Kind.DECISION, importance=8, project="acme-billing")
    for number in range(5):
        world.transcript(f"5e55-000{number}", *edits(world, f"5e55-000{number}"))
    with world.open() as memory:
        memory.ingest()
    return world


def edits(world: World, session: str) -> list[dict[str, object]]:
    """A session in which the oven's file was changed."""
    at = f"{world.clock() - timedelta(hours=3):%Y-%m-%dT%H:%M:%S.000Z}"
    ask = says(
        "user", "Mend the oven please.", uuid=f"{session}-u", session=session, at=at, cwd=FOLDER
    )
    done = says("assistant", "", uuid=f"{session}-a", session=session, at=at, cwd=FOLDER)
    given = {"file_path": f"{FOLDER}/src/oven.py", "old_string": "a", "new_string": "b"}
    done["message"]["content"] = [
        {"type": "tool_use", "id": f"{session}-t", "name": "Edit", "input": given}
    ]
    return [ask, done]


def after_a_session(world: World) -> None:
    """What is done once a session is over."""
    left(
        world,
        "session-end",
        "claude-code:5e55-0004",
        world.user_home / ".claude/projects/-work-acme/5e55-0004.jsonl",
    )
    do_waiting(world.context())


def started(world: World) -> ContextBlock:
    return build(world.context(), ContextRequest(Moment.START, folder=FOLDER, parts=(Part.RULES,)))


def oven(world: World) -> Memory:
    (found,) = [one for one in world.context().memories.everything() if "oven" in one.content]
    return found


def asked(world: World) -> str:
    prompt = "How hot is the oven heated in src/oven.py?"
    return build(world.context(), ContextRequest(Moment.PROMPT, prompt=prompt, folder=FOLDER)).text


def told(block: ContextBlock) -> list[str]:
    return [item.text for item in block.items if item.part is Part.RULES]


def test_session_start_omits_a_stale_memory_with_a_reason(changed: World) -> None:
    assert len(told(started(changed))) == 2
    after_a_session(changed)
    block = started(changed)
    (line,) = told(block)
    assert line.startswith(f"- {DOOR}")
    assert "out of date: " not in block.text
    assert [one.why for one in block.left_out if one.ref == oven(changed).id] == [
        "it may be out of date"
    ]


def test_start_shows_an_uncertain_doubt_directly(
    world: World,
) -> None:
    after_a_session(changed_after(world, days=14))
    assert doubts(world.context()) == ()
    (line,) = [one for one in told(started(world)) if "oven" in one]
    assert DOUBT in line


def test_prompt_context_shows_the_doubt(changed: World) -> None:
    after_a_session(changed)
    assert DOUBT in asked(changed)


@pytest.mark.parametrize(
    "change", [{"importance": 6}, {"add_tags": ("oven",)}], ids=["its weight", "its tags"]
)
def test_doubt_remains_after_metadata_edits(changed: World, change: dict[str, Any]) -> None:
    after_a_session(changed)
    edit(changed.context(), oven(changed).id, **change)
    assert DOUBT in asked(changed)
    assert len(told(started(changed))) == 1


def test_certain_file_change_waits_for_review_until_kept(
    changed: World,
) -> None:
    (found,) = doubts(changed.context())
    assert (found.memory.content, found.why) == (OVEN, Reason.STALE)
    assert (found.detail or "") == "src/oven.py changed 5 times since"
    with changed.open() as memory:
        memory.keep(found.memory.id)
    assert doubts(changed.context()) == ()
    assert DOUBT not in asked(changed)
    assert len(told(started(changed))) == 2


def test_another_doubt_applies_after_the_file_doubt_is_settled(changed: World) -> None:
    (found,) = doubts(changed.context())
    with changed.open() as memory:
        memory.keep(found.memory.id)
    changed.context().reviews.doubt(
        found.memory.id, "the oven was sold", to_ms(changed.clock()) or 0, ()
    )
    assert "may be out of date: the oven was sold" in asked(changed)
    assert len(told(started(changed))) == 1


def test_restated_memory_loses_its_doubt_until_undo(
    changed: World,
) -> None:
    after_a_session(changed)
    changed.clock.pass_days(1 / 1440)  # of two operations at the same moment either is the last
    edit(
        changed.context(),
        oven(changed).id,
        content="The oven is heated in src/oven.py, to 230 degrees.",
    )
    assert DOUBT not in asked(changed)
    assert not changed.context().reviews.pending()
    with changed.open() as memory:
        memory.undo()
    assert DOUBT in asked(changed)
    assert [one.memory for one in changed.context().reviews.pending()] == [oven(changed).id]
