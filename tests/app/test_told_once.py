"""A session is told nothing twice: not in one context, and not with a prompt what its start told, in whatever part."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta

import pytest

from nacre.base.text import normalise
from nacre.context.build import build
from nacre.context.hooks import write_state
from nacre.learn.ingest import ingest
from nacre.setup.chores import Chore, do_waiting, put
from nacre.values.context import ContextBlock, ContextRequest, Moment, Occasion, Part
from tests.app.conftest import World, says

FOLDER = "/code/acme-billing"
FIRST, SECOND, NEXT = "claude-code:5e55-0001", "claude-code:5e55-0002", "claude-code:5e55-0009"
RULE = "Always drain the old queue before you switch the invoice worker to a new one."
SHORT = "Never push on Fridays."
ASKED = "Move the invoice worker to its own queue now."
PROMPT = "Which queue do I drain before I switch the invoice worker over?"


class Agent:
    """Somebody in whose prompt it all ends up."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.told: Counter[str] = Counter()

    def hears(self, request: ContextRequest) -> ContextBlock:
        block = build(self.world.context(), request)
        write_state(self.world.home, request.session, block.state)
        for item in block.items:
            lines = re.sub(
                r" \(\w+(?: by an agent)?, [\d-]{10}, \w{8}\)$", "", item.text, flags=re.MULTILINE
            )
            lines = re.sub(r"^> (?:owner|agent), [\d-]{10}: ", "", lines, flags=re.MULTILINE)
            told = {
                normalise(part)
                for line in lines.splitlines()
                for part in re.split(r"(?<=[.!?]) ", line)
            }
            self.told.update(one for one in told if one)
        return block

    def starts(self, occasion: Occasion = Occasion.STARTUP) -> ContextBlock:
        return self.hears(ContextRequest(Moment.START, occasion, folder=FOLDER, session=NEXT))

    def prompted(self, prompt: str = PROMPT) -> ContextBlock:
        return self.hears(ContextRequest(Moment.PROMPT, prompt=prompt, folder=FOLDER, session=NEXT))

    def was_told(self, text: str) -> int:
        return self.told[normalise(text)]

    @property
    def twice(self) -> list[str]:
        return [one for one, count in self.told.items() if count > 1]


def talk(
    world: World, *texts: str, session: str = FIRST, at: str = "2026-11-20T11:50:00.000Z"
) -> None:
    """A session in which owner and agent speak in turn."""
    name = session.partition(":")[2]
    world.transcript(
        name,
        *(
            says(
                "assistant" if at_ % 2 else "user",
                text,
                uuid=f"{name}-{at_}",
                session=name,
                at=at,
                cwd=FOLDER,
            )
            for at_, text in enumerate(texts)
        ),
    )


def ended(world: World, session: str = FIRST) -> None:
    put(world.home, Chore("session-end", session, None, FOLDER, "", world.clock().timestamp()))
    do_waiting(world.context())


def remembered(
    world: World, content: str, project: str | None = "acme-billing", importance: int = 7
) -> None:
    with world.open() as memory:
        memory.store(content, kind="preference", project=project, importance=importance)


@pytest.fixture
def agent(world: World) -> Agent:
    return Agent(world)


def test_handoff_is_not_repeated_as_memory_or_with_a_prompt(world: World, agent: Agent) -> None:
    talk(world, RULE, "I will.", f"{SHORT} {ASKED}", "I moved it.")
    ingest(world.context())
    ended(world)
    remembered(world, RULE)
    remembered(world, SHORT)
    agent.starts()
    assert (agent.was_told(RULE), agent.was_told(SHORT)) == (1, 1)
    agent.prompted()
    agent.prompted("May I push it on a Friday?")
    assert agent.twice == []


def test_memories_learned_from_a_handoff_are_not_repeated(world: World, agent: Agent) -> None:
    talk(world, RULE, "I will.", ASKED, "I moved it.")
    with world.open() as memory:
        memory.ingest(extract=False)
        memory.hand_over(session=FIRST)
    agent.starts()
    remembered(world, RULE, importance=9)
    world.clock.now += timedelta(seconds=5)
    agent.prompted()
    assert agent.was_told(RULE) == 1
    assert agent.twice == []


