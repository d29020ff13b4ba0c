"""What a later statement means for an earlier one, told without a model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nacre.dedup.judge import Relation, closes, judge
from nacre.embed.calibration import calibration_of
from nacre.values.memory import Kind, Memory

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
LIMITS = calibration_of(None)


def said(text: str, *, kind: str = "fact", subject: str | None = None, days: int = 0) -> Memory:
    when = MONDAY + timedelta(days=days)
    return Memory(
        id=f"{days}", kind=Kind(kind), subject=subject or text[:60], content=text, created=when, updated=when,
        project="acme",
    )  # fmt: skip


def relation(earlier: str, later: str, *, kind: str = "fact", then: str | None = None) -> Relation:
    return judge(said(earlier, kind=kind), said(later, kind=then or kind, days=9), None, LIMITS).relation


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The ledger service stores its rows in MongoDB", "We moved the ledger from MongoDB to PostgreSQL in March"),
        ("Releases are built by Jenkins on the tower", "Migrated the release builds off Jenkins"),
        ("Thumbnails are cached in Memcached", "Replaced Memcached with Valkey for the thumbnails"),
        ("The importer parses feeds with lxml", "The importer uses selectolax instead of lxml"),
        ("Invoices are mailed through Mailgun", "Send invoices via Postmark, not Mailgun"),
        ("The search box needs JavaScript", "The search box no longer needs JavaScript"),
        ("The mobile client supports Android 8", "We dropped Android 8 from the mobile client"),
        ("The metrics socket listens on port 9100", "The metrics socket listens on port 9200"),
        ("The importer needs Python 3.10", "The importer needs Python 3.12"),
        ("The freeze begins on March 3", "The freeze begins on March 10"),
        ("Meals are logged with Mixpanel", "Meals are logged with Plausible these days"),
        ("The wiki lives on the host attic-2", "The wiki now lives on the host cellar-1"),
        ("Uploads may be 10 MB", "The upload limit is 25 MB"),
        ("The planner will be written in Svelte", "Scrap that, the planner gets written in SolidJS"),
        ("The outage came from the connection pool", "I was wrong about the connection pool, a full disk caused it"),
        ("账单服务的数据保存在 MySQL", "账单服务的数据已经从 MySQL 迁移到 PostgreSQL"),
        ("前端支持 Safari 13", "前端不再支持 Safari 13"),
    ],
)  # fmt: skip
def test_a_change_supersedes_what_was_true_before(earlier: str, later: str) -> None:
    assert relation(earlier, later) is Relation.SUPERSEDES


def test_what_only_shares_the_word_that_has_gone_ends_nothing() -> None:
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
        ("Uploads may be 10 MB", "The upload limit is a generous 25 MB"),
        ("Nadia owns the billing module", "The billing module belongs to Tomas"),
        ("Notices go to Slack", "Notices go to Zulip"),
        ("The ledger keeps its rows in MongoDB", "We moved the ledger and its archive from MongoDB to PostgreSQL"),
    ],
)
def test_what_is_probably_a_change_is_a_doubt(earlier: str, later: str) -> None:
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
    ],
)
def test_another_case_or_no_claim_is_not_even_a_doubt(earlier: str, later: str) -> None:
    assert relation(earlier, later) not in (Relation.SUPERSEDES, Relation.DOUBTS)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The staging gateway listens on port 8080", "The production gateway listens on port 443"),
        ("The tailor service stores its rows in MySQL", "The weaver service stores its rows in PostgreSQL"),
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
        ("服务部署在阿里云", "图片服务单独迁移到腾讯云"),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_change_supersedes_nothing(earlier: str, later: str) -> None:
    assert relation(earlier, later) in (Relation.RELATED, Relation.UNRELATED)


def test_a_word_that_is_also_a_prefix_stands_for_no_other_word() -> None:
    earlier = "Before a drawer is emptied, the sizes are compared and the clerk is asked"
    later = "The list only used the first drawer of a multi drawer chest; it now uses all drawers"
    assert relation(earlier, later, kind="decision", then="lesson") is not Relation.SUPERSEDES


def test_events_are_all_true() -> None:
    assert relation("Released 2.3.0 on Monday", "Released 2.4.0 on Friday", kind="event") is not Relation.SUPERSEDES


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        ("The rows are kept in PostgreSQL", "Rows are kept in PostgreSQL.", Relation.SAME),
        ("Nadia leads the support rota", "The support rota is led by Nadia", Relation.SAME),
        ("Backups are stored off site", "Backups are stored off site, encrypted", Relation.FULLER),
        ("Backups are stored off site", "Backups are not stored off site", Relation.SUPERSEDES),
        ("The api allows 200 requests per minute", "The api allows 200 open connections", Relation.UNRELATED),
        ("Mock the clock in unit tests", "Mock the clock in integration tests", Relation.UNRELATED),
        ("Nadia trains Piet", "Piet trains Nadia", Relation.RELATED),
        (
            "First the cellar is aired, then it is swept",
            "First it is swept, then the cellar is aired",
            Relation.RELATED,
        ),
    ],
)
def test_only_what_says_nothing_else_is_the_same(earlier: str, later: str, expected: Relation) -> None:
    found = relation(earlier, later)
    assert found is expected or (expected is Relation.UNRELATED and found is Relation.RELATED)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Always use pnpm, never npm", "Use pnpm, never npm"),
        ("Never use em dashes", "Don't use em dashes"),
        ("Always use pnpm in the shop", "In the shop, pnpm is to be used always."),
        ("Never use em dashes", "Please do not use em dashes"),
        ("Keep all answers short", "Keep answers short"),
        ("From now on answer in German", "Please answer in German from now on"),
        ("I prefer tabs", "I always prefer tabs"),
        ("Update the changelog with every change", "Update the changelog with each change"),
        ("Don't add comments to the code", "Do not add any comments to code"),
        ("Always run the tests before committing", "Run the tests before you commit"),
        ("以后用中文回答", "请用中文回答"),
        ("总是先运行测试", "先运行测试"),
        ("别加注释", "不要加注释"),
        ("不要加任何注释", "不要加注释"),
    ],
)
def test_an_order_that_is_given_again_in_other_small_words_is_the_same(one: str, other: str) -> None:
    for earlier, later in ((one, other), (other, one)):
        assert relation(earlier, later, kind="preference") is Relation.SAME
        assert relation(earlier, later) is Relation.SAME


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Always use npm", "Never use npm"),
        ("Only use tabs", "Use tabs"),
        ("Always ask before you commit", "Ask after you commit"),
        ("Delete all branches", "Delete branches"),
        ("Do not delete all branches", "Do not delete branches"),
        ("Don't always run the tests", "Don't run the tests"),
        ("I sometimes prefer tabs", "I prefer tabs"),
        ("Don't delete any branch", "Don't delete the branch"),
        ("Don't trust just any source", "Don't trust sources"),
        ("Carts are always washed", "Carts are washed"),
        ("请求失败", "失败"),
        ("不要删除任何分支", "不要删除这个分支"),
        ("不要用任何框架", "可以用任何框架"),
    ],
)
def test_small_words_that_change_what_an_order_asks_for_tell_two_apart(one: str, other: str) -> None:
    for earlier, later in ((one, other), (other, one)):
        assert relation(earlier, later, kind="preference") not in (Relation.SAME, Relation.FULLER)


def test_a_reason_quotes_what_changed() -> None:
    verdict = judge(said("The gate listens on port 8080"), said("The gate listens on port 8443", days=1), None, LIMITS)
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
def test_a_todo_closes_when_it_is_said_to_be_done(later: str, kind: str, done: bool) -> None:
    assert closes(said("Rotate the staging keys", kind="todo"), said(later, kind=kind, days=2)) is done
