"""What agents found out, changed and planned is kept when the owner went on from it, and only then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nacre.values.memory import Kind
from nacre.values.session import Flag, Speaker, ToolCall, Trust, Turn
from tests.extract.conftest import agent, memories, only, owner

TROUBLE = "the importer hangs after a few thousand rows, can you look into it?"
CAUSE = "The root cause is that `drain()` waits for the reader, while the reader waits for a free slot in the queue."
FIX = "Fixed it by giving the reader a queue of its own, so that neither waits for the other."


def looked(*inputs: str) -> Turn:
    calls = tuple(ToolCall("Read", one, "ok") for one in inputs or ("importer.py", "queue.py"))
    return agent("Let me look at the importer first.", calls=calls)


def edited(outcome: str = "ok") -> Turn:
    calls = (ToolCall("Edit", "queue.py", outcome), ToolCall("Bash", "pytest tests/importer", "ok"))
    return agent("Now I change the queue.", calls=calls)


def solved(*after: Turn, report: str = f"{CAUSE} {FIX}", trouble: str = TROUBLE) -> tuple[Turn, ...]:
    return (owner(trouble), looked(), edited(), agent(report), *after)


# --- what it was ---


@pytest.mark.parametrize(
    "onward",
    [
        "great, thanks",
        "commit this and open a PR",
        "Perfect. Now to the exporter: please add a progress bar.",
        "can you also log how long each batch takes?",
        "lgtm, push it",
    ],
)
def test_a_cause_the_agent_found_and_mended_is_a_lesson_when_the_owner_goes_on_from_it(onward: str) -> None:
    found = only(*solved(owner(onward)))
    assert found.kind is Kind.LESSON
    assert found.content.endswith(f"{CAUSE} {FIX}")
    assert found.speaker is Speaker.AGENT
    assert found.importance <= 6
    assert found.turns == ("t0", "t3", "t4")


def test_the_owners_words_on_the_trouble_come_first_where_they_stand_alone() -> None:
    trouble = "Customers get duplicate invoices when they press the button twice."
    cause = "The cause is a missing lock: both requests read the draft before either of them writes it."
    found = only(*solved(owner("ok, merge it"), report=cause, trouble=trouble))
    assert found.content == f"{trouble} {cause}"


@pytest.mark.parametrize(
    "report",
    [
        "Found the problem!\n\nThe worker keeps the old token in memory, and nothing tells it about the new one.",
        "I found and fixed it. The worker keeps the old token in memory, and nothing tells it about the new one.",
        "## Root cause\n\nThe worker keeps the old token in memory, and nothing tells it about the new one.",
        "**Root cause:** The worker keeps the old token in memory, and nothing tells it about the new one.",
        "Now I see the issue:\n\nThe worker keeps the old token in memory, and nothing tells it about the new one.",
        "The jobs failed because the worker keeps the old token in memory, and nothing tells it about the new one.",
    ],
)
def test_a_cause_is_told_in_many_ways(report: str) -> None:
    found = only(*solved(owner("thanks!"), report=report))
    assert "the old token in memory, and nothing tells it about the new one" in found.content


def test_a_lesson_names_no_lines_of_code() -> None:
    report = "The bug was in `queue.py:41-52`: `drain()` (line 44) gives up the lock before the last row is written."
    found = only(*solved(owner("thanks"), report=report))
    assert found.content.endswith(
        "The bug was in `queue.py`: `drain()` gives up the lock before the last row is written."
    )


def test_an_analysis_counts_when_the_owner_has_it_carried_out() -> None:
    analysis = agent(f"{CAUSE} Shall I give the reader a queue of its own?")
    found = only(owner(TROUBLE), looked("a", "b", "c"), analysis, owner("yes, fix it"), edited(), agent("Done."))
    assert found.content == f"The importer hangs after a few thousand rows. {CAUSE}"


def test_an_analysis_that_nobody_carried_out_is_no_lesson() -> None:
    analysis = agent(f"{CAUSE} Shall I give the reader a queue of its own?")
    assert memories(owner(TROUBLE), looked("a", "b", "c"), analysis, owner("let me think about that")) == []


def test_a_session_that_ends_on_work_done_counts() -> None:
    assert only(*solved(report=f"Done. {CAUSE} {FIX}")).kind is Kind.LESSON


def test_a_session_that_ends_before_anything_was_checked_does_not() -> None:
    unchecked = agent("Now I change the queue.", calls=(ToolCall("Edit", "queue.py", "ok"),))
    assert memories(owner(TROUBLE), looked(), unchecked, agent(f"Done. {CAUSE} {FIX}")) == []


@pytest.mark.parametrize("ending", ["Shall I also change the exporter?", "The last test run is still going."])
def test_a_session_that_ends_on_anything_else_does_not(ending: str) -> None:
    assert memories(*solved(report=f"{CAUSE} {ending}")) == []


@pytest.mark.parametrize(
    ("trouble", "report", "content"),
    [
        (
            "The search finds nothing for words with an umlaut, it is broken.",
            "This happens because the index is built before the words are normalised.",
            "The search finds nothing for words with an umlaut, it is broken. "
            "This happens because the index is built before the words are normalised.",
        ),
        (
            "can you debug the search?",
            "The index is built from the raw words. This is because the normaliser runs only on queries.",
            "The index is built from the raw words. This is because the normaliser runs only on queries.",
        ),
    ],
)
def test_a_cause_that_leans_takes_in_what_it_is_about(trouble: str, report: str, content: str) -> None:
    assert only(*solved(owner("great, commit"), trouble=trouble, report=report)).content == content


@pytest.mark.parametrize("outcome", [None, "rejected", "error: interrupted"])
def test_an_agent_that_was_stopped_has_reported_nothing(outcome: str | None) -> None:
    stopped = agent(f"{CAUSE} {FIX} Let me run the tests.", calls=(ToolCall("Bash", "pytest", outcome),))
    assert memories(owner(TROUBLE), looked(), edited(), stopped, owner("first answer me: what is a batch?")) == []


def test_a_chinese_cause_is_a_lesson() -> None:
    report = "找到原因了。导入卡死的根本原因是写入线程一直等读取线程释放队列。已经修复，测试全部通过。"
    found = only(*solved(owner("好的，提交吧"), report=report, trouble="导入几千行之后就卡住了，排查一下"))
    assert found.kind is Kind.LESSON
    assert "写入线程一直等读取线程释放队列" in found.content


@pytest.mark.parametrize(
    "reply",
    [
        "it still hangs, same as before",
        "no, that's not it",
        "hm, but why did it work last week then?",
        "that didn't help",
        "revert that please",
        "are you sure? the queue has no limit",
    ],
)
def test_a_cause_the_owner_objects_to_is_no_lesson(reply: str) -> None:
    assert memories(*solved(owner(reply))) == []


def test_a_cause_the_agent_takes_back_later_is_no_lesson() -> None:
    later = agent("The queue of the reader wasn't the cause: `drain()` was never called, the socket was closed before.")
    assert memories(*solved(owner("ok, next: try it with the large file"), looked(), later)) == []


def test_trouble_that_comes_back_soon_takes_its_cause_with_it() -> None:
    assert memories(*solved(owner("thanks"), agent("You're welcome."), owner("it hangs again in the queue"))) == []


@pytest.mark.parametrize(
    "report",
    [
        "The root cause is probably that `drain()` waits for the reader, which waits for a free slot.",
        "The root cause was a typo in the name of the queue, which I corrected.",
        "The issue was an unused import that the linter complained about in the queue module.",
        "The problem is fixed. All 42 tests pass and the linter is clean.",
        "Done. I changed `queue.py` and `importer.py` and added two tests for the hanging import.",
    ],
)
def test_guesses_trifles_and_mere_status_are_no_lessons(report: str) -> None:
    assert memories(*solved(owner("thanks"), report=report)) == []


def test_a_cause_found_without_effort_is_no_lesson() -> None:
    quick = agent(f"{CAUSE} {FIX}", calls=(ToolCall("Edit", "queue.py", "ok"),))
    assert memories(owner(TROUBLE), quick, owner("next: add a progress bar")) == []


def test_a_cause_nothing_was_changed_for_is_no_lesson() -> None:
    assert memories(owner(TROUBLE), looked("a", "b", "c"), agent(CAUSE), owner("what does the exporter do?")) == []


@pytest.mark.parametrize("change", [{"trust": Trust.UNTRUSTED}, {"flags": Flag.SIDECHAIN}])
def test_words_from_outside_or_of_a_sub_agent_are_no_lesson(change: dict[str, object]) -> None:
    turns = solved(owner("please add a progress bar to the exporter"))
    told = replace(turns[3], **change)  # type: ignore[arg-type]
    assert memories(*turns[:3], told, *turns[4:]) == []


def test_what_was_said_on_the_way_does_not_count_against_the_closing_report() -> None:
    aside = agent("The problem is that the socket buffer is too small for a row of this width.")
    found = only(owner(TROUBLE), looked(), aside, edited(), agent(f"{CAUSE} {FIX}"), owner("thanks"))
    assert "socket" not in found.content


GUESS = "My guess: the scheduler reads the time zone of the container, which is UTC."


@pytest.mark.parametrize("reply", ["Confirmed, the scheduler logs UTC.", "you were right!", "That was it. Next topic."])
def test_a_suspicion_the_owner_confirms_is_a_lesson(reply: str) -> None:
    found = only(owner("The report is sent at the wrong hour."), agent(f"Hard to say. {GUESS}"), owner(reply))
    assert found.kind is Kind.LESSON
    assert found.content == (
        "The report is sent at the wrong hour. The scheduler reads the time zone of the container, which is UTC."
    )


@pytest.mark.parametrize("reply", ["hm, no", "what else could it be?", "exactly as late as last week"])
def test_a_suspicion_nobody_confirmed_is_none(reply: str) -> None:
    assert memories(owner("The report is sent at the wrong hour."), agent(GUESS), owner(reply)) == []


# --- how it behaves now ---

WISH = "can the export retry by itself instead of asking the user to press the button again?"
NOW = "The export now retries three times by itself and asks the user only when the last attempt fails."


def by_agent(*turns: Turn) -> list[str]:
    return [one.content for one in memories(*turns) if one.speaker is Speaker.AGENT]


def asked(*after: Turn, report: str = f"Done. {NOW}", wish: str = WISH) -> tuple[Turn, ...]:
    return (owner(wish), looked("export.py"), edited(), agent(report), *after)


@pytest.mark.parametrize("onward", ["nice, commit it", "thanks", "next: please move the button to the left"])
def test_what_the_product_does_now_that_the_owner_asked_for_is_a_decision(onward: str) -> None:
    found = only(*asked(owner(onward)))
    assert (found.kind, found.content, found.speaker) == (Kind.DECISION, NOW, Speaker.AGENT)
    assert found.importance <= 6


@pytest.mark.parametrize(
    "report",
    [
        "All set! The export no longer asks the user to press the button again, even when the network is slow.",
        "When an attempt fails, the export is now repeated after ten seconds instead of asking the user.",
        "Changed behavior: the export falls back to asking the user only after three attempts.",
        "The export will now retry until the deadline rather than ask the user.",
        "The export now uses the queue of the mailer, so that the user never has to press the button again.",
        "**How it works:**\n- If an attempt fails, the export waits and retries without the user noticing",
    ],
)
def test_behaviour_is_told_in_many_ways(report: str) -> None:
    assert only(*asked(owner("thanks, push"), report=report)).kind is Kind.DECISION


def test_a_complaint_that_was_mended_is_a_lesson() -> None:
    report = "Done. The export now retries three times instead of giving up on the first failed attempt."
    found = only(*asked(owner("commit"), report=report, wish="The export fails on a slow network."))
    assert found.kind is Kind.LESSON
    assert found.content == f"The export fails on a slow network. {report.removeprefix('Done. ')}"


def test_a_behaviour_among_a_list_of_changes_is_told_without_the_list() -> None:
    report = (
        "All done. Summary of changes:\n\n### `export.py`\n- Updated the doc comment\n- Added a helper `wait()`\n"
        "- `export()` no longer asks the user to press the button again; it retries until the "
        "deadline of the mailer and then tells the user instead\n"
        "### `export_test.py`\n- Updated three tests to expect the retry\n"
    )
    found = only(*asked(owner("commit"), report=report))
    assert found.content.startswith("`export()` no longer asks the user")


def test_a_rule_that_begins_with_a_pronoun_takes_in_what_it_is_about() -> None:
    report = (
        "Done. The export retries three times by itself. If the last attempt fails, it falls back to asking the user."
    )
    found = only(*asked(owner("great"), report=report))
    assert found.content == report.removeprefix("Done. ")


@pytest.mark.parametrize(
    "report",
    [
        "Done. All tests pass now and the linter is clean.",
        "Done. The tests now expect three attempts instead of one because the export retries.",
        "Done. You can now run the export again with `make export`.",
        "I updated the README so that it no longer mentions the button of the export.",
    ],
)
def test_status_tests_and_documents_are_no_behaviour(report: str) -> None:
    assert by_agent(*asked(owner("thanks"), report=report)) == []


def test_a_behaviour_the_owner_objects_to_is_dropped() -> None:
    assert by_agent(*asked(owner("no, it must not retry when the user is offline at all, undo that"))) == []


def test_an_errand_has_no_behaviour() -> None:
    assert memories(*asked(owner("thanks"), wish="run the export and check the log")) == []


# --- plans ---

PLAN = """Implement the following plan:

