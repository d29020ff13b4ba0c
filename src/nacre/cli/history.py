"""``nacre log``, ``undo``, ``commit``, ``forget``, ``redact`` and ``scrub``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.json import to_plain
from nacre.cli import hits
from nacre.cli.command import TEXT, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.options import (
    EVERYTHING,
    SHORT_ID,
    YES,
    argument,
    ask,
    ask_pages,
    count,
    day,
    duration,
    flag,
    minute,
    option,
    perform,
    project_slug,
    short_session,
)
from nacre.data import forget as forgetting
from nacre.data import history as committing
from nacre.data import scrub as data_scrub
from nacre.data import undo as data_undo
from nacre.errors import InvalidInputError, NotFoundError
from nacre.home import views
from nacre.operations import operation_of
from nacre.redact import redactor as nacre_redact
from nacre.review import queue
from nacre.setup import examples as example_sessions

if TYPE_CHECKING:
    from nacre.values.memory import (
        ForgetPlan,
        ForgetReport,
        Forgotten,
        Memory,
        Operation,
        ScrubReport,
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
_FIELDS_SHOWN = frozenset({"file", "kind", "importance", "project", "tags", "links"})
"""Fields shown for a new or deleted memory. Its file and ``--json`` contain all fields."""
_PLANNED_VERBS = {
    "bring back": "restores",
    "change back": "reverts",
    "retire": "retires",
    "remove": "removes",
    "conflict": "cannot undo",
}
_DONE_VERBS = {
    "bring back": "restored",
    "change back": "reverted",
    "retire": "retired",
    "remove": "removed",
}


@command("log", examples=["nacre log", "nacre log 5f0c2a4d", "nacre log --diff 5f0c2a4d"])
@argument("log", "reference", metavar="[MEMORY|OPERATION]")
@flag(
    "--diff",
    "Show the changes in detail: of this operation, of a memory's last one, or of the last one.",
    "shows_diff",
)
@option("log", "project")
@option("log", "action", metavar="NAME")
@option("log", "limit", type=click.IntRange(1, 10_000), default=30)
@EVERYTHING
def log(run: Run, reference: str | None, shows_diff: bool, **request: Any) -> None:
    """List changes to your memories, newest first.

    Each line is an operation: its id, time, action, source (the command line, an agent's tools …), memory and reason.
    Operations not yet committed to git are marked with *. With a memory, only its changes are listed.
    """
    if shows_diff:
        answer = ask(run, views.OperationDiff, "diff", reference=reference)
        operation, differences = answer.operation, answer.differences
        record = {"operation": operation, "changes": differences}
        run.answer(record, _render_diff, operation, differences)
        return
    _, rows = ask_pages(run, list[views.Listed], "log", "", reference=reference, **request)
    record = {"operations": rows, "limit": None if request["everything"] else request["limit"]}
    run.answer(record, _render_log, rows, with_git=run.settings.flag("git.enabled"))


@command(
    "undo", examples=["nacre undo", "nacre undo 5f0c2a4d --dry-run", "nacre undo 5f0c2a4d --yes"]
)
@argument("undo", "operation", metavar="[OPERATION|ITEM]")
@flag("--dry-run", "Only show what would be done.")
@YES
def undo(run: Run, operation: str | None, dry_run: bool, yes: bool) -> None:
    """Undo an operation.

    Without an id, the command undoes the last operation that is not undone yet. Repeated calls go further back. Created
    memories are retired, changes are reverted, decided review items become pending again, and later changes are kept.
    An undo can itself be undone, but this does not restore decisions about review items. With the id of a review item,
    the command reverts the last decision about that item. On a terminal, the command asks first. Elsewhere, the command
    needs an id or --yes.
    """
    try:
        _undo(run, operation, dry_run=dry_run, yes=yes)
    except NotFoundError as absent:
        if operation is None or dry_run:
            raise
        run.confirm(f"Revert the last decision about {operation}?", yes=yes)
        try:
            memory = perform(run, queue.reopen, reference=operation)
        except NotFoundError:
            raise absent from None
        run.answer(memory, hits.render_outcomes, "Pending again", [memory])


def _undo(run: Run, operation: str | None, *, dry_run: bool, yes: bool) -> None:
    is_seen = run.is_interactive and not yes
    if dry_run or is_seen or not (yes or operation):
        plan = perform(run, data_undo.plan_undo, operation=operation)
        if dry_run:
            run.present(plan, _render_undo)
            return
        if not is_seen:
            last = plan.operation
            about = f" ({last.subject})" if last.subject else ""
            raise click.UsageError(
                f"not interactive: pass --yes to undo the last operation, {last.action} {_short_operation(last)}"
                f"{about}, or an operation's id"
            )
        run.show(_render_undo, plan)
        if not plan.conflicts and (plan.steps or plan.waiting):
            run.confirm("Undo?")
        operation = plan.operation.id  # by now another operation may be the last
    run.present(perform(run, data_undo.undo, operation=operation), _render_undo, is_seen=is_seen)


@command("commit", examples=["nacre admin commit"])
@flag("--quiet", "Print nothing, and exit if another process is already committing.")
def commit(run: Run, quiet: bool) -> None:
    """Commit pending changes to the vault's git history now.

    Usually, a later command commits the changes in the background. This happens a minute after an operation or later.
    Files that you add to the vault are also committed, unless git ignores them.
    """
    run.keeps_history = False
    if quiet:
        committing.commit_quietly(run.home)
        return
    run.present(perform(run, data_undo.commit), _render_committed)


def _short_operation(operation: Operation) -> str:
    return operation.id[-SHORT_ID:] if "-" in operation.id else operation.id[:SHORT_ID]


def _render_log(paper: Paper, entries: Sequence[views.Listed], *, with_git: bool) -> None:
    if not entries:
        paper.line("There are no operations yet.")
        return
    operations = [entry.operation for entry in entries]
    rows = [
        (
            dim(_short_operation(item) + "*" * (with_git and not item.committed)),
            minute(item.at),
            Span(item.action, _TINTS.get(item.action, "")),
            dim((item.by or "").replace("command line", "cli").replace(",", "")),
            f"{item.subject or ''}{f'  ({item.why})' if item.why else ''}",
        )
        for item in operations
    ]
    paper.table(rows, header=("id", "when", "action", "by", "subject"), drop=(3, 1))
    if with_git and not all(item.committed for item in operations):
        paper.note("* not committed yet")


def _render_diff(
    paper: Paper, operation: Operation, differences: Sequence[views.Difference]
) -> None:
    about = joined((minute(operation.at), _short_operation(operation), operation.by or ""))
    paper.title(f"{operation.action}: {operation.subject or ''}".rstrip(": "), dim(f"  {about}"))
    if operation.why:
        paper.note(operation.why, indent=2)
    for difference in differences:
        paper.blank()
        new, deleted = difference.change.before is None, difference.change.after is None
        side = "new" if new else "deleted" if deleted else ""
        paper.title(
            difference.subject, dim(f"  {joined((difference.change.memory[-SHORT_ID:], side))}")
        )
        for field in difference.fields:
            if not side or field.name in _FIELDS_SHOWN:
                _field(paper, field)
        for line in difference.lines:
            paper.note(line, {"+": "green", "-": "red"}.get(line[:1], "dim"), indent=2)
    if not differences:
        paper.line("It changed no files.")


def _field(paper: Paper, field: views.FieldChange) -> None:
    before, after = _value(field.before), _value(field.after)
    paper.line(
        dim(f"{field.name}: "),
        Span(before, "red"),
        dim(" → ") if before else "",
        Span(after, "green") if after else dim("empty"),
        indent=2,
        hang=4,
    )


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "; ".join(_value(item) for item in value)
    return "" if value is None else str(value)


def _render_undo(paper: Paper, undoing: data_undo.Undoing, *, is_seen: bool = False) -> None:
    operation = undoing.operation
    verb = "Undone" if undoing.op else "To undo"
    paper.line(
        f"{verb}: ",
        bold(f"{operation.action}: {operation.subject or ''}"),
        dim(f"  {joined((minute(operation.at), _short_operation(operation)))}"),
    )
    for step in () if is_seen else undoing.steps:
        verb = (_DONE_VERBS if undoing.op else _PLANNED_VERBS).get(step.action, step.action)
        clashes = f": also changed later: {', '.join(step.clashes)}" if step.clashes else ""
        style = "yellow" if clashes else ""
        paper.line(Span(verb, style), f" {step.subject}", Span(clashes, style), indent=2, hang=4)
    for candidate in () if is_seen else undoing.waiting:
        paper.line("pending in review again: ", candidate.subject, indent=2, hang=4)
    if not undoing.steps and not undoing.waiting:
        paper.line("There is nothing left to undo.", indent=2)
    if undoing.op and undoing.steps:  # undoing only a review decision cannot be undone
        paper.note(f"nacre undo {undoing.op[-SHORT_ID:]} reverts this", indent=2)


def _render_committed(paper: Paper, result: committing.Committed) -> None:
    if result.note and not result.commits:
        paper.line(result.note[:1].upper() + result.note[1:] + ".")
    elif result.commits:
        summary = (
            f"{count(result.operations, 'operation')} in {count(len(result.commits), 'commit')}"
        )
        paper.line(f"Committed {summary}.")
        for commit, title in result.commits[-10:]:
            paper.line(dim(commit[:8]), "  ", title, indent=2, hang=10)
    else:
        paper.line("Nothing to commit: the history is up to date.")
    for item in result.held:
        paper.note(f"{item.path} {item.reason}", "yellow", indent=2)


# ----------------------------------------------------------------------------
# ``nacre forget``.


_MAX_ROWS = 12
_ALL = "; --json lists all"


@command(
    "forget",
    examples=[
        "nacre forget --match 'Jordan Example' --dry-run",
        "nacre forget --project acme-billing --before 2026-01-01",
        "nacre forget 5f0c2a4d --yes",
    ],
)
@click.argument("words", nargs=-1, metavar="[ID]...", type=TEXT)
@option("forget", "sessions", metavar="ID", help="A session and the memories learned from it.")
@option("forget", "memories", "--memory", metavar="ID", help="A memory and its source turns.")
@option("forget", "project", callback=None)
@option("forget", "match", metavar="TEXT", help="Every turn and memory that contains this text.")
@option("forget", "regex", help="With --match: TEXT is a regular expression.")
@option("forget", "before", help="Everything before this day; with --project, in that project.")
@flag("--examples", "The example sessions of nacre quickstart.")
@flag("--dry-run", "Only show what would be deleted.")
@flag("--list", "List earlier deletions.", "shows_list")
@option(
    "forget-allow-again",
    "reference",
    "--allow-again",
    metavar="ID",
    required=False,
    help="Let nacre read forgotten content again.",
)
@YES
def forget(
    run: Run,
    words: tuple[str, ...],
    shows_list: bool,
    reference: str | None,
    dry_run: bool,
    yes: bool,
    examples: bool,
    **selection: Any,
) -> None:
    """Permanently delete memories, their source turns and everything derived from them.

    This cannot be undone. The ledger keeps ids and keyed hashes, so that no later ingest and no other machine
    restores the content. To hide memories from recall but keep them, retire them.
    """
    if any(word.strip("0123456789abcdef-") for word in words):
        raise InvalidInputError(
            "select the content to delete by an id or an option",
            hint="--memory ID, --session ID or --match TEXT; with --dry-run, nothing is deleted",
        )
    if shows_list:
        runs = perform(run, forgetting.forgotten)
        run.answer({"forgotten": runs}, _render_forgotten_list, runs)
        return
    if reference:
        allowed = perform(run, forgetting.allow_again, reference=reference)
        again = f": {reference}; nacre ingest reads it again if a transcript still has it"
        run.answer(allowed, Paper.title, "Allowed again", again, hang=2)
        return
    selection["memories"] += words
    if examples and any(selection.values()):
        raise click.UsageError("--examples cannot be combined with other selections")
    if examples:
        deletion = example_sessions.plan_to_forget(run.home)
    else:
        if selection["project"]:
            selection["project"] = project_slug(run.home, selection["project"])
        request = operation_of(forgetting.plan).make(selection)
        deletion = forgetting.prepare(run.home, request)
    if dry_run or deletion.plan.is_empty:
        run.answer(deletion.plan, _render_plan, deletion.plan, is_dry=True)
        return
    if run.is_interactive and not yes:
        run.show(_render_plan, deletion.plan)
    counts = _counts(deletion.plan)
    run.confirm(
        f"Permanently delete {counts}?",
        yes=yes,
        refusal=f"this permanently deletes {counts}: check with --dry-run, then add --yes",
    )
    report = (example_sessions if examples else forgetting).forget(run.home, deletion)
    run.present(report, _render_forgotten)


def _counts(plan: ForgetPlan) -> str:
    counts = [count(len(plan.memories), "memory"), count(plan.turns, "turn")]
    numbers = (
        (len(plan.sessions), "whole session"),
        (len(plan.handoffs), "handoff"),
        (plan.traces, "question or model trace"),
        (plan.held, "gateway entry"),
    )
    return ", ".join([*counts, *(count(*item) for item in numbers if item[0])])


def _render_plan(paper: Paper, plan: ForgetPlan, *, is_dry: bool = False) -> None:
    if plan.is_empty:
        paper.line("Nothing to forget: no memory, session or turn matches.")
        paper.note(
            "secrets are removed before anything is stored, so a search cannot find them", indent=2
        )
        return
    paper.title(f"{'Would delete' if is_dry else 'To delete'}: {_counts(plan)}")
    _render_sessions(paper, "Whole sessions", plan.sessions)
    _render_sessions(paper, "Sessions that lose turns", plan.parts)
    _render_sessions(paper, "Sessions that lose their title", dict.fromkeys(plan.untitled, 0))
    _render_memories(paper, "Memories", plan.memories)
    _render_memories(paper, "Memories that lose evidence but stay", plan.losing)
    _render_memories(paper, "Retired, because their successors are deleted", plan.released)
    if plan.excerpts:
        paper.heading("Matching text")
        rows = [(dim(excerpt.of[-13:]), excerpt.text) for excerpt in plan.excerpts[:_MAX_ROWS]]
        paper.table(rows, indent=2)
        paper.more(len(plan.excerpts) - _MAX_ROWS, _ALL)


def _render_forgotten(paper: Paper, report: ForgetReport) -> None:
    plan = report.plan
    paper.title("Forgotten", f": {_counts(plan)}", dim(f"  {report.run[-SHORT_ID:]}"))
    if plan.losing:
        paper.line(f"{count(len(plan.losing), 'memory')} lost evidence but stayed", indent=2)
    if plan.released:
        paper.line(
            f"{count(len(plan.released), 'memory')} retired: their successors are deleted", indent=2
        )
    if not report.is_erased:
        text = (
            "Another process uses the database, so some content remains; nacre ingest removes it."
        )
        paper.note(text, "yellow", indent=2)
    paper.heading("Not deleted")
    for kind in dict.fromkeys(place.what for place in report.unreached):
        places = [place for place in report.unreached if place.what == kind]
        for place in places[:_MAX_ROWS]:
            paper.line(f"{kind}: ", place.where, indent=2)
        paper.more(len(places) - _MAX_ROWS, _ALL)
        paper.note(places[0].remedy, indent=4)


def _render_forgotten_list(paper: Paper, runs: Sequence[Forgotten]) -> None:
    if not runs:
        paper.line("Nothing has been forgotten.")
        return
    rows = []
    for run in runs:
        what = f"before {day(run.before)}" if run.before else run.how
        counts = [
            count(run.memories, "memory"),
            count(len(run.sessions), "session"),
            count(run.turns, "turn"),
        ]
        state = "allowed again" if run.is_allowed else ""
        rows.append((dim(run.run[-SHORT_ID:]), dim(minute(run.at)), what, joined([*counts, state])))
    paper.table(rows, header=("id", "when", "what", "deleted"))
    paper.blank()
    paper.note(
        "nacre forget --allow-again ID lets nacre read it again if a transcript still has it"
    )


def _render_sessions(paper: Paper, title: str, sessions: Mapping[str, int]) -> None:
    if not sessions:
        return
    paper.heading(title)
    rows = []
    for session, turns in islice(sessions.items(), _MAX_ROWS):
        tool, _, native_id = session.partition(":")
        rows.append(
            (f"{tool} {short_session(native_id)}", dim(count(turns, "turn") if turns else ""))
        )
    paper.table(rows, indent=2)
    paper.more(len(sessions) - _MAX_ROWS, _ALL)


def _render_memories(paper: Paper, title: str, memories: Sequence[Memory]) -> None:
    if memories:
        paper.heading(title)
        hits.render_table(paper, memories[:_MAX_ROWS], indent=2)
        paper.more(len(memories) - _MAX_ROWS, _ALL)


# ----------------------------------------------------------------------------
# ``nacre admin redact`` and ``nacre admin scrub``.


_REFUSAL = "not interactive: pass --yes to confirm"


@command(
    "redact",
    examples=[
        "nacre admin redact notes.md",
        "nacre admin redact 'mail jo@example.org, the key is in the safe'",
        "pbpaste | nacre admin redact -",
    ],
)
@click.argument("words", nargs=-1, metavar="[FILE|TEXT]", type=TEXT)
@flag("--rules", "List the rules instead.", "lists_rules")
def redact(run: Run, words: tuple[str, ...], lists_rules: bool) -> None:
    """Show how a text would be stored, and which rules find secrets in it.

    FILE is a file, or - for standard input; anything else is TEXT itself. Nothing is stored. Put real secrets in a
    file, because shells keep a history. Settings: redaction.patterns for your own secrets, redaction.allow for false
    positives, and redaction.emails, redaction.payment_cards and redaction.home_paths to remove these as well. Text in
    <private>…</private> is never kept.
    """
    if lists_rules:
        names = nacre_redact.rule_names()
        run.answer({"rules": names}, _render_rules, names)
        return
    if not words:
        raise click.UsageError("no text: pass a file, - for standard input, or the text itself")
    text, is_typed = _text_of(words)
    redactor = nacre_redact.Redactor(*run.settings.redaction)
    result = redactor.redact(text)
    found = dict(result.counts)
    record = {"text": result.text, "found": found, "total": sum(found.values())}
    run.answer(record, Paper.verbatim, result.text.removesuffix("\n"))
    if not run.as_json:
        notes = run.paper(stderr=True)
        if is_typed and len(words) == 1 and not words[0].split()[1:]:
            notes.note("There is no file with this name, so it was read as text.")
        _render_redacted(notes, found)
        click.echo(notes.text(), err=True, nl=False)


def _text_of(words: tuple[str, ...]) -> tuple[str, bool]:
    if words == ("-",):
        return sys.stdin.buffer.read().decode("utf-8", errors="replace"), False
    if len(words) == 1 and os.path.exists(words[0]):
        return Path(words[0]).read_bytes().decode("utf-8", errors="replace"), False
    return " ".join(words), True


@command(
    "scrub",
    examples=[
        "nacre admin scrub --dry-run",
        "nacre admin scrub --history             # also every version in git",
        "nacre admin scrub --history --remove-copies --yes",
    ],
)
@option("scrub", "dry_run", "history", "remove_copies")
@option("scrub", "vectors", help="Leave new vectors to the next ingest.")
@YES
def scrub(run: Run, yes: bool, **request: Any) -> None:
    """Apply the current redaction rules to all stored data.

    This covers sessions, memories and their files, indexes, vectors, the ledger, usage and logs. Secrets that only
    newer rules find are removed, and the database is rewritten without them. A second scrub finds nothing. Run an
    interrupted scrub again to continue it.
    """
    yes |= request["dry_run"]
    if request["history"]:
        question = "Rewrite the vault's git history? Every commit gets a new id, and clones must be recreated."
        run.confirm(question, yes=yes, refusal=_REFUSAL)
    if request["remove_copies"]:
        run.confirm("Permanently remove older copies of the database?", yes=yes, refusal=_REFUSAL)
    report = perform(run, data_scrub.scrub, **request)
    run.answer({**to_plain(report), "total": report.total}, _render_scrub, report)


def _render_redacted(paper: Paper, counts: Mapping[str, int]) -> None:
    if not counts:
        paper.note("No secrets were found.")
        return
    paper.title(count(sum(counts.values()), "secret"), " would not be stored:")
    paper.table([(f"{number:>5,}", rule) for rule, number in _by_number(counts)], indent=2)


def _render_rules(paper: Paper, names: Sequence[str]) -> None:
    paper.title(count(len(names), "rule"), " in order; the first match counts:")
    paper.body(", ".join(names), indent=2)
    paper.line("email and home-path apply if redaction.emails and redaction.home_paths are on.")


def _render_scrub(paper: Paper, report: ScrubReport) -> None:
    if report.total:
        verb = "would be removed" if report.dry_run else "removed"
        paper.title(count(report.total, "secret"), f" {verb} in {duration(report.seconds)}:")
        rows = [
            (f"{number:>6,}", rule, dim(f"in {place}"))
            for place, rules in report.found.items()
            for rule, number in _by_number(rules)
        ]
        paper.table(rows, indent=2)
        changed = [(report.turns, "turn"), (report.memories, "memory"), (report.files, "file")]
        changes = ", ".join(count(number, word) for number, word in changed)
        paper.line(f"{'Would change' if report.dry_run else 'Changed'}: {changes}.")
    else:
        paper.title("Nothing to remove", ": the rules find no secrets in the stored data.")
    if report.commits is not None:
        verb = "would be checked" if report.dry_run else "of the vault's history rewritten"
        paper.line(f"{count(report.commits, 'commit')} {verb}.")
    if report.vectors_left:
        paper.note(
            f"{report.vectors_left:,} passages and memories have no vectors yet: run nacre ingest."
        )
    if report.removed:
        paper.line(f"Removed {count(len(report.removed), 'older copy')} of the database.")
    if report.copies:
        paper.heading("Older copies of the database, not checked")
        for path in report.copies:
            paper.line(str(path), indent=2)
        paper.note("nacre admin scrub --remove-copies removes them", indent=2)
    if report.elsewhere and (report.total or report.commits):
        paper.heading("Other places that may still contain secrets")
        for place in report.elsewhere:
            paper.line(f"- {place}", indent=2)


def _by_number(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
