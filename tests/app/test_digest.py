"""The digest of a session for a writer is short and contains the evidence it can cite."""

from __future__ import annotations

from typing import Any

from tests.app.conftest import World, says
from tests.app.test_extraction_by_model import answer_with, learn, proposed_memory
from tests.fakes.model import ScriptedModel

ASK = "Please look at why the export of the harbour's ledger fails on Mondays."
PLAN = (
    "# Number the berths anew\n\nBerths are numbered from the lighthouse, not from the gate, because pilots come from "
    "the sea and count that way."
)
QUOTE = "numbered from the lighthouse, not from the gate"
CHOICE = (
    "Berths are numbered from the lighthouse, not from the gate, because pilots count that way."
)


def command_run(
    uuid: str, command: str, output: str, *, fails: bool = False, words: str = ""
) -> list[dict[str, Any]]:
    """Return an agent's command, after some words, and its output."""
    call, result = says("assistant", "", uuid=uuid), says("user", "", uuid=f"{uuid}r")
    tool_use = {"type": "tool_use", "id": uuid, "name": "Bash", "input": {"command": command}}
    call["message"]["content"] = [*([{"type": "text", "text": words}] if words else []), tool_use]
    content = f"Exit code 1\n{output}" if fails else output
    result["message"]["content"] = [
        {"type": "tool_result", "tool_use_id": uuid, "content": content, "is_error": fails}
    ]
    return [call, result]


def prompt_text(world: World, *records: dict[str, Any]) -> str:
    """Return the prompt for a session."""
    world.transcript("one", *records)
    model = ScriptedModel([{"memories": []}])
    learn(world, model)
    return model.prompts[0].text


def test_digest_shows_only_failing_calls_and_their_fixes(world: World) -> None:
    text = prompt_text(
        world,
        says("user", ASK, uuid="u"),
        *command_run("a", "ls harbour/ledger", "all.csv"),
        *command_run("b", "make export", "no space left", fails=True),
        *command_run("c", "make export", "done"),
        *command_run("d", "make export", "done"),
        says("assistant", "The disk was full.", uuid="z"),
    )
    assert "ls harbour/ledger" not in text
    assert text.count("· Bash: make export") == 2
    assert "no space left" in text
    assert "all.csv" not in text


def test_comparison_prompt_contains_the_calls_shown_to_the_writer(world: World) -> None:
    failing, mending = (
        command_run("b", "make export", "no space left", fails=True),
        command_run("c", "make export", "done", words="The disk was full: now it has room."),
    )
    world.transcript(
        "one", says("user", ASK, uuid="u"), *failing, *mending, says("user", "good", uuid="z")
    )
    cause = "Exports of the harbour stopped since the disk was full."
    model = ScriptedModel(
        [answer_with(proposed_memory(cause, kind="lesson", quote="The disk was full"))]
    )
    learn(world, model)
    assert "now it has room" in model.compared[0].text
    assert "· Bash: make export → ok" in model.compared[0].text


def test_accepted_plan_is_shown_and_can_be_cited(world: World) -> None:
    world.transcript(
        "one",
        says("user", f"Implement the following plan:\n\n{PLAN}", uuid="u"),
        says("assistant", "Done.", uuid="a"),
    )
    model = ScriptedModel([answer_with(proposed_memory(CHOICE, quote=QUOTE))])
    memories, _ = learn(world, model)
    assert "[m1][agent, plan] # Number the berths anew" in model.prompts[0].text
    assert "[m1][agent, plan] # Number the berths anew" in model.compared[0].text
    assert [memory.content for memory in memories] == [CHOICE]


