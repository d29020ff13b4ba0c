"""``nacre recall``."""

from __future__ import annotations

import contextlib
import sys
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base import text
from nacre.base.lazy import load
from nacre.base.times import shown_minute
from nacre.cli import hits, operations
from nacre.cli.command import TEXT, Paper, Run, Span, bold, command, dim
from nacre.cli.options import (
    LANES,
    NO_DAEMON,
    Record,
    argument,
    limit_option,
    option,
    options,
    stamp,
    tie_hint,
    with_memory_filter,
)
from nacre.context import categories, hooks
from nacre.home import location
from nacre.home.home import territory
from nacre.recall import deep
from nacre.setup import chores as queue
from nacre.values import context as values_context
from nacre.values import recall as deep_recall
from nacre.values.codec import plain
from nacre.values.memory import Actor, Face, acting

if TYPE_CHECKING:
    from nacre.setup.chores import Chore
    from nacre.values.context import ContextBlock, LeftOut
    from nacre.values.recall import DeepResult, Filter, RecallResult
    from nacre.values.session import ChoresReport, HandoffView

_RANKING = ("topic", "prefer_kinds", "threshold", "fuzzy", "word_share", "mmr_lambda")
"""Options of ranking that only ordinary recall knows."""

_WHO = {"model": "the model", "rules": "rules", "asker": "you"}


@command(
    "recall",
    examples=[
        'nacre recall "which database do we use for billing?"',
        'nacre recall "what did we decide last week" --project . --kind decision',
        'nacre recall --deep "how do we roll back a release of the web shop?"',
    ],
)
@argument("recall", "text", metavar="[QUESTION]...", nargs=-1, required=False)
@limit_option("recall", default=None, show_default=False)
@with_memory_filter
@option("recall", "around")
@option("recall", "radius_days", "--around-radius")
@option("recall", "ignore_time")
@LANES
@click.option(
    "--deep",
    is_flag=True,
    help="What an agent should know before it answers: of one project, chosen by the model that is set, else by rules.",
)
@click.option("--browse", is_flag=True, help="By importance and date; needs no question.")
@options("recall", "expand", "rerank")
@option("recall", "budget_tokens", "--budget")
@option("recall", "turns", default=None, show_default=False)
@click.option(
    "--explain", is_flag=True, help="Show what each score is made of, and what each lane did."
)
@option("recall", "update", help="Do not count this as a use of the memories.")
@option("recall", "session")
@option("recall", "boost", help="Rank by relevance alone, not by age, use and importance.")
@options("recall", "topic", "prefer_kinds", "threshold", "fuzzy")
@option("recall", "word_share", "--word-share", "--alpha")
@option(
    "recall", "diversify", "--no-diversify", "--no-mmr", help="Also show what says nearly the same."
)
@option("recall", "mmr_lambda")
@NO_DAEMON
def recall(  # noqa: PLR0913 - one parameter an option
    run: Run,
    text: tuple[str, ...],
    limit: int | None,
    wanted: Filter,
    around: datetime | None,
    radius_days: float,
    mode: str | None,
    deep: bool,
    browse: bool,
    expand: bool,
    rerank: bool,
    budget_tokens: int | None,
    turns: int | None,
    explain: bool,
    update: bool,
    boost: bool,
    session: str | None,
    **ranking: Any,
) -> None:
    """Find the memories that answer a question.

    Without a question, on a terminal, it opens a picker: what you type is searched for, Enter shows a memory.
    """
    if not (text or deep or browse) and load("nacre.cli.terminal:can_be_drawn")(run):
        load("nacre.cli.terminal:browse")(run, wanted)
        return
    if deep:
        _refuse_with_deep(
            {
                "--browse": browse,
                "--around": around,
                "--mode": mode,
                "--budget": budget_tokens,
                "--turns": turns,
                "--limit": limit,
                "--no-boost": not boost,
                "--expand": expand,
                "--rerank": rerank,
                "--no-diversify": not ranking["diversify"],
                **{f"--{name.replace('_', '-')}": ranking[name] or None for name in _RANKING},
            }
        )
        _recall_deep(run, " ".join(text), wanted, explain=explain, update=update, session=session)
        return
    settings = run.settings
    ranking.pop("no_daemon")
    asks_model = (
        expand,
        rerank or settings.text("recall.reranker") == "model",
    )
    result: RecallResult = (
        operations.perform if any(asks_model) else operations.ask
    )(  # a model takes its time, and is shown as it goes
        run,
        "recall",
        text=" ".join(text),
        filter=wanted,
        limit=limit or settings.whole("recall.limit"),
        around=around,
        mode="browse" if browse else mode or "hybrid",
        radius_days=radius_days,
        budget_tokens=budget_tokens or 0,
        turns=settings.whole("recall.turns") if turns is None else turns,
        boost=boost,
        update=update,
        session=session,
        expand=asks_model[0],
        rerank=asks_model[1],
        **ranking,
    )
    message = None
    if not (result.hits or result.turns):
        message = hits.EMPTY if operations.is_empty(run) else hits.NOTHING
    run.answer(
        recall_record(result, message),
        lambda paper: _render_recall(paper, result, message=message, explain=explain),
    )


