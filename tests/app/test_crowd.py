"""Changes stated in plain words supersede only the affected memories of a large project."""

from __future__ import annotations

import pytest

from tests.app.conftest import World

PARTS = ("API", "worker", "gateway")
CASES = ("staging", "production")

SIBLINGS = [
    f"The {case} {part} {state}"
    for case in CASES
    for part in PARTS
    for state in (
        f"runs on port {8000 + 100 * CASES.index(case) + PARTS.index(part)}",
        f"keeps its logs for {10 + CASES.index(case) + PARTS.index(part)} days",
        f"has {2 + PARTS.index(part)} replicas",
    )
]
CHANGES = [
    ("The API listens on port 8080", "The API now listens on port 9090"),
    ("The worker polls every 30 seconds", "The worker now polls every 10 seconds"),
    ("The gateway times out after 60 seconds", "The gateway now times out after 20 seconds"),
    ("The staging server is called heron", "The staging server is now called egret"),
    ("The production server is called otter", "The production server is now called beaver"),
    ("Deploys happen on Mondays", "Deploys now happen on Thursdays"),
    ("Sessions are stored in Redis", "Sessions are stored in Valkey instead of Redis"),
    ("The importer parses feeds with lxml", "The importer uses selectolax instead of lxml"),
    ("Uploads are limited to 10 MB", "Uploads are now limited to 25 MB"),
    ("Invoices are sent by Postmark", "Invoices are sent by Mailgun now, no longer by Postmark"),
    ("Errors are reported to Sentry", "We moved error reports from Sentry to GlitchTip"),
    (
        "The frontend is built with webpack",
        "The frontend is now built with Vite instead of webpack",
    ),
    ("Nadia owns the billing module", "Tomas took over the billing module from Nadia"),
    ("Passwords have at least 8 characters", "Passwords now have at least 12 characters"),
    ("The default branch is master", "The default branch is main now"),
    (
        "The search index is rebuilt every night at 2:00",
        "The search index is now rebuilt every night at 4:00",
    ),
    ("Backups are kept for 30 days", "Backups are now kept for 90 days"),
    ("The docs are hosted on Netlify", "The docs moved from Netlify to Cloudflare"),
    ("The linter is flake8", "The linter is ruff now"),
    (
        "Reports are exported as CSV",
        "Reports are no longer exported as CSV, they are Parquet files",
    ),
]
UNRELATED = [
    f"The {thing} {state}"
    for thing, state in (
        ("admin page", "lists the last hundred orders"),
        ("changelog", "is written by hand"),
        ("mobile app", "caches the map tiles"),
        ("billing job", "runs after midnight"),
        ("calendar export", "speaks ics"),
        ("map", "shows the bus stops"),
        ("style guide", "asks for short lines"),
        ("metrics page", "is public"),
        ("test data", "comes from a script"),
        ("licence", "is Apache 2.0"),
        ("support rota", "changes on Mondays"),
        ("tax table", "is read from a file"),
        ("password reset mail", "is plain text"),
        ("signup form", "asks for a phone number"),
        ("webhook sender", "retries five times"),
        ("image resizer", "writes WebP"),
        ("audit log", "cannot be changed"),
        ("team calendar", "is in Nextcloud"),
        ("onboarding page", "links the wiki"),
        ("release notes", "name their authors"),
        ("data export", "takes a minute"),
        ("price list", "is in euro"),
    )
]


@pytest.mark.embedding
@pytest.mark.parametrize("with_vectors", [False, True])
def test_stated_changes_supersede_only_the_affected_memories(
    world: World, with_vectors: bool
) -> None:
    from nacre.llm.local_model import load_minilm

    if with_vectors:
        world.embedder = load_minilm()  # type: ignore[assignment]
    else:
        world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    with world.open() as memory:
        ids = {}
        for text in [*SIBLINGS, *UNRELATED, *(old for old, _ in CHANGES)]:
            ids[text] = memory.store(text, project="crowd").memory_id
            world.clock.pass_days(0.05)
        memory.ingest()
        for text in ids:
            assert memory.get(ids[text]).superseded_by is None, text
        outcomes, doubted = [], []
        for old, new in CHANGES:
            world.clock.pass_days(1)
            outcome = memory.store(new, project="crowd")
            outcomes.append(memory.get(ids[old]).superseded_by == outcome.memory_id)
            doubted += [
                link.to for link in memory.get(outcome.memory_id).links if link.rel == "contradicts"
            ]
        wrongly_ended = [
            text for text in (*SIBLINGS, *UNRELATED) if memory.get(ids[text]).superseded_by
        ]
        assert wrongly_ended == []
        assert len(ids) == 60
        results = zip(CHANGES, outcomes, strict=True)
        missed = [old for (old, _), is_ended in results if not is_ended and ids[old] not in doubted]
        assert missed == []
        assert sum(outcomes) >= 15
        assert set(doubted) <= {ids[old] for old, _ in CHANGES}