# Keep sessions in one table

## Context

Currently every tenant has a table of sessions of its own.

## Change

Store the sessions of all tenants in one table with a tenant column.
Row level security keeps them apart, so a forgotten filter cannot leak a session to another tenant.

## Files to modify

### `store.py`
- Change `open()` to use the new table instead of the old ones
"""


def test_a_plan_is_kept_as_its_decision_and_its_reason_without_its_steps() -> None:
    found = only(owner(PLAN), agent("I will implement this plan."))
    assert found.kind is Kind.DECISION
    assert found.content == (
        "Keep sessions in one table: Store the sessions of all tenants in one table with a tenant column. "
        "Row level security keeps them apart, so a forgotten filter cannot leak a session to another tenant."
    )


def test_a_plan_without_a_reason_is_only_work_to_do() -> None:
    bare = PLAN.replace("Row level security keeps them apart, so a", "A")
    assert memories(owner(bare.replace("so a forgotten filter cannot leak", "")), agent("On it.")) == []


def test_a_plan_the_owner_takes_back_is_dropped() -> None:
    assert memories(owner(PLAN), agent("I will implement this plan."), owner("wait, wrong plan")) == []


def test_a_plan_approved_in_plan_mode_is_the_agents() -> None:
    approved = agent(PLAN.partition("\n\n")[2], calls=(ToolCall("ExitPlanMode", "plan", "ok"),))
    assert only(owner("how could we store the sessions?"), approved).speaker is Speaker.AGENT


# --- reviews and beginnings ---

REMARK = (
    'I got this comment on the upload: "Building the path from the file name can lead to files outside of the upload '
    'folder. Use the id of the upload for the path instead." Can you fix it, also elsewhere?'
)


def test_a_remark_of_a_review_that_was_followed_is_a_lesson() -> None:
    found = only(owner(REMARK), looked(), edited(), agent("Done. I changed both places."), owner("great, push it"))
    assert found.kind is Kind.LESSON
    assert found.content == (
        "Building the path from the file name can lead to files outside of the upload folder. "
        "Use the id of the upload for the path instead."
    )


def test_a_remark_that_nothing_was_changed_for_is_dropped() -> None:
    assert memories(owner(REMARK), looked(), agent("The name is checked before."), owner("ok, leave it then")) == []


@pytest.mark.parametrize(
    "said",
    [
        "Build a recipe app with SvelteKit, SQLite and full text search over the ingredients.",
        "I want to create a dashboard for the greenhouse that shows humidity, light and water of the last week.",
        "帮我做一个记账小程序，用 Taro 和云数据库，支持多人共享账本。",
    ],
)
def test_the_request_that_begins_a_project_says_what_it_is(said: str) -> None:
    found = only(owner(said), agent("Sure."))
    assert found.kind is Kind.FACT


@pytest.mark.parametrize(
    "said",
    ["Create a function that adds two numbers.", "Write a test for this service with a fake clock.", "Make a page."],
)
def test_a_piece_of_work_is_no_project(said: str) -> None:
    assert memories(owner(said), agent("Sure.")) == []
