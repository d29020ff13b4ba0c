"""``nacre extract``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.formats import Record, count, kind_span, stamp, tokens_record
from nacre.cli.options import readable
from nacre.cli.paper import Paper, bold, dim, joined, printable
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.extraction import propose, requests
from nacre.home.territory import territory
from nacre.platform import named_files
from nacre.values import memory
from nacre.values import session as values_session

if TYPE_CHECKING:
    from nacre.extraction.by_model.overtaken import Overtaken
    from nacre.extraction.propose import Proposal
    from nacre.extraction.requests import ProposalRequest
    from nacre.values.candidate import Candidate


_NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@command(
    "extract",
    examples=[
        "nacre extract session.jsonl",
        "nacre extract --session 7f3a --model anthropic:claude-haiku-5-5",
        "cat meeting.txt | nacre extract - --markdown --output meeting.md",
    ],
)
@argument("extract-propose", "path", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@option("extract-propose", "session", help="One session: of PATH, or without PATH of those that were read already.")
@option("extract-propose", "model", help="The language model, as provider:model; none extracts by rules.")
@click.option("--whole", is_flag=True, help="Show the model each session as a whole, however long it is.")
@click.option("--chunk", "in_chunks", is_flag=True, help="Show the model parts of sessions only.")
@option(
    "extract-propose", "owner_only", "--mine", "--user-only",
    help="Show the model what you said, and nothing of the agent's.",
)  # fmt: skip
@option("extract-propose", "related", help="Do not show the model what is known of the topic.")
@click.option("--markdown", is_flag=True, help="Answer in Markdown.")
@click.option("--output", type=_NEW_FILE, help="Write the answer there: Markdown, or JSON with --json.")
@click.pass_obj
def extract(  # noqa: PLR0913 - one parameter an option
    run: Run, path: Path | None, session: str | None, model: str | None, whole: bool, in_chunks: bool,
    owner_only: bool, related: bool, markdown: bool, output: Path | None,
) -> None:  # fmt: skip
    """Show what would be learned from a transcript, and store nothing.

    PATH is a transcript, or - for standard input. The language model that is set for extraction does it, in the
    foreground; without one the rules do, and where it fails they do what it left.
    """
    if whole and in_chunks:
        raise click.UsageError("a session is shown as a whole or in chunks: give one of --whole and --chunk")
    if markdown and run.as_json:
        raise click.UsageError("the answer is Markdown or JSON: give one of --markdown and --json")
    if path is None and not session:
        raise click.UsageError("say what to extract from: a transcript, - for standard input, or --session")
    if output:
        named_files.refuse_named(output, territory(run.settings))
        if output.exists():
            raise click.UsageError(f"{output} exists already: name another file, or remove it")
    way = requests.Way.WHOLE if whole else requests.Way.CHUNKS if in_chunks else requests.Way.FITTING
    with readable(path) if path else nullcontext() as file, progress.shown(run) as notify:
        wanted = requests.ProposalRequest(
            path=file, session=session, model=model, way=way, owner_only=owner_only, related=related
        )
        found = propose.propose(run.home, wanted, notify or (lambda _: None))
    run.warnings += _warnings(found)
    _answer(run, found, wanted, output, markdown=markdown)


def _answer(
    run: Run, found: list[Proposal], wanted: ProposalRequest, output: Path | None, *, markdown: bool
) -> None:  # fmt: skip
    record = _proposals_record(found)
    if output:
        text = json.dumps(record, ensure_ascii=False, indent=1) + "\n" if run.as_json else _as_markdown(found)
        with named_files.named_file(output, territory(run.settings)) as file:
            file.write(text.encode("utf-8", "replace"))
        number = sum(len(one.memories) for one in found)
        run.answer(
            {"path": str(output), "memories": number},
            lambda paper: paper.line(f"Wrote {count(number, 'memory', 'memories')} to {output}"),
        )
    elif markdown:
        run.answer(record, lambda paper: paper.verbatim(_as_markdown(found).removesuffix("\n")))
    else:
        run.answer(record, lambda paper: _render_proposals(paper, found, is_asked_for_rules=wanted.model == "none"))


def _warnings(found: list[Proposal]) -> list[str]:
    """What a model did not do, once."""
    failed = [one.asked for one in found if one.asked and one.asked.by_rules]
    told = dict.fromkeys((one.problem or "the model gave no answer", one.hint) for one in failed)
    parts = sum(one.by_rules for one in failed)
    return [f"{problem}; {count(parts, 'part')} went by rules{f' ({hint})' if hint else ''}" for problem, hint in told]


def _proposals_record(found: Sequence[Proposal]) -> Record:
    """Every session with the memories that would be stored."""
    return {"sessions": [_session_record(one) for one in found], "memories": sum(len(one.memories) for one in found)}


def _session_record(found: Proposal) -> Record:
    asked = found.asked
    told: Record | None = None
    if asked:
        told = {
            "model": asked.model, "whole": asked.is_whole, "parts": asked.parts, "by_rules": asked.by_rules,
            "calls": asked.calls, "tokens": tokens_record(asked.tokens), "proposed": asked.proposed,
            "repeated": asked.repeated, "dropped": dict(asked.dropped), "problem": asked.problem, "hint": asked.hint,
        }  # fmt: skip
    session = found.session
    return {
        "session": session.id, "session_id": session.native_id, "tool": session.tool, "extraction": told,
        "started": stamp(session.started), "cwd": session.cwd,
        "memories": [_candidate_record(one) for one in found.memories],
        "candidates": [
            {**_candidate_record(one), "why": one.held.value, "detail": one.detail or None, "score": one.score}
            for one in found.candidates if one.held
        ],
        "overtaken": [
            {"id": one.memory.id, "content": one.memory.content, "now": one.now or None, "quote": one.quote}
            for one in _overtaken(found)
        ],
    }  # fmt: skip


def _overtaken(found: Proposal) -> Sequence[Overtaken]:
    """The known memories that the session shows to be over, or to say something else now."""
    return found.asked.overtaken if found.asked else ()


def _candidate_record(one: Candidate) -> Record:
    return {
        "kind": one.kind.value, "subject": one.subject, "content": one.content, "importance": one.importance,
        "expiry": one.expiry.value, "tags": list(one.tags), "speaker": one.speaker.value, "trust": one.trust.value,
        "confidence": one.confidence.value, "confidence_score": one.confidence_score,
        "canonical_key": one.canonical_key, "turn_ids": list(one.turns),
    }  # fmt: skip


def _render_proposals(paper: Paper, found: Sequence[Proposal], *, is_asked_for_rules: bool) -> None:
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
        for gone in _overtaken(one):
            paper.blank()
            paper.line(bold("changed" if gone.now else "over"), " ", gone.memory.content, hang=2)
            if gone.now:
                paper.line(bold("now"), " ", gone.now, indent=2)
            paper.line(dim(f"“{gone.quote}”"), indent=2)
    paper.blank()
    rules = "" if is_asked_for_rules or any(one.asked for one in found) else "; no language model is set: nacre setup"
    paper.line(dim(f"Nothing was stored{rules}."))


def _as_markdown(found: Sequence[Proposal]) -> str:
    """Every session with the memories that would be stored, in Markdown."""
    lines: list[str] = []
    for one in found:
        lines += [f"# {one.session.id}", "", _how(one), ""]
        for candidate in one.candidates:
            lines += [f"## {candidate.subject}", "", candidate.content, "", f"- kind: {candidate.kind.value}"]
            lines += [f"- {fact}" for fact in _facts(candidate) if fact]
            lines += ["- turns: " + ", ".join(candidate.turns), ""]
        for gone in _overtaken(one):
            told = f"Changed: {gone.memory.content} Now: {gone.now}" if gone.now else f"Over: {gone.memory.content}"
            lines.append(f"{told} (“{gone.quote}”)\n")
    return printable("\n".join(lines).rstrip() + "\n")


def _facts(one: Candidate) -> tuple[str | None, ...]:
    return (
        f"importance {one.importance}", one.expiry.value if one.expiry is not memory.Expiry.PERMANENT else None,
        f"said by the {one.speaker.value}", ", ".join(one.tags) or None,
        f"waits: {one.detail or one.held.value}" if one.held else None,
    )  # fmt: skip


def _how(found: Proposal) -> str:
    """How many memories, and what was done for them."""
    if found.session.kind is not values_session.SessionKind.MAIN:
        return f"no memories: a session of kind {found.session.kind.value} yields none"
    told = count(len(found.memories), "memory", "memories") if found.memories else "no memories"
    waiting = len(found.candidates) - len(found.memories)
    told += f" and {count(waiting, 'candidate')}" if waiting else ""
    asked = found.asked
    if asked is None or asked.by_rules == asked.parts:
        return f"{told}, by rules"
    shown = "as a whole" if asked.is_whole else f"in {count(asked.parts, 'part')}"
    read = asked.tokens.input + asked.tokens.cached + asked.tokens.written
    told = f"{told}, by {asked.model} {shown}: {count(asked.calls, 'call')}, {read:,} + {asked.tokens.output:,} tokens"
    dropped = ", ".join(f"{number} {reason}" for reason, number in sorted(asked.dropped.items()))
    return f"{told}; not taken: {dropped}" if dropped else told
