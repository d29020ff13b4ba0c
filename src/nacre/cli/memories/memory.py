"""One memory, as JSON and as lines: what every command shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.formats import Record, count, day, kind_span, place_name, short_id, split_session, stamp
from nacre.cli.paper import Paper, Part, Span, bold, dim, joined
from nacre.platform import ids
from nacre.platform.days import day_of
from nacre.text import passages
from nacre.values import session
from nacre.values.codec import keys_of, plain, plain_fields
from nacre.values.memory import USUAL_STRENGTH, Memory, Validity

if TYPE_CHECKING:
    from nacre.cli.run import Run
    from nacre.graph.values import Hop, LinkLine
    from nacre.values.recall import Evidence
    from nacre.views import LinkView


HIT_CHARACTERS = 420
LINE_CHARACTERS = 160
_COLUMNS = ("id", "date", "kind", "imp.", "project", "memory")
_PROJECT = 24


_IN_DETAIL = frozenset({
    "valid", "confidence_score", "claim", "evergreen", "author", "triggers", "suppressed_contexts", "source",
    "confirmed", "links", "retired", "extra",
})  # fmt: skip
"""Fields that ``show`` alone prints, or that have another form in a record."""


def memory_record(memory: Memory) -> Record:
    """One memory: its fields but for those of detail, its session and turns, and when it was retired."""
    tool, session_id = split_session(memory.source.session)
    return {
        **plain_fields(memory, (name for name in keys_of(Memory) if name not in _IN_DETAIL)),
        "session": memory.source.session, "session_id": session_id, "tool": tool,
        "turn_ids": list(memory.source.turns), "retired": plain(memory.retired.at) if memory.retired else None,
    }  # fmt: skip


def evidence_record(evidence: Evidence) -> Record:
    """Where a memory was said."""
    tool, session_id = split_session(evidence.session_id)
    return {
        "session_id": session_id,
        "turn_id": evidence.turn_id,
        "tool": tool,
        "speaker": evidence.speaker.value,
        "time": stamp(evidence.time),
        "excerpt": evidence.excerpt,
    }


def render_table(paper: Paper, memories: Sequence[Memory], *, indent: int = 0) -> None:
    """One line a memory: id, day, kind, importance, project, subject. Date, project and subject go last."""
    rows = [
        (
            dim(short_id(memory)), dim(day(memory.created)), kind_span(memory.kind),
            Span(f"{memory.importance:>4}", "bold" if memory.importance >= 8 else ""),
            passages.shorten(place_name(memory), _PROJECT),
            subject_and_content(memory),
        )
        for memory in memories
    ]  # fmt: skip
    paper.table(rows, header=_COLUMNS, drop=(3, 2, 1, 4), indent=indent)


def subject_and_content(memory: Memory) -> tuple[Part, ...]:
    """Subject and content, for one line of a table."""
    if memory.expires_on and memory.expires_on <= day_of(ids.utc_now()):
        return Span(f"expired {memory.expires_on}: ", "yellow"), passages.shorten(full_text(memory), LINE_CHARACTERS)
    if memory.trust is session.Trust.UNTRUSTED:
        return Span("untrusted: ", "yellow"), passages.shorten(full_text(memory), LINE_CHARACTERS)
    if passages.normalise(memory.content).startswith(passages.normalise(memory.subject)):
        return (passages.shorten(memory.content, LINE_CHARACTERS),)
    return bold(memory.subject), "  ", passages.shorten(memory.content, LINE_CHARACTERS)


def waits_for_owner(run: Run, memory: Memory) -> bool:
    """Whether an agent asked for a change of the owner's memory: that waits for review."""
    return run.settings.actor.is_agent and memory.speaker is session.Speaker.OWNER


def render_outcome(paper: Paper, verb: str, memory: Memory) -> None:
    """What became of one memory."""
    facts = joined((place_name(memory), f"importance {memory.importance}", short_id(memory)))
    paper.line(f"{verb}: ", kind_span(memory.kind), " ", bold(memory.subject), "  ", dim(facts), hang=2)


def render_outcomes(paper: Paper, verb: str, memories: Sequence[Memory]) -> None:
    """What became of several."""
    for memory in memories:
        render_outcome(paper, verb, memory)


def render_list(paper: Paper, memories: Sequence[Memory], *, total: int, offset: int) -> None:
    """A page of memories and how many there are."""
    render_table(paper, memories)
    shown = offset + len(memories)
    if shown < total:
        paper.blank()
        paper.line(dim(f"{len(memories)} of {count(total, 'memory', 'memories')}; more: --offset {shown}"))


def full_text(memory: Memory) -> str:
    """Subject and content in one, where the content does not begin with the subject."""
    is_told = passages.normalise(memory.content).startswith(passages.normalise(memory.subject))
    return passages.shorten(memory.content if is_told else f"{memory.subject}: {memory.content}", HIT_CHARACTERS)


def origin_of(memory: Memory) -> str:
    """Where a memory was learned."""
    where = memory.source.session or memory.source.file
    return f"from {where}" if where else "of unknown origin"


def link_facts(link: Hop | LinkLine | LinkView) -> str:
    """What is not usual about a link: its strength, what made it, when it holds, why."""
    parts = (
        f"{round(link.strength, 2):g}" if link.strength != USUAL_STRENGTH else "",
        link.origin if link.origin != "manual" else "", _span_of(link.valid), link.reason or "",
    )  # fmt: skip
    return joined(parts, ", ")


def _span_of(valid: Validity) -> str:
    if valid.since and valid.until:
        return f"{valid.since} to {valid.until}"
    if valid.until:
        return f"{'ended' if valid.until <= day_of(ids.utc_now()) else 'until'} {valid.until}"
    return f"from {valid.since}" if valid.since else ""
