"""What becomes of learning where times are missing, somebody writes meanwhile, or a writer may take no more."""

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
    by_model,
    chatter,
    found,
    home,
    learned,
    no_waiting,
    talk,
    told,
)
from tests.app.test_what_is_overtaken import (
    ASKED,
    CHOICE,
    DROPPED,
    DROPPING,
    MENDED,
    TROUBLE,
)
from tests.fakes.model import ScriptedModel

__all__ = ["no_waiting"]
PORT, OLD_PORT = (
    "The gate of the harbour listens on port 8443",
    "The gate of the harbour listens on port 8080",
)
GATE_GONE = "The gate of the harbour is switched off for good, nothing listens there any more."


def number(prompt: Prompt, text: str) -> int:
    """The number under which a known memory is shown."""
    (line,) = [one for one in prompt.shared.splitlines() if one.startswith("[k") and text in one]
    return int(line[2 : line.index("]")])


def overtakes(text: str, quote: str) -> ScriptedModel:
    """A model that finds a known memory overtaken, and writes nothing."""

    def answer(prompt: Prompt) -> Any:
        return [{"quote": quote, "known": number(prompt, text)}]

    return ScriptedModel(lambda _: {"memories": []}, over=answer)


def test_talk_without_times_is_learned_and_ends_nothing(world: World) -> None:
    page = world.user_home / "chat.md"
    page.write_text(f"# Chat\n\n## User\n\n{DROPPED}\n\n## Assistant\n\nNoted.\n", encoding="utf-8")
    with home(world, overtakes(CHOICE, DROPPING)) as memory:
        one = memory.store(CHOICE, kind="decision").memory_id
        report = memory.ingest(page)
        assert by_model(report).sessions == 1
        assert memory.get(one).is_active


def test_ending_a_memory_does_not_restore_its_predecessor(world: World) -> None:
    world.transcript(
        "gate", says("user", GATE_GONE, uuid="g-1"), says("assistant", "Noted.", uuid="g-2")
    )
    with home(world, overtakes(PORT, GATE_GONE)) as memory:
        for days, content in ((-20, OLD_PORT), (5, PORT)):
            world.clock.pass_days(days)
            memory.store(content, kind="fact", project="acme-billing")
        world.clock.pass_days(15)
        report = memory.ingest()
        assert report.ended == 1
        assert memory.list() == []
        assert "never recalled" not in str(memory.call("doctor"))
        operation = next(one for one in memory.log() if one.operation.action == "ingest")
        memory.undo(operation.operation.id)
        assert [one.content for one in memory.list()] == [PORT]


def test_manual_edit_during_learning_is_kept(
    world: World,
) -> None:
    world.transcript(
        "mending", says("user", ASKED, uuid="m-1"), says("assistant", MENDED, uuid="m-2")
    )
    made: list[str] = []

    def answer(prompt: Prompt) -> Any:
        path = world.memory_file(made[0])
        path.write_text(path.read_text() + "\n\nSee also the ticket of the harbour.\n")
        quote = "now passes with a million rows"
        return [{"quote": quote, "known": number(prompt, TROUBLE)}]

    model = ScriptedModel(lambda _: {"memories": []}, over=answer)
    with home(world, model) as memory:
        world.clock.pass_days(-9)
        made.append(memory.store(TROUBLE, kind="lesson", project="acme-billing").memory_id)
        world.clock.pass_days(9)
        memory.ingest()
        assert memory.get(made[0]).is_active
        assert "ticket of the harbour" in memory.get(made[0]).content


