"""``nacre show``: one memory in full, and its history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import (
    Record,
    count,
    kind_span,
    minute,
    short_id,
    short_session,
    speaker_name,
    split_session,
    stamp,
    when,
)
from nacre.cli.memories.memory import HIT_CHARACTERS, evidence_record, link_facts, memory_record, origin_of
from nacre.cli.operations import ask
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.text import passages
from nacre.values import memory as values_memory
from nacre.values import review
from nacre.values import session as values_session
from nacre.values.codec import plain, plain_fields

if TYPE_CHECKING:
    from nacre.code.values import Staleness
    from nacre.values.memory import Confirmation, Memory
    from nacre.values.recall import Evidence
    from nacre.views import CompanionView, LinkView, MemoryView, Step

_UNSETTLED = "not settled (inbox): no agent is given it unasked, until nacre edit --project says where it holds"


@command(
    "show",
    examples=["nacre show 5f0c2a4d", 'nacre show "Database of the billing service"', "nacre show 5f0c2a4d --history"],
)
@argument("look", "reference", metavar="ID")
@option("look", "session")
@option("look", "update", help="Do not count this as a use of the memory.")
@click.option("--history", "with_history", is_flag=True, help="What it superseded, what superseded it, when and why.")
@click.pass_obj
def show(run: Run, reference: str, session: str | None, update: bool, with_history: bool) -> None:
    """Show one memory with its evidence and links.

    ID is the memory's id, its beginning or end (four characters or more), or its subject.
    """
    if with_history:
        _show_history(run, reference)
        return

    view = ask(run, "look", reference=reference, update=update, session=session)
    vault = run.settings.shown_vault
    stale: Staleness = ask(run, "graph-stale", memory=view.memory.id, folder=str(Path.cwd()))
    record = {**_view_record(view, vault), "stale": stale.memories[0].confidence if stale.memories else 0.0}
    run.answer(record, lambda paper: render_memory(paper, view, vault, stale))


def _show_history(run: Run, reference: str) -> None:
    steps = ask(run, "history", reference=reference)
    run.answer({"history": [_step_record(step) for step in steps]}, lambda paper: _render_history(paper, steps))


def _view_record(view: MemoryView, vault: Path) -> Record:
    """One memory with its evidence, links and file."""
    memory = view.memory
    return {
        **memory_record(memory),
        **plain_fields(memory, ("valid", "author", "evergreen", "triggers", "suppressed_contexts", "claim", "extra")),
        "retired_reason": memory.retired.reason if memory.retired else None,
        "evidence": [evidence_record(item) for item in view.evidence],
        "confirmed": [_confirmation_record(one) for one in memory.confirmed],
        "links": [_link_record(link) for link in view.links],
        "path": str(vault / view.path) if view.path else None,
        "etag": view.etag,
        "doubt": view.doubt,
        "recall_count": view.usage.recall_count,
        "last_recalled": stamp(view.usage.last_recalled),
        "access_count": view.usage.access_count,
        "maturity": view.maturity.value,
        "quality": round(view.usage.quality, 4),
        "used_together": [
            {
                "id": item.memory.id,
                "subject": item.memory.subject,
                "weight": round(item.weight, 4),
                "sessions": item.sessions,
            }
            for item in view.together
        ],
    }


def _confirmation_record(one: Confirmation) -> Record:
    tool, session_id = split_session(one.session)
    return {"at": stamp(one.at), "session_id": session_id, "tool": tool, "turn_ids": list(one.turns)}


def _step_record(step: Step) -> Record:
    """One memory in a history."""
    return {
        **memory_record(step.memory),
        "from": step.since.isoformat(),
        "to": step.until.isoformat() if step.until else None,
        "reason": step.reason,
        "asked": step.is_asked,
    }


def _link_record(link: LinkView) -> Record:
    direction = "out" if link.is_outgoing else "in"
    return {
        "rel": link.rel, "id": link.other, "subject": link.subject, "direction": direction, "origin": link.origin,
        "reason": link.reason, "strength": round(link.strength, 4), "valid": plain(link.valid),
    }  # fmt: skip


def _render_history(paper: Paper, steps: Sequence[Step]) -> None:
    """A chain of memories, the oldest first: when each was true, what ended it and why."""
    for step in steps:
        memory = step.memory
        until = step.until.isoformat() if step.until else ("retired" if memory.retired else "today")
        mark = bold("▸ ") if step.is_asked else "  "
        paper.line(mark, dim(f"{step.since} to {until}  "), passages.shorten(memory.content, HIT_CHARACTERS), hang=4)
        paper.line(dim(joined((memory.kind.value, memory.subject, short_id(memory)))), indent=4)
        if step.superseded_by:
            reason = f": {step.reason}" if step.reason else ""
            paper.line(dim(f"superseded by {step.superseded_by[-8:]}{reason}"), indent=4)
    if len(steps) == 1:
        paper.line(dim("It superseded nothing, and nothing superseded it."), indent=2)


def render_memory(paper: Paper, view: MemoryView, vault: Path, stale: Staleness) -> None:
    """One memory in full."""
    memory = view.memory
    if memory.retired:
        reason = f": {memory.retired.reason}" if memory.retired.reason else ""
        paper.line(Span(f"Retired {minute(memory.retired.at)}{reason}", "yellow"))
    elif memory.superseded_by:
        since = f" since {memory.valid.until}" if memory.valid.until else ""
        paper.line(Span(f"Superseded by {memory.superseded_by[-8:]}{since}", "yellow"))
    for one in stale.memories:
        told = f"May be out of date ({one.confidence:.2f}): {one.why}"
        paper.line(Span(told, "yellow"), hang=2)
    if view.doubt and not stale.memories:
        paper.line(Span(f"May be out of date: {view.doubt}", "yellow"), hang=2)
    if memory.trust is values_session.Trust.UNTRUSTED:
        paper.framed(f"{memory.subject}\n{memory.content}", origin_of(memory))
    else:
        paper.line(bold(memory.subject))
        paper.blank()
        paper.body(memory.content)
    paper.blank()
    paper.facts(_facts(view, vault))
    if view.evidence:
        paper.heading("Evidence")
        for item in view.evidence:
            render_evidence(paper, item, memory)
    if view.links:
        paper.heading("Links")
        paper.table([_link_row(link) for link in view.links], indent=2)
    if view.together:
        _render_together(paper, view.together)


def _by_model(memory: Memory, how: str) -> str:
    """Which model made a memory of several (``merged``) or brought it up to date (``amended``), and why."""
    told = memory.extra.get(how)
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
        ("triggers", ", ".join(memory.triggers)),
        ("evergreen", "yes, it never fades" if memory.evergreen else ""),
        ("left out of", ", ".join(memory.suppressed_contexts)),
        ("expiry", memory.expiry.value if memory.expiry is not values_memory.Expiry.PERMANENT else ""),
        ("expires on", str(memory.expires_on or "")),
        ("scope", memory.scope.value if memory.scope is not values_memory.Scope.PRIVATE else ""),
        ("created", minute(memory.created)),
        ("updated", minute(updated)),
        ("valid", f"{valid[0] or '…'} to {valid[1] or '…'}" if any(valid) else ""),
        ("said by", speaker_name(memory.speaker, memory.author)),
        ("trust", memory.trust.value if memory.trust.value != "trusted" else ""),
        ("confidence", memory.confidence.value),
        ("merged", _by_model(memory, "merged")),
        ("amended", _by_model(memory, "amended")),
        ("key", memory.canonical_key or ""),
        ("claim", joined((memory.claim.key, memory.claim.predicate, memory.claim.object), " ") if memory.claim else ""),
        ("session", memory.source.session or ""),
        ("recalled", used if view.usage.recall_count else ""),
        ("maturity", f"{view.maturity.value} ({uses})" if view.usage.access_count else ""),
        ("quality", f"{view.usage.quality:.2f}" if view.usage.quality != review.NEUTRAL_QUALITY else ""),
        ("file", str(vault / view.path) if view.path else ""),
    ]


def render_evidence(paper: Paper, item: Evidence, memory: Memory) -> None:
    """A turn that shows a memory: who said it, where and when, and its words."""
    tool, _, native_id = item.session_id.partition(":")
    said_by = speaker_name(item.speaker, memory.author if item.speaker is memory.speaker else None)
    paper.line(
        bold(said_by), dim(f", {joined((f'{tool} {short_session(native_id)}', minute(item.time)), ', ')}"), indent=2
    )
    paper.line(item.excerpt, indent=4)


def _link_row(link: LinkView) -> tuple[str, Span, str]:
    relation = link.rel if link.is_outgoing else f"← {link.rel}"
    subject = link.subject or f"(unknown: {link.other})"
    facts = link_facts(link)
    return relation, dim(link.other[-8:]), f"{subject} ({facts})" if facts else subject


def _render_together(paper: Paper, together: Sequence[CompanionView]) -> None:
    """The memories that are used together with one, and how often they were."""
    paper.heading("Used or learned together with")
    rows = [
        (f"{item.weight:.2f}", dim(short_id(item.memory)), count(item.sessions, "time"), item.memory.subject)
        for item in together
    ]
    paper.table(rows, indent=2)
