"""Every request is answered as the OpenAPI document describes, and never with an internal error.

Requests are generated from the document (schemathesis), a few per route: 170 routes in half a minute.
``NACRE_EXAMPLES=100`` generates more. Its past findings have their own tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import hypothesis
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
"""The code (502) of operations that need a language model, which is missing here."""

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
    PLAIN, lambda item: strategies.lists(item) | strategies.dictionaries(WORDS, item)
)


def test_documented_requests_are_answered_as_documented(learned: Any, site: Serve) -> None:
    here = site()
    schema = schemathesis.openapi.from_dict(here.get("/api/openapi.json", **here.token).json())
    for item in schema.get_all_operations():
        try_out(item.ok(), here)


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


def is_problem(status: int, headers: Any, description: Any) -> None:
    assert status != 500
    content_type = headers["content-type"]
    assert "application/problem+json" in (content_type, *content_type)
    assert description["status"] == status
    assert all(description[name] for name in ("type", "title", "detail", "code", "hint"))
    assert status != 502 or description["code"] == WITHOUT_MODEL


def is_answered(answer: httpx.Response) -> None:
    hypothesis.note(answer.text[:500])
    if answer.status_code >= 400:
        is_problem(answer.status_code, answer.headers, answer.json())
    else:
        assert answer.headers["content-type"] == "application/json"


def test_invalid_request_bodies_are_refused(site: Serve) -> None:
    here = site()
    for operation in offered_by(Face.HTTP):
        for body in (b"", b"[]", b"\xff", b'{"a": 1}', b"[" * 100_000):
            headers = {**here.token, "Content-Type": "application/json"}
            answer = here.client.post(
                f"{here.base}/api/v1/{operation}", content=body, headers=headers
            )
            if answer.status_code >= 400:
                is_problem(answer.status_code, answer.headers, answer.json())
