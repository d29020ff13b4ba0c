"""The questions of an agent's form count as the agent's words and the answers as the owner's."""

from __future__ import annotations

import pytest

from nacre.values.session import Speaker
from tests.app.conftest import World, says
from tests.app.test_extraction_by_model import answer_with, learn, proposed_memory
from tests.fakes.model import ScriptedModel

PLAN = "Deploys of the tern project go out without a review on Fridays."
QUESTION = f"{PLAN} Shall I keep to that?"
ANSWER_TIME = "2026-11-18T09:02:00.000Z"


def write_form_session(world: World, question: str, answer: str) -> None:
    """Write a session with a form of the agent and the owner's answer."""
    call, result = says("assistant", "", uuid="f-1"), says("user", "", uuid="f-2", at=ANSWER_TIME)
    call["message"]["content"] = [
        {
            "type": "tool_use",
            "id": "q1",
            "name": "AskUserQuestion",
            "input": {"questions": [{"question": question}]},
        }
    ]
    content = f'User has answered your questions: "{question}"="{answer}". You can now continue with them in mind.'
    result["message"]["content"] = [
        {"type": "tool_result", "tool_use_id": "q1", "content": content}
    ]
    ask = says(
        "user", "Please look over the deploy scripts of the tern project for me.", uuid="f-0"
    )
    world.transcript(
        "form", ask, call, result, says("assistant", "Understood.", uuid="f-3", at=ANSWER_TIME)
    )


@pytest.mark.parametrize("quote", [PLAN, f"{QUESTION} → Yes"])
def test_form_statement_accepted_by_the_owner_is_the_owners(world: World, quote: str) -> None:
    write_form_session(world, QUESTION, "Yes")
    (memory,), _ = learn(
        world, ScriptedModel([answer_with(proposed_memory(PLAN, quote=quote, always=True))])
    )
    assert (memory.speaker, memory.importance) == (Speaker.OWNER, 7)


def test_written_form_answer_is_the_owners_statement(world: World) -> None:
    write_form_session(
        world, "Which database does the tern project use?", "PostgreSQL 18, for the ledger"
    )
    content = "The tern project uses PostgreSQL 18 for the ledger."
    (memory,), _ = learn(
        world,
        ScriptedModel([answer_with(proposed_memory(content, quote="PostgreSQL 18, for the"))]),
    )
    assert memory.speaker is Speaker.OWNER


def test_form_questions_are_not_learned_as_the_owners_without_model(world: World) -> None:
    write_form_session(
        world,
        "From now on we always sign the installers by hand. Is there anything else to look at?",
        "No",
    )
    with world.open() as memory:
        memory.ingest()
        assert [item.content for item in memory.list() if item.content.endswith("by hand.")] == []