def _refuse_with_deep(given: dict[str, object]) -> None:
    named = [name for name, value in given.items() if value is not None and value is not False]
    if named:
        raise click.UsageError(
            f"{named[0]} does not go with --deep, which tells five memories at most"
        )


def _recall_deep(
    run: Run, question: str, wanted: Filter, *, explain: bool, update: bool, session: str | None
) -> None:
    recent = deep.recent_of(run.home, session) if session else ()
    here = None
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted
        here = location.project_of_folder(run.home, Path.cwd())
    result: DeepResult = operations.perform(
        run,
        "deep-recall",
        text=question,
        filter=wanted,
        recent=recent,
        here=here,
        update=update,
        session=session,
    )
    run.answer(
        _deep_record(result, _message_of(result)),
        lambda paper: _render_deep(paper, result, explain=explain),
    )


def recall_record(result: RecallResult, message: str | None) -> Record:
    """The answer of ``recall``."""
    return {
        "query": result.query,
        "hits": [hits.memory_hit_record(hit) for hit in result.hits],
        "turns": [hits.turn_hit_record(hit) for hit in result.turns],
        "lanes": hits.lane_records(result.lanes),
        "message": message,
        "truncated": result.truncated,
        "since": stamp(result.since),
        "until": stamp(result.until),
        "around": stamp(result.around),
        "time_words": result.time_words,
        "took_ms": round(result.took_ms, 2),
    }


def _deep_record(result: DeepResult, message: str | None) -> Record:
    """The answer of ``recall --deep``."""
    return {
        "query": result.query,
        "route": result.route.value,
        "project": result.project,
        "clarify": list(result.clarify),
        "candidates": [
            {"project": one.slug, "score": one.score, "named": one.named}
            for one in result.candidates
        ],
        "hits": [hits.memory_hit_record(hit) for hit in result.hits],
        "context": result.context,
        "steps": [
            {
                "name": step.name,
                "by": step.by.value,
                "outcome": step.outcome,
                "problem": step.problem,
            }
            for step in result.steps
        ],
        "lanes": hits.lane_records(result.lanes),
        "model": result.model,
        "repeated": result.repeated,
        "message": message,
        "took_ms": round(result.took_ms, 2),
    }


def _render_recall(
    paper: Paper, result: RecallResult, *, message: str | None, explain: bool
) -> None:
    """Memories first, then turns, then what was less than it should be."""
    if message == hits.EMPTY:
        hits.render_beginning(paper)
        return
    for rank, hit in enumerate(result.hits, start=1):
        hits.render_hit(paper, rank, hit, explain=explain)
        paper.blank()
    if message:
        hits.render_nothing(paper, message)
    hits.render_turn_hits(paper, result.turns, explain=explain, offset=len(result.hits))
    _render_notes(paper, result)
    hits.render_lanes(paper, result, explain=explain)


def _render_notes(paper: Paper, result: RecallResult) -> None:
    hits.render_span(paper, result)
    if result.truncated:
        paper.blank()
        paper.line(dim("More memories answer; the token budget left them out."))


def _message_of(result: DeepResult) -> str | None:
    """Why there are no hits, where there are none."""
    if result.hits or result.clarify:
        return None
    if result.route is deep_recall.Route.NONE:
        return "That needs no memory."
    return "Nothing beside what is known of you." if result.context else hits.NOTHING


