"""The methods of the Python API have signatures that match the catalogue."""

from __future__ import annotations

import dataclasses
from inspect import Parameter, signature
from typing import Any

import msgspec
import pytest

from nacre.api import Changes, MemoryHome
from nacre.serve.catalogue import CATALOGUE

OPERATIONS = {
    "ingest": "ingest",
    "store": "store",
    "recall": "recall",
    "deep_recall": "deep-recall",
    "context": "context",
    "handoff": "handoff",
    "flush": "flush",
    "search_sessions": "search-sessions",
    "get": "get",
    "feedback": "feedback",
    "judge": "feedback-judge",
    "reviews": "review",
    "keep": "review-keep",
    "edit": "edit",
    "history": "history",
    "retire": "retire",
    "unretire": "unretire",
    "plan_forgetting": "forget-plan",
    "log": "log",
    "undo": "undo",
    "list": "list",
}
"""Methods and their operations."""

NO_OPERATION = {
    "call": "any operation by its name",
    "close": "of the open home itself",
    "context_told": "takes a whole context: context-given takes its state",
    "forget": "takes a plan that was looked at: the operation plans and forgets at once",
    "path": "of the open home itself",
}
OWN = {
    ("ingest", "on_progress"),
    ("context", "moment"),
    ("handoff", "folder"),
    ("deep_recall", "folder"),
    ("context", "lexical"),
    ("edit", "changes"),
}
"""Parameters with a different meaning in Python: callbacks, this process's folder, derived defaults."""

BY_CALL = {
    "ingest": "discover force from_archive older puts_off reads remember_paths vector_seconds",
    "extract": "text",
    "store": "author folder source speaker trigger_times triggers trust",
    "recall": "confident co_recall diversify fuzzy is_prompt mmr_lambda prefer_kinds threshold topic word_share",
    "deep_recall": "here",
    "context": "alone signals",
    "search_sessions": (
        "aspect boost budget_tokens co_recall confident diversify fuzzy ignore_time is_prompt mmr_lambda offset "
        "prefer_kinds radius_days role session threshold topic turns update word_share"
    ),
    "list": "words",
    "reviews": "limit offset only project",
    "keep": "anyway expected",
    "log": "action offset",
    "retire": "like",
}
"""Fields of a request that a method does not offer and ``memory.call`` accepts."""


def test_every_method_is_an_operation_or_listed_exception() -> None:
    public = {name for name in vars(MemoryHome) if not name.startswith("_")}
    assert public == OPERATIONS.keys() | NO_OPERATION.keys()


@pytest.mark.parametrize(("method", "operation"), OPERATIONS.items())
def test_method_parameters_match_their_request(method: str, operation: str) -> None:
    fields = defaults(CATALOGUE[operation].request)
    parameters = [
        parameter
        for parameter in signature(getattr(MemoryHome, method)).parameters.values()
        if parameter.name != "self"
    ]
    for item in parameters:
        if (method, item.name) in OWN:
            continue
        assert item.name in fields, item.name
        if item.kind is not Parameter.VAR_POSITIONAL and item.default is not None:
            assert item.default == fields[item.name], item.name


@pytest.mark.parametrize(("method", "operation"), OPERATIONS.items())
def test_methods_offer_all_fields_of_their_request(method: str, operation: str) -> None:
    offered = signature(getattr(MemoryHome, method)).parameters.keys()
    if method != "edit":  # the test below checks its fields
        assert set(defaults(CATALOGUE[operation].request)) - offered == set(
            BY_CALL.get(method, "").split()
        )


def test_edit_parameters_match_the_edit_request() -> None:
    assert {"reference", "expected", *Changes.__annotations__} == set(
        defaults(CATALOGUE["edit"].request)
    )


def defaults(request: Any) -> dict[str, Any]:
    """Return the fields of a request with their defaults, ``Parameter.empty`` for required fields."""
    if not dataclasses.is_dataclass(request):
        return {
            field.name: Parameter.empty if field.required else field.default
            for field in msgspec.structs.fields(request)
        }
    absent = dataclasses.MISSING
    return {
        field.name: Parameter.empty
        if field.default is absent and field.default_factory is absent
        else field.default
        for field in dataclasses.fields(request)
    }
