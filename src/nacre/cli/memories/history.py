"""``nacre log``, ``nacre diff``, ``nacre undo`` and ``nacre commit``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import command
from nacre.cli.formats import SHORT_ID, Record, count, minute, stamp
from nacre.cli.operations import ask, perform
from nacre.cli.options import EVERYTHING, JSON_LINES, find_project, pages
from nacre.cli.paper import Cell, Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.history import commit as committing

if TYPE_CHECKING:
    from nacre.history.commit import Committed
    from nacre.history.undo import Step, Undoing
    from nacre.values.operation import Operation
    from nacre.views import Difference, FieldChange, Listed


_TINTS = {
    "store": "green", "ingest": "green", "restore": "green", "retire": "yellow", "remove": "yellow", "forget": "red",
    "undo": "magenta", "edit": "cyan", "update": "cyan", "supersede": "blue",
}  # fmt: skip
_TOLD_WHOLE = frozenset({"file", "kind", "importance", "project", "tags", "links"})
"""What is shown of a memory that is new or gone; the rest is in --json and in its file."""
_PLANNED = {
    "bring back": "brings back", "change back": "changes back", "retire": "retires", "remove": "removes",
    "keep both": "keeps both", "conflict": "cannot undo",
}  # fmt: skip
_DONE = {
    "bring back": "brought back", "change back": "changed back", "retire": "retired", "remove": "removed",
    "keep both": "kept both",
}  # fmt: skip


@command("log", examples=["nacre log", "nacre log --memory 5f0c2a4d", "nacre log --project . --limit 20"])
@option("log", "reference", "--memory", help="Only what was done to this memory: its id or subject.")
@option("log", "project", help="Only what was done in this project; . is the one of this folder.")
@option("log", "action", metavar="NAME")
@option("log", "limit", type=click.IntRange(1, 10_000), default=30)
@EVERYTHING
@JSON_LINES
@click.pass_obj
def log(
    run: Run, reference: str | None, project: str | None, action: str | None, limit: int, everything: bool,
    as_lines: bool,
) -> None:  # fmt: skip
    """List what was done to your memories, the newest first.

    Each line is an operation: its id, when, what, who asked for it (the command line, an agent's tools …), to which
    memory, and why. What no commit holds yet is marked with *.
    """
    slug, most = find_project(run, project), None if everything else limit

    def page(size: int, at: int) -> tuple[Sequence[Listed], bool]:
        found = ask(run, "log", reference=reference, project=slug, action=action, limit=size, offset=at)
        return found, len(found) == size

    found = pages(page, most, 0)
    if as_lines:
        run.answer_lines(_operation_record(one.operation, one.memories) for one in found)
        return
    listed = list(found)
    run.answer(
        {"operations": [_operation_record(one.operation, one.memories) for one in listed], "limit": most},
        lambda paper: _render_log(paper, listed, with_git=run.settings.flag("git.enabled")),
    )


@command("diff", examples=["nacre diff", "nacre diff 5f0c2a4d", 'nacre diff "Database of the billing service"'])
@argument("diff", "reference", metavar="[OPERATION|MEMORY]")
@click.pass_obj
def diff(run: Run, reference: str | None) -> None:
    """Show what an operation changed.

    Without an id it is the last one; for a memory, the last one on it.
    """
    answer = ask(run, "diff", reference=reference)
    operation, found = answer.operation, answer.differences
    run.answer(_diff_record(operation, found), lambda paper: _render_diff(paper, operation, found))


@command("undo", examples=["nacre undo", "nacre undo 5f0c2a4d --dry-run", "nacre undo 5f0c2a4d --yes"])
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
        planned: Undoing = perform(run, "undo-plan", operation=operation, force=force)
        if dry_run:
            run.answer(_undo_record(planned), lambda paper: _render_undo(paper, planned))
            return
        if not is_seen:
            raise _unnamed(planned.operation)
        run.show(lambda paper: _render_undo(paper, planned))
        if not planned.conflicts and (planned.steps or planned.waiting):
            run.confirm("Undo?")
        operation = planned.operation.id  # another may be the last one by now
    done: Undoing = perform(run, "undo", operation=operation, force=force)
    run.answer(_undo_record(done), lambda paper: _render_undo(paper, done, is_seen=is_seen))


def _unnamed(last: Operation) -> click.UsageError:
    about = f" ({last.subject})" if last.subject else ""
    return click.UsageError(
        f"not interactive: pass --yes to undo the last operation, {last.action} {_short_operation(last)}{about}, "
        "or an operation's id",
        click.get_current_context(),
    )


@command("commit", examples=["nacre commit", "nacre commit --json"])
@click.option("--quiet", is_flag=True, help="Say nothing; where another process commits already, leave it to that one.")
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
    done: Committed = perform(run, "commit")
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
    return {**_operation_record(operation, tuple(memories)), "changes": [_difference_record(one) for one in found]}


def _difference_record(one: Difference) -> Record:
    before, after = one.change.before, one.change.after
    return {
        "id": one.change.memory or None,
        "subject": one.subject,
        "path_before": before.path if before else None,
        "path": after.path if after else None,
        "fields": [{"name": field.name, "before": field.before, "after": field.after} for field in one.fields],
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
                dim(_short_operation(operation) + mark), minute(operation.at),
                Span(operation.action, _TINTS.get(operation.action, "")),
                dim((operation.by or "").replace("command line", "cli").replace(",", "")),
                f"{operation.subject or ''}{why}",
            )
        )  # fmt: skip
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
            paper.line(Span(line, {"+": "green", "-": "red"}.get(line[:1], "dim")), indent=2, hang=2)
    if not found:
        paper.line("It changed nothing that is kept in files.")


def _field(paper: Paper, field: FieldChange) -> None:
    before, after = _value(field.before), _value(field.after)
    if not before:
        paper.line(dim(f"{field.name}: "), Span(after, "green"), indent=2, hang=4)
    elif not after:
        paper.line(dim(f"{field.name}: "), Span(before, "red"), dim(" → nothing"), indent=2, hang=4)
    else:
        paper.line(dim(f"{field.name}: "), Span(before, "red"), dim(" → "), Span(after, "green"), indent=2, hang=4)


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
        f"{verb}: ", bold(f"{operation.action}: {operation.subject or ''}"),
        dim(f"  {joined((minute(operation.at), _short_operation(operation)))}"),
    )  # fmt: skip
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
