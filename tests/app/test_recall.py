"""Recall ranks the answering memory first, explains each score and rejects unrelated hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nacre.api import MemoryHome
from nacre.care import database
from nacre.errors import InvalidInputError
from nacre.home.home import open_home
from nacre.memories import store
from nacre.memories.history import look_at
from nacre.memories.judge import add_doubt
from nacre.memories.requests import GetRequest, StoreRequest
from nacre.memories.usage import fold_usage
from nacre.memories.vectors import embed_pending
from nacre.recall.lanes import CANDIDATES, QueryVector, Ranking
from nacre.recall.question import read_question
from nacre.recall.ranking import engine_of
from nacre.recall.recall import recall
from nacre.sessions import search
from nacre.sessions.find import SessionRequest
from nacre.values.memory import Expiry, Kind, Scope
from nacre.values.recall import Filter, RecallQuery
from tests.app.conftest import NOON, World, says


@pytest.fixture
def stocked(world: World) -> World:
    with world.open() as memory:
        for content, kind, project, importance in (
            (
                "We run billing on PostgreSQL because the ledger needs transactions.",
                "decision",
                "acme-billing",
                8,
            ),
            ("Always answer with metric units.", "preference", None, 7),
            (
                "The rounding error came from adding tax before rounding.",
                "lesson",
                "acme-billing",
                7,
            ),
            ("Write the upgrade notes for version four.", "todo", "acme-site", 6),
            ("The landing page is built with a static generator.", "fact", "acme-site", 5),
            ("数据库已经迁移到东京的新机房。", "fact", None, 6),
            (
                "`computeSpacingFactor` in src/score/spacing.py reads the intervals.",
                "fact",
                "acme-score",
                6,
            ),
        ):
            memory.store(
                content, kind=kind, project=project, importance=importance, tags=[kind, "seed"]
            )
        memory.ingest()
    return world


def subjects(result: object) -> list[str]:
    return [hit.memory.content for hit in result.hits]  # type: ignore[attr-defined]


def test_recall_returns_the_answering_memory_first(stocked: World) -> None:
    with stocked.open() as memory:
        assert "PostgreSQL" in subjects(memory.recall("which database does billing run on?"))[0]
        assert (
            "tax before rounding" in subjects(memory.recall("what caused the rounding error?"))[0]
        )


def test_chinese_question_finds_chinese_text(stocked: World) -> None:
    with stocked.open() as memory:
        assert subjects(memory.recall("数据库迁移到哪里了", mode="lexical"))[0].startswith("数据库")


def test_recall_finds_parts_of_identifiers_and_paths(stocked: World) -> None:
    with stocked.open() as memory:
        for question in ("computeSpacing", "score/spacing.py"):
            assert "computeSpacingFactor" in subjects(memory.recall(question, mode="lexical"))[0]


def test_unrelated_question_gets_no_hits(stocked: World) -> None:
    with stocked.open() as memory:
        for question in ("what is the capital of Bolivia?", "zebra crossing paint supplier"):
            assert memory.recall(question).hits == ()


def test_recall_in_an_empty_home_returns_nothing(world: World) -> None:
    with world.open() as memory:
        result = memory.recall("anything at all?")
    assert (result.hits, result.turns) == ((), ())


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        (Filter(kinds=(Kind.LESSON,)), {"lesson"}),
        (Filter(projects=("acme-billing",), strict=True), {"decision", "lesson"}),
        (Filter(projects=("acme-billing",)), {"decision", "lesson", "preference", "chinese"}),
        (
            Filter(exclude_projects=("acme-billing", "acme-site", "acme-score")),
            {"preference", "chinese"},
        ),
        (Filter(min_importance=8), {"decision"}),
        (Filter(tags=("TODO",)), {"todo"}),
        (Filter(since=NOON + timedelta(days=1)), set()),
        (Filter(until=NOON - timedelta(days=1)), set()),
        (Filter(expiry=(Expiry.CORE,)), set()),
        (Filter(scope=Scope.PUBLIC), set()),
    ],
)
def test_filter_returns_only_matching_memories(
    stocked: World, filter_: Filter, expected: set[str]
) -> None:
    names = {
        "PostgreSQL": "decision",
        "metric": "preference",
        "tax": "lesson",
        "upgrade": "todo",
        "landing": "fact",
        "数据库": "chinese",
        "compute": "identifier",
    }
    with stocked.open() as memory:
        hits = memory.recall("", mode="browse", filter=filter_, limit=50).hits
    names_found = {
        name for hit in hits for word, name in names.items() if word in hit.memory.content
    }
    assert names_found == expected


def test_browse_works_without_a_question_and_ranks_by_importance(stocked: World) -> None:
    stocked.clock.pass_days(1)
    with stocked.open() as memory:
        hits = memory.recall("", mode="browse").hits
    assert "PostgreSQL" in hits[0].memory.content
    assert len(hits) == 7


def test_time_expression_in_the_question_limits_or_ranks_hits(world: World) -> None:
    with world.open() as memory:
        memory.store("The cache was switched to write-through.", subject="Cache then", kind="event")
        world.clock.pass_days(40)
        memory.store("The cache was switched to write-behind.", subject="Cache now", kind="event")
        world.clock.pass_days(1)
        result = memory.recall("how was the cache switched yesterday?")
        assert ([hit.memory.subject for hit in result.hits], result.time_words) == (
            ["Cache now", "Cache then"],
            "yesterday",
        )
        result = memory.recall("how was the cache switched on november 20?")
        assert [hit.memory.subject for hit in result.hits] == ["Cache then", "Cache now"]
        free = memory.recall("how was the cache switched on november 20?", ignore_time=True)
        assert ({hit.memory.subject for hit in free.hits}, free.since, free.time_words) == (
            {"Cache then", "Cache now"},
            None,
            None,
        )
        only_time = memory.recall("what did we decide yesterday?")
        assert [hit.memory.subject for hit in only_time.hits] == ["Cache now"]
        assert only_time.since == datetime(2026, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("open todos", ["Renew the certificate", "Order the screws"]),
        ("what todos do I have for forge?", ["Renew the certificate", "Order the screws"]),
        ("todos for billing", ["Renew the certificate"]),
        ("list all decisions", ["Ledger database"]),
        ("待办事项有哪些？", ["Renew the certificate", "Order the screws"]),
        ("todos and decisions from today", ["Renew the certificate", "Ledger database"]),
    ],
)
def test_question_about_a_kind_lists_its_memories(
    world: World, question: str, expected: list[str]
) -> None:
    with world.open() as memory:
        memory.store(
            "Order the screws for the forge.",
            subject="Order the screws",
            kind="todo",
            project="forge",
        )
        world.clock.pass_days(3)
        memory.store("Renew the certificate.", subject="Renew the certificate", kind="todo")
        memory.store(
            "The ledger runs on PostgreSQL.",
            subject="Ledger database",
            kind="decision",
            project="billing",
        )
        memory.store("Invoices are sent on Mondays.", subject="Invoices", project="billing")
        assert {hit.memory.subject for hit in memory.recall(question).hits} == set(expected)


def test_around_prefers_memories_near_its_date(world: World) -> None:
    world.environ["NACRE_EMBEDDING_MODEL"] = (
        "none"  # without vectors, neither memory casts doubt on the other
    )
    with world.open() as memory:
        memory.store("The cache was switched to write-through.", subject="Cache then", kind="event")
        world.clock.pass_days(100)
        memory.store("The cache was switched to write-behind.", subject="Cache now", kind="event")
        result = memory.recall("how was the cache switched?", around=NOON, radius_days=10)
        assert [hit.memory.subject for hit in result.hits] == ["Cache then"]
        assert result.since == NOON - timedelta(days=10)
        since_yesterday = Filter(since=NOON - timedelta(days=1))
        result = memory.recall(
            "how was the cache switched?", filter=since_yesterday, around=NOON, radius_days=10
        )
        assert [hit.memory.subject for hit in result.hits] == ["Cache then", "Cache now"]


def test_around_also_limits_browsing(world: World) -> None:
    with world.open() as memory:
        memory.store("The mast is 12 m high.", subject="Mast", importance=9)
        world.clock.pass_days(30)
        memory.store("The lamp burns red.", subject="Lamp", importance=5)
        result = memory.recall("", mode="browse", around=world.clock(), radius_days=7)
        assert [hit.memory.subject for hit in result.hits] == ["Lamp"]


def test_until_is_the_reference_time_for_age(world: World) -> None:
    with world.open() as memory:
        memory.store("The lamp of the lighthouse burns red.", expiry="temporary")
        world.clock.pass_days(400)
        today_score = (
            memory.recall("lamp of the lighthouse", update=False).hits[0].components["x_recency"]
        )
        past = Filter(until=NOON + timedelta(hours=1))
        past_components = (
            memory.recall("lamp of the lighthouse", update=False, filter=past).hits[0].components
        )
    assert today_score < 0.8
    assert past_components.get("x_recency", 1.0) > 0.999


def test_browse_score_is_halved_after_thirty_days(world: World) -> None:
    with world.open() as memory:
        memory.store("The lamp burns red.", importance=10)
        world.clock.pass_days(30)
        (hit,) = memory.recall("", mode="browse").hits
    assert hit.score == pytest.approx(0.5)


def test_agenr_profile_without_boost_ranks_by_cosine(stocked: World) -> None:
    stocked.environ["NACRE_SCORING_PROFILE"] = "agenr"
    with stocked.open() as memory:
        hits = memory.recall("which database does billing run on?", boost=False).hits
    assert hits[0].score == hits[0].components["cosine"] == hits[0].components["relevance"]


def test_preferred_kind_raises_the_score_by_a_quarter(stocked: World) -> None:
    stocked.clock.pass_days(300)
    with stocked.open() as memory:
        before = memory.recall("billing ledger and tax rounding", update=False).hits
        after = memory.call(
            "recall", text="billing ledger and tax rounding", prefer_kinds=["lesson"], update=False
        ).hits
    scores = {hit.memory.kind: hit.score for hit in before}
    for hit in after:
        grown = 1.25 if hit.memory.kind is Kind.LESSON else 1.0
        assert hit.components.get("x_kind", 1.0) == grown
        assert (hit.score > scores[hit.memory.kind]) is (grown > 1)
    assert {hit.memory.kind for hit in after} == scores.keys() >= {Kind.LESSON, Kind.DECISION}


def test_threshold_removes_hits_with_lower_scores(stocked: World) -> None:
    stocked.clock.pass_days(300)
    with stocked.open() as memory:
        hits = memory.recall("which database does billing run on?").hits
        least = hits[0].score
        for threshold, is_included in ((least - 0.01, True), (least + 0.01, False)):
            remaining = memory.call(
                "recall", text="which database does billing run on?", threshold=threshold
            ).hits
            assert (hits[0].memory.id in {hit.memory.id for hit in remaining}) is is_included


def test_topic_is_prepended_only_for_vector_search(stocked: World) -> None:
    with stocked.open() as memory:
        memory.call("recall", text="which units?", topic="metric answers", mode="vector")
        assert stocked.embedder.embedded[-1] == "metric answers: which units?"
        before = len(stocked.embedder.embedded)
        memory.call("recall", text="which units?", topic="metric answers", mode="lexical")
        assert len(stocked.embedder.embedded) == before


def test_word_share_can_select_words_or_meaning_only(stocked: World) -> None:
    with stocked.open() as memory:
        for share, other in ((1.0, "vector"), (0.0, "lexical")):
            hits = memory.call(
                "recall", text="which database does billing run on?", word_share=share
            ).hits
            assert hits[0].components.get(other, 0.0) == 0.0
            assert hits[0].components["relevance"] == pytest.approx(1.0)


def test_diversification_depends_on_its_settings(world: World) -> None:
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    with world.open() as memory:
        for content in (
            "The harbour ferry takes lorries at noon",
            "The harbour ferry takes lorries at dusk",
            "Ferry tickets of the harbour are blue",
        ):
            memory.store(content, force=True)

        def recall_ferries(**more: Any) -> list[Any]:
            return list(
                memory.call("recall", text="harbour ferry lorries", update=False, **more).hits
            )

        alike = recall_ferries(mmr_lambda=0.3)
        assert [hit.memory.content.split()[0] for hit in alike][1] == "Ferry"
        plain = recall_ferries(diversify=False)
        assert {hit.memory.content.split()[-1] for hit in plain[:2]} == {"noon", "dusk"}


def test_fuzzy_option_corrects_misspelt_words(stocked: World) -> None:
    question = "which databse does biling run on?"
    stocked.environ["NACRE_EMBEDDING_MODEL"] = "none"
    with stocked.open() as memory:
        assert not memory.recall(question).is_answered
        result = memory.call("recall", text=question, fuzzy=True)
        assert result.is_answered
        assert "PostgreSQL" in result.hits[0].memory.content
        assert result.query == question
        (lane,) = [item for item in result.lanes if item.name == "spelling"]
        assert lane.note == "biling read as billing"
        right = memory.call("recall", text="which units for billing?", fuzzy=True)
        assert [lane.note for lane in right.lanes if lane.name == "spelling"] == [None]


def test_hit_shows_the_components_of_its_score(stocked: World) -> None:
    with stocked.open() as memory:
        components = memory.recall("which database does billing run on?").hits[0].components
    assert {"lexical", "vector", "coverage", "cosine"} <= set(components)


def test_score_without_boost_equals_relevance(stocked: World) -> None:
    with stocked.open() as memory:
        plain = memory.recall("which database does billing run on?", boost=False).hits[0]
    parts = {
        name: value
        for name, value in plain.components.items()
        if name in ("lexical", "vector", "name")
    }
    assert plain.score == pytest.approx(sum(parts.values()), abs=0.001)


def test_token_budget_truncates_the_answer_and_reports_the_truncation(stocked: World) -> None:
    with stocked.open() as memory:
        complete = memory.recall("", mode="browse")
        cut = memory.recall("", mode="browse", budget_tokens=60)
    assert not complete.truncated
    assert cut.truncated
    assert 0 < len(cut.hits) < len(complete.hits)


def test_near_duplicates_do_not_fill_the_answer(world: World) -> None:
    with world.open() as memory:
        for number in range(6):
            memory.store(
                f"The nightly backup of the warehouse runs at two o'clock on host {number}.",
                force=True,
            )
        memory.store("A backup that fails pages the duty engineer.")
        memory.ingest()
        hits = memory.recall("nightly backup", limit=3).hits
    assert any("duty engineer" in hit.memory.content for hit in hits)


def test_recall_writes_usage_only_to_its_spool(
    stocked: World,
) -> None:
    with stocked.open() as memory:
        hit = memory.recall("which database does billing run on?").hits[0]
    context = stocked.context()
    assert context.usage.of([hit.memory.id]) == {}
    assert fold_usage(context) >= 1
    used = context.usage.of([hit.memory.id])[hit.memory.id]
    assert (used.recall_count, used.last_recalled) == (1, NOON)
    assert fold_usage(context) == 0


def test_recall_without_update_records_no_use(stocked: World) -> None:
    with stocked.open() as memory:
        memory.recall("which database does billing run on?", update=False)
    assert not (stocked.home / "usage.jsonl").exists()


def test_frequently_recalled_memory_ranks_slightly_higher(world: World) -> None:
    with world.open() as memory:
        first = memory.store("The printer on floor one is called goose.", importance=5, force=True)
        second = memory.store("The printer on floor two is called heron.", importance=5, force=True)
    context = world.context()
    days = [int((NOON - timedelta(days=day)).timestamp() * 1000) for day in range(30)]
    with context.database.transaction():
        for day in days:
            context.usage.record([second.memory_id], day, first={second.memory_id})
    with world.open() as memory:
        hits = memory.recall("what is the printer called?").hits
    assert [hit.memory.id for hit in hits][:2] == [second.memory_id, first.memory_id]


@pytest.mark.parametrize(
    ("query", "more", "complaint"),
    [
        ("   ", {}, "empty"),
        ("x" * 30_000, {}, "longer than"),
        ("a", {"limit": 0}, "limit"),
        ("a", {"radius_days": 0}, "radius"),
        ("a", {"filter": Filter(since=NOON, until=NOON - timedelta(days=1))}, "--since"),
    ],
)
def test_invalid_query_is_refused(
    world: World, query: str, more: dict[str, object], complaint: str
) -> None:
    with world.open() as memory, pytest.raises(InvalidInputError, match=complaint):
        memory.recall(query, **more)  # type: ignore[arg-type]


def test_unusual_characters_never_break_search(stocked: World) -> None:
    with stocked.open() as memory:
        for question in (
            '"',
            "'",
            "NEAR(",
            "a AND OR NOT",
            "*",
            "-",
            "col:umn",
            "😀",
            "\ud800",
            "()" * 200,
            "x" * 5000,
        ):
            memory.recall(question)
            memory.search_sessions(question)


def test_search_finds_the_answer_next_to_a_matching_turn(world: World) -> None:
    world.transcript(
        "s1",
        says("user", "Which colour should the harbour lights have?", uuid="u1"),
        says("assistant", "Green to starboard.", uuid="a1"),
        says("user", "Something about bread.", uuid="u2"),
    )
    world.transcript(
        "s2",
        *[
            says("user", f"Green tea number {n}.", uuid=f"x{n}", session="5e55-0002")
            for n in range(5)
        ],
    )
    with world.open() as memory:
        memory.ingest(vectors=False)
        excerpts = [
            hit.turn.id
            for hit in memory.search_sessions("green harbour lights", mode="lexical").turns
        ]
    assert set(excerpts[:2]) == {"u1", "a1"}


def test_sessions_can_be_searched_by_tool_project_speaker_and_time(world: World) -> None:
    world.transcript(
        "s1",
        says("user", "The falcon lands on the north tower.", uuid="u1", at="2026-11-01T09:00:00Z"),
        says(
            "assistant",
            "The falcon is fed on the south tower.",
            uuid="a1",
            at="2026-11-02T09:00:00Z",
        ),
    )
    with world.open() as memory:
        memory.ingest()

        def search(**criteria: object) -> set[str]:
            result = memory.search_sessions("falcon tower", filter=Filter(**criteria))  # type: ignore[arg-type]
            return {hit.turn.id for hit in result.turns}

        assert search() == {"u1", "a1"}
        assert search(owner_only=True) == {"u1"}
        assert search(tools=("codex",)) == set()
        assert search(projects=("acme-billing",), strict=True) == {"u1", "a1"}
        assert search(exclude_projects=("acme-billing",)) == set()
        assert search(since=datetime(2026, 11, 2, tzinfo=UTC)) == {"a1"}


def test_skipped_lane_is_named_in_the_result(stocked: World) -> None:
    stocked.environ["NACRE_EMBEDDING_MODEL"] = "none"
    with stocked.open() as memory:
        result = memory.recall("which database does billing run on?")
    assert result.hits
    assert [(lane.name, lane.state.value, lane.note) for lane in result.lanes] == [
        ("lexical", "ran", None),
        ("vector", "skipped", "off in the settings"),
    ]


def test_recall_includes_memories_linked_to_a_hit(world: World) -> None:
    with world.open() as memory:
        cause = memory.store(
            "Turbine seven trips when the bearing runs hot.", subject="Turbine seven"
        )
    world.write(
        "global/lesson/grease.md",
        f"---\nkind: lesson\nsubject: Grease\nlinks: [{{rel: elaborates, to: {cause.memory_id}}}]\n---\n"
        "Use the blue grease.\n",
    )
    with world.open() as memory:
        hits = memory.recall("why does turbine seven trip?", mode="lexical").hits
    assert [hit.memory.subject for hit in hits] == ["Turbine seven", "Grease"]
    assert hits[1].components["link"] > 0


def test_memory_linked_to_a_weak_hit_is_not_included(world: World) -> None:
    with world.open() as memory:
        memory.store("Billing runs on postgresql in frankfurt.")
        unsure = memory.store(
            "Zebra stripes and unrelated gardening notes that mention billing once."
        )
    world.write(
        "global/fact/pasta.md",
        f"---\nkind: fact\nsubject: Pasta\nlinks: [{{rel: elaborates, to: {unsure.memory_id}}}]\n---\nWith basil.\n",
    )
    with world.open() as memory:
        hits = memory.recall("which postgresql frankfurt billing", mode="lexical").hits
    assert [hit.memory.content for hit in hits] == ["Billing runs on postgresql in frankfurt."]


@pytest.mark.parametrize(
    "question",
    [
        "两三天前我们决定了什么",
        "zero days ago",
        "5000 years ago",
        "notes of 9999-12-31",
        "last 99999999999 years",
    ],
)
def test_impossible_times_never_break_recall(stocked: World, question: str) -> None:
    with stocked.open() as memory:
        memory.recall(question)
        memory.search_sessions(question)


def test_question_about_a_time_without_records_gets_nothing(world: World) -> None:
    world.transcript(
        "s1",
        says(
            "user", "We decide on the colour of the harbour.", uuid="u1", at="2026-11-02T09:00:00Z"
        ),
    )
    with world.open() as memory:
        memory.store("The cache was switched to write-through.")
        memory.ingest()
        world.clock.pass_days(40)
        result = memory.recall("what did we decide yesterday?", turns=5)
    assert (result.hits, result.turns) == ((), ())
    assert result.since == datetime(2026, 12, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    "query",
    [
        Filter(scope=Scope.PUBLIC),
        Filter(scope=Scope.PERSONAL),
        Filter(kinds=(Kind.FACT,)),
        Filter(tags=("pay",)),
        Filter(min_importance=1),
        Filter(expiry=(Expiry.PERMANENT,)),
    ],
)
def test_recall_hides_turns_from_scoped_and_memory_filtered_requests(
    world: World, query: Filter
) -> None:
    world.transcript("s1", says("user", "The salary of anna is ninety thousand.", uuid="u1"))
    with world.open() as memory:
        memory.store("The salary policy is known to all, anna says.", scope="public", tags=["pay"])
        memory.ingest(extract=False)
        assert memory.recall("what is the salary of anna?", turns=3).turns
        result = memory.recall("what is the salary of anna?", filter=query, turns=3)
        search_result = memory.search_sessions("salary of anna", filter=Filter(scope=query.scope))
    assert result.hits
    assert result.turns == ()
    assert bool(search_result.turns) is (query.scope is Scope.PRIVATE)


def test_public_request_sees_no_evidence(world: World) -> None:
    world.transcript(
        "s1", says("user", "Remember that the staging cluster is rebuilt on Sundays.", uuid="u1")
    )
    with world.open() as memory:
        memory.ingest()
        statement = memory.list()[0]
        memory.edit(statement.id, scope="public")
        question = "when is the staging cluster rebuilt?"
        assert memory.recall(question).hits[0].evidence
        assert memory.recall(question, filter=Filter(scope=Scope.PUBLIC)).hits[0].evidence == ()


def test_outdated_memories_are_not_recalled_but_can_be_viewed(world: World) -> None:
    for name, until in (("then", "2026-11-19"), ("now", "2026-11-20")):
        world.write(
            f"global/fact/{name}.md",
            f"---\nkind: fact\nsubject: Price {name}\nvalid: {{to: {until}}}\n---\nThe ticket price {name}.\n",
        )
    context = world.context()
    with world.open() as memory:
        assert [hit.memory.subject for hit in memory.recall("what is the ticket price?").hits] == [
            "Price now"
        ]
        assert [hit.memory.subject for hit in memory.recall("", mode="browse").hits] == [
            "Price now"
        ]
        assert memory.get("Price then").content == "The ticket price then."
    assert look_at(context, GetRequest(reference="Price then", update=False)).memory.valid.until


def test_session_view_omits_superseded_memories(world: World) -> None:
    world.transcript(
        "s1", says("user", "Remember that the staging cluster is rebuilt on Sundays.", uuid="u1")
    )
    with world.open() as memory:
        memory.ingest()
        statement = memory.list()[0]
    context = world.context()
    assert len(search.show(context, SessionRequest(reference="5e55-0001")).memories) == 1
    store.edit(context, statement.id, superseded_by="0198f3c2-0000-7000-8000-000000000000")
    assert search.show(context, SessionRequest(reference="5e55-0001")).memories == ()


def test_evidence_is_found_in_a_copy_of_a_deleted_session(world: World) -> None:
    world.environ["NACRE_ARCHIVE_ENABLED"] = "false"
    statement = "Remember that the billing database is PostgreSQL 18."
    first = world.transcript(
        "a",
        says("user", statement, uuid="0b6f6f3e-0000-4000-8000-000000000001", session="aaaa-0001"),
    )
    with world.open() as memory:
        memory.ingest()
    world.transcript(
        "b",
        says("user", statement, uuid="0b6f6f3e-0000-4000-8000-000000000001", session="bbbb-0002"),
        says("user", "Go on please.", uuid="u2", session="bbbb-0002"),
    )
    with world.open() as memory:
        memory.ingest()
    first.unlink()
    database.rebuild(
        world.settings(),
        open_home=lambda settings: open_home(
            settings, clock=world.clock, load_embedder=lambda _: world.embedder
        ),
        vectors=False,
    )
    with world.open() as memory:
        hit = memory.recall("which billing database?", mode="lexical").hits[0]
    assert [(evidence.session_id, evidence.turn_id) for evidence in hit.evidence] == [
        ("claude-code:bbbb-0002", "0b6f6f3e-0000-4000-8000-000000000001")
    ]


class InterruptedEmbedder:
    """An embedder that calls a function once during ``embed``."""

    def __init__(self, world: World, happens: Callable[[], object]) -> None:
        self.name = world.embedder.name
        self.dimensions = world.embedder.dimensions
        self._world = world
        self._happens: Callable[[], object] | None = happens

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        happens, self._happens = self._happens, None
        if happens:
            happens()
        return self._world.embedder.embed(texts)


def test_edit_during_embedding_discards_the_old_vector(
    world: World,
) -> None:
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    other = world.context()
    outcome = store.store(other, StoreRequest(content="We deploy on fridays in the morning."))
    del world.environ["NACRE_EMBEDDING_MODEL"]
    change = InterruptedEmbedder(
        world,
        lambda: store.edit(other, outcome.memory_id, subject="Cats", content="Cats and dogs."),
    )
    context = open_home(world.settings(), clock=world.clock, load_embedder=lambda _: change)
    embed_pending(context, lambda _: None)
    cosines = context.vectors.memory_cosines(world.embedder.embed(["Cats. Cats and dogs."])[0])
    assert [round(cosine, 2) for cosine in cosines.values()] == [1.0]


def test_turn_deleted_during_embedding_gets_no_vector(world: World) -> None:
    world.transcript("s1", says("user", "Hello there, my good friend.", uuid="u1"))
    with world.open() as memory:
        memory.ingest(vectors=False)
    other = world.context()
    drop = InterruptedEmbedder(world, lambda: other.database.run("delete_turn", row=1))
    context = open_home(world.settings(), clock=world.clock, load_embedder=lambda _: drop)
    assert embed_pending(context, lambda _: None).left == 0
    assert context.vectors.cosines_of_turns(world.embedder.embed(["friend"])[0], [1]) == {}


def test_open_home_sees_vectors_added_by_another_process(world: World) -> None:
    with world.open() as memory:
        memory.store("The printer on floor one is called goose.")
        memory.ingest()
        assert memory.recall("printer goose", mode="vector").hits
        with world.open() as other:
            other.store("The kettle in the kitchen is called heron.")
            other.ingest()
        assert subjects(memory.recall("kettle heron", mode="vector"))[0].startswith("The kettle")


def test_filtered_vector_search_compares_only_matching_turns(world: World) -> None:
    for number in range(30):
        world.transcript(
            f"s{number}",
            says(
                "user",
                f"The falcon lands on tower {number}.",
                uuid=f"u{number}",
                session=f"5e55-{number:04}",
                cwd="/code/small" if number == 7 else "/code/large",
            ),
        )
    with world.open() as memory:
        memory.ingest()
        turns = memory.search_sessions(
            "falcon tower", mode="vector", filter=Filter(projects=("small",), strict=True)
        )
    assert [hit.turn.id for hit in turns.turns] == ["u7"]


def test_ranking_reads_only_the_nearest_memories(world: World) -> None:
    context = world.context()
    for number in range(CANDIDATES + 20):
        store.store(context, StoreRequest(content=f"Note {number} about the harbour.", force=True))
    embed_pending(context, lambda _: None)
    engine = engine_of(context)
    question = read_question("Note 7 about the harbour.", now=NOON)
    vector = QueryVector(
        world.embedder.embed([question.semantic])[0], context.vectors.of(world.embedder.name)
    )
    ranked = engine.rank(question, Filter(), Ranking(NOON), vector=vector, lexical=False)
    assert len(ranked) == CANDIDATES
    assert ranked[0].memory.content == "Note 7 about the harbour."


def test_agenr_scoring_profile_uses_the_agenr_formula(world: World) -> None:
    scores = {}
    for profile in ("nacre", "agenr"):
        world.environ["NACRE_SCORING_PROFILE"] = profile
        with world.open() as memory:
            memory.store("Write the upgrade notes for version four.", kind="todo", importance=5)
            world.clock.pass_days(60 if profile == "nacre" else 0)
            scores[profile] = (
                memory.recall("upgrade notes for version four", update=False).hits[0].score
            )
    assert scores["nacre"] == pytest.approx((0.5 + 0.15) / 1.15, abs=0.01), (
        "the age factor of an old todo has a lower bound"
    )
    assert scores["agenr"] < 0.3, "the formula has no lower bound for an old todo"


def _edit(memory: MemoryHome, _: World, old: str, __: str) -> None:
    memory.edit(old, importance=9)


def _edit_file(memory: MemoryHome, world: World, old: str, _: str) -> None:
    file = world.memory_file(old)
    file.write_text(file.read_text(encoding="utf-8").replace("aster", "begonia"), encoding="utf-8")
    memory.list()


def _restore(memory: MemoryHome, _: World, old: str, __: str) -> None:
    memory.retire(old)
    memory.unretire(old)


def _undo(memory: MemoryHome, _: World, old: str, __: str) -> None:
    memory.edit(old, importance=9)
    memory.undo()


def _resolve(memory: MemoryHome, world: World, old: str, new: str) -> None:
    home = world.context()
    with home.change("doubt") as change:
        change.put([add_doubt(home.memories.by_rows([1])[1], new, "they differ")])
    home.close()
    memory.call("review-resolve", reference=new[-8:], choice="keep-new")


@pytest.mark.parametrize("change", [_edit, _edit_file, _restore, _undo, _resolve])
def test_changed_memory_is_embedded_immediately(world: World, change: Callable[..., None]) -> None:
    with world.open() as memory:
        old = memory.store("The lobby has asters.", subject="aster", force=True).memory_id
        new = memory.store("The lobby has dahlias.", subject="dahlia", force=True).memory_id
        change(memory, world, old, new)
        context = world.context()
        assert context.vectors.memories_to_embed(9) == []


@pytest.mark.embedding
@pytest.mark.parametrize(
    "sentence", ["We now build with Bazel.", "部署改用蓝绿发布。", "Never say sorry."]
)
def test_memory_without_a_vector_is_recalled_by_its_words(world: World, sentence: str) -> None:
    from nacre.llm.local_model import load_minilm

    world.embedder = load_minilm()  # type: ignore[assignment]
    with world.open() as memory:
        old = memory.store("The annual picnic is planned in June.", force=True).memory_id
        new = memory.store(sentence, force=True).memory_id
        memory.call("graph-link", links=[{"source": new, "relation": "supersedes", "target": old}])
    context = world.context()
    with context.database.transaction():
        context.memories.put(store.get(context, new))
    assert context.vectors.memories_to_embed(1)
    assert [hit.memory.id for hit in recall(context, RecallQuery(sentence)).hits] == [new]