def _render_deep(paper: Paper, result: DeepResult, *, explain: bool) -> None:
    """What was found, or which project has to be named, then who decided it."""
    if result.clarify:
        paper.line(bold("Which project do you mean?"))
        for slug in result.clarify:
            paper.line(f"--project {slug}", indent=2)
    elif not result.hits:
        paper.line(bold(_message_of(result) or hits.NOTHING))
        if result.route is not deep_recall.Route.NONE:
            paper.line(
                dim(
                    "What draws on text from outside is never told here; nacre recall may show more."
                ),
                indent=2,
            )
    elif result.project:
        paper.line(dim("of the project "), bold(result.project))
        paper.blank()
    for rank, hit in enumerate(result.hits, start=1):
        hits.render_hit(paper, rank, hit, explain=explain)
        paper.blank()
    if explain and result.context:
        paper.heading("For an agent")
        paper.body(result.context, indent=2)
    _render_steps(paper, result, explain=explain)


def _render_steps(paper: Paper, result: DeepResult, *, explain: bool) -> None:
    paper.blank()
    told = [f"{step.name} {step.outcome} (by {_WHO[step.by]})" for step in result.steps]
    paper.line(dim("; ".join(told)), hang=2)
    if result.problem:
        paper.line(
            Span(f"the model did not help: {result.problem}; rules went on", "yellow"), hang=2
        )
    elif result.model is None:
        paper.line(dim("no language model is set: rules decided all of it (nacre setup)"), hang=2)
    lanes = result.lanes if explain else result.degraded
    if lanes:
        paper.line(
            dim(f"{'lanes' if explain else 'degraded'}: {hits.describe_lanes(lanes)}"), hang=2
        )
    if explain:
        again = " · answered again from memory" if result.repeated else ""
        paper.line(dim(f"model: {result.model or 'none'} · {result.took_ms:.0f} ms{again}"))


# ----------------------------------------------------------------------------
# ``nacre context``.


_FOLDER = click.Path(file_okay=False, path_type=Path)
_TEXT_CHARACTERS = 100
_SUBJECT_CHARACTERS = 60
_MOST_NAMED = 3


@command(
    "context",
    examples=[
        "nacre context",
        'nacre context "why did we leave sqlite?" --explain',
        "nacre context --output CONTEXT.md --budget 1500",
    ],
)
@argument("context", "prompt", nargs=-1)
@click.option("--prompt", "asked", type=TEXT, help="The same; - reads it from standard input.")
@option(
    "context",
    "moment",
    default=None,
    show_default=False,
    help="As a session starts, or with a prompt; by default the latter with one.",
)
@option("context", "folder", type=_FOLDER, help="Where the agent works; by default, here.")
@options("context", "session", "occasion")
@option("context", "budget_tokens", "--budget")
@option("context", "parts", help="Only this part; may be given again.")
@option("context", "alone", "--lexical")
@click.option("--explain", is_flag=True, help="Why each thing is told, and what was left out.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it there, where it changed.",
)
@NO_DAEMON
@click.pass_obj
def context(  # noqa: PLR0913 - one parameter an option
    run: Run,
    /,
    prompt: tuple[str, ...],
    asked: str | None,
    moment: str | None,
    folder: Path | None,
    session: str | None,
    explain: bool,
    output: Path | None,
    no_daemon: bool,
    **wanted: Any,
) -> None:
    """Print the context for an agent, at session start or for a prompt.

    Prints nothing where nothing is worth telling; why not, where that may surprise, is said on standard error. With
    --output it is a file for agents that only read files.
    """
    text = sys.stdin.read() if asked == "-" else asked or " ".join(prompt)
    run.by_itself = no_daemon
    block: ContextBlock = operations.ask(
        run,
        "context",
        moment=moment or ("prompt" if text.strip() else "start"),
        prompt=text,
        folder=str((folder or Path.cwd()).absolute()),
        session=session,
        **wanted,
    )
    changed = categories.write_snapshot(output, block, territory(run.settings)) if output else None
    record = {
        **_context_record(block),
        "output": str(output) if output else None,
        "changed": changed,
    }
    if explain:
        run.answer(record, lambda paper: _render_explained(paper, block))
    else:
        run.answer(
            record, lambda paper: _render_context(paper, block, output=output, changed=changed)
        )
        if (
            not block.text
            and not run.as_json
            and block.gate in ("", values_context.LOOKED_FOR, values_context.HELD_OUT)
        ):
            place = str((folder or Path.cwd()).absolute())
            if block.gate == values_context.HELD_OUT:
                _say_nothing(
                    run,
                    values_context.HELD_OUT,
                    "nacre usefulness shows the effect; the agent's own searches are answered",
                )
            else:
                _say_nothing(run, *_why_nothing(run, block.project, place))
    hooks.write_state(run.settings.home, session, block.state)


