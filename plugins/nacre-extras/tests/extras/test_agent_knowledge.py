"""agent-knowledge's clients find its routes, response formats and limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx2 as httpx
import pytest

from nacre.serve.catalogue import CATALOGUE
from nacre_extras.agent_knowledge import consolidate
from tests.web_server.conftest import Site

Serve = Callable[..., Site]
SECRET = "ghp_" + "Zq7Lr2Vx9Kd4Tn6Hb8Wm3Pc5Yf1Gs0JaRe4u"
QUEUE = """---
title: Queue choice
tags: [queue, infra]
---
# Queue choice

We use RabbitMQ for the queue, as Kafka is too heavy for three services.
"""


@pytest.fixture
def knowledge(learned: Any, site: Serve) -> Callable[..., Any]:
    """``knowledge("GET", "/api/knowledge")`` sends a request of such a client with the token."""
    here = site()

    def ask(method: str, path: str, body: Any = None) -> Any:
        return here.client.request(method, here.base + path, json=body, headers=here.token)

    return ask


def write(knowledge: Callable[..., Any], content: str = QUEUE, **other: str) -> Any:
    return knowledge(
        "POST",
        "/api/knowledge",
        {"category": "decisions", "filename": "queue.md", "content": content, **other},
    )


def test_entry_is_written_through_the_pipeline_and_read_by_path(
    knowledge: Callable[..., Any],
) -> None:
    answer = write(knowledge, QUEUE + f"Its token is {SECRET}.\n")
    assert answer.status_code == 201
    body = answer.json()
    assert body["path"].startswith("decisions/queue-choice-")
    assert body["action"] == "stored"
    assert (body["proposed"], body["duplicateWarnings"]) == (True, [])
    assert body["git"]["pushed"] is False
    assert body["autoLinks"] == []
    entry = knowledge("GET", f"/api/knowledge/{body['path'].replace('/', '%2F')}").json()
    assert entry["entry"]["title"] == "Queue choice"
    assert entry["entry"]["tags"] == ["decisions", "infra", "queue"]
    assert entry["entry"]["content"].startswith("We use RabbitMQ")
    assert SECRET not in str(entry)
    assert entry["maturity"] == "candidate"
    assert entry["content"].startswith("---\ntitle: Queue choice\n")
    again = write(knowledge, QUEUE + f"Its token is {SECRET}.\n").json()
    assert (again["action"], again["path"]) == ("known", body["path"])
    assert again["duplicateWarnings"][0]["path"] == body["path"]
    assert again["duplicateWarnings"][0]["similarity"] > 0.5


def test_entries_are_listed_by_category_and_tag_and_found(knowledge: Callable[..., Any]) -> None:
    path = write(knowledge).json()["path"]
    write(knowledge, "Marta is our product manager.", category="people", filename="marta")
    entries = knowledge("GET", "/api/knowledge?category=people").json()
    assert "Marta" in [item["title"] for item in entries]
    assert {item["category"] for item in entries} == {"people"}
    assert [item["path"] for item in knowledge("GET", "/api/knowledge?tag=queue").json()] == [path]
    results = knowledge(
        "GET", "/api/knowledge/search?q=RabbitMQ&category=decisions&max_results=3"
    ).json()
    assert results[0]["entry"]["path"] == path
    assert "RabbitMQ" in results[0]["excerpt"]
    assert 0 < results[0]["score"] <= 1
    assert knowledge("GET", "/api/knowledge/search?q=RabbitMQ&category=people").json() == []


def test_sessions_are_listed_searched_and_read(knowledge: Callable[..., Any]) -> None:
    results = knowledge("GET", "/api/sessions?limit=1").json()
    assert results["total"] == len(knowledge("GET", "/api/sessions").json()) == 1
    session = results["sessions"][0]["sessionId"]
    answer = knowledge("GET", "/api/sessions/search?q=ledger&role=user").json()
    assert answer
    assert {(item["source"], item["id"], item["role"]) for item in answer} == {
        ("session", session, "user")
    }
    assert knowledge("GET", "/api/sessions/search?q=postgre.*&ranked=false").json()
    assert isinstance(
        knowledge("GET", "/api/sessions/recall?scope=decisions&q=postgres").json(), list
    )
    whole = knowledge("GET", f"/api/sessions/{session}?include_tools=true").json()
    talk = knowledge("GET", f"/api/sessions/{session}").json()
    assert {message["role"] for message in talk["messages"]} <= {"user", "assistant"}
    assert len(whole["messages"]) >= len(talk["messages"])
    last = knowledge("GET", f"/api/sessions/{session.partition(':')[2]}?tail=1").json()
    assert last["messages"] == talk["messages"][-1:]
    summary = knowledge("GET", f"/api/sessions/{session}/summary").json()
    assert summary["topicCount"] == len(summary["topics"]) > 0


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/health", {"status", "version", "uptime", "knowledge_entries"}),
        (
            "/api/index-status",
            {"totalEntries", "knowledgeEntries", "uniqueSessions", "dbSizeMB", "provider"},
        ),
        ("/api/knowledge/consolidate", {"clusters"}),
        ("/api/knowledge/brief", {"total_entries", "total_edges", "core_concepts", "text"}),
        ("/api/knowledge/graph-data", {"nodes", "edges"}),
    ],
)
def test_status_routes_return_expected_fields(
    knowledge: Callable[..., Any], path: str, fields: set[str]
) -> None:
    assert fields <= knowledge("GET", path).json().keys()


def test_links_and_link_reports_are_listed_by_path(knowledge: Callable[..., Any]) -> None:
    first, second = (
        write(knowledge).json(),
        write(knowledge, "Ports open at dawn", filename="ports").json(),
    )
    link = {"source": first["id"], "relation": "depends_on", "target": second["id"]}
    assert knowledge("POST", "/api/v1/graph-link", {"links": [link]}).status_code == 200
    edge = knowledge("GET", f"/api/knowledge/{first['path']}/links").json()[0]
    assert (edge["source"], edge["target"], edge["rel_type"]) == (
        first["path"],
        second["path"],
        "depends_on",
    )
    assert knowledge("GET", "/api/knowledge/god-nodes?top_n=1").json()[0]["degree"] == 1
    assert knowledge("GET", "/api/knowledge/gaps").json()
    picture = knowledge("GET", "/api/knowledge/graph-data").json()
    assert (picture["edges"][0]["from"], picture["edges"][0]["to"]) == (
        first["path"],
        second["path"],
    )


def test_consolidation_groups_similar_entries(knowledge: Callable[..., Any]) -> None:
    path = write(knowledge).json()["path"]
    answer = knowledge("POST", "/api/v1/recall", {"text": "RabbitMQ for the queue"})
    hits = CATALOGUE["recall"].read(answer.content).hits

    class Request:
        def text(self, _: str) -> str:
            return ""

        async def ask(self, _: str, **__: Any) -> Any:
            return SimpleNamespace(groups=[[hit.memory for hit in hits]], total=1)

    (group,) = asyncio.run(consolidate(Request()))["clusters"]  # type: ignore[arg-type]
    assert path in [entry["path"] for entry in group["entries"]]


def test_invalid_write_is_refused_in_the_clients_format(knowledge: Callable[..., Any]) -> None:
    for fields in (
        {"category": "secrets"},
        {"filename": "../up"},
        {"content": " "},
        {"content": "---\ntitle: [\n"},
    ):
        response = write(knowledge, **fields)
        assert response.status_code == 422, fields
        assert response.json()["error"]
        assert response.json()["hint"]
    missing = knowledge("GET", "/api/knowledge/decisions%2Fnothing-of-that.md")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert missing.json()["error"]
    assert knowledge("GET", "/api/sessions/nothing/summary").status_code == 404


def test_posted_event_reaches_event_stream_subscribers(learned: Any, site: Serve) -> None:
    here = site()
    with here.client.stream("GET", f"{here.base}/api/v1/events", headers=here.token) as events:
        lines = events.iter_lines()
        assert any('"kind":"hello"' in line for line in lines)
        body = {"type": "task", "message": f"Built\nwith {SECRET}"}
        response = httpx.post(
            f"{here.base}/api/events", json=body, headers=here.token, trust_env=False, verify=False
        )
        assert response.status_code == 202
        noted = next(line for line in lines if '"kind":"notice"' in line)
        text = json.loads(noted.partition("data: ")[2])["text"]
    assert text == response.json()["text"]
    assert text.startswith("Built with")
    assert SECRET not in text
    assert (
        here.client.post(f"{here.base}/api/events", json={}, headers=here.token).status_code == 422
    )


def test_health_without_token_shows_only_basic_status(site: Serve) -> None:
    here = site()
    assert here.get("/health").json().keys() == {"status", "version", "uptime"}
    for path in (
        "/api/knowledge",
        "/api/sessions",
        "/api/index-status",
        "/clawxmemory/api/overview",
    ):
        assert here.get(path).status_code == 401


def test_clients_without_token_are_served_under_no_token(site: Serve) -> None:
    here = site("--http", "0", "--no-token")
    body = {"category": "notes", "filename": "pier", "content": "Gulls sleep on the pier"}
    assert here.client.post(f"{here.base}/api/knowledge", json=body).json()["action"] == "stored"
