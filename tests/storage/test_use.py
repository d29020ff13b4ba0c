"""Use of memories, model calls and traces, on both engines."""

from __future__ import annotations

from datetime import timedelta

from nacre.store.journal import Questions, Spending
from nacre.store.memories import Buckets, SessionUses, UsageLog
from nacre.store.schema import Database
from nacre.values.memory import Confirmation, Kind
from nacre.values.models import (
    NOT_SURE,
    NOTHING_FOUND,
    AskedQuestion,
    Call,
    Health,
    TaskCost,
    Tokens,
)
from nacre.values.review import StepsDue, Usage
from nacre.values.session import Task
from tests.storage.samples import DAY, MS, NOON, an_id, memory, put, retired

_TODAY = NOON.date()


def test_recalls_count_once_per_session_and_keep_100_intervals(database: Database) -> None:
    store = UsageLog(database)
    first, second = an_id(1), an_id(2)
    store.record([first, second], MS, first=[first])
    store.record([first, second], MS - 5, first=[second])
    store.look([first, "seen"])
    assert store.of([first, second, "seen", "never"]) == {
        first: Usage(1, NOON, (MS,), 0.5, 3),
        second: Usage(1, NOON, (MS - 5,), 0.5, 2),
        "seen": Usage(access_count=1),
    }
    for at in range(120):
        store.record([first], MS + at, first=[first])
    use = store.of([first])[first]
    assert (use.recall_count, use.intervals) == (121, tuple(range(MS + 20, MS + 120)))


def test_foreign_usage_is_adopted_only_without_local_usage(database: Database) -> None:
    store = UsageLog(database)
    used = Usage(11, NOON, (MS - 1, MS), 0.875, 30)
    put(database, memory(1), memory(2))
    store.adopt(an_id(1), used)
    store.adopt(an_id(1), Usage())
    store.confirm(an_id(1))
    store.set_quality(an_id(2), 0.125)
    store.confirm(an_id(2))
    assert store.of([an_id(1), an_id(2)]) == {an_id(1): used, an_id(2): Usage(quality=0.125)}
    assert store.steps_due() == []


def test_recalls_earn_importance_steps(database: Database) -> None:
    put(database, *(memory(number) for number in range(1, 5)), memory(5, **retired()))
    store = UsageLog(database)
    for number, times in ((1, 2), (2, 3), (3, 10), (4, 25), (5, 25)):
        for at in range(times):
            store.record([an_id(number)], MS + at, first=[an_id(number)])
    store.set_steps(an_id(2), 1)
    store.set_steps(an_id(3), 1)
    assert store.steps_due() == [StepsDue(an_id(3), 2, 1), StepsDue(an_id(4), 3, 0)]
    put(database, memory(6))
    assert store.buckets() == Buckets(never=1, some=2, often=2)


def test_idle_todos_start_at_last_statement_edit_or_recall(
    database: Database,
) -> None:
    put(
        database,
        memory(1, days=-3),
        memory(2, days=-3),
        memory(3, days=-9, updated=NOON - 2 * DAY),
        memory(4, days=-9.25),
        memory(5, days=-9, confirmed=(Confirmation(NOON - 3 * DAY), Confirmation(NOON - 8 * DAY))),
        memory(6, kind=Kind.TODO, days=-7),
        memory(7, kind=Kind.TODO, days=-8),
        memory(8, days=1),
        memory(9, **retired()),
    )
    store = UsageLog(database)
    store.record([an_id(2)], MS - 1, first=[])
    assert store.idle_todos(NOON) == [
        (an_id(7), "Subject 7", NOON - 8 * DAY),
        (an_id(6), "Subject 6", NOON - 7 * DAY),
    ]
    assert store.idle_todos(NOON - 8 * DAY) == []


def test_value_is_kept_for_later_runs(database: Database) -> None:
    store = UsageLog(database)
    store.set_value("spool", "é")
    store.set_value("spool", "f")
    assert (store.value("spool"), store.value("none")) == ("f", None)


def test_uses_in_a_session_are_paired_judged_and_forgotten(database: Database) -> None:
    store = SessionUses(database)
    store.record("s", ["b", "a", "c"], MS, recalled=["a"])
    store.record("s", ["c"], MS + 2, recalled=[])
    store.record("s", ["b"], MS - 2, recalled=["b"])
    assert store.recalled("s", MS - 3) == {"a", "b"}
    assert store.recalled("s", MS - 2) == {"a"}
    assert store.unjudged("s") == ["a", "b", "c"]
    assert store.first_unjudged("s") == MS
    assert store.first_unjudged("t") is None
    store.pair("s", ["c", "b", "x"])
    assert store.paired("s") == ["b", "c"]
    store.judge("s", ["a", "b"])
    store.record("s", ["a"], MS + 1, recalled=[])
    assert store.unjudged("s") == ["a", "c"]
    assert store.recalled("s", MS - 1) == {"a"}
    store.forget(MS + 2)
    assert store.unjudged("s") == ["c"]


def _call(number: int, **more: object) -> Call:
    fields = {
        "task": "claims",
        "model": "m",
        "is_background": True,
        "tokens": Tokens(1, 2, 3, 4),
        **more,
    }
    return Call(id=f"c{number}", at=NOON + timedelta(minutes=number), day=_TODAY, **fields)  # type: ignore[arg-type]


