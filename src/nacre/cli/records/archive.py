"""What is kept of transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.records.values import Record, stamp

if TYPE_CHECKING:
    from nacre.archive.operations import ArchiveStatus, Restored
    from nacre.values.reports import ArchiveReport, Problem


def status_record(status: ArchiveStatus) -> Record:
    """What the archive holds."""
    return {
        "enabled": status.enabled,
        "folder": str(status.folder),
        "files": sum(tool.files for tool in status.tools),
        "raw_bytes": sum(tool.raw for tool in status.tools),
        "bytes": sum(tool.stored for tool in status.tools),
        "tools": [
            {
                "tool": tool.tool, "files": tool.files, "gone": tool.gone, "raw_bytes": tool.raw, "bytes": tool.stored,
                "first": stamp(tool.first), "last": stamp(tool.last),
            }
            for tool in status.tools
        ],
        "waiting": status.waiting,
        "withheld": status.withheld,
        "leaving": [
            {
                "tool": one.retention.tool, "setting": one.retention.setting, "keeps_days": one.retention.days,
                "keeps_files": one.retention.files, "files": one.files,
                "days": None if one.days is None else round(one.days, 1), "archived": one.archived,
            }
            for one in status.leaving
        ],
    }  # fmt: skip


def archived_record(report: ArchiveReport) -> Record:
    """What an ingest archived."""
    return {
        "files": report.files, "bytes": report.read, "stored": report.stored, "pruned": report.pruned,
        "seconds": round(report.seconds, 3), "problems": problem_records(report.problems),
    }  # fmt: skip


def problem_records(problems: Sequence[Problem]) -> list[Record]:
    """What is wrong."""
    return [{"path": one.path, "message": one.message, "hint": one.hint} for one in problems]


def restored_record(restored: Restored) -> Record:
    """A transcript that was written again."""
    return {
        "session": restored.session, "path": str(restored.path), "bytes": restored.size, "whole": restored.is_whole,
    }  # fmt: skip
