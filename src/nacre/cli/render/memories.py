"""Memories for people: a table, one in full, one as a hit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Part, Span, bold, dim, joined
from nacre.cli.render.usage import render_together
from nacre.cli.render.words import (
    SHORT_ID,
    count,
    day,
    kind_span,
    minute,
    place_name,
    says_the_same,
    short_id,
    short_session,
    speaker_name,
    when,
)
from nacre.text.passages import normalise, shorten
from nacre.values.memory import Expiry, Memory, Scope
from nacre.values.recall import Evidence, MemoryHit
from nacre.values.review import NEUTRAL_QUALITY
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.values.reports import StoreOutcome
    from nacre.views import LinkView, MemoryView, Step

_HIT_CHARACTERS = 420
_QUOTE_CHARACTERS = 180
_LINE_CHARACTERS = 160
_INDENT = 4
_UNSETTLED = "not settled (inbox): no agent is given it unasked, until nacre edit --project says where it holds"


def render_table(paper: Paper, memories: Sequence[Memory], *, indent: int = 0) -> None:
    """One line a memory: id, day, kind, importance, project, subject."""
    rows = [
        (
            dim(short_id(memory)), dim(day(memory.created)), kind_span(memory.kind),
            Span(f"{memory.importance:>2}", "bold" if memory.importance >= 8 else ""), place_name(memory),
            told(memory),
        )
        for memory in memories
    ]  # fmt: skip
    paper.table(rows, drop=(3, 1, 4), indent=indent)


def told(memory: Memory) -> tuple[Part, ...]:
    """Subject and content, for one line of a table."""
    if memory.trust is Trust.UNTRUSTED:
        return Span("untrusted: ", "yellow"), shorten(_whole(memory), _LINE_CHARACTERS)
    if normalise(memory.content).startswith(normalise(memory.subject)):
        return (shorten(memory.content, _LINE_CHARACTERS),)
    return bold(memory.subject), "  ", shorten(memory.content, _LINE_CHARACTERS)


def render_outcome(paper: Paper, verb: str, memory: Memory, reason: str | None = None) -> None:
    """What became of one memory."""
    facts = joined((place_name(memory), f"importance {memory.importance}", short_id(memory)))
    paper.line(f"{verb}: ", kind_span(memory.kind), " ", bold(memory.subject), "  ", dim(facts), hang=2)
    if reason:
        paper.line(dim(reason), indent=2)


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


def render_hit(paper: Paper, rank: int, hit: MemoryHit, *, explain: bool) -> None:
    """One memory that answers, with its evidence."""
    memory = hit.memory
    if memory.trust is Trust.UNTRUSTED:
        paper.line(bold(f"{rank:>2}"), "  ", kind_span(memory.kind), hang=_INDENT)
        paper.framed(_whole(memory), _whence(memory), indent=_INDENT)
    else:
        _render_words(paper, rank, memory)
    facts = (place_name(memory), when(memory.created), f"importance\u00a0{memory.importance}", short_id(memory))
    paper.line(dim(joined(facts)), indent=_INDENT)
    _render_notes(paper, hit)
    if explain:
        components(paper, hit.score, hit.components)


def _whole(memory: Memory) -> str:
    is_told = normalise(memory.content).startswith(normalise(memory.subject))
    return shorten(memory.content if is_told else f"{memory.subject}: {memory.content}", _HIT_CHARACTERS)


def _whence(memory: Memory) -> str:
    where = memory.source.session or memory.source.file
    return f"from {where}" if where else "from outside"


def _render_words(paper: Paper, rank: int, memory: Memory) -> None:
    paper.line(bold(f"{rank:>2}"), "  ", kind_span(memory.kind), "  ", bold(memory.subject), hang=_INDENT)
    if normalise(memory.content) != normalise(memory.subject):
        paper.line(shorten(memory.content, _HIT_CHARACTERS), indent=_INDENT)


def _render_notes(paper: Paper, hit: MemoryHit) -> None:
    memory = hit.memory
    if hit.outdated_by:
        newer = joined([one[-SHORT_ID:] for one in hit.outdated_by], ", ")
        paper.line(Span(f"may be outdated: see {newer}", "yellow"), indent=_INDENT)
    if hit.evidence:
        _evidence_line(paper, hit.evidence, memory)
    for older in hit.may_replace:
        mark = "untrusted: " if older.trust is Trust.UNTRUSTED else ""
        told = mark + shorten(older.content, _HIT_CHARACTERS)
        paper.line(dim(f"may replace {short_id(older)} ({day(older.created)}): {told}"), indent=_INDENT, hang=2)


def _evidence_line(paper: Paper, evidence: Sequence[Evidence], memory: Memory) -> None:
    first = next((one for one in evidence if one.speaker is memory.speaker), evidence[0])
    tool, _, native_id = first.session_id.partition(":")
    more = f" and {count(len(evidence) - 1, 'more turn')}" if len(evidence) > 1 else ""
    said_by = speaker_name(memory.speaker, memory.author)
    told_by = f"said by {said_by} in {tool} {short_session(native_id)}{more}"
    date = when(first.time) if when(first.time) != when(memory.created) else ""
    quote = shorten(first.excerpt, _QUOTE_CHARACTERS)
    quoted = "" if says_the_same(first.excerpt, memory.content) else f": “{quote}”"
    paper.line(dim(f"{joined((told_by, date), ', ')}{quoted}"), indent=_INDENT)


def components(paper: Paper, score: float, parts: dict[str, float]) -> None:
    """What a score is made of: lanes and bonuses add up, ``×`` multiplies, the rest are absolute signals."""
    names = {name: f"× {name[2:]}" if name.startswith("x_") else name for name in parts}
    rows = [(dim("score"), dim(f"{score:.4f}"))]
    rows += [(dim(f"  {names[name]}"), dim(f"{value:.4f}")) for name, value in parts.items()]
    paper.table(rows, indent=_INDENT)


_STORED = {
    "stored": ("Stored", "Would be stored"),
    "accepted": ("Accepted", "Would be accepted"),
    "retired": ("Retired at once", "Would be retired at once"),
    "updated": ("Made one with", "Would be made one with"),
    "known": ("Known already", "Would be nothing new"),
}


def render_stored(paper: Paper, outcome: StoreOutcome, memory: Memory, *, dry_run: bool = False) -> None:
    """What became of a memory that was to be stored, or would become, and which others it concerns."""
    render_outcome(paper, _STORED[outcome.action][dry_run], memory)
    if outcome.action == "updated":
        paper.line(shorten(memory.content, _HIT_CHARACTERS), indent=2, hang=2)
    if outcome.action == "accepted":
        paper.line(dim("durable; it gets its place among the others when another writer is done"), indent=2)
    if outcome.reason:
        forced = {"known": "; --force stores it beside", "retired": "; --force stores it all the same"}
        by = f"{outcome.decided_by}: " if outcome.decided_by else ""
        paper.line(dim(f"{by}{outcome.reason}{forced.get(outcome.action, '')}"), indent=2)
    elif dry_run and outcome.action == "stored" and not (outcome.supersedes or outcome.similar):
        paper.line(dim("rules: no memory says the same or otherwise"), indent=2)
    for one in outcome.supersedes:
        _concerned(paper, "supersedes", one.memory, one.reason)
    if outcome.superseded_by:
        _concerned(paper, "newer is", outcome.superseded_by.memory, outcome.superseded_by.reason)
    for similar in outcome.similar:
        _concerned(paper, "similar", similar, "")


def _concerned(paper: Paper, how: str, memory: Memory, reason: str) -> None:
    facts = joined((reason, day(memory.created), short_id(memory)))
    paper.line(f"{how}: ", shorten(memory.content, _LINE_CHARACTERS), "  ", dim(facts), indent=2, hang=2)


def render_history(paper: Paper, steps: Sequence[Step]) -> None:
    """A chain of memories, the oldest first: when each was true, what ended it and why."""
    for step in steps:
        memory = step.memory
        until = step.until.isoformat() if step.until else ("retired" if memory.retired else "today")
        mark = bold("▸ ") if step.is_asked else "  "
        paper.line(mark, dim(f"{step.since} to {until}  "), shorten(memory.content, _HIT_CHARACTERS), hang=4)
        paper.line(dim(joined((memory.kind.value, memory.subject, short_id(memory)))), indent=4)
        if step.superseded_by:
            reason = f": {step.reason}" if step.reason else ""
            paper.line(dim(f"superseded by {step.superseded_by[-8:]}{reason}"), indent=4)
    if len(steps) == 1:
        paper.line(dim("It superseded nothing, and nothing superseded it."), indent=2)


def render_memory(paper: Paper, view: MemoryView, vault: Path) -> None:
    """One memory in full."""
    memory = view.memory
    if memory.retired:
        reason = f": {memory.retired.reason}" if memory.retired.reason else ""
        paper.line(Span(f"Retired {minute(memory.retired.at)}{reason}", "yellow"))
    elif memory.superseded_by:
        since = f" since {memory.valid.until}" if memory.valid.until else ""
        paper.line(Span(f"Superseded by {memory.superseded_by[-8:]}{since}", "yellow"))
    if memory.trust is Trust.UNTRUSTED:
        paper.framed(f"{memory.subject}\n{memory.content}", _whence(memory))
    else:
        paper.line(bold(memory.subject))
        paper.blank()
        paper.body(memory.content)
    paper.blank()
    paper.facts(_facts(view, vault))
    if view.evidence:
        paper.heading("Evidence")
        for item in view.evidence:
            _evidence(paper, item, memory)
    if view.links:
        paper.heading("Links")
        paper.table([_link_row(link) for link in view.links], indent=2)
    if view.together:
        render_together(paper, view.together)


def _merged(memory: Memory) -> str:
    """Which model made a memory of several, and why."""
    told = memory.extra.get("merged")
    return f"by {told.get('by')}: {told.get('reason')}" if isinstance(told, dict) else ""


def _facts(view: MemoryView, vault: Path) -> list[tuple[str, str | Span]]:
    memory = view.memory
    valid = (memory.valid.since, memory.valid.until)
    used = f"{count(view.usage.recall_count, 'time')}, last {when(view.usage.last_recalled)}"
    uses = count(view.usage.access_count, "use")
    updated = memory.updated if memory.updated != memory.created else None
    return [
        ("id", memory.id),
        ("kind", kind_span(memory.kind)),
        ("importance", str(memory.importance)),
        ("project", _UNSETTLED if memory.inbox else memory.project or ""),
        ("tags", ", ".join(memory.tags)),
        ("expiry", memory.expiry.value if memory.expiry is not Expiry.PERMANENT else ""),
        ("scope", memory.scope.value if memory.scope is not Scope.PRIVATE else ""),
        ("created", minute(memory.created)),
        ("updated", minute(updated)),
        ("valid", f"{valid[0] or '…'} to {valid[1] or '…'}" if any(valid) else ""),
        ("said by", speaker_name(memory.speaker, memory.author)),
        ("trust", memory.trust.value if memory.trust.value != "trusted" else ""),
        ("confidence", memory.confidence.value),
        ("merged", _merged(memory)),
        ("key", memory.canonical_key or ""),
        ("claim", joined((memory.claim.key, memory.claim.predicate, memory.claim.object), " ") if memory.claim else ""),
        ("session", memory.source.session or ""),
        ("recalled", used if view.usage.recall_count else ""),
        ("maturity", f"{view.maturity.value} ({uses})" if view.usage.access_count else ""),
        ("quality", f"{view.usage.quality:.2f}" if view.usage.quality != NEUTRAL_QUALITY else ""),
        ("file", str(vault / view.path) if view.path else ""),
    ]


def _evidence(paper: Paper, item: Evidence, memory: Memory) -> None:
    tool, _, native_id = item.session_id.partition(":")
    said_by = speaker_name(item.speaker, memory.author if item.speaker is memory.speaker else None)
    paper.line(
        bold(said_by), dim(f", {joined((f'{tool} {short_session(native_id)}', minute(item.time)), ', ')}"), indent=2
    )
    paper.line(item.excerpt, indent=4)


def _link_row(link: LinkView) -> tuple[str, Span, str]:
    relation = link.rel if link.is_outgoing else f"← {link.rel}"
    subject = link.subject or dim_unknown(link.other)
    return relation, dim(link.other[-8:]), f"{subject} ({link.reason})" if link.reason else subject


def dim_unknown(other: str) -> str:
    """What is at the end of a link that leads nowhere."""
    return f"(unknown: {other})"
