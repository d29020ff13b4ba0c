"""``nacre store`` and ``nacre edit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import TEXT, command
from nacre.cli.options import EXPIRY, HERE, IMPORTANCE, KIND, SCOPE, TRACE_PROMPTS, project_slug, read_content
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.values.memory import Memory


@command(
    "store",
    examples=[
        'nacre store "We deploy on Fridays" --kind decision --project acme',
        "pbpaste | nacre store - --subject 'Release checklist'",
        'nacre store "The gate needs two reviewers" --online-dedup --dry-run',
    ],
)
@click.argument("content", type=TEXT)
@click.option("--subject", type=TEXT, help="A title; made from the content where missing.")
@click.option("--kind", type=KIND, default="fact", show_default=True, help="What sort of knowledge it is.")
@click.option("--importance", type=IMPORTANCE, default=7, show_default=True, help="1 to 10; 10 is never forgotten.")
@click.option("--expiry", type=EXPIRY, default="permanent", show_default=True, help="How long it is meant to hold.")
@click.option("--scope", type=SCOPE, default="private", show_default=True, help="Who may see it.")
@click.option("--project", type=TEXT, help="The project it belongs to; . is the one of this folder.")
@click.option("--tag", "tags", type=TEXT, multiple=True, help="A tag.")
@click.option("--key", type=TEXT, help="A canonical key: one memory holds it.")
@click.option("--force", is_flag=True, help="Store it beside whatever says the same or otherwise.")
@click.option(
    "--online-dedup/--no-online-dedup", default=None, help="Ask a language model where the rules cannot tell; or never."
)
@click.option("--aggressive", is_flag=True, default=None, help="Ask about memories that are less alike, too.")
@click.option("--dedup-threshold", type=click.FloatRange(0, 1), help="Ask from this cosine on.")
@TRACE_PROMPTS
@click.option("--dry-run", is_flag=True, help="Say what would happen and why; store nothing.")
@click.pass_obj
def store(run: Run, /, content: str, project: str | None, tags: tuple[str, ...], dry_run: bool, **values: Any) -> None:
    """Store one memory.

    CONTENT is what is to be remembered; - reads it from standard input. What says the same as a memory of the same
    project is not stored twice; what says otherwise takes its place. With a language model for the background
    (models.background) or --online-dedup, the model decides where the rules cannot.
    """
    from nacre.cli.records.memories import outcome_record
    from nacre.cli.render.memories import render_stored
    from nacre.memories import store as remembering
    from nacre.memories.requests import StoreRequest
    from nacre.values.memory import Expiry, Kind, Scope

    slug, folder = _place(run.home, project)
    new = StoreRequest(
        content=read_content(content), subject=values["subject"], kind=Kind(values["kind"]),
        importance=values["importance"], expiry=Expiry(values["expiry"]), scope=Scope(values["scope"]),
        project=slug, folder=folder, tags=tags, canonical_key=values["key"], force=values["force"],
        online_dedup=values["online_dedup"], aggressive=values["aggressive"],
        dedup_threshold=values["dedup_threshold"],
    )  # fmt: skip
    if dry_run:
        told = remembering.rehearse(run.home, new)
        outcome, memory = told.outcome, told.memory
    else:
        outcome = remembering.store(run.home, new)
        memory = remembering.get(run.home, outcome.memory_id)
    if outcome.note:
        run.warnings.append(f"{outcome.note}; the rules decided")
    run.answer(
        outcome_record(outcome, memory, dry_run=dry_run),
        lambda paper: render_stored(paper, outcome, memory, dry_run=dry_run),
    )


def _place(home: Home, project: str | None) -> tuple[str | None, str | None]:
    """The project that is named, or the folder whose project is meant: that may be a new one."""
    if project != HERE:
        return (project_slug(home, project) if project else None), None
    from nacre.home.projects import known_or_named

    project_slug(home, project, known_or_named)  # a folder that is no project's is refused
    return None, str(Path.cwd())


@command(
    "edit",
    examples=[
        "nacre edit 5f0c2a4d                    # opens the file in your editor",
        "nacre edit 5f0c2a4d --importance 9 --tag postgres --tag billing",
        'nacre edit 5f0c2a4d --project ""        # holds everywhere, in no project',
    ],
)
@click.argument("reference", metavar="ID", type=TEXT)
@click.option("--subject", type=TEXT, help="A new title.")
@click.option("--content", type=TEXT, help="New content; - reads it from standard input.")
@click.option("--kind", type=KIND, help="Another kind.")
@click.option("--importance", type=IMPORTANCE, help="1 to 10.")
@click.option("--expiry", type=EXPIRY, help="How long it is meant to hold.")
@click.option("--scope", type=SCOPE, help="Who may see it.")
@click.option("--project", type=TEXT, help='The project it belongs to; "" for none: it holds everywhere.')
@click.option("--tag", "tags", type=TEXT, multiple=True, help="Tags that replace its tags.")
@click.option("--add-tag", "add_tags", type=TEXT, multiple=True, help="A tag beside those it has.")
@click.pass_obj
def edit(run: Run, /, reference: str, **options: Any) -> None:
    """Change a memory, with options or in your editor."""
    from nacre.cli.records.memories import memory_record
    from nacre.cli.render.memories import render_outcome
    from nacre.indexing.vectors import embed_memories
    from nacre.memories import store as remembering

    changes = _changes(run, options)
    memory = remembering.edit(run.home, reference, **changes) if changes else _edit_file(run, reference)
    run.answer({"memory": memory_record(memory)}, lambda paper: render_outcome(paper, "Saved", memory))
    run.afterwards.append(lambda: embed_memories(run.home))


def _changes(run: Run, options: dict[str, Any]) -> dict[str, Any]:
    from nacre.values.memory import Expiry, Kind, Scope

    changes = {name: value for name, value in options.items() if value is not None and "tags" not in name}
    for name, kind in (("kind", Kind), ("expiry", Expiry), ("scope", Scope)):
        if name in changes:
            changes[name] = kind(changes[name])
    if "content" in changes:
        changes["content"] = read_content(changes["content"])
    if "project" in changes:
        from nacre.home.projects import project_of_work

        named = changes["project"].strip()
        changes["project"] = project_slug(run.home, named, project_of_work) if named else None
    if options["tags"]:
        changes["tags"] = tuple(tag for tag in options["tags"] if tag)
    if options["add_tags"]:
        changes["add_tags"] = tuple(tag for tag in options["add_tags"] if tag)
    return changes


def _edit_file(run: Run, reference: str) -> Memory:
    """Open the memory's file in the person's editor, then read what became of it."""
    from nacre.errors import MemoryInvalid
    from nacre.memories.views import look_at

    view = look_at(run.home, reference)
    if not run.is_interactive or view.path is None:
        raise click.UsageError(
            "say what to change: there is no terminal to open an editor in", click.get_current_context()
        )
    run.home.problems.clear()
    click.edit(filename=str(run.settings.vault / view.path))
    after = look_at(run.home, view.memory.id)
    broken = next((text for text in run.home.problems if text.startswith(f"{view.path}:")), None)
    if broken:
        run.home.problems.clear()
        raise MemoryInvalid(
            broken, hint=f"nacre edit {reference} opens it again; the last good version is recalled until then"
        )
    return after.memory
