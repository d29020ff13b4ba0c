"""Scenarios in which a model writes the handoff of a session."""

from __future__ import annotations

from nacre.context.handoff import hand_over, improve
from nacre.learn.ingest import IngestOptions, ingest
from nacre.testing.conformance import Agent, Owner, Tool
from nacre.values.session import Task
from tests.llm.stage import Stage, scenario


@scenario()
def handoff_contains_the_open_work(stage: Stage) -> None:
    """Check that the last decision counts, withdrawn ones are omitted and outside text is not
    repeated."""
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
    text = after.content.lower()
    assert "open threads:" in text
    for word in ("spooler.py", "ready signal", "400", "ines", "changelog", "press"):
        assert word in text, word
    assert "fetch" not in text
    assert len(text.split()) < 300
