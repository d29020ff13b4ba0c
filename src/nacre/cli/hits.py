"""JSON and text output of memories and search hits, shared by all commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.base import ids, text, times
from nacre.cli.command import Paper, Part, Run, Span, bold, dim, joined
from nacre.cli.options import (
    SHORT_ID,
    count,
    day,
    kind_span,
    place_name,
    says_the_same,
    short_id,
    short_session,
    speaker_name,
    when,
)
from nacre.values import session as session_module
from nacre.values.memory import USUAL_STRENGTH, Memory, Validity
from nacre.values.recall import TurnHit

if TYPE_CHECKING:
    from nacre.home.views import LinkView
    from nacre.memories.graph import Hop, LinkLine
    from nacre.values.recall import Evidence, Lane, MemoryHit, RecallResult

HIT_CHARACTERS = 420
LINE_CHARACTERS = 160
_COLUMNS = ("id", "date", "kind", "imp.", "project", "memory")
_PROJECT = 24


def render_table(paper: Paper, memories: Sequence[Memory], *, indent: int = 0) -> None:
    """Print memories as a table. In a narrow terminal, date, project and subject are dropped last."""
    rows = [
        (
            dim(short_id(memory)),
            dim(day(memory.created)),
            kind_span(memory.kind),
            Span(f"{memory.importance:>4}", "bold" if memory.importance >= 8 else ""),
            text.shorten(place_name(memory), _PROJECT),
            subject_and_content(memory),
        )
        for memory in memories
    ]
    paper.table(rows, header=_COLUMNS, drop=(3, 2, 1, 4), indent=indent)


def subject_and_content(memory: Memory) -> tuple[Part, ...]:
    """Return a memory's subject and content for a table row. Expired and untrusted memories have a warning."""
    if memory.expires_on and memory.expires_on <= times.day_of(ids.utc_now()):
        return Span(f"expired {memory.expires_on}: ", "yellow"), text.shorten(
            full_text(memory), LINE_CHARACTERS
        )
    if memory.trust is session_module.Trust.UNTRUSTED:
        return Span("untrusted: ", "yellow"), text.shorten(full_text(memory), LINE_CHARACTERS)
    if text.normalise(memory.content).startswith(text.normalise(memory.subject)):
        return (text.shorten(memory.content, LINE_CHARACTERS),)
    return bold(memory.subject), "  ", text.shorten(memory.content, LINE_CHARACTERS)


def waits_for_owner(run: Run, memory: Memory) -> bool:
    """Return True if the owner must review an agent's change to this memory."""
    return run.settings.actor.is_agent and memory.speaker is session_module.Speaker.OWNER


def render_outcome(paper: Paper, verb: str, memory: Memory) -> None:
    """Print the change to a memory."""
    facts = joined((place_name(memory), f"importance {memory.importance}", short_id(memory)))
    paper.line(
        f"{verb}: ", kind_span(memory.kind), " ", bold(memory.subject), "  ", dim(facts), hang=2
    )


def render_outcomes(paper: Paper, verb: str, memories: Sequence[Memory]) -> None:
    """Print the change to each memory."""
    for memory in memories:
        render_outcome(paper, verb, memory)


def render_list(paper: Paper, memories: Sequence[Memory], *, total: int, offset: int) -> None:
    """Print a page of memories and the total."""
    render_table(paper, memories)
    shown = offset + len(memories)
    if shown < total:
        paper.blank()
        paper.note(
            f"{len(memories)} of {count(total, 'memory', 'memories')}; more: --offset {shown}"
        )


def full_text(memory: Memory) -> str:
    """Return the content, preceded by the subject unless the content starts with the subject."""
    has_subject = text.normalise(memory.content).startswith(text.normalise(memory.subject))
    return text.shorten(
        memory.content if has_subject else f"{memory.subject}: {memory.content}", HIT_CHARACTERS
    )


def origin_of(memory: Memory) -> str:
    """Describe the session or file that a memory was learned from."""
    source = memory.source.session or memory.source.file
    return f"from {source}" if source else "of unknown origin"


def link_facts(link: Hop | LinkLine | LinkView) -> str:
    """Return a link's strength, origin, validity and reason, without default values."""
    parts = (
        f"{round(link.strength, 2):g}" if link.strength != USUAL_STRENGTH else "",
        link.origin if link.origin != "manual" else "",
        _span_of(link.valid),
        link.reason or "",
    )
    return joined(parts, ", ")


def _span_of(valid: Validity) -> str:
    if valid.since and valid.until:
        return f"{valid.since} to {valid.until}"
    if valid.until:
        return f"{'ended' if valid.until <= times.day_of(ids.utc_now()) else 'until'} {valid.until}"
    return f"from {valid.since}" if valid.since else ""


# ----------------------------------------------------------------------------
# Search hits: memories, turns of sessions, and the states of lanes.


_QUOTE_CHARACTERS = 180
_INDENT = 4
NOTHING = "Nothing matches."
EMPTY = "There are no memories yet."
_TITLE_CHARACTERS = 70


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
    if memory.trust is session_module.Trust.UNTRUSTED:
        paper.line(bold(f"{rank:>2}"), "  ", kind_span(memory.kind), hang=_INDENT)
        paper.framed(full_text(memory), origin_of(memory), indent=_INDENT)
    else:
        _render_words(paper, rank, memory)
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


