"""What each ingredient of the recipe is for, on sessions small enough to see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.retrieval.homes import as_jsonl
from benchmarks.retrieval.recipes import reciprocal_rank
from benchmarks.retrieval.suites import BenchSession, BenchTurn
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.recall.question import read_question
from nacre.recall.ranking import DEFAULT, Recipe
from nacre.recall.turns import TurnRecall
from nacre.settings import load_settings
from nacre.values.recall import Filter

LONG = "The usual long answer goes on about many things and then some more of them. " * 30


def session(name: str, *said: tuple[str | None, str], project: str | None = None) -> BenchSession:
    turns = tuple(
        BenchTurn(f"{name}:{at}", "user" if at % 2 == 0 else "assistant", author, text, None)
        for at, (author, text) in enumerate(said)
    )
    return BenchSession(name, turns, project)


SESSIONS = (
    session(
        "kiln",
        ("Ada", "My kiln broke yesterday."),
        ("Bo", "What did the technician charge?"),
        ("Ada", "Ninety euros, can you believe it?"),
        ("Bo", "I would have bought a new one."),
    ),
    session(
        "oven",
        ("Cy", "The oven broke and the technician came by."),
        ("Di", "How annoying that must have been."),
    ),
    session(
        "shop",
        (None, "We cache product pages in Redis."),
        (None, "Noted, Redis."),
        project="shop-api",
    ),
    session(
        "site",
        (None, "We cache rendered pages in Varnish."),
        (None, "Noted, Varnish."),
        project="web-site",
    ),
    session(
        "code",
        (None, "`computeSpacingFactor` reads the intervals."),
        (None, "And computeSpacing was renamed."),
    ),
    session(
        "paste",
        (None, f"{LONG} We chose Varnish pages. {LONG}"),
        (None, "Thanks, that is long indeed."),
    ),
)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Home]:
    folder = tmp_path / "sessions"
    folder.mkdir()
    for found in SESSIONS:
        (folder / f"{found.id}.jsonl").write_text(as_jsonl(found), encoding="utf-8")
    opened = open_home(load_settings(tmp_path / "home", {"NACRE_EMBEDDING_MODEL": "none"}))
    ingest(opened, IngestOptions(paths=(folder,), extract=False, remember_paths=False))
    yield opened
    opened.database.close()


def ranked(
    context: Home, text: str, recipe: Recipe = DEFAULT, wanted: Filter | None = None
) -> list[str]:
    engine = TurnRecall(context.turn_search, context.sessions, context.selection, recipe)
    authors, projects = context.sessions.authors(), context.sessions.projects()
    question = read_question(
        text, now=datetime(2026, 1, 1, tzinfo=UTC), authors=authors, projects=projects
    )
    found = engine.rank(question, wanted or Filter(), vector=None)
    turns = context.sessions.by_rows([item.row for item in found])
    return [turns[item.row].turn.id for item in found]


def test_answer_is_found_by_the_preceding_question(context: Home) -> None:
    question = "what did the technician charge for the kiln"
    assert "kiln:2" in ranked(context, question)[:3]
    alone = replace(DEFAULT, neighbours=0.0, session=0.0, reach=0)
    assert "kiln:2" not in ranked(context, question, alone)


def test_speaker_in_the_question_selects_their_turns(context: Home) -> None:
    assert ranked(context, "What broke at Ada's place?")[0] == "kiln:0"
    assert ranked(context, "What broke at Cy's place?")[0] == "oven:0"


def test_named_project_ranks_first(context: Home) -> None:
    assert ranked(context, "what do we cache pages with in shop api")[0].startswith("shop:")
    assert ranked(context, "what do we cache pages with in web site")[0].startswith("site:")


def test_long_turn_gains_no_rank_by_length(context: Home) -> None:
    found = ranked(context, "varnish pages")
    assert found.index("site:0") < found.index("paste:0")


def test_partial_identifier_match_scores_and_exact_match_counts_once(context: Home) -> None:
    engine = TurnRecall(context.turn_search, context.sessions, context.selection)
    question = read_question("computeSpacing", now=datetime(2026, 1, 1, tzinfo=UTC))
    whole, part = engine.rank(question, Filter(), vector=None)[:2]
    assert part.components["name"] > 0
    assert "name" not in whole.components


def test_too_frequent_words_are_ignored(context: Home) -> None:
    few = replace(DEFAULT, postings=1)
    assert ranked(context, "kiln technician", few)[0] == "kiln:0"


def test_reciprocal_rank_depends_only_on_positions() -> None:
    assert reciprocal_rank({"a": 9.0, "b": 1.0, "c": 0.0}, floor=0.0) == {
        "a": 1.0,
        "b": 61 / 62,
        "c": 0.0,
    }


def test_unknown_words_find_nothing(context: Home) -> None:
    assert ranked(context, "zeppelin") == []
