"""Which projects' sessions are worth telling on their pages: six signals, three gates (seed facts 2.4)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from nacre.dream.values import Promotion
from nacre.home.home import Home
from nacre.sessions.summary.summarise import summarise
from nacre.text.passages import identifiers, words
from nacre.values.filters import SessionFilter
from nacre.values.session import SessionKind, Speaker, StoredSession
from nacre.values.summary import Summary, Topic

MOST_READ = 30
"""Sessions of a project that are looked at, the latest: from five on their number weighs no more."""

LEAST_SCORE, LEAST_SESSIONS, LEAST_QUERIES = 0.5, 2, 2

_WEIGHTS = {
    "relevance": 0.30, "frequency": 0.24, "diversity": 0.15, "recency": 0.15, "consolidation": 0.10, "richness": 0.06,
}  # fmt: skip
_ENOUGH = 5
_ENOUGH_WORK = 20
_RECENT_DAYS = 30
_TOPICS_READ = 10
_TOPIC_CHARACTERS = 15
_OPENING_WORDS = 3
_DECIDES = re.compile(
    r"\b(?:decid\w+|cho(?:ose|se)|prefer\w*|instead|rather|always|never|must|agreed|entschie\w+|statt|immer|nie)\b"
    r"|决定|改用|必须|決め|代わりに",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A session of a project, what was done in it, and what the owner asked for, the main thing first."""

    stored: StoredSession
    summary: Summary
    topics: tuple[Topic, ...]


def latest(home: Home, project: str, since: datetime | None, limit: int = MOST_READ) -> list[Told]:
    """The latest sessions of a project that the owner held, whose transcripts are still there; the newest first.

    ``since``: only what ended after it.
    """
    wanted = SessionFilter(project=project, kind=SessionKind.MAIN, since=since)
    newest = home.sessions.newest(wanted, limit=limit)
    return [
        _told(home, one)
        for one in newest
        if one.ended and (since is None or one.ended > since) and _is_there(home, one)
    ]


def _is_there(home: Home, stored: StoredSession) -> bool:
    """Whether what a session says can be read again: its transcript lies where it was, or in the archive."""
    file = stored.file
    return bool(file) and (os.path.exists(file or "") or home.archive.find(file or "") is not None)


def _told(home: Home, stored: StoredSession) -> Told:
    turns = [one.turn for one in home.sessions.turns_of(stored.row)]
    summary = summarise(stored.session, turns)
    topics = (one for one in summary.topics if one.speaker is Speaker.OWNER and len(one.text) >= _TOPIC_CHARACTERS)
    return Told(stored, summary, tuple(topics))


def weighed(project: str, told: Sequence[Told], now: datetime) -> Promotion:
    """The signals of a project's sessions, and which gates they do not pass."""
    topics = [topic.text for one in told for topic in one.topics]
    queries = len({" ".join(words(text)[:_OPENING_WORDS]) for text in topics})
    tools = _distinct(use.name for one in told for use in one.summary.tools)
    ended = max((one.stored.ended for one in told if one.stored.ended), default=now)
    signals = {
        "relevance": min(1.0, 1.5 * len(topics) / (len(topics) + max(1, tools))),
        "frequency": min(1.0, len(told) / _ENOUGH),
        "diversity": min(1.0, queries / _ENOUGH),
        "recency": math.exp(-max(0.0, (now - ended) / timedelta(days=1)) / _RECENT_DAYS),
        "consolidation": min(1.0, _work(told, tools) / _ENOUGH_WORK),
        "richness": _richness(topics[:_TOPICS_READ]),
    }
    score = sum(weight * signals[name] for name, weight in _WEIGHTS.items())
    gates = (
        (score >= LEAST_SCORE, f"its score is {score:.2f}, not {LEAST_SCORE:.2f}"),
        (len(told) >= LEAST_SESSIONS, f"sessions: {len(told)} of {LEAST_SESSIONS}"),
        (queries >= LEAST_QUERIES, f"different requests: {queries} of {LEAST_QUERIES}"),
    )
    rounded = {name: round(value, 2) for name, value in signals.items()}
    failed = tuple(why for is_passed, why in gates if not is_passed)
    return Promotion(project, len(told), **rounded, score=round(score, 2), failed=failed)


def _work(told: Sequence[Told], tools: int) -> int:
    files = _distinct(file.path for one in told for file in one.summary.files)
    commits = _distinct(commit for one in told for commit in one.summary.commits)
    return files + tools + commits + sum(len(one.summary.errors) for one in told)


def _distinct(names: Iterable[str]) -> int:
    return len(set(names))


def _richness(topics: Sequence[str]) -> float:
    """How much the requests tell: code, words of deciding, names of files."""
    hits = [("`" in text) + bool(_DECIDES.search(text)) + any(map(_is_file, identifiers(text))) for text in topics]
    return sum(min(1.0, count / 2) for count in hits) / len(hits) if hits else 0.0


def _is_file(name: str) -> bool:
    return "/" in name or "." in name
