"""Text output of memories and search hits, shared by all commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from nacre.base import ids, times
from nacre.base.text import normalise, shorten
from nacre.cli.command import Paper, Part, Run, Span, bold, dim, joined
from nacre.cli.options import (
    SHORT_ID,
    count,
    day,
    kind_span,
    place_name,
    repeats_content,
    short_id,
    speaker_name,
    turn_name,
    when,
)
from nacre.home import location
from nacre.values.memory import USUAL_STRENGTH, Memory, Validity
from nacre.values.recall import Quote, TurnHit
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.home.views import LinkView, Listing
    from nacre.memories.graph import Hop, LinkLine
    from nacre.values.recall import Evidence, Lane, MemoryHit, RecallResult

P = ParamSpec("P")
V = TypeVar("V")

HIT_CHARACTERS = 420
LINE_CHARACTERS = 160
_COLUMNS = ("id", "date", "kind", "imp.", "project", "memory")


def render_table(
    paper: Paper,
    memories: Sequence[Memory],
    outdated_by: Mapping[str, Sequence[str]] | None = None,
    *,
    is_overview: bool = False,
    indent: int = 0,
) -> None:
    """Print memories as a table, whose less important columns are left out on a narrow terminal.

    An overview has no header, but always shows the kind.
    """
    rows = [
        (
            dim(short_id(memory)),
            dim(day(memory.created)),
            kind_span(memory.kind),
            Span(f"{memory.importance:>4}", "bold" if memory.importance >= 8 else ""),
            shorten(place_name(memory), 24),
            subject_and_content(memory, (outdated_by or {}).get(memory.id, ())),
        )
        for memory in memories
    ]
    if is_overview:
        paper.table(rows, drop=(3, 1, 4), least=44, indent=indent)
    else:
        paper.table(rows, header=_COLUMNS, drop=(3, 2, 1, 4), indent=indent)


def subject_and_content(memory: Memory, newer: Sequence[str] = ()) -> tuple[Part, ...]:
    """Return a memory's subject and content for a table row, after a warning if there is one."""
    warning = "proposed: " if memory.proposed else ""
    if newer:
        warning = f"{_out_of_date(newer)}: "
    if memory.trust is Trust.UNTRUSTED:
        warning = "untrusted: "
    if memory.expires_on and memory.expires_on <= times.day_of(ids.utc_now()):
        warning = f"expired {memory.expires_on}: "
    if warning:
        return Span(warning, "yellow"), shorten(full_text(memory), LINE_CHARACTERS)
    if repeats_subject(memory):
        return (shorten(memory.content, LINE_CHARACTERS),)
    return bold(memory.subject), "  ", shorten(memory.content, LINE_CHARACTERS)


def render_outcomes(paper: Paper, verb: str, memories: Sequence[Memory]) -> None:
    """Print one line per memory: ``verb``, and a description of the memory."""
    for memory in memories:
        facts = joined((place_name(memory), f"importance {memory.importance}", short_id(memory)))
        paper.line(
            f"{verb}: ", kind_span(memory.kind), " ", bold(memory.subject), "  ", dim(facts), hang=2
        )


def render_list(paper: Paper, listing: Listing, *, nothing: str, offset: int = 0) -> None:
    """Print a page of memories and the total, or ``nothing`` for an empty page."""
    if not listing.memories:
        paper.line(nothing)
    render_table(paper, listing.memories, listing.outdated_by)
    number, end = len(listing.memories), offset + len(listing.memories)
    if number and end < listing.total:
        paper.footer(f"{number} of {count(listing.total, 'memory')}; more: --offset {end}")


def full_text(memory: Memory) -> str:
    """Return a memory's subject and content, or only the content if it repeats the subject."""
    subject = "" if repeats_subject(memory) else f"{memory.subject}: "
    return shorten(subject + memory.content, HIT_CHARACTERS)


def repeats_subject(memory: Memory) -> bool:
    """Return True if a memory's content begins with its subject."""
    return normalise(memory.content).startswith(normalise(memory.subject).rstrip("…."))


