"""All of it in a row: a session's turns → its summary."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.extraction.reading.bounds import bounded
from nacre.extraction.reading.chronology import in_time
from nacre.extraction.reading.speech import utterances
from nacre.sessions.summary import topics as reading_topics
from nacre.sessions.summary import work
from nacre.sessions.summary.ending import outcome
from nacre.sessions.summary.open_ends import open_ends
from nacre.sessions.summary.topics import topics
from nacre.text.passages import shorten
from nacre.values.session import Session, Turn
from nacre.values.summary import Summary

TITLE_CHARACTERS = 120


def summarise(session: Session, turns: Sequence[Turn]) -> Summary:
    """The summary of a session. Pure and deterministic: the same turns give the same."""
    turns = in_time([bounded(turn) for turn in turns])
    if not turns:
        return Summary()
    spoken = utterances(turns)
    calls = [call for _, call in work.all_calls(turns)]
    ended = outcome(turns, spoken)
    return Summary(
        topics=tuple(topics(turns, spoken)),
        outcome=ended,
        open_ends=tuple(open_ends(turns, spoken, ended)),
        tools=work.tools(calls),
        files=work.files(calls, session.cwd),
        commands=work.commands(calls),
        commits=work.commits(turns),
        pull_requests=work.pull_requests(turns),
        errors=work.errors(calls),
        packages=work.packages(calls),
        urls=work.urls(turns),
    )


def opening(turns: Sequence[Turn]) -> str | None:
    """What a session without a title is called: its first real request, shortened at a word."""
    shown = in_time([bounded(turn) for turn in turns])
    found = reading_topics.first_request(shown, utterances(shown))
    return shorten(found, TITLE_CHARACTERS) if found else None
