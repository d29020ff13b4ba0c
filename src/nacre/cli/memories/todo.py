"""``nacre todo``."""

from __future__ import annotations

from dataclasses import replace

import click

from nacre.cli.command import TEXT, DefaultGroup
from nacre.cli.daemon import ask
from nacre.cli.formats import short_id
from nacre.cli.memories.memory import memory_record, render_list
from nacre.cli.options import IMPORTANCE, OFFSET, limit_option, project_slug, with_memory_filter
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.run import Run
from nacre.memories.requests import ListRequest, StoreRequest
from nacre.values.memory import Kind
from nacre.values.recall import Filter


@click.group(
    "todo",
    cls=DefaultGroup,
    examples=["nacre todo", 'nacre todo add "Rotate the staging keys"', "nacre todo done 5f0c2a4d"],
)
@click.pass_context
def todo(context: click.Context) -> None:
    """List, add and finish todos."""
    if context.invoked_subcommand is None:
        context.invoke(_list, run=context.obj, wanted=Filter(), limit=50, offset=0)


def _list(run: Run, wanted: Filter, limit: int, offset: int) -> None:
    found = ask(run, "list", ListRequest(filter=replace(wanted, kinds=(Kind.TODO,)), limit=limit, offset=offset))
    memories, total = found.memories, found.total
    record = {"todos": [memory_record(memory) for memory in memories], "total": total, "limit": limit, "offset": offset}

    def render(paper: Paper) -> None:
        if memories:
            render_list(paper, memories, total=total, offset=offset)
        else:
            paper.line("Nothing to do.", dim('  nacre todo add "…"'))

    run.answer(record, render)


@todo.command("list", examples=["nacre todo list", "nacre todo list --project . --min-importance 7"])
@limit_option(50, "Todos")
@OFFSET
@with_memory_filter
def list_todos(run: Run, wanted: Filter, limit: int, offset: int) -> None:
    """List open todos, the newest first."""
    _list(run, wanted, limit, offset)


@todo.command(
    "add", examples=['nacre todo add "Rotate the staging keys"', "nacre todo add Upgrade PostgreSQL --project acme"]
)
@click.argument("text", nargs=-1, required=True, type=TEXT)
@click.option("--importance", type=IMPORTANCE, default=6, show_default=True, help="1 to 10.")
@click.option("--project", type=TEXT, help="The project it belongs to; . is the one of this folder.")
@click.option("--tag", "tags", type=TEXT, multiple=True, help="A tag.")
@click.pass_obj
def add(run: Run, text: tuple[str, ...], importance: int, project: str | None, tags: tuple[str, ...]) -> None:
    """Add a todo."""
    from nacre.memories import store  # what writes: 150 ms that listing through the daemon goes without

    new = StoreRequest(
        content=" ".join(text), kind=Kind.TODO, importance=importance, tags=tags,
        project=project_slug(run.home, project) if project else None,
    )  # fmt: skip
    outcome = store.store(run.home, new)
    memory = store.get(run.home, outcome.memory_id)
    record = {
        "action": outcome.action,
        "id": outcome.memory_id,
        "reason": outcome.reason,
        "todo": memory_record(memory),
    }
    verb = {"stored": "Added", "retired": "Retired at once"}.get(outcome.action, "Known already")
    run.answer(record, lambda paper: paper.line(f"{verb}: ", bold(memory.subject), "  ", dim(short_id(memory))))


@todo.command("done", examples=["nacre todo done 5f0c2a4d", 'nacre todo done "Rotate the staging keys"'])
@click.argument("references", metavar="ID...", nargs=-1, required=True, type=TEXT)
@click.pass_obj
def done(run: Run, references: tuple[str, ...]) -> None:
    """Finish todos."""
    from nacre.memories import store

    finished = [store.finish_todo(run.home, reference) for reference in references]

    def render(paper: Paper) -> None:
        for memory in finished:
            paper.line("Done: ", bold(memory.subject))

    run.answer({"done": [memory_record(memory) for memory in finished]}, render)
