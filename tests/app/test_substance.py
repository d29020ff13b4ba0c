"""No model is asked about sessions in which the owner said nothing of substance; what it would cost is told first."""

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
    """Greetings, consent, slash commands, empty messages, of two tools; sub-agents are told more."""
    began = datetime(2026, 9, 1, tzinfo=UTC)
    folder = world.user_home / "exports"
    folder.mkdir()
    lines: list[str] = []
    for number, words in enumerate(islice(cycle(TRIVIAL), SESSIONS)):
        session, at = (
            f"7e57-{number:05}",
            f"{began + timedelta(minutes=number):%Y-%m-%dT%H:%M:%S.000Z}",
        )
        answer = "Good. What shall I do next?"
        if number % 50:
            spoken = (("user", words), ("assistant", answer))
            messages = [{"role": role, "content": said, "timestamp": at} for role, said in spoken]
            lines.append(
                json.dumps({"session_id": session, "messages": messages}, ensure_ascii=False) + "\n"
            )
            continue
        asked = says("user", words, uuid=f"u{number}", session=session, at=at)
        if number % 100:
            asked |= {"isSidechain": True}
            asked["message"]["content"] = (
                "Look through all the files of the billing service and list its tables."
            )
        world.transcript(
            session, asked, says("assistant", answer, uuid=f"a{number}", session=session, at=at)
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
    assert report.sessions > SESSIONS * 0.85, "all but those in which nobody said a word"
    assert model.prompts == []
    assert entries(context) == []


@pytest.mark.parametrize(
    "kind", [SessionKind.SUBAGENT, SessionKind.SCHEDULED, SessionKind.HEARTBEAT]
)
def test_automated_sessions_have_no_substance(world: World, kind: SessionKind) -> None:
    said = Turn(
        "1", Speaker.OWNER, "Remember that the staging cluster is rebuilt every Sunday at four."
    )
    assert is_worth_asking(Session("claude-code", "1"), [said])
    assert not is_worth_asking(Session("claude-code", "1", kind=kind), [said])


def test_sessions_with_labelled_memories_are_not_skipped(world: World) -> None:
    folder = DATA / "extraction"
    labelled = {name: item for item in load_labels(folder) for name in item.names if item.labels}
    world.environ["NACRE_OWNER_IDENTITIES"] = OWNER
    context = world.context()
    ingest(
        context, IngestOptions(paths=(folder,), extract=False, vectors=False, remember_paths=False)
    )
    worth: dict[str, bool] = {}
    for row in (one.row for one in context.sessions.to_extract()):
        stored = context.sessions.get(row)
        turns = [item.turn for item in context.sessions.turns_of(row)]
        name = Path(stored.file or "").name
        worth[name] = worth.get(name, False) or is_worth_asking(stored.session, turns)
    asked = {
        item.slug
        for name, item in labelled.items()
        if any(worth[file] for file in worth if file.endswith(name))
    }
    assert asked == {item.slug for item in labelled.values()}
    assert len(asked) == 10, "two of the twelve expect nothing"


def talk(world: World, number: int = 0, words: int = 300) -> None:
    said = " ".join(
        f"Then the ledger of service {at} moves to the new cluster." for at in range(words // 10)
    )
    world.transcript(f"s{number}", says("user", said, uuid=f"u{number}", session=f"5e55-{number}"))


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
    found = estimate(context, IngestOptions())
    assert (found.waiting, found.trivial) == (3, 1)
    assert 3 * 5_000 < found.tokens < 3 * 17_000
    assert found.cost == pytest.approx(3 * found.tokens, rel=0.8)
    assert context.sessions.counts() == []
    assert not list(world.vault.rglob("*.md"))
    ingest(world.context(), IngestOptions(extract=False))
    again = estimate(context, IngestOptions())
    assert (again.waiting, again.cost) == (3, found.cost), (
        "what is stored and waits counts the same"
    )


def test_ingest_announces_the_part_learned_within_the_budget(world: World) -> None:
    for number in range(6):
        talk(world, number)
    context = home(
        world,
        ScriptedModel(lambda _: '{"memories": []}', capabilities=PRICED),
        NACRE_MODELS_DAILY_BUDGET_USD="0.04",
    )
    report = ingest(context)
    assert "now and from the rest on the next days" in (report.foreseen or "")
    assert report.sessions == 6
    assert context.sessions.to_extract(), "the rest waits for another day"


def test_estimate_without_a_model_shows_no_cost(world: World) -> None:
    talk(world)
    env = {"NACRE_HOME": str(world.home), "HOME": str(world.user_home)}
    shown = CliRunner().invoke(cli, ["ingest", "--estimate"], env=env)
    assert shown.exit_code == 0
    assert "1 session with content" in shown.output
    assert "read them for free" in shown.output
    answer = json.loads(CliRunner().invoke(cli, ["ingest", "--estimate", "--json"], env=env).stdout)
    assert (answer["waiting"], answer["model"], answer["cost"]) == (1, "none", 0)
