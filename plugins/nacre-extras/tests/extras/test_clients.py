"""Requests of other systems' clients never cause an internal error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from tests.web_server.conftest import Site
from tests.web_server.test_properties import BODIES, PROFILE, WORDS, is_answered

Serve = Callable[..., Site]


KNOWLEDGE = [
    "/api/knowledge",
    "/api/knowledge/search",
    "/api/knowledge/gaps",
    "/api/sessions",
    "/api/sessions/search",
]
CLAWXMEMORY = ["memory/list", "memory/get", "projects", "tmp", "cases", "snapshot", "overview"]


@pytest.mark.parametrize(
    "path", [*KNOWLEDGE, *(f"/clawxmemory/api/{item}" for item in CLAWXMEMORY)]
)
def test_queries_of_foreign_clients_are_answered(learned: Any, site: Serve, path: str) -> None:
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
def test_bodies_of_foreign_clients_are_answered(learned: Any, site: Serve, path: str) -> None:
    here = site()

    @PROFILE
    @hypothesis.given(body=WRITES[path])
    def check(body: Any) -> None:
        is_answered(here.client.post(here.base + path, json=body, headers=here.token))

    check()


@pytest.mark.parametrize("path", WRITES)
def test_body_with_invalid_unicode_is_refused(site: Serve, path: str) -> None:
    here = site()
    headers = {**here.token, "Content-Type": "application/json"}
    answer = here.client.post(here.base + path, content=b'{"content": "\xff"}', headers=headers)
    assert answer.status_code in (400, 422)
