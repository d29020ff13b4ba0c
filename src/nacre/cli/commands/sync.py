"""``nacre sync``."""

from __future__ import annotations

import click

from nacre.cli.command import TEXT, command
from nacre.cli.run import Run
from nacre.sync.requests import SyncRequest


@command(
    "sync",
    examples=["nacre sync --remote git@example.org:me/memories.git", "nacre sync", "nacre sync --dry-run"],
)
@click.option("--remote", type=TEXT, metavar="URL|NAME", help="Where to: an ssh or https address, a path, or a remote.")
@click.option("--dry-run", is_flag=True, help="Only say what would be sent, received and merged.")
@click.option(
    "--timeout", type=click.FloatRange(1, 3600), default=60.0, show_default=True, help="Seconds to wait for the remote."
)
@click.option(
    "--accept-rewritten", is_flag=True,
    help="Where somebody rewrote the remote's history: take it as it is, and put what is new here on top.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="Say nothing; nacre doctor tells how it ended.")
@click.pass_obj
def sync(
    run: Run, remote: str | None, dry_run: bool, timeout: float, accept_rewritten: bool, quiet: bool
) -> None:  # fmt: skip
    """Keep your memories in step with another machine.

    It goes through a git repository of yours. The first time, say where: --remote URL. Memories that changed on both
    sides are merged field by field; where that cannot be done, both versions are kept. Nothing is sent that holds what
    looks like a secret.
    """
    from nacre.cli.records.history import sync_record
    from nacre.cli.render.sync import render_sync
    from nacre.indexing.vectors import embed_memories
    from nacre.sync import sync as syncing

    run.keeps_history = False
    if quiet:
        syncing.sync_quietly(run.home)
        return
    wanted = SyncRequest(remote=remote, dry_run=dry_run, timeout_seconds=timeout, accept_rewritten=accept_rewritten)
    done = syncing.sync(run.home, wanted)
    run.home.problems[:] = done.problems
    run.answer(sync_record(done), lambda paper: render_sync(paper, done))
    if done.received:
        run.afterwards.append(lambda: embed_memories(run.home))