def origin_of(memory: Memory) -> str:
    """Describe the session or file that a memory was learned from."""
    source = memory.source.session or memory.source.file
    return f"from {source}" if source else "of unknown origin"


def link_facts(link: Hop | LinkLine | LinkView) -> str:
    """Describe a link's strength, origin, validity and reason, omitting defaults."""
    parts = (
        f"{round(link.strength, 2):g}" if link.strength != USUAL_STRENGTH else "",
        link.origin if link.origin != "manual" else "",
        period(link.valid),
        link.reason or "",
    )
    return joined(parts, ", ")


def period(valid: Validity) -> str:
    """Describe the days on which a memory or link is valid, or return "" for always."""
    if valid.since and valid.until:
        return f"{valid.since} to {valid.until}"
    if valid.until:
        return f"{'ended' if valid.until <= times.day_of(ids.utc_now()) else 'until'} {valid.until}"
    return f"from {valid.since}" if valid.since else ""


# ----------------------------------------------------------------------------
# Search hits: memories, turns of sessions, and the states of lanes.


_INDENT = 4
NOTHING = "Nothing matches."


def present(
    run: Run,
    value: V,
    is_match: object,
    render: Callable[Concatenate[Paper, V, P], object],
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    """Show a search result or, if the home is empty, suggest commands to start with."""
    if is_match or run.as_json or not location.is_empty(run.home):
        run.present(value, render, *args, **kwargs)
    else:
        start = "  nacre ingest reads your agents' sessions; nacre store stores a memory"
        run.answer(value, Paper.title, "There are no memories yet.", dim(start), hang=2)


def render_answer(
    paper: Paper,
    result: RecallResult,
    results: Sequence[MemoryHit | TurnHit],
    *,
    explain: bool,
    more: str,
    offset: int = 0,
) -> None:
    """Print search results, time filter and search lanes, and ``more`` if results were left out."""
    if not results:
        paper.title(NOTHING)
        paper.note("Try other words, or fewer filters.", indent=2)
    render_results(paper, results, explain=explain, offset=offset)
    if result.span:
        paper.blank()
        paper.note(
            f"“{result.time_words}”: results {result.span} rank higher. To turn this off: --ignore-time"
            if result.time_words
            else f"Only results {result.span}."
        )
    _render_lanes(paper, result, explain=explain)
    if result.truncated:
        paper.footer(more)


def render_results(
    paper: Paper, results: Sequence[MemoryHit | TurnHit], *, explain: bool = False, offset: int = 0
) -> None:
    """Print memories with their evidence, and turns with their sessions and speakers."""
    for rank, hit in enumerate(results, start=offset + 1):
        if isinstance(hit, TurnHit):
            _render_turn(paper, rank, hit)
        else:
            _render_memory(paper, rank, hit)
        if explain:
            _render_components(paper, hit.score, hit.components)
        paper.blank()


def _render_memory(paper: Paper, rank: int, hit: MemoryHit) -> None:
    memory = hit.memory
    if memory.trust is Trust.UNTRUSTED:
        paper.title(f"{rank:>2}", "  ", kind_span(memory.kind), hang=_INDENT)
        paper.framed(full_text(memory), origin_of(memory), indent=_INDENT)
    else:
        paper.title(
            f"{rank:>2}", "  ", kind_span(memory.kind), "  ", bold(memory.subject), hang=_INDENT
        )
        if normalise(memory.content) != normalise(memory.subject):
            paper.line(shorten(memory.content, HIT_CHARACTERS), indent=_INDENT)
    facts = (
        hit.confidence.value,
        hit.space or "",
        "an agent's proposal" if memory.proposed else "",
        place_name(memory),
        when(memory.created),
        f"importance\u00a0{memory.importance}",
        short_id(memory),
    )
    paper.note(joined(facts), indent=_INDENT)
    _render_notes(paper, hit)


def _render_notes(paper: Paper, hit: MemoryHit) -> None:
    memory = hit.memory
    if hit.candidate:
        keep = f"pending candidate; to keep it: nacre review keep {short_id(memory)}"
        paper.note(keep, "yellow", indent=_INDENT)
    if hit.outdated_by:
        paper.note(_out_of_date(hit.outdated_by), "yellow", indent=_INDENT)
    if hit.doubt:
        paper.note(f"may be out of date: {hit.doubt}", "yellow", indent=_INDENT)
    if hit.evidence:
        _evidence_line(paper, hit.evidence, memory)


def _out_of_date(newer: Sequence[str]) -> str:
    return f"may be out of date, see {joined([item[-SHORT_ID:] for item in newer], ', ')}"


def _evidence_line(paper: Paper, evidence: Sequence[Evidence], memory: Memory) -> None:
    first = next((item for item in evidence if item.speaker is memory.speaker), evidence[0])
    more = f" and {count(len(evidence) - 1, 'more turn')}" if len(evidence) > 1 else ""
    speaker = speaker_name(memory.speaker, memory.author)
    source = f"said by {speaker} in {turn_name(first.session_id, first.seq)}{more}"
    date = when(first.time) if when(first.time) != when(memory.created) else ""
    quote = shorten(first.excerpt, 180)
    # Do not attribute a different speaker's words to the memory's speaker.
    is_own = first.speaker is memory.speaker
    quoted = f": “{quote}”" if is_own and not repeats_content(first.excerpt, memory.content) else ""
    paper.note(f"{joined((source, date), ', ')}{quoted}", indent=_INDENT)


def _render_components(paper: Paper, score: float, parts: dict[str, float]) -> None:
    names = [f"× {name[2:]}" if name.startswith("x_") else name for name in parts]
    factors = [name for name in names if name.startswith("×")]
    formula = " ".join([" = relevance", *factors]) if "relevance" in parts else ""
    rows = [("score", f"{score:.4f}{formula}")]
    rows += [(f"  {name}", f"{parts[key]:.4f}") for name, key in zip(names, parts, strict=True)]
    paper.table([(dim(name), dim(value)) for name, value in rows], indent=_INDENT)


def _render_turn(paper: Paper, rank: int, hit: TurnHit) -> None:
    session = hit.session
    title = f"“{shorten(session.title, 70)}”" if session.title else ""
    source = turn_name(session.id, hit.seq)
    place = joined((hit.confidence.value, source, hit.project, when(hit.turn.time), title))
    paper.title(f"{rank:>2}", "  ", dim(place), hang=_INDENT)
    speaker = speaker_name(hit.turn.speaker, hit.turn.author)
    before = [quote for quote in hit.quotes if quote.seq < hit.seq]
    _render_quotes(paper, before)
    if hit.turn.trust is Trust.UNTRUSTED:
        paper.framed(hit.excerpt, f"from {speaker} in {source}", indent=_INDENT)
    else:
        paper.line(Span(f"{speaker}:", "bold"), " ", hit.excerpt, indent=_INDENT)
    _render_quotes(paper, hit.quotes[len(before) :])
    if hit.doubt:
        paper.note(f"may be out of date: {hit.doubt}", "yellow", indent=_INDENT)


def _render_quotes(paper: Paper, quotes: Sequence[Quote]) -> None:
    for quote in quotes:
        paper.line(f"{speaker_name(quote.speaker, None)}: {quote.excerpt}", indent=_INDENT)


def _render_lanes(paper: Paper, result: RecallResult, *, explain: bool) -> None:
    lanes = result.lanes if explain else result.degraded
    corrected = joined(lane.note for lane in result.lanes if lane.name == "spelling")
    if corrected and not explain:
        paper.footer(f"spelling: {corrected}")
    if lanes:
        paper.blank()
        label, took = ("lanes", f" · {result.took_ms:.0f} ms") if explain else ("degraded", "")
        paper.note(f"{label}: {describe_lanes(lanes)}{took}")


def describe_lanes(lanes: Sequence[Lane]) -> str:
    """Describe the state of each search lane."""
    return "; ".join(
        f"{lane.name} {lane.state.value}{f' ({lane.note})' if lane.note else ''}" for lane in lanes
    )
