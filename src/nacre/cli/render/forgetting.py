"""What is retired and what is forgotten, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.render.memories import render_outcomes, render_table
from nacre.cli.render.words import SHORT_ID, count, day, minute, short_id, short_session
from nacre.values.forgetting import Excerpt, ForgetPlan, ForgetReport, Forgotten, Match, StandingRetirement, Unreached
from nacre.values.memory import Memory

if TYPE_CHECKING:
    from nacre.memories.retire import BroughtBack

_SHOWN = 12
_HOW = {
    Match.EXACT: "memories about {!r}",
    Match.CONTAINS: "memories whose subject contains {!r}",
    Match.PATTERN: "memories whose subject is like {!r}",
}


def render_retired(
    paper: Paper, memories: Sequence[Memory], rules: Sequence[StandingRetirement], *, is_dry: bool = False
) -> None:
    """What was retired, or would be."""
    if is_dry:
        paper.line(
            f"Would retire {count(len(memories), 'memory', 'memories')}:" if memories else "Would retire nothing."
        )
        render_table(paper, memories, indent=2)
        return
    render_outcomes(paper, "Retired", memories)
    for rule in rules:
        paper.line("From now on: ", _standing(rule), hang=2)
        paper.line(dim(f"nacre unretire {rule.id[-SHORT_ID:]} ends that"), indent=2)


def render_unretired(paper: Paper, back: BroughtBack) -> None:
    """What is not retired any more."""
    render_outcomes(paper, "Brought back", back.memories)
    for rule in back.rules:
        paper.line("No longer: ", _standing(rule), hang=2)


def render_retired_list(paper: Paper, memories: Sequence[Memory], rules: Sequence[StandingRetirement]) -> None:
    """Every retired memory with its reason, and what stands for later ones."""
    if not memories and not rules:
        paper.line("Nothing is retired.")
        return
    rows = [
        (dim(short_id(one)), dim(day(one.retired.at)), bold(one.subject), one.retired.reason or "")
        for one in memories
        if one.retired
    ]
    if rows:
        paper.table(rows, drop=(1,))
    if rules:
        paper.heading("Whenever they are stored")
        paper.table([(dim(rule.id[-SHORT_ID:]), _standing(rule), dim(rule.reason or "")) for rule in rules], indent=2)


def counts(plan: ForgetPlan) -> str:
    """What goes, in numbers."""
    said = [count(len(plan.memories), "memory", "memories"), count(plan.turns, "turn")]
    said += [count(len(plan.sessions), "whole session")] if plan.sessions else []
    return joined(said, ", ")


def render_plan(paper: Paper, plan: ForgetPlan, *, is_dry: bool = False) -> None:
    """What forgetting takes, exactly."""
    if plan.is_empty:
        paper.line("Nothing to forget: no memory, no session and no turn fits.")
        paper.line(
            dim("secrets are taken out before anything is stored; what is left of them cannot be found"), indent=2
        )
        return
    paper.line(bold(f"{'Would delete' if is_dry else 'To delete'}: {counts(plan)}"))
    _named(paper, "Sessions that go whole", plan.sessions)
    _named(paper, "Sessions that lose turns", plan.parts)
    _named(paper, "Sessions that lose their title", dict.fromkeys(plan.untitled, 0))
    _shown(paper, "Memories that go", plan.memories)
    _shown(paper, "Memories that lose evidence and stay", plan.losing)
    _shown(paper, "Retired, because what superseded them goes", plan.released)
    if plan.excerpts:
        _excerpts(paper, plan.excerpts)


def render_forgotten(paper: Paper, report: ForgetReport) -> None:
    """What was forgotten, and where it may still be."""
    plan = report.plan
    paper.line(bold("Forgotten"), f": {counts(plan)}", dim(f"  {report.run[-SHORT_ID:]}"))
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


def render_forgotten_list(paper: Paper, runs: Sequence[Forgotten]) -> None:
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
    paper.table(rows)
    paper.blank()
    paper.line(dim("nacre forget --allow-again ID lets it be read again, where a transcript still tells it"))


def _standing(rule: StandingRetirement) -> str:
    return _HOW[rule.match].format(rule.pattern) + " are retired as soon as they are stored"


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
