"""The archive, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, bold, dim
from nacre.cli.render.words import count, day, size

if TYPE_CHECKING:
    from nacre.archive.operations import ArchivedTool, ArchiveStatus, Restored
    from nacre.storage.archive import Archived

_SHOWN = 10


def render_status(paper: Paper, status: ArchiveStatus) -> None:
    """What is in it, tool by tool; what is not; what the tools are about to delete."""
    files, raw, stored = (
        sum(tool.files for tool in status.tools),
        sum(tool.raw for tool in status.tools),
        sum(tool.stored for tool in status.tools),
    )
    if not status.enabled:
        paper.line("Transcripts are not archived: nacre config set archive.enabled true")
    if files:
        share = f" ({stored / raw:.0%})" if raw else ""
        paper.line(
            bold(count(files, "transcript")), f", {size(raw)} in {size(stored)}{share}", dim(f" {status.folder}")
        )
        paper.facts([(tool.tool, _told(tool)) for tool in status.tools], indent=2)
    elif status.enabled:
        paper.line("Nothing is archived yet: nacre ingest does it.")
    if status.waiting:
        paper.line(f"{count(status.waiting, 'transcript')} wait for the next ingest.")
    if status.withheld:
        paper.line(dim(f"Of {status.withheld:,}, in which something was forgotten or excluded, only the rest is kept."))
    for one in status.leaving:
        paper.line(f"{one.in_words()}.")
        paper.line(dim(one.retention.setting), indent=2)


def _told(tool: ArchivedTool) -> str:
    gone = f", {tool.gone:,} no longer at the tool" if tool.gone else ""
    return f"{count(tool.files, 'transcript')}{gone}, {size(tool.stored)}, {day(tool.first)} to {day(tool.last)}"


def render_pruned(paper: Paper, chosen: Sequence[Archived], freed: int, *, dry_run: bool) -> None:
    """What went, or would."""
    if not chosen:
        paper.line("Nothing to prune.")
        return
    verb = "Would delete" if dry_run else "Deleted"
    paper.line(bold(f"{verb} {count(len(chosen), 'transcript')}"), f" from the archive, {size(freed)}")
    for state in chosen[:_SHOWN]:
        paper.line(dim(state.path), indent=2)
    if len(chosen) > _SHOWN:
        paper.line(dim(f"and {len(chosen) - _SHOWN:,} more"), indent=2)


def render_restored(paper: Paper, restored: Restored) -> None:
    """Where a transcript is now."""
    paper.line(bold("Wrote"), f" {restored.path} ", dim(f"({size(restored.size)})"))
    if restored.is_whole:
        paper.line(dim("Secrets, and images and other encoded bytes, are left out of it."), indent=2)
    else:
        paper.line(dim("Only its turns were kept, as JSON lines: its tool cannot read them."), indent=2)
