"""``nacre store`` and ``nacre edit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import command
from nacre.cli.formats import Record, day, short_id
from nacre.cli.memories.memory import HIT_CHARACTERS, LINE_CHARACTERS, memory_record, render_outcome, waits_for_owner
from nacre.cli.moment import DAY
from nacre.cli.operations import perform
from nacre.cli.options import HERE, project_slug, read_content
from nacre.cli.paper import Paper, dim, joined
from nacre.cli.request_options import argument, option, options
from nacre.cli.run import Run
from nacre.dedup import comparison
from nacre.errors import MemoryInvalid, Unavailable
from nacre.home import projects
from nacre.memories import store as remembering
from nacre.memories import views
from nacre.text import passages

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.memories.store import Rehearsal
    from nacre.values.memory import Memory
    from nacre.values.reports import StoreOutcome


_LISTS = ("tags", "add_tags", "triggers", "suppressed_contexts")
_PLACE = click.Choice(["session-start", "prompt", ""])
_STORED = {
    "stored": ("Stored", "Would be stored"),
    "retired": ("Retired at once", "Would be retired at once"),
    "updated": ("Merged into", "Would be merged into"),
    "known": ("Known already", "Would be nothing new"),
}


@command(
    "store",
    examples=[
        'nacre store "We deploy on Fridays" --kind decision --project acme',
        "pbpaste | nacre store - --subject 'Release checklist'",
        'nacre store "The gate needs two reviewers" --online-dedup --dry-run',
    ],
)
@argument("store", "content")
@options("store", "subject", "kind", "importance", "expiry", "scope")
@option("store", "expires_on", type=DAY)
@option("store", "project", help="The project it belongs to; . is the one of this folder.")
@option("store", "tags", help="A tag.")
@option("store", "triggers", "--trigger", help="An agent gets this memory with a prompt that has this word or phrase.")
@option("store", "canonical_key", "--key")
@option("store", "quote")
@options("store", "force", "online_dedup")
@option("store", "aggressive", "--aggressive", is_flag=True)
@option("store", "dedup_threshold")
@click.option("--dry-run", is_flag=True, help="Say what would happen and why; store nothing.")
@click.pass_obj
def store(run: Run, /, content: str, project: str | None, dry_run: bool, **values: Any) -> None:
    """Store one memory.

    CONTENT is what is to be remembered; - reads it from standard input. What says the same as a memory of the same
    project is not stored twice; what says otherwise takes its place. With a language model for the background
    (models.background) or --online-dedup, the model decides where the rules cannot.
    """
    slug, folder = _place(run.home, project)
    values |= {"content": read_content(content), "project": slug, "folder": folder}
    if dry_run:
        rehearsal: Rehearsal = perform(run, "store-rehearse", **values)
        outcome, memory = rehearsal.outcome, rehearsal.memory
    else:
        outcome = perform(run, "store", **values)
        memory = remembering.get(run.home, outcome.memory_id)
    if outcome.note:
        run.warnings.append(f"{outcome.note}; the rules decided")
    run.answer(
        _outcome_record(outcome, memory, dry_run=dry_run),
        lambda paper: _render_stored(paper, outcome, memory, dry_run=dry_run),
    )


def _place(home: Home, project: str | None) -> tuple[str | None, str | None]:
    """The project that is named, or the folder whose project is meant: that may be a new one."""
    if project != HERE:
        return (project_slug(home, project) if project else None), None

    project_slug(home, project, projects.known_or_named)  # a folder that is no project's is refused
    return None, str(Path.cwd())


@command(
    "edit",
    examples=[
        "nacre edit 5f0c2a4d                    # opens the file in your editor",
        "nacre edit 5f0c2a4d --importance 9 --tag postgres --tag billing",
        'nacre edit 5f0c2a4d --project ""        # holds everywhere, in no project',
    ],
)
@argument("edit", "reference", metavar="ID")
@option("edit", "subject", help="A new title.")
@option("edit", "content", help="New content; - reads it from standard input.")
@option("edit", "kind", help="Another kind.")
@options("edit", "importance", "expiry", "scope")
@option("edit", "expires_on", type=DAY, help='From this day on recall and context leave it out; "" for never.')
@option("edit", "project", help='The project it belongs to; "" for none: it holds everywhere.')
@option("edit", "tags")
@option("edit", "add_tags", help="A tag beside those it has.")
@option(
    "edit", "triggers", "--trigger",
    help='An agent gets this memory with a prompt that has this word or phrase; "" for none.',
)  # fmt: skip
@option("edit", "valid", help='When it is true in the world, as 2026-01-01..2026-06-30; "" for always.')
@option("edit", "evergreen", "--evergreen/--no-evergreen", default=None)
@option(
    "edit", "suppressed_contexts", "--suppress", type=_PLACE,
    help='Never add it to this kind of context; may be given twice, "" for none.',
)  # fmt: skip
@click.pass_obj
def edit(run: Run, /, reference: str, **options: Any) -> None:
    """Change a memory, with options or in your editor."""
    changes = _changes(run, options)
    edited = perform(run, "edit", reference=reference, **changes) if changes else _edit_file(run, reference)
    memory: Memory = edited
    waits = waits_for_owner(run, memory)
    run.answer(
        {"memory": memory_record(memory), "waits_for_review": waits},
        lambda paper: render_outcome(paper, "Waits for the owner's review" if waits else "Saved", memory),
    )


def _changes(run: Run, options: dict[str, Any]) -> dict[str, Any]:
    changes = {name: value for name, value in options.items() if value is not None and value != ()}
    if "expires_on" in changes:
        changes["expires_on"] = changes["expires_on"] or None
    if "content" in changes:
        changes["content"] = read_content(changes["content"])
    if "project" in changes:
        named = changes["project"].strip()
        changes["project"] = project_slug(run.home, named, projects.project_of_work) if named else None
    for name in _LISTS:
        if name in changes:
            changes[name] = tuple(one for one in changes[name] if one)
    return changes


def _edit_file(run: Run, reference: str) -> Memory:
    """Open the memory's file in the person's editor, then read what became of it."""
    view = views.look_at(run.home, reference)
    if not run.is_interactive or view.path is None:
        raise click.UsageError(
            "say what to change: there is no terminal to open an editor in", click.get_current_context()
        )
    if run.settings.server:
        raise Unavailable("this memory is on a server, and has no file", hint="say what to change: nacre edit --help")
    run.home.problems.clear()
    click.edit(filename=str(run.settings.vault / view.path))
    after = views.look_at(run.home, view.memory.id)
    broken = next((text for text in run.home.problems if text.startswith(f"{view.path}:")), None)
    if broken:
        run.home.problems.clear()
        raise MemoryInvalid(
            broken, hint=f"nacre edit {reference} opens it again; the last good version is recalled until then"
        )
    return after.memory


def _outcome_record(outcome: StoreOutcome, memory: Memory, *, dry_run: bool = False) -> Record:
    """What became of a memory that was to be stored."""
    by = outcome.superseded_by
    return {
        "action": outcome.action,
        "id": outcome.memory_id,
        "reason": outcome.reason,
        "memory": memory_record(memory),
        "supersedes": [{**memory_record(one.memory), "reason": one.reason} for one in outcome.supersedes],
        "newer": {**memory_record(by.memory), "reason": by.reason} if by else None,
        "amended": memory_record(outcome.amended) if outcome.amended else None,
        "similar": [memory_record(one) for one in outcome.similar],
        "decided_by": outcome.decided_by or "rules",
        "note": outcome.note,
        "dry_run": dry_run,
    }


def _render_stored(paper: Paper, outcome: StoreOutcome, memory: Memory, *, dry_run: bool = False) -> None:
    """What became of a memory that was to be stored, or would become, and which others it concerns."""
    render_outcome(paper, _STORED[outcome.action][dry_run], memory)
    if outcome.action == "updated":
        paper.line(passages.shorten(memory.content, HIT_CHARACTERS), indent=2, hang=2)
    if outcome.reason:
        forced = {"known": "; --force stores it beside", "retired": "; --force stores it all the same"}
        by = f"{outcome.decided_by}: " if outcome.decided_by else ""
        paper.line(dim(f"{by}{outcome.reason}{forced.get(outcome.action, '')}"), indent=2)
    elif dry_run and outcome.action == "stored" and not (outcome.supersedes or outcome.similar):
        paper.line(dim("rules: no memory says the same or otherwise"), indent=2)
    for one in outcome.supersedes:
        _concerned(paper, "supersedes", one.memory, one.reason)
    if outcome.amended:
        _concerned(paper, "ends a part of", outcome.amended, "that reads so now")
    if outcome.superseded_by:
        _concerned(paper, "newer is", outcome.superseded_by.memory, outcome.superseded_by.reason)
    for similar in outcome.similar:
        _concerned(paper, *_relation(memory, similar))


def _relation(memory: Memory, other: Memory) -> tuple[str, Memory, str]:
    """How a memory stands to one like it, that one, and what comes of it."""
    ours = {link.rel for link in memory.links if link.to == other.id}
    theirs = {link.rel for link in other.links if link.to == memory.id}
    if comparison.CONTRADICTS in ours:
        return "may end", other, "recalled as perhaps outdated: nacre review"
    if comparison.CONTRADICTS in theirs:
        return "may be ended by", other, "recalled as perhaps outdated: nacre review"
    return "similar", other, ""


def _concerned(paper: Paper, how: str, memory: Memory, reason: str) -> None:
    facts = joined((reason, day(memory.created), short_id(memory)))
    paper.line(f"{how}: ", passages.shorten(memory.content, LINE_CHARACTERS), "  ", dim(facts), indent=2, hang=2)
