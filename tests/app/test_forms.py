"""Forms that an agent puts to the owner: its questions are the agent's words, the answers the owner's."""

from __future__ import annotations

import pytest

from nacre.values.session import Speaker
from tests.app.conftest import World, says
from tests.app.test_extraction_by_model import found, learned, told
from tests.fakes.model import ScriptedModel

PLAN = "Deploys of the tern project go out without a review on Fridays."
QUESTION = f"{PLAN} Shall I keep to that?"
ANSWERED = "2026-11-18T09:02:00.000Z"


def form(world: World, question: str, answer: str) -> None:
    """A session in which an agent asks by a form, and the owner answers."""
    call, result = says("assistant", "", uuid="f-1"), says("user", "", uuid="f-2", at=ANSWERED)
    call["message"]["content"] = [
        {
            "type": "tool_use",
            "id": "q1",
            "name": "AskUserQuestion",
            "input": {"questions": [{"question": question}]},
        }
    ]
    told = f'User has answered your questions: "{question}"="{answer}". You can now continue with them in mind.'
    result["message"]["content"] = [{"type": "tool_result", "tool_use_id": "q1", "content": told}]
    ask = says(
        "user", "Please look over the deploy scripts of the tern project for me.", uuid="f-0"
    )
    world.transcript(
        "form", ask, call, result, says("assistant", "Understood.", uuid="f-3", at=ANSWERED)
    )


@pytest.mark.parametrize("quote", [PLAN, f"{QUESTION} → Yes"])
def test_form_statement_accepted_by_the_owner_is_the_owners(world: World, quote: str) -> None:
    form(world, QUESTION, "Yes")
    (memory,), _ = learned(world, ScriptedModel([found(told(PLAN, quote=quote, always=True))]))
    assert (memory.speaker, memory.importance) == (Speaker.OWNER, 7)


def test_written_form_answer_is_the_owners_statement(world: World) -> None:
    form(world, "Which database does the tern project use?", "PostgreSQL 18, for the ledger")
    content = "The tern project uses PostgreSQL 18 for the ledger."
    (memory,), _ = learned(
        world, ScriptedModel([found(told(content, quote="PostgreSQL 18, for the"))])
    )
    assert memory.speaker is Speaker.OWNER


def test_form_questions_are_not_learned_as_the_owners_without_model(world: World) -> None:
    form(
        world,
        "From now on we always sign the installers by hand. Is there anything else to look at?",
        "No",
    )
    with world.open() as memory:
        memory.ingest()
        assert [one.content for one in memory.list() if one.content.endswith("by hand.")] == []
