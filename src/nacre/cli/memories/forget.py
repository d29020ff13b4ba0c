"""``nacre forget``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import TEXT, command
from nacre.cli.formats import SHORT_ID, Record, count, day, minute, short_session, stamp
from nacre.cli.memories.memory import memory_record, render_table
from nacre.cli.operations import perform
from nacre.cli.options import project_slug
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import option
from nacre.cli.run import Run
from nacre.errors import InvalidInput
from nacre.forgetting import forget as forgetting
from nacre.setup import examples as example_sessions
from nacre.values import forgetting as values_forgetting

if TYPE_CHECKING:
    from nacre.values.forgetting import Excerpt, ForgetPlan, ForgetReport, Forgotten, Unreached
    from nacre.values.memory import Memory


_SHOWN = 12
_SHORTEST_ID = 4


@command(
    "forget",
    examples=[
        "nacre forget --match 'Jordan Example' --dry-run",
        "nacre forget --project acme-billing --before 2026-01-01",
        "nacre forget --memory 5f0c2a4d --yes",
    ],
)
@click.argument("words", nargs=-1, metavar="", type=TEXT)
@option("forget", "sessions", metavar="ID", help="A session, with what it taught.")
@option("forget", "memories", "--memory", metavar="ID", help="A memory, with what shows it.")
@option("forget", "project", help="All of a project up to now; . is the one of this folder.")
@option("forget", "match", metavar="TEXT", help="Every turn and memory that says this.")
@option("forget", "regex", help="With --match: TEXT is a regular expression.")
@option("forget", "before", help="What was said before that day; with --project, of that project.")
@click.option("--examples", is_flag=True, help="The sessions that nacre quickstart brought along.")
@click.option("--dry-run", is_flag=True, help="Show what would go, and change nothing.")
@click.option("--list", "shows_list", is_flag=True, help="List what was forgotten.")
@option("forget-allow-again", "reference", "--allow-again", metavar="ID", required=False,
        help="Let what was forgotten be read again.")  # fmt: skip
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def forget(
    run: Run,
    /,
    words: tuple[str, ...],
    shows_list: bool,
    reference: str | None,
    dry_run: bool,
    yes: bool,
    examples: bool,
    **wanted: Any,
) -> None:
    """Delete for good: memories, the turns that show them, and all that was made of them.

    It cannot be undone. What is left in the ledger are ids and keyed hashes, so that neither a transcript that is read
    again nor another machine brings it back. To take memories out of recall and keep them, retire them.
    """
    if words:
        raise _unmarked(words)
    if shows_list:
        _list(run)
        return
    if reference:
        _allow(run, reference)
        return
    if examples and any(wanted.values()):
        raise click.UsageError("--examples goes alone", click.get_current_context())
    planned = (
        example_sessions.plan_to_forget(run.home) if examples
        else perform(run, "forget-plan", **_wanted(run, **wanted))
    )  # fmt: skip
    if dry_run or planned.is_empty:
        _answer(run, planned, None)
        return
    _ask(run, planned, yes=yes)
    _answer(run, planned, (example_sessions if examples else forgetting).forget(run.home, planned))


def _unmarked(words: Sequence[str]) -> InvalidInput:
    """What says neither a text nor an id: the difference is one between a word and all that holds it."""
    one = words[0]
    is_id = len(words) == 1 and len(one) >= _SHORTEST_ID and not set(one.lower()) - set("0123456789abcdef-")
    chosen = f"--memory {one}" if is_id else f"--match {shlex.quote(' '.join(words))}"
    return InvalidInput(
        "forget deletes for good, and wants to be told by an option what is meant",
        hint=f"nacre forget {chosen} --dry-run shows what would go",
    )


def _wanted(run: Run, *, project: str | None, **wanted: Any) -> dict[str, Any]:
    return wanted | {"project": project_slug(run.home, project) if project else None}


def _answer(run: Run, planned: ForgetPlan, report: object) -> None:
    done = report if isinstance(report, values_forgetting.ForgetReport) else None
    run.answer(
        _forget_record(planned, done),
        lambda paper: _render_forgotten(paper, done) if done else _render_plan(paper, planned, is_dry=True),
    )


def _ask(run: Run, planned: ForgetPlan, *, yes: bool) -> None:
    if yes:
        return
    if not run.is_interactive:
        raise click.UsageError(
            f"that deletes {_counts(planned)} for good: look with --dry-run, then add --yes",
            click.get_current_context(),
        )
    run.show(lambda paper: _render_plan(paper, planned))
    run.confirm(f"Delete {_counts(planned)} for good?")


def _list(run: Run) -> None:
    found: list[Forgotten] = perform(run, "forgotten")
    run.answer(
        {"forgotten": [_forgotten_record(one) for one in found]}, lambda paper: _render_forgotten_list(paper, found)
    )


def _allow(run: Run, reference: str) -> None:
    allowed: Forgotten = perform(run, "forget-allow-again", reference=reference)

    def render(paper: Paper) -> None:
        paper.line(bold("Allowed again"), f": {reference}")
        paper.line(dim("nacre ingest reads it where a transcript still tells it"), indent=2)

    run.answer({"allowed": _forgotten_record(allowed)}, render)


def _forget_record(plan: ForgetPlan, report: ForgetReport | None) -> Record:
    """What forgetting takes; without a report, what it would take."""
    return {
        "id": report.run if report else None,
        "done": report is not None,
        "how": plan.how,
        "counts": {
            "memories": len(plan.memories),
            "turns": plan.turns,
            "sessions": len(plan.sessions),
            "traces": plan.traces,
            "gateway": plan.held,
        },
        "forgotten_sessions": [{"session": name, "turns": turns} for name, turns in plan.sessions.items()],
        "cut_sessions": [{"session": name, "turns": turns} for name, turns in plan.parts.items()],
        "forgotten_memories": [memory_record(memory) for memory in plan.memories],
        "untitled_sessions": list(plan.untitled),
        "forgotten_handoffs": list(plan.handoffs),
        "losing": [memory_record(memory) for memory in plan.losing],
        "released": [memory_record(memory) for memory in plan.released],
        "excerpts": [{"of": one.of, "excerpt": one.text} for one in plan.excerpts],
        "erased": report.is_erased if report else False,
        "unreached": [
            {"what": one.what, "where": one.where, "remedy": one.remedy} for one in (report.unreached if report else ())
        ],
    }


def _forgotten_record(run: Forgotten) -> Record:
    """One run of forgetting, as the ledger tells it."""
    return {
        "id": run.run, "at": stamp(run.at), "how": run.how, "before": stamp(run.before),
        "sessions": list(run.sessions), "turns": run.turns, "memory_count": run.memories,
        "allowed_again": run.is_allowed,
    }  # fmt: skip


def _counts(plan: ForgetPlan) -> str:
    """What goes, in numbers."""
    said = [count(len(plan.memories), "memory", "memories"), count(plan.turns, "turn")]
    said += [count(len(plan.sessions), "whole session")] if plan.sessions else []
    said += [count(len(plan.handoffs), "handoff")] if plan.handoffs else []
    said += [count(plan.traces, "trace of questions or models", "traces of questions or models")] if plan.traces else []
    said += [count(plan.held, "entry of the gateway", "entries of the gateway")] if plan.held else []
    return joined(said, ", ")


def _render_plan(paper: Paper, plan: ForgetPlan, *, is_dry: bool = False) -> None:
    """What forgetting takes, exactly."""
    if plan.is_empty:
        paper.line("Nothing to forget: no memory, no session and no turn fits.")
        paper.line(
            dim("secrets are taken out before anything is stored; what is left of them cannot be found"), indent=2
        )
        return
    paper.line(bold(f"{'Would delete' if is_dry else 'To delete'}: {_counts(plan)}"))
    _named(paper, "Sessions that go whole", plan.sessions)
    _named(paper, "Sessions that lose turns", plan.parts)
    _named(paper, "Sessions that lose their title", dict.fromkeys(plan.untitled, 0))
    _shown(paper, "Memories that go", plan.memories)
    _shown(paper, "Memories that lose evidence and stay", plan.losing)
    _shown(paper, "Retired, because what superseded them goes", plan.released)
    if plan.excerpts:
        _excerpts(paper, plan.excerpts)


def _render_forgotten(paper: Paper, report: ForgetReport) -> None:
    """What was forgotten, and where it may still be."""
    plan = report.plan
    paper.line(bold("Forgotten"), f": {_counts(plan)}", dim(f"  {report.run[-SHORT_ID:]}"))
    if plan.losing:
        paper.line(f"{count(len(plan.losing), 'memory', 'memories')} lost evidence and stayed", indent=2)
    if plan.released:
        paper.line(f"{count(len(plan.released), 'memory', 'memories')} retired: what superseded them is gone", indent=2)
    if not report.is_erased:
        text = "Bytes of it are still in the database, which another process uses; nacre ingest takes them."
        paper.line(Span(text, "yellow"), indent=2)
    paper.heading("Not reached")
    kinds = dict.fromkeys(one.what for one in report.unreached)
    for kind in kinds:
        _unreached(paper, [one for one in report.unreached if one.what == kind])


def _render_forgotten_list(paper: Paper, runs: Sequence[Forgotten]) -> None:
    """Every run, the latest first."""
    if not runs:
        paper.line("Nothing was forgotten.")
        return
    rows = []
    for run in runs:
        what = f"before {day(run.before)}" if run.before else run.how
        said = [
            count(run.memories, "memory", "memories"),
            count(len(run.sessions), "session"),
            count(run.turns, "turn"),
        ]
        state = "allowed again" if run.is_allowed else ""
        rows.append((dim(run.run[-SHORT_ID:]), dim(minute(run.at)), what, joined([*said, state])))
    paper.table(rows, header=("id", "when", "what", "gone"))
    paper.blank()
    paper.line(dim("nacre forget --allow-again ID lets it be read again, where a transcript still tells it"))


def _named(paper: Paper, title: str, sessions: Mapping[str, int]) -> None:
    if not sessions:
        return
    paper.heading(title)
    names = list(sessions.items())
    rows = []
    for session, turns in names[:_SHOWN]:
        tool, _, native_id = session.partition(":")
        rows.append((f"{tool} {short_session(native_id)}", dim(count(turns, "turn") if turns else "")))
    paper.table(rows, indent=2)
    _more(paper, len(names))


def _shown(paper: Paper, title: str, memories: Sequence[Memory]) -> None:
    if memories:
        paper.heading(title)
        render_table(paper, memories[:_SHOWN], indent=2)
        _more(paper, len(memories))


def _excerpts(paper: Paper, excerpts: Sequence[Excerpt]) -> None:
    paper.heading("Where it is said")
    paper.table([(dim(one.of[-13:]), one.text) for one in excerpts[:_SHOWN]], indent=2)
    _more(paper, len(excerpts))


def _more(paper: Paper, total: int) -> None:
    if total > _SHOWN:
        paper.line(dim(f"and {total - _SHOWN} more; --json names all"), indent=2)


def _unreached(paper: Paper, places: Sequence[Unreached]) -> None:
    for place in places[:_SHOWN]:
        paper.line(f"{place.what}: ", place.where, indent=2, hang=2)
    _more(paper, len(places))
    paper.line(dim(places[0].remedy), indent=4)
