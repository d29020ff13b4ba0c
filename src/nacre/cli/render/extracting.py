"""What extraction would make of sessions, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, bold, dim, joined, printable
from nacre.cli.render.words import count, kind_span
from nacre.values.memory import Expiry
from nacre.values.session import SessionKind

if TYPE_CHECKING:
    from nacre.extraction.propose import Proposal
    from nacre.values.candidate import Candidate


def render_proposals(paper: Paper, found: Sequence[Proposal], *, is_asked_for_rules: bool) -> None:
    """Every session with the memories that would be stored."""
    for at, one in enumerate(found):
        if at:
            paper.blank()
        paper.line(bold(one.session.id), "  ", dim(_how(one)))
        for candidate in one.candidates:
            paper.blank()
            paper.line(kind_span(candidate.kind), " ", bold(candidate.subject), hang=2)
            paper.body(candidate.content, indent=2)
            paper.line(dim(joined(_facts(candidate))), indent=2)
    paper.blank()
    rules = "" if is_asked_for_rules or any(one.asked for one in found) else "; no language model is set: nacre setup"
    paper.line(dim(f"Nothing was stored{rules}."))


def as_markdown(found: Sequence[Proposal]) -> str:
    """Every session with the memories that would be stored, in Markdown."""
    lines: list[str] = []
    for one in found:
        lines += [f"# {one.session.id}", "", _how(one), ""]
        for candidate in one.candidates:
            lines += [f"## {candidate.subject}", "", candidate.content, "", f"- kind: {candidate.kind.value}"]
            lines += [f"- {fact}" for fact in _facts(candidate) if fact]
            lines += ["- turns: " + ", ".join(candidate.turns), ""]
    return printable("\n".join(lines).rstrip() + "\n")


def _facts(one: Candidate) -> tuple[str | None, ...]:
    return (
        f"importance {one.importance}", one.expiry.value if one.expiry is not Expiry.PERMANENT else None,
        f"said by the {one.speaker.value}", ", ".join(one.tags) or None,
    )  # fmt: skip


def _how(found: Proposal) -> str:
    """How many memories, and what was done for them."""
    if found.session.kind is not SessionKind.MAIN:
        return f"no memories: a session of kind {found.session.kind.value} yields none"
    told = count(len(found.candidates), "memory", "memories") if found.candidates else "no memories"
    asked = found.asked
    if asked is None or asked.by_rules == asked.parts:
        return f"{told}, by rules"
    shown = "as a whole" if asked.is_whole else f"in {count(asked.parts, 'part')}"
    read = asked.tokens.input + asked.tokens.cached + asked.tokens.written
    told = f"{told}, by {asked.model} {shown}: {count(asked.calls, 'call')}, {read:,} + {asked.tokens.output:,} tokens"
    dropped = ", ".join(f"{number} {reason}" for reason, number in sorted(asked.dropped.items()))
    return f"{told}; not taken: {dropped}" if dropped else told