def _context_record(block: ContextBlock) -> Record:
    """The answer of ``context``."""
    return {
        "context": block.text,
        "project": block.project,
        "gate": block.gate,
        "tokens": block.tokens,
        "items": [
            {
                "part": item.part.value,
                "ref": item.ref,
                "text": item.text,
                "tokens": item.tokens,
                "date": stamp(item.date),
                "score": item.score,
                "why": item.why,
            }
            for item in block.items
        ],
        "left_out": [
            {"part": one.part.value, "ref": one.ref, "why": one.why, "subject": one.subject}
            for one in block.left_out
        ],
        "lanes": hits.lane_records(block.lanes),
        "took_ms": round(block.took_ms, 2),
    }


def _render_context(
    paper: Paper, block: ContextBlock, *, output: Path | None, changed: bool | None
) -> None:
    """The block itself, or where it was written; nothing where there is nothing to tell."""
    if output:
        told = f"{block.tokens:,} tokens in {output}" if changed else f"{output} says that already"
        paper.line(bold("Written: ") if changed else "", told)
    elif block.text:
        paper.verbatim(block.text)


def _say_nothing(run: Run, why: str, hint: str) -> None:
    run.show(lambda paper: paper.line(dim(f"Nothing to tell: {why}."), hang=2))
    run.show(lambda paper: paper.line(dim(f"hint: {hint}")))


def _why_nothing(run: Run, project: str | None, folder: str) -> tuple[str, str]:
    """Why a context is empty, and what helps."""
    if operations.is_empty(run):
        return "nothing is remembered yet", "nacre quickstart"
    if project:
        return f"nothing that is remembered of {project} fits", "--explain tells what was left out"
    namesake = operations.ask(run, "place", folder=folder).namesake
    helps = tie_hint(namesake) if namesake else "nacre project list shows the projects"
    return f"{folder} belongs to no known project, and no memory that holds everywhere fits", helps


def _render_explained(paper: Paper, block: ContextBlock) -> None:
    """What is told and why, and what was left out and why."""
    head = f"{block.tokens:,} tokens" if block.text else "Nothing is told."
    paper.line(
        bold(head),
        dim(f"  {block.project or 'no project'}" + (f" · {block.gate}" if block.gate else "")),
    )
    part = None
    for item in block.items:
        if item.part is not part:
            tokens = sum(one.tokens for one in block.items if one.part is item.part)
            paper.heading(f"{item.part.value} · {tokens:,} tokens")
            part = item.part
        paper.line(text.shorten(item.text.lstrip("-> "), _TEXT_CHARACTERS), indent=2, hang=2)
        score = f" · score {item.score:.2f}" if item.score is not None else ""
        paper.line(dim(f"{item.why} · {item.tokens} tokens{score}"), indent=4)
    if block.left_out:
        paper.heading("Left out")
        _render_left_out(paper, block.left_out)
    paper.blank()
    lanes = f"lanes: {hits.describe_lanes(block.lanes)} · " if block.lanes else ""
    paper.line(dim(f"{lanes}{block.took_ms:.0f} ms"), hang=2)


def _render_left_out(paper: Paper, left_out: Iterable[LeftOut]) -> None:
    """What was left out by why, and of memories the first by name."""
    alike: defaultdict[tuple[str, str], list[LeftOut]] = defaultdict(list)
    for one in left_out:
        alike[one.part.value, one.why].append(one)
    for (where, why), found in alike.items():
        paper.line(
            f"{where}: {why}", dim(f"  {len(found)}" if len(found) > 1 else ""), indent=2, hang=2
        )
        named = [text.shorten(one.subject, _SUBJECT_CHARACTERS) for one in found if one.subject][
            :_MOST_NAMED
        ]
        more = f" and {len(found) - len(named)} more" if len(found) > len(named) else ""
        if named:
            paper.line(dim(f"{'; '.join(named)}{more}"), indent=4)


