"""What is answered to requests for recall; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from dataclasses import replace

from nacre.home.home import Home
from nacre.retrieval import feedback, recall
from nacre.retrieval.aspects import Aspect, admission, with_error
from nacre.retrieval.requests import FeedbackRequest, JudgeRequest, TurnQuery
from nacre.text.passages import words
from nacre.values.recall import RecallResult
from nacre.values.review import FeedbackReport


def search_sessions(home: Home, request: TurnQuery) -> RecallResult:
    """The turns of all sessions that answer a question, the best first. Raises QueryInvalid."""
    admits = admission(request.aspect, request.role)
    found = recall.search_sessions(home, request, offset=max(0, request.offset), admits=admits)
    if request.aspect != Aspect.ERRORS:
        return found
    return replace(found, turns=tuple(with_error(hit, words(request.text)) for hit in found.turns))


def judge_by_reply(home: Home, request: FeedbackRequest) -> FeedbackReport:
    """Let memories learn from an agent's reply: used, unused or corrected. Raises QueryInvalid, NotFound, Conflict."""
    return feedback.feedback(home, request.reply, request.references, session=request.session, stored=request.stored)


def judge(home: Home, request: JudgeRequest) -> FeedbackReport:
    """Let memories learn that a person finds them good or bad. Raises NotFound, Conflict."""
    return feedback.judge(home, request.references, good=request.good)
