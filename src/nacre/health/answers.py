"""What is answered to requests about the state of a home; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from pathlib import Path

from nacre.health import checks, database, prove, restore_drill, traces
from nacre.health.requests import (
    DoctorRequest,
    ProveRequest,
    RebuildRequest,
    TargetRequest,
    TraceRequest,
    TracesRequest,
    VerifyRequest,
)
from nacre.home.home import Home, open_home
from nacre.home.lookup import projects
from nacre.settings import Settings
from nacre.values.reports import Check, IngestReport, OnProgress
from nacre.values.trace import Trace
from nacre.views import Overview, TraceView


def overview(home: Home) -> Overview:
    """What is remembered, and how everything is."""
    found = tuple(checks.contents(home))
    counts = home.memories.counts()
    for state in ("superseded", "retired"):
        counts.pop(state, None)
    return Overview(counts, tuple(projects(home)), found, home.links.count(home.today()))


def doctor(home: Home, request: DoctorRequest) -> list[Check]:
    """Check the installation and the home."""
    return checks.doctor(home, repair=request.repair)


def prove_home(home: Home, request: ProveRequest, on_progress: OnProgress | None = None) -> list[Check]:
    """Prove every part of the home against what it was made from."""
    proofs = prove.prove(home, everything=request.everything, on_progress=on_progress)
    if request.repair and prove.repair(home, proofs):
        proofs = prove.prove(home, everything=request.everything, on_progress=on_progress)
    return [prove.as_check(proof) for proof in proofs]


def list_traces(home: Home, request: TracesRequest) -> list[Trace]:
    """What models and answers went through, the latest first."""
    return traces.list_traces(home, request.kind, request.since, max(0, request.limit))


def show_trace(home: Home, request: TraceRequest) -> TraceView:
    """One trace with its steps. Raises NotFound, Conflict."""
    return traces.show_trace(home, request.reference)


def rebuild(settings: Settings, request: RebuildRequest, on_progress: OnProgress | None = None) -> IngestReport:
    """Make the database anew from the vault, the transcripts and the archive. Raises SchemaTooNew."""
    return database.rebuild(settings, open_home, on_progress, vectors=request.vectors)


def reset(settings: Settings) -> Path | None:
    """Remove the database, and keep a copy beside it; returns the copy."""
    return database.reset(settings, open_home)


def back_up_database(home: Home, request: TargetRequest) -> Path:
    """Write a consistent copy of the database. Raises Conflict where the file exists."""
    return database.backup(home, request.target)


def verify_backup(settings: Settings, request: VerifyRequest, on_progress: OnProgress | None = None) -> list[Check]:
    """Restore a backup into a folder of its own, open it and prove it. Raises NotFound, InvalidInput."""
    return restore_drill.verify(request.backup, settings, open_home, on_progress)
