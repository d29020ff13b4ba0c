"""Requests for exports, imports and backups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request

Overwrite = Annotated[bool, Meta(description="Overwrite the file.")]


class ExportOptions(Request, frozen=True, kw_only=True):
    """What goes out: the form, whether sessions and retired memories do, and one project or all."""

    form: Annotated[
        str,
        Meta(
            description="The form of the file: jsonl, markdown, zip or clawxmemory.",
            pattern="^(jsonl|markdown|zip|clawxmemory)$",
        ),
    ] = "jsonl"
    sessions: Annotated[bool, Meta(description="With every session and what was said in it.")] = False
    project: Annotated[str | None, Meta(description="Only this project, by its slug.")] = None
    include_retired: Annotated[bool, Meta(description="With what was retired.")] = False


class ExportRequest(ExportOptions, frozen=True, kw_only=True):
    """Write everything into one file that others can read."""

    target: Annotated[Path, Meta(description="The file to write.")]
    overwrite: Overwrite = False


class ImportOptions(Request, frozen=True, kw_only=True):
    """Take in what another memory or an account's export holds."""

    path: Annotated[Path, Meta(description="A file or folder.")]
    source: Annotated[str, Meta(description="What wrote it; auto recognises it by its content.")] = "auto"
    trust: Annotated[bool, Meta(description="It is yours: treat it as what you said to nacre itself.")] = False
    project: Annotated[str | None, Meta(description="Put everything into this project.")] = None
    vectors: Annotated[bool, Meta(description="False: leave the vectors to the next ingest.")] = True


class BackupRequest(Request, frozen=True, kw_only=True):
    """Back up the whole home."""

    target: Annotated[Path, Meta(description="The file to write.")]
    overwrite: Overwrite = False


class RestoreRequest(Request, frozen=True, kw_only=True):
    """Bring a backup back."""

    backup: Annotated[Path, Meta(description="The backup's file.")]
    target: Annotated[Path | None, Meta(description="The folder of the home; by default, that of the settings.")] = None
    replace: Annotated[bool, Meta(description="Keep aside what is there, and take its place.")] = False
