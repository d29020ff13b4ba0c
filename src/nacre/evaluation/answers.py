"""What is answered to requests about saved queries; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from pathlib import Path

from nacre.evaluation import evaluate as evaluating
from nacre.evaluation.evaluate import Answer, SavedQuery
from nacre.evaluation.requests import AddQueryRequest, EvaluateRequest, QueriesRequest, RemoveQueryRequest
from nacre.home.home import Home


def evaluate(home: Home, request: EvaluateRequest) -> list[Answer]:
    """Ask saved queries of the memory, and tell what changed since the baseline. Raises QueryInvalid, NotFound."""
    before = evaluating.load_baseline(home) if request.compare else None
    limit = request.limit or (before.limit if before else evaluating.DEFAULT_LIMIT)
    saved = evaluating.load_queries(_file(home, request))
    return evaluating.ask(home, saved, limit=limit, budget=request.budget, baseline=before)


def list_queries(home: Home, request: QueriesRequest) -> list[SavedQuery]:
    """The saved queries; the default ones where none are saved yet. Raises QueryInvalid."""
    return list(evaluating.load_queries(_file(home, request)))


def add_query(home: Home, request: AddQueryRequest) -> SavedQuery:
    """Save a query. Raises QueryInvalid, NotFound, Conflict."""
    return evaluating.add_query(
        home, _file(home, request), request.question, query_id=request.query_id, expects=request.expects
    )


def remove_query(home: Home, request: RemoveQueryRequest) -> SavedQuery:
    """Forget a saved query. Raises NotFound."""
    return evaluating.remove_query(_file(home, request), request.query_id)


def _file(home: Home, request: QueriesRequest) -> Path:
    return request.queries or evaluating.queries_file(home)
