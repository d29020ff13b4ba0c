"""What is answered to requests about what waits for a person; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

import math

from nacre.code.staleness import note_stale
from nacre.home.home import Home
from nacre.review import candidates, claims, conflicts, queue
from nacre.review.claims import Backfill, Estimate
from nacre.review.contradictions import JudgeReport, judge_waiting
from nacre.review.reopen import reopen
from nacre.review.requests import (
    BackfillRequest,
    CandidatesRequest,
    DropCandidatesRequest,
    EstimateClaimsRequest,
    JudgeWaitingRequest,
    KeepCandidateRequest,
    ResolveRequest,
    ReviewKeepRequest,
    ReviewRequest,
    ReviewRetireRequest,
    ReviewUndoRequest,
)
from nacre.values.memory import Memory
from nacre.values.reports import OnProgress, StoreOutcome
from nacre.views import CandidatePage, Pair, Waiting


def waiting(home: Home) -> Waiting:
    """Contradictions and reviews that wait for a person."""
    note_stale(home)
    return Waiting(tuple(conflicts.waiting(home)), tuple(queue.waiting(home)), home.candidates.count())


def dismiss(home: Home, request: ReviewKeepRequest) -> list[Memory]:
    """Keep memories that wait for review. Raises NotFound, Conflict, EditConflict, InvalidInput."""
    return queue.dismiss(home, request.references, request.content, request.into, request.expected)


def undo(home: Home, request: ReviewUndoRequest) -> Memory:
    """Take back the last decision about what waited: it waits again. Raises NotFound, Conflict."""
    return reopen(home, request.reference)


def list_candidates(home: Home, request: CandidatesRequest) -> CandidatePage:
    """The candidates that wait, the likeliest first."""
    return candidates.listed(home, request)


def keep_candidate(home: Home, request: KeepCandidateRequest) -> StoreOutcome:
    """Make a candidate a memory. Raises NotFound, Conflict, InvalidInput."""
    return candidates.keep(home, request)


def drop_candidates(home: Home, request: DropCandidatesRequest) -> list[Memory]:
    """Do away with candidates: they are not found again. Raises NotFound, Conflict."""
    return candidates.drop(home, request.references)


def replace(home: Home, request: ReviewRequest) -> list[Memory]:
    """Let the newer memory take the place of one that it outdated. Raises NotFound, Conflict."""
    return queue.replace_outdated(home, request.references)


def retire(home: Home, request: ReviewRetireRequest) -> list[Memory]:
    """Retire memories that wait for review. Raises NotFound, Conflict."""
    return queue.retire(home, request.references, request.reason)


def resolve(home: Home, request: ResolveRequest) -> Pair:
    """Settle two memories that contradict each other, as a person decides. Raises NotFound, Conflict."""
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
