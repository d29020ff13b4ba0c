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


def test_documented_requests_are_answered_as_documented(learned: Any, site: Serve) -> None:
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
