"""Whatever a program sends, it is answered as the document says, and never with a fault.

Requests are made from the document itself (schemathesis), a few of each route: 170 routes in half a minute. With
``NACRE_EXAMPLES=100`` it looks longer; what it found that way is in the tests of what was mended.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import hypothesis
import pytest
import schemathesis
from hypothesis import strategies
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from nacre.serve.catalogue import offered_by
from nacre.values.memory import Face
from tests.web_server.conftest import Site

Serve = Callable[..., Site]
EXAMPLES = int(os.environ.get("NACRE_EXAMPLES", "3"))
CHECKS = [content_type_conformance, response_schema_conformance, status_code_conformance]
WITHOUT_MODEL = "model_refused"
"""What asks a language model is refused with it here: 502."""

PROFILE = hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)
WORDS = strategies.text(strategies.characters(exclude_categories=["Cs"]), max_size=30)
PLAIN = strategies.none() | strategies.booleans() | strategies.integers() | WORDS
BODIES = strategies.recursive(
    PLAIN, lambda one: strategies.lists(one) | strategies.dictionaries(WORDS, one)
)


def test_requests_of_the_document_are_answered_as_it_says(learned: Any, site: Serve) -> None:
    here = site()
    schema = schemathesis.openapi.from_dict(here.get("/api/openapi.json", **here.token).json())
    for found in schema.get_all_operations():
        try_out(found.ok(), here)


def try_out(route: Any, here: Site) -> None:
    @PROFILE
    @hypothesis.given(case=route.as_strategy())
    def check(case: Any) -> None:
        answer = case.call(base_url=here.base, headers=here.token)
        hypothesis.note(f"{route.label}: {answer.status_code} {answer.text[:500]}")
        if answer.status_code >= 400:
            is_problem(answer.status_code, answer.headers, answer.json())
        case.validate_response(answer, checks=CHECKS)

    check()


def is_problem(status: int, headers: Any, told: Any) -> None:
    assert status != 500
    found = headers["content-type"]
    assert "application/problem+json" in (found, *found)
    assert told["status"] == status
    assert all(told[name] for name in ("type", "title", "detail", "code", "hint"))
    assert status != 502 or told["code"] == WITHOUT_MODEL


KNOWLEDGE = [
    "/api/knowledge",
    "/api/knowledge/search",
    "/api/knowledge/gaps",
    "/api/sessions",
    "/api/sessions/search",
]
CLAWXMEMORY = ["memory/list", "memory/get", "projects", "tmp", "cases", "snapshot", "overview"]


@pytest.mark.parametrize("path", [*KNOWLEDGE, *(f"/clawxmemory/api/{one}" for one in CLAWXMEMORY)])
def test_queries_of_other_clients_are_answered(learned: Any, site: Serve, path: str) -> None:
    here = site()
    names = strategies.sampled_from(
        ["q", "category", "tag", "limit", "offset", "project", "role", "ranked", "ids"]
    )

    @PROFILE
    @hypothesis.given(query=strategies.dictionaries(names, WORDS, max_size=4))
    def check(query: dict[str, str]) -> None:
        is_answered(here.client.get(here.base + path, params=query, headers=here.token))

    check()


ACTIONS = "edit_project_meta edit_entry delete_entries deprecate_entries restore_entries archive_tmp".split()
FIELDS = strategies.dictionaries(
    strategies.sampled_from(["ids", "id", "name", "fields", "projectId"]), BODIES
)
ENTRY = {
    "category": strategies.sampled_from(["decisions", "x"]),
    "filename": WORDS,
    "content": WORDS,
}
WRITES = {
    "/api/knowledge": strategies.fixed_dictionaries(ENTRY) | BODIES,
    "/clawxmemory/api/memory/actions": strategies.builds(
        lambda action, more: {**more, "action": action}, strategies.sampled_from(ACTIONS), FIELDS
    ),
    "/clawxmemory/api/settings": BODIES,
    "/clawxmemory/api/import": BODIES,
}


@pytest.mark.parametrize("path", WRITES)
def test_bodies_of_other_clients_are_answered(learned: Any, site: Serve, path: str) -> None:
    here = site()

    @PROFILE
    @hypothesis.given(body=WRITES[path])
    def check(body: Any) -> None:
        is_answered(here.client.post(here.base + path, json=body, headers=here.token))

    check()


def is_answered(answer: httpx.Response) -> None:
    hypothesis.note(answer.text[:500])
    if answer.status_code >= 400:
        is_problem(answer.status_code, answer.headers, answer.json())
    else:
        assert answer.headers["content-type"] == "application/json"


def test_bytes_that_are_no_request_are_refused(site: Serve) -> None:
    here = site()
    for operation in offered_by(Face.HTTP):
        for body in (b"", b"[]", b"\xff", b'{"a": 1}', b"[" * 100_000):
            headers = {**here.token, "Content-Type": "application/json"}
            answer = here.client.post(
                f"{here.base}/api/v1/{operation}", content=body, headers=headers
            )
            if answer.status_code >= 400:
                is_problem(answer.status_code, answer.headers, answer.json())
