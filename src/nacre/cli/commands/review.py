"""``nacre review``."""

from __future__ import annotations

import click

from nacre.cli.command import TEXT, DefaultGroup
from nacre.cli.commands.retiring import retire_asked
from nacre.cli.run import Run


@click.group(
    "review",
    cls=DefaultGroup,
    examples=[
        "nacre review",
        "nacre review dismiss 5f0c2a4d",
        "nacre review replace 5f0c2a4d",
    ],
)
@click.pass_context
def review(context: click.Context) -> None:
    """Keep or retire memories that seem of little use.

    A memory waits here when it is recalled often and rarely used, when a newer one seems to contradict it, or when you
    called it bad.
    """
    if context.invoked_subcommand is None:
        _list(context.obj)


def _list(run: Run) -> None:
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.usage import review_record
    from nacre.cli.render.usage import render_reviews
    from nacre.platform.request import Nothing

    waiting = asked(run, "waiting", Nothing()).reviews
    run.answer({"reviews": [review_record(item) for item in waiting]}, lambda paper: render_reviews(paper, waiting))


@review.command("list", examples=["nacre review list", "nacre review list --json"])
@click.pass_obj
def list_reviews(run: Run) -> None:
    """List the memories that wait for you, the longest waiting first."""
    _list(run)


@review.command("dismiss", examples=["nacre review dismiss 5f0c2a4d"])
@click.argument("references", metavar="ID...", nargs=-1, required=True, type=TEXT)
@click.pass_obj
def dismiss(run: Run, references: tuple[str, ...]) -> None:
    """Keep memories that wait.

    Their quality is raised to .3 where it is lower; a newer memory that seemed to say otherwise holds beside them.
    """
    from nacre.cli.records.memories import memory_record
    from nacre.cli.render.memories import render_outcomes
    from nacre.indexing.vectors import embed_memories
    from nacre.review import queue

    kept = queue.dismiss(run.home, references)
    run.answer(
        {"dismissed": [memory_record(memory) for memory in kept]},
        lambda paper: render_outcomes(paper, "Kept", kept),
    )
    run.afterwards.append(lambda: embed_memories(run.home))


@review.command("replace", examples=["nacre review replace 5f0c2a4d"])
@click.argument("references", metavar="ID...", nargs=-1, required=True, type=TEXT)
@click.pass_obj
def replace(run: Run, references: tuple[str, ...]) -> None:
    """Let the newer memory take the place of one that it outdated.

    The older one is found for its own time only; nacre unretire brings it back.
    """
    from nacre.cli.records.memories import memory_record
    from nacre.cli.render.memories import render_outcomes
    from nacre.indexing.vectors import embed_memories
    from nacre.review import queue

    replaced = queue.replace_outdated(run.home, references)
    run.answer(
        {"replaced": [memory_record(memory) for memory in replaced]},
        lambda paper: render_outcomes(paper, "Replaced", replaced),
    )
    run.afterwards.append(lambda: embed_memories(run.home))


@review.command(
    "retire", examples=["nacre review retire 5f0c2a4d", "nacre review retire 5f0c2a4d --reason 'no longer so' --yes"]
)
@click.argument("references", metavar="ID...", nargs=-1, required=True, type=TEXT)
@click.option("--reason", type=TEXT, help="Why; that of the review where it is left out.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def retire(run: Run, references: tuple[str, ...], reason: str | None, yes: bool) -> None:
    """Retire memories that wait; their files are kept.

    On a terminal it asks first.
    """
    from nacre.review import queue

    retire_asked(run, references, lambda: queue.retire(run.home, references, reason), yes=yes)
