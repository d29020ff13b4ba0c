"""Learning handles missing times, concurrent writes and an exhausted model budget."""

from __future__ import annotations

import threading
from typing import Any

from nacre.errors import BudgetSpentError
from nacre.learn.ingest import find_session
from nacre.learn.learn import learn
from nacre.setup.chores import learn_now
from nacre.values.models import Completion, Prompt
from tests.app.conftest import World, says
from tests.app.test_extraction_by_model import (
    NONE,
    OWNER,
    RULE,
    SMALL,
    answer_with,
    home,
    long_turns,
    model_extraction,
    no_waiting,
    proposed_memory,
    talk,
)
from tests.app.test_extraction_by_model import (
    learn as learned,
)
from tests.app.test_outdated_memories import (
    CHOICE,
    DATABASE_DROPPED,
    DROPPED_QUOTE,
    REPAIR_REPORT,
    REQUEST,
    TROUBLE,
)
from tests.fakes.model import ScriptedModel

__all__ = ["no_waiting"]
PORT, OLD_PORT = (
    "The gate of the harbour listens on port 8443",
    "The gate of the harbour listens on port 8080",
)
GATE_GONE = "The gate of the harbour is switched off for good, nothing listens there any more."


def known_number(prompt: Prompt, text: str) -> int:
    """Return the number of a known memory in the prompt."""
    (line,) = [
        item for item in prompt.shared.splitlines() if item.startswith("[k") and text in item
    ]
    return int(line[2 : line.index("]")])


def model_that_ends(text: str, quote: str) -> ScriptedModel:
    """Return a model that reports a known memory as outdated and proposes no memories."""

    def answer(prompt: Prompt) -> Any:
        return [{"quote": quote, "known": known_number(prompt, text)}]

    return ScriptedModel(lambda _: {"memories": []}, over=answer)


def test_talk_without_times_is_learned_and_ends_nothing(world: World) -> None:
    page = world.user_home / "chat.md"
    page.write_text(
        f"# Chat\n\n## User\n\n{DATABASE_DROPPED}\n\n## Assistant\n\nNoted.\n", encoding="utf-8"
    )
    with home(world, model_that_ends(CHOICE, DROPPED_QUOTE)) as memory:
        memory_id = memory.store(CHOICE, kind="decision").memory_id
        report = memory.ingest(page)
        assert model_extraction(report).sessions == 1
        assert memory.get(memory_id).is_active


def test_ending_a_memory_does_not_restore_its_predecessor(world: World) -> None:
    world.transcript(
        "gate", says("user", GATE_GONE, uuid="g-1"), says("assistant", "Noted.", uuid="g-2")
    )
    with home(world, model_that_ends(PORT, GATE_GONE)) as memory:
        for days, content in ((-20, OLD_PORT), (5, PORT)):
            world.clock.pass_days(days)
            memory.store(content, kind="fact", project="acme-billing")
        world.clock.pass_days(15)
        report = memory.ingest()
        assert report.ended == 1
        assert memory.list() == []
        assert "never recalled" not in str(memory.call("doctor"))
        operation = next(item for item in memory.log() if item.operation.action == "ingest")
        memory.undo(operation.operation.id)
        assert [item.content for item in memory.list()] == [PORT]


def test_manual_edit_during_learning_is_kept(
    world: World,
) -> None:
    world.transcript(
        "mending", says("user", REQUEST, uuid="m-1"), says("assistant", REPAIR_REPORT, uuid="m-2")
    )
    memory_ids: list[str] = []

    def answer(prompt: Prompt) -> Any:
        path = world.memory_file(memory_ids[0])
        path.write_text(path.read_text() + "\n\nSee also the ticket of the harbour.\n")
        quote = "now passes with a million rows"
        return [{"quote": quote, "known": known_number(prompt, TROUBLE)}]

    model = ScriptedModel(lambda _: {"memories": []}, over=answer)
    with home(world, model) as memory:
        world.clock.pass_days(-9)
        memory_ids.append(memory.store(TROUBLE, kind="lesson", project="acme-billing").memory_id)
        world.clock.pass_days(9)
        memory.ingest()
        assert memory.get(memory_ids[0]).is_active
        assert "ticket of the harbour" in memory.get(memory_ids[0]).content


