"""``nacre backup``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import Group
from nacre.cli.formats import count, size
from nacre.cli.home.doctor import answer_checks, checks_record
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.portability import backup as backups

if TYPE_CHECKING:
    from nacre.portability.backup import BackupReport, Manifest, RestoreReport
    from nacre.values.reports import Check

_FILE = click.Path(path_type=Path)


@click.group(
    "backup",
    cls=Group,
    examples=["nacre backup create ~/nacre.zip", "nacre backup verify ~/nacre.zip", "nacre backup restore ~/nacre.zip"],
)
def backup() -> None:
    """Back up the whole home, prove a backup, bring it back.

    A backup is a zip: the vault with its history, the database, settings without secrets, and a manifest of hashes.
    """


@backup.command("create", examples=["nacre backup create", "nacre backup create /mnt/usb/nacre.zip"])
@argument("backup-create", "target", metavar="[FILE]", required=False)
@option("backup-create", "overwrite", "--force", help="Overwrite FILE.")
@click.pass_obj
def create(run: Run, target: Path | None, overwrite: bool) -> None:
    """Write a backup of the whole home; others may go on writing meanwhile.

    Without FILE, into this folder, named after the time.
    """
    target = target or Path(f"nacre-{datetime.now().astimezone():%Y%m%d-%H%M%S}.zip")
    with progress.shown(run) as notify:
        report: BackupReport = perform(run, "backup-create", notify, target=target, overwrite=overwrite)

    def render(paper: Paper) -> None:
        paper.line(bold("Wrote"), f" {report.path} ", dim(f"({size(report.bytes)})"))
        paper.line(", ".join(f"{number:,} {name}" for name, number in report.manifest.counts.items()), indent=2)
        for note in report.manifest.notes:
            paper.line(dim(note), indent=2)
        paper.line(
            dim(f"nacre backup verify {report.path} proves {count(len(report.manifest.files), 'file')}"), indent=2
        )

    run.answer(_record(report.manifest, path=str(report.path), bytes=report.bytes), render)


@backup.command("verify", examples=["nacre backup verify ~/nacre.zip"])
@argument("backup-verify", "backup", metavar="FILE")
@click.pass_obj
def verify(run: Run, backup: Path) -> None:
    """Restore a backup into a folder of its own, open it and prove it; nothing here is touched.

    Exits with 1 when something in it is wrong.
    """
    with progress.shown(run) as notify:
        checks: list[Check] = perform(run, "backup-verify", notify, backup=backup)
    answer_checks(run, checks, {"path": str(backup), **checks_record(checks)})


@backup.command(
    "restore", examples=["nacre backup restore ~/nacre.zip --to ~/other", "nacre backup restore ~/nacre.zip"]
)
@argument("backup-restore", "backup", metavar="FILE")
@option("backup-restore", "target", "--to", help="The folder that becomes the home; without it, the one nacre uses.")
@option("backup-restore", "replace", "--force", help="Also where a home is: it is kept beside the new one.")
@click.pass_obj
def restore(run: Run, backup: Path, target: Path | None, replace: bool) -> None:
    """Bring a backup back as a home.

    A home that is there is never overwritten: on a terminal you are asked, and it is kept aside under another name.
    """
    home = (target or run.settings.home).expanduser().absolute()
    manifest = backups.read_manifest(backup)
    if not replace and run.is_interactive and home.is_dir() and any(home.iterdir()):
        run.confirm(f"Put the backup of {manifest.created} in the place of {home}? What is there is kept aside.")
        replace = True
    with progress.shown(run) as notify:
        report: RestoreReport = perform(run, "backup-restore", notify, backup=backup, target=home, replace=replace)

    def render(paper: Paper) -> None:
        paper.line(bold("Restored"), f" {report.home} from the backup of {report.manifest.created}")
        if report.kept:
            paper.line(f"What was there is {report.kept}", indent=2)
        for note in report.manifest.notes:
            paper.line(dim(note), indent=2)
        paper.line(dim("nacre doctor --deep proves it"), indent=2)

    kept = str(report.kept) if report.kept else None
    run.answer(_record(report.manifest, home=str(report.home), kept=kept), render)


def _record(manifest: Manifest, **more: object) -> dict[str, object]:
    return {
        **more, "created": manifest.created, "counts": manifest.counts, "files": len(manifest.files),
        "uncompressed_bytes": manifest.bytes, "notes": list(manifest.notes),
    }  # fmt: skip
