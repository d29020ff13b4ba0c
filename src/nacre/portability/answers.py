"""What is answered to requests for exports, imports and backups; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from nacre.errors import Conflict, Unavailable
from nacre.home.home import Home
from nacre.home.territory import territory
from nacre.portability import backup, exporting, importing
from nacre.portability.backup import BackupReport, RestoreReport
from nacre.portability.exporting import ExportReport
from nacre.portability.importing import ImportReport
from nacre.portability.requests import BackupRequest, ExportRequest, ImportOptions, RestoreRequest
from nacre.settings import Settings
from nacre.values.reports import OnProgress


def export(home: Home, request: ExportRequest, on_progress: OnProgress | None = None) -> ExportReport:
    """Write everything into one file that others can read. Raises Conflict where it exists."""
    return exporting.export(home, request.target, request, overwrite=request.overwrite, on_progress=on_progress)


def import_(home: Home, request: ImportOptions, on_progress: OnProgress | None = None) -> ImportReport:
    """Take in what another memory or an account's export holds. Raises NotFound, InvalidInput."""
    return importing.carry_out(home, importing.plan_import(home, request), on_progress)


def back_up(home: Home, request: BackupRequest, on_progress: OnProgress | None = None) -> BackupReport:
    """Back up the whole home. Raises Conflict where the file exists."""
    return backup.create(home, request.target, overwrite=request.overwrite, on_progress=on_progress)


def restore(settings: Settings, request: RestoreRequest, on_progress: OnProgress | None = None) -> RestoreReport:
    """Bring a backup back as a home. Raises NotFound, InvalidInput, Conflict, Unavailable."""
    target = (request.target or settings.home).expanduser().absolute()
    if settings.server and target == settings.home:
        raise Unavailable(
            "this memory is on a server, and a backup holds files",
            hint="--to FOLDER brings the files back; docs/server.md tells how a server is restored",
        )
    if target != settings.home and territory(settings).holds(target):
        raise Conflict(f"{target} is inside the home that is there", hint="name a folder somewhere else")
    return backup.restore(request.backup, target, replace=request.replace, on_progress=on_progress)
