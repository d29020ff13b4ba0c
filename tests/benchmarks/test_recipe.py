"""Each ingredient of the recipe has its effect on small sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.retrieval.homes import as_jsonl
from benchmarks.retrieval.suites import BenchSession, BenchTurn
from nacre.home.home import Home, open_home
from nacre.learn.ingest import IngestOptions, ingest
from nacre.recall.question import read_question
from nacre.recall.ranking import DEFAULT, Recipe
from nacre.recall.turns import TurnRecall
from nacre.settings import load_settings
from nacre.values.recall import Filter

LONG = "The usual long answer goes on about many things and then some more of them. " * 30


def session(
    name: str, *messages: tuple[str | None, str], project: str | None = None
) -> BenchSession:
    turns = tuple(
        BenchTurn(f"{name}:{at}", "user" if at % 2 == 0 else "assistant", author, text, None)
        for at, (author, text) in enumerate(messages)
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
    for session in SESSIONS:
        (folder / f"{session.id}.jsonl").write_text(as_jsonl(session), encoding="utf-8")
    home_ = open_home(load_settings(tmp_path / "home", {"NACRE_EMBEDDING_MODEL": "none"}))
    ingest(home_, IngestOptions(paths=(folder,), extract=False, remember_paths=False))
    yield home_
    home_.database.close()


def ranked_turns(
    context: Home, text: str, recipe: Recipe = DEFAULT, filter_: Filter | None = None
) -> list[str]:
    engine = TurnRecall(context.turn_search, context.sessions, context.selection, recipe)
    authors, projects = context.sessions.authors(), context.sessions.projects()
    question = read_question(
        text, now=datetime(2026, 1, 1, tzinfo=UTC), authors=authors, projects=projects
    )
    ranking = engine.rank(question, filter_ or Filter(), vector=None)
    turns = context.sessions.by_rows([item.row for item in ranking])
    return [turns[item.row].turn.id for item in ranking]


def test_answer_is_found_by_the_preceding_question(context: Home) -> None:
    question = "what did the technician charge for the kiln"
    assert "kiln:2" in ranked_turns(context, question)[:3]
    alone = replace(DEFAULT, neighbours=0.0, session=0.0, reach=0)
    assert "kiln:2" not in ranked_turns(context, question, alone)


def test_speaker_in_the_question_selects_their_turns(context: Home) -> None:
    assert ranked_turns(context, "What broke at Ada's place?")[0] == "kiln:0"
    assert ranked_turns(context, "What broke at Cy's place?")[0] == "oven:0"


def test_named_project_ranks_first(context: Home) -> None:
    assert ranked_turns(context, "what do we cache pages with in shop api")[0].startswith("shop:")
    assert ranked_turns(context, "what do we cache pages with in web site")[0].startswith("site:")


def test_long_turn_gains_no_rank_by_length(context: Home) -> None:
    ranking = ranked_turns(context, "varnish pages")
    assert ranking.index("site:0") < ranking.index("paste:0")


def test_partial_identifier_match_scores_and_exact_match_counts_once(context: Home) -> None:
    engine = TurnRecall(context.turn_search, context.sessions, context.selection)
    question = read_question("computeSpacing", now=datetime(2026, 1, 1, tzinfo=UTC))
    whole, part = engine.rank(question, Filter(), vector=None)[:2]
    assert part.components["name"] > 0
    assert "name" not in whole.components


def test_too_frequent_words_are_ignored(context: Home) -> None:
    few = replace(DEFAULT, postings=1)
    assert ranked_turns(context, "kiln technician", few)[0] == "kiln:0"


def test_unknown_words_find_nothing(context: Home) -> None:
    assert ranked_turns(context, "zeppelin") == []
