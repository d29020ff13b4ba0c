"""What a later statement means for an earlier one, told without a model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nacre.llm.calibration import calibration_of
from nacre.memories.judge import Rarity, Relation, closes, judge
from nacre.values.memory import Kind, Memory

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
LIMITS = calibration_of(None)


def said(text: str, *, kind: str = "fact", subject: str | None = None, days: int = 0) -> Memory:
    when = MONDAY + timedelta(days=days)
    return Memory(
        id=f"{days}",
        kind=Kind(kind),
        subject=subject or text[:60],
        content=text,
        created=when,
        updated=when,
        project="acme",
    )


def relation(earlier: str, later: str, *, kind: str = "fact", then: str | None = None) -> Relation:
    return judge(
        said(earlier, kind=kind), said(later, kind=then or kind, days=9), None, LIMITS
    ).relation


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (
            "The ledger service stores its rows in MongoDB",
            "We moved the ledger from MongoDB to PostgreSQL in March",
        ),
        (
            "The release builds run on Jenkins in the tower",
            "Migrated the release builds off Jenkins",
        ),
        ("Thumbnails are cached in Memcached", "Replaced Memcached with Valkey for the thumbnails"),
        ("The importer parses feeds with lxml", "The importer uses selectolax instead of lxml"),
        ("The search box needs JavaScript", "The search box no longer needs JavaScript"),
        ("The mobile client supports Android 8", "We dropped Android 8 from the mobile client"),
        ("The metrics socket listens on port 9100", "The metrics socket listens on port 9200"),
        ("The importer needs Python 3.10", "The importer needs Python 3.12"),
        ("账单服务的数据保存在 MySQL", "账单服务的数据已经从 MySQL 迁移到 PostgreSQL"),
        ("前端支持 Safari 13", "前端不再支持 Safari 13"),
        ("我们用 Jenkins 构建", "构建从 Jenkins 换成了 Buildkite"),
        ("Wir nutzen Jenkins für die Builds", "Wir sind von Jenkins auf Buildkite umgestiegen"),
        ("Die Rechnungen verschickt Mailgun", "Die Rechnungen verschickt nicht mehr Mailgun"),
        ("Releases happen on Tuesdays", "Releases now happen on Thursdays"),
        ("Lena maintains the billing module", "Lena has left the company"),
        (
            "Let's use SQLite for the readings, not PostgreSQL: nobody there wants to look after a server",
            "We're moving from SQLite to PostgreSQL, because nine more apiaries want to join the hive",
        ),
        ("Never push to the main branch", "You may push to the main branch again"),
        ("Every PR needs a changelog entry", "PRs don't need a changelog entry any more"),
        (
            "The shop keeps its carts in Redis",
            "We moved the carts of the shop from Redis to Valkey; Redis is gone",
        ),
        ("We use Postgres 15 for billing", "We use Postgres 17 for billing"),
        ("We use Postgres 15 for billing", "We upgraded billing from Postgres 15 to Postgres 17"),
        ("The API runs on Node 18", "The API runs on Node 20"),
        ("账单使用 Postgres 15", "账单使用 Postgres 17"),
        ("Wir testen mit Jest", "Statt Jest nehmen wir jetzt Vitest"),
        ("The ferry is called Moewe", "Moewe got renamed to Kranich"),
        ("We use Postgres 15 for billing", "We upgraded Postgres from 15 to 17 for billing"),
    ],
)
def test_change_supersedes_the_earlier_statement(earlier: str, later: str) -> None:
    assert relation(earlier, later) is Relation.SUPERSEDES


def test_sharing_only_the_removed_word_supersedes_nothing() -> None:
    earlier = (
        "Whole harbour cleanup is one smart command that removes everything stale (shadow berths, harbour states, crane"
        " metadata) regardless of which strategy is active now, since another strategy may have been active before."
    )
    later = (
        "Looking up or creating a whole harbour ID (GetOrCreateWholeHarbourID) belongs in the `harbour` package, which"
        " owns harbour identity and lifecycle, not in `strategy` or `paths`."
    )
    assert relation(earlier, later, kind="decision") is not Relation.SUPERSEDES


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Releases happen on Tuesdays", "Releases happen on Thursdays"),
        ("The freeze begins on March 3", "The freeze begins on March 10"),
        ("Deploys happen on Tuesdays", "Deploys moved to Thursdays"),
        ("Python 3.11 is required by the importer", "The importer requires Python 3.13"),
        ("Meals are logged with Mixpanel", "Meals are logged with Plausible these days"),
        ("The wiki lives on the host attic-2", "The wiki now lives on the host cellar-1"),
        ("Use tabs for indentation", "Use two spaces for indentation"),
        ("My manager is Otto", "My manager is Sofia"),
        ("Die Standardsprache ist Deutsch", "Die Standardsprache ist Englisch"),
        ("Backups are stored off site", "Backups are not stored off site"),
        ("Always use npm", "Never use npm"),
        ("Scans are kept in /data/scans", "Scans were moved to /mnt/archive/scans"),
        ("Wir nutzen Postgres 15 für Rechnungen", "Wir nutzen Postgres 17 für Rechnungen"),
        ("We use Room 4 for planning", "We use Room 5 for planning"),
        (
            "Deploy staging with make stage",
            "We deploy staging with terraform now, no longer with make",
        ),
        ("Use US English in all messages and docs", "We use British English in all docs"),
        ("Use tabs in Go and C files", "We use two spaces in C files"),
    ],
)
def test_probable_change_raises_a_doubt(earlier: str, later: str) -> None:
    assert relation(earlier, later) is Relation.DOUBTS


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("European members pay 9 euro a month", "American members pay 12 dollars a month now"),
        ("Visitors park behind the barn", "When the barn is full, visitors park at the church now"),
        ("The gate is opened by hand", "To switch the gate from hand to motor, turn the red key"),
        ("The shop takes cash", "Our neighbour switched from cash to cards"),
        ("The mill runs on water", "The mill will move from water to electric power by autumn"),
        ("Released 3.1 on March 4", "Released 3.2 on April 9"),
        ("Uploads may be 10 MB", "The upload limit is a generous 25 MB"),
        ("Port 8080 serves the viewer.", "Port 8081 serves the viewer."),
        ("Run the api tests before pushing", "Run the web tests before pushing"),
        ("The Redis outage in May came from a full disk", "We no longer use Redis in the tests"),
        ("Lena reviews the client", "Nadia reviews the client"),
        ("We use Vite for the shop", "We also use Webpack for the shop"),
        ("We use Postgres 17 for billing", "We upgraded billing from Postgres 15 to Postgres 17"),
        ("We use Postgres 15 for billing", "We use Postgres 17 for search"),
        ("Read RFC 7231 for the gateway", "Read RFC 7232 for the gateway"),
        ("The parser reads the CLI flags", "We upgraded the parser from the CLI to fix a crash"),
        ("Use US English in all docs", "Use British English in the emails"),
        ("Use the API key for staging", "Use the SSH key for staging"),
    ],
)
def test_different_case_or_missing_claim_raises_no_doubt(earlier: str, later: str) -> None:
    assert relation(earlier, later) not in (Relation.SUPERSEDES, Relation.DOUBTS)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The staging gateway listens on port 8080", "The production gateway listens on port 443"),
        (
            "The tailor service stores its rows in MySQL",
            "The weaver service stores its rows in PostgreSQL",
        ),
        ("Nadia reviews the client", "Tomas reviews the compiler"),
        ("Nadia prefers long branches", "Tomas prefers short branches"),
        ("The jobs go over RabbitMQ", "The jobs could move from RabbitMQ to NATS"),
        ("The jobs go over RabbitMQ", "If the load grows, replace RabbitMQ with Kafka"),
        ("The jobs go over RabbitMQ", "Should we use NATS instead of RabbitMQ?"),
        ("The jobs go over RabbitMQ", "We discussed moving the jobs from RabbitMQ to NATS"),
        ("The jobs go over RabbitMQ", "Back in 2019 the jobs moved from cron to RabbitMQ"),
        ("Alerts go to Slack", "We also send alerts to PagerDuty now"),
        ("All rows are kept in PostgreSQL", "For unit tests use SQLite instead of PostgreSQL"),
        ("The services log through log4j", "Only the gateway switched from log4j to zap"),
        ("The login page uses Auth0", "The login page no longer crashes without an Auth0 profile"),
        ("The worker retries 5 times", "The worker sleeps 30 seconds"),
        ("The settings live in app.toml", "OK now let's look at the settings in the tests"),
        ("Rule 3: never do thing number 3.", "Rule 4: never do thing number 4."),
        ("Bridge 3 is made of stone.", "Bridge 4 is made of stone."),
        ("Customer 71 pays by card.", "Customer 72 pays by card."),
        ("Customer 71 pays by card.", "Customer 72 now pays by card."),
        ("Sprint 3 closes on a Friday.", "Sprint 4 closes on a Friday."),
        ("Chapter 2 covers the winches.", "Chapter 3 covers the winches."),
        (
            "Always check list 1: doors, bells and lamps.",
            "Always check list 2: ropes, bells and lamps.",
        ),
        ("The key for locker 12 hangs in the shed.", "The key for locker 13 hangs in the shed."),
        ("Pump no. 4 needs a new seal.", "Pump no. 5 needs a new seal."),
        ("Pump #12 leaks oil.", "Pump #13 leaks oil."),
        ("Truck B-17 parks in the north hall.", "Truck B-18 parks in the north hall."),
        ("Contract 2024-17 ends in May.", "Contract 2024-18 ends in May."),
        ("Kunde 12 zahlt in Euro.", "Kunde 13 zahlt in Euro."),
        ("Never deploy on server 3.", "Never deploy on server 4."),
        ("客户1001用欧元付款。", "客户1002用欧元付款。"),
        ("第3章讲锁。", "第4章讲锁。"),
        ("服务部署在阿里云", "图片服务单独迁移到腾讯云"),
    ],
)
def test_apparent_change_supersedes_nothing(earlier: str, later: str) -> None:
    assert relation(earlier, later) in (Relation.RELATED, Relation.UNRELATED)


def test_word_that_is_also_a_prefix_replaces_no_other_word() -> None:
    earlier = "Before a drawer is emptied, the sizes are compared and the clerk is asked"
    later = "The list only used the first drawer of a multi drawer chest; it now uses all drawers"
    assert relation(earlier, later, kind="decision", then="lesson") is not Relation.SUPERSEDES


def test_events_never_contradict() -> None:
    assert (
        relation("Released 2.3.0 on Monday", "Released 2.4.0 on Friday", kind="event")
        is not Relation.SUPERSEDES
    )


SAME = (
    ("Rows are kept in PostgreSQL", "The rows are kept in PostgreSQL."),
    ("Nadia leads the support rota", "The support rota is led by Nadia"),
    ("Never use em dashes", "Please do not use em dashes"),
)
NOT_THE_SAME = (
    ("Always use npm", "Never use npm"),
    ("Nadia trains Piet", "Piet trains Nadia"),
    ("The gate asks the hub", "The hub asks the gate"),
    ("The gate has 3 lamps", "The gate has 4 lamps"),
    ("The gate is opened by Nadia", "The gate is opened by Tomas"),
    ("Uploads are cleaned on Mondays", "Uploads are cleaned on Fridays"),
    ("Delete branches", "Delete branches only when they are merged"),
    ("Carts run on Python 3.11", "Carts no longer run on Python 3.11"),
)


def test_equal_words_are_the_same_without_vectors() -> None:
    assert (
        relation("The rows are kept in PostgreSQL", "the rows are kept in PostgreSQL.")
        is Relation.SAME
    )
    assert relation("The tool is written in C", "The tool is written in C++") is not Relation.SAME


@pytest.mark.parametrize(("one", "other"), SAME)
def test_similar_vectors_with_equal_details_are_the_same(one: str, other: str) -> None:
    assert judge(said(one), said(other, days=9), LIMITS.same, LIMITS).relation is Relation.SAME
    assert (
        judge(said(one), said(other, days=9), LIMITS.same - 0.01, LIMITS).relation
        is not Relation.SAME
    )


@pytest.mark.parametrize(("one", "other"), NOT_THE_SAME)
def test_different_numbers_names_or_negations_are_never_the_same(one: str, other: str) -> None:
    assert judge(said(one), said(other, days=9), 0.99, LIMITS).relation is not Relation.SAME


def test_common_word_supersedes_nothing() -> None:
    old, new = said("The importer talks to Redis"), said("We dropped Redis", days=9)
    common = Rarity(lambda words: (1_000, [900] * len(words)))
    rare = Rarity(lambda words: (1_000, [3] * len(words)))
    assert judge(old, new, None, LIMITS, rare).relation is Relation.SUPERSEDES
    assert judge(old, new, None, LIMITS, common).relation is not Relation.SUPERSEDES


def test_different_day_for_the_same_thing_is_a_change() -> None:
    old, new = said("Deploys happen on Tuesdays"), said("Deploys moved to Thursdays", days=9)
    known = Rarity(lambda words: (1_000, [3] * len(words)))
    assert judge(old, new, None, LIMITS, known).relation is Relation.SUPERSEDES
    assert judge(old, new, None, LIMITS).relation is Relation.DOUBTS


def test_reason_quotes_the_change() -> None:
    verdict = judge(
        said("The gate listens on port 8080"),
        said("The gate listens on port 8443", days=1),
        None,
        LIMITS,
    )
    assert verdict.reason == "8080 → 8443"


@pytest.mark.parametrize(
    ("later", "kind", "done"),
    [
        ("Rotated the staging keys, all done", "event", True),
        ("The staging keys are rotated, that is done", "fact", True),
        ("Rotating the staging keys is not done yet", "fact", False),
        ("The billing keys are done", "event", False),
        ("Rotate the staging keys until it is done", "todo", False),
    ],
)
def test_todo_closes_when_reported_done(later: str, kind: str, done: bool) -> None:
    assert (
        bool(closes(said("Rotate the staging keys", kind="todo"), said(later, kind=kind, days=2)))
        is done
    )
