"""The Python API has real signatures for people's editors, and they are those of the catalogue."""

from __future__ import annotations

import dataclasses
from inspect import Parameter, signature
from typing import Any

import msgspec
import pytest

from nacre.api import MemoryHome
from nacre.python_values import Changes
from nacre.serve.catalogue import CATALOGUE

OPERATIONS = {
    "ingest": "ingest",
    "extract": "extract-propose",
    "store": "store",
    "recall": "recall",
    "deep_recall": "deep-recall",
    "context": "context",
    "handoff": "handoff",
    "hand_over": "handoff",
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
    "forgotten": "forgotten",
    "allow_again": "forget-allow-again",
    "log": "log",
    "undo": "undo",
    "commit": "commit",
    "sync": "sync",
    "list": "list",
}
"""Methods, and the operations that they are."""

NO_OPERATION = {
    "call": "any operation by its name",
    "close": "of the open home itself",
    "context_told": "takes a whole context: context-given takes its state",
    "forget": "takes a plan that was looked at: the operation plans and forgets at once",
    "path": "of the open home itself",
    "signals": "context with one part",
}
OWN = {
    ("ingest", "on_progress"),
    ("context", "moment"),
    ("handoff", "folder"),
    ("hand_over", "folder"),
    ("deep_recall", "folder"),
    ("context", "lexical"),
    ("edit", "changes"),
}
"""Parameters that mean something else in Python: a callback, this process' folder, a default made of others."""

BY_CALL = {
    "ingest": "discover force from_archive older puts_off reads remember_paths vector_seconds",
    "store": "author folder source speaker trigger_times triggers trust",
    "recall": "confident co_recall diversify fuzzy is_prompt mmr_lambda prefer_kinds threshold topic word_share",
    "deep_recall": "here",
    "context": "alone signals",
    "handoff": "session store words",
    "hand_over": "store",
    "search_sessions": (
        "aspect boost budget_tokens co_recall confident diversify expand fuzzy ignore_time is_prompt mmr_lambda offset "
        "prefer_kinds radius_days rerank role session threshold topic turns update word_share"
    ),
    "list": "words",
    "reviews": "limit offset only project",
    "keep": "anyway expected",
    "log": "action offset",
    "retire": "like subjects",
    "sync": "accept_rewritten patience_seconds",
}
"""Fields of a request that a method does not offer: ``memory.call`` takes them."""


def test_every_method_is_an_operation_or_listed_exception() -> None:
    public = {name for name in vars(MemoryHome) if not name.startswith("_")}
    assert public == OPERATIONS.keys() | NO_OPERATION.keys()


@pytest.mark.parametrize(("method", "operation"), OPERATIONS.items())
def test_method_parameters_match_their_request(method: str, operation: str) -> None:
    fields = defaults(CATALOGUE[operation].request)
    given = [
        one
        for one in signature(getattr(MemoryHome, method)).parameters.values()
        if one.name != "self"
    ]
    for one in given:
        if (method, one.name) in OWN:
            continue
        assert one.name in fields, one.name
        if one.kind is not Parameter.VAR_POSITIONAL and one.default is not None:
            assert one.default == fields[one.name], one.name


@pytest.mark.parametrize(("method", "operation"), OPERATIONS.items())
def test_methods_offer_all_fields_of_their_request(method: str, operation: str) -> None:
    offered = signature(getattr(MemoryHome, method)).parameters.keys()
    if method != "edit":  # its fields are held by the test below
        assert set(defaults(CATALOGUE[operation].request)) - offered == set(
            BY_CALL.get(method, "").split()
        )


def test_edit_parameters_match_the_edit_request() -> None:
    assert {"reference", "expected", *Changes.__annotations__} == set(
        defaults(CATALOGUE["edit"].request)
    )


def defaults(request: Any) -> dict[str, Any]:
    """The fields of a request with their defaults; those without one have what a parameter without one has."""
    if not dataclasses.is_dataclass(request):
        return {
            one.name: Parameter.empty if one.required else one.default
            for one in msgspec.structs.fields(request)
        }
    absent = dataclasses.MISSING
    return {
        one.name: Parameter.empty
        if one.default is absent and one.default_factory is absent
        else one.default
        for one in dataclasses.fields(request)
    }