def test_change_settles_a_doubt_and_undo_restores_the_doubt(world: World) -> None:
    asks = "Maybe invoices should not get their numbers from the database, what do you think?"
    talk(world, ("user", asks), name="asks", day=17)
    talk(world, ("user", DROPPED), *chatter("drops"), name="drops", day=18)

    class Doubting(ScriptedModel):
        def _compare(self, prompt: Prompt) -> Completion:
            self._verdict = {
                "finding": "unsettled" if "Maybe invoices" in prompt.text else "holds",
                "wrong": [],
            }
            return super()._compare(prompt)

    def answer(prompt: Prompt) -> Any:
        known = number(prompt, CHOICE)
        if "Maybe invoices" in prompt.text:
            return [{"quote": asks[:60], "known": known}]
        return [{"quote": DROPPED[:50], "known": known}]

    with home(world, Doubting(lambda _: {"memories": []}, over=answer)) as memory:
        world.clock.pass_days(-9)
        one = memory.store(CHOICE, kind="decision", project="acme-billing").memory_id
        world.clock.pass_days(9)
        report = memory.ingest()
        assert (report.doubted, report.ended) == (1, 1)
        assert memory.get(one).retired
        memory.undo(
            next(one.operation.id for one in memory.log() if one.operation.action == "ingest")
        )
        (hit,) = memory.recall("how do invoices get their numbers?").hits
        assert (hit.memory.content, bool(hit.doubt)) == (CHOICE, True)


def test_parts_beyond_the_daily_limit_are_read_the_next_day(world: World) -> None:
    said = []
    for at in range(12):
        said += [
            ("user", f"{OWNER} This is about harbour {at}."),
            ("assistant", f"Harbour {at}. " + "So it is. " * 350),
        ]
    talk(world, *said)
    is_asked = threading.Event()

    def answer(prompt: Prompt) -> Any:
        if "This is about harbour 0." in prompt.text:
            is_asked.set()
            return found(told())
        assert is_asked.wait(20)
        return BudgetSpentError("it took what it may")

    memories, report = learned(world, ScriptedModel(answer, capabilities=SMALL))
    assert [one.content for one in memories] == [RULE]  # what was paid for was compared, too
    assert by_model(report).by_rules == by_model(report).parts - 1 > 1
    world.clock.pass_days(1)
    model = ScriptedModel([NONE], repeats=True, capabilities=SMALL)
    learned(world, model)
    shown = "\n".join(one.text for one in model.prompts)
    assert "This is about harbour 11." in shown
    assert "This is about harbour 0." not in shown


def test_finding_beyond_the_budget_is_read_again(world: World) -> None:
    class Spent(ScriptedModel):
        def _compare(self, prompt: Prompt) -> Completion:
            raise BudgetSpentError("it took what it may")

    talk(world, ("user", OWNER))
    learned(world, Spent([found(told())]))
    world.clock.pass_days(1)
    memories, _ = learned(world, ScriptedModel([found(told())], repeats=True))
    assert [one.content for one in memories] == [RULE]


def test_shared_reading_of_unreadable_sessions_is_tried_once(world: World) -> None:
    for at in range(8):
        talk(
            world,
            ("user", f"{OWNER} Berth {at}."),
            ("assistant", "Done."),
            name=f"s{at}",
            day=10 + at,
        )
    model = ScriptedModel(lambda prompt: "no" if "several sessions" in prompt.shared else NONE)
    learned(world, model)
    assert (
        sum("several sessions" in one.shared for one in model.prompts) == 2
    )  # and once with what was wrong


def test_session_learned_by_two_processes_is_sent_once(world: World) -> None:
    at = "2026-11-20T08:55:00.000Z"
    world.transcript(
        "s",
        *(
            says(who, text, uuid=f"s-{who}", session="s", at=at)
            for who, text in (("user", OWNER), ("assistant", "Done."))
        ),
    )
    world.clock.now = world.clock.now.replace(month=11, day=20, hour=9, minute=0)
    listed, is_done, others = threading.Event(), threading.Event(), list[threading.Thread]()

    def wait(_: Any) -> None:
        listed.set()
        is_done.wait(20)

    def answer(_: Prompt) -> Any:
        if not others:
            others.append(threading.Thread(target=lambda: learn(world.context(), wait)))
            others[0].start()
            assert listed.wait(20)
        return found(told())

    world.model = model = ScriptedModel(answer)
    with home(world, model) as memory:
        memory.ingest(extract=False)
        session = find_session(memory._home, "claude-code:s")
        learn_now(memory._home, session, is_over=True)
        is_done.set()
        others[0].join(20)
    world.clock.pass_days(1)
    with home(world, model) as memory:
        memory.ingest()
    assert len(model.prompts) == 1
