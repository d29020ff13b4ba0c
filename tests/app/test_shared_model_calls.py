"""Small waiting sessions of one project are sent in a single call and learned separately."""

from __future__ import annotations

import re
from typing import Any

from nacre.errors import BudgetSpentError
from nacre.values.memory import Memory
from nacre.values.models import Prompt
from nacre.values.reports import ModelExtraction
from tests.app.conftest import World, says
from tests.app.test_extraction_by_model import (
    learn as learned,
)
from tests.app.test_extraction_by_model import (
    long_turns,
    model_extraction,
    proposed_memory,
)
from tests.fakes.model import ScriptedModel

RULES = {
    "crane": "The crane of the harbour is greased on the first Monday of each month.",
    "lamp": "The lamp at the pier is lit an hour before the sun goes down.",
    "rope": "Always change the ropes at the quay after two winters, whatever they look like.",
}


def sessions(world: World, cwd: str = "/code/harbour", day: int = 17) -> None:
    """Write a session in the same folder for each rule."""
    for number, (name, rule) in enumerate(RULES.items()):
        time = f"2026-11-{day}T0{number}:00:00.000Z"
        ask = says("user", rule, uuid=f"{name}-1", session=f"5e55-{name}", at=time, cwd=cwd)
        answer = says(
            "assistant", "I see.", uuid=f"{name}-2", session=f"5e55-{name}", at=time, cwd=cwd
        )
        world.transcript(name, ask, answer)


def rule_turns(prompt: Prompt) -> dict[str, int]:
    """Return the turn number of each rule in the prompt."""
    matches = re.findall(r"^\[m(\d+)\]\[owner\] (.+)$", prompt.text, re.MULTILINE)
    return {
        name: int(number)
        for number, words in matches
        for name, rule in RULES.items()
        if words == rule
    }


def answer_with_rules(prompt: Prompt) -> dict[str, Any]:
    """Answer with a memory for each rule, quoting its turn."""
    turn_numbers = rule_turns(prompt)
    return {
        "memories": [
            proposed_memory(RULES[name], kind="fact", subject=f"The {name}", quote=RULES[name])
            for name in turn_numbers
        ]
    }


def sources(memories: list[Memory]) -> dict[str, str]:
    return {memory.content: memory.source.session or "" for memory in memories}


def learn(world: World, model: ScriptedModel) -> tuple[list[Memory], ModelExtraction]:
    memories, report = learned(world, model)
    return memories, model_extraction(report)


def test_small_sessions_share_a_call_and_keep_their_own_memories(world: World) -> None:
    sessions(world)
    model = ScriptedModel(answer_with_rules)
    memories, report = learn(world, model)
    assert len(model.prompts) == len(model.compared) == 1
    assert (report.sessions, report.calls, len(memories)) == (3, 2, 3)
    assert sources(memories) == {rule: f"claude-code:5e55-{name}" for name, rule in RULES.items()}
    assert not learned(world, ScriptedModel([]))[1].memories


def test_turns_are_numbered_continuously_across_sessions(world: World) -> None:
    sessions(world)
    model = ScriptedModel([{"memories": []}])
    learn(world, model)
    turn_numbers = re.findall(r"^\[m(\d+)\]\[", model.prompts[0].text, re.MULTILINE)
    assert turn_numbers == ["1", "2", "3", "4", "5", "6"]


def test_a_memory_from_no_session_is_dropped(world: World) -> None:
    sessions(world)

    def mixed(prompt: Prompt) -> dict[str, Any]:
        invented = proposed_memory(
            "Letters are sealed with green wax.", quote="sealed with green wax"
        )
        return {"memories": [invented, *answer_with_rules(prompt)["memories"]]}

    memories, report = learn(world, ScriptedModel(mixed))
    assert sorted(memory.content for memory in memories) == sorted(RULES.values())
    assert report.dropped == {"no evidence": 1}


def test_sessions_of_different_projects_are_sent_separately(world: World) -> None:
    sessions(world)
    world.transcript(
        "kiln",
        says(
            "user",
            "The kiln of the pottery is fired on Thursdays only.",
            uuid="k-1",
            session="5e55-kiln",
            cwd="/code/pottery",
        ),
    )
    model = ScriptedModel([{"memories": []}], repeats=True)
    learn(world, model)
    with_kiln = ["kiln" in prompt.text for prompt in model.prompts]
    assert sorted(with_kiln) == [False, True]


def test_large_session_is_sent_separately(world: World) -> None:
    sessions(world)
    turns = [("user", "Please tell me all that you know of the cranes."), *long_turns("cranes")]
    for index, (role, text) in enumerate(turns):
        record = says(role, text, uuid=f"l-{index}", session="5e55-long", cwd="/code/harbour")
        world.transcript("long", record)
    model = ScriptedModel([{"memories": []}], repeats=True)
    learn(world, model)
    assert sorted("several sessions" in prompt.shared for prompt in model.prompts) == [False, True]


def test_unusable_shared_answer_falls_back_to_single_sessions(world: World) -> None:
    sessions(world)

    def answer(prompt: Prompt) -> Any:
        return (
            "I would rather not."
            if "several sessions" in prompt.shared
            else answer_with_rules(prompt)
        )

    model = ScriptedModel(answer)
    memories, report = learn(world, model)
    assert sorted(memory.content for memory in memories) == sorted(RULES.values())
    assert report.by_rules == 0
    assert report.calls == len(model.prompts) + len(model.compared)


def test_reported_calls_match_calls_made_by_the_writer(world: World) -> None:
    sessions(world)
    with world.open() as memory:
        world.clock.pass_days(-9)
        memory.store(
            "The crane of the harbour is greased on Fridays.", kind="fact", subject="The crane"
        )
        world.clock.pass_days(9)
    for _ in range(2):  # the second prompt includes the memories that rules kept from the sessions
        refused = ScriptedModel([BudgetSpentError("it has taken what it may")])
        _, report = learn(world, refused)
        assert (report.sessions, report.calls, len(refused.prompts)) == (0, 0, 1)
    model = ScriptedModel(answer_with_rules)
    _, report = learn(world, model)
    assert (report.sessions, report.calls) == (3, len(model.prompts) + len(model.compared))
