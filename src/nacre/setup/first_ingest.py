"""What there is to read on a machine where nacre is new, and what reading it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from nacre.extraction.estimate import Estimate
from nacre.home.home import Home, open_home
from nacre.ingestion import discovery
from nacre.ingestion import plan as planning
from nacre.ingestion.requests import IngestOptions
from nacre.settings import Settings
from nacre.setup.foreseeing import Foreseen, foreseen_of
from nacre.spending.models import NONE

RECENT = timedelta(days=7)
"""What of it is offered to be read alone."""


@dataclass(frozen=True, slots=True)
class FirstReading:
    """Transcripts that wait: ``files`` of them with so many ``bytes``; ``recent`` changed in the last seven days.

    ``estimate`` is what a language model would cost; ``None`` where none is set. ``foreseen`` is what a writer would
    take a day, by the last week of them.
    """

    files: int
    bytes: int
    recent: tuple[Path, ...]
    estimate: Estimate | None
    foreseen: Foreseen = Foreseen(0.0, 0)

    @property
    def has_older(self) -> bool:
        """Whether reading what is recent alone is less than all, and anything."""
        return 0 < len(self.recent) < self.files


def look(home: Home, writer: str = "") -> FirstReading:
    """What can be read, and what a writer would take, by its name or the one that would be proposed; stores nothing."""
    options = IngestOptions()
    plan = planning.plan(home, options)
    since = (home.clock() - RECENT).timestamp() * 1e9
    found = discovery.find(home, (), with_discovery=True).files
    newest = sorted(found, key=lambda one: -one.mtime_ns)
    recent = [file.path for file in newest if file.mtime_ns >= since]
    has_model = home.settings.text("models.default") != NONE and plan.files > 0
    return FirstReading(
        plan.files, plan.bytes, tuple(recent), planning.estimate(home, options) if has_model else None,
        foreseen_of(home, [file.path for file in newest], writer),
    )  # fmt: skip


@contextmanager
def home_to_look(settings: Settings) -> Iterator[Home]:
    """The home; where there is none yet, one in a temporary folder: who only looks has nothing made."""
    with ExitStack() as stack:
        if not (settings.server or settings.database.is_file()):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="nacre-")))
            settings = replace(settings, home=folder, database=folder / settings.database.name)
        yield stack.enter_context(closing(open_home(settings)))
