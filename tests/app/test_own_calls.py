"""Sessions that nacre itself started with a model are not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.learn.ingest import IngestOptions, ingest
from nacre.testing.conformance import Agent, Owner
from nacre.values.models import OWN_CALL
from tests.app.conftest import World
from tests.app.shapes import write

QUESTION = f"{OWN_CALL}\n\nYou extract memories.\n\nRemember that the staging cluster is rebuilt on Sundays."
ANSWER = "We rebuild the staging cluster on Sundays."


@pytest.mark.parametrize("shape", ["claude-code", "codex"])
def test_session_started_by_nacre_is_not_read(shape: str, world: World, tmp_path: Path) -> None:
    path = write(tmp_path / "in", shape, [Owner(QUESTION), Agent(ANSWER)])
    context = world.context()
    for _ in range(2):
        report = ingest(context, IngestOptions(paths=(path,), vectors=False))
        assert (report.turns, report.memories, report.excluded) == (0, (), {"nacre's own call": 1})
        assert not report.problems
    assert not [state for state in context.archive.all() if state.pack]
    context.database.close()


@pytest.mark.parametrize("shape", ["claude-code", "codex"])
def test_partially_read_session_of_nacre_is_later_recognised(
    shape: str, world: World, tmp_path: Path
) -> None:
    path = write(tmp_path / "in", shape, [Owner(QUESTION), Agent(ANSWER)])
    content = path.read_bytes()
    first = content.index(b"\n") + 1 if shape == "codex" else 10
    path.write_bytes(content[:first])
    context = world.context()
    ingest(context, IngestOptions(paths=(path,), vectors=False))
    path.write_bytes(content)
    report = ingest(context, IngestOptions(paths=(path,), vectors=False))
    assert (report.turns, report.memories) == (0, ())
    context.database.close()


@pytest.mark.parametrize("shape", ["claude-code", "codex"])
@pytest.mark.parametrize("quote", ["What does {} mean?", "{}"])
def test_session_quoting_a_nacre_prompt_is_read(
    shape: str, quote: str, world: World, tmp_path: Path
) -> None:
    text = "Remember that the staging cluster is rebuilt on Sundays."
    steps = [Owner(text), Agent("Noted."), Owner(quote.format(QUESTION)), Agent("I see.")]
    context = world.context()
    report = ingest(
        context, IngestOptions(paths=(write(tmp_path / "in", shape, steps),), vectors=False)
    )
    assert report.turns == 4
    assert not report.excluded
    context.database.close()
