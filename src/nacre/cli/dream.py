"""``nacre dream``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from nacre.base import named_files
from nacre.base.text import one_line, shorten
from nacre.cli import output as progress
from nacre.cli.command import Paper, Run, bold, command, dim, joined, printable
from nacre.cli.hits import LINE_CHARACTERS, memory_record
from nacre.cli.operations import ask, perform
from nacre.cli.options import (
    SHORT_ID,
    Record,
    argument,
    count,
    day,
    find_project,
    kind_span,
    option,
    readable,
    short_id,
    stamp,
    tokens_record,
)
from nacre.home.home import territory
from nacre.learn import learn, requests
from nacre.review import consolidate as dreams
from nacre.values import memory, models
from nacre.values import session as values_session

if TYPE_CHECKING:
    from nacre.learn.checks import Overtaken
    from nacre.learn.learn import Proposal
    from nacre.learn.requests import ProposalRequest
    from nacre.review.consolidate import DreamEstimate, DreamPlan, DreamReport, Promotion, Step
    from nacre.review.dream import Alike
    from nacre.values.memory import Candidate

_SHOWN = 12
_PAGES_SHOWN = 3
_UNLINK = dreams.DreamAction.UNLINK
_HEADINGS = {
    dreams.DreamAction.MERGE: "Said more than once, one stays",
    dreams.DreamAction.SUPERSEDE: "Ended by what was said later",
    dreams.DreamAction.EXPIRE: "Meant for a while",
    dreams.DreamAction.FORGET: "Never asked for",
    dreams.DreamAction.UNLINK: "Links that lead nowhere",
    dreams.DreamAction.SHELVE: "In the inbox, and nobody could say where it holds",
    dreams.DreamAction.FILE: "From the inbox into its project",
    dreams.DreamAction.LINK: "Belongs together",
    dreams.DreamAction.PAGE: "Pages",
    dreams.DreamAction.JOIN: "Projects that are one",
}


@command(
    "dream",
    examples=[
        "nacre dream --dry-run",
        "nacre dream --tier 2",
        "nacre dream --yes --project hivelog --most 100",
    ],
)
@option("dream", "project")
@option("dream", "most")
@option("dream", "tier")
@option("dream", "writer", help="Do not ask the writer (from tier 2 on).")
@option("dream", "backfill")
@click.option(
    "--estimate",
    is_flag=True,
    help="Show what the writer would cost (from tier 2 on); asks no model.",
)
@click.option("--alike", is_flag=True, help="Only list similar memories; asks no model.")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def dream(
    run: Run, /, estimate: bool, alike: bool, dry_run: bool, yes: bool, **wanted: Any
) -> None:
    """Tidy what is remembered: end what is over, make one of what says the same.

    It shows its plan first. What ends is retired, not deleted, in one operation that nacre undo takes back; a page in
    the vault's dreams folder tells what was done. A home's first dream that nobody looks at only plans.

    Rules alone see only what is written alike. With --tier 2 your writer makes one of what says the same in other
    words, and names what a later memory has ended; code and a second look check it, and what fails waits in nacre
    review.

    With --tier 3 what waits in the inbox goes into the project that its session or its own words name, the pages of
    projects tell what was done lately and what was decided, and a project that is another one becomes a part of it.
    Your writer also fills these pages and your profile, and links memories that belong together.
    """
    wanted["project"] = find_project(run, wanted["project"])
    if estimate:
        found: DreamEstimate = ask(
            run, "dream-estimate", project=wanted["project"], tier=wanted["tier"]
        )
        run.answer(dataclasses.asdict(found), lambda paper: _render_estimate(paper, found))
        return
    if alike:
        groups: Alike = ask(run, "alike", project=wanted["project"])
        run.answer(_alike_record(groups), lambda paper: _render_alike(paper, groups))
        return
    if not dry_run:
        run.settings.actor.require_owner("nacre dream")
    asks = run.is_interactive and not (yes or dry_run or run.as_json)
    if not (asks or yes or dry_run):
        raise click.UsageError(
            "not interactive: pass --yes, or --dry-run to see the plan", click.get_current_context()
        )
    if asks and wanted["tier"] > 1 and wanted["writer"]:
        wanted["writer"] = _lets_writer_be_asked(run, wanted["project"], wanted["tier"])
    if dry_run or asks:
        plan = _plan(run, **wanted)
        if dry_run:
            run.answer(_plan_record(plan), lambda paper: _render_plan(paper, plan))
            return
        run.show(lambda paper: _render_plan(paper, plan))
        if not (plan.steps or plan.settled or plan.refused):
            return
        if plan.steps:
            run.confirm("Do it?")
        wanted["steps"] = tuple(step.key for step in plan.steps)
    with progress.shown(run) as notify:
        report: DreamReport = perform(run, "dream", notify, **wanted, first=asks)
    run.answer(_record(report), lambda paper: _render(paper, report, is_seen=asks))


def _alike_record(found: Alike) -> Record:
    return {
        "groups": [[memory_record(one) for one in group] for group in found.groups],
        "total": found.total,
    }


def _render_alike(paper: Paper, found: Alike) -> None:
    if not found.groups:
        paper.line("No memories are similar.")
    for group in found.groups:
        paper.heading(
            f"{group[0].kind.value}{f' · {group[0].project}' if group[0].project else ''}"
        )
        for one in group:
            text = shorten(one_line(one.content), LINE_CHARACTERS)
            paper.line(text, dim(f"  {day(one.created)} · {short_id(one)}"), indent=2, hang=2)
    if found.total > len(found.groups):
        paper.line(dim(f"and {count(found.total - len(found.groups), 'group')} more"))
    if found.groups:
        paper.blank()
        paper.line(
            dim(
                "Similar is not the same: nacre retire ID retires a memory that another one covers."
            )
        )


def _plan(run: Run, **asked: Any) -> DreamPlan:
    if asked["tier"] == 1:  # which takes no time
        return cast("DreamPlan", ask(run, "dream-plan", **asked))
    with progress.shown(run) as notify:
        return cast("DreamPlan", perform(run, "dream-plan", notify, **asked))


def _lets_writer_be_asked(run: Run, project: str | None, tier: int) -> bool:
    """Whether there is something to ask the writer, and the person wants it."""
    found: DreamEstimate = ask(run, "dream-estimate", project=project, tier=tier)
    run.show(lambda paper: _render_estimate(paper, found))
    return bool(found.calls) and click.confirm("Ask it?", err=True)


def _render_estimate(paper: Paper, found: DreamEstimate) -> None:
    if not found.calls:
        paper.line(f"Nothing to ask a writer: {found.note or 'it has seen all of it'}.")
        if found.note:
            paper.line(dim("nacre dream --alike lists similar memories"))
        return
    price = "" if found.cost is None else f", {models.dollars(found.cost)}"
    groups = f"{count(found.memories, 'memory', 'memories')} in {count(found.clusters, 'group')} look alike"
    asked = (
        (found.clusters, groups),
        (found.pages, f"{count(found.pages, 'page')} with something new"),
        (found.pairs, f"{count(found.pairs, 'pair')} that nothing connects"),
    )
    paper.line(
        f"{'; '.join(told for number, told in asked if number)}. {found.model} "
        f"would be asked in {count(found.calls, 'call')} at most: some {round(found.tokens, -2):,} tokens{price}."
    )
    if found.unasked:
        paper.line(dim(f"{found.unasked:,} more for another time"))


def _render_plan(paper: Paper, plan: DreamPlan) -> None:
    if not (plan.steps or plan.refused or plan.note):
        _promotions(paper, plan.promotions)
        paper.line(
            f"Nothing to do: {count(plan.seen, 'memory', 'memories')} checked, none is expired, unused or duplicate."
        )
        for told in _remarks(plan):
            paper.line(dim(told))
        return
    for action, told in _HEADINGS.items():
        steps = [step for step in plan.steps if step.action is action]
        if steps:
            paper.heading(f"{told}: {sum(len(step.ends or step.links) or 1 for step in steps):,}")
            _steps(paper, steps, dict(plan.texts))
    _promotions(paper, plan.promotions)
    paper.blank()
    dropped = f", and {count(plan.dropped, 'link')} dropped" if plan.dropped else ""
    paper.line(f"{plan.ending:,} of {count(plan.seen, 'memory', 'memories')} would end{dropped}.")
    for told in _remarks(plan):
        paper.line(dim(told))


def _remarks(plan: DreamPlan) -> Iterator[str]:
    """What is not done, and why."""
    if plan.unfiled:
        yield f"{count(len(plan.unfiled), 'memory', 'memories')} more in the inbox: nothing says for which project"
    if plan.brought_back:
        yield f"left: {count(plan.brought_back, 'memory', 'memories')} that a dream ended, and you brought back"
    if plan.refused:
        yield f"{count(len(plan.refused), 'proposal')} of the writer's would not be followed: nacre review"
    if plan.unasked:
        yield f"{plan.unasked:,} more to ask the writer about another time"
    if plan.note:
        yield f"Writer: {plan.note}"
    if plan.put_off:
        why = f"one dream ends {plan.most:,} memories at most (--most), the first one with a writer only plans"
        yield f"{count(len(plan.put_off), 'step')} more for another time: {why}"


def _steps(paper: Paper, steps: Sequence[Step], texts: Mapping[str, str]) -> None:
    for step in steps[:_SHOWN]:
        stays = (step.into[-SHORT_ID:],) if step.into else ()
        ends = ", ".join(one[-SHORT_ID:] for one in step.ends)
        to = (one[-SHORT_ID:] for one in step.links if step.action is dreams.DreamAction.LINK)
        named = " → ".join(filter(None, (ends, *stays, *to, step.project if step.into else "")))
        if step.action is dreams.DreamAction.JOIN:
            named = f"→ {step.project}"
        paper.line(bold(step.subject), dim(f"  {named}  {step.why}"), indent=2, hang=2)
        if step.action is dreams.DreamAction.PAGE:
            for line in filter(None, step.words.splitlines()) if len(steps) <= _PAGES_SHOWN else ():
                paper.line(dim(line), indent=4, hang=2)
            continue
        if step.action is dreams.DreamAction.LINK:
            paper.line(
                f"{step.words}  {'; '.join(texts.get(one, one) for one in step.links)}",
                indent=4,
                hang=2,
            )
            continue
        if step.words:
            paper.line(f"now: {' '.join(step.words.split())}", indent=4, hang=2)
        for told, one in (
            ("stays" if not step.words else "was", step.into),
            *(("ends", one) for one in step.ends),
        ):
            if one and one in texts:
                paper.line(dim(f"{told}: {texts[one]}"), indent=4, hang=2)
    if len(steps) > _SHOWN:
        paper.line(dim(f"and {len(steps) - _SHOWN:,} more"), indent=2)


def _promotions(paper: Paper, promotions: Sequence[Promotion]) -> None:
    """Why pages are written, or not."""
    if promotions:
        paper.heading("Projects with new sessions")
    for one in promotions:
        outcome = f"left as it is: {'; '.join(one.failed)}" if one.failed else "worth its page"
        paper.line(
            bold(one.project),
            f"  {count(one.sessions, 'session')}, score {one.score:.2f}: {outcome}",
            indent=2,
            hang=2,
        )
        signals = ", ".join(f"{name} {getattr(one, name):.2f}" for name in dreams.SIGNALS)
        paper.line(dim(signals), indent=4, hang=2)


def _render(paper: Paper, report: DreamReport, *, is_seen: bool) -> None:
    if not is_seen:
        _render_plan(paper, report.plan)
    if report.is_first and report.plan.steps:
        paper.line(
            "Nothing was changed: a first dream only plans. The next one does it; nacre dream --dry-run shows it."
        )
    elif report.operation:
        paper.line(bold("Done: "), f"{_done(report)}. {report.diary} in the vault tells which.")
        paper.line(dim(f"nacre undo {report.operation[-8:]} takes it back"))
    for step, why in report.left:
        paper.line(dim(f"left: {step.subject}: {why}"))


def _done(report: DreamReport) -> str:
    """What was done, in numbers."""
    left = [step for step, _ in report.left]
    done = [step for step in report.plan.steps if step not in left]
    ended = sum(len(step.ends) for step in done)
    numbers = (
        (
            sum(len(step.links) for step in done if step.action is _UNLINK),
            "link",
            "links",
            "dropped",
        ),
        (sum(step.action is dreams.DreamAction.LINK for step in done), "link", "links", "drawn"),
        (
            sum(step.action is dreams.DreamAction.FILE for step in done),
            "memory",
            "memories",
            "filed",
        ),
        (sum(step.action is dreams.DreamAction.PAGE for step in done), "page", "pages", "written"),
        (
            sum(step.action is dreams.DreamAction.JOIN for step in done),
            "project",
            "projects",
            "joined",
        ),
    )
    more = [f"{count(number, one, many)} {what}" for number, one, many, what in numbers if number]
    return ", ".join(
        [*([f"{count(ended, 'memory', 'memories')} ended"] if ended or not more else []), *more]
    )


def _plan_record(plan: DreamPlan) -> Record:
    return {
        "steps": [_step(step) for step in plan.steps],
        "put_off": [_step(step) for step in plan.put_off],
        "refused": [{**_step(step), "reason": why} for step, why in plan.refused],
        "texts": dict(plan.texts),
        "seen": plan.seen,
        "most": plan.most,
        "ending": plan.ending,
        "unasked": plan.unasked,
        "note": plan.note,
        "brought_back": plan.brought_back,
        "promotions": [dataclasses.asdict(one) for one in plan.promotions],
        "unfiled": list(plan.unfiled or ()),
    }


def _step(step: Step) -> Record:
    return {
        "key": step.key,
        "action": str(step.action),
        "ends": list(step.ends),
        "into": step.into,
        "subject": step.subject,
        "why": step.why,
        "words": step.words or None,
        "by": step.by or None,
        "project": step.project or None,
        "links": list(step.links),
    }


def _record(report: DreamReport) -> Record:
    return _plan_record(report.plan) | {
        "operation": report.operation,
        "diary": report.diary,
        "first": report.is_first,
        "left": [{**_step(step), "reason": why} for step, why in report.left],
    }


# ----------------------------------------------------------------------------
# ``nacre extract``.


_NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@command(
    "extract",
    examples=[
        "nacre extract session.jsonl",
        "nacre extract --session 7f3a --model anthropic:claude-haiku-5-5",
        "cat meeting.txt | nacre extract - --markdown --output meeting.md",
    ],
)
@argument(
    "extract-propose",
    "path",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@option(
    "extract-propose",
    "session",
    help="One session: of PATH, or without PATH of those that were read already.",
)
@option(
    "extract-propose",
    "model",
    help="The language model, as provider:model; none extracts by rules.",
)
@click.option(
    "--whole", is_flag=True, help="Show the model each session as a whole, however long it is."
)
@click.option("--chunk", "in_chunks", is_flag=True, help="Show the model parts of sessions only.")
@option(
    "extract-propose",
    "owner_only",
    "--mine",
    "--user-only",
    help="Show the model what you said, and nothing of the agent's.",
)
@option("extract-propose", "related", help="Do not show the model what is known of the topic.")
@click.option("--markdown", is_flag=True, help="Answer in Markdown.")
@click.option(
    "--output", type=_NEW_FILE, help="Write the answer there: Markdown, or JSON with --json."
)
@click.pass_obj
def extract(  # noqa: PLR0913 - one parameter an option
    run: Run,
    path: Path | None,
    session: str | None,
    model: str | None,
    whole: bool,
    in_chunks: bool,
    owner_only: bool,
    related: bool,
    markdown: bool,
    output: Path | None,
) -> None:
    """Show what would be learned from a transcript, and store nothing.

    PATH is a transcript, or - for standard input. The language model that is set for extraction does it, in the
    foreground; without one the rules do, and where it fails they do what it left.
    """
    if whole and in_chunks:
        raise click.UsageError(
            "a session is shown as a whole or in chunks: give one of --whole and --chunk"
        )
    if markdown and run.as_json:
        raise click.UsageError("the answer is Markdown or JSON: give one of --markdown and --json")
    if path is None and not session:
        raise click.UsageError(
            "say what to extract from: a transcript, - for standard input, or --session"
        )
    if output:
        named_files.refuse_named(output, territory(run.settings))
        if output.exists():
            raise click.UsageError(f"{output} exists already: name another file, or remove it")
    way = (
        requests.Way.WHOLE if whole else requests.Way.CHUNKS if in_chunks else requests.Way.FITTING
    )
    with readable(path) if path else nullcontext() as file, progress.shown(run) as notify:
        wanted = requests.ProposalRequest(
            path=file, session=session, model=model, way=way, owner_only=owner_only, related=related
        )
        found = learn.propose(run.home, wanted, notify or (lambda _: None))
    run.warnings += _warnings(found)
    _answer(run, found, wanted, output, markdown=markdown)


def _answer(
    run: Run, found: list[Proposal], wanted: ProposalRequest, output: Path | None, *, markdown: bool
) -> None:
    record = _proposals_record(found)
    if output:
        text = (
            json.dumps(record, ensure_ascii=False, indent=1) + "\n"
            if run.as_json
            else _as_markdown(found)
        )
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
        run.answer(
            record,
            lambda paper: _render_proposals(
                paper, found, is_asked_for_rules=wanted.model == "none"
            ),
        )


def _warnings(found: list[Proposal]) -> list[str]:
    """What a model did not do, once."""
    failed = [one.asked for one in found if one.asked and one.asked.by_rules]
    told = dict.fromkeys((one.problem or "the model gave no answer", one.hint) for one in failed)
    parts = sum(one.by_rules for one in failed)
    return [
        f"{problem}; {count(parts, 'part')} went by rules{f' ({hint})' if hint else ''}"
        for problem, hint in told
    ]


def _proposals_record(found: Sequence[Proposal]) -> Record:
    """Every session with the memories that would be stored."""
    return {
        "sessions": [_session_record(one) for one in found],
        "memories": sum(len(one.memories) for one in found),
    }


def _session_record(found: Proposal) -> Record:
    asked = found.asked
    told: Record | None = None
    if asked:
        told = {
            "model": asked.model,
            "whole": asked.is_whole,
            "parts": asked.parts,
            "by_rules": asked.by_rules,
            "calls": asked.calls,
            "tokens": tokens_record(asked.tokens),
            "proposed": asked.proposed,
            "repeated": asked.repeated,
            "dropped": dict(asked.dropped),
            "problem": asked.problem,
            "hint": asked.hint,
        }
    session = found.session
    return {
        "session": session.id,
        "session_id": session.native_id,
        "tool": session.tool,
        "extraction": told,
        "started": stamp(session.started),
        "cwd": session.cwd,
        "memories": [_candidate_record(one) for one in found.memories],
        "candidates": [
            {
                **_candidate_record(one),
                "why": one.held.value,
                "detail": one.detail or None,
                "score": one.score,
            }
            for one in found.candidates
            if one.held
        ],
        "overtaken": [
            {
                "id": one.memory.id,
                "content": one.memory.content,
                "now": one.now or None,
                "quote": one.quote,
            }
            for one in _overtaken(found)
        ],
    }


def _overtaken(found: Proposal) -> Sequence[Overtaken]:
    """The known memories that the session shows to be over, or to say something else now."""
    return found.asked.overtaken if found.asked else ()


def _candidate_record(one: Candidate) -> Record:
    return {
        "kind": one.kind.value,
        "subject": one.subject,
        "content": one.content,
        "importance": one.importance,
        "expiry": one.expiry.value,
        "tags": list(one.tags),
        "speaker": one.speaker.value,
        "trust": one.trust.value,
        "confidence": one.confidence.value,
        "confidence_score": one.confidence_score,
        "canonical_key": one.canonical_key,
        "turn_ids": list(one.turns),
    }


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
    rules = (
        ""
        if is_asked_for_rules or any(one.asked for one in found)
        else "; no language model is set: nacre setup"
    )
    paper.line(dim(f"Nothing was stored{rules}."))


def _as_markdown(found: Sequence[Proposal]) -> str:
    """Every session with the memories that would be stored, in Markdown."""
    lines: list[str] = []
    for one in found:
        lines += [f"# {one.session.id}", "", _how(one), ""]
        for candidate in one.candidates:
            lines += [
                f"## {candidate.subject}",
                "",
                candidate.content,
                "",
                f"- kind: {candidate.kind.value}",
            ]
            lines += [f"- {fact}" for fact in _facts(candidate) if fact]
            lines += ["- turns: " + ", ".join(candidate.turns), ""]
        for gone in _overtaken(one):
            told = (
                f"Changed: {gone.memory.content} Now: {gone.now}"
                if gone.now
                else f"Over: {gone.memory.content}"
            )
            lines.append(f"{told} (“{gone.quote}”)\n")
    return printable("\n".join(lines).rstrip() + "\n")


def _facts(one: Candidate) -> tuple[str | None, ...]:
    return (
        f"importance {one.importance}",
        one.expiry.value if one.expiry is not memory.Expiry.PERMANENT else None,
        f"said by the {one.speaker.value}",
        ", ".join(one.tags) or None,
        f"waits: {one.detail or one.held.value}" if one.held else None,
    )


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