def test_compaction_summary_does_not_count_as_outside_text(world: World) -> None:
    recap = says(
        "user",
        f"This session is being continued. Summary: {CHOICE}",
        uuid="r",
        isCompactSummary=True,
    )
    agreement = says("assistant", f"So I take it: {CHOICE}", uuid="a")
    world.transcript(
        "one",
        says("user", ASK, uuid="u"),
        agreement,
        recap,
        says("user", "yes, do it that way", uuid="y"),
    )
    model = ScriptedModel([answer_with(proposed_memory(CHOICE, quote=QUOTE))])
    memories, _ = learn(world, model)
    assert "Summary:" not in model.prompts[0].text
    assert [memory.content for memory in memories] == [CHOICE]


def test_digest_marks_pasted_text_and_shortens_long_pastes(world: World) -> None:
    paste = "\n".join(
        f"[10:{minute:02}] tug {minute}: standing by at berth {minute} of the harbour"
        for minute in range(60)
    )
    text = prompt_text(world, says("user", f"what do you make of this log?\n\n{paste}", uuid="u"))
    assert "> [10:00] tug 0:" in text
    assert "> what do you make" not in text
    assert "tug 30:" not in text


def test_digest_splits_a_long_session_before_an_owners_turn(world: World) -> None:
    records = []
    for number in range(12):
        records.append(
            says(
                "user",
                f"Tell me all about the quay number {number} of the harbour.",
                uuid=f"u{number}",
            )
        )
        records += [
            says(
                "assistant",
                f"Quay {number}, part {part}: {'it is long and old. ' * 60}",
                uuid=f"a{number}{part}",
            )
            for part in range(4)
        ]
    world.transcript("one", *records)
    model = ScriptedModel([{"memories": []}], repeats=True)
    learn(world, model)
    assert len(model.prompts) > 1
    ends = [
        prompt.text.partition("\n</transcript>")[0].rpartition("\n[m")[2]
        for prompt in model.prompts
    ]
    assert all("part 3:" in end for end in ends)


def test_call_without_text_is_shown_if_cited_as_evidence(world: World) -> None:
    world.transcript(
        "one",
        says("user", ASK, uuid="u"),
        *command_run("b", "make export", "no space left", fails=True),
        *command_run("c", "make export", "done"),
        says("assistant", "The disk was full, so I emptied it.", uuid="z"),
    )
    statement = (
        "The export of the harbour's ledger failed since the disk was full; emptying it helped."
    )
    model = ScriptedModel(
        [answer_with(proposed_memory(statement, kind="lesson", quote="The disk was full"))]
    )
    learn(world, model)
    assert model.compared[0].text.count("· Bash: make export") == 2


def test_remarks_task_lists_and_earlier_versions_are_left_out(world: World) -> None:
    steps = [
        f"{at}. Move the berth number {at} of the harbour into the new register" for at in range(20)
    ]
    plan = "\n".join(steps)
    text = prompt_text(
        world,
        says("user", ASK, uuid="u"),
        says("assistant", f"A first plan:\n{plan}", uuid="p1"),
        says("user", "and number 20 as well", uuid="v"),
        says("assistant", "Let me look at the register first.", uuid="r"),
        says(
            "assistant",
            f"The plan:\n{plan}\n20. Move the last berth\n- [x] register read",
            uuid="p2",
        ),
        says("user", "good, do that", uuid="w"),
    )
    assert text.count(steps[3]) == 1
    assert "an earlier version of a later text" in text
    assert "Let me look at" not in text
    assert "register read" not in text


def test_the_digest_of_a_long_session_has_a_limit(world: World) -> None:
    records = []
    for at in range(60):
        records.append(
            says("user", f"Tell me about quay {at} of the harbour please.", uuid=f"u{at}")
        )
        lines = "\n".join(f"Quay {at} has a bollard {line}." for line in range(250))
        records.append(says("assistant", lines, uuid=f"a{at}"))
    world.transcript("one", *records)
    model = ScriptedModel([{"memories": []}], repeats=True)
    learn(world, model)
    assert sum(len(prompt.text) for prompt in model.prompts) < 24_000 * 3 * 1.2
    assert all(any(f"quay {at} " in prompt.text for prompt in model.prompts) for at in range(60))
