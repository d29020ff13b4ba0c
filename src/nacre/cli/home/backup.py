"""``nacre backup``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from nacre.cli import progress
from nacre.cli.command import Group
from nacre.cli.formats import count, size
from nacre.cli.home.doctor import answer_checks, checks_record
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.run import Run
from nacre.home.home import open_home
from nacre.portability import backup as backups
from nacre.portability.backup import Manifest

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
@click.argument("file", required=False, type=_FILE)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.pass_obj
def create(run: Run, file: Path | None, force: bool) -> None:
    """Write a backup of the whole home; others may go on writing meanwhile.

    Without FILE, into this folder, named after the time.
    """
    file = file or Path(f"nacre-{datetime.now().astimezone():%Y%m%d-%H%M%S}.zip")
    with progress.shown(run) as notify:
        report = backups.create(run.home, file, overwrite=force, on_progress=notify)

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
@click.argument("file", type=_FILE)
@click.pass_obj
def verify(run: Run, file: Path) -> None:
    """Restore a backup into a folder of its own, open it and prove it; nothing here is touched.

    Exits with 1 when something in it is wrong.
    """
    from nacre.health import restore_drill  # with all that doctor proves by

    with progress.shown(run) as notify:
        checks = restore_drill.verify(file, run.settings, open_home, notify)
    answer_checks(run, checks, {"path": str(file), **checks_record(checks)})


@backup.command(
    "restore", examples=["nacre backup restore ~/nacre.zip --to ~/other", "nacre backup restore ~/nacre.zip"]
)
@click.argument("file", type=_FILE)
@click.option("--to", "home", type=_FILE, help="The folder that becomes the home; without it, the one nacre uses.")
@click.option("--force", is_flag=True, help="Also where a home is: it is kept beside the new one.")
@click.pass_obj
def restore(run: Run, file: Path, home: Path | None, force: bool) -> None:
    """Bring a backup back as a home.

    A home that is there is never overwritten: on a terminal you are asked, and it is kept aside under another name.
    """
    home = (home or run.settings.home).expanduser().absolute()
    manifest = backups.read_manifest(file)
    if not force and run.is_interactive and home.is_dir() and any(home.iterdir()):
        run.confirm(f"Put the backup of {manifest.created} in the place of {home}? What is there is kept aside.")
        force = True
    with progress.shown(run) as notify:
        report = backups.restore(file, home, replace=force, on_progress=notify)

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
