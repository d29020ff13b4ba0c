"""``nacre retire`` and ``nacre unretire``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, command
from nacre.cli.request_options import argument, option, options
from nacre.cli.run import Run
from nacre.memories.requests import RetireRequest

if TYPE_CHECKING:
    from nacre.memories.retire import Chosen
    from nacre.values.memory import Memory


def retire_asked(run: Run, references: tuple[str, ...], retire: Callable[[], list[Memory]], *, yes: bool) -> None:
    """Retire after a look at what goes, on a terminal; answer with what went."""
    from nacre.cli.records.memories import memory_record
    from nacre.cli.render.memories import render_outcomes
    from nacre.indexing.vectors import embed_memories
    from nacre.memories import store

    if run.is_interactive and not yes:
        _show(run, [store.get(run.home, reference) for reference in references])
        run.confirm("Retire?")
    retired = retire()
    run.answer(
        {"retired": [memory_record(memory) for memory in retired]},
        lambda paper: render_outcomes(paper, "Retired", retired),
    )
    run.afterwards.append(lambda: embed_memories(run.home))  # what holds again was written anew


@command(
    "retire",
    examples=[
        "nacre retire 5f0c2a4d --reason 'we moved to SQLite'",
        "nacre retire 'session handoff *' --persist --yes",
        "nacre retire --contains 'old office' --dry-run",
    ],
)
@argument(RetireRequest, "references", metavar="[ID|SUBJECT|PATTERN]...")
@option(RetireRequest, "contains", "--contains", metavar="TEXT", help="Also memories whose subject contains this.")
@options(RetireRequest, "reason", "persist")
@click.option("--dry-run", is_flag=True, help="Show what would be retired, and change nothing.")
@click.option("--list", "shows_list", is_flag=True, help="List what is retired.")
@click.option("--yes", "-y", "--force", "yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def retire(
    run: Run, references: tuple[str, ...], contains: tuple[str, ...], reason: str | None, persist: bool, dry_run: bool,
    shows_list: bool, yes: bool,
) -> None:  # fmt: skip
    """Take memories out of recall; their files are kept.

    Each is named by its id (four characters or more), its subject, or a pattern in which * stands for any text. They
    move to retired/ in the vault; nacre unretire brings them back. On a terminal it asks first; elsewhere it wants
    --yes where a subject or pattern means several.
    """
    from nacre.cli.records.forgetting import standing_record
    from nacre.cli.records.memories import memory_record
    from nacre.cli.render.forgetting import render_retired
    from nacre.indexing.vectors import embed_memories
    from nacre.memories import retire as retiring

    if shows_list:
        _list(run)
        return
    if not references and not contains:
        raise click.UsageError("say which memories: ids, subjects, patterns or --contains", click.get_current_context())
    chosen = retiring.choose(run.home, references, contains, persist=persist)
    if dry_run:
        record = {"retired": [], "standing": [], "would_retire": [memory_record(one) for one in chosen.memories]}
        run.answer(record, lambda paper: render_retired(paper, chosen.memories, [], is_dry=True))
        return
    _ask(run, chosen, persist=persist, yes=yes)
    retired, rules = retiring.retire_chosen(run.home, chosen, reason, persist=persist)
    record = {
        "retired": [memory_record(memory) for memory in retired], "would_retire": [],
        "standing": [standing_record(rule) for rule in rules],
    }  # fmt: skip
    run.answer(record, lambda paper: render_retired(paper, retired, rules))
    run.afterwards.append(lambda: embed_memories(run.home))  # what holds again was written anew


@command("unretire", examples=["nacre unretire 5f0c2a4d", "nacre unretire 5f0c2a4d 9b1e0c3e"])
@click.argument("references", metavar="ID...", nargs=-1, required=True, type=TEXT)
@click.pass_obj
def unretire(run: Run, references: tuple[str, ...]) -> None:
    """Bring back memories that were retired or superseded.

    A memory that superseded one of them stays beside it: both then hold. The id of a standing retirement (nacre
    retire --list) ends that.
    """
    from nacre.cli.records.forgetting import standing_record
    from nacre.cli.records.memories import memory_record
    from nacre.cli.render.forgetting import render_unretired
    from nacre.indexing.vectors import embed_memories
    from nacre.memories import retire as retiring

    back = retiring.unretire(run.home, references)
    record = {
        "unretired": [memory_record(memory) for memory in back.memories],
        "ended": [standing_record(rule) for rule in back.rules],
    }
    run.answer(record, lambda paper: render_unretired(paper, back))
    run.afterwards.append(lambda: embed_memories(run.home))


def _list(run: Run) -> None:
    from nacre.cli.records.forgetting import standing_record
    from nacre.cli.records.memories import memory_record
    from nacre.cli.render.forgetting import render_retired_list
    from nacre.memories import retire as retiring

    found, rules = retiring.list_retired(run.home), retiring.list_standing(run.home)
    reasons = [one.retired.reason if one.retired else None for one in found]
    record = {
        "retired": [memory_record(one) | {"reason": why} for one, why in zip(found, reasons, strict=True)],
        "would_retire": [],
        "standing": [standing_record(rule) for rule in rules],
    }
    run.answer(record, lambda paper: render_retired_list(paper, found, rules))


def _ask(run: Run, chosen: Chosen, *, persist: bool, yes: bool) -> None:
    if yes:
        return
    if not run.is_interactive:
        if chosen.is_wider:
            raise click.UsageError(
                f"that means {len(chosen.memories)} memories: look with --dry-run, then add --yes",
                click.get_current_context(),
            )
        return
    _show(run, chosen.memories)
    run.confirm("Retire, and keep out what is stored later under such a subject?" if persist else "Retire?")


def _show(run: Run, memories: Sequence[Memory]) -> None:
    from nacre.cli.render.memories import render_table

    paper = run.paper(stderr=True)
    render_table(paper, memories)
    click.echo(paper.text(), nl=False, err=True)