def test_model_calls_are_summed_by_day_task_and_model(database: Database) -> None:
    store = Spending(database)
    assert store.background_cost(_TODAY) == 0
    for call in (
        _call(1, cost=2**40, seconds=0.5, outcome="done"),
        _call(2, cost=5, outcome="failed", seconds=0.25),
        _call(3),
        _call(4, task="chat", cost=7, outcome="done"),
        _call(5, is_background=False, outcome="done", tokens=Tokens(10, 0)),
        _call(6, model="Ä", cost=1, outcome="done"),
        _call(1, cost=1),
    ):
        store.add(call)
    assert store.background_cost(_TODAY) == 2**40 + 13
    assert store.background_cost(_TODAY + DAY) == 0
    assert store.tokens_in_background(_TODAY, "m") == (30, 3)
    assert store.tokens_in_background(_TODAY, "m", is_chat=True) == (10, 1)
    assert store.by_task(_TODAY - DAY, _TODAY) == [
        TaskCost("claims", 5, 2**40 + 6, 5, 1, 50, 2**40 + 6, 2),
        TaskCost("chat", 1, 7, 1, 0, 10, 7, 0),
    ]
    assert store.by_task(_TODAY, _TODAY + DAY)[1] == TaskCost("chat", 0, 0, 1, 0, 10, 7, 0)
    store.finish(_call(3, cost=None, seconds=1.5, outcome="done", tokens=Tokens(2, 2, 2, 2)))
    assert store.by_task(_TODAY, _TODAY)[0].tokens == 48
    store.prune(_TODAY, NOON, NOON, 9)
    assert len(store.by_task(_TODAY, _TODAY)) == 2
    store.prune(_TODAY + DAY, NOON, NOON, 9)
    assert store.by_task(_TODAY - DAY, _TODAY) == []


def test_failures_are_stored_until_a_model_recovers(database: Database) -> None:
    store = Spending(database)
    sick = Health("m", NOON, "é")
    store.fail(Health("m", NOON + DAY, "before"))
    store.fail(sick)
    assert (store.health("m"), store.health("x")) == (sick, None)
    store.recover("m")
    assert store.health("m") is None


def _traced(number: int, task: Task = Task.DEDUP, **more: object) -> Call:
    at = NOON + number * DAY
    more = {"prompt": f"Ü {number}?", "answer": "Secret", "outcome": "done", **more}
    return Call(
        f"0193-{number:04x}",
        at,
        at.date(),
        task.value,
        "fake:m",
        is_background=False,
        tokens=Tokens(1, 2, 3, 4),
        cost=5,
        seconds=1.5,
        **more,  # type: ignore[arg-type]
    )


def _question(number: int, outcome: str = "shown") -> AskedQuestion:
    return AskedQuestion(f"0193-{number:04x}", NOON + number * DAY, f"Where is {number}?", outcome)


def test_answers_are_reused_until_dropped_or_too_old(database: Database) -> None:
    store = Spending(database)
    for at, key in enumerate("abc"):
        store.add(_traced(at, answer=key * 900, key=key))
    assert store.answer("b", NOON + DAY) == "b" * 900
    assert store.answer("b", NOON + 2 * DAY) is None
    store.prune(_TODAY, NOON, NOON + 2 * DAY, 9)
    assert [store.answer(key, NOON) is None for key in "abc"] == [True, True, False]
    assert [len(call.answer) for call in store.traces()] == [900, 400, 400]
    store.drop_answer("c")
    assert store.answer("c", NOON) is None


def test_traces_are_newest_first_and_found_by_either_end(database: Database) -> None:
    store, questions = Spending(database), Questions(database)
    calls = [_traced(0x1A), _traced(0x2A, Task.HANDOFF), _traced(0x3B), _traced(0x4B)]
    for call in (*calls, calls[0], _traced(0x4C, prompt="", answer="")):
        store.add(call)
    expected = [_question(0x5A, NOTHING_FOUND), _question(0x6A), _question(0x7A, NOT_SURE)]
    for question in expected:
        questions.add(question)
    assert store.traces(limit=3) == calls[:0:-1]
    assert store.traces(Task.DEDUP, NOON + 0x2A * DAY) == [calls[3], calls[2]]
    assert len(store.traces(limit=-1)) == 4
    assert questions.unanswered(NOON) == [expected[2], expected[0]]
    assert [call.id for call in store.find("002a")] == ["0193-002a"]
    assert store.find("0193") == calls[::-1]
    assert store.find("02a") == store.find("93-00") == store.find("00193-002a") == []
    assert store.find("005a") == []


def test_texts_and_questions_are_pruned_by_match_age_and_count(database: Database) -> None:
    store, questions = Spending(database), Questions(database)
    for number in range(1, 6):
        store.add(_traced(number))
        questions.add(_question(number + 16))
    assert sum("Secret" in text for text in store.texts()) == 5
    matching = questions.matching(lambda text: "Where is 18?" in text)
    questions.delete(matching)
    assert len(matching) == 1
    store.prune(_TODAY, NOON + 2 * DAY, NOON, 2)
    questions.prune(NOON + 2 * DAY, 3)
    assert [call.id for call in store.traces()] == ["0193-0005", "0193-0004"]
    assert database.rows("SELECT count(*) FROM model_calls") == [(5,)]
    assert database.rows("SELECT count(*) FROM questions") == [(3,)]
    store.clear_texts()
    assert store.texts() == store.traces() == []
