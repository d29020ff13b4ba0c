"""``nacre todo``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from nacre.cli.command import DefaultGroup
from nacre.cli.formats import short_id
from nacre.cli.memories.memory import memory_record, render_list
from nacre.cli.operations import ask, perform
from nacre.cli.options import OFFSET, limit_option, project_slug, with_memory_filter
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.memories import store
from nacre.values import memory as values_memory
from nacre.values import recall

if TYPE_CHECKING:
    from nacre.values.memory import Memory
    from nacre.values.recall import Filter
    from nacre.values.reports import StoreOutcome


@click.group(
    "todo",
    cls=DefaultGroup,
    examples=["nacre todo", 'nacre todo add "Rotate the staging keys"', "nacre todo done 5f0c2a4d"],
)
@click.pass_context
def todo(context: click.Context) -> None:
    """List, add and finish todos."""
    if context.invoked_subcommand is None:
        context.invoke(_list, run=context.obj, wanted=recall.Filter(), limit=50, offset=0)


def _list(run: Run, wanted: Filter, limit: int, offset: int) -> None:
    found = ask(run, "list", filter=replace(wanted, kinds=(values_memory.Kind.TODO,)), limit=limit, offset=offset)
    memories, total = found.memories, found.total
    record = {"todos": [memory_record(memory) for memory in memories], "total": total, "limit": limit, "offset": offset}

    def render(paper: Paper) -> None:
        if memories:
            render_list(paper, memories, total=total, offset=offset)
        else:
            paper.line("Nothing to do.", dim('  nacre todo add "…"'))

    run.answer(record, render)


@todo.command("list", examples=["nacre todo list", "nacre todo list --project . --min-importance 7"])
@limit_option("list", help="Todos at most.")
@OFFSET
@with_memory_filter
def list_todos(run: Run, wanted: Filter, limit: int, offset: int) -> None:
    """List open todos, the newest first."""
    _list(run, wanted, limit, offset)


@todo.command(
    "add", examples=['nacre todo add "Rotate the staging keys"', "nacre todo add Upgrade PostgreSQL --project acme"]
)
@argument("store", "content", metavar="TEXT...", nargs=-1)
@option("store", "importance", default=6)
@option("store", "project", help="The project it belongs to; . is the one of this folder.")
@option("store", "tags", help="A tag.")
@click.pass_obj
def add(run: Run, content: tuple[str, ...], importance: int, project: str | None, tags: tuple[str, ...]) -> None:
    """Add a todo."""
    slug = project_slug(run.home, project) if project else None
    outcome: StoreOutcome = perform(
        run, "store", content=" ".join(content), kind="todo", importance=importance, tags=tags, project=slug
    )
    answer_todo(run, outcome)


def answer_todo(run: Run, outcome: StoreOutcome) -> None:
    """Show the todo that was stored."""
    memory = store.get(run.home, outcome.memory_id)
    record = {
        "action": outcome.action, "id": outcome.memory_id, "reason": outcome.reason, "todo": memory_record(memory),
    }  # fmt: skip
    verb = {"stored": "Added", "retired": "Retired at once"}.get(outcome.action, "Known already")
    run.answer(record, lambda paper: paper.line(f"{verb}: ", bold(memory.subject), "  ", dim(short_id(memory))))


@todo.command("done", examples=["nacre todo done 5f0c2a4d", 'nacre todo done "Rotate the staging keys"'])
@argument("todo-done", "references", metavar="ID...")
@click.pass_obj
def done(run: Run, references: tuple[str, ...]) -> None:
    """Finish todos."""
    finished: list[Memory] = perform(run, "todo-done", references=references)

    def render(paper: Paper) -> None:
        for memory in finished:
            paper.line("Done: " if memory.retired else "Waits for the owner's review: ", bold(memory.subject))

    run.answer({"done": [memory_record(memory) for memory in finished]}, render)
