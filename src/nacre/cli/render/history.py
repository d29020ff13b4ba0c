"""Operations, what they changed, and commits, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.cli.paper import Cell, Paper, Span, bold, dim, joined
from nacre.cli.render.words import SHORT_ID, count, minute

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nacre.history.commit import Committed
    from nacre.history.undo import Step, Undoing
    from nacre.values.operation import Operation
    from nacre.views import Difference, FieldChange, Listed


_TINTS = {
    "store": "green", "ingest": "green", "restore": "green", "retire": "yellow", "forget": "red", "undo": "magenta",
    "edit": "cyan", "update": "cyan", "supersede": "blue",
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


def short_operation(operation: Operation) -> str:
    """The end of an operation's id; the beginning of a commit's."""
    return operation.id[-SHORT_ID:] if "-" in operation.id else operation.id[:SHORT_ID]


def render_log(paper: Paper, listed: Sequence[Listed], *, with_git: bool = True) -> None:
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
                dim(short_operation(operation) + mark), minute(operation.at),
                Span(operation.action, _TINTS.get(operation.action, "")), f"{operation.subject or ''}{why}",
            )
        )  # fmt: skip
    paper.table(rows, drop=(1,))
    if with_git and any(not one.operation.committed for one in listed):
        paper.line(dim("* waits for a commit"))


def render_diff(paper: Paper, operation: Operation, found: Sequence[Difference]) -> None:
    """What an operation changed, memory by memory: front matter, then lines of the text."""
    paper.line(
        bold(f"{operation.action}: {operation.subject or ''}".rstrip(": ")),
        dim(f"  {joined((minute(operation.at), short_operation(operation)))}"),
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


def render_undo(paper: Paper, undoing: Undoing) -> None:
    """What an undo does, or did."""
    operation = undoing.operation
    verb = "Undone" if undoing.op else "To undo"
    paper.line(
        f"{verb}: ", bold(f"{operation.action}: {operation.subject or ''}"),
        dim(f"  {joined((minute(operation.at), short_operation(operation)))}"),
    )  # fmt: skip
    for step in undoing.steps:
        _step(paper, step, is_done=undoing.op is not None)
    if not undoing.steps:
        paper.line("Nothing of it is left to undo.", indent=2)
    if undoing.op:
        paper.line(dim(f"nacre undo {undoing.op[-SHORT_ID:]} takes this back"), indent=2)


def _step(paper: Paper, step: Step, *, is_done: bool) -> None:
    said = (_DONE if is_done else _PLANNED).get(step.action, step.action)
    clashes = f": changed since in {', '.join(step.clashes)}" if step.clashes else ""
    style = "yellow" if step.clashes else ""
    paper.line(Span(said, style), f" {step.subject}", Span(clashes, style), indent=2, hang=4)


def render_committed(paper: Paper, done: Committed) -> None:
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
