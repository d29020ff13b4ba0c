"""The OpenAPI document describes every operation with its parameters and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from nacre.base.request import Request
from nacre.operations import Operation
from nacre.serve.catalogue import CATALOGUE, offered_by
from nacre.serve.rest import PREFIX, resources
from nacre.values.memory import Face
from tests.web_server.conftest import Site

Serve = Callable[..., Site]
OFFERED = offered_by(Face.HTTP)


@pytest.fixture
def document(site: Serve) -> dict[str, Any]:
    here = site()
    answer = here.get("/api/openapi.json", **here.token)
    assert answer.headers["content-type"] == "application/json"
    body: dict[str, Any] = answer.json()
    return body


def test_document_describes_every_operation_and_every_resource(
    document: dict[str, Any],
) -> None:
    assert document["openapi"] == "3.1.0"
    for name, operation in OFFERED.items():
        description = document["paths"][f"{PREFIX}/{name}"]["post"]
        assert description["operationId"] == name
        assert description["summary"]
        assert ("requestBody" in description) == (operation.request is not Request)
    for resource in resources():
        assert "get" in document["paths"][PREFIX + resource.path.replace(":path", "")]
    ids = [
        description["operationId"]
        for methods in document["paths"].values()
        for description in methods.values()
    ]
    assert len(ids) == len(set(ids))


def test_openapi_references_resolve_and_schemas_are_valid(document: dict[str, Any]) -> None:
    for place in references(document):
        node: Any = document
        for step in place.removeprefix("#/").split("/"):
            node = node[step]
        assert node
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(item) for item in value.values()))
    return set().union(*(references(item) for item in value)) if isinstance(value, list) else set()


def test_owner_only_operations_are_marked(document: dict[str, Any]) -> None:
    for name, operation in OFFERED.items():
        description = document["paths"][f"{PREFIX}/{name}"]["post"]
        assert (description.get("security") == [{"cookie": []}]) == (operation.owners is True)


def test_resources_map_to_http_operations_that_only_read() -> None:
    for resource in resources():
        operation: Operation = CATALOGUE[resource.operation]
        assert resource.operation in OFFERED
        assert not operation.writes