def _render_words(paper: Paper, rank: int, memory: Memory) -> None:
    paper.line(
        bold(f"{rank:>2}"), "  ", kind_span(memory.kind), "  ", bold(memory.subject), hang=_INDENT
    )
    if text.normalise(memory.content) != text.normalise(memory.subject):
        paper.line(text.shorten(memory.content, HIT_CHARACTERS), indent=_INDENT)


def _render_notes(paper: Paper, hit: MemoryHit) -> None:
    memory = hit.memory
    if hit.candidate:
        keep = f"pending candidate; to keep it: nacre review keep {short_id(memory)}"
        paper.note(keep, "yellow", indent=_INDENT)
    if hit.outdated_by:
        newer = joined([memory_id[-SHORT_ID:] for memory_id in hit.outdated_by], ", ")
        paper.note(f"may be outdated: see {newer}", "yellow", indent=_INDENT)
    if hit.doubt:
        paper.note(f"may be out of date: {hit.doubt}", "yellow", indent=_INDENT)
    if hit.evidence:
        _evidence_line(paper, hit.evidence, memory)


def _evidence_line(paper: Paper, evidence: Sequence[Evidence], memory: Memory) -> None:
    first = next((item for item in evidence if item.speaker is memory.speaker), evidence[0])
    tool, _, native_id = first.session_id.partition(":")
    more = f" and {count(len(evidence) - 1, 'more turn')}" if len(evidence) > 1 else ""
    speaker = speaker_name(memory.speaker, memory.author)
    source = f"said by {speaker} in {tool} {short_session(native_id)}{more}"
    date = when(first.time) if when(first.time) != when(memory.created) else ""
    quote = text.shorten(first.excerpt, _QUOTE_CHARACTERS)
    # Words of a different speaker are not quoted as words of the memory's speaker.
    is_own = first.speaker is memory.speaker
    quoted = f": “{quote}”" if is_own and not says_the_same(first.excerpt, memory.content) else ""
    paper.note(f"{joined((source, date), ', ')}{quoted}", indent=_INDENT)


def _render_components(paper: Paper, score: float, parts: dict[str, float]) -> None:
    names = {name: f"× {name[2:]}" if name.startswith("x_") else name for name in parts}
    rows = [(dim("score"), dim(f"{score:.4f}{_formula(parts)}"))]
    rows += [(dim(f"  {names[name]}"), dim(f"{value:.4f}")) for name, value in parts.items()]
    paper.table(rows, indent=_INDENT)


def _formula(parts: dict[str, float]) -> str:
    """Return the formula of a memory's score, or an empty string for a turn."""
    factors = " × ".join(name.removeprefix("x_") for name in parts if name.startswith("x_"))
    return f" = relevance{' × ' * bool(factors)}{factors}" if "relevance" in parts else ""


def _render_turn(paper: Paper, rank: int, hit: TurnHit) -> None:
    session = hit.session
    title = f"“{text.shorten(session.title, _TITLE_CHARACTERS)}”" if session.title else ""
    source = f"{session.tool} {short_session(session.native_id)}"
    place = joined((hit.confidence.value, source, hit.project, when(hit.turn.time), title))
    paper.line(bold(f"{rank:>2}"), "  ", dim(place), hang=_INDENT)
    speaker = speaker_name(hit.turn.speaker, hit.turn.author)
    if hit.turn.trust is session_module.Trust.UNTRUSTED:
        paper.framed(hit.excerpt, f"from {speaker} in {source}", indent=_INDENT)
    else:
        paper.line(Span(f"{speaker}:", "bold"), " ", hit.excerpt, indent=_INDENT)
    if hit.then_by:
        name = speaker_name(hit.then_by, None)
        paper.line(Span(f"then {name}:", "bold"), " ", hit.then, indent=_INDENT)


def render_beginning(paper: Paper) -> None:
    """Print the message that there are no memories. Also print the first commands to run."""
    paper.line(bold(EMPTY))
    paper.facts(
        (
            ("nacre ingest", "reads your agents' sessions on this machine"),
            ('nacre store "…"', "stores a memory"),
        ),
        indent=2,
    )


def render_nothing(paper: Paper, message: str) -> None:
    """Print the message that nothing was found, and a hint."""
    paper.line(bold(message))
    paper.note("Try other words, or fewer filters.", indent=2)


def render_span(paper: Paper, result: RecallResult) -> None:
    """Print the time filter. If the filter comes from the question, also print the option that turns it off."""
    if not result.span:
        return
    paper.blank()
    if result.time_words:
        paper.note(
            f"“{result.time_words}”: results {result.span} rank higher. To turn this off: --ignore-time"
        )
    else:
        paper.note(f"Only results {result.span}.")


def render_lanes(paper: Paper, result: RecallResult, *, explain: bool) -> None:
    """Print the search lanes that did not fully work, or all lanes if ``explain`` is set."""
    lanes: Sequence[Lane] = result.lanes if explain else result.degraded
    corrected = next(
        (lane.note for lane in result.lanes if lane.name == "spelling" and lane.note), None
    )
    if corrected and not explain:
        paper.blank()
        paper.note(f"spelling: {corrected}")
    if not lanes:
        return
    description = describe_lanes(lanes)
    paper.blank()
    took = f" · {result.took_ms:.0f} ms" if explain else ""
    paper.note(f"lanes: {description}{took}" if explain else f"degraded: {description}")


def describe_lanes(lanes: Sequence[Lane]) -> str:
    """Describe the states of search lanes."""
    return "; ".join(
        f"{lane.name} {lane.state.value}{f' ({lane.note})' if lane.note else ''}" for lane in lanes
    )
