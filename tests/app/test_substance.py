"""Trivial sessions cause no model calls, and the cost of an ingest is estimated beforehand."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import cycle, islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.dataset import DATA
from benchmarks.extraction.labels import load_labels
from benchmarks.extraction.measuring import OWNER
from nacre.cli.root import cli
from nacre.home.home import Home
from nacre.learn.extract import is_worth_asking
from nacre.learn.ingest import IngestOptions, estimate, ingest
from nacre.values.models import Capabilities, Price
from nacre.values.session import Session, SessionKind, Speaker, Turn
from tests.app.conftest import World, says
from tests.fakes.model import ScriptedModel
from tests.ledger import entries

TRIVIAL = (
    "hi",
    "ok",
    "continue",
    "yes",
    "thanks!",
    "go on",
    "",
    "   ",
    "/clear",
    "/compact",
    "1",
    "y",
    "👍",
    "do it",
    "hello there",
    "please continue",
    "好的",
    "继续",
    "lgtm",
    "next",
)
SESSIONS = 1_000


def home(world: World, model: ScriptedModel, **settings: str) -> Home:
    world.environ |= {
        "NACRE_MODELS_DEFAULT": model.name,
        "NACRE_MODELS_BACKGROUND": "true",
        **settings,
    }
    return replace(world.context(), load_model=lambda *_: model)


def trivial_sessions(world: World) -> Path:
    """Write sessions of two tools with greetings, consent, commands or empty messages."""
    began = datetime(2026, 9, 1, tzinfo=UTC)
    folder = world.user_home / "exports"
    folder.mkdir()
    lines: list[str] = []
    for number, words in enumerate(islice(cycle(TRIVIAL), SESSIONS)):
        session, time = (
            f"7e57-{number:05}",
            f"{began + timedelta(minutes=number):%Y-%m-%dT%H:%M:%S.000Z}",
        )
        answer = "Good. What shall I do next?"
        if number % 50:
            spoken = (("user", words), ("assistant", answer))
            messages = [{"role": role, "content": text, "timestamp": time} for role, text in spoken]
            lines.append(
                json.dumps({"session_id": session, "messages": messages}, ensure_ascii=False) + "\n"
            )
            continue
        message = says("user", words, uuid=f"u{number}", session=session, at=time)
        if number % 100:
            message |= {"isSidechain": True}
            message["message"]["content"] = (
                "Look through all the files of the billing service and list its tables."
            )
        world.transcript(
            session, message, says("assistant", answer, uuid=f"a{number}", session=session, at=time)
        )
    for start in range(0, len(lines), 500):
        (folder / f"{start}.jsonl").write_text(
            "".join(lines[start : start + 500]), encoding="utf-8"
        )
    return folder


def test_thousand_trivial_sessions_cause_no_model_call(world: World) -> None:
    folder = trivial_sessions(world)
    model = ScriptedModel([])
    context = home(world, model, NACRE_ARCHIVE_ENABLED="false")
    report = ingest(context, IngestOptions(paths=(folder,), discover=True, vectors=False))
    assert report.sessions > SESSIONS * 0.85, "all sessions with at least one word"
    assert model.prompts == []
    assert entries(context) == []


@pytest.mark.parametrize(
    "kind", [SessionKind.SUBAGENT, SessionKind.SCHEDULED, SessionKind.HEARTBEAT]
)
def test_automated_sessions_have_no_substance(world: World, kind: SessionKind) -> None:
    turn = Turn(
        "1", Speaker.OWNER, "Remember that the staging cluster is rebuilt every Sunday at four."
    )
    assert is_worth_asking(Session("claude-code", "1"), [turn])
    assert not is_worth_asking(Session("claude-code", "1", kind=kind), [turn])


def test_sessions_with_labelled_memories_are_not_skipped(world: World) -> None:
    folder = DATA / "extraction"
    labelled = {name: item for item in load_labels(folder) for name in item.names if item.labels}
    world.environ["NACRE_OWNER_IDENTITIES"] = OWNER
    context = world.context()
    ingest(
        context, IngestOptions(paths=(folder,), extract=False, vectors=False, remember_paths=False)
    )
    worth: dict[str, bool] = {}
    for row in (entry.row for entry in context.sessions.to_extract()):
        session = context.sessions.get(row)
        turns = [item.turn for item in context.sessions.turns_of(row)]
        name = Path(session.file or "").name
        worth[name] = worth.get(name, False) or is_worth_asking(session.session, turns)
    slugs = {
        item.slug
        for name, item in labelled.items()
        if any(worth[file] for file in worth if file.endswith(name))
    }
    assert slugs == {item.slug for item in labelled.values()}
    assert len(slugs) == 10, "two of the twelve have no labelled memories"


def talk(world: World, number: int = 0, words: int = 300) -> None:
    text = " ".join(
        f"Then the ledger of service {index} moves to the new cluster."
        for index in range(words // 10)
    )
    world.transcript(f"s{number}", says("user", text, uuid=f"u{number}", session=f"5e55-{number}"))


PRICED = Capabilities(
    window=200_000,
    output=16_000,
    answers="schema",
    known=True,
    price=Price(input=Decimal(3), output=Decimal(15)),
)


def test_estimate_shows_the_cost_of_learning_and_stores_nothing(world: World) -> None:
    for number in range(3):
        talk(world, number)
    world.transcript("trivial", says("user", "hi", uuid="t1", session="5e55-hi"))
    context = home(world, ScriptedModel([], capabilities=PRICED))
    first = estimate(context, IngestOptions())
    assert (first.waiting, first.trivial) == (3, 1)
    assert 3 * 5_000 < first.tokens < 3 * 17_000
    assert first.cost == pytest.approx(3 * first.tokens, rel=0.8)
    assert context.sessions.counts() == []
    assert not list(world.vault.rglob("*.md"))
    ingest(world.context(), IngestOptions(extract=False))
    second = estimate(context, IngestOptions())
    assert (second.waiting, second.cost) == (3, first.cost), (
        "stored sessions that wait for extraction count the same"
    )


def test_estimate_shows_the_part_learned_within_the_budget(world: World) -> None:
    for number in range(6):
        talk(world, number)
    context = home(
        world,
        ScriptedModel(lambda _: '{"memories": []}', capabilities=PRICED),
        NACRE_MODELS_DAILY_BUDGET_USD="0.04",
    )
    ingest(context, IngestOptions(extract=False))
    forecast = estimate(context, IngestOptions())
    assert (0 < forecast.now < forecast.waiting, forecast.waiting) == (True, 6)
    ingest(context)
    assert context.sessions.to_extract(), "the remaining sessions wait for another day"


def test_estimate_without_a_model_shows_no_cost(world: World) -> None:
    talk(world)
    env = {"NACRE_HOME": str(world.home), "HOME": str(world.user_home)}
    result = CliRunner().invoke(cli, ["ingest", "--estimate"], env=env)
    assert result.exit_code == 0
    assert "1 session with content" in result.output
    assert "read them for free" in result.output
    answer = json.loads(CliRunner().invoke(cli, ["ingest", "--estimate", "--json"], env=env).stdout)
    assert (answer["waiting"], answer["model"], answer["cost"]) == (1, "none", 0)
