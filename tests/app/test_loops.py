"""Text that nacre gave to an agent is not learned again, whether marked, quoted or pasted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import pytest

from nacre.home.home import Home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.requests import StoreRequest
from nacre.memories.store import get, store
from nacre.values.memory import Kind
from nacre.values.session import Flag, Speaker
from tests.app.conftest import World
from tests.app.shapes import SHAPES, WITHOUT_OUTPUT, Agent, Owner, Step, Summary, Tool, write

RULE = "We decided to always deploy the billing service on Thursdays after the smoke tests."
OTHER = "Never rotate the staging keys without telling the platform team first."
MARKED = f'<nacre-context version="1" session="s">\n- decision: {RULE}\n- preference: {OTHER}\n</nacre-context>'
WITH_TOOL_OUTPUT = [name for name in SHAPES if name not in WITHOUT_OUTPUT]


@pytest.fixture
def home(world: World) -> Iterator[Home]:
    context = world.context()
    for text, kind in ((RULE, Kind.DECISION), (OTHER, Kind.PREFERENCE)):
        store(context, StoreRequest(content=text, kind=kind))
    yield context
    context.database.close()


def unchanged(context: Home, path: Path) -> list[str]:
    """Ingest a transcript and return the contents of new and confirmed memories."""
    report = ingest(context, IngestOptions(paths=(path,), vectors=False))
    contents = [get(context, memory).content for memory in report.memories]
    for memory_id in context.memories.all_ids():
        memory = get(context, memory_id)
        contents += [f"confirmed: {memory.content}"] if memory.confirmed else []
    return contents


def texts(context: Home) -> list[tuple[Speaker, Flag, str]]:
    rows = [
        turn
        for line in context.sessions.newest(limit=50)
        for turn in context.sessions.turns_of(line.row)
    ]
    return [(item.turn.speaker, item.turn.flags, item.turn.text) for item in rows]


FORMS = {
    "whole": MARKED,
    "without an end": MARKED.removesuffix("</nacre-context>"),
    "without a beginning": MARKED.partition("\n")[2],
    "escaped": escape(MARKED),
    "escaped in JSON": MARKED.replace("<", "\\u003c").replace(">", "\\u003e"),
    "in a JSON string": json.dumps({"hookSpecificOutput": {"additionalContext": MARKED}}),
    "in capitals": MARKED.replace("nacre-context", "Nacre-Context"),
    "twice": f"{MARKED}\n\n{MARKED}",
    "nested": f"<nacre-context>\n{MARKED}\n</nacre-context>",
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_injected_context_with_altered_markers_is_not_learned(
    shape: str, form: str, home: Home, tmp_path: Path
) -> None:
    text = FORMS[form]
    summary = (
        f"{text}\n\nFix the footer." if form != "without an end" else f"Fix the footer.\n\n{text}"
    )
    steps = [
        Owner(summary),
        Agent(f"My context holds:\n{text}"),
        Owner("ok"),
        Summary(f"So far:\n{text}"),
        Owner("Go on."),
    ]
    assert unchanged(home, write(tmp_path / "in", shape, steps)) == []
    assert [
        text for _, _, text in texts(home) if "Thursdays" in text or "staging keys" in text
    ] == []
    assert any(flags & Flag.INJECTED for _, flags, _ in texts(home))


QUOTES = (
    f"As you decided before: {RULE}",
    f"{RULE} Shall I keep to that?",
    f"From memory:\n\n1. {RULE}\n2. **{OTHER}**",
    f"> {OTHER}\n\nSo I tell the platform team.",
    "We always DEPLOY the *billing service* on\nThursdays, after the smoke tests; that was decided.",
)


def ways_to_receive(text: str) -> dict[str, Sequence[Step]]:
    """Return the steps through which an agent receives a text from nacre, by channel."""
    return {
        "prompt": (Owner(f"{MARKED}\n\nWhen do we deploy?"),),
        "own tool": (
            Owner("When do we deploy?"),
            Tool("mcp__nacre__memory_search", "deploy", text),
        ),
        "command": (
            Owner("When do we deploy?"),
            Tool("Bash", "nacre recall 'when do we deploy'", text),
        ),
        "unknown tool": (Owner("When do we deploy?"), Tool("Task", "look it up", text)),
        "vault file": (
            Owner("When do we deploy?"),
            Tool("Read", "/home/me/.nacre/vault/global/x.md", text),
        ),
    }


@pytest.mark.parametrize("shape", WITH_TOOL_OUTPUT)
@pytest.mark.parametrize("channel", ways_to_receive(""))
@pytest.mark.parametrize("reply", ["yes", "ok, good", "1"])
def test_agents_quotes_from_nacre_are_neither_learned_nor_confirmations(
    shape: str, channel: str, reply: str, home: Home, tmp_path: Path
) -> None:
    steps: list[Step] = [*ways_to_receive(f"{RULE}\n{OTHER}")[channel]]
    for quote in QUOTES:
        steps += [Agent(quote), Owner(reply)]
    assert unchanged(home, write(tmp_path / "in", shape, steps)) == []


@pytest.mark.parametrize("shape", SHAPES)
def test_quotes_after_a_compaction_are_not_learned(shape: str, home: Home, tmp_path: Path) -> None:
    steps = [
        Owner(f"{MARKED}\n\nWhen do we deploy?"),
        Agent("On Thursdays."),
        Summary(f"The agent was told: {RULE} {OTHER}"),
        Owner("Go on."),
        Agent(f"We decided this: {RULE} I keep to that."),
        Owner("yes, good"),
    ]
    assert unchanged(home, write(tmp_path / "in", shape, steps)) == []


@pytest.mark.parametrize("shape", SHAPES)
def test_context_pasted_by_the_owner_is_not_a_confirmation(
    shape: str, home: Home, tmp_path: Path
) -> None:
    steps = [
        Owner(f"{MARKED}\n\nWhen do we deploy?"),
        Agent("On Thursdays."),
        Owner(RULE),
        Agent("Right."),
        Owner("ok"),
    ]
    assert unchanged(home, write(tmp_path / "in", shape, steps)) == []


@pytest.mark.parametrize("shape", SHAPES)
def test_owners_independent_repetition_counts_as_a_statement(
    shape: str, home: Home, tmp_path: Path
) -> None:
    steps = [Owner(RULE), Agent("Right."), Owner("Fix the footer.")]
    contents = unchanged(home, write(tmp_path / "in", shape, steps))
    assert contents in ([RULE], [f"confirmed: {RULE}"]), (
        "a decision in a project is stored as the project's own memory"
    )


@pytest.mark.parametrize("shape", WITH_TOOL_OUTPUT)
def test_growing_transcript_remembers_earlier_injected_context(
    shape: str, home: Home, tmp_path: Path
) -> None:
    steps: list[Step] = [
        Owner(f"{MARKED}\n\nWhen do we deploy?"),
        Agent("On Thursdays."),
        Owner("Go on."),
    ]
    assert unchanged(home, write(tmp_path / "in", shape, steps)) == []
    steps += [
        Agent(f"As decided: {RULE} I keep to that."),
        Owner("yes"),
        Agent("Done."),
        Owner("Thanks."),
    ]
    assert unchanged(home, write(tmp_path / "in", shape, steps)) == []
    quoting = [
        flags
        for speaker, flags, text in texts(home)
        if speaker is Speaker.AGENT and "smoke tests" in text
    ]
    assert quoting
    assert all(flags & Flag.INJECTED for flags in quoting)