def test_change_settles_a_doubt_and_undo_restores_the_doubt(world: World) -> None:
    question = "Maybe invoices should not get their numbers from the database, what do you think?"
    talk(world, ("user", question), name="asks", day=17)
    talk(world, ("user", DATABASE_DROPPED), *long_turns("drops"), name="drops", day=18)

    class DoubtingModel(ScriptedModel):
        def _compare(self, prompt: Prompt) -> Completion:
            self._verdict = {
                "finding": "unsettled" if "Maybe invoices" in prompt.text else "holds",
                "wrong": [],
            }
            return super()._compare(prompt)

    def answer(prompt: Prompt) -> Any:
        memory_number = known_number(prompt, CHOICE)
        if "Maybe invoices" in prompt.text:
            return [{"quote": question[:60], "known": memory_number}]
        return [{"quote": DATABASE_DROPPED[:50], "known": memory_number}]

    with home(world, DoubtingModel(lambda _: {"memories": []}, over=answer)) as memory:
        world.clock.pass_days(-9)
        memory_id = memory.store(CHOICE, kind="decision", project="acme-billing").memory_id
        world.clock.pass_days(9)
        report = memory.ingest()
        assert (report.doubted, report.ended) == (1, 1)
        assert memory.get(memory_id).retired
        memory.undo(
            next(item.operation.id for item in memory.log() if item.operation.action == "ingest")
        )
        (hit,) = memory.recall("how do invoices get their numbers?").hits
        assert (hit.memory.content, bool(hit.doubt)) == (CHOICE, True)


def test_parts_beyond_the_daily_limit_are_read_the_next_day(world: World) -> None:
    turns = []
    for number in range(12):
        turns += [
            ("user", f"{OWNER} This is about harbour {number}."),
            ("assistant", f"Harbour {number}. " + "So it is. " * 350),
        ]
    talk(world, *turns)
    is_asked = threading.Event()

    def answer(prompt: Prompt) -> Any:
        if "This is about harbour 0." in prompt.text:
            is_asked.set()
            return answer_with(proposed_memory())
        assert is_asked.wait(20)
        return BudgetSpentError("it took what it may")

    memories, report = learned(world, ScriptedModel(answer, capabilities=SMALL))
    assert [memory.content for memory in memories] == [RULE]  # the paid answer was also verified
    assert model_extraction(report).by_rules == model_extraction(report).parts - 1 > 1
    world.clock.pass_days(1)
    model = ScriptedModel([NONE], repeats=True, capabilities=SMALL)
    learned(world, model)
    prompts = "\n".join(item.text for item in model.prompts)
    assert "This is about harbour 11." in prompts
    assert "This is about harbour 0." not in prompts


def test_finding_beyond_the_budget_is_read_again(world: World) -> None:
    class OverBudgetModel(ScriptedModel):
        def _compare(self, prompt: Prompt) -> Completion:
            raise BudgetSpentError("it took what it may")

    talk(world, ("user", OWNER))
    learned(world, OverBudgetModel([answer_with(proposed_memory())]))
    world.clock.pass_days(1)
    memories, _ = learned(world, ScriptedModel([answer_with(proposed_memory())], repeats=True))
    assert [memory.content for memory in memories] == [RULE]


def test_shared_reading_of_unreadable_sessions_is_tried_once(world: World) -> None:
    for number in range(8):
        talk(
            world,
            ("user", f"{OWNER} Berth {number}."),
            ("assistant", "Done."),
            name=f"s{number}",
            day=10 + number,
        )
    model = ScriptedModel(lambda prompt: "no" if "several sessions" in prompt.shared else NONE)
    learned(world, model)
    assert (
        sum("several sessions" in item.shared for item in model.prompts) == 2
    )  # and once with the list of errors


def test_session_learned_by_two_processes_is_sent_once(world: World) -> None:
    time = "2026-11-20T08:55:00.000Z"
    world.transcript(
        "s",
        *(
            says(role, text, uuid=f"s-{role}", session="s", at=time)
            for role, text in (("user", OWNER), ("assistant", "Done."))
        ),
    )
    world.clock.now = world.clock.now.replace(month=11, day=20, hour=9, minute=0)
    is_listed, is_done, threads = threading.Event(), threading.Event(), list[threading.Thread]()

    def wait(_: Any) -> None:
        is_listed.set()
        is_done.wait(20)

    def answer(_: Prompt) -> Any:
        if not threads:
            threads.append(threading.Thread(target=lambda: learn(world.context(), wait)))
            threads[0].start()
            assert is_listed.wait(20)
        return answer_with(proposed_memory())

    world.model = model = ScriptedModel(answer)
    with home(world, model) as memory:
        memory.ingest(extract=False)
        session = find_session(memory._home, "claude-code:s")
        learn_now(memory._home, session, is_over=True)
        is_done.set()
        threads[0].join(20)
    world.clock.pass_days(1)
    with home(world, model) as memory:
        memory.ingest()
    assert len(model.prompts) == 1
