"""``nacre store``, ``edit``, ``list``, ``show``, ``retire`` and ``todo``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.text import shorten
from nacre.cli import hits
from nacre.cli.command import TEXT, DefaultGroup, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.options import (
    DAY,
    EVERYTHING,
    HERE,
    OFFSET,
    SHORT_ID,
    argument,
    ask,
    ask_pages,
    count,
    day,
    flag,
    kind_span,
    limit_option,
    minute,
    option,
    perform,
    project_slug,
    read_content,
    short_id,
    speaker_name,
    turn_name,
    when,
    with_memory_filter,
)
from nacre.errors import InvalidMemoryError, UnavailableError
from nacre.home import change, views
from nacre.learn import ingest
from nacre.memories import history, judge, requests
from nacre.memories import retire as retiring
from nacre.memories import store as remembering
from nacre.values import recall, review
from nacre.values.memory import Expiry, Kind, Memory, Scope, StandingRetirement
from nacre.values.session import Speaker, Trust

if TYPE_CHECKING:
    from nacre.values.reports import StoreOutcome

_LISTS = ("tags", "add_tags", "triggers", "suppressed_contexts")
_STORED = {
    "stored": ("Stored", "Would be stored"),
    "retired": ("Stored and retired", "Would be stored and retired"),
    "updated": ("Merged into", "Would be merged into"),
    "known": ("Already stored", "Already stored"),
}


@command(
    "store",
    examples=[
        'nacre store "We deploy on Fridays" --kind decision --project acme',
        "pbpaste | nacre store - --subject 'Release checklist'",
        'nacre store "The move of billing is half done: say so" --trigger billing/ --times 5',
    ],
)
@argument("store", "content")
@option("store", "subject", "kind", "importance", "expiry", "scope")
@option("store", "expires_on", type=DAY)
@option("store", "project", callback=None)
@option("store", "tags", "triggers")
@option("store", "trigger_times", "--times", show_default=False)
@option("store", "canonical_key", "--key")
@option("store", "quote", "force", "online_dedup", "dedup_threshold")
@flag("--dry-run", "Only show what would happen, and why.")
def store(run: Run, content: str, project: str | None, dry_run: bool, **values: Any) -> None:
    """Store one memory.

    CONTENT is the text of the memory; - reads it from standard input. A duplicate of a memory in the same project is
    not stored. A memory that changes an older memory supersedes it. If rules cannot decide, a language model does, if
    --online-dedup or models.background is set.
    """
    values["content"] = read_content(content)
    if project == HERE:
        project_slug(run.home, project, change.known_or_named)  # raises if there is no project
        values["folder"] = str(Path.cwd())
    elif project:
        values["project"] = project_slug(run.home, project)
    rehearsal = None
    if dry_run:
        rehearsal = perform(run, ingest.rehearse, **values)
        outcome, memory = rehearsal.outcome, rehearsal.memory
    else:
        outcome = perform(run, ingest.store, **values)
        memory = remembering.get(run.home, outcome.memory_id)
    if outcome.note:
        run.warnings.append(f"{outcome.note}; the rules decided")
    run.answer(rehearsal or outcome, _render_stored, outcome, memory, dry_run=dry_run)


@command(
    "edit",
    examples=[
        "nacre edit 5f0c2a4d                    # opens the file in your editor",
        "nacre edit 5f0c2a4d --importance 9 --tag postgres --tag billing",
        'nacre edit 5f0c2a4d --project ""        # applies everywhere',
    ],
)
@argument("edit", "reference", metavar="ID")
@option("edit", "subject", help="A new title.")
@option("edit", "content", help="New content; - reads it from standard input.")
@option("edit", "kind", "importance", "expiry", "scope")
@option(
    "edit",
    "expires_on",
    type=DAY,
    help='Exclude it from recall and context from this day on; "" never excludes it.',
)
@option("edit", "project", callback=None, help='The project; "" if it applies everywhere.')
@option("edit", "tags", "add_tags", "triggers")
@option("edit", "trigger_times", "--times")
@option(
    "edit",
    "valid",
    help='The days on which it is true, such as 2026-01-01..2026-06-30; "" for always.',
)
@option("edit", "evergreen", "--evergreen/--no-evergreen", default=None)
@option(
    "edit",
    "suppressed_contexts",
    "--suppress",
    type=click.Choice(["session-start", "prompt", ""]),
    help='Never include it in this kind of context (repeatable); "" for none.',
)
def edit(run: Run, reference: str, **options: Any) -> None:
    """Change a memory, with options or in your editor."""
    changes = _changes(run, options)
    memory = (
        perform(run, retiring.edit, reference=reference, **changes)
        if changes
        else _edit_file(run, reference)
    )
    is_pending = run.settings.actor.is_agent and memory.speaker is Speaker.OWNER
    verb = "Pending the owner's review" if is_pending else "Saved"
    run.answer(memory, hits.render_outcomes, verb, [memory])


def _changes(run: Run, options: dict[str, Any]) -> dict[str, Any]:
    changes = {name: value for name, value in options.items() if value is not None and value != ()}
    if "expires_on" in changes:
        changes["expires_on"] = changes["expires_on"] or None
    if "content" in changes:
        changes["content"] = read_content(changes["content"])
    if "project" in changes:
        project = changes["project"].strip()
        changes["project"] = (
            project_slug(run.home, project, change.project_of_work) if project else None
        )
    for name in _LISTS:
        if name in changes:
            changes[name] = tuple(item for item in changes[name] if item)
    return changes


def _edit_file(run: Run, reference: str) -> Memory:
    view = history.look_at(run.home, requests.GetRequest(reference=reference, update=False))
    if not run.is_interactive or view.path is None:
        raise click.UsageError(
            "not interactive: pass options to change the memory without an editor"
        )
    if run.settings.server:
        raise UnavailableError(
            "this memory is on a server and has no file", hint="use the options of nacre edit"
        )
    run.home.problems.clear()
    click.edit(filename=str(run.settings.vault / view.path))
    after = history.look_at(run.home, requests.GetRequest(reference=view.memory.id, update=False))
    broken = next((text for text in run.home.problems if text.startswith(f"{view.path}:")), None)
    if broken:
        run.home.problems.clear()
        raise InvalidMemoryError(
            broken,
            hint=f"fix it with nacre edit {reference}; until then, nacre uses the last valid version",
        )
    return after.memory


def _render_stored(
    paper: Paper, outcome: StoreOutcome, memory: Memory, *, dry_run: bool = False
) -> None:
    hits.render_outcomes(paper, _STORED[outcome.action][dry_run], [memory])
    if outcome.action == "updated":
        paper.line(shorten(memory.content, hits.HIT_CHARACTERS), indent=2)
    if outcome.reason:
        forced = {"known": "; --force stores it anyway", "retired": "; --force keeps it active"}
        by = f"{outcome.decided_by}: " if outcome.decided_by else ""
        paper.note(f"{by}{outcome.reason}{forced.get(outcome.action, '')}", indent=2)
    elif dry_run and outcome.action == "stored" and not (outcome.supersedes or outcome.similar):
        paper.note("rules: this memory neither repeats nor changes another", indent=2)
    for supersede in outcome.supersedes:
        _concerned(paper, "supersedes", supersede.memory, supersede.reason)
    if outcome.amended:
        _concerned(paper, "shortened", outcome.amended, "part of it is out of date")
    if outcome.superseded_by:
        _concerned(
            paper, "superseded by", outcome.superseded_by.memory, outcome.superseded_by.reason
        )
    for similar in outcome.similar:
        doubt, how = "shown as possibly out of date: nacre review", "similar"
        if (judge.CONTRADICTS, similar.id) in [(link.rel, link.to) for link in memory.links]:
            how = "may supersede"
        elif (judge.CONTRADICTS, memory.id) in [(link.rel, link.to) for link in similar.links]:
            how = "may be superseded by"
        _concerned(paper, how, similar, "" if how == "similar" else doubt)


def _concerned(paper: Paper, how: str, memory: Memory, reason: str) -> None:
    facts = joined((reason, day(memory.created), short_id(memory)))
    paper.line(
        f"{how}: ", shorten(memory.content, hits.LINE_CHARACTERS), "  ", dim(facts), indent=2
    )


# ----------------------------------------------------------------------------
# ``nacre list``.


@command(
    "list",
    examples=[
        "nacre list",
        "nacre list postgres --kind decision --project . --limit 50",
        "nacre list --all --json",
    ],
)
@click.argument("words", nargs=-1, type=TEXT)
@limit_option("list", default=20)
@OFFSET
@EVERYTHING
@with_memory_filter
def list_memories(run: Run, words: tuple[str, ...], criteria: recall.Filter, **paging: Any) -> None:
    """List memories, the newest first.

    With WORDS, the list contains only memories whose subject, content or tags contain all words. To ask a question, use
    nacre recall.
    """
    request = {"filter": criteria, "words": " ".join(words), **paging}
    pages, memories = ask_pages(run, views.Listing, "list", "memories", **request)
    outdated_by = {old: newer for page in pages for old, newer in page.outdated_by.items()}
    nothing = "No more memories." if paging["offset"] else "No memory matches."
    listing = views.Listing(memories, pages[-1].total, outdated_by)
    hits.present(run, listing, memories, hits.render_list, nothing=nothing, offset=paging["offset"])


# ----------------------------------------------------------------------------
# ``nacre show``: one memory in full, and its history.


@command(
    "show",
    examples=[
        "nacre show 5f0c2a4d",
        'nacre show "Database of the billing service"',
        "nacre show 5f0c2a4d --history",
    ],
)
@argument("look", "reference", metavar="ID")
@option("look", "session")
@option("look", "update", help="Do not count this as a use of the memory.")
@flag("--history", "Show its predecessors and successors, with times and reasons.", "with_history")
def show(run: Run, reference: str, session: str | None, update: bool, with_history: bool) -> None:
    """Show one memory with its evidence and links.

    ID is the memory's id, its beginning or end (four characters or more), or its subject.
    """
    if with_history:
        steps = ask(run, list[views.Step], "history", reference=reference)
        run.answer({"history": steps}, _render_history, steps)
        return
    view = ask(run, views.MemoryView, "look", reference=reference, update=update, session=session)
    vault = run.settings.shown_vault
    display = replace(view, path=str(vault / view.path)) if view.path else view
    run.answer(display, render_memory, view, vault)


def _render_history(paper: Paper, steps: Sequence[views.Step]) -> None:
    for step in steps:
        memory = step.memory
        until = step.until.isoformat() if step.until else ("retired" if memory.retired else "today")
        mark = bold("▸ ") if step.is_asked else "  "
        paper.line(
            mark,
            dim(f"{step.since} to {until}  "),
            shorten(memory.content, hits.HIT_CHARACTERS),
            hang=4,
        )
        paper.note(joined((memory.kind.value, memory.subject, short_id(memory))), indent=4)
        if step.superseded_by:
            reason = f": {step.reason}" if step.reason else ""
            paper.note(f"superseded by {step.superseded_by[-8:]}{reason}", indent=4)
    if len(steps) == 1:
        paper.note("It has no predecessor or successor.", indent=2)


def render_memory(paper: Paper, view: views.MemoryView, vault: Path) -> None:
    """Print one memory in full."""
    memory = view.memory
    if memory.retired:
        reason = f": {memory.retired.reason}" if memory.retired.reason else ""
        paper.note(f"Retired {minute(memory.retired.at)}{reason}", "yellow")
    elif memory.superseded_by:
        since = f" since {memory.valid.until}" if memory.valid.until else ""
        paper.note(f"Superseded by {memory.superseded_by[-8:]}{since}", "yellow")
    if view.doubt:
        paper.note(f"May be out of date: {view.doubt}", "yellow", hang=2)
    if memory.trust is Trust.UNTRUSTED:
        paper.framed(f"{memory.subject}\n{memory.content}", hits.origin_of(memory))
    else:
        paper.title(memory.subject)
        paper.blank()
        paper.body(memory.content)
    paper.blank()
    paper.facts(_facts(view, vault), indent=0)
    if view.evidence:
        paper.heading("Evidence")
        for item in view.evidence:
            render_evidence(paper, item, memory)
    if view.links:
        paper.heading("Links")
        paper.table([_link_row(link) for link in view.links], indent=2)


def _by_model(memory: Memory, how: str) -> str:
    change = memory.extra.get(how)
    return f"by {change.get('by')}: {change.get('reason')}" if isinstance(change, dict) else ""


def _facts(view: views.MemoryView, vault: Path) -> list[tuple[str, str | Span]]:
    memory, times, usage = view.memory, view.memory.trigger_times, view.usage
    used = f"{count(usage.recall_count, 'time')}, last {when(usage.last_recalled)}"
    effects = f"shown in {count(usage.shown, 'session')}: followed {usage.followed}, broken {usage.broken}"
    uses = count(usage.access_count, "use")
    unsettled = "unknown (inbox); not in context until you set it with nacre edit --project"
    updated = memory.updated if memory.updated != memory.created else None
    return [
        ("id", memory.id),
        ("kind", kind_span(memory.kind)),
        ("importance", str(memory.importance)),
        ("project", unsettled if memory.inbox else memory.project or ""),
        ("tags", ", ".join(memory.tags)),
        ("triggers", ", ".join(memory.triggers)),
        ("delivered", f"{view.deliveries} of {count(times, 'time')}" if times else ""),
        ("evergreen", "yes: its rank never decays" if memory.evergreen else ""),
        ("excluded from", ", ".join(memory.suppressed_contexts)),
        ("expiry", memory.expiry.value if memory.expiry is not Expiry.PERMANENT else ""),
        ("expires on", str(memory.expires_on or "")),
        ("scope", memory.scope.value if memory.scope is not Scope.PRIVATE else ""),
        ("created", minute(memory.created)),
        ("updated", minute(updated)),
        ("valid", hits.period(memory.valid)),
        ("said by", speaker_name(memory.speaker, memory.author)),
        ("trust", memory.trust.value if memory.trust.value != "trusted" else ""),
        ("confidence", memory.confidence.value),
        ("merged", _by_model(memory, "merged")),
        ("amended", _by_model(memory, "amended")),
        ("key", memory.canonical_key or ""),
        ("session", memory.source.session or ""),
        ("recalled", used if usage.recall_count else ""),
        ("in context", effects if usage.shown else ""),
        ("maturity", f"{view.maturity.value} ({uses})" if usage.access_count else ""),
        ("quality", f"{usage.quality:.2f}" if usage.quality != review.NEUTRAL_QUALITY else ""),
        ("file", str(vault / view.path) if view.path else ""),
    ]


def render_evidence(paper: Paper, item: recall.Evidence, memory: Memory) -> None:
    """Print the speaker, session, time and text of a turn that is evidence for a memory."""
    said_by = speaker_name(item.speaker, memory.author if item.speaker is memory.speaker else None)
    paper.title(
        said_by,
        dim(f", {joined((turn_name(item.session_id, item.seq), minute(item.time)), ', ')}"),
        indent=2,
    )
    paper.line(item.excerpt, indent=4)


def _link_row(link: views.LinkView) -> tuple[str, Span, str]:
    relation = link.rel if link.is_outgoing else f"← {link.rel}"
    subject = link.subject or f"(unknown: {link.other})"
    facts = hits.link_facts(link)
    return relation, dim(link.other[-8:]), f"{subject} ({facts})" if facts else subject


# ----------------------------------------------------------------------------
# ``nacre retire`` and ``nacre retire --restore``.


_HOW = {
    "exact": "memories about {!r}",
    "contains": "memories whose subject contains {!r}",
    "pattern": "memories whose subject matches {!r}",
}


@command(
    "retire",
    examples=[
        "nacre retire 5f0c2a4d --reason 'we moved to SQLite'",
        "nacre retire 'standup notes *' --persist --yes",
        "nacre retire --contains 'old office' --dry-run",
    ],
)
@argument("retire", "references", metavar="[ID|SUBJECT|PATTERN]...")
@option("retire", "contains", "--contains", metavar="TEXT")
@option("retire", "like", "--like", "--fuzzy", metavar="TEXT")
@option("retire", "reason", "persist")
@flag("--dry-run", "Only show what would be retired.")
@flag("--list", "List retired memories and rules for later ones.", "shows_list")
@flag("--restore", "Restore retired or superseded memories.")
@flag("--yes", "Do not ask.", "-y", "--force", "yes")
def retire(
    run: Run,
    reason: str | None,
    dry_run: bool,
    shows_list: bool,
    restore: bool,
    yes: bool,
    **request: Any,
) -> None:
    """Remove memories from recall, but keep their files.

    Name each memory by its id (four characters or more), its subject, or a pattern with * for any text. The files move
    to retired/ in the vault, and --restore brings them back. On a terminal, the command asks first. Otherwise, subjects
    and patterns that match several memories require --yes.
    """
    if shows_list:
        retired, rules = perform(run, retiring.list_retired), perform(run, retiring.list_standing)
        run.answer({"retired": retired, "standing": rules}, _render_retired_list, retired, rules)
        return
    references, persist = request["references"], request["persist"]
    if restore and references:  # a memory that superseded a restored one stays active, too
        run.present(perform(run, retiring.unretire, references=references), _render_unretired)
        return
    if not (references or request["contains"] or request["like"]):
        raise click.UsageError(
            "no memories are named: pass ids, subjects or patterns, or --contains or --like"
        )
    plan = perform(run, retiring.choose, **request)
    if dry_run:
        run.answer(plan, _render_retired, plan.memories, [], is_dry=True)
        return
    if run.is_interactive and not yes:
        run.show(hits.render_table, plan.memories)
    later = "Retire these, and all later memories with a matching subject?"
    wide = f"{len(plan.memories)} memories match: check them with --dry-run, then pass --yes"
    run.confirm(later if persist else "Retire?", yes=yes, refusal=wide if plan.is_wider else "")
    memories, rules = retiring.retire_chosen(run.home, plan, reason, persist=persist)
    retired = [item for item in memories if item.retired]
    pending = [item for item in memories if not item.retired]
    record = {"retired": retired, "waiting_for_review": pending, "standing": rules}
    run.answer(record, _render_retired, retired, rules, pending=pending)


def _render_retired(
    paper: Paper,
    memories: Sequence[Memory],
    rules: Sequence[StandingRetirement],
    *,
    pending: Sequence[Memory] = (),
    is_dry: bool = False,
) -> None:
    if is_dry:
        paper.line(
            f"Would retire {count(len(memories), 'memory')}:"
            if memories
            else "Would retire nothing."
        )
        hits.render_table(paper, memories, indent=2)
        return
    hits.render_outcomes(paper, "Retired", memories)
    hits.render_outcomes(paper, "Pending the owner's review", pending)
    for rule in rules:
        paper.line("From now on: ", _standing(rule), hang=2)
        paper.note(f"nacre retire --restore {rule.id[-SHORT_ID:]} ends this rule", indent=2)


def _render_unretired(paper: Paper, back: retiring.BroughtBack) -> None:
    hits.render_outcomes(paper, "Restored", back.memories)
    for rule in back.rules:
        paper.line("Rule ended: ", _standing(rule), hang=2)


def _render_retired_list(
    paper: Paper, memories: Sequence[Memory], rules: Sequence[StandingRetirement]
) -> None:
    if not (memories or rules):
        paper.line("Nothing is retired.")
    rows = [
        (
            dim(short_id(memory)),
            dim(day(memory.retired.at)),
            bold(memory.subject),
            memory.retired.reason or "",
        )
        for memory in memories
        if memory.retired
    ]
    if rows:
        paper.table(rows, header=("id", "retired", "memory", "reason"), drop=(1,))
    if rules:
        paper.heading("Standing rules")
        paper.table(
            [(dim(rule.id[-SHORT_ID:]), _standing(rule), dim(rule.reason or "")) for rule in rules],
            indent=2,
        )


def _standing(rule: StandingRetirement) -> str:
    return _HOW[rule.match].format(rule.pattern) + " are retired when they are stored"


# ----------------------------------------------------------------------------
# ``nacre todo``.


@click.group(
    "todo",
    cls=DefaultGroup,
    examples=["nacre todo", 'nacre todo add "Rotate the staging keys"', "nacre todo done 5f0c2a4d"],
)
@option("review", "project")
@limit_option("list", default=50)
def todo(run: Run, project: str | None, limit: int) -> None:
    """List, add and finish todos.

    They are listed newest first. nacre list --kind todo has more filters.
    """
    projects = () if project is None else (project,)
    criteria = recall.Filter(kinds=(Kind.TODO,), projects=projects, strict=True)
    listing = ask(run, views.Listing, "list", filter=criteria, limit=limit, offset=0)
    run.present(listing, hits.render_list, nothing='Nothing to do.  nacre todo add "…"')


@todo.command(
    "add",
    examples=[
        'nacre todo add "Rotate the staging keys"',
        "nacre todo add Upgrade PostgreSQL --project acme",
    ],
)
@argument("store", "content", metavar="TEXT...", nargs=-1)
@option("store", "importance", default=6)
@option("store", "project", callback=None)
@option("store", "tags")
def add(run: Run, content: tuple[str, ...], project: str | None, **values: Any) -> None:
    """Add a todo."""
    slug = project_slug(run.home, project) if project else None
    outcome = perform(
        run, ingest.store, content=" ".join(content), kind="todo", project=slug, **values
    )
    memory = remembering.get(run.home, outcome.memory_id)
    verb = {"stored": "Added", "retired": "Added and retired"}.get(outcome.action, "Already stored")
    run.answer(outcome, Paper.line, f"{verb}: ", bold(memory.subject), "  ", dim(short_id(memory)))


@todo.command(
    "done", examples=["nacre todo done 5f0c2a4d", 'nacre todo done "Rotate the staging keys"']
)
@argument("todo-done", "references", metavar="ID...")
def finish(run: Run, references: tuple[str, ...]) -> None:
    """Finish todos."""
    finished = perform(run, retiring.finish_todos, references=references)

    def render(paper: Paper) -> None:
        for memory in finished:
            paper.line(
                "Done: " if memory.retired else "Pending the owner's review: ", bold(memory.subject)
            )

    run.answer({"done": finished}, render)