def test_previous_ending_is_not_repeated_in_a_late_handoff(world: World, agent: Agent) -> None:
    talk(world, ASKED, "I moved it.", RULE, "I will.")
    with world.open() as memory:
        memory.ingest(extract=False)
    assert [item.part for item in agent.starts().items][:1] == [Part.PREVIOUS]
    put(
        world.home, Chore("session-start", NEXT, None, FOLDER, "startup", world.clock().timestamp())
    )
    do_waiting(world.context())
    world.clock.now += timedelta(seconds=5)
    late = [item.text for item in agent.prompted().items if item.part is Part.HANDOFF]
    assert len(late) == 1
    assert ASKED in late[0]
    assert agent.twice == []


@pytest.mark.parametrize("session_says_more", [True, False])
def test_identical_handoffs_of_two_sessions_are_shown_once(
    world: World, agent: Agent, session_says_more: bool
) -> None:
    talk(world, ASKED, "I am at it.")
    talk(
        world,
        ASKED,
        "It is moved.",
        *([RULE, "I will."] if session_says_more else []),
        session=SECOND,
    )
    with world.open() as memory:
        memory.ingest(extract=False)
        memory.hand_over(session=FIRST)
        world.clock.now += timedelta(seconds=5)
        memory.hand_over(session=SECOND)
    agent.starts()
    assert (agent.was_told(ASKED), agent.was_told(RULE)) == (1, int(session_says_more))
    assert agent.twice == []
    put(
        world.home, Chore("session-start", NEXT, None, FOLDER, "startup", world.clock().timestamp())
    )
    do_waiting(world.context())
    assert {one.given for one in world.context().handoffs.everything()} == {NEXT}


def test_memory_repeated_on_the_owners_page_is_shown_once(world: World, agent: Agent) -> None:
    talk(world, "Hello!", "Hi.")
    ingest(world.context())
    with world.open() as memory:
        memory.call("page-write", name="profile", text=f"- {SHORT}\n- {RULE}\n")
    remembered(world, RULE, project=None)
    remembered(world, SHORT)
    agent.starts()
    agent.prompted()
    agent.prompted("May I push it on a Friday?")
    assert (agent.was_told(RULE), agent.was_told(SHORT)) == (1, 1)
    assert agent.twice == []


def test_memory_negated_on_the_owners_page_is_shown(world: World, agent: Agent) -> None:
    talk(world, "Hello!", "Hi.")
    ingest(world.context())
    with world.open() as memory:
        memory.call("page-write", name="profile", text=f"- Never do this by yourself: {RULE}\n")
    remembered(world, RULE)
    agent.starts()
    assert agent.was_told(RULE) == 1


def test_memory_stored_in_two_places_is_shown_once(world: World, agent: Agent) -> None:
    talk(world, "Hello!", "Hi.")
    ingest(world.context())
    remembered(world, RULE)
    remembered(world, RULE, project=None)
    agent.starts()
    agent.prompted()
    assert agent.was_told(RULE) == 1
    assert agent.twice == []


def test_memory_is_shown_again_after_a_compaction(world: World, agent: Agent) -> None:
    talk(world, "Hello!", "Hi.")
    ingest(world.context())
    remembered(world, RULE)
    agent.starts()
    agent.starts(Occasion.COMPACT)
    assert agent.was_told(RULE) == 2


def test_longer_or_opposite_memory_is_shown_after_a_similar_memory(
    world: World, agent: Agent
) -> None:
    talk(world, "Do not use tabs in the ledger files, please change them.", "I changed them.")
    ingest(world.context())
    ended(world)
    remembered(world, "Use tabs in the ledger files.")
    remembered(world, f"{SHORT} The office is empty then and nobody can roll back.")
    agent.starts()
    assert agent.was_told("Use tabs in the ledger files.") == 1
    assert agent.was_told(SHORT) == 1
