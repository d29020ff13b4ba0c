"""What a model hands over of a session to the next one."""

from __future__ import annotations

from nacre.context.handoff import hand_over, improve
from nacre.learn.ingest import IngestOptions, ingest
from nacre.testing.conformance import Agent, Owner, Tool
from nacre.values.session import Task
from tests.llm.stage import Stage, scenario


@scenario()
def a_session_is_handed_over_with_what_is_open(stage: Stage) -> None:
    """The last word counts, what was taken back is left out, and what comes from outside is not repeated."""
    steps = [
        Owner(
            "The label printer drops every fourth label. Find out why, please. Start in spooler.py."
        ),
        Tool("Bash", "pytest tests/test_spooler.py", "1 failed"),
        Agent(
            "spooler.py sends a page before the printer says that it is ready. I could wait for the ready signal, or "
            "send each page twice and drop the doubles."
        ),
        Owner("Send each page twice."),
        Agent("Done. The test passes, but a roll of labels is used up in half the time now."),
        Owner(
            "Then no, take that back and wait for the ready signal. And never print to the press while tests run."
        ),
        Tool("Bash", "pytest tests/test_spooler.py", "3 passed"),
        Agent(
            "It waits for the ready signal now, 3 tests pass. What is left: the timeout is a guess of 400 ms, and the "
            "changelog says nothing of it yet."
        ),
        Owner("Ask Ines for the real timeout tomorrow, I have to go."),
    ]
    path = stage.transcript(*steps)
    with stage.open(Task.HANDOFF) as context:
        ingest(context, IngestOptions(paths=(path,), extract=False, vectors=False))
        (session,) = context.sessions.newest(limit=1)
        before = hand_over(context, session)
        after = improve(context, session)
    assert before
    assert after
    assert (after.id, after.session) == (before.id, before.session)
    told = after.content.lower()
    assert "open threads:" in told
    for said in ("spooler.py", "ready signal", "400", "ines", "changelog", "press"):
        assert said in told, said
    assert "fetch" not in told
    assert len(told.split()) < 300
