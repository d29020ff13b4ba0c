"""A session receives no sentence twice, neither in one context nor in a later prompt."""

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
REQUEST = "Move the invoice worker to its own queue now."
PROMPT = "Which queue do I drain before I switch the invoice worker over?"


class Agent:
    """An agent that counts the sentences in its contexts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sentences: Counter[str] = Counter()

    def receive(self, request: ContextRequest) -> ContextBlock:
        block = build(self.world.context(), request)
        write_state(self.world.home, request.session, block.state)
        for item in block.items:
            lines = re.sub(
                r" \(\w+(?: by an agent)?, [\d-]{10}, \w{8}\)$", "", item.text, flags=re.MULTILINE
            )
            lines = re.sub(r"^> (?:owner|agent), [\d-]{10}: ", "", lines, flags=re.MULTILINE)
            sentences = {
                normalise(part)
                for line in lines.splitlines()
                for part in re.split(r"(?<=[.!?]) ", line)
            }
            self.sentences.update(entry for entry in sentences if entry)
        return block

    def start(self, occasion: Occasion = Occasion.STARTUP) -> ContextBlock:
        return self.receive(ContextRequest(Moment.START, occasion, folder=FOLDER, session=NEXT))

    def prompt(self, prompt: str = PROMPT) -> ContextBlock:
        return self.receive(
            ContextRequest(Moment.PROMPT, prompt=prompt, folder=FOLDER, session=NEXT)
        )

    def times_received(self, text: str) -> int:
        return self.sentences[normalise(text)]

    @property
    def repeated(self) -> list[str]:
        return [item for item, count in self.sentences.items() if count > 1]


def write_session(
    world: World, *texts: str, session: str = FIRST, at: str = "2026-11-20T11:50:00.000Z"
) -> None:
    """Write a session with alternating turns of the owner and the agent."""
    name = session.partition(":")[2]
    world.transcript(
        name,
        *(
            says(
                "assistant" if index % 2 else "user",
                text,
                uuid=f"{name}-{index}",
                session=name,
                at=at,
                cwd=FOLDER,
            )
            for index, text in enumerate(texts)
        ),
    )


def finish_session(world: World, session: str = FIRST) -> None:
    put(world.home, Chore("session-end", session, None, FOLDER, "", world.clock().timestamp()))
    do_waiting(world.context())


def store_preference(
    world: World, content: str, project: str | None = "acme-billing", importance: int = 7
) -> None:
    with world.open() as memory:
        memory.store(content, kind="preference", project=project, importance=importance)


@pytest.fixture
def agent(world: World) -> Agent:
    return Agent(world)


def test_handoff_is_not_repeated_as_memory_or_with_a_prompt(world: World, agent: Agent) -> None:
    write_session(world, RULE, "I will.", f"{SHORT} {REQUEST}", "I moved it.")
    ingest(world.context())
    finish_session(world)
    store_preference(world, RULE)
    store_preference(world, SHORT)
    agent.start()
    assert (agent.times_received(RULE), agent.times_received(SHORT)) == (1, 1)
    agent.prompt()
    agent.prompt("May I push it on a Friday?")
    assert agent.repeated == []


def test_memories_learned_from_a_handoff_are_not_repeated(world: World, agent: Agent) -> None:
    write_session(world, RULE, "I will.", REQUEST, "I moved it.")
    with world.open() as memory:
        memory.ingest(extract=False)
        memory.handoff(store=True, session=FIRST)
    agent.start()
    store_preference(world, RULE, importance=9)
    world.clock.now += timedelta(seconds=5)
    agent.prompt()
    assert agent.times_received(RULE) == 1
    assert agent.repeated == []


def test_previous_ending_is_not_repeated_in_a_late_handoff(world: World, agent: Agent) -> None:
    write_session(world, REQUEST, "I moved it.", RULE, "I will.")
    with world.open() as memory:
        memory.ingest(extract=False)
    assert [item.part for item in agent.start().items][:1] == [Part.PREVIOUS]
    put(
        world.home, Chore("session-start", NEXT, None, FOLDER, "startup", world.clock().timestamp())
    )
    do_waiting(world.context())
    world.clock.now += timedelta(seconds=5)
    late = [item.text for item in agent.prompt().items if item.part is Part.HANDOFF]
    assert len(late) == 1
    assert REQUEST in late[0]
    assert agent.repeated == []


@pytest.mark.parametrize("session_says_more", [True, False])
def test_identical_handoffs_of_two_sessions_are_shown_once(
    world: World, agent: Agent, session_says_more: bool
) -> None:
    write_session(world, REQUEST, "I am at it.")
    write_session(
        world,
        REQUEST,
        "It is moved.",
        *([RULE, "I will."] if session_says_more else []),
        session=SECOND,
    )
    with world.open() as memory:
        memory.ingest(extract=False)
        memory.handoff(store=True, session=FIRST)
        world.clock.now += timedelta(seconds=5)
        memory.handoff(store=True, session=SECOND)
    agent.start()
    assert (agent.times_received(REQUEST), agent.times_received(RULE)) == (
        1,
        int(session_says_more),
    )
    assert agent.repeated == []
    put(
        world.home, Chore("session-start", NEXT, None, FOLDER, "startup", world.clock().timestamp())
    )
    do_waiting(world.context())
    assert {item.given for item in world.context().handoffs.everything()} == {NEXT}


def test_memory_repeated_on_the_owners_page_is_shown_once(world: World, agent: Agent) -> None:
    write_session(world, "Hello!", "Hi.")
    ingest(world.context())
    with world.open() as memory:
        memory.call("page-write", name="profile", text=f"- {SHORT}\n- {RULE}\n")
    store_preference(world, RULE, project=None)
    store_preference(world, SHORT)
    agent.start()
    agent.prompt()
    agent.prompt("May I push it on a Friday?")
    assert (agent.times_received(RULE), agent.times_received(SHORT)) == (1, 1)
    assert agent.repeated == []


def test_memory_negated_on_the_owners_page_is_shown(world: World, agent: Agent) -> None:
    write_session(world, "Hello!", "Hi.")
    ingest(world.context())
    with world.open() as memory:
        memory.call("page-write", name="profile", text=f"- Never do this by yourself: {RULE}\n")
    store_preference(world, RULE)
    agent.start()
    assert agent.times_received(RULE) == 1


def test_memory_stored_in_two_places_is_shown_once(world: World, agent: Agent) -> None:
    write_session(world, "Hello!", "Hi.")
    ingest(world.context())
    store_preference(world, RULE)
    store_preference(world, RULE, project=None)
    agent.start()
    agent.prompt()
    assert agent.times_received(RULE) == 1
    assert agent.repeated == []


def test_memory_is_shown_again_after_a_compaction(world: World, agent: Agent) -> None:
    write_session(world, "Hello!", "Hi.")
    ingest(world.context())
    store_preference(world, RULE)
    agent.start()
    agent.start(Occasion.COMPACT)
    assert agent.times_received(RULE) == 2


def test_longer_or_opposite_memory_is_shown_after_a_similar_memory(
    world: World, agent: Agent
) -> None:
    write_session(
        world, "Do not use tabs in the ledger files, please change them.", "I changed them."
    )
    ingest(world.context())
    finish_session(world)
    store_preference(world, "Use tabs in the ledger files.")
    store_preference(world, f"{SHORT} The office is empty then and nobody can roll back.")
    agent.start()
    assert agent.times_received("Use tabs in the ledger files.") == 1
    assert agent.times_received(SHORT) == 1
