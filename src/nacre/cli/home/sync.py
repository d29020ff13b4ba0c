"""``nacre sync``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import command
from nacre.cli.formats import SHORT_ID, Record, count
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import option
from nacre.cli.run import Run
from nacre.sync import sync as syncing
from nacre.vault import merge_notes

if TYPE_CHECKING:
    from nacre.sync.sync import Synced
    from nacre.vault.merge_notes import Note

_MOST = 10
_COUNTED = {
    "merged": ("merged 1", "merged {}"),
    "kept_twice": ("1 kept twice", "{} kept twice"),
    "stays_retired": ("1 edited, and stays retired", "{} edited, and stay retired"),
    "kept_edited": ("1 deleted and edited, so kept", "{} deleted and edited, so kept"),
    "renamed": ("1 renamed", "{} renamed"),
    "copy_kept": ("1 copy got an id of its own", "{} copies got ids of their own"),
    "united": ("1 made on both sides united", "{} made on both sides united"),
    "kept_beside": ("1 file kept in two versions", "{} files kept in two versions"),
    "forgotten": ("1 forgotten elsewhere", "{} forgotten elsewhere"),
}


@command(
    "sync",
    examples=["nacre sync --remote git@example.org:me/memories.git", "nacre sync", "nacre sync --dry-run"],
)
@option("sync", "remote", metavar="URL|NAME", help="Where to: an ssh or https address, a path, or a remote.")
@option("sync", "dry_run", help="Only say what would be sent, received and merged.")
@option(
    "sync", "timeout_seconds", "--timeout", type=click.FloatRange(1, 3600), help="Seconds to wait for the remote."
)  # fmt: skip
@option(
    "sync", "accept_rewritten",
    help="Where somebody rewrote the remote's history: take it as it is, and put what is new here on top.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="Say nothing; nacre doctor tells how it ended.")
@click.pass_obj
def sync(
    run: Run, /, quiet: bool, **wanted: Any
) -> None:  # fmt: skip
    """Keep your memories in step with another machine.

    It goes through a git repository of yours. The first time, say where: --remote URL. Memories that changed on both
    sides are merged field by field; where that cannot be done, both versions are kept. Nothing is sent that holds what
    looks like a secret.
    """
    run.keeps_history = False
    if quiet:
        syncing.sync_quietly(run.home)
        return
    done: Synced = perform(run, "sync", **wanted)
    run.home.problems[:] = done.problems
    run.answer(_sync_record(done), lambda paper: _render_sync(paper, done))


def _sync_record(done: Synced) -> Record:
    """What a sync did, or would do."""
    return {
        "state": done.state.value,
        "remote": done.remote,
        "url": done.url,
        "branch": done.branch,
        "sent": done.sent,
        "received": done.received,
        "notes": [
            {
                "outcome": note.outcome.value, "id": note.memory, "subject": note.subject,
                "path": note.path or None,
                "other_path": note.other, "fields": list(note.fields),
            }
            for note in done.notes
        ],
        "held": [{"path": item.path, "reason": item.reason} for item in done.held],
        "left_out": list(done.left_out),
        "problems": list(done.problems),
    }  # fmt: skip


def _render_sync(paper: Paper, done: Synced) -> None:
    """A line on what was sent and received, then what is worth looking at."""
    if done.state == "no_remote":
        paper.line("No remote is set up: your memories are kept here, in the vault's own history.")
        paper.line(dim("  To keep another machine in step: nacre sync --remote URL"))
        return
    paper.line(bold(_summary(done)))
    for note in done.notes[:_MOST]:
        if note.outcome is not merge_notes.MergeOutcome.MERGED or note.fields:
            paper.line(f"  {_told(note)}")
    if len(done.notes) > _MOST:
        paper.line(dim(f"  and {len(done.notes) - _MOST} more; --json lists them all"))
    for held in done.held:
        paper.line(f"  not sent: {held.path} {held.reason}")
    for path in done.left_out:
        paper.line(f"  left out: {path} is a symbolic link or a repository of its own")
    paper.line(dim(f"  {done.url or done.remote}, branch {done.branch}"))


def _summary(done: Synced) -> str:
    planned = done.state == "planned"
    if not done.sent and not done.received:
        return "Nothing to send or receive." if planned else "In step: nothing to send, nothing to receive."
    parts = []
    if done.sent:
        parts.append(f"{'would send' if planned else 'sent'} {count(done.sent, 'operation')}")
    if done.received:
        parts.append(f"{'would receive' if planned else 'received'} {count(done.received, 'operation')}")
    first = ", ".join(parts)
    outcomes = [note.outcome for note in done.notes]
    counted = [
        _COUNTED[outcome][outcomes.count(outcome) > 1].format(outcomes.count(outcome))
        for outcome in merge_notes.MergeOutcome
        if outcome in outcomes
    ]
    return f"{first[:1].upper()}{first[1:]}{'; ' if counted else ''}{', '.join(counted)}."


def _told(note: Note) -> str:
    name = note.subject or note.path
    short = f" ({note.memory[-SHORT_ID:]})" if note.memory else ""
    match note.outcome:
        case merge_notes.MergeOutcome.KEPT_TWICE:
            return (
                f"kept twice: {name}{short}: both sides changed the same words; the other version is {note.other}; "
                "nacre review resolve settles it"
            )
        case merge_notes.MergeOutcome.STAYS_RETIRED:
            return f"stays retired: {name}{short}: edited on the other side; nacre unretire {(note.memory or '')[-8:]}"
        case merge_notes.MergeOutcome.KEPT_EDITED:
            return f"kept: {name}{short}: deleted on one side, edited on the other"
        case merge_notes.MergeOutcome.RENAMED:
            return f"renamed: {name}{short} is {note.path} now; {note.other} was taken"
        case merge_notes.MergeOutcome.COPY_KEPT:
            return f"copy: {note.path} has an id of its own; {note.other} keeps the old one"
        case merge_notes.MergeOutcome.UNITED:
            return f"united: {note.path} was made on both sides"
        case merge_notes.MergeOutcome.KEPT_BESIDE:
            return f"two versions: {note.path}; the other is {note.other}"
        case merge_notes.MergeOutcome.FORGOTTEN:
            return f"forgotten on another machine{short}"
        case _:
            return f"merged: {name}{short}: {', '.join(note.fields)} changed on both sides, decided by rule"
