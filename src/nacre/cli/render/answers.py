"""Answers to questions for people: memories, turns of sessions, what ran, what to try when there is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.render.memories import components, render_hit
from nacre.cli.render.words import day, short_session, speaker_name, when
from nacre.text.passages import shorten
from nacre.values.recall import Lane, RecallResult, TurnHit
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.sessions.pattern_search import Matches

NOTHING = "Nothing in memory answers that."
NOTHING_SAID = "No session says anything about that."
EMPTY = "There is nothing in memory yet."

_INDENT = 4
_TITLE_CHARACTERS = 70


def render_recall(paper: Paper, result: RecallResult, *, message: str | None, explain: bool) -> None:
    """Memories first, then turns, then what was less than it should be."""
    if message == EMPTY:
        render_beginning(paper)
        return
    for rank, hit in enumerate(result.hits, start=1):
        render_hit(paper, rank, hit, explain=explain)
        paper.blank()
    if message:
        _render_nothing(paper, message, result)
    if result.turns:
        paper.heading("From your sessions")
        render_turns(paper, result.turns, explain=explain)
    _render_notes(paper, result)
    _render_lanes(paper, result, explain=explain)


def render_search(paper: Paper, result: RecallResult, *, message: str | None, explain: bool, offset: int = 0) -> None:
    """Turns, then what was less than it should be."""
    if message == EMPTY:
        render_beginning(paper)
        return
    if message:
        _render_nothing(paper, message, result)
    render_turns(paper, result.turns, explain=explain, offset=offset)
    _render_lanes(paper, result, explain=explain)
    if result.truncated:
        paper.line(dim(f"more: --offset {offset + len(result.turns)}"))


def render_matches(paper: Paper, found: Matches, *, message: str | None, offset: int) -> None:
    """Turns that match an expression."""
    if message == EMPTY:
        render_beginning(paper)
    elif message:
        paper.line(bold(message))
    render_turns(paper, found.turns, explain=False, offset=offset)
    if found.more:
        paper.line(dim(f"more: --offset {offset + len(found.turns)}"))


def render_turns(paper: Paper, turns: Sequence[TurnHit], *, explain: bool, offset: int = 0) -> None:
    """Who said it in which session, and the words."""
    for rank, hit in enumerate(turns, start=offset + 1):
        session = hit.session
        title = f"“{shorten(session.title, _TITLE_CHARACTERS)}”" if session.title else ""
        place = joined((f"{session.tool} {short_session(session.native_id)}", hit.project, when(hit.turn.time), title))
        paper.line(bold(f"{rank:>2}"), "  ", dim(place), hang=_INDENT)
        who = speaker_name(hit.turn.speaker, hit.turn.author)
        if hit.turn.trust is Trust.UNTRUSTED:
            told = f"from {who} in {session.tool} {short_session(session.native_id)}"
            paper.framed(hit.excerpt, told, indent=_INDENT)
        else:
            paper.line(Span(f"{who}:", "bold"), " ", hit.excerpt, indent=_INDENT)
        if explain:
            components(paper, hit.score, hit.components)
        paper.blank()


def render_beginning(paper: Paper) -> None:
    """How to begin."""
    paper.line(bold(EMPTY))
    paper.facts(
        (
            ("nacre ingest", "reads the sessions of the agents on this machine"),
            ('nacre store "…"', "keeps something you tell it"),
        ),
        indent=2,
    )


def _render_nothing(paper: Paper, message: str, result: RecallResult) -> None:
    paper.line(bold(message))
    if result.turns:
        return
    if message == NOTHING_SAID:
        paper.line(dim("Try other words, or fewer filters."), indent=2)
        return
    if result.abstained:
        paper.line(dim("Some memories come near the question; none of them is close enough."), indent=2)
    paper.line(dim("Try other words, fewer filters, or what was said: nacre sessions search …"), indent=2)


def _render_notes(paper: Paper, result: RecallResult) -> None:
    if result.since or result.until:
        span = f"from {day(result.since)}" if result.since else ""
        span = joined((span, f"before {day(result.until)}" if result.until else ""), " and ")
        paper.blank()
        paper.line(dim(f"Only memories {span}." if result.hits else f"Only memories {span} were asked."))
    if result.truncated:
        paper.blank()
        paper.line(dim("More memories answer; the token budget left them out."))


def _render_lanes(paper: Paper, result: RecallResult, *, explain: bool) -> None:
    lanes: Sequence[Lane] = result.lanes if explain else result.degraded
    if not lanes:
        return
    told = lanes_told(lanes)
    paper.blank()
    took = f" · {result.took_ms:.0f} ms" if explain else ""
    paper.line(dim(f"lanes: {told}{took}" if explain else f"degraded: {told}"))


def lanes_told(lanes: Sequence[Lane]) -> str:
    """What each lane did, in one line."""
    return "; ".join(f"{lane.name} {lane.state.value}{f' ({lane.note})' if lane.note else ''}" for lane in lanes)
