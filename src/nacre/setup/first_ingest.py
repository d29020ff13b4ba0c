"""What there is to read on a machine where nacre is new, and what reading it takes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from nacre.extraction.estimate import Estimate
from nacre.home.home import Home
from nacre.ingestion import discovery
from nacre.ingestion import plan as planning
from nacre.ingestion.requests import IngestOptions
from nacre.spending.models import NONE

RECENT = timedelta(days=7)
"""What of it is offered to be read alone."""


@dataclass(frozen=True, slots=True)
class FirstReading:
    """Transcripts that wait: ``files`` of them with so many ``bytes``; ``recent`` changed in the last seven days.

    ``estimate`` is what a language model would cost; ``None`` where none is set.
    """

    files: int
    bytes: int
    recent: tuple[Path, ...]
    estimate: Estimate | None


def look(home: Home) -> FirstReading:
    """What can be read; stores nothing."""
    options = IngestOptions()
    plan = planning.plan(home, options)
    since = (home.clock() - RECENT).timestamp() * 1e9
    found = discovery.find(home, (), with_discovery=True).files
    recent = tuple(file.path for file in found if file.mtime_ns >= since)
    has_model = home.settings.text("models.default") != NONE and plan.files > 0
    estimate = planning.estimate(home, options) if has_model else None
    return FirstReading(plan.files, plan.bytes, recent if len(recent) < len(found) else (), estimate)
