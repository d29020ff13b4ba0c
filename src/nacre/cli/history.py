"""``nacre log``, ``nacre diff``, ``nacre undo`` and ``nacre commit``."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.cli import hits, operations, output
from nacre.cli.command import TEXT, Cell, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.options import (
    EVERYTHING,
    JSON_LINES,
    SHORT_ID,
    Record,
    argument,
    count,
    day,
    find_project,
    minute,
    option,
    options,
    pages,
    project_slug,
    seconds,
    short_session,
    stamp,
)
from nacre.data import forget as forgetting
from nacre.data import history as committing
from nacre.errors import InvalidInput
from nacre.redact import redactor as nacre_redact
from nacre.setup import examples as example_sessions
from nacre.values import memory as values_forgetting

if TYPE_CHECKING:
    from nacre.data.history import Committed
    from nacre.data.undo import Step, Undoing
    from nacre.home.views import Difference, FieldChange, Listed
    from nacre.values.memory import (
        Excerpt,
        ForgetPlan,
        ForgetReport,
        Forgotten,
        Memory,
        Operation,
        ScrubReport,
        Unreached,
    )

_TINTS = {
    "store": "green",
    "ingest": "green",
    "restore": "green",
    "retire": "yellow",
    "remove": "yellow",
    "forget": "red",
    "undo": "magenta",
    "edit": "cyan",
    "update": "cyan",
    "supersede": "blue",
}
_TOLD_WHOLE = frozenset({"file", "kind", "importance", "project", "tags", "links"})
"""What is shown of a memory that is new or gone; the rest is in --json and in its file."""
_PLANNED = {
    "bring back": "brings back",
    "change back": "changes back",
    "retire": "retires",
    "remove": "removes",
    "keep both": "keeps both",
    "conflict": "cannot undo",
}
_DONE = {
    "bring back": "brought back",
    "change back": "changed back",
    "retire": "retired",
    "remove": "removed",
    "keep both": "kept both",
}


@command(
    "log", examples=["nacre log", "nacre log --memory 5f0c2a4d", "nacre log --project . --limit 20"]
)
@option(
    "log", "reference", "--memory", help="Only what was done to this memory: its id or subject."
)
@option("log", "project", help="Only what was done in this project; . is the one of this folder.")
@option("log", "action", metavar="NAME")
@option("log", "limit", type=click.IntRange(1, 10_000), default=30)
@EVERYTHING
@JSON_LINES
@click.pass_obj
def log(
    run: Run,
    reference: str | None,
    project: str | None,
    action: str | None,
    limit: int,
    everything: bool,
    as_lines: bool,
) -> None:
    """List what was done to your memories, the newest first.

    Each line is an operation: its id, when, what, who asked for it (the command line, an agent's tools …), to which
    memory, and why. What no commit holds yet is marked with *.
    """
    slug, most = find_project(run, project), None if everything else limit

    def page(size: int, at: int) -> tuple[Sequence[Listed], bool]:
        found = operations.ask(
            run, "log", reference=reference, project=slug, action=action, limit=size, offset=at
        )
        return found, len(found) == size

    found = pages(page, most, 0)
    if as_lines:
        run.answer_lines(_operation_record(one.operation, one.memories) for one in found)
        return
    listed = list(found)
    run.answer(
        {
            "operations": [_operation_record(one.operation, one.memories) for one in listed],
            "limit": most,
        },
        lambda paper: _render_log(paper, listed, with_git=run.settings.flag("git.enabled")),
    )


@command(
    "diff",
    examples=["nacre diff", "nacre diff 5f0c2a4d", 'nacre diff "Database of the billing service"'],
)
@argument("diff", "reference", metavar="[OPERATION|MEMORY]")
@click.pass_obj
def diff(run: Run, reference: str | None) -> None:
    """Show what an operation changed.

    Without an id it is the last one; for a memory, the last one on it.
    """
    answer = operations.ask(run, "diff", reference=reference)
    operation, found = answer.operation, answer.differences
    run.answer(_diff_record(operation, found), lambda paper: _render_diff(paper, operation, found))


@command(
    "undo", examples=["nacre undo", "nacre undo 5f0c2a4d --dry-run", "nacre undo 5f0c2a4d --yes"]
)
@argument("undo", "operation", metavar="[OPERATION]")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@option("undo", "force", help="Keep both versions of what was changed since in the same place.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def undo(run: Run, operation: str | None, dry_run: bool, force: bool, yes: bool) -> None:
    """Bring back what an operation changed.

    Without an id it is the last one that is not undone: again and again, it goes further back. Memories it made are
    retired, what it changed is as it was before, what it decided in review waits there again, and what was changed
    since stays. An undo of memories is an operation, too: it can be undone; a candidate that waits again is decided
    again. On a terminal it asks first; elsewhere it wants an id or --yes.
    """
    is_seen = run.is_interactive and not yes
    if dry_run or is_seen or not (yes or operation):
        planned: Undoing = operations.perform(run, "undo-plan", operation=operation, force=force)
        if dry_run:
            run.answer(_undo_record(planned), lambda paper: _render_undo(paper, planned))
            return
        if not is_seen:
            raise _unnamed(planned.operation)
        run.show(lambda paper: _render_undo(paper, planned))
        if not planned.conflicts and (planned.steps or planned.waiting):
            run.confirm("Undo?")
        operation = planned.operation.id  # another may be the last one by now
    done: Undoing = operations.perform(run, "undo", operation=operation, force=force)
    run.answer(_undo_record(done), lambda paper: _render_undo(paper, done, is_seen=is_seen))


def _unnamed(last: Operation) -> click.UsageError:
    about = f" ({last.subject})" if last.subject else ""
    return click.UsageError(
        f"not interactive: pass --yes to undo the last operation, {last.action} {_short_operation(last)}{about}, "
        "or an operation's id",
        click.get_current_context(),
    )


@command("commit", examples=["nacre commit", "nacre commit --json"])
@click.option(
    "--quiet",
    is_flag=True,
    help="Say nothing; where another process commits already, leave it to that one.",
)
@click.pass_obj
def commit(run: Run, quiet: bool) -> None:
    """Put what was done into the vault's git history now.

    nacre does so by itself, in the background: a minute after an operation, with the next command. Files that you put
    into the vault yourself are committed too, unless git ignores them.
    """
    run.keeps_history = False
    if quiet:
        committing.commit_quietly(run.home)
        return
    done: Committed = operations.perform(run, "commit")
    run.answer(_committed_record(done), lambda paper: _render_committed(paper, done))


def _committed_record(done: Committed) -> Record:
    """What a commit took."""
    return {
        "commits": [{"commit": commit, "title": title} for commit, title in done.commits],
        "operations": done.operations,
        "waiting": done.waiting,
        "held": [{"path": item.path, "reason": item.reason} for item in done.held],
        "note": done.note,
    }


def _operation_record(operation: Operation, memories: Sequence[str] = ()) -> Record:
    """One operation."""
    return {
        "operation": operation.id,
        "time": stamp(operation.at),
        "action": operation.action,
        "subject": operation.subject,
        "why": operation.why,
        "by": operation.by,
        "state": "committed" if operation.committed else "pending",
        "commit": operation.committed,
        "memory_ids": list(memories),
    }


def _diff_record(operation: Operation, found: Sequence[Difference]) -> Record:
    """What an operation changed."""
    memories = dict.fromkeys(one.change.memory for one in found if one.change.memory)
    return {
        **_operation_record(operation, tuple(memories)),
        "changes": [_difference_record(one) for one in found],
    }


def _difference_record(one: Difference) -> Record:
    before, after = one.change.before, one.change.after
    return {
        "id": one.change.memory or None,
        "subject": one.subject,
        "path_before": before.path if before else None,
        "path": after.path if after else None,
        "fields": [
            {"name": field.name, "before": field.before, "after": field.after}
            for field in one.fields
        ],
        "text": [{"mark": line[:1], "line": line[1:]} for line in one.lines],
    }


def _undo_record(undoing: Undoing) -> Record:
    """What an undo does, or did."""
    return {
        "undone": _operation_record(undoing.operation),
        "undo": undoing.op,
        "steps": [
            {
                "action": step.action.replace(" ", "_"),
                "id": step.change.memory or None,
                "subject": step.subject,
                "path": step.change.latest.path,
                "clashes": list(step.clashes),
            }
            for step in undoing.steps
        ],
        "waiting": [one.id for one in undoing.waiting],
    }


def _short_operation(operation: Operation) -> str:
    """The end of an operation's id; the beginning of a commit's."""
    return operation.id[-SHORT_ID:] if "-" in operation.id else operation.id[:SHORT_ID]


def _render_log(paper: Paper, listed: Sequence[Listed], *, with_git: bool = True) -> None:
    """Operations, a line each."""
    if not listed:
        paper.line("Nothing was done yet.")
        return
    rows: list[tuple[Cell, ...]] = []
    for one in listed:
        operation = one.operation
        mark = "" if operation.committed or not with_git else "*"
        why = f"  ({operation.why})" if operation.why else ""
        rows.append(
            (
                dim(_short_operation(operation) + mark),
                minute(operation.at),
                Span(operation.action, _TINTS.get(operation.action, "")),
                dim((operation.by or "").replace("command line", "cli").replace(",", "")),
                f"{operation.subject or ''}{why}",
            )
        )
    paper.table(rows, header=("id", "when", "what", "by", "of"), drop=(3, 1))
    if with_git and any(not one.operation.committed for one in listed):
        paper.line(dim("* waits for a commit"))


def _render_diff(paper: Paper, operation: Operation, found: Sequence[Difference]) -> None:
    """What an operation changed, memory by memory: front matter, then lines of the text."""
    about = joined((minute(operation.at), _short_operation(operation), operation.by or ""))
    paper.line(
        bold(f"{operation.action}: {operation.subject or ''}".rstrip(": ")),
        dim(f"  {about}"),
    )
    if operation.why:
        paper.line(dim(operation.why), indent=2, hang=2)
    for one in found:
        paper.blank()
        side = "new" if one.change.before is None else "gone" if one.change.after is None else ""
        paper.line(bold(one.subject), dim(f"  {joined((one.change.memory[-SHORT_ID:], side))}"))
        for field in one.fields:
            if not side or field.name in _TOLD_WHOLE:
                _field(paper, field)
        for line in one.lines:
            paper.line(
                Span(line, {"+": "green", "-": "red"}.get(line[:1], "dim")), indent=2, hang=2
            )
    if not found:
        paper.line("It changed nothing that is kept in files.")


def _field(paper: Paper, field: FieldChange) -> None:
    before, after = _value(field.before), _value(field.after)
    if not before:
        paper.line(dim(f"{field.name}: "), Span(after, "green"), indent=2, hang=4)
    elif not after:
        paper.line(dim(f"{field.name}: "), Span(before, "red"), dim(" → nothing"), indent=2, hang=4)
    else:
        paper.line(
            dim(f"{field.name}: "),
            Span(before, "red"),
            dim(" → "),
            Span(after, "green"),
            indent=2,
            hang=4,
        )


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "; ".join(_value(item) for item in value)
    return "" if value is None else str(value)


def _render_undo(paper: Paper, undoing: Undoing, *, is_seen: bool = False) -> None:
    """What an undo does, or did; the steps once."""
    operation = undoing.operation
    verb = "Undone" if undoing.op else "To undo"
    paper.line(
        f"{verb}: ",
        bold(f"{operation.action}: {operation.subject or ''}"),
        dim(f"  {joined((minute(operation.at), _short_operation(operation)))}"),
    )
    for step in () if is_seen else undoing.steps:
        _step(paper, step, is_done=undoing.op is not None)
    for one in () if is_seen else undoing.waiting:
        paper.line("waits in review again: ", one.subject, indent=2, hang=4)
    if not undoing.steps and not undoing.waiting:
        paper.line("Nothing of it is left to undo.", indent=2)
    if undoing.op and undoing.steps:  # what alone waits again is decided again, not undone
        paper.line(dim(f"nacre undo {undoing.op[-SHORT_ID:]} takes this back"), indent=2)


def _step(paper: Paper, step: Step, *, is_done: bool) -> None:
    said = (_DONE if is_done else _PLANNED).get(step.action, step.action)
    clashes = f": changed since in {', '.join(step.clashes)}" if step.clashes else ""
    style = "yellow" if step.clashes else ""
    paper.line(Span(said, style), f" {step.subject}", Span(clashes, style), indent=2, hang=4)


def _render_committed(paper: Paper, done: Committed) -> None:
    """What a commit took, and what waits."""
    if done.note and not done.commits:
        paper.line(done.note[:1].upper() + done.note[1:] + ".")
    elif done.commits:
        held = f"{count(done.operations, 'operation')} in {count(len(done.commits), 'commit')}"
        paper.line(f"Committed {held}.")
        for commit, title in done.commits[-10:]:
            paper.line(dim(commit[:8]), "  ", title, indent=2, hang=10)
    else:
        paper.line("Nothing to commit: the history is up to date.")
    for item in done.held:
        paper.line(Span(f"{item.path} {item.reason}", "yellow"), indent=2, hang=2)


# ----------------------------------------------------------------------------
# ``nacre forget``.


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
@option(
    "forget-allow-again",
    "reference",
    "--allow-again",
    metavar="ID",
    required=False,
    help="Let what was forgotten be read again.",
)
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
        example_sessions.plan_to_forget(run.home)
        if examples
        else operations.perform(run, "forget-plan", **_wanted(run, **wanted))
    )
    if dry_run or planned.is_empty:
        _answer(run, planned, None)
        return
    _ask(run, planned, yes=yes)
    _answer(run, planned, (example_sessions if examples else forgetting).forget(run.home, planned))


def _unmarked(words: Sequence[str]) -> InvalidInput:
    """What says neither a text nor an id: the difference is one between a word and all that holds it."""
    one = words[0]
    is_id = (
        len(words) == 1
        and len(one) >= _SHORTEST_ID
        and not set(one.lower()) - set("0123456789abcdef-")
    )
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
        lambda paper: (
            _render_forgotten(paper, done) if done else _render_plan(paper, planned, is_dry=True)
        ),
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
    found: list[Forgotten] = operations.perform(run, "forgotten")
    run.answer(
        {"forgotten": [_forgotten_record(one) for one in found]},
        lambda paper: _render_forgotten_list(paper, found),
    )


def _allow(run: Run, reference: str) -> None:
    allowed: Forgotten = operations.perform(run, "forget-allow-again", reference=reference)

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
        "forgotten_sessions": [
            {"session": name, "turns": turns} for name, turns in plan.sessions.items()
        ],
        "cut_sessions": [{"session": name, "turns": turns} for name, turns in plan.parts.items()],
        "forgotten_memories": [hits.memory_record(memory) for memory in plan.memories],
        "untitled_sessions": list(plan.untitled),
        "forgotten_handoffs": list(plan.handoffs),
        "losing": [hits.memory_record(memory) for memory in plan.losing],
        "released": [hits.memory_record(memory) for memory in plan.released],
        "excerpts": [{"of": one.of, "excerpt": one.text} for one in plan.excerpts],
        "erased": report.is_erased if report else False,
        "unreached": [
            {"what": one.what, "where": one.where, "remedy": one.remedy}
            for one in (report.unreached if report else ())
        ],
    }


def _forgotten_record(run: Forgotten) -> Record:
    """One run of forgetting, as the ledger tells it."""
    return {
        "id": run.run,
        "at": stamp(run.at),
        "how": run.how,
        "before": stamp(run.before),
        "sessions": list(run.sessions),
        "turns": run.turns,
        "memory_count": run.memories,
        "allowed_again": run.is_allowed,
    }


def _counts(plan: ForgetPlan) -> str:
    """What goes, in numbers."""
    said = [count(len(plan.memories), "memory", "memories"), count(plan.turns, "turn")]
    said += [count(len(plan.sessions), "whole session")] if plan.sessions else []
    said += [count(len(plan.handoffs), "handoff")] if plan.handoffs else []
    said += (
        [count(plan.traces, "trace of questions or models", "traces of questions or models")]
        if plan.traces
        else []
    )
    said += (
        [count(plan.held, "entry of the gateway", "entries of the gateway")] if plan.held else []
    )
    return joined(said, ", ")


def _render_plan(paper: Paper, plan: ForgetPlan, *, is_dry: bool = False) -> None:
    """What forgetting takes, exactly."""
    if plan.is_empty:
        paper.line("Nothing to forget: no memory, no session and no turn fits.")
        paper.line(
            dim(
                "secrets are taken out before anything is stored; what is left of them cannot be found"
            ),
            indent=2,
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
        paper.line(
            f"{count(len(plan.losing), 'memory', 'memories')} lost evidence and stayed", indent=2
        )
    if plan.released:
        paper.line(
            f"{count(len(plan.released), 'memory', 'memories')} retired: what superseded them is gone",
            indent=2,
        )
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
    paper.line(
        dim(
            "nacre forget --allow-again ID lets it be read again, where a transcript still tells it"
        )
    )


def _named(paper: Paper, title: str, sessions: Mapping[str, int]) -> None:
    if not sessions:
        return
    paper.heading(title)
    names = list(sessions.items())
    rows = []
    for session, turns in names[:_SHOWN]:
        tool, _, native_id = session.partition(":")
        rows.append(
            (f"{tool} {short_session(native_id)}", dim(count(turns, "turn") if turns else ""))
        )
    paper.table(rows, indent=2)
    _more(paper, len(names))


def _shown(paper: Paper, title: str, memories: Sequence[Memory]) -> None:
    if memories:
        paper.heading(title)
        hits.render_table(paper, memories[:_SHOWN], indent=2)
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


# ----------------------------------------------------------------------------
# ``nacre redact`` and ``nacre scrub``.


_REFUSAL = "not interactive: pass --yes if that is what you want"


@command(
    "redact",
    examples=[
        "nacre redact notes.md",
        "nacre redact 'mail jo@example.org, the key is in the safe'",
        "pbpaste | nacre redact -",
    ],
)
@click.argument("words", nargs=-1, metavar="[FILE|TEXT]", type=TEXT)
@click.option("--rules", "lists_rules", is_flag=True, help="List the rules instead.")
@click.pass_obj
def redact(run: Run, words: tuple[str, ...], lists_rules: bool) -> None:
    """Show a text as it would be stored, and which rules find secrets in it.

    FILE is a file, or - for standard input; what is no file is TEXT itself. Shells keep what is typed: real secrets are
    for a file. Nothing is stored. What is yours to add: redaction.patterns for your own
    secrets, redaction.allow for what only looks like one, redaction.emails,
    redaction.payment_cards and redaction.home_paths for what goes besides; <private>…</private> marks what is never
    kept.
    """
    if lists_rules:
        names = nacre_redact.rule_names()
        run.answer({"rules": names}, lambda paper: _render_rules(paper, names))
        return
    if not words:
        raise click.UsageError("say which text: a file, - for standard input, or the text itself")
    text, is_typed = _text_of(words)
    redactor = nacre_redact.Redactor(*run.settings.redaction)
    result = redactor.redact(text)
    record = {"text": result.text, "found": dict(result.found), "total": sum(result.found.values())}
    run.answer(record, lambda paper: paper.verbatim(result.text.removesuffix("\n")))
    if not run.as_json:
        notes = run.paper(stderr=True)
        if is_typed and len(words) == 1 and not words[0].split()[1:]:
            notes.line(dim("There is no file of that name: this is the text itself."))
        _render_redacted(notes, dict(result.found))
        click.echo(notes.text(), err=True, nl=False)


def _text_of(words: tuple[str, ...]) -> tuple[str, bool]:
    """The text that is meant, and whether it was typed."""
    if words == ("-",):
        return sys.stdin.buffer.read().decode("utf-8", errors="replace"), False
    if len(words) == 1 and os.path.exists(words[0]):
        return Path(words[0]).read_bytes().decode("utf-8", errors="replace"), False
    return " ".join(words), True


@command(
    "scrub",
    examples=[
        "nacre scrub --dry-run",
        "nacre scrub --history             # also every version that git keeps",
        "nacre scrub --history --remove-copies --yes",
    ],
)
@options("scrub", "dry_run", "history")
@option("scrub", "remove_copies")
@option("scrub", "vectors", help="Leave new vectors to the next ingest.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def scrub(
    run: Run, dry_run: bool, history: bool, remove_copies: bool, vectors: bool, yes: bool
) -> None:
    """Apply the present rules of redaction to everything that is stored.

    Sessions, memories and their files, indexes, vectors, ledger, usage, logs: what a rule knows now and did not know
    then is taken out, and the database is written anew without it. A second scrub finds nothing; one that was
    interrupted goes on.
    """
    if history and not dry_run:
        question = "Rewrite the vault's git history? Every commit gets a new id, and clones have to be made anew."
        run.confirm(question, yes=yes, refusal=_REFUSAL)
    if remove_copies and not dry_run:
        run.confirm("Remove older copies of the database for good?", yes=yes, refusal=_REFUSAL)
    wanted = {
        "dry_run": dry_run,
        "history": history,
        "remove_copies": remove_copies,
        "vectors": vectors,
    }
    with output.shown(run) as notify:
        report: ScrubReport = operations.perform(run, "scrub", notify, **wanted)
    run.answer(_scrub_record(report), lambda paper: _render_scrub(paper, report))


def _scrub_record(report: ScrubReport) -> dict[str, Any]:
    """What a scrub found and changed."""
    return {
        "dry_run": report.dry_run,
        "total": report.total,
        "found": {place: dict(rules) for place, rules in report.found.items()},
        "turns": report.turns,
        "memories": report.memories,
        "files": report.files,
        "commits": report.commits,
        "copies": [str(path) for path in report.copies],
        "removed": [str(path) for path in report.removed],
        "elsewhere": list(report.elsewhere),
        "vectors_left": report.vectors_left,
        "seconds": round(report.seconds, 3),
    }


def _render_redacted(paper: Paper, found: Mapping[str, int]) -> None:
    """Which rules found something."""
    if not found:
        paper.line(dim("No secrets were found."))
        return
    paper.line(bold(count(sum(found.values()), "secret")), " would not be stored:")
    paper.table([(f"{number:>5,}", rule) for rule, number in _by_number(found)], indent=2)


def _render_rules(paper: Paper, names: Sequence[str]) -> None:
    """The rules, in the order in which they are tried."""
    paper.line(bold(count(len(names), "rule")), ", the first that matches counts:")
    paper.body(", ".join(names), indent=2)
    paper.line("email and home-path hold where redaction.emails and redaction.home_paths are on.")


def _render_scrub(paper: Paper, report: ScrubReport) -> None:
    """What was taken out where, and what a scrub does not reach."""
    if report.total:
        verb = "would be taken out" if report.dry_run else "taken out"
        paper.line(bold(count(report.total, "secret")), f" {verb} in {seconds(report.seconds)}:")
        rows = [
            (f"{number:>6,}", rule, dim(f"in {place}"))
            for place, rules in report.found.items()
            for rule, number in _by_number(rules)
        ]
        paper.table(rows, indent=2)
        changed = [(report.turns, "turn"), (report.memories, "memory"), (report.files, "file")]
        told = ", ".join(
            count(number, word, "memories" if word == "memory" else "") for number, word in changed
        )
        paper.line(f"{'Would change' if report.dry_run else 'Changed'}: {told}.")
    else:
        paper.line(bold("Nothing to take out"), ": the rules find no secret in what is stored.")
    if report.commits is not None:
        what = "would be looked through" if report.dry_run else "of the vault's history rewritten"
        paper.line(f"{count(report.commits, 'commit')} {what}.")
    if report.vectors_left:
        paper.line(
            dim(
                f"{report.vectors_left:,} texts wait for their vectors: the next nacre ingest makes them."
            )
        )
    _render_rest(paper, report)


def _render_rest(paper: Paper, report: ScrubReport) -> None:
    if report.removed:
        paper.line(
            f"Removed {count(len(report.removed), 'older copy', 'older copies')} of the database."
        )
    if report.copies:
        paper.heading("Older copies of the database, not looked into")
        for path in report.copies:
            paper.line(str(path), indent=2)
        paper.line(dim("nacre scrub --remove-copies removes them"), indent=2)
    if report.elsewhere and (report.total or report.commits):
        paper.heading("What may still hold it elsewhere")
        for place in report.elsewhere:
            paper.line(f"- {place}", indent=2, hang=2)


def _by_number(found: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))