# ----------------------------------------------------------------------------
# ``nacre handoff`` and ``nacre chores``.


@command(
    "handoff",
    examples=[
        "nacre handoff",
        "nacre handoff --store",
        'nacre handoff --store "The migration is half done: step 3 is next."',
    ],
)
@argument("handoff", "words", nargs=-1)
@option(
    "handoff",
    "store",
    help="Hand the session over now: in these words, else in what was said last.",
)
@option(
    "handoff", "session", help="As <tool>:<id>; by default the agent's own, else the last one here."
)
@option("handoff", "folder", type=_FOLDER, help="Where the agent works; by default, here.")
@click.pass_obj
def handoff(
    run: Run, words: tuple[str, ...], store: bool, session: str | None, folder: Path | None
) -> None:
    """Show the handoff of the last session, or write one now.

    Sessions are handed over by themselves when they end, are reset or compacted; the next session of the project is
    told as it starts.
    """
    if words and not store:
        raise click.UsageError("words are stored with --store", click.get_current_context())
    place = str((folder or Path.cwd()).absolute())
    said = " ".join(words) or None
    view: HandoffView = operations.perform(
        run, "handoff", folder=place, store=store, session=session, words=said
    )
    run.answer(_handoff_record(view), lambda paper: _render_handoff(paper, view))


@command("chores", hidden=True, examples=["nacre chores", "nacre chores --list"])
@click.option(
    "--list", "only_list", is_flag=True, help="Tell what waits and what was given up; do nothing."
)
@option("chores", "seconds")
@click.pass_obj
def chores(run: Run, only_list: bool, seconds: float) -> None:
    """Do the work that hooks left: read sessions, write handoffs, learn."""
    if only_list:
        home = run.settings.home
        there, lost = queue.waiting(home), queue.given_up(home)

        def render_list(paper: Paper) -> None:
            for one in there:
                paper.line(
                    bold(one.kind), f"  {one.session or one.folder or ''}", dim(f"  {one.note}")
                )
            for one in lost:
                paper.line(bold("given up: "), f"{one.kind}  {one.session}", dim(f"  {one.note}"))
            if not (there or lost):
                paper.line("Nothing waits.")

        told = {
            "waiting": [_chore_record(one) for one in there],
            "given_up": [_chore_record(one) for one in lost],
        }
        run.answer(told, render_list)
        return
    with acting(Actor(Face.DAEMON)):  # a hook started it, which an agent ran
        report: ChoresReport = operations.perform(run, "chores", seconds=seconds)
    record = {
        "done": report.done,
        "failed": report.failed,
        "given_up": report.given_up,
        "left": report.left,
    }
    told_as = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in record.items() if count
    )
    run.answer(record, lambda paper: paper.line(told_as or "Nothing waits."))


def _handoff_record(view: HandoffView) -> Record:
    """The answer of ``handoff``."""
    return {
        "project": view.project,
        "handoff": plain(view.handoff),
        "waits": view.waits,
        "stored": view.is_new,
        "note": view.note,
    }


def _chore_record(chore: Chore) -> Record:
    """A chore."""
    return {
        "kind": chore.kind,
        "session": chore.session or None,
        "folder": chore.folder,
        "tries": chore.tries,
        "left_at": stamp(datetime.fromtimestamp(chore.at, UTC)) if chore.at else None,
        "note": chore.note or None,
    }


def _render_handoff(paper: Paper, view: HandoffView) -> None:
    """What is handed over, by which session, and who has it."""
    handoff = view.handoff
    if handoff is None:
        place = (
            f"in {view.project}"
            if view.project
            else "here: this folder belongs to no project that was met"
        )
        hint = "" if view.note else "  nacre handoff --store hands the last session over"
        paper.line(f"Nothing is handed over {place}.", dim(hint))
        if view.note:
            paper.line(dim(view.note), indent=2)
        return
    state = "stored; " if view.is_new else ""
    state += f"given to {handoff.given}" if handoff.given else "waits for the next session"
    paper.line(
        bold(f"session handoff {shown_minute(handoff.said)}"), dim(f"  {view.project} · {state}")
    )
    paper.body(handoff.content, indent=2)
    paper.line(dim(f"from {handoff.session} · by {handoff.by}"), indent=2)
    if view.note:
        paper.line(dim(view.note), indent=2)
