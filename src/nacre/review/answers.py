"""What is answered to requests about what waits for a person; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

import math

from nacre.home.home import Home
from nacre.review import claims, conflicts
from nacre.review.claims import Backfill, Estimate
from nacre.review.contradictions import JudgeReport, judge_waiting
from nacre.review.requests import (
    BackfillRequest,
    EstimateClaimsRequest,
    JudgeWaitingRequest,
    ReviewResolveRequest,
)
from nacre.values.reports import OnProgress
from nacre.views import Pair


def resolve(home: Home, request: ReviewResolveRequest) -> Pair:
    """Settle two memories in conflict, as a person decides. Raises NotFound, Conflict."""
    return conflicts.resolve(home, conflicts.find(home, request.reference), request.choice, request.reason)


def judge(home: Home, request: JudgeWaitingRequest, on_progress: OnProgress | None = None) -> JudgeReport:
    """Have a model judge the memories that wait, the longest waiting first."""
    seconds = math.inf if request.seconds is None else request.seconds
    return judge_waiting(home, background=request.background, seconds=seconds, on_progress=on_progress)


def estimate_claims(home: Home, request: EstimateClaimsRequest) -> Estimate:
    """What a backfill of claims would cost. Raises ModelRefused."""
    return claims.estimate(home, request.limit)


def backfill_claims(home: Home, request: BackfillRequest, on_progress: OnProgress | None = None) -> Backfill:
    """Have a model tell what older memories claim. Raises ModelRefused."""
    return claims.backfill(home, limit=request.limit, batch_size=request.batch_size, on_progress=on_progress)
